"""kafka-python as the worker reads from it."""

import math
import threading
import time
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from drift.errors import ConsumerError, UnavailableError
from drift.testing import produce

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from kafka.errors import (
    CorruptRecordError,
    KafkaConnectionError,
    KafkaTimeoutError,
    UnsupportedCodecError,
)

from drift.consumers.client import consumer


@pytest.fixture
def client(broker, member):
    """The client of a worker."""
    broker.create_topic("t")
    return member(broker.group_args)


def test_a_poll_sleeps_only_while_there_is_no_topic(broker, member, monkeypatch):
    slept = []
    monkeypatch.setattr(consumer, "time", SimpleNamespace(sleep=slept.append))
    one = member(broker.group_args, "late")
    assert list(one.poll(0.25)) == list(one.poll(9.0)) == []
    assert slept == [0.25, 1.0]  # while the worker still answers
    broker.create_topic("late")
    assert list(one.poll(0.25)) == []
    assert len(slept) == 2


def test_a_member_knows_the_partitions_before_it_joins(client):
    assert client._subscribe()
    assert client.consumer._coordinator._metadata_snapshot == {"t": {0}}


def test_a_poll_ends_once_there_are_partitions_to_take_over(client):
    started = time.monotonic()
    assert list(client.poll(60)) == []
    assert client.assignment.waiting() == [("t", 0)]
    assert time.monotonic() - started < 30


def test_a_poll_ends_once_it_is_woken(client):
    list(client.poll(60))
    started = time.monotonic()
    timer = threading.Timer(0.05, client.wake)
    timer.start()
    assert list(client.poll(60)) == []
    timer.join()
    client.wake()
    assert list(client.poll(60)) == []  # the next one, too, where none is waiting
    assert time.monotonic() - started < 30


def test_a_leader_whose_polls_are_short_joins_after_new_metadata(client):
    coordinator = client.consumer._coordinator
    give_up = time.monotonic() + 60

    def poll_until(done):
        while not done():
            assert time.monotonic() < give_up
            list(client.poll(0.01))

    poll_until(client.assignment.waiting)
    first = client.assignment.waiting()
    client.assignment.places.clear()
    coordinator._assignment_snapshot = "what the leader knew before"
    poll_until(lambda: coordinator.rejoining)
    poll_until(lambda: not coordinator.rejoining)
    assert client.assignment.waiting() == first


def test_records_of_a_paused_partition_come_again(broker, member):
    broker.create_topic("t", partitions=2)
    for partition in range(2):
        produce(broker, "t", [b"%d" % number for number in range(50)], partition)
    one = member(broker.client_args | {"max_poll_records": 1})
    read = []
    give_up = time.monotonic() + 60

    def poll_until(done):
        while not done():
            assert time.monotonic() < give_up
            read.extend(place for place, _ in one.poll(0.05))
            for place in one.assignment.waiting():
                if place not in paused:
                    one.start(place, 0)

    paused = []
    poll_until(lambda: len(read) > 3)
    paused.append(read[-1])  # it has more that was fetched
    one.hold(paused)
    other = ("t", 1 - paused[0][1])
    poll_until(lambda: read[-3:] == [other] * 3)
    one.start(paused[0], 0)
    read.clear()
    poll_until(lambda: paused[0] in read)


def test_a_partition_that_a_topic_has_not_is_refused(broker, member):
    broker.create_topic("t", partitions=2)
    one = member(broker.client_args, partition=2)
    with pytest.raises(ConsumerError, match="t has no partition 2, it has 2: give one below that"):
        list(one.poll(0.1))


def test_a_partition_that_is_gone_is_neither_read_again_nor_committed(client, monkeypatch):
    """Which a checkpoint has, as the topic was recreated with fewer and adopted."""
    list(client.poll(60))
    assert [client.lacks(("t", 0)), client.lacks(("t", 1))] == [False, True]
    assert not client.lacks(("u", 1))  # that is not there at all, as for a moment
    with pytest.raises(ConsumerError, match="t no longer has the partition 1, of which features"):
        client.reread(("t", 1), 0)
    committed = Mock()
    monkeypatch.setattr(client.consumer, "commit_async", committed)
    client.commit({("t", 0): 7, ("t", 1): 0})
    [[offsets]] = [call.args for call in committed.call_args_list]
    assert {tuple(place): of.offset for place, of in offsets.items()} == {("t", 0): 7}


