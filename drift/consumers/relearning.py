"""What a worker has learnt by labels that come later, learnt once more from the two logs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.consumers.codec import Example, JsonCodec
from drift.consumers.join import FeatureMessage, Join, JoinOptions, LabelMessage
from drift.consumers.late import identified
from drift.consumers.learner import answer_of, attempt, predict_then_learn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from drift.consumers.records import Message
    from drift.types import Label

__all__ = ["Relearnt", "read_logs", "relearn"]

#: What a message says that is given up.
_NOTHING = Example(None)  # type: ignore[arg-type]


class Relearnt(NamedTuple):
    """A prediction: its label, its score where the model has one, and those of the classes."""

    label: Label
    score: float | None
    probabilities: dict[Label, float] | None


def read_logs(
    features: Iterable[Message], labels: Iterable[Message], codec: Any = None
) -> tuple[list[FeatureMessage], list[LabelMessage]]:
    """Return what `relearn` takes from the messages of two partitions.

    Parameters
    ----------
    features, labels
        The messages, as `drift.consumers.client.topics.Reader` reads them.
    codec
        What the worker reads them with; None for `JsonCodec`.
    """
    codec = JsonCodec() if codec is None else codec
    read = [
        FeatureMessage(m.position.offset, m.time, one.id, one.features, m.size)
        for m, one in _examples(codec.decode, features)
    ]
    known = [
        LabelMessage(m.position.offset, m.time, one.id, one.label, one.weight)
        for m, one in _examples(codec.decode_label, labels)
    ]
    return read, known


def _examples(
    decode: Callable[..., Example], messages: Iterable[Message]
) -> Iterator[tuple[Message, Example]]:
    """Yield messages with what they say: nothing where a worker gives one up."""
    for message in messages:
        found, refusal = attempt(identified, decode, message)
        yield message, found if refusal is None else _NOTHING


def relearn(  # noqa: PLR0913
    model: Any,
    features: Iterable[FeatureMessage],
    labels: Iterable[LabelMessage],
    predictions: Iterable[tuple[int, int]] = (),
    *,
    options: JoinOptions | None = None,
    given_up: Iterable[tuple[int, int]] = (),
) -> tuple[Join, dict[tuple[int, int], Relearnt]]:
    """Learn the two logs of a partition as a worker does, and predict what it predicted.

    Parameters
    ----------
    model
        What learns them: as the worker's was before it learnt.
    features, labels
        The logs, as `read_logs` has them. A label at their end whose features may still come is
        not learnt.
    predictions
        What the worker predicted, as its predictions say: their ``offset`` and ``labels_learnt``. A
        `Tracker` with ``late=True`` needs all of them, in the order in which they were sent: what
        it learns depends on what it had learnt when it predicted. Of a message that was predicted
        again after a crash the last counts there, which the crash did not undo.
    options
        How long features and labels wait; None for the defaults.
    given_up
        Labels that the worker gave up, as its checkpoint has them.

    Returns
    -------
    join
        The state of the join at the end.
    predicted
        Each of `predictions` that counts and whose features there are.

    Examples
    --------
    >>> from drift.models import LBP
    >>> features = [FeatureMessage(n, 1000 * n, n, {"x": 1.0 + n}) for n in range(3)]
    >>> labels = [LabelMessage(0, 1_500, id=1, label=True), LabelMessage(1, 1_600, 0, False)]
    >>> join, predicted = relearn(LBP(9), features, labels, [(2, 1)])
    >>> join.counts["learnt"], predicted[2, 1].label
    (2, True)
    """
    log = list(features)
    by_offset = {message.offset: message for message in log}
    predictions = list(predictions)
    if getattr(model, "late", False):
        predictions = list(dict(predictions).items())
    wanted = sorted(set(predictions), key=lambda one: one[::-1], reverse=True)
    decided, join = set(given_up), Join(options or JoinOptions())
    predicted: dict[tuple[int, int], Relearnt] = {}

    def predict(upto: float) -> None:
        while wanted and wanted[-1][1] <= upto:
            one = wanted.pop()
            if one[0] in by_offset and by_offset[one[0]].features is not None:
                predicted[one] = Relearnt(*answer_of(model, by_offset[one[0]].features))

    rest = iter(log)
    for label in labels:
        predict(label.offset)
        join.begin(label)
        if not _ready(join, label, rest, decided):
            break
        outcome = join.finish()
        if outcome.features is not None:
            example = outcome.features, label.label, label.weight
            attempt(predict_then_learn, model, *example)  # else it was a worker's dead letter
    else:
        predict(math.inf)
    return join, predicted


def _ready(
    join: Join, label: LabelMessage, rest: Iterator[FeatureMessage], decided: set[tuple[int, int]]
) -> bool:
    """Read features until a label needs no more; say whether there were as many."""
    while join.waits:
        if (label.offset, join.features) in decided:
            join.give_up()
            continue
        message = next(rest, None)
        if message is None:
            return False
        join.read(message)
    return True
