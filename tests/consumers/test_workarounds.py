"""What kafka-python still does wrong: where one of these fails, its workaround is to be removed."""

import gzip
import io
import logging
import random
import time
from collections import deque
from types import SimpleNamespace
from unittest.mock import MagicMock, Mock

import pytest

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import CorruptRecordError, KafkaTimeoutError
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

from drift.consumers.client import workarounds
from drift.consumers.client.producer import Producer
from drift.consumers.dead_letters import dead_letter
from drift.consumers.json_codec import JsonCodec
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.options import WorkerOptions
from drift.consumers.records import CutValue, Message, Position, RawName
from drift.models import LBP
from drift.testing import produce
from tests.consumers.labelled_logs import Latin

CODECS = {
    "gzip": DefaultRecordBatch.CODEC_GZIP,
    "lz4": DefaultRecordBatch.CODEC_LZ4,
    "zstd": DefaultRecordBatch.CODEC_ZSTD,
}


def batch(records, codec=0):
    """A batch as it comes from a broker."""
    builder = DefaultRecordBatchBuilder(
        2, codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 30,
    )  # fmt: skip
    for offset, (key, value, headers) in enumerate(records):
        builder.append(offset, 1_700_000_000_000 + offset, key, value, headers)
    return DefaultRecordBatch(bytes(builder.build()))


def read(records, codec=0, largest=workarounds.LARGEST):
    batches = workarounds._Batches(
        SimpleNamespace(next_batch=lambda: batch(records, codec)), largest
    )
    return [
        (m.position.offset, m.timestamp - 1_700_000_000_000, m.key, m.value, [*m.headers])
        for m in batches.next_batch().messages("t", 0, -1)
    ]


def test_kafka_python_calls_a_header_corrupt_whose_name_is_no_utf8():
    records = [(b"k", b"v", [(Latin("caf\xe9"), b"1")])]
    with pytest.raises(CorruptRecordError):
        list(batch(records))
    [(*_, headers)] = read(records)
    assert headers == [(RawName(b"caf\xe9"), b"1")]


@pytest.mark.parametrize("appended", [False, True])
def test_messages_are_kafka_pythons_records(appended):
    draw, sizes = random.Random(2), [0, 1, 63, 64, 9000]
    for headed in (1.0, 0.01, 0.0):  # from one that has headers on they are kafka-python's own
        records = [
            (
                *(draw.choice([None, b"x" * draw.choice(sizes)]) for _ in "kv"),
                [("h", draw.choice([None, b"1"]))] if draw.random() < headed else [],
            )
            for _ in range(300)
        ]
        plain, ours = (batch(records) for _ in range(2))
        for one in (plain, ours):
            one._header_data = (700, *one._header_data[1:5], 8 * appended, *one._header_data[6:])
        actual = workarounds._Batches(SimpleNamespace(next_batch=lambda: ours), 1)  # noqa: B023
        assert [
            m._replace(headers=[*m.headers]) for m in actual.next_batch().messages("t", 3, 5)
        ] == [
            Message(Position("t", 3, r.offset), r.key, r.value, r.headers, r.timestamp, 5, appended)
            for r in plain
        ]


def test_what_is_damaged_is_refused_as_kafka_python_does():
    draw = random.Random(3)
    for _ in range(500):
        made = bytearray(batch([(b"k", b"v" * 9, [])] * 3)._buffer)
        place = draw.randrange(61, len(made))
        # Attributes are one byte, of which kafka-python makes a number of any length.
        made[place] = draw.randrange(128 if made[place] == 0 else 256)
        results = []
        for read_all in (list, lambda b: list(b.messages("t", 0, -1))):
            one = DefaultRecordBatch(bytes(made))
            if read_all is not list:
                one = workarounds._Batch(one, 1 << 20)
            try:
                results.append([(r.key, r.value) for r in read_all(one)])
            except CorruptRecordError:
                results.append("corrupt")
        assert results[0] == results[1]


@pytest.mark.parametrize("codec", [0, *CODECS.values()])
def test_a_fetch_amid_a_batch_starts_where_it_was_asked_to(codec):
    consumer = MagicMock(_coordinator=None)
    consumer._subscription.position.return_value.leader_epoch = -1
    workarounds.patch(consumer)
    left = [batch([(None, b"%d" % n, []) for n in range(9)], codec), None]
    records = SimpleNamespace(next_batch=lambda: left.pop(0))
    part = consumer._fetcher.PartitionRecords(4, TopicPartition("t", 0), records)
    taken = []
    for count, following in ((2, 6), (2, 8), (9, 9)):
        taken += part.take(count)
        assert part.next_fetch_offset == following
    assert [(m.position, m.value) for m in taken] == [(("t", 0, n), b"%d" % n) for n in range(4, 9)]
    assert (part.records_read, bool(part)) == (9, False)
    assert part.bytes_read > 0


