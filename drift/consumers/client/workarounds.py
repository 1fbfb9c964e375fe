"""What kafka-python (up to 3.0.12) does wrong for a reader of months, mended in a consumer of it.

- A message with a header whose name is no UTF-8, which Kafka allows, is a corrupt one to it, and
  ends all reading.
- A topic that was deleted it has the broker make anew, with one partition: it asks for metadata as
  if ``allow_auto_create_topics`` had not been set.
- After a fetch that brings nothing it forgets the leader epoch of the last message, by which it can
  tell that the log was truncated before its position.
"""

from __future__ import annotations

from typing import Any

from drift.consumers.records import RawName
from drift.errors import MissingExtraError

try:
    from kafka.consumer.fetcher import Fetcher
    from kafka.record.default_records import DefaultRecordBatch
except ImportError:
    raise MissingExtraError("kafka-python", "kafka") from None

__all__ = ["mend"]


def mend(consumer: Any) -> None:
    """Mend a consumer that has not read anything."""
    consumer._cluster.config["allow_auto_create_topics"] = False  # noqa: SLF001
    subscription = consumer._subscription  # noqa: SLF001

    class PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
        def __init__(self, offset: int, place: Any, records: Any, **options: Any) -> None:
            super().__init__(offset, place, _Batches(records), **options)
            self.leader_epoch = subscription.position(place).leader_epoch

    consumer._fetcher.PartitionRecords = PartitionRecords  # noqa: SLF001


class _Batches:
    def __init__(self, records: Any) -> None:
        self.records = records

    def next_batch(self) -> Any:
        batch = self.records.next_batch()
        if isinstance(batch, DefaultRecordBatch):  # older ones have no headers
            batch.__class__ = _Batch
        return batch


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    __slots__ = ()

    def _read_msg(self) -> Any:
        try:
            return super()._read_msg()
        except UnicodeDecodeError:
            # Slower to read, so only from the first such name on; nothing was taken yet.
            self._buffer = _Buffer(self._buffer)  # type: ignore[has-type, misc]
            return super()._read_msg()


class _Buffer(bytearray):
    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return _Buffer(found) if isinstance(at, slice) else found

    def decode(self, *_: Any) -> str:
        try:
            return super().decode()
        except UnicodeDecodeError:
            return RawName(bytes(self))
