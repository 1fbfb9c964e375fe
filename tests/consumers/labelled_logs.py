"""Labelled messages of two partitions, some of them poison, and a plain loop that learns them."""

from functools import cache

from drift.consumers.codec import Example
from drift.consumers.json_codec import JsonCodec
from drift.consumers.records import Message, Position
from drift.errors import MessageError
from drift.models import LBP
from drift.models._state.codec import encode

POISON = {7: b"{", 40: b'{"features": {"a": "Rome"}}', 41: None, 90: b'{"features": 1}'}


def values(n=200, seed=0):
    """Messages of a target that shifts, four of them poison."""
    codec = JsonCodec()
    for t in range(n):
        features = {f"w{(7 * t + k * k + seed) % 23}": 1.0 + k for k in range(5)}
        label = (sum(map(len, features)) + t // 100) % 2 == 0
        yield POISON.get(t, codec.encode(Example(features, label)))


def log(partition, count=200):
    """The messages of a partition, whose times stand still and fall back.

    Those of others are between them in time.
    """

    def time(n):
        return 4000 * (n // 4) + 300 * partition - 7000 * (n % 11 == 5)

    return [
        Message(Position("t", partition, n), None, value, (), 10_000 + time(n))
        for n, value in enumerate(values(count, seed=partition))
    ]


LOGS = {("t", partition): log(partition) for partition in range(2)}


@cache
def loop(messages):
    """What a plain loop over messages learns, and what it predicts of each."""
    model, codec, predictions = LBP(budget=9), JsonCodec(), {}
    for message in messages:
        try:
            example = codec.decode(message.value)
        except MessageError:
            continue
        predictions[str(message.position)] = model.predict_one(example.features)
        model.learn_one(example.features, example.label)
    return encode(model), predictions


class Latin(str):
    """The name of a header, sent in Latin-1."""

    __slots__ = ()

    def encode(self, *_):
        return super().encode("latin-1")
