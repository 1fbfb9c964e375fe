"""Kafka's records as drift sees them: plain tuples, so that all but one module know no client."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

from drift.errors import ParameterError

__all__ = [
    "PROTOCOLS",
    "ClaimId",
    "CutValue",
    "Gap",
    "Headers",
    "Logs",
    "Message",
    "Outgoing",
    "Position",
    "RawName",
    "Source",
    "TopicPartition",
    "check_topic",
    "headers_as_json",
    "headers_from_json",
    "message_as_json",
    "message_from_json",
    "written_offsets",
]

#: Values of ``security_protocol``: kafka-python takes whatever it does not know for PLAINTEXT.
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

#: Names that brokers take for topics, but "." and "..".
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")

#: A partition: topic and number.
TopicPartition: TypeAlias = tuple[str, int]
#: Headers of a record, in order; a name may come more than once. Kafka allows null for a value.
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]


def check_topic(name: str) -> None:
    """Refuse what no broker takes for the name of a topic.

    Examples
    --------
    >>> check_topic("orders/2026")
    Traceback (most recent call last):
    drift.errors.ParameterError: 'orders/2026' is no name of a topic, which has up to 249 letters...
    """
    if not _TOPIC.fullmatch(name) or name in {".", ".."}:
        raise ParameterError(
            f"{name!r:.80} is no name of a topic, which has up to 249 letters, digits, dots, '_' "
            "and '-' of ASCII: correct it"
        )


class ClaimId(NamedTuple):
    """Which model is claimed: a topic's, or that of one partition of it.

    Examples
    --------
    >>> print(ClaimId("orders", None), ClaimId("orders", 3))
    orders orders:3
    """

    topic: str
    partition: int | None

    def __str__(self) -> str:
        """Return it as the log has it."""
        return self.topic if self.partition is None else f"{self.topic}:{self.partition}"


def written_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """Return the next offset of each partition, as logs and commands print it.

    Examples
    --------
    >>> written_offsets({("orders", 0): 148, ("orders", 1): 152})
    'orders:0 at 148, orders:1 at 152'
    """
    return ", ".join(f"{topic}:{number} at {at}" for (topic, number), at in offsets.items())


class Gap(Exception):  # noqa: N818 - the worker decides whether it is an error
    """The broker lacks the next offsets of partitions, or has other messages there.

    Parameters
    ----------
    offsets
        Offset by topic and partition.
    """

    def __init__(self, offsets: dict[Any, int]) -> None:
        super().__init__(offsets)
        self.offsets = {tuple(place): offset for place, offset in offsets.items()}


class Logs(Protocol):
    """What may be asked of logs: `drift.consumers.client.consumer.LogConsumer`."""

    def reread(self, place: TopicPartition, offset: int) -> tuple[list[Message], int]:
        """Read a fetch from an offset before the position; return it and its end."""

    def bound(self, place: TopicPartition, start: str) -> int:
        """First offset of a partition ("earliest"), or its end ("latest")."""


class Source(Logs, Protocol):
    """What may be asked of logs and the group that reads them."""

    def committed(self, place: TopicPartition) -> int | None:
        """Offset that the group has committed, None without."""


class RawName(str):
    r"""The name of a header that is no UTF-8: it reads as escapes and is sent as the bytes it was.

    Examples
    --------
    >>> name = RawName(b"caf\xe9")
    >>> print(name, name.encode())
    caf\xe9 b'caf\xe9'
    """

    __slots__ = ("raw",)
    raw: bytes

    def __new__(cls, raw: bytes) -> Self:
        """Make the text."""
        self = super().__new__(cls, raw.decode(errors="backslashreplace"))
        self.raw = raw
        return self

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """Return the bytes that it was, in no encoding."""
        return self.raw


class CutValue(bytes):
    """The first bytes of a value that is too large to be read; `size` is all of it.

    Examples
    --------
    >>> value = CutValue(b"{", size=3_000_000_000)
    >>> value, value.size
    (b'{', 3000000000)
    """

    size: int

    def __new__(cls, beginning: bytes | bytearray, size: int) -> Self:
        """Make it."""
        self = super().__new__(cls, beginning)
        self.size = size
        return self


class Position(NamedTuple):
    """Topic, partition and offset of a message; its text is the key of the prediction.

    Examples
    --------
    >>> str(Position("news", 2, 7_001))
    'news:2:7001'
    """

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"


class Message(NamedTuple):
    """A record as it came from Kafka.

    `timestamp` is Kafka's, in milliseconds since 1970; `leader_epoch` that of whoever led the
    partition when it was written, by which a log is told from one that was truncated and filled
    again; -1 where it is not known. `appended` says that the timestamp is the broker's, of when it
    appended the record, and not the producer's.
    """

    position: Position
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    leader_epoch: int = -1
    appended: bool = False

    @property
    def time(self) -> int:
        """Its timestamp for a join; -1 where it has none."""
        return -1 if self.timestamp is None else self.timestamp

    @property
    def size(self) -> int:
        """Bytes of its value and its headers."""
        size = len(self.value or b"")
        if self.headers:
            size += sum(len(name) + len(value or b"") for name, value in self.headers)
        return size

    @property
    def whole_size(self) -> int:
        """The same with its key."""
        return self.size + len(self.key or b"")


def headers_as_json(headers: Headers) -> list[list[str | None]]:
    r"""Return headers in JSON's own types, for a checkpoint.

    >>> headers_as_json([("a", b"\xff"), ("b", None)])
    [['a', '\xff'], ['b', None]]
    >>> headers_from_json(_)
    [('a', b'\xff'), ('b', None)]
    """
    return [[name, None if v is None else v.decode("latin-1")] for name, v in headers]


def headers_from_json(stored: Iterable[Any]) -> Headers:
    """Return the headers from `headers_as_json`."""
    return [(name, None if v is None else v.encode("latin-1")) for name, v in stored] or ()


def message_as_json(message: Message) -> list[Any]:
    r"""Return a message in JSON's own types, for a checkpoint.

    >>> message = Message(Position("news", 2, 7), None, b"\xff", [("a", b"")], 5)
    >>> message_from_json(message_as_json(message)) == message
    True
    """
    key, value = (
        None if part is None else part.decode("latin-1") for part in (message.key, message.value)
    )
    return [[*message.position], key, value, headers_as_json(message.headers), *message[4:]]


def message_from_json(stored: Sequence[Any]) -> Message:
    """Return the message from `message_as_json`."""
    position, key, value, headers, *rest = stored
    key, value = (None if part is None else part.encode("latin-1") for part in (key, value))
    return Message(Position(*position), key, value, headers_from_json(headers), *rest)


class Outgoing(NamedTuple):
    """A record to be sent to Kafka, to `partition` modulo the number of the topic's partitions."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int = 0
