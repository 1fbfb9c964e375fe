"""A learner with the records that wait for it, in their order."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from drift.consumers.order import Clock, Order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from drift.consumers.learner import Learner
    from drift.consumers.records import Message, TopicPartition

__all__ = ["FedLearner", "Feed"]

log = logging.getLogger("drift.consumers")

#: Seconds of polling for a partition after which a warning names it.
_LONG = 10.0


class Feed(Protocol):
    """What may be asked of a consumer: `drift.consumers.client.consumer.LogConsumer`."""

    def start(self, place: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Start a partition at an offset, behind a message with this leader epoch."""

    def pause(self, place: TopicPartition) -> None:
        """Pause fetching of a partition, until it is started again."""

    def position(self, place: TopicPartition) -> tuple[int, int] | None:
        """The next offset, and the leader epoch of the message before."""

    def read_at(self, place: TopicPartition) -> float:
        """When a partition was last fetched; -inf before."""

    def ended_at(self, place: TopicPartition) -> float:
        """When a partition had last been read to its end; -inf if it has more."""

    def end(self, place: TopicPartition) -> int | None:
        """The end of what may be read, as of the last fetch; None before one."""

    def lag(self, place: TopicPartition, offset: int) -> int | None:
        """Messages between an offset and the end, as of the last fetch; None before one."""


class FedLearner:
    """A learner, and the records that were read for it, which come in their order.

    Worker, replica and `read_topic` have one. Partitions that are far ahead of the others are
    paused. To fetch a paused partition again we seek: a resume can lose the records that
    kafka-python parked.

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

    def __init__(self, learner: Learner, consumer: Feed) -> None:
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

    def read(self, batches: Iterable[tuple[TopicPartition, list[Message]]], seconds: float) -> None:
        """Have records wait for their turn; `seconds` is how long they were polled for."""
        for place, messages in batches:
            self.learner.check(messages)
            self.order.add(place, messages, self._consumer.read_at(place))
            if self.order.is_ahead(place):
                self._consumer.pause(place)
                self.paused.add(place)
        self.order.idle(seconds)
        self._note_wait()

    def _note_wait(self) -> None:
        """Say once if partitions without records hold the others back."""
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
