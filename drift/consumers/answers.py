"""Answers of a model: a label, and probabilities, packed as bytes until the label comes."""

from __future__ import annotations

from heapq import nlargest
from operator import itemgetter
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, NamedTuple

from drift._late import ticket_for
from drift.consumers._json import plain, text_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from drift.types import Features, Label

__all__ = ["UNSEEN", "Answer", "Classes", "answer_of", "by_text", "largest"]

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


def answer_of(
    model: Any, features: Features, *, ticket: Hashable = True
) -> tuple[Any, Any, dict[Any, float] | None]:
    """Return label, score and probabilities; None for what a model does not know.

    `ticket` is that of `drift.models.Tracker.answer_one`; without, the model stays as it was.
    """
    at_once = getattr(model, "answer_one", None)
    if at_once is not None:
        return at_once(features, ticket=ticket)  # type: ignore[no-any-return]
    more = ticket_for(model, ticket)
    predicted = model.predict_one(features, **more)
    score = getattr(model, "decision_function_one", lambda _: None)(features)
    try:
        chances = model.predict_proba_one(features, **more)
    except NotImplementedError:  # as River has it for those that know none
        chances = None
    return predicted, score, chances


def by_text(
    chances: Mapping[Any, float] | None, most: int | None = None
) -> dict[str, float] | None:
    """Return probabilities as JSON has them, by the text of the label; the largest `most`.

    Labels of one text, as 1 and "1", share an entry.

    >>> by_text({1: 0.25, "1": 0.5, "no": 0.25}, most=1)
    {'1': 0.75}
    """
    if chances is None:
        return None
    named: dict[str, float] = {text_of(label): share for label, share in chances.items()}
    if len(named) < len(chances):
        named = dict.fromkeys(named, 0.0)
        for label, share in chances.items():
            named[text_of(label)] += share
    return named if most is None else largest(named, most)


def largest(values: Any, most: int) -> Any:
    """Return the largest values of a dict; anything else as it is."""
    if isinstance(values, dict) and len(values) > most:
        return dict(nlargest(most, values.items(), key=itemgetter(1)))
    return values


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
