"""Faults of kafka-python that a client running for months meets, each with its workaround.

All were last seen in 3.0.12. Each has a test in ``tests/consumers/test_workarounds.py``, some in
``test_real_kafka.py``, that fails once kafka-python is fixed: then remove the workaround.

================  ==================================================================================
workaround        fault in kafka-python
================  ==================================================================================
`patch`           A header name that is not UTF-8, which Kafka allows, counts as a corrupt message
                  and stops all reading.
`patch`           A compressed batch is decompressed whole, however large it becomes.
`patch`           Metadata requests ignore ``allow_auto_create_topics``, so the broker recreates a
                  deleted topic, with one partition.
`patch`           Each record parses its batch's header again and is copied twice, before drift
                  makes a message of it: 5.7 us instead of 2.4, of 14 that a message takes.
`patch`           After an empty fetch it forgets the leader epoch of the last message, by which it
                  can detect a truncated log.
`patch`           A poll that waits for its fetch does not send the next one: the broker is idle
                  while a worker learns. And it sleeps ``retry_backoff_ms`` if the answer arrives
                  just before it would wait.
`patch`           A join that completes between two polls is discarded and repeated, for which the
                  whole group has to rebalance again.
`patch`           A poll cannot be ended, as by Java's ``wakeup``: a stop waits for it, and so do
                  partitions that it brings, until the worker knows where to start.
`patch`           The time of a partition's last fetch is not exposed, so nothing shows how stale
                  its end offset is; nor is the end of what is committed, where an open transaction
                  begins.
`CONSUMER`        It sleeps as long if nothing can be fetched, as before the first assignment. A
                  poll of 0 ms would not sleep, but if it ends during a rebalance it may lose the
                  assignment.
`join_again`      A leader whose poll ends while it handles new metadata believes that it has
                  joined, ignores its assignment and sends no more heartbeats.
`join_again`      A member whose ``group_instance_id`` another one has taken logs the failed
                  heartbeat, and continues as if it were still a member.
`seek`            Parked records of a resumed partition are found only if no other partition was
                  fetched in between. And the public seek takes no leader epoch.
`partitions`      It waits for the metadata of an unknown topic for as long as a frozen broker takes
                  to be given up, 30 s, and a stop waits with it.
`SPLIT`           A flush does not wait for the parts of a batch that was split for its size.
`make_no_topics`  As for consumers: a deleted topic is recreated.
`not_logged`      It logs an error if a topic is missing, also when the broker creates it then.
`RECONNECT`       After an outage of minutes it waits for up to 30 s before it tries to connect.
`force_close`     If a batch of an idempotent producer expires on its second try, others are lost
                  silently, each flush waits for them, and nothing more is sent to their partitions.
`force_close`     A producer that could not be closed flushes again when deleted, and raises.
================  ==================================================================================
"""

from __future__ import annotations

import gzip
import io
import logging
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO

import kafka
from kafka import codec
from kafka.consumer.fetcher import Fetcher
from kafka.errors import FencedInstanceIdError, UnknownError
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch
from kafka.record.util import decode_varint
from kafka.structs import OffsetAndMetadata

from drift.consumers.records import CutValue, Message, Position, RawName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from drift.consumers.records import TopicPartition

__all__ = [
    "CONSUMER",
    "LARGEST",
    "RECONNECT",
    "SPLIT",
    "force_close",
    "join_again",
    "make_no_topics",
    "not_logged",
    "partitions",
    "patch",
    "seek",
]

CONSUMER = {"retry_backoff_ms": 20, "max_partition_fetch_bytes": 4 << 20, "fetch_max_wait_ms": 100}
RECONNECT = {"reconnect_backoff_max_ms": 5_000}
SPLIT = UnknownError

_CLUSTER, _NOT_FOUND = logging.getLogger("kafka.cluster"), "Topic %s not found in cluster metadata"

#: Bytes of the largest record that is read out of a compressed batch, by default.
LARGEST = 64 << 20
#: Bytes that a batch may become as a whole; of a larger one the records are read one by one.
_WHOLE = 16 << 20
#: Bytes that are taken out of a stream at once, and that are kept of a value too large.
_CHUNK, _KEPT = 1 << 18, 1 << 10


# --- consumers ---------------------------------------------------------------------------------


@dataclass
class Fetches:
    """What fetches have told of each partition, and what they are told.

    Attributes
    ----------
    read : dict
        `time.monotonic` at the answer of the last one that has been read entirely.
    ends : dict
        The next offset after the last record that a consumer may have: under ``read_committed``
        that of the first open transaction.
    woken : bool
        Whether the poll that waits, else the next one, is to end without records. No lock, as a
        signal may come while one is held.
    """

    read: dict[Any, float] = field(default_factory=dict)
    ends: dict[Any, int] = field(default_factory=dict)
    woken: bool = False


