"""Features between the two cursors of a learner whose labels come later."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from drift.consumers.join import FeatureMessage

if TYPE_CHECKING:
    from drift.consumers.join import JoinOptions
    from drift.consumers.records import Message

__all__ = ["Ahead"]


class Ahead:
    """Features that were predicted and not yet joined, without a gap, as far as there is room.

    Parameters
    ----------
    options
        How many there may be.

    Attributes
    ----------
    end : int
        Where they end: the offset from which on features have to be read again.

    Examples
    --------
    >>> from drift.consumers.join import JoinOptions
    >>> from drift.consumers.records import Message, Position
    >>> ahead = Ahead(JoinOptions(pending=1))
    >>> two = [Message(Position("orders", 0, i), None, b"{}", timestamp=9) for i in (0, 1)]
    >>> [ahead.keep(one, "a") for one in two]
    [True, False]
    >>> ahead.end, ahead.take()
    (1, FeatureMessage(offset=0, time=9, id='a', features='{}', size=2))
    """

    def __init__(self, options: JoinOptions) -> None:
        self.options = options
        self.end = 0
        self._entries: deque[FeatureMessage] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, message: Message, id: str | int | None) -> bool:  # noqa: A002
        """Have features wait for the learning cursor; say whether there is room."""
        size, options = len(message.value or b""), self.options
        if self._entries and (
            len(self) >= options.pending or self._bytes + size > options.pending_bytes
        ):
            return False
        entry = FeatureMessage(message.position.offset, message.time, id, None, 0)
        if id is not None:
            # As they came, which takes a tenth of the memory of what they are decoded to, and is
            # what a checkpoint can hold.
            text = (message.value or b"").decode("latin-1")
            headers = [[name, value and value.decode("latin-1")] for name, value in message.headers]
            entry = entry._replace(features=[text, headers] if headers else text, size=size)
        self._entries.append(entry)
        self._bytes += entry.size
        self.end = entry.offset + 1
        return True

    def take(self) -> FeatureMessage:
        """Take the next ones away."""
        entry = self._entries.popleft()
        self._bytes -= entry.size
        return entry
