"""Who sends the messages: plainly, and some in transactions, of which some are given up."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from tests.faults.examples import Event, late, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ENDS", "Feed"]

#: Seconds between messages until a feed hastens.
_CALM = 0.05
#: What becomes of transactions. One that is left open is ended by the broker as the next starts.
ENDS = ("committed", "given up", "left open")
#: Share of the messages that go into a transaction while one is open, and how long that is.
_SHARE, _OPEN, _SHUT = 0.15, (0.3, 4.0), (0.2, 3.0)
#: Seconds in which the broker comes back, on a busy machine.
_PATIENCE = 600
#: Milliseconds by which a producer's clock is late, at most; the share of stamps that are far off,
#: by so many hours; and of those the share that the next record of the partition confirms.
_LATE, _FAR_SHARE, _FAR, _CONFIRMED = 300, 0.002, (-270_000, -2, 2, 270_000), 0.03


class _Transaction:
    """One at a time, beside all that is sent plainly.

    Parameters
    ----------
    options
        Of confluent-kafka.
    name
        Its id: whoever starts with it ends what was left open.
    draw
        Of ends and times.
    """

    def __init__(self, options: dict[str, Any], name: str, draw: random.Random) -> None:
        self._options = options | {"transactional.id": name, "transaction.timeout.ms": 30_000}
        self._draw = draw
        self._producer: Any = None
        self._events: list[tuple[Any, ...]] = []
        self._next = time.monotonic()
        self._kinds = [*reversed(ENDS)]  # each comes once before any comes twice
        self.ended: Counter[str] = Counter()

    def take(self, sent: tuple[Any, ...]) -> bool:
        """Whether it sends a message."""
        if self._producer is None or self._draw.random() > _SHARE:
            return False
        self._events.append(sent)
        _produce(self._producer, *sent)
        return True

    def turn(self, *, last: bool = False) -> list[tuple[Any, ...]]:
        """Start or end one if it is time; return what was given up, to be sent once more."""
        if time.monotonic() < self._next and not last:
            return []
        if self._producer is None:
            self._begin()
            self._next = time.monotonic() + self._draw.uniform(*_OPEN)
            if not last:
                return []
        kind = "committed" if last else (self._kinds or [self._draw.choice(ENDS)]).pop()
        events, self._events = self._events, []
        if kind != "left open":
            kind = self._end(kind)
        else:
            _patiently(lambda: self._producer.flush(10))
        self.ended[kind] += 1
        self._producer = None
        self._next = time.monotonic() + self._draw.uniform(*_SHUT)
        return [] if kind == "committed" else events

    def _begin(self) -> None:
        self._producer = Producer(self._options)
        _patiently(lambda: self._producer.init_transactions(10))
        self._producer.begin_transaction()

    def _end(self, kind: str) -> str:
        """Commit it or give it up; return what has come of it, after an outage another thing."""
        producer = self._producer
        step = producer.commit_transaction if kind == "committed" else producer.abort_transaction
        try:
            _patiently(lambda: step(10))
        except KafkaException as problem:
            if kind == "committed" and problem.args[0].txn_requires_abort():
                return self._end("given up")
            return "left open"
        return kind


def _patiently(step: Callable[[], object]) -> None:
    """Try something until the broker is back."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            step()
        except KafkaException as problem:
            if not problem.args[0].retriable() or time.monotonic() > end:
                raise
            time.sleep(0.2)
        else:
            return


def _produce(producer: Any, event: Event, stamp: int, on_delivery: Any = None) -> None:
    while True:
        try:
            producer.produce(
                event.topic,
                event.value,
                b"",
                event.partition,
                timestamp=stamp,
                headers=[("number", json.dumps(event.number).encode())],
                on_delivery=on_delivery,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


class Feed(threading.Thread):
    """Sends messages at an even rate, through outages of the broker; slowly until `hasten`.

    Parameters
    ----------
    address
        Of the broker.
    topic
        Where to.
    n
        How many.
    seconds
        In how many once it hastens.
    seed
        Of `messages`.
    labels
        The topic of labels that come later; None where messages have their own.
    keyed
        Whether messages have a key.
    """

    def __init__(  # noqa: PLR0917
        self,
        address: str,
        topic: str,
        n: int,
        seconds: float,
        seed: int,
        labels: str | None = None,
        *,
        keyed: bool = False,
    ) -> None:
        super().__init__(daemon=True)
        self.topic, self.n, self.seconds, self.seed = topic, n, seconds, seed
        self.labels, self.keyed = labels, keyed
        self.interval = _CALM
        self.sent = 0
        self.error: Exception | None = None
        self._undelivered: list[str] = []
        self._draw = random.Random(f"feed {seed}")
        self._far: dict[tuple[str, int], int] = {}  # stamps that are to come once more
        self._options = {"bootstrap.servers": address, "log_level": 0, "linger.ms": 5}
        self._transaction = _Transaction(self._options, topic, self._draw)

    @property
    def transactions(self) -> Counter[str]:
        """Those that have ended, by how."""
        return self._transaction.ended

    def hasten(self) -> None:
        """Send what is left within the time given."""
        every = self.n if self.labels is None else 2 * self.n
        self.interval = self.seconds / max(1, every - self.sent)

    def run(self) -> None:
        try:
            self._send_all()
        except Exception as error:  # noqa: BLE001 - for the thread that joins
            self.error = error

    def _send_all(self) -> None:
        plain = Producer(self._options | {"message.timeout.ms": 1000 * _PATIENCE})
        due = time.monotonic()
        for event in self._events():
            due += self.interval
            wait = due - time.monotonic()
            if wait > 0.01:
                time.sleep(wait)
            sent = event, self._stamp(event)
            if not self._transaction.take(sent):
                _produce(plain, *sent, self._on_delivery)
            self._again(plain, self._transaction.turn())
            self.sent += 1
        for _ in range(2):  # what was left open ends as another one starts
            self._again(plain, self._transaction.turn(last=True))
        if plain.flush(_PATIENCE):
            raise TimeoutError("the broker has not taken all that was sent")
        if self._undelivered:
            raise RuntimeError(f"{len(self._undelivered)} not sent: {self._undelivered[0]}")

    def _again(self, plain: Any, given_up: list[tuple[Any, ...]]) -> None:
        """Send plainly what is in no log."""
        for sent in given_up:
            _produce(plain, *sent, self._on_delivery)

    def _on_delivery(self, error: Any, _: Any) -> None:
        if error is not None:
            self._undelivered.append(str(error))

    def _stamp(self, event: Event) -> int:
        """Return the producer's time, which topics with log append time ignore."""
        place, now = (event.topic, event.partition), int(1000 * time.time())
        if place in self._far:
            return self._far.pop(place)
        if self._draw.random() > _FAR_SHARE:
            return now - int(_LATE * self._draw.random())
        stamp = now + 3_600_000 * self._draw.choice(_FAR)
        if self._draw.random() < _CONFIRMED:
            self._far[place] = stamp
        return stamp

    def _events(self) -> Iterator[Event]:
        if self.labels is not None:
            yield from late(self.n, self.seed, self.topic, self.labels)
            return
        for number, partition, value in messages(self.n, self.seed, keyed=self.keyed):
            yield Event(self.topic, partition, value, number)