def test_records_of_older_formats_are_messages():
    consumer = MagicMock(_coordinator=None)
    consumer._subscription.position.return_value.leader_epoch = 3
    workarounds.patch(consumer)
    builder = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    builder.append(0, 17, b"k", b"v")
    left = [*LegacyRecordBatch(builder.build(), 1)]
    old = MagicMock(magic=1, **{"__iter__.return_value": iter(left)})
    batches = [old, None]
    records = SimpleNamespace(next_batch=lambda: batches.pop(0))
    part = consumer._fetcher.PartitionRecords(0, TopicPartition("t", 0), records)
    assert part.take(9) == [Message(Position("t", 0, 0), b"k", b"v", [], 17, 3, appended=False)]


def test_kafka_python_takes_batches_apart_whole(monkeypatch):
    sizes = []

    class Watched(gzip.GzipFile):
        def read(self, size=-1):
            sizes.append(size)
            return super().read(size)

    monkeypatch.setattr("kafka.codec.gzip.GzipFile", Watched)
    list(batch([(None, b"v" * 999, [])], CODECS["gzip"]))
    assert sizes == [-1]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("whole", [1, 100_000, 16 << 20])
def test_compressed_records_are_read_one_by_one_where_they_are_many(codec, whole, monkeypatch):
    monkeypatch.setattr(workarounds, "_WHOLE", whole)
    monkeypatch.setattr(workarounds, "_CHUNK", 1 << 10)
    records = [(b"k%d" % n, b"%d" % n * (n % 300), [("h", b"1")]) for n in range(1000)]
    records[500] = (None, None, [(Latin("caf\xe9"), None)])
    actual = read(records, CODECS[codec])
    records[500] = (None, None, [(RawName(b"caf\xe9"), None)])
    assert actual == [(n, n, *record) for n, record in enumerate(records)]


@pytest.mark.parametrize("codec", CODECS)
def test_a_record_that_is_too_large_is_cut_and_those_around_it_are_read(codec, monkeypatch):
    monkeypatch.setattr(workarounds, "_WHOLE", 1 << 16)
    large = b"x" * 3_000_000
    records = [
        *((b"a", b"1", []), (b"b", large, [("h", b"1")]), (large, b"2", []), (None, None, [])),
        *((b"c", b"3", [("h", large)]), (b"d", b"4", [])),
    ]
    actual = read(records, CODECS[codec], largest=1 << 20)
    assert [(*one[:3], one[3], one[4]) for one in actual] == [
        *((0, 0, b"a", b"1", []), (1, 1, b"b", large[:1024], []), (2, 2, None, b"", [])),
        *((3, 3, None, None, []), (4, 4, b"c", b"3", []), (5, 5, b"d", b"4", [])),
    ]
    cut = {one[0]: one[3].size for one in actual if isinstance(one[3], CutValue)}
    assert cut.keys() == {1, 2, 4}
    assert cut[1] == len(large)
    assert cut[2] > len(large)


def test_a_bomb_takes_no_memory_and_becomes_a_dead_letter():
    tracemalloc = pytest.importorskip("tracemalloc")
    packed = batch([(None, b"\0" * (64 << 20), [])], CODECS["gzip"])
    tracemalloc.start()
    try:
        records = SimpleNamespace(next_batch=lambda: packed)
        [record] = workarounds._Batches(records, 1 << 20).next_batch().messages("t", 0, -1)
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()
    options = WorkerOptions(topic="t", group="g", dead_letters="dead")
    learner = Learner(LBP(budget=9), JsonCodec(), Metrics("t", 0), options)
    [letter] = learner.take(Message(Position("t", 0, 0), None, record.value))
    assert (len(letter.value), letter.headers[-1]) == (1024, ("drift.cut", b"%d" % (64 << 20)))
    assert b"too many to be read" in dict(letter.headers)["drift.error"]
    assert dead_letter(Message(Position("t", 0, 0), None, b"1"), ValueError(), "d").value == b"1"


def test_a_batch_that_ends_within_a_record_is_corrupt(monkeypatch):
    monkeypatch.setattr(workarounds, "_WHOLE", 1)
    made = batch([(None, b"x" * 2_000_000, [])], CODECS["gzip"])
    short = gzip.decompress(bytes(made._buffer[made._pos :]))[:-1]
    made._buffer[made._pos :] = gzip.compress(short)
    mended = workarounds._Batch(made, 1 << 20)
    with pytest.raises(CorruptRecordError, match="ends within a record"):
        list(mended.messages("t", 0, -1))


