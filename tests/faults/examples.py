"""The messages of a fault test: documents with a topic that shifts, and poison among them."""

from __future__ import annotations

import heapq
import json
import os
import random
from typing import TYPE_CHECKING, NamedTuple

from drift import streams
from drift.consumers.codec import Example
from drift.consumers.json_codec import JsonCodec
from drift.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["PARTITIONS", "POISON", "Event", "Numbered", "codec", "late", "messages"]

PARTITIONS = 3
_POISON_SHARE = 0.02
_UNLABELLED_SHARE = 0.01
_MAX_BYTES = 200_000
#: Labels of features that there are, and what none is.
_KNOWN_SHARE = 0.97
_LABEL_POISON = (b"{", b'{"label": true}', b'{"id": 1}', b'{"id": 1, "label": "maybe"}')
#: Keys of a partition, a few of which most messages have.
_KEYS = 40
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


#: That of messages with a key.
_KEYED_POISON = POISON | {"no key": b'{"features": {"a": 1.0}, "label": true}'}


class Numbered(NamedTuple):
    """A message and where it goes; its number stands in its headers."""

    number: int
    partition: int
    value: bytes | None


def codec(*, keyed: bool = False) -> JsonCodec:
    """Return what workers read messages with; some of the poison is what it refuses."""
    return JsonCodec(classes=[True, False], max_bytes=_MAX_BYTES, key="key" if keyed else None)


def messages(n: int, seed: int, *, keyed: bool = False) -> Iterator[Numbered]:
    """So many examples of RCV1, or of the newswire stream where DRIFT_DATA is not set.

    Those with a key are in the partition that all of the key are in.
    """
    rng, draw = random.Random(seed), random.Random(f"keys {seed}")
    poison = _KEYED_POISON if keyed else POISON
    documents, targets = streams.load("rcv1" if os.environ.get("DRIFT_DATA") else "newswire", n=n)
    has = [documents.has(target).tolist() for target in targets]
    encode = codec(keyed=keyed).encode
    features = documents.features()
    for number in range(n):
        row = number % len(documents)
        if row == 0:
            features = documents.features()
        named: dict[Hashable, float] = {str(k): value for k, value in next(features).items()}
        label = has[number // _ERA % len(has)][row]
        if rng.random() < _UNLABELLED_SHARE:
            label = None
        is_poison = rng.random() < _POISON_SHARE
        kind = rng.choice(list(poison)) if is_poison else ""
        partition = rng.randrange(PARTITIONS)
        key = f"{partition}-{int(_KEYS * draw.random() ** 3)}" if keyed else None
        value = poison[kind] if is_poison else encode(Example(named, label, number, key=key))
        yield Numbered(number, partition, value)


class Event(NamedTuple):
    """What is sent next of two logs: features, or a label; of a label no number is known."""

    topic: str
    partition: int
    value: bytes | None
    number: int | None = None


def late(n: int, seed: int, topic: str, labels: str) -> Iterator[Event]:
    """So many messages without labels, and those on a separate topic.

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
            output: bytes = json.dumps({"id": name, "label": label}).encode()
            if rng.random() < _POISON_SHARE:
                output = rng.choice(list(_LABEL_POISON))
            for _ in range(rng.choices((0, 1, 2), (1, 18, 1))[0]):
                when = number + rng.choice((-10, 5, 100, 1_000)) * rng.random()
                entry = Event(labels, partition, output)
                heapq.heappush(ahead, (when, n + number, entry))
        # What is to come next is sent only once nothing can come before it.
        while ahead and ahead[0][0] < number - 10:
            yield heapq.heappop(ahead)[2]
    while ahead:
        yield heapq.heappop(ahead)[2]
