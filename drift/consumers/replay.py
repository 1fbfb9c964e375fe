"""Dead letters back to their topic, each once.

A message that is sent to its topic again has its key, value and headers, and then
``drift.replayed``: where it stood before, as ``topic:partition:offset``; and
``drift.replayed.timestamp``, its timestamp then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.consumers.dead_letters import error_of, original, text
from drift.consumers.records import Message, Outgoing, Position
from drift.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from drift.consumers.client.topics import Reader

__all__ = ["Replay", "sent_first"]

_REPLAYED = "drift.replayed"
_TIMESTAMP = "drift.replayed.timestamp"


def sent_first(message: Message) -> int:
    """Return the timestamp of a message, for one that was replayed that of its first sending.

    >>> position = Position("news", 2, 9)
    >>> sent_first(Message(position, None, b"{}", [("drift.replayed.timestamp", b"5")], 7))
    5
    """
    for name, value in message.headers:
        if name == _TIMESTAMP and (value or b"").isdigit():
            return int(value or b"")
    return message.time


class Replay:
    """The dead letters whose messages are to be sent to their topic again, as of now.

    Duplicate letters count once. A message that the topic holds of an earlier replay, as its header
    ``drift.replayed`` shows, is not sent again: an interrupted replay resumes, and one that
    is run twice sends nothing. Of two at the same time each would send all. What cannot be sent is
    left out: values that were cut off, and tombstones without a key.

    Parameters
    ----------
    letters
        The topic of the dead letters.
    topic
        The topic that they come from, and are sent to; letters of other topics are skipped.
    error
        Take those letters only whose error holds this text.
    warn
        Called with a line for each letter that is left out.

    Attributes
    ----------
    before : int
        Messages that the topic holds of an earlier replay.
    twice : int
        Duplicate letters: those beyond the first of a message.
    others : int
        Letters of other topics.

    Examples
    --------
    ::

        with Reader("news.dead", kafka) as letters, Reader("news", kafka) as topic:
            with Producer(kafka) as producer:
                for letter, outgoing in Replay(letters, topic):
                    producer.send(outgoing)
                producer.flush()
    """

    def __init__(
        self,
        letters: Reader,
        topic: Reader,
        *,
        error: str = "",
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.letters = letters
        self.topic = topic
        self.error = error
        self.warn = warn
        self.before = self.twice = self.others = 0

    def __iter__(self) -> Iterator[tuple[Message, Outgoing]]:
        """Yield each letter with what is to be sent, to its own partition."""
        ends = self.letters.ends()
        # Twice over the letters, so that their values need not be held.
        sent = self._sent([message.position for _, message in self._messages(ends, self.warn)])
        self.before = self.twice = self.others = 0
        for letter, message in self._messages(ends):
            if str(message.position) in sent:
                self.before += 1
                continue
            headers = [*message.headers, (_REPLAYED, str(message.position).encode())]
            if message.timestamp is not None:
                headers.append((_TIMESTAMP, b"%d" % sent_first(message)))
            topic, partition, _ = message.position
            yield letter, Outgoing(topic, message.key, message.value, headers, partition)

    def _messages(
        self, ends: Mapping[int, int], warn: Callable[[str], None] = lambda _: None
    ) -> Iterator[tuple[Message, Message]]:
        """Yield the letters with their messages, each message once."""
        seen = set()
        for letter in self.letters.read(ends):
            if self.error not in error_of(letter):
                continue
            try:
                message = self._sendable(original(letter))
            except MessageError as problem:
                warn(f"{letter.position} is left out: {problem}")
                continue
            if message.position.topic != self.topic.topic:
                self.others += 1
            elif message.position in seen:
                self.twice += 1
            else:
                seen.add(message.position)
                yield letter, message

    def _sendable(self, message: Message) -> Message:
        if message.key is None and message.value is None:
            raise MessageError("value", "is null, and so is the key: no client sends that")
        topic, partition, _ = message.position
        if topic == self.topic.topic and partition not in self.topic.partitions:
            raise MessageError("partition", f"{partition} of {topic} is gone: send it yourself")
        return message

    def _sent(self, wanted: list[Position]) -> set[str]:
        """Return which of these messages the topic holds of an earlier replay."""
        ends, beginnings = self.topic.ends(), dict[int, int]()
        for _, partition, offset in wanted:
            # A replayed message comes after its original, unless the topic was recreated.
            first = offset + 1 if offset < ends[partition] else 0
            beginnings[partition] = min(first, beginnings.get(partition, first))
        ends = {number: ends[number] for number in beginnings}
        return {
            text(value)
            for message in self.topic.read(ends, beginnings)
            for name, value in message.headers
            if name == _REPLAYED
        }
