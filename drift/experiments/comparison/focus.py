"""What a comparison is about: all classes, or one that is rare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from drift._checks import suggest
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.streams.stream import Stream
    from drift.types import Label

__all__ = ["EVERYTHING", "RARE", "Focus", "focus_of"]

#: A class that is rarer is rare, if it is rarer than half of an equal share, too.
RARE = 0.1


class Focus(NamedTuple):
    """What a stream's models are ranked by."""

    #: The class that recall, precision and F1 are of; None: none.
    positive: Label | None
    #: The measure that models are ranked by.
    headline: str
    #: What a reader has to know of it; empty: nothing.
    note: str

    @property
    def label(self) -> str | None:
        """The positive class as a text."""
        return None if self.positive is None else str(self.positive)


#: All classes, by their error.
EVERYTHING = Focus(None, "error", "")


def focus_of(stream: Stream, asked: Any = None) -> Focus:
    """Return what the models of a stream are ranked by.

    With a rare class that is average precision: whoever never predicts the class has a low error.
    Of several rare classes none is singled out. A class of one row is none: it is not known before
    that row, and nothing of it comes after.

    Parameters
    ----------
    stream
        The examples.
    asked
        The positive class, as its label or the label's text; None: the class that is rare, if
        there is one.

    Raises
    ------
    ParameterError
        No example has the label.

    Examples
    --------
    >>> from drift.experiments.comparison.focus import focus_of
    >>> from drift.streams import Stream
    >>> stream = Stream([({}, "fraud" if i % 20 == 3 else "fine") for i in range(40)])
    >>> focus_of(stream).positive, focus_of(stream).headline
    ('fraud', 'average_precision')
    >>> focus_of(stream, "fine").note
    "recall, precision and F1 are of 'fine', 95.00 % of the rows"
    """
    counts, total = stream.classes, len(stream)
    bound = min(RARE, 0.5 / len(counts))
    rare = [label for label, n in counts.items() if 1 < n < bound * total]
    if asked is not None:
        positive = _known(asked, counts, stream.name)
    elif len(rare) == 1:
        [positive] = rare
    elif rare:
        note = (
            f"{len(rare)} classes are rare, such as {rare[0]!r}, {_share(rare[0], counts)} of the "
            "rows: models are ranked by average precision, the mean over classes; name one as "
            "positive (--positive) for its recall, precision and F1"
        )
        return Focus(None, "average_precision", note)
    else:
        return EVERYTHING
    note = f"recall, precision and F1 are of {positive!r}, {_share(positive, counts)} of the rows"
    return Focus(positive, "average_precision", note)


def _share(label: Label, counts: Mapping[Label, int]) -> str:
    return f"{100 * counts[label] / sum(counts.values()):.2f} %"


def _known(asked: Any, counts: Mapping[Label, int], name: str) -> Label:
    for label in counts:
        if label == asked:
            return label
    texts = {str(label).lower(): label for label in counts}
    if (text := str(asked).lower()) in texts:
        return texts[text]
    raise ParameterError(
        f"positive: {name} has no label {asked!r}: {suggest(str(asked), list(map(str, counts)))}"
    )
