"""Answers of a model: a label, and probabilities, packed as bytes until the label comes."""

from __future__ import annotations

from struct import pack, unpack
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.consumers._json import plain

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from drift.types import Label

__all__ = ["UNSEEN", "Answer", "Classes", "text_of"]

#: Classes whose probabilities are kept: four bytes each, of every example that waits.
_MOST = 32
#: What a shadow has predicted that has not seen the features.
UNSEEN: Any = object()


class Answer(NamedTuple):
    """The predicted label, None before any is known, and the probability of each class.

    `chances` is None for a model without probabilities; `shadowed` is the shadow's prediction, None
    if it raised; `reasons` are the features' contributions, None where nobody asks for them;
    `ticket` is what the model was given for one.
    """

    predicted: Label
    chances: Mapping[Label, float] | None = None
    shadowed: Label = UNSEEN
    reasons: Mapping[str, float] | None = None
    ticket: Hashable = True


def text_of(label: Label) -> str:
    """Return a label as a prediction names it in its probabilities.

    >>> text_of(True), text_of(1), text_of("spam")
    ('true', '1', 'spam')
    """
    return "true" if label is True else "false" if label is False else str(label)


class Classes:
    """Probabilities as bytes, in the order in which their classes came; of the first 32.

    Parameters
    ----------
    labels
        The classes that have come.

    Examples
    --------
    >>> classes = Classes()
    >>> packed = classes.pack({True: 0.25, False: 0.75})
    >>> len(packed), classes.unpack(packed, True)
    (8, {True: 0.25, False: 0.75})
    """

    def __init__(self, labels: Iterable[Label] = ()) -> None:
        self.labels = list(labels)
        self._known = {*self.labels}

    def pack(self, chances: Mapping[Label, float] | None) -> bytes:
        """Return the bytes of probabilities; none where there are none."""
        if not chances:
            return b""
        labels, known = self.labels, self._known
        if len(labels) < _MOST and not chances.keys() <= known:
            labels += [plain(label) for label in chances if label not in known][
                : _MOST - len(labels)
            ]
            known.update(labels)
        return pack(f"<{len(labels)}f", *[chances.get(label, 0.0) for label in labels])

    def unpack(self, packed: bytes, label: Label) -> dict[Label, float] | None:
        """Return the probabilities, None where there were none.

        A label of no such class gets the rest.
        """
        if not any(packed):
            return None
        chances = dict(zip(self.labels, unpack(f"<{len(packed) // 4}f", packed), strict=False))
        if label not in chances:
            chances[label] = max(0.0, 1.0 - sum(chances.values()))
        return chances
