"""Batches equal kafka-python's, and are continued like its own."""

import random
from contextlib import suppress

import pytest

from drift.consumers.records import Outgoing, RawName
from drift.testing import consume

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from kafka import KafkaProducer, TopicPartition
from kafka.errors import (
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
    OutOfOrderSequenceNumberError,
    TopicAuthorizationFailedError,
)
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecordsBuilder

from drift.consumers.client import batches, producer
from drift.consumers.client.batches import Batch, Batches
from drift.consumers.client.workarounds import SPLIT

TOO_LARGE = MessageSizeTooLargeError.errno
REFUSED = TopicAuthorizationFailedError.errno
PASSING = NotLeaderForPartitionError.errno
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@pytest.fixture
def plain(broker):
    """A producer of kafka-python's whose batches wait for a flush."""
    broker.create_topic("out", partitions=2)
    made = KafkaProducer(**broker.client_args, enable_idempotence=False, linger_ms=60_000)
    yield made
    made.close(timeout=5)


def add(into, number, partition=0):
    return into.add(("out", partition), b"%d" % number, b"v", [])


def flush(plain):
    """Wait for what was split, too."""
    for _ in range(3):
        with suppress(SPLIT):
            plain.flush(timeout=10)


def values_read(broker, count):
    return [int(one.key) for one in consume(broker, "out", count)]


@pytest.mark.parametrize("codec", CODECS)
def test_bytes_are_those_of_kafka_python(codec, monkeypatch):
    draw = random.Random(1)
    times = [1_700_000_000_000 + draw.choice([0, 1, 63, 64, 20_000, -5]) for _ in range(300)]
    clock = iter(times)
    monkeypatch.setattr(batches.time, "time_ns", lambda: 1_000_000 * next(clock) + 999_999)
    made = Batch(TopicPartition("t", 0), MemoryRecordsBuilder(2, CODECS[codec], 1 << 30))
    expected = DefaultRecordBatchBuilder(
        2, CODECS[codec], is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 30,
    )  # fmt: skip
    for number, stamp in enumerate(times):
        key, value = (draw.choice([None, b"", b"k" * draw.choice([1, 63, 64, 9000])]) for _ in "kv")
        headers = [("trace", b"1"), (RawName(b"caf\xe9"), b""), ("n", None)][: draw.choice([0, 3])]
        assert made.add(key, value, headers, 1 << 20)
        expected.append(number, stamp, key, value, headers)
    monkeypatch.setattr(batches.time, "time", lambda: 0.0)  # which gzip writes down
    made.records.close()
    assert made.records.buffer() == expected.build()
    assert (made.record_count, made.records.is_full()) == (300, True)


def test_records_of_a_batch_have_one_answer_and_each_partition_its_own(broker, plain):
    into = Batches(plain)
    first, second = add(into, 0), add(into, 1, partition=1)
    assert [add(into, number) for number in range(2, 9)] == [None] * 7
    assert not first.futures[0].is_done
    plain.flush(timeout=10)
    assert [(len(one.futures), one.record_count) for one in (first, second)] == [(1, 8), (1, 1)]
    assert all(one.futures[0].succeeded() for one in (first, second))
    assert values_read(broker, 9) == [0, 2, 3, 4, 5, 6, 7, 8, 1]


def test_what_was_sent_or_is_full_takes_no_more(broker, plain):
    into = Batches(plain)
    assert add(into, 0)
    plain.flush(timeout=10)
    batch = add(into, 1)
    assert batch
    batch.records._builder._batch_size = 90  # 61 of the header, 10 of a record
    assert [add(into, number) is None for number in (2, 3, 4)] == [True, False, True]
    plain.flush(timeout=10)
    assert values_read(broker, 5) == [0, 1, 2, 3, 4]


def test_a_batch_that_is_too_large_continues_in_parts(broker, plain):
    into = Batches(plain)
    batch = add(into, 0)
    for number in range(1, 7):
        add(into, number)
    broker.fail("Produce", TOO_LARGE, TOO_LARGE)  # the first of the parts, too
    flush(plain)
    assert len(batch.futures) == 7
    for future in batch.futures:
        future.get(timeout=10)
    assert sorted(values_read(broker, 7)) == list(range(7))


def test_a_refused_part_is_reported(broker, plain):
    into = Batches(plain)
    batch = add(into, 0)
    add(into, 1)
    broker.fail("Produce", TOO_LARGE, REFUSED, REFUSED)
    flush(plain)
    for future in batch.futures:
        with pytest.raises(TopicAuthorizationFailedError):
            future.get(timeout=10)


