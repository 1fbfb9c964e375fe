"""A learner with the records that wait for it and, in a worker, with its claim of checkpoints."""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from drift.consumers.client.workarounds import LARGEST
from drift.consumers.order import Clock, Order, Runs
from drift.consumers.poison import DEATHS, PoisonNotes, folder_of_notes
from drift.consumers.records import Position

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from concurrent.futures import Future

    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.client.consumer import GroupConsumer, LogConsumer
    from drift.consumers.codec import Codec
    from drift.consumers.learner import Learner
    from drift.consumers.records import Message, TopicPartition

__all__ = ["ClaimedModel", "FedLearner", "largest_record", "skipping"]

log = logging.getLogger("drift.consumers")

#: Seconds of polling for a partition after which a warning names it.
_LONG = 10.0


def largest_record(codec: Codec) -> int:
    """Return the bytes of the largest record that is read for a codec: value, key and headers."""
    return (codec.max_bytes or LARGEST) + (1 << 20)


def skipping(folder: AnyPath, position: Position) -> str:
    """Return the command that leaves a message out."""
    return f"drift checkpoint skip {folder} {position}"


def _from(offsets: Mapping[TopicPartition, int]) -> list[str]:
    """Return the first messages of partitions, of the first five."""
    first = [str(Position(*place, offset)) for place, offset in islice(offsets.items(), 5)]
    return [*first, *(["..."] * (len(offsets) > len(first)))]


class FedLearner:
    """A learner, and the records that were read for it, which come in their order.

    Worker and replica have one. Partitions that are far ahead of the others are paused. To fetch a
    paused partition again we seek: a resume can lose the records that kafka-python parked.

    Parameters
    ----------
    learner
        What learns them.
    consumer
        Which has been assigned the partitions.

    Attributes
    ----------
    order : Order
        The records that wait for their turn.
    paused : set
        Partitions with too many waiting records.
    trouble : str or None
        Which partitions have been waited for so long that somebody should look.
    """

    def __init__(self, learner: Learner, consumer: LogConsumer) -> None:
        options = learner.options
        self.learner = learner
        self.order = Order(options.labels, options.max_jump, options.max_idle)
        self.paused: set[TopicPartition] = set()
        self.trouble: str | None = None
        self._consumer = consumer

    def start(self, place: TopicPartition) -> None:
        """Fetch a partition from where the learner is."""
        self.order.start(place, self.learner.clocks.get(place, Clock()))
        self._read_on(place)

    def add(self, batches: Iterable[tuple[TopicPartition, list[Message]]]) -> None:
        """Have records wait for their turn."""
        for place, messages in batches:
            self.learner.check(messages)
            self.order.add(place, messages, self._consumer.read_at(place))
            if self.order.is_ahead(place):
                self._consumer.pause(place)
                self.paused.add(place)

    def idle(self, seconds: float) -> None:
        """Note that records were polled for so long, and say once if others hold them back."""
        self.order.idle(seconds)
        if self.order.held < _LONG:
            self.trouble = None
        elif self.trouble is None:
            self.trouble = "waiting for " + ", ".join(map(self._at, sorted(self.order.awaited)))
            log.warning(
                "%s: nothing is learnt meanwhile, as it may have earlier records. Look at the "
                "leader of the partition; max_idle ends the wait",
                self.trouble,
            )

    def _at(self, place: TopicPartition) -> str:
        """Say how far a partition has been read."""
        position, end = self._consumer.position(place), self._consumer.end(place)
        at = "" if position is None else f" at offset {position[0]}"
        return f"{place[0]}:{place[1]}{at}" + ("" if end is None else f" of {end}")

    def in_turn(self) -> Iterator[Message]:
        """Yield the records whose turn has come; each is to be learnt before the next one."""
        return self.order.take(self._consumer.ended_at)

    def resume(self) -> None:
        """Resume partitions that are no longer far ahead, and skip the marks of transactions."""
        for place in self.order:
            if place in self.paused and self.order.is_near(place):
                self.paused.remove(place)
                self._read_on(place)
            position = self._consumer.position(place)
            if position is None or self.order.buffered(place):
                continue
            if position[0] > self.learner.offsets[place]:
                self.learner.skip_to(place, *position)

    def lags(self) -> dict[TopicPartition, tuple[int, int | None]]:
        """Return how far each partition is behind, as `Metrics.lags` has it."""
        found = {}
        for place in self.order:
            offset = self.learner.offsets[place]
            lag = self._consumer.lag(place, offset)
            if lag is not None:
                found[place] = lag, self._oldest(place, offset) if lag else None
        return found

    def _oldest(self, place: TopicPartition, offset: int) -> int | None:
        """Return the time of the next message; of the one before, where it is still to come."""
        if waiting := self.order.buffered(place):
            time = waiting[0][0].time
        elif offset >= (self._consumer.end(place) or 0):  # an open transaction has the rest
            return None
        else:
            time = self.learner.clocks.get(place, Clock()).time
        return time if time >= 0 else None

    def skip(self, place: TopicPartition, first: int) -> None:
        """Continue at an offset, after messages that were deleted."""
        if not self.order.buffered(place):
            self.learner.skip_to(place, first)
        self._consumer.start(place, first)

    def _read_on(self, place: TopicPartition) -> None:
        """Fetch a partition after its last buffered record."""
        if waiting := self.order.buffered(place):
            last, _ = waiting[-1]
            self._consumer.start(place, last.position.offset + 1, last.leader_epoch)
        else:
            epoch = self.learner.leader_epochs.get(place, -1)
            self._consumer.start(place, self.learner.offsets[place], epoch)


