"""Features and labels that wait for each other; see `drift.consumers.join`."""

from __future__ import annotations

from struct import pack, unpack
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from drift.consumers._json import plain
from drift.consumers.records import Message, Position

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from drift.consumers.records import Headers, TopicPartition
    from drift.types import Label

__all__ = ["Classes", "Early", "Id", "Waiting"]

#: What names an example: features and their label have the same.
Id: TypeAlias = str | int

#: Classes whose probabilities are kept: four bytes each, of every example that waits.
_MOST = 32


class Classes:
    """Probabilities as bytes, in the order in which their classes came; of the first 32.

    Parameters
    ----------
    labels
        The classes that have come.

    Examples
    --------
    >>> classes = Classes()
    >>> packed = classes.pack({True: 0.25, False: 0.75})
    >>> len(packed), classes.unpack(packed, True)
    (8, {True: 0.25, False: 0.75})
    """

    def __init__(self, labels: Iterable[Label] = ()) -> None:
        self.labels = list(labels)
        self._known = {*self.labels}

    def pack(self, chances: Mapping[Label, float] | None) -> bytes:
        """Return the bytes of probabilities; none where there are none."""
        if not chances:
            return b""
        labels, known = self.labels, self._known
        if len(labels) < _MOST and not chances.keys() <= known:
            labels += [plain(label) for label in chances if label not in known][
                : _MOST - len(labels)
            ]
            known.update(labels)
        return pack(f"<{len(labels)}f", *[chances.get(label, 0.0) for label in labels])

    def unpack(self, packed: bytes, label: Label) -> dict[Label, float] | None:
        """Return the probabilities, None where there were none.

        A label of no such class gets the rest.
        """
        if not any(packed):
            return None
        chances = dict(zip(self.labels, unpack(f"<{len(packed) // 4}f", packed), strict=False))
        if label not in chances:
            chances[label] = max(0.0, 1.0 - sum(chances.values()))
        return chances


class Waiting(NamedTuple):
    """Features that wait for their label.

    `time` is that of their partition, in milliseconds; `predicted` what was sent, `chances` the
    probabilities, as the join's `classes` has packed them, `shadowed` what a shadow predicted.
    `value`, `headers`, `key` and `timestamp` are as they came, which takes a tenth of the memory of
    what they are decoded to; `size` is its bytes.
    """

    place: TopicPartition
    offset: int
    time: int
    predicted: Label
    size: int
    value: bytes
    headers: Headers = ()
    chances: bytes = b""
    shadowed: Label = None
    key: bytes | None = None
    timestamp: int | None = None

    @property
    def message(self) -> Message:
        """The message of the features."""
        at = Position(*self.place, self.offset)
        return Message(at, self.key, self.value, self.headers, self.timestamp)


class Early(NamedTuple):
    """A label before its features; `time` is that of its partition."""

    message: Message
    label: Label
    weight: float | None
    time: int

    @property
    def size(self) -> int:
        """Bytes of its message, which waits as a whole."""
        return self.message.whole_size