def patch(consumer: Any, largest: int = LARGEST) -> Fetches:
    """Patch a consumer before its first read, so that it polls `Message`s.

    A record larger than `largest` becomes a `CutValue`.
    """
    consumer._cluster.config["allow_auto_create_topics"] = False  # noqa: SLF001
    subscription = consumer._subscription  # noqa: SLF001

    class PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
        def __init__(self, offset: int, place: Any, records: Any, **options: Any) -> None:
            super().__init__(offset, place, _Batches(records, largest), **options)
            self.leader_epoch = subscription.position(place).leader_epoch
            fetches.read[place] = answered.get(place, monotonic())

        def _maybe_skip_record(self, message: Message) -> bool:
            return message.position.offset < int(self.fetch_offset)

        def _unpack_records(self, place: Any, *given: Any) -> Iterator[Message]:
            topic, partition = place
            for record in super()._unpack_records(place, *given):
                if isinstance(record.checksum, _Batch):
                    self.records_read += record.checksum.records_count - 1
                    for message in record.checksum.messages(topic, partition, self.leader_epoch):
                        self.next_fetch_offset = message.position.offset + 1
                        yield message
                else:  # of a format before Kafka 0.11
                    appended = record.timestamp_type == 1
                    yield _message(record, topic, partition, record.leader_epoch, appended=appended)

    fetcher = consumer._fetcher  # noqa: SLF001
    fetcher.PartitionRecords = PartitionRecords
    answered, fetches = _note_answers(fetcher)
    _fetch_ahead(fetcher, fetches)
    if consumer._coordinator is not None:  # else it is of no group  # noqa: SLF001
        _patch_coordinator(consumer._coordinator)  # noqa: SLF001
    return fetches


def _fetch_ahead(fetcher: Any, fetches: Fetches) -> None:
    """Send the next fetch as records are returned, and end a poll that is woken."""
    fetch_records = fetcher.fetch_records

    def fetch_ahead(*given: Any, **options: Any) -> tuple[Any, bool]:
        if fetches.woken:
            fetches.woken = False
            return {None: []}, False  # a poll ends with whatever is not empty
        records, idle = fetch_records(*given, **options)
        if records and not fetcher._next_partition_records:  # noqa: SLF001
            fetcher.send_fetches()
        return records, idle and not fetcher._completed_fetches  # noqa: SLF001

    fetcher.fetch_records = fetch_ahead


def _note_answers(fetcher: Any) -> tuple[dict[Any, float], Fetches]:
    """Record when each partition's last fetch was answered, and what fetches tell."""
    handle = fetcher._handle_fetch_response  # noqa: SLF001
    is_committed = fetcher.config["isolation_level"] == "read_committed"
    answered: dict[Any, float] = {}
    fetches = Fetches()

    def handle_and_note(node: Any, offsets: Any, sent: float, response: Any) -> None:
        now = monotonic()
        brought = {
            kafka.TopicPartition(topic.topic, partition.partition_index): partition
            for topic in response.responses
            for partition in topic.partitions
        }
        for place, partition in brought.items():
            end = partition.last_stable_offset if is_committed else partition.high_watermark
            if not partition.error_code:
                fetches.ends[place] = end
        # Records are read by a later poll; partitions without records are read. A session that has
        # ended and a quota that is used up bring nothing either, and tell nothing.
        answered.update(dict.fromkeys(offsets, now))
        if not response.error_code and not response.throttle_time_ms:
            fetches.read.update(dict.fromkeys(offsets.keys() - brought.keys(), now))
        handle(node, offsets, sent, response)

    fetcher._handle_fetch_response = handle_and_note  # noqa: SLF001
    return answered, fetches


def _patch_coordinator(coordinator: Any) -> None:
    handle = coordinator._handle_heartbeat_response  # noqa: SLF001

    def handle_and_remember(response: Any, sent: float) -> None:
        try:
            handle(response, sent)
        except FencedInstanceIdError as error:
            coordinator.fenced = error
            raise

    coordinator._handle_heartbeat_response = handle_and_remember  # noqa: SLF001
    join, complete = coordinator._do_join_and_sync_async, coordinator._on_join_complete_async  # noqa: SLF001
    session = coordinator.config["session_timeout_ms"] / 1000
    joined: Any = None  # generation, time and assignment, until a poll takes it

    async def join_once() -> Any:
        nonlocal joined
        # Meanwhile the group has a member without a heartbeat, which returns with that poll.
        if joined and joined[0] == coordinator._generation and monotonic() < joined[1] + session:  # noqa: SLF001
            return joined[2]
        joined = None
        assigned = await join()
        joined = coordinator._generation, monotonic(), assigned  # noqa: SLF001
        return assigned

    async def take_assignment(*given: Any) -> None:
        nonlocal joined
        joined = None
        await complete(*given)

    coordinator._do_join_and_sync_async = join_once  # noqa: SLF001
    coordinator._on_join_complete_async = take_assignment  # noqa: SLF001