class _Saving(NamedTuple):
    """A checkpoint that is being written, and what was taken between it and the one before."""

    written: Future[Checkpoint]
    offsets: Mapping[TopicPartition, int]
    runs: Runs
    taken: int


class ClaimedModel(FedLearner):
    """A model that a worker has claimed, with its checkpoint that is being written.

    Parameters
    ----------
    learner, consumer
        As of `FedLearner`.
    """

    def __init__(self, learner: Learner, consumer: GroupConsumer) -> None:
        super().__init__(learner, consumer)
        self.notes: PoisonNotes | None = None  # once it has begun, where it can be noted
        self.blamed: Position | None = None  # the last message that has hung
        self.starts_again = 0.0  # when partitions may start whose start could not be saved
        self._has_begun = False
        self.saving: _Saving | None = None

    def begin(self, folder: AnyPath) -> None:
        """Look, before the first message, how claims before this one have ended."""
        if self._has_begun:
            return
        self._has_begun = True
        where = folder_of_notes(folder)
        if where is None:
            return
        offsets = self.learner.offsets
        self.notes = notes = PoisonNotes(where, self.learner.epoch, offsets)
        if notes.suspect is not None:
            log.warning(
                "%s: a worker died in message %s, %d of the %d times after which it is left out; "
                "sooner by %s",
                *(self.learner.claim_id, notes.suspect, notes.deaths, DEATHS),
                skipping(folder, notes.suspect),
            )
        elif notes.is_careful:
            log.warning(
                "%s: a worker died among the messages from %s on, %d times so far: they are taken "
                "one at a time until the next checkpoint, so that the next start can name it",
                *(self.learner.claim_id, ", ".join(_from(offsets)), notes.starts - 1),
            )

    @property
    def is_careful(self) -> bool:
        """Whether messages are taken one at a time."""
        return self.notes is not None and self.notes.is_careful

    def end(self) -> None:
        """Let go of it, and note that no message has ended it."""
        if self.notes is not None:
            self.notes.end()
        self.learner.close()

    @property
    def is_written(self) -> bool:
        """Whether a checkpoint is written of which `end_saving` is to tell."""
        return self.saving is not None and self.saving.written.done()

    def begin_saving(
        self, written: Future[Checkpoint], offsets: Mapping[TopicPartition, int]
    ) -> None:
        """Note that a checkpoint is being written, which has all that was taken."""
        learner = self.learner
        self.saving = _Saving(written, offsets, learner.runs, learner.since_checkpoint)
        learner.runs, learner.since_checkpoint = Runs(), 0

    def end_saving(self) -> Mapping[TopicPartition, int] | None:
        """Wait for the checkpoint that is being written; return its offsets, None where none was.

        If writing failed, raise its error; the next checkpoint includes these runs.
        """
        saving, self.saving = self.saving, None
        if saving is None:
            return None
        learner = self.learner
        try:
            written = saving.written.result()
        except BaseException:
            learner.runs = saving.runs + learner.runs
            learner.since_checkpoint += saving.taken
            raise
        learner.checkpoint = written.id
        learner.metrics.checkpointed()
        if self.notes is not None:
            self.notes.saved(saving.offsets)
        return saving.offsets