def test_other_lz4_libraries_are_read_as_a_whole(monkeypatch):
    monkeypatch.setattr("kafka.codec.lz4", None)
    monkeypatch.setattr("kafka.codec.lz4_decode", lambda packed: packed + b"!")
    assert workarounds._lz4(io.BytesIO(b"x")).read() == b"x!"


def test_kafka_python_has_topics_made_against_its_option(broker):
    plain = KafkaConsumer(**broker.client_args, allow_auto_create_topics=False)
    assert plain._cluster.config["allow_auto_create_topics"]
    workarounds.patch(plain)
    assert not plain._cluster.config["allow_auto_create_topics"]
    plain.close()


def test_kafka_python_forgets_the_leader_epoch_after_an_empty_fetch(broker):
    place = TopicPartition("t", 0)
    plain = KafkaConsumer(**broker.client_args)
    plain.assign([place])
    workarounds.seek(plain, ("t", 0), 5, leader_epoch=3)
    nothing = SimpleNamespace(next_batch=lambda: None)
    assert plain._fetcher.PartitionRecords(5, place, nothing).leader_epoch == -1
    workarounds.patch(plain)
    assert plain._fetcher.PartitionRecords(5, place, nothing).leader_epoch == 3
    plain.close()


def test_kafka_python_seeks_without_a_leader_epoch(broker):
    broker.create_topic("t")
    plain = KafkaConsumer(**broker.client_args)
    plain.assign([TopicPartition("t", 0)])
    with pytest.raises(ValueError, match="must be int"):
        plain.seek(TopicPartition("t", 0), kafka.structs.OffsetAndMetadata(5, "", 3))
    plain.close()


def test_kafka_python_leaves_records_parked_after_a_seek(broker):
    place = TopicPartition("t", 0)
    produce(broker, "t", [b"%d" % n for n in range(9)])
    plain = KafkaConsumer(**broker.client_args, auto_offset_reset="earliest", max_poll_records=1)
    plain.assign([place])
    end = time.monotonic() + 60
    while not plain.poll(timeout_ms=100):
        assert time.monotonic() < end
    plain.pause(place)
    plain.poll(timeout_ms=100)
    plain.seek(place, 0)
    assert place in plain._fetcher._paused_partition_records
    workarounds.seek(plain, ("t", 0), 0, leader_epoch=-1)
    assert place not in plain._fetcher._paused_partition_records
    plain.close()


def test_kafka_python_has_no_way_to_end_a_poll():
    assert not hasattr(KafkaConsumer, "wakeup")


def test_kafka_python_sleeps_for_the_backoff_where_nothing_can_be_fetched(broker, monkeypatch):
    slept = []
    plain = KafkaConsumer(**broker.client_args)
    monkeypatch.setattr(
        "kafka.consumer.group.time", SimpleNamespace(sleep=slept.append, monotonic=lambda: 0.0)
    )
    monkeypatch.setattr(plain._fetcher, "fetch_records", lambda *_, **__: ({}, True))
    monkeypatch.setattr(plain._coordinator, "poll", lambda **_: True)
    plain._poll_once(SimpleNamespace(timeout_ms=1000, expired=False), 1)
    assert slept == [plain.config["retry_backoff_ms"] / 1000]
    plain.close()


def test_kafka_python_sleeps_where_an_answer_has_come(broker, monkeypatch):
    slept, idle = [], True
    clock = SimpleNamespace(sleep=slept.append, monotonic=lambda: 0.0)
    plain, mended = (KafkaConsumer(**broker.client_args) for _ in range(2))
    for consumer in (plain, mended):
        monkeypatch.setattr(consumer._fetcher, "fetch_records", lambda *_, **__: ({}, idle))
        monkeypatch.setattr(consumer._coordinator, "poll", lambda **_: True)
    workarounds.patch(mended)
    monkeypatch.setattr("kafka.consumer.group.time", clock)
    cases = [(True, ["one that has come"], 1, 0), (True, [], 1, 1), (False, [], 0, 0)]
    for idle, come, *times in cases:  # noqa: B007 - which the consumers are told
        for consumer, expected in zip((plain, mended), times, strict=True):
            consumer._fetcher._completed_fetches = deque(come)
            consumer._poll_once(SimpleNamespace(timeout_ms=1000, expired=False), 1)
            assert len(slept) == expected
            slept.clear()
    monkeypatch.undo()
    plain.close()
    mended.close()