def join_again(consumer: Any) -> None:
    """Let a leader rejoin that wrongly believes it has joined; raise if a member is fenced."""
    coordinator = consumer._coordinator  # noqa: SLF001
    if hasattr(coordinator, "fenced"):
        raise coordinator.fenced
    if getattr(coordinator, "rejoining", False):
        coordinator.request_rejoin()


def seek(consumer: Any, place: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
    """Seek to an offset, after a message of that leader epoch; parked records are dropped."""
    partition = kafka.TopicPartition(*place)
    position = OffsetAndMetadata(offset, "", leader_epoch)
    consumer._subscription.seek(partition, position)  # noqa: SLF001
    parked = getattr(consumer._fetcher, "_paused_partition_records", {})  # noqa: SLF001
    parked.pop(partition, None)


def partitions(consumer: Any, topic: str, seconds: float) -> set[int]:
    """Return the partitions of a topic; KafkaTimeoutError if no broker answers in time."""
    cluster, until = consumer._cluster, monotonic() + seconds  # noqa: SLF001

    def ask() -> None:
        asked = cluster.request_update()
        left = max(0.0, until - monotonic())
        consumer._net.run(consumer._manager.wait_for, asked, 1000 * left)  # noqa: SLF001

    known = cluster.partitions_for_topic(topic)
    if known is None:
        if cluster.metadata_refresh_in_progress:  # perhaps of other topics
            ask()
        before, cluster.need_all_topic_metadata = cluster.need_all_topic_metadata, True
        try:
            ask()
        finally:
            cluster.need_all_topic_metadata = before
        known = cluster.partitions_for_topic(topic)
    return known or set()


class _Batches:
    def __init__(self, records: Any, largest: int) -> None:
        self.records = records
        self.largest = largest

    def next_batch(self) -> Any:
        batch = self.records.next_batch()
        # Older ones have no headers, and are not compressed by what makes gigabytes of kilobytes.
        return _Batch(batch, self.largest) if isinstance(batch, DefaultRecordBatch) else batch


def _message(
    record: Any, topic: str, partition: int, leader_epoch: int, *, appended: bool
) -> Message:
    return Message(
        Position(topic, partition, record.offset),
        *(record.key, record.value, record.headers, record.timestamp, leader_epoch, appended),
    )


class _Whole(DefaultRecord):  # type: ignore[misc]
    """One object that passes through kafka-python in place of a batch's records."""

    __slots__ = ("checksum",)
    checksum: _Batch


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    _buffer: bytearray
    _pos: int
    _decompressed: bool

    def __init__(self, batch: Any, largest: int) -> None:
        for name in DefaultRecordBatch.__slots__:
            setattr(self, name, getattr(batch, name))
        self._largest = largest
        self._source: BinaryIO | None = None

    def _maybe_uncompress(self) -> None:
        opened = _OPENED.get(self.compression_type)
        if self._decompressed or opened is None:
            super()._maybe_uncompress()
            return
        self._assert_has_codec(self.compression_type)
        packed: Any = memoryview(self._buffer)[self._pos :]
        self._source = opened(io.BytesIO(packed))
        self._buffer, self._pos, self._decompressed = bytearray(), 0, True
        if not self._fill(_WHOLE + 1):
            self._source = None

    def __iter__(self) -> Iterator[Any]:
        """Yield one record that stands for them all: see `messages`."""
        whole = _Whole(len(self._buffer), self.base_offset - 1, 0, 0, None, None, [])
        whole.checksum = self
        yield whole

    def messages(self, topic: str, partition: int, leader_epoch: int) -> Iterator[Message]:
        """Yield the records; those without headers bypass kafka-python."""
        self._maybe_uncompress()
        if self._source is None:
            yield from self._plain(topic, partition, leader_epoch)
        appended = self.timestamp_type == self.LOG_APPEND_TIME
        for record in iter(lambda: next(self, None), None):
            yield _message(record, topic, partition, leader_epoch, appended=appended)

    def _plain(self, topic: str, partition: int, leader_epoch: int) -> Iterator[Message]:
        """Yield the records before the first that has headers, or is malformed."""
        buffer, pos, base, new = self._buffer, self._pos, self.base_offset, tuple.__new__
        first, latest = self.first_timestamp, self.max_timestamp
        appended = self.timestamp_type == self.LOG_APPEND_TIME
        with suppress(IndexError, ValueError):  # which kafka-python raises there, too
            while self._next_record_index < self._num_records:
                length, begin = decode_varint(buffer, pos)
                end = begin + length
                later, begin = decode_varint(buffer, begin + 1)
                further, begin = decode_varint(buffer, begin)
                size, begin = decode_varint(buffer, begin)
                key = value = None
                if size >= 0:
                    key = bytes(buffer[begin : begin + size])
                    begin += size
                size, begin = decode_varint(buffer, begin)
                if size >= 0:
                    value = bytes(buffer[begin : begin + size])
                    begin += size
                if begin != end - 1 or buffer[begin]:
                    return  # it has headers
                self._pos = pos = end
                self._next_record_index += 1
                # As the constructors of the two classes, without a call of each.
                position = new(Position, (topic, partition, base + further))
                time = latest if appended else first + later
                yield new(Message, (position, key, value, (), time, leader_epoch, appended))

    def _fill(self, size: int) -> bool:
        """Fill the buffer to `size` bytes; return whether it has them."""
        while len(self._buffer) < size and (chunk := self._source.read(_CHUNK)):  # type: ignore[union-attr]
            self._buffer += chunk
        return len(self._buffer) >= size

    def _read_msg(self) -> Any:
        if self._source is not None:
            del self._buffer[: self._pos]
            self._pos = 0
            self._fill(_CHUNK)
            length, begin = decode_varint(self._buffer, 0)
            if length > self._largest:
                return self._read_cut(length, begin)
            self._fill(begin + length)
        try:
            return super()._read_msg()
        except UnicodeDecodeError:
            # Slower to read, so only from the first such name on; nothing was taken yet.
            self._buffer = _Buffer(self._buffer)
            return super()._read_msg()

    def _read_cut(self, length: int, pos: int) -> Any:
        """Read a record that is too large without its large part, and skip the rest."""
        end = pos + length
        _, pos = decode_varint(self._buffer, pos)
        later, pos = decode_varint(self._buffer, pos)
        further, pos = decode_varint(self._buffer, pos)
        size, pos = decode_varint(self._buffer, pos)
        key, value = None, CutValue(b"", length)
        if size < _CHUNK // 2:  # else it is the key that is too large
            key = bytes(self._buffer[pos : pos + size]) if size >= 0 else None
            size, pos = decode_varint(self._buffer, pos + max(0, size))
            value = CutValue(self._buffer[pos : pos + min(max(0, size), _KEPT)], max(0, size))
        while end > len(self._buffer):
            end -= len(self._buffer)
            self._buffer.clear()
            if not self._fill(1):
                raise ValueError("the batch ends within a record")  # as it is for other records
        self._pos = end
        appended = self.timestamp_type == self.LOG_APPEND_TIME
        time = self.max_timestamp if appended else self.first_timestamp + later
        return DefaultRecord(
            length, self.base_offset + further, time, self.timestamp_type, key, value, []
        )


def _lz4(packed: BinaryIO) -> Any:
    if not hasattr(codec.lz4, "open"):  # one of the other libraries
        return io.BytesIO(codec.lz4_decode(packed.read()))
    return codec.lz4.open(packed)


#: How a compressed batch is read as a stream. What is in snappy is 21 times as large at most.
_OPENED: dict[int, Callable[[BinaryIO], Any]] = {
    DefaultRecordBatch.CODEC_GZIP: lambda packed: gzip.GzipFile(fileobj=packed),
    DefaultRecordBatch.CODEC_LZ4: _lz4,
    DefaultRecordBatch.CODEC_ZSTD: lambda packed: codec.zstd.ZstdDecompressor().stream_reader(
        packed, read_across_frames=True
    ),
}


class _Buffer(bytearray):
    def __getitem__(self, at: Any) -> Any:
        part = super().__getitem__(at)
        return _Buffer(part) if isinstance(at, slice) else part

    def decode(self, *_: Any) -> str:
        try:
            return super().decode()
        except UnicodeDecodeError:
            return RawName(bytes(self))


# --- producers ---------------------------------------------------------------------------------


def make_no_topics(producer: Any) -> None:
    """Keep the broker from creating topics that a producer sends to."""
    producer._metadata.config["allow_auto_create_topics"] = False  # noqa: SLF001


@contextmanager
def not_logged(topic: str) -> Iterator[None]:
    """Keep kafka-python from logging that a topic is not there, while drift asks and says it."""

    def is_other(record: logging.LogRecord) -> bool:
        return (record.msg, record.args) != (_NOT_FOUND, (topic,))

    _CLUSTER.addFilter(is_other)
    try:
        yield
    finally:
        _CLUSTER.removeFilter(is_other)


def force_close(producer: Any, seconds: float = 0.0) -> None:
    """Release a producer that could not be closed; wait until it sends nothing more."""
    producer._sender.force_close()  # noqa: SLF001
    producer._sender.join(seconds)  # noqa: SLF001
    producer._closed = True  # noqa: SLF001
