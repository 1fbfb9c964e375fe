"""Learn again what a worker has learnt, from the logs, in the order of its journal."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from drift._late import with_late_labels
from drift.consumers.json_codec import checked_codec
from drift.consumers.late import learner_of
from drift.consumers.order import Clock, LearntRuns, sort_key
from drift.consumers.preparing import refuse_keyed, refuse_shadow
from drift.consumers.records import Position, TopicPartition
from drift.consumers.shadow import Shadow
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from drift.consumers.codec import Codec
    from drift.consumers.learner import Learner
    from drift.consumers.options import WorkerOptions
    from drift.consumers.order import Learnt, Run
    from drift.consumers.records import Message, Outgoing

__all__ = ["gone", "in_order", "relearn", "relearning"]


def in_order(
    logs: Mapping[TopicPartition, Iterable[Message]], runs: Iterable[Run], options: WorkerOptions
) -> Iterator[Message]:
    """Yield the messages of several partitions in the order of these runs.

    Parameters
    ----------
    logs
        The messages by topic and partition, each in the order of its offsets.
    runs
        As `drift.consumers.checkpoints.journal.read_order` has them.
    options
        The worker's: the topic of labels and `max_jump`.
    """
    rest = {place: iter(log) for place, log in logs.items()}
    following: dict[TopicPartition, Message | None] = {}
    clocks: dict[TopicPartition, Clock] = {}

    def keyed(place: TopicPartition, upto: int) -> Iterator[tuple[Any, Message]]:
        while True:
            message = following.pop(place, None) or next(rest[place], None)
            if message is None:
                return
            if message.position.offset >= upto:
                following[place] = message
                return
            clock = clocks.get(place, Clock()).after(message.time, 1000 * options.max_jump)
            clocks[place] = clock
            yield sort_key(clock.time, place, options.labels), message

    for run in runs:
        last = dict.fromkeys(run, -1)
        parts = [keyed(place, upto) for place, upto in run.items() if place in rest]
        for _, message in heapq.merge(*parts, key=lambda pair: pair[0]):
            last[message.position[:2]] = message.position.offset
            yield message
        for place, upto in run.items():
            if last[place] != upto - 1:
                raise CheckpointError(
                    f"{Position(*place, upto - 1)} was learnt, and the logs have it not: give the "
                    "whole log of each partition. What is deleted cannot be learnt again"
                )


def relearn(  # noqa: PLR0913
    model: Any,
    logs: Mapping[TopicPartition, Iterable[Message]],
    runs: Iterable[Run],
    options: WorkerOptions,
    codec: Codec | None = None,
    *,
    shadow: Any = None,
) -> tuple[Learner, list[Outgoing]]:
    """Learn what a worker has learnt, in its order; the model is equal to the last bit.

    Parameters
    ----------
    model
        As the worker's was before it learnt anything.
    logs
        The messages by topic and partition. Those before the worker's first offsets are left out,
        if the runs are of `drift.consumers.checkpoints.journal.read_order`.
    runs
        In which order they were learnt, and which were left out, as
        `drift.consumers.checkpoints.journal.read_order` has it.
    options
        The worker's.
    codec
        The worker's; None for `JsonCodec`.
    shadow
        A second model that the worker had beside it, as it was when it began; None for none. Where
        it began, and was promoted by `drift promote`, is in the runs. Without one a shadow that
        never took the model's place changes nothing.

    Returns
    -------
    learner
        With the model, and what is counted.
    sent
        What was to be sent.

    Raises
    ------
    CheckpointError
        If a shadow took the model's place that is not given here, or a second one has begun; if the
        logs lack messages that were learnt; or if something else was learnt than by the worker, as
        with another codec.

    Examples
    --------
    >>> from drift.consumers.options import WorkerOptions
    >>> from drift.consumers.records import Message, Position
    >>> from drift.models import LBP
    >>> options = WorkerOptions(topic="news", group="readers")
    >>> value = b'{"features": {"rain": 1.0}, "label": true}'
    >>> log = [Message(Position("news", 0, i), None, value, timestamp=i) for i in range(3)]
    >>> learner, _ = relearn(LBP(9), {("news", 0): log}, [{("news", 0): 2}], options)
    >>> learner.offsets, learner.metrics.examples
    ({('news', 0): 2}, 2)
    """
    learner, sent = relearning(model, logs, runs, options, codec, shadow=shadow)
    return learner, [*sent]


def relearning(  # noqa: PLR0913
    model: Any,
    logs: Mapping[TopicPartition, Iterable[Message]],
    runs: Iterable[Run],
    options: WorkerOptions,
    codec: Codec | None = None,
    *,
    shadow: Any = None,
) -> tuple[Learner, Iterator[Outgoing]]:
    """Do what `relearn` does as the outputs are taken, of which none is kept."""
    codec = checked_codec(codec)
    refuse_keyed(codec, "relearn")
    if shadow is not None:
        refuse_shadow(options)
    if options.labels:
        model, shadow = map(with_late_labels, (model, shadow))
    learner = learner_of(model, codec, options)
    learner.shadow = None if shadow is None else Shadow(shadow)
    return learner, _sent(learner, logs, runs, options, shadow)


def _sent(
    learner: Learner,
    logs: Mapping[TopicPartition, Iterable[Message]],
    runs: Iterable[Run],
    options: WorkerOptions,
    shadow: Any,
) -> Iterator[Outgoing]:
    digest, begins = None, dict[TopicPartition, tuple[int, int]]()
    if isinstance(runs, LearntRuns):
        learner.skips, digest = dict(runs.skips), runs.digest
        logs = {
            place: _since(log, runs.first.get(place, 0), begins.setdefault)
            for place, log in logs.items()
        }
        if runs.parts:
            runs = _with_shadow(learner, runs.parts, shadow)
    for message in in_order(logs, runs, options):
        yield from learner.take(message)
    if digest not in {None, learner.digest}:
        own = "give its model and shadow as they were, seeds too, its codec and options"
        why = ", ".join(gone(begins)) or own
        raise CheckpointError(f"what was learnt is not what the worker has learnt: {why}")


def _since(
    log: Iterable[Message], first: int, note: Callable[[TopicPartition, tuple[int, int]], Any]
) -> Iterator[Message]:
    """Yield the messages from an offset on; note that offset, and that of the first of them."""
    for message in log:
        if message.position.offset >= first:
            note(message.position[:2], (first, message.position.offset))
            yield message


def gone(begins: Mapping[TopicPartition, tuple[int, int]]) -> Iterator[str]:
    """Say which logs begin after the worker's first offsets; with each is that, and its own first.

    Where transactions were aborted there, no message is gone.
    """
    for (topic, number), (first, found) in begins.items():
        if found > first:
            yield (
                f"the log of {topic}:{number} begins at {found}, and the worker began at {first}"
            )


def _with_shadow(learner: Learner, parts: list[Learnt], shadow: Any) -> Iterator[Run]:
    """Yield the runs, each to be learnt before the next; between them do what became of a shadow.

    A worker's shadow begins, is dropped or is promoted by hand between the runs of two checkpoints.
    """
    # The first checkpoint has no runs where its model comes from a history, or has learnt nothing.
    first = 0 if parts[0].runs else parts[0].promotions
    has_begun, before = False, None

    def made() -> int:
        return first + (learner.promotions[-1]["number"] if learner.promotions else 0)

    for part in parts:
        is_other = part.shadow != before and part.promotions == made()
        before = part.shadow
        if part.shadow is None:
            learner.shadow = None
        elif shadow is not None and (learner.shadow is None or is_other):
            if has_begun and learner.offsets:
                raise CheckpointError(
                    f"another shadow had begun by checkpoint {part.checkpoint}, and relearn takes "
                    "one: relearn up to a checkpoint before it; or, if no shadow was promoted, "
                    "without any"
                )
            learner.shadow, has_begun = Shadow(shadow, learner.offsets), True
        by_hand = not part.runs and part.promotions > made()
        if by_hand and learner.shadow is not None:
            learner.promote("hand")
        yield from part.runs
        if part.promotions != made():
            raise CheckpointError(
                f"by checkpoint {part.checkpoint} a shadow has taken the model's place, "
                f"{'by drift promote, ' * by_hand}promotion {part.promotions}; relearn has made "
                f"{made()}: give it the worker's second model, as it was when it began, for "
                "shadow, and the worker's options"
            )