def test_what_the_broker_does_not_take_yet_is_sent_again(broker, plain):
    into = Batches(plain)
    batch = add(into, 0)
    broker.fail("Produce", PASSING, PASSING)
    plain.flush(timeout=10)
    assert batch.futures[0].succeeded()
    assert batch.attempts == 2
    assert values_read(broker, 1) == [0]


def test_an_idempotent_producer_numbers_the_records(broker):
    broker.create_topic("out", partitions=2)
    with_numbers = KafkaProducer(**broker.client_args, enable_idempotence=True, linger_ms=60_000)
    into, sequences = Batches(with_numbers), []
    for _ in range(2):
        batch = add(into, 0)
        add(into, 1)
        with_numbers.flush(timeout=10)
        sequences.append(batch.base_sequence)
    assert sequences == [0, 2]
    with_numbers.close(timeout=5)


def test_a_record_that_cannot_be_written_leaves_the_batch_as_it_was(broker, plain):
    into = Batches(plain)
    add(into, 0)
    with pytest.raises(TypeError):
        into.add(("out", 0), "a text", b"v", [])
    with pytest.raises(MessageSizeTooLargeError, match="max_request_size = 1048576"):
        into.add(("out", 0), b"1", b"v" * (1 << 20), [])
    add(into, 1)
    with pytest.raises(ValueError, match="out has no partition 2"):
        add(into, 2, partition=2)
    plain.flush(timeout=10)
    assert values_read(broker, 2) == [0, 1]


def test_kafka_python_has_a_future_for_each_record(plain):
    futures = [plain.send("out", b"v", partition=0) for _ in range(3)]
    assert len({id(future) for future in futures}) == 3
    (batch,) = plain._accumulator._batches[TopicPartition("out", 0)]
    assert batch._record_futures == futures


# --- drift's producer ---------------------------------------------------------------------------


def test_one_error_that_passes_leaves_the_order(broker, monkeypatch):
    """Others are not sent before the batch that the broker has not taken yet."""
    monkeypatch.setattr(producer, "_BATCH", 100)  # of one record each
    broker.create_topic("out")
    with producer.Producer(broker.client_args | {"linger_ms": 0, "retry_backoff_ms": 50}) as one:
        broker.slow(0.02)
        broker.fail("Produce", PASSING)
        for number in range(9):
            one.send(Outgoing("out", b"%d" % number, b"v", []))
        one.flush()
        broker.slow(0)
    assert values_read(broker, 9) == list(range(9))


def test_after_outputs_were_given_up_another_producer_sends_them(broker):
    broker.create_topic("out")
    one = producer.Producer(broker.client_args | {"linger_ms": 60_000})
    one.check(["out"])
    one.send(Outgoing("out", b"1", b"v", []))
    before = one.producer
    one._unsent("the broker does not answer")
    broker.down()
    one.forget()  # opens it without the broker
    broker.up()
    assert not before._sender.is_alive()
    assert one.producer.config["api_version"] == before.config["api_version"]
    assert not one.producer._metadata.config["allow_auto_create_topics"]
    one.send(Outgoing("out", b"1", b"v", []))
    one.send(Outgoing("out", b"2", b"v", []))
    one.close()
    assert values_read(broker, 2) == [1, 2]


@pytest.mark.parametrize("error", [KafkaTimeoutError, OutOfOrderSequenceNumberError])
def test_a_batch_that_has_expired_ends_the_flush_though_others_are_lost(broker, error):
    broker.create_topic("out", partitions=2)
    one = producer.Producer(broker.client_args | {"linger_ms": 60_000}, hurry=lambda: True)
    for number in range(2):
        one.send(Outgoing("out", b"1", b"v", [], number))
    lost, expired = one._unanswered
    one.producer._accumulator._batches.clear()  # as kafka-python does
    expired.complete_exceptionally(error("no"), lambda _: error("no"))
    one.producer._accumulator.deallocate(expired)
    with pytest.raises(producer.UnsentError, match=r"the broker .*: no"):
        one.flush()
    assert not lost.is_done
    one.forget()
    one.close()


@pytest.mark.parametrize(
    ("given", "expires", "waits"),
    [
        ({}, 60_000, 60.0),
        ({"linger_ms": 40_000}, 70_001, 70.001),  # as kafka-python wants it
        ({"request_timeout_ms": 90_000}, 90_021, 90.021),
        ({"delivery_timeout_ms": 300_000}, 300_000, 300.0),
        ({"request_timeout_ms": 1000, "delivery_timeout_ms": 2000}, 2000, 60.0),
    ],
)
def test_answers_are_waited_for_until_batches_expire(broker, given, expires, waits):
    with producer.Producer(broker.client_args | given) as one:
        assert one.producer.config["delivery_timeout_ms"] == expires
        assert one._patience() == waits