def test_kafka_python_asks_for_no_more_where_it_has_waited(broker):
    place = TopicPartition("t", 0)
    produce(broker, "t", [b"%d" % n for n in range(9)])
    cases = [(id, None, 1), (workarounds.patch, None, 2), (workarounds.patch, 5, 1)]
    for mend, most, times in cases:  # the last leaves some to be read
        one = KafkaConsumer(**broker.client_args)
        mend(one)
        one.assign([place])
        one.seek(place, 0)
        one._fetcher.send_fetches = asked = Mock(wraps=one._fetcher.send_fetches)
        end = time.monotonic() + 60
        while not one._fetcher.fetch_records(most, timeout_ms=100)[0]:
            assert time.monotonic() < end
            asked.reset_mock()
        assert asked.call_count == times
        one.close()


def test_kafka_python_joins_again_where_a_join_ended_between_two_polls(broker):
    broker.create_topic("t")
    for mend, again in ((lambda _: None, True), (workarounds.patch, False)):
        one = KafkaConsumer(
            **broker.client_args,
            group_id=f"g{again}",
            session_timeout_ms=2000,
            heartbeat_interval_ms=200,
        )
        mend(one)
        one.partitions_for_topic("t")  # else new metadata may have it join again
        one.subscribe(["t"])
        end = time.monotonic() + 60
        while (joining := one._coordinator._join_task) is None:
            assert time.monotonic() < end
            one.poll(timeout_ms=10)
        while not joining.is_done:
            assert time.monotonic() < end
            time.sleep(0.01)
        joined = one._coordinator._generation.generation_id
        while not one.assignment():
            assert time.monotonic() < end
            workarounds.join_again(one)
            one.poll(timeout_ms=100)
        assert (one._coordinator._generation.generation_id > joined) is again
        one.close()


def test_kafka_python_flushes_a_producer_that_could_not_be_closed(broker):
    plain = KafkaProducer(**broker.client_args)
    sender = plain._sender

    plain.flush = Mock(side_effect=KafkaTimeoutError("silence"))
    with pytest.raises(KafkaTimeoutError):
        plain.close(timeout=1)
    assert sender.is_alive()
    workarounds.force_close(plain)
    sender.join(10)
    assert not sender.is_alive()


def test_kafka_python_has_topics_made_by_producers(broker):
    plain = KafkaProducer(**broker.client_args)
    assert plain._metadata.config["allow_auto_create_topics"]
    workarounds.make_no_topics(plain)
    with pytest.raises(KafkaTimeoutError):
        plain._wait_on_metadata("nowhere", 300)
    plain.close(timeout=5)


@pytest.fixture
def kafka_log():
    """The messages that kafka-python logs on clusters, from any thread."""
    messages, logger = [], logging.getLogger("kafka.cluster")
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logger.addHandler(handler)
    yield messages
    logger.removeHandler(handler)


def test_kafka_python_logs_an_error_for_a_topic_that_is_about_to_be_created(broker, kafka_log):
    plain = KafkaProducer(**broker.client_args)
    workarounds.make_no_topics(plain)
    missing, other = "Topic nowhere not found in cluster metadata", "Topic elsewhere is not here"

    def ask():
        with pytest.raises(KafkaTimeoutError):
            plain._wait_on_metadata("nowhere", 300)

    with workarounds.not_logged("nowhere"):
        ask()
        logging.getLogger("kafka.cluster").error("Topic %s is not here", "elsewhere")
        assert missing not in kafka_log
        assert other in kafka_log
    ask()
    assert missing in kafka_log
    plain.close(timeout=5)


def test_kafka_python_tries_to_connect_every_half_minute_after_an_outage(broker, member):
    assert KafkaConsumer.DEFAULT_CONFIG["reconnect_backoff_max_ms"] == 30_000
    one = member(broker.client_args)
    with Producer(broker.client_args) as other:
        for client in (one.consumer, other.producer):
            assert client.config["reconnect_backoff_max_ms"] == 5_000


def test_kafka_python_waits_for_metadata_without_a_bound(broker, monkeypatch):
    client = KafkaConsumer(**broker.client_args)
    bounds, wait_for = [], client._manager.wait_for

    async def wait(future, timeout_ms):
        bounds.append(timeout_ms)
        return await wait_for(future, timeout_ms)

    monkeypatch.setattr(client._manager, "wait_for", wait)
    client.partitions_for_topic("missing")
    assert set(bounds) == {None}
    bounds.clear()
    assert workarounds.partitions(client, "missing", 5.0) == set()
    assert all(0 < bound <= 5000 for bound in bounds)
    client.close()
