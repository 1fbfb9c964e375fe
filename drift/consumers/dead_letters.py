"""Dead letters: messages that could not be learnt, whole, with the reason.

A dead letter is the message's own key, value and headers, and after these, in this order:

====================== =============================================================
header                 what it holds, as text
====================== =============================================================
``drift.error``        the error, one line of at most 300 characters
``drift.error.class``  the class of the error, as ``MessageError``
``drift.topic``        the message's topic,
``drift.partition``    partition
``drift.offset``       and offset
``drift.timestamp``    Kafka's timestamp of the message, in milliseconds since 1970, or empty
``drift.time``         when it was given up: ISO 8601 with microseconds, in UTC
``drift.cut``          only where the value could not be read, or the topic did not take it, as
                       a whole: its size in bytes; what stands there is the beginning
``drift.null``         only where key and value were null: ``1``, and the value is empty, as
                       clients of Kafka do not send what has neither
====================== =============================================================

The topic of the dead letters must not be compacted: letters that share a key would replace each
other, and a tombstone's letter would delete them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from drift.consumers.records import CutValue, Message, Outgoing, Position
from drift.errors import (
    ConsumerError,
    FencedError,
    MessageError,
    MissingExtraError,
    UnavailableError,
    one_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NO_FAULT_OF_IT", "caught", "dead_letter", "error_of", "original", "shortened", "text"]

#: Errors that no message is given up for.
NO_FAULT_OF_IT = MemoryError, ConsumerError, FencedError, MissingExtraError, UnavailableError

_NAMES = ("error", "error.class", "topic", "partition", "offset", "timestamp", "time")
_HEADERS = tuple(f"drift.{name}" for name in _NAMES)
_CUT = "drift.cut"
_NULL = "drift.null"


def caught(step: Callable[..., Any], *given: Any) -> tuple[Any, Exception | None]:
    """Return what a step gives, or why its message cannot be learnt, whatever error that is.

    Errors that are no message's fault are raised: it is not given up because of them.
    """
    try:
        return step(*given), None
    except NO_FAULT_OF_IT:
        raise
    except Exception as error:  # noqa: BLE001 - codecs and models of the user's may raise anything
        return None, error


def dead_letter(
    message: Message,
    error: Exception,
    topic: str,
    *,
    time: datetime | None = None,
) -> Outgoing:
    """Return the dead letter of a message.

    Parameters
    ----------
    message
        As it came.
    error
        Why it cannot be learnt.
    topic
        The topic of the dead letters.
    time
        When it was given up, with its time zone; None for now.

    Examples
    --------
    >>> from drift.errors import MessageError
    >>> message = Message(Position("news", 2, 7), key=b"k", value=b"{", headers=[("trace", b"1")])
    >>> letter = dead_letter(message, MessageError("value", "is no JSON: fix it"), "news.dead")
    >>> letter.topic, letter.key, letter.value
    ('news.dead', b'k', b'{')
    >>> letter.headers[:3]
    [('trace', b'1'), ('drift.error', b'value is no JSON: fix it'),
     ('drift.error.class', b'MessageError')]
    """
    at = (datetime.now(UTC) if time is None else time).astimezone(UTC)
    facts = (
        one_line(str(error)),
        type(error).__name__,
        *message.position,
        "" if message.timestamp is None else message.timestamp,
        at.isoformat(timespec="microseconds"),
    )
    headers = [*message.headers]
    headers += [(name, _bytes(fact)) for name, fact in zip(_HEADERS, facts, strict=True)]
    value = message.value
    if value is None and message.key is None:
        headers.append((_NULL, b"1"))
        value = b""
    if isinstance(value, CutValue):
        headers.append((_CUT, _bytes(value.size)))
    return Outgoing(topic, message.key, value, headers, message.position.partition)


def shortened(letter: Outgoing) -> Outgoing | None:
    """Return a dead letter with half of its value, for a broker that refuses it as too large.

    When the value is gone, the message's key and headers go, too. None if it is no dead letter, or
    cannot be shortened.

    Examples
    --------
    >>> message = Message(Position("news", 2, 7), None, b"long")
    >>> letter = dead_letter(message, ValueError("no"), "news.dead")
    >>> shorter = shortened(letter)
    >>> shorter.value, shorter.headers[-1]
    (b'lo', ('drift.cut', b'4'))
    """
    headers = list(letter.headers)
    cut: tuple[str, bytes | None] = (_CUT, _bytes(len(letter.value or b"")))
    while headers and headers[-1][0] in {_CUT, _NULL}:
        name, size = headers.pop()
        cut = (_CUT, size) if name == _CUT else cut
    facts = headers[-len(_HEADERS) :]
    if tuple(name for name, _ in facts) != _HEADERS:
        return None
    if letter.value:
        half = letter.value[: len(letter.value) // 2]
        return letter._replace(value=half, headers=[*headers, cut])
    if letter.key is None and headers == facts:
        return None
    return letter._replace(key=None, value=b"", headers=[*facts, cut])


def original(letter: Message | Outgoing) -> Message:
    """Return the message of a dead letter, to be sent to its topic again.

    It gets a new offset and is learnt there: send it once, after the fix, as
    `drift.consumers.replay` does.

    Parameters
    ----------
    letter
        The record as it was read back, or as `dead_letter` made it.

    Raises
    ------
    MessageError
        If the record is no dead letter, or one whose value was cut off.

    Examples
    --------
    >>> message = Message(Position("news", 2, 7), None, b"{", [("trace", b"1")], 1_700_000_000_000)
    >>> original(dead_letter(message, ValueError("no"), "news.dead")) == message
    True
    """
    headers = list(letter.headers)
    if headers and headers[-1][0] == _CUT:
        size = text(headers[-1][1])
        raise MessageError("value", f"was cut off, it had {size} bytes: send it from its source")
    value = letter.value
    if headers and headers[-1][0] == _NULL:
        headers.pop()
        value = None
    split = len(headers) - len(_HEADERS)
    if split < 0 or tuple(name for name, _ in headers[split:]) != _HEADERS:
        raise MessageError("headers", f"are no dead letter's: they must end with {_HEADERS[0]} ...")
    facts = dict(headers[split:])
    topic, partition, offset, stamp = (text(facts[name]) for name in _HEADERS[2:6])
    try:
        position = Position(topic, int(partition), int(offset))
        timestamp = int(stamp) if stamp else None
    except ValueError:
        raise MessageError("headers", "hold no partition, offset or timestamp of drift's") from None
    return Message(position, letter.key, value, headers[:split], timestamp)


def error_of(letter: Message) -> str:
    """Return why the message of a dead letter was given up; nothing of another record."""
    return text(dict(letter.headers).get(_HEADERS[0]))


def _bytes(fact: str | int) -> bytes:
    return str(fact).encode()


def text(value: bytes | None) -> str:
    """Return the text of one of drift's headers."""
    return (value or b"").decode(errors="replace")
