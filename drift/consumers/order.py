"""The order in which records of several partitions are processed: by time.

In a catch-up all logs are there at once, and a prediction must know exactly the labels of its time:
so the partitions advance together, by the timestamps of their records.

1. The time of a record is its timestamp, or that of a record before it in its partition where that
   is later. It moves by more than `max_jump`, forward or back, only where two records in a row say
   so: a single record of a wrong clock keeps the time before it. So do records without timestamps.
2. Of the partitions' next records the least in (time, features before label, topic, partition) is
   next.
3. It is processed once each other partition has a next record, or had been read to its end when
   this one was fetched. An open transaction is behind the end.
4. Any other partition is waited for, however long its broker stalls. After `max_idle` seconds of
   polling without a record processed, one is processed all the same; then the wait begins anew.

While no partition is at its end, the order is a function of the logs, unless `max_idle` ends a
wait. At the live edge it depends on arrival; `Runs` records where it fell back in time, which is
enough to reproduce it.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from drift.consumers.records import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from drift.consumers.records import Message, Position

__all__ = ["BY_HAND", "Clock", "Learnt", "LearntRuns", "Order", "Run", "Runs", "sort_key"]

#: How far each partition was when the order next fell back in time; those that moved.
Run: TypeAlias = dict[TopicPartition, int]

#: Why a message was left out that an operator has named.
BY_HAND = "was left out by drift checkpoint skip"

#: Records of a partition that are buffered before fetching pauses, and below which it resumes.
#: With more, one partition's fetches would delay those of others.
_AHEAD, _AGAIN = 4_000, 1_000
#: Bytes of them, likewise.
_AHEAD_BYTES, _AGAIN_BYTES = 16 << 20, 4 << 20


class Clock(NamedTuple):
    """The time of a partition, and a far one that its last record claimed, in milliseconds.

    The time is -1 before the first record.

    Examples
    --------
    >>> hour = 3_600_000
    >>> clock = Clock(1_000)
    >>> clock.after(999, hour).after(1_500, hour)
    Clock(time=1500, claim=None)
    >>> clock.after(10 * hour, hour)
    Clock(time=1000, claim=36000000)
    >>> clock.after(10 * hour, hour).after(2_000, hour)
    Clock(time=2000, claim=None)
    >>> clock.after(10 * hour, hour).after(11 * hour, hour)
    Clock(time=36000000, claim=None)
    """

    time: int = -1
    claim: int | None = None

    def after(self, stamp: int, max_jump: float) -> Clock:
        """Return the clock after a record with this timestamp, or with -1, which is none."""
        time, claim = self
        if stamp == time and claim is None:
            return self  # as thousands of records of a second are
        if time <= stamp <= time + max_jump or time < 0:
            return Clock(stamp)
        if time - max_jump <= stamp < time or stamp < 0:
            return Clock(time) if claim is not None else self
        if claim is None or (claim > time) is not (stamp > time):
            return Clock(time, stamp)
        return Clock(min(claim, stamp) if stamp > time else max(claim, stamp))


def sort_key(time: int, place: TopicPartition, labels: str | None) -> tuple[int, bool, str, int]:
    """Return what the next of several records is the least of."""
    topic, partition = place
    return time, topic == labels, topic, partition


class Order:
    """The buffered records of each partition, and which of them is next.

    Parameters
    ----------
    labels
        The topic of labels; None where there is none.
    max_jump
        Seconds that the time may move at once.
    max_idle
        Seconds of polling to wait for partitions that may have an earlier record; None for ever.

    Attributes
    ----------
    awaited : set
        The partitions that the next record waits for.
    held : float
        Seconds of polling for which it has waited.
    forced : int
        Records processed because `max_idle` was over.

    Examples
    --------
    >>> from drift.consumers.records import Message, Position
    >>> order = Order(labels="frauds")
    >>> for place in (("orders", 0), ("frauds", 0)):
    ...     order.start(place, Clock())
    >>> at = lambda topic, offset, time: Message(Position(topic, 0, offset), None, b"", (), time)
    >>> order.add(("orders", 0), [at("orders", 0, 10), at("orders", 1, 30)], read_at=1.0)
    >>> order.add(("frauds", 0), [at("frauds", 0, 20)], read_at=1.0)
    >>> [str(message.position) for message in order.take(lambda place: -1.0)]
    ['orders:0:0', 'frauds:0:0']
    >>> [str(message.position) for message in order.take(lambda place: 1.5)]
    ['orders:0:1']
    """

    def __init__(
        self,
        labels: str | None = None,
        max_jump: float = 3600.0,
        max_idle: float | None = None,
    ) -> None:
        self._labels = labels
        self._jump = 1000 * max_jump
        self._idle = math.inf if max_idle is None else max_idle
        self._buffers: dict[TopicPartition, deque[tuple[Message, float]]] = {}
        self._clocks: dict[TopicPartition, Clock] = {}  # after the next record, if one is there
        self._heads: list[tuple[tuple[int, bool, str, int], TopicPartition]] = []
        self.awaited: set[TopicPartition] = set()
        self.held = 0.0
        self.forced = 0

    def start(self, place: TopicPartition, clock: Clock) -> None:
        """Start a partition with its clock at its next offset."""
        self._buffers[place] = deque()
        self._clocks[place] = clock

    def add(self, place: TopicPartition, messages: Iterable[Message], read_at: float) -> None:
        """Buffer the next records of a partition, fetched at a time in seconds."""
        buffer = self._buffers[place]
        was_empty = not buffer
        buffer.extend((message, read_at) for message in messages)
        if buffer and was_empty:
            self._push(place, buffer[0][0])

    def idle(self, seconds: float) -> None:
        """Note that records were polled for so long."""
        if self.awaited:
            self.held += seconds

    def buffered(self, place: TopicPartition) -> deque[tuple[Message, float]]:
        """Return the buffered records of a partition, with the times of their fetches."""
        return self._buffers[place]

    def is_ahead(self, place: TopicPartition) -> bool:
        """Whether fetching of a partition should pause."""
        return self._has_more(place, _AHEAD, _AHEAD_BYTES)

    def is_near(self, place: TopicPartition) -> bool:
        """Whether fetching of a partition should resume."""
        return not self._has_more(place, _AGAIN, _AGAIN_BYTES)

    def _has_more(self, place: TopicPartition, count: int, size: int) -> bool:
        read = self._buffers[place]
        return len(read) > count or sum(message.whole_size for message, _ in read) > size

    def __bool__(self) -> bool:
        """Whether any record is buffered."""
        return bool(self._heads)

    def __contains__(self, place: TopicPartition) -> bool:
        return place in self._buffers

    def __iter__(self) -> Iterator[TopicPartition]:
        """Yield the partitions that were started."""
        return iter(self._buffers)

    def take(self, ended_at: Callable[[TopicPartition], float]) -> Iterator[Message]:
        """Yield records in order, until another partition may have one before the next.

        Parameters
        ----------
        ended_at
            When a partition was last at its end, in seconds.
        """
        heads, buffers = self._heads, self._buffers
        empty = {place: ended_at(place) for place, buffer in buffers.items() if not buffer}
        least = min(empty.values(), default=math.inf)
        self.awaited = set()
        while heads:
            _, place = heads[0]
            buffer = buffers[place]
            message, read_at = buffer[0]
            if read_at > least:
                if self.held < self._idle:
                    self.awaited = {other for other, end in empty.items() if end < read_at}
                    return
                self.forced += 1
            self.held = 0.0
            buffer.popleft()
            if buffer:
                self._push(place, buffer[0][0], heapq.heapreplace)
            else:
                heapq.heappop(heads)
                empty[place] = ended_at(place)
                least = min(least, empty[place])
            yield message
        self.held = 0.0

    def _push(self, place: TopicPartition, message: Message, put: Any = heapq.heappush) -> None:
        clock = self._clocks[place] = self._clocks[place].after(message.time, self._jump)
        put(self._heads, (sort_key(clock.time, place, self._labels), place))


class Learnt(NamedTuple):
    """What was learnt between two checkpoints, and which models the second one has.

    `promotions` and `shadow` are as of `drift.consumers.checkpoints.journal.which_models`.
    """

    checkpoint: str
    runs: list[Run]
    promotions: int
    shadow: int | None


class LearntRuns(list[Run]):
    """Runs, and why messages among them were left out, by their positions.

    `first` has the offsets where partitions were started among them. The runs of a journal are in
    `parts`, too, by checkpoint, and `digest` is that of what a model has learnt that learns them
    from the beginning, as `drift.consumers.learner.Learner` has it; None where it is not known.
    """

    def __init__(
        self,
        runs: Iterable[Run] = (),
        skips: Mapping[Position, str] | None = None,
        parts: Iterable[Learnt] = (),
        first: Mapping[TopicPartition, int] | None = None,
        digest: int | None = None,
    ) -> None:
        super().__init__(runs)
        self.digest = digest
        self.skips = dict(skips or {})
        self.first = dict(first or {})
        self.parts = [*parts]


class Runs:
    """Where the order in which records are taken falls back in time.

    Between two such places the records are in the order of `sort_key`. So the runs, with the logs,
    give back the order.

    Examples
    --------
    >>> runs = Runs()
    >>> for time, place, offset in [(5, ("a", 0), 0), (7, ("a", 1), 0), (6, ("a", 0), 1)]:
    ...     runs.note(sort_key(time, place, None), place, offset)
    >>> runs.all()
    [{('a', 0): 1, ('a', 1): 1}, {('a', 0): 2}]
    """

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._run: Run = {}
        self._last: tuple[int, bool, str, int] = (-1, False, "", -1)
        self.skips: dict[Position, str] = {}  # messages that were left out, and why
        self.first: dict[TopicPartition, int] = {}  # where partitions were started

    def note(self, key: tuple[int, bool, str, int], place: TopicPartition, offset: int) -> None:
        """Note that a record was taken."""
        if key < self._last:
            self._runs.append(self._run)
            self._run = {}
        self._last = key
        self._run[place] = offset + 1

    def forget(self) -> None:
        """Forget the runs that have ended, but not what was left out."""
        self._runs.clear()

    def __add__(self, other: Runs) -> Runs:
        """Return these runs, and then others."""
        both = Runs()
        both._runs, both._run, both._last = self.all() + other._runs, other._run, other._last
        both.skips, both.first = self.skips | other.skips, self.first | other.first
        return both

    def all(self) -> LearntRuns:
        """Return the runs, the last one as far as it is."""
        runs = [*self._runs, self._run] if self._run else self._runs
        return LearntRuns(runs, self.skips, first=self.first)
