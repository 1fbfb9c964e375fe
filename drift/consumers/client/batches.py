"""Records for kafka-python's producer, a batch at a time.

`KafkaProducer.send` checks each record, writes it byte by byte and gives it a future: some 15 us of
Python. Here a record is joined from its parts, and a batch has one future. Lingering, compression,
sending, retries and the split of a batch that is too large for the broker stay kafka-python's.

This needs private names of kafka-python; tests/consumers/test_batches.py fails if one changes.

===================  ===========================================================================
of                   what
===================  ===========================================================================
`KafkaProducer`      ``_accumulator``, ``_sender.wakeup``
`RecordAccumulator`  ``_batches``, ``_tp_lock``, ``_incomplete.add``, and its ``config``
`ProducerBatch`      ``records``, ``produce_future``, ``max_record_size``, and its
                     ``_record_futures``, which are needed where a batch is split
the batch's records  ``_closed`` and ``_next_offset`` of `MemoryRecordsBuilder`; ``_buffer``,
                     ``_first_timestamp``, ``_max_timestamp``, ``_last_offset`` and
                     ``_num_records`` of `DefaultRecordBatchBuilder`
===================  ===========================================================================
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import kafka
from kafka.errors import MessageSizeTooLargeError
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.record.util import encode_varint

if TYPE_CHECKING:
    from drift.consumers.records import Headers, TopicPartition

__all__ = ["Batch", "Batches"]

#: The record format of Kafka 0.11 and later, the first one that has headers.
_MAGIC = 2
_HEADER: int = DefaultRecordBatchBuilder.header_size_in_bytes()
#: Bytes of the longest length before a record.
_LENGTH = 5


class _Varints(dict[int, bytes]):
    """Encoded numbers; the first 16,384 are cached, as encoding is slower."""

    def __missing__(self, number: int) -> bytes:
        written = bytearray()
        encode_varint(number, written.append)
        if len(self) < 1 << 14:
            self[number] = bytes(written)
        return bytes(written)


_varints = _Varints()
_NULL, _NONE = _varints[-1], _varints[0]


def _written(headers: Headers) -> bytes:
    parts = [_varints[len(headers)]]
    for name, content in headers:
        raw = name.encode()
        size = _NULL if content is None else _varints[len(content)]
        parts += _varints[len(raw)], raw, size, content or b""
    return b"".join(parts)


class Batch(ProducerBatch):  # type: ignore[misc]
    """A batch whose records share one future.

    Attributes
    ----------
    futures : list
        The broker's answer: one, or one for each record if the batch was split.
    max_record_size : int
        Bytes of the largest record.
    """

    max_record_size: int

    def __init__(self, place: kafka.TopicPartition, records: MemoryRecordsBuilder) -> None:
        self.futures: list[Any] = []
        super().__init__(place, records)
        self.futures.append(self._future(0))

    def _future(self, number: int) -> Any:
        return FutureRecordMetadata(self.produce_future, number, None, None, -1, -1, -1)

    @property
    def _record_futures(self) -> list[Any]:
        """Futures of all records: parts of a split batch are answered separately."""
        have = len(self.futures)
        self.futures += [self._future(number) for number in range(have, self.record_count)]
        return self.futures

    @_record_futures.setter
    def _record_futures(self, _: list[Any]) -> None:
        """Ignore the list that kafka-python starts with."""

    def add(self, key: bytes | None, value: bytes | None, headers: Headers, largest: int) -> bool:
        """Append a record; False if the batch is full or sent.

        Raises
        ------
        MessageSizeTooLargeError
            If a batch of this record alone has more bytes than `largest`.
        """
        records = self.records
        if records._closed:  # noqa: SLF001
            return False
        builder, number, now = records._builder, records._next_offset, time.time_ns() // 1_000_000  # noqa: SLF001
        if number == 0:
            builder._first_timestamp = builder._max_timestamp = now  # noqa: SLF001
        record = b"".join(
            (
                b"\0",  # attributes
                _varints[now - builder._first_timestamp],  # noqa: SLF001
                _varints[number],
                _NULL if key is None else _varints[len(key)],
                key or b"",
                _NULL if value is None else _varints[len(value)],
                value or b"",
                _written(headers) if headers else _NONE,
            )
        )
        if (size := _HEADER + _LENGTH + len(record)) > largest:
            raise MessageSizeTooLargeError(
                f"{size} bytes are more than max_request_size = {largest}"
            )
        buffer = builder._buffer  # noqa: SLF001
        if number and len(buffer) + _LENGTH + len(record) > builder._batch_size:  # noqa: SLF001
            return False
        buffer += _varints[len(record)]
        buffer += record
        builder._max_timestamp = max(now, builder._max_timestamp)  # noqa: SLF001
        builder._last_offset = number  # noqa: SLF001
        builder._num_records = records._next_offset = number + 1  # noqa: SLF001
        self.max_record_size = max(self.max_record_size, len(record))
        return True


class Batches:
    """The open batches of a producer, one per partition.

    Parameters
    ----------
    producer
        A `KafkaProducer`.
    """

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self._accumulator = producer._accumulator  # noqa: SLF001
        self._largest: int = producer.config["max_request_size"]
        self._open: dict[TopicPartition, tuple[Any, Batch]] = {}

    def add(
        self,
        place: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> Batch | None:
        """Append a record to its partition's batch; return the batch if it is new.

        Raises
        ------
        KafkaTimeoutError
            If the broker does not send the partitions.
        MessageSizeTooLargeError
            If the record is larger than ``max_request_size``.
        ValueError
            If there is no such partition.
        """
        if place in self._open:
            lock, batch = self._open[place]
            with lock:  # or the sender might close it meanwhile
                if batch.add(key, value, headers, self._largest):
                    return None
        topic, partition = place
        if partition not in self._producer.partitions_for(topic):
            raise ValueError(f"{topic} has no partition {partition}")
        config, where = self._accumulator.config, kafka.TopicPartition(topic, partition)
        batch = Batch(
            where, MemoryRecordsBuilder(_MAGIC, config["compression_attrs"], config["batch_size"])
        )
        batch.add(key, value, headers, self._largest)
        lock = self._accumulator._tp_lock(where)  # noqa: SLF001
        with lock:
            self._accumulator._batches[where].append(batch)  # noqa: SLF001
            self._accumulator._incomplete.add(batch)  # noqa: SLF001
        self._open[place] = lock, batch
        self._producer._sender.wakeup()  # so that it looks when this one is due  # noqa: SLF001
        return batch

    def forget(self) -> None:
        """Close all batches to more records."""
        self._open.clear()
