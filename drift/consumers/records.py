"""Kafka's records as drift sees them: plain tuples, so that all but one module know no client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self, TypeAlias

__all__ = ["PROTOCOLS", "CutValue", "Headers", "Message", "Outgoing", "Position", "RawName"]

#: Values of ``security_protocol``: kafka-python takes whatever it does not know for PLAINTEXT.
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

#: Headers of a record, in order; a name may come more than once. Kafka allows null for a value.
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]


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
    """The beginning of a value that is too large to be read, of so many bytes as `size` says.

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
    """Where a message stands in Kafka; its text is the key of the prediction.

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


class Outgoing(NamedTuple):
    """A record to be sent to Kafka; `lane`, modulo the topic's partitions, is its partition."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]
    lane: int = 0
