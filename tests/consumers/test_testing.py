"""The broker inside the process, and the faults at points."""

import importlib
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from drift.consumers.crash_points import reached
from drift.errors import DriftError, MissingExtraError, ParameterError
from drift.testing import (
    DISCONNECT,
    Abort,
    Aborted,
    MockKafka,
    Pause,
    consume,
    patient_assignor,
    produce,
)

pytest.importorskip("kafka")

import kafka


def until(condition, seconds=60):
    """Whether the condition comes true in time."""
    end = time.monotonic() + seconds
    while not (true := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return true


def numbers(*bounds):
    return [str(number).encode() for number in range(*bounds)]


def values(records):
    return [record.value for record in records]


def read(consumer, count, seconds=10):
    """At least so many records, by polling."""
    records = []

    def enough():
        for batch in consumer.poll(timeout_ms=50).values():
            records.extend(batch)
        return len(records) >= count

    assert until(enough, seconds)
    return records


def assigned(broker, topic, offset, partition=0):
    consumer = kafka.KafkaConsumer(
        **broker.client_args, enable_auto_commit=False, auto_offset_reset="none"
    )
    place = kafka.TopicPartition(topic, partition)
    consumer.assign([place])
    consumer.seek(place, offset)
    return consumer


def test_records_keep_their_partition_and_order(broker):
    broker.create_topic("t", partitions=3)
    for partition in (2, 0):
        produce(broker, "t", numbers(20 * partition, 20 * partition + 20), partition)
    records = consume(broker, "t", 40)
    assert [(r.partition, r.offset) for r in records] == [(p, n) for p in (0, 2) for n in range(20)]
    assert values(records) == numbers(20) + numbers(40, 60)


def test_a_tombstone_has_no_value(broker):
    broker.create_topic("t")
    produce(broker, "t", [b"", None])
    assert values(consume(broker, "t", 2)) == [b"", None]


def test_reading_for_more_than_there_is_ends_in_time(broker):
    broker.create_topic("t")
    produce(broker, "t", [b"x"])
    assert values(consume(broker, "t", 5, timeout=2)) == [b"x"]


def test_a_consumer_resumes_where_it_seeks(broker):
    broker.create_topic("t", partitions=2)
    produce(broker, "t", numbers(50), partition=1)
    consumer = assigned(broker, "t", 20, partition=1)
    assert [record.offset for record in read(consumer, 30)] == list(range(20, 50))
    consumer.close(timeout_ms=1000)


def test_records_outlive_an_outage(broker):
    broker.create_topic("t")
    produce(broker, "t", numbers(10))
    consumer = assigned(broker, "t", 0)
    read(consumer, 10)
    broker.down()
    assert consumer.poll(timeout_ms=200) == {}
    broker.up()
    produce(broker, "t", numbers(10, 15))
    assert values(read(consumer, 5)) == numbers(10, 15)
    consumer.close(timeout_ms=1000)


def test_failing_requests_are_retried_by_the_client(broker):
    broker.create_topic("t")
    broker.fail("Produce", 6, DISCONNECT)
    produce(broker, "t", numbers(3))
    assert values(consume(broker, "t", 3)) == numbers(3)


def test_failures_that_have_not_happened_can_be_taken_back(broker):
    broker.create_topic("t")
    broker.fail("Produce", *[10] * 50)  # MESSAGE_TOO_LARGE, which no client retries
    with pytest.raises(kafka.errors.MessageSizeTooLargeError):
        produce(broker, "t", [b"x"])
    broker.fail("Produce")
    produce(broker, "t", [b"x"])
    assert values(consume(broker, "t", 1)) == [b"x"]


def test_deleted_records_are_out_of_range(broker):
    broker.create_topic("t")
    produce(broker, "t", numbers(10))
    broker.delete_records("t", 0, before=4)
    assert [record.offset for record in consume(broker, "t", 6)] == list(range(4, 10))
    consumer = assigned(broker, "t", 2)
    with pytest.raises(kafka.errors.OffsetOutOfRangeError):
        read(consumer, 1)
    consumer.close(timeout_ms=1000)


def test_a_slow_broker_answers_late(broker):
    broker.create_topic("t")
    broker.slow(0.1)
    started = time.monotonic()
    produce(broker, "t", [b"x"])
    assert time.monotonic() - started > 0.1
    broker.slow(0)
    assert values(consume(broker, "t", 1)) == [b"x"]


def test_two_members_share_a_topic_and_one_inherits_it(broker, member):
    broker.create_topic("t", partitions=4)
    owned = {}
    ends = {name: threading.Event() for name in "ab"}

    def run(name):
        # The worker's own client: kafka-python 3.0.12 by itself may never get its partitions.
        one = member(broker.group_args)
        while not ends[name].is_set():
            list(one.poll(0.2))
            owned[name] = {place.partition for place in one.consumer.assignment()}
        one.close()

    members = {name: threading.Thread(target=run, args=(name,)) for name in "ab"}
    try:
        for thread in members.values():
            thread.start()
        assert until(lambda: sorted(map(sorted, owned.values())) == [[0, 1], [2, 3]]), owned
        ends["a"].set()
        assert until(lambda: owned["b"] == {0, 1, 2, 3}), owned
    finally:
        for end in ends.values():
            end.set()
        for thread in members.values():
            thread.join(10)


def test_a_leader_assigns_once_the_others_have_asked():
    cluster = SimpleNamespace(partitions_for_topic=lambda topic: {0, 1, 2})
    metadata = SimpleNamespace(topics=["t"])
    members = [
        SimpleNamespace(member_id=name, group_instance_id=None, metadata=metadata) for name in "abc"
    ]
    asked = [0, 1, 2]
    assigned = patient_assignor(60, lambda: asked.pop(0)).assign(cluster, members)
    assert sorted(assigned) == ["a", "b", "c"]
    assert not asked
    alone = patient_assignor(60, lambda: asked.pop(0)).assign(cluster, members[:1])
    assert sorted(alone) == ["a"]


def test_refusals_name_the_culprit(broker):
    with pytest.raises(ParameterError, match="brokers = 0"):
        MockKafka(brokers=0)
    with pytest.raises(ParameterError, match=r"request = 'Fetsch', but there is Produce, Fetch"):
        broker.fail("Fetsch", 6)
    broker.create_topic("t")
    with pytest.raises(DriftError, match=r"'t'.*already exists"):
        broker.create_topic("t")
    with pytest.raises(ParameterError, match="count = 0"):
        Abort("p", count=0)


def test_a_cluster_closes_once(broker):
    broker.close()
    broker.close()


@pytest.mark.parametrize(
    ("package", "module", "message"),
    [
        ("confluent_kafka", "_mock", r"confluent-kafka .* pip install \"\.\[demo\]\""),
        ("kafka", "_clients", r"kafka-python .*\.\[kafka\]"),
        ("kafka.coordinator.assignors", "_assignor", r"kafka-python .*\.\[kafka\]"),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, package, module, message):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=message):
        importlib.reload(importlib.import_module(f"drift.testing.{module}"))


def test_abort_ends_at_its_time_and_no_other():
    done = []

    def work():
        for step in range(9):
            reached("other")
            reached("p")
            done.append(step)

    with Abort("p", count=3) as abort:
        with pytest.raises(Aborted, match="p, time 3"):
            work()
        work()
    assert done == [0, 1, *range(9)]
    assert abort.times == 12
    reached("p")
    assert abort.times == 12


def test_pause_holds_until_released():
    done = threading.Event()

    def work():
        reached("p")
        done.set()

    with Pause("p") as pause:
        worker = threading.Thread(target=work)
        worker.start()
        assert pause.wait()
        assert not done.is_set()
        pause.release()
        worker.join(10)
    assert done.is_set()


def test_the_end_of_the_block_releases():
    with Pause("p") as pause:
        worker = threading.Thread(target=reached, args=("p",))
        worker.start()
        assert pause.wait()
    worker.join(10)
    assert not worker.is_alive()
