"""What brings a learner its records: they are read ahead, and come in their order.

Worker and replica share it. Partitions that are far ahead of the others are paused, and sought
once they are fetched on: to resume them would lose what the client holds of them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from drift.consumers.client.workarounds import LARGEST
from drift.consumers.order import Clock, Order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from drift.consumers.client.consumer import GroupConsumer
    from drift.consumers.codec import Codec
    from drift.consumers.learner import Learner
    from drift.consumers.records import Message, Place

__all__ = ["Feed", "largest_record"]

log = logging.getLogger("drift.consumers")

#: Seconds of polling for a partition after which a warning names it.
_LONG = 10.0


def largest_record(codec: Codec) -> int:
    """Return the bytes of the largest record that is read for a codec: value, key and headers."""
    return getattr(codec, "max_bytes", LARGEST) + (1 << 20)


class Feed:
    """The records that were read of a learner's partitions and not taken.

    Parameters
    ----------
    learner
        Which takes them.
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

    def __init__(self, learner: Learner, consumer: GroupConsumer) -> None:
        options = learner.options
        self.learner = learner
        self.order = Order(options.labels, options.max_jump, options.max_idle)
        self.paused: set[Place] = set()
        self.trouble: str | None = None
        self._consumer = consumer

    def start(self, place: Place) -> None:
        """Fetch a partition from where the learner is."""
        self.order.start(place, self.learner.clocks.get(place, Clock()))
        self._read_on(place)

    def add(self, batches: Iterable[tuple[Place, list[Message]]]) -> None:
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

    def _at(self, place: Place) -> str:
        """Say how far a partition has been read."""
        position, end = self._consumer.position(place), self._consumer.end(place)
        at = "" if position is None else f" at offset {position[0]}"
        return f"{place[0]}:{place[1]}{at}" + ("" if end is None else f" of {end}")

    def take(self) -> Iterator[Message]:
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

    def skip(self, place: Place, first: int) -> None:
        """Continue at an offset, after messages that were deleted."""
        if not self.order.buffered(place):
            self.learner.skip_to(place, first)
        self._consumer.start(place, first)

    def _read_on(self, place: Place) -> None:
        """Fetch a partition after its last buffered record."""
        if waiting := self.order.buffered(place):
            last, _ = waiting[-1]
            self._consumer.start(place, last.position.offset + 1, last.leader_epoch)
        else:
            epoch = self.learner.leader_epochs.get(place, -1)
            self._consumer.start(place, self.learner.offsets[place], epoch)
