"""Names of headers that are no UTF-8, which Kafka allows: one of them must not stop a reader.

kafka-python takes the whole message for a corrupt one, and can read nothing behind it.
"""

from __future__ import annotations

from typing import Any

from drift.consumers._records import RawName
from drift.errors import MissingExtraError

try:
    from kafka.consumer.fetcher import Fetcher
    from kafka.record.default_records import DefaultRecordBatch
except ImportError:
    raise MissingExtraError("kafka-python", "kafka") from None

__all__ = ["take_any_header"]


def take_any_header(consumer: Any) -> None:
    """Have a consumer of kafka-python read names of headers that are no UTF-8 as `RawName`."""
    consumer._fetcher.PartitionRecords = _PartitionRecords  # noqa: SLF001


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    def _unpack_records(self, place: Any, records: Any, *deserializers: Any) -> Any:
        return super()._unpack_records(place, _Batches(records), *deserializers)


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
