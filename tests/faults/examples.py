"""The messages of a fault test: documents with a topic that shifts, and poison among them."""

from __future__ import annotations

import heapq
import json
import os
import random
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from drift import streams
from drift.consumers.codec import Example, JsonCodec
from drift.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = [
    "CODEC",
    "GIVEN_UP",
    "GRACE",
    "PARTITIONS",
    "POISON",
    "Event",
    "Feed",
    "Numbered",
    "codec",
    "give_up",
    "late",
    "messages",
]

PARTITIONS = 3
_POISON_SHARE = 0.02
_UNLABELLED_SHARE = 0.01
_MAX_BYTES = 200_000
#: Labels of features that there are, and what none is.
_KNOWN_SHARE = 0.97
_LABEL_POISON = (b"{", b'{"label": true}', b'{"id": 1}', b'{"id": 1, "label": "maybe"}')
#: Of the codec: what it refuses, some of the poison has.
CODEC: dict[str, Any] = {"labels": [True, False], "max_bytes": _MAX_BYTES}
#: Offsets of each partition that a transaction takes which is given up: examples, and its mark.
GIVEN_UP = 4
#: Seconds by which a label may come before its features.
GRACE = 5.0
#: Seconds between messages until a feed hastens.
_CALM = 0.025
#: Examples until the target shifts.
_ERA = 3_000

#: A message that cannot be learnt, by what is wrong with it.
POISON: dict[str, bytes | None] = {
    "tombstone": None,
    "empty": b"",
    "cut": b'{"features": {"a": 1.0}, "lab',
    "binary": bytes(range(128, 256)),
    "no object": b"[1, 2]",
    "no features": b'{"label": true}',
    "string": b'{"features": {"a": "Rome"}, "label": true}',
    "array": b'{"features": {"a": [1]}, "label": true}',
    "nan": b'{"features": {"a": NaN}, "label": true}',
    "infinite": b'{"features": {"a": 1e400}, "label": true}',
    "label": b'{"features": {"a": 1.0}, "label": {"b": 1}}',
    "unknown label": b'{"features": {"a": 1.0}, "label": "maybe"}',
    "deep": b"[" * 5_000,
    "oversized": b'{"features": {"%s": 1.0}}' % (b"a" * _MAX_BYTES),
}


class Numbered(NamedTuple):
    """A message and where it goes; its number stands in its headers."""

    number: int
    partition: int
    value: bytes | None


def codec() -> JsonCodec:
    """Return what workers and plain loop read messages with."""
    return JsonCodec(**CODEC)


def messages(n: int, seed: int) -> Iterator[Numbered]:
    """So many examples of RCV1, or of the newswire stream where DRIFT_DATA is not set."""
    rng = random.Random(seed)
    documents, targets = streams.load("rcv1" if os.environ.get("DRIFT_DATA") else "newswire", n=n)
    has = [documents.has(target).tolist() for target in targets]
    encode = codec().encode
    features = documents.features()
    for number in range(n):
        row = number % len(documents)
        if row == 0:
            features = documents.features()
        named: dict[Hashable, float] = {str(k): value for k, value in next(features).items()}
        label = has[number // _ERA % len(has)][row]
        if rng.random() < _UNLABELLED_SHARE:
            label = None
        value: bytes | None = encode(Example(named, label, number))
        if rng.random() < _POISON_SHARE:
            value = POISON[rng.choice(list(POISON))]
        yield Numbered(number, rng.randrange(PARTITIONS), value)


class Event(NamedTuple):
    """What is sent next of two logs: features, or a label; of a label no number is known."""

    topic: str
    partition: int
    value: bytes | None
    number: int | None = None


def late(n: int, seed: int, topic: str, labels: str) -> Iterator[Event]:
    """So many messages without labels, and those on a topic of their own.

    A label comes before its features or up to thousands of messages later, and sometimes twice or
    never; some are of nothing that was ever sent, and some poison.
    """
    rng = random.Random(f"late {seed}")
    ahead: list[tuple[float, int, Event]] = []  # a heap by when they are sent
    decode, encode = codec().decode, codec().encode
    for number, partition, value in messages(n, seed):
        label = None
        try:
            example = decode(value)
        except MessageError:
            pass
        else:
            label = example.label
            value = encode(example._replace(label=None))  # noqa: PLW2901
        heapq.heappush(ahead, (number, number, Event(topic, partition, value, number)))
        if label is not None:
            name = number if rng.random() < _KNOWN_SHARE else f"nobody's {number}"
            said: bytes = json.dumps({"id": name, "label": label}).encode()
            if rng.random() < _POISON_SHARE:
                said = rng.choice(list(_LABEL_POISON))
            for _ in range(rng.choices((0, 1, 2), (1, 18, 1))[0]):
                when = number + rng.choice((-10, 5, 100, 1_000)) * rng.random()
                entry = Event(labels, partition, said)
                heapq.heappush(ahead, (when, n + number, entry))
        # What is to come next is sent only once nothing can come before it.
        while ahead and ahead[0][0] < number - 10:
            yield heapq.heappop(ahead)[2]
    while ahead:
        yield heapq.heappop(ahead)[2]


def give_up(address: str, topic: str) -> None:
    """Send examples in a transaction, and give it up: nobody must learn them."""
    from confluent_kafka import Producer  # noqa: PLC0415 - an extra

    options = {"bootstrap.servers": address, "transactional.id": topic, "log_level": 3}
    producer = Producer(options)
    producer.init_transactions()
    producer.begin_transaction()
    value = codec().encode(Example({"given up": 1.0}, label=True, id=0))
    for partition in range(PARTITIONS):
        for _ in range(GIVEN_UP - 1):
            producer.produce(topic, value, partition=partition)
    producer.flush()
    producer.abort_transaction()


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
    """

    def __init__(  # noqa: PLR0917
        self,
        address: str,
        topic: str,
        n: int,
        seconds: float,
        seed: int,
        labels: str | None = None,
    ) -> None:
        super().__init__(daemon=True)
        self.topic, self.n, self.seconds, self.seed = topic, n, seconds, seed
        self.labels = labels
        self.address = address
        self.interval = _CALM
        self.sent = 0
        self.error: Exception | None = None

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
        from kafka import KafkaProducer  # noqa: PLC0415 - an extra

        patience = 600_000  # on a busy machine the broker may take minutes to come back
        producer = KafkaProducer(
            bootstrap_servers=self.address,
            acks="all",
            reconnect_backoff_max_ms=500,
            delivery_timeout_ms=patience,
            max_block_ms=patience,
        )
        futures = []
        due = time.monotonic()
        for event in self._events():
            due += self.interval
            wait = due - time.monotonic()
            if wait > 0.01:
                time.sleep(wait)
            headers = [("number", json.dumps(event.number).encode())]
            futures.append(
                producer.send(
                    event.topic, event.value, key=b"", partition=event.partition, headers=headers
                )
            )
            self.sent += 1
        producer.flush(timeout=300)
        if self.labels is not None:
            time.sleep(GRACE + 0.5)
            for partition in range(PARTITIONS):  # what is beyond the grace of the last labels
                value = codec().encode(Example({"last": 1.0}, id=-1 - partition))
                producer.send(self.topic, value, key=b"", partition=partition)
                self.sent += 1
        producer.flush(timeout=300)
        for future in futures:
            future.get(timeout=300)
        producer.close(timeout=5)

    def _events(self) -> Iterator[Event]:
        if self.labels is not None:
            yield from late(self.n, self.seed, self.topic, self.labels)
            return
        for number, partition, value in messages(self.n, self.seed):
            yield Event(self.topic, partition, value, number)