def test_it_is_known_when_a_partition_was_at_its_end(broker, member):
    broker.create_topic("t", partitions=2)
    produce(broker, "t", [b"1", b"2"])
    one = member(broker.client_args | {"max_poll_records": 1})
    give_up = time.monotonic() + 60
    first, second = ("t", 0), ("t", 1)
    assert one.ended_at(first) == one.read_at(first) == -math.inf
    read = []
    while len(read) < 2:
        assert time.monotonic() < give_up
        for place, messages in one.poll(0.05):
            assert 0 < one.read_at(place) <= time.monotonic()
            read += messages
            # The second was there, too, in the fetch that brought the first.
            assert (one.ended_at(place) == -math.inf) == (len(read) == 1)
        for place in one.assignment.waiting():
            one.start(place, 0)
    before = one.ended_at(first)
    while min(one.ended_at(first), one.ended_at(second)) <= before:
        assert time.monotonic() < give_up
        list(one.poll(0.05))
    one.start(first, 1)  # what is behind is not read
    assert one.ended_at(first) == -math.inf
    assert one.ended_at(("t", 7)) == -math.inf


def test_new_partitions_are_looked_for_every_minute_by_default(broker, member):
    for given, seconds in (({}, 60), ({"metadata_max_age_ms": 500}, 0.5)):
        one = member({**broker.client_args, **given})
        assert one.consumer._cluster.config["metadata_max_age_ms"] == 1000 * seconds


def test_an_outage_while_closing_hides_no_other_error(client, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        patch.setattr(client.consumer, "close", Mock(side_effect=KafkaTimeoutError("silence")))
        client.close()
    assert caplog.text.count("silence") == 1


@pytest.mark.parametrize("error", [UnsupportedCodecError("zstd"), CorruptRecordError("checksum")])
def test_a_message_that_cannot_be_read_again_is_no_outage(broker, client, monkeypatch, error):
    produce(broker, "t", [b"1", b"2", b"3"])
    read, end = client.reread(("t", 0), 0)
    assert ([message.value for message in read], end) == ([b"1", b"2", b"3"], 3)
    monkeypatch.setattr(client._second, "poll", Mock(side_effect=error))
    said = rf"kafka-python cannot read a message \(.*{error.args[0]}.*\), .* of t:0:1: install what"
    with pytest.raises(ConsumerError, match=said):
        client.reread(("t", 0), 1)


def test_a_broker_that_goes_as_partitions_are_counted_is_an_outage(client, monkeypatch):
    assert client.partitions("t") == 1
    away = Mock(side_effect=KafkaConnectionError("111 ECONNREFUSED"))
    monkeypatch.setattr(client.consumer._net, "run", away)
    client.consumer._cluster.set_topics([])
    with pytest.raises(UnavailableError, match=r"the broker does not answer \(.*ECONNREFUSED\)"):
        client.partitions("another")


def test_a_broker_that_is_frozen_as_partitions_are_counted_is_an_outage(
    broker, client, monkeypatch
):
    """kafka-python would wait until it gives up the request, by default for 30 s."""
    monkeypatch.setattr(consumer, "_OFFSETS", 0.2)
    assert client.partitions("another") == 0
    started = time.monotonic()
    broker.slow(60)
    with pytest.raises(UnavailableError, match=r"does not answer .*Timed out after"):
        client.partitions("another")
    assert time.monotonic() - started < 20
    broker.slow(0)


def test_a_worker_without_a_topic_looks_for_it_no_longer_than_a_stop_may_wait(
    broker, member, monkeypatch, caplog
):
    monkeypatch.setattr(consumer, "_METADATA", 0.2)
    one = member(broker.group_args, "late")
    assert list(one.poll(0.1)) == []
    started = time.monotonic()
    broker.slow(60)
    assert list(one.poll(0.1)) == []
    assert time.monotonic() - started < 20
    assert "poll: KafkaTimeoutError" in caplog.text
    broker.slow(0)
