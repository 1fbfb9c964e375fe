"""Topics from their outside: partitions that come later, reading to an end, whole messages."""

import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from drift.consumers.records import Message, Outgoing, Position
from drift.errors import ConsumerError, ParameterError
from drift.testing import consume, produce

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import CoordinatorLoadInProgressError, KafkaConnectionError

from drift.consumers.client import topics  # after the check that there is a client
from drift.consumers.client.producer import Producer
from drift.consumers.client.topics import Reader


def values(reader, count):
    """The next so many values by partition, with a look for new partitions before each poll."""
    result, give_up = [], time.monotonic() + 30
    while len(result) < count and time.monotonic() < give_up:
        reader.refresh()
        result += [(m.position.partition, m.value) for m in reader.poll(0.2)]
    return result


def test_partitions_that_come_later_are_read_and_the_others_not_again(broker, monkeypatch):
    broker.create_topic("t", partitions=2)
    produce(broker, "t", [b"a"], 0)
    produce(broker, "t", [b"b"], 1)
    there = {0}
    monkeypatch.setattr(KafkaConsumer, "partitions_for_topic", lambda self, topic: there)
    with Reader("t", broker.client_args) as reader:
        assert values(reader, 1) == [(0, b"a")]
        there.add(1)
        assert values(reader, 1) == [(1, b"b")]
        produce(broker, "t", [b"c"], 0)
        assert values(reader, 1) == [(0, b"c")]
        there.clear()  # what is not seen for a while is not gone
        produce(broker, "t", [b"d"], 1)
        assert values(reader, 1) == [(1, b"d")]


@pytest.mark.kafka
def test_a_partition_that_is_added_is_noticed(kafka_address, kafka_topic):
    options = {"bootstrap_servers": kafka_address, "metadata_max_age_ms": 100}
    with Reader(kafka_topic, options) as reader:
        assert reader.partitions == [0, 1]
        admin = KafkaAdminClient(bootstrap_servers=kafka_address)
        admin.create_partitions({kafka_topic: 3})
        admin.close()
        produce(kafka_address, kafka_topic, [b"a"], 2)
        assert values(reader, 1) == [(2, b"a")]


def test_a_coordinator_that_moves_is_asked_for_again(monkeypatch):
    answers = [
        {"error": "[Error 16] NotCoordinatorError: None", "members": []},
        CoordinatorLoadInProgressError(),
        {"error": None, "members": []},
    ]

    def describe_groups(groups):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {groups[0]: answer}

    admin = SimpleNamespace(describe_groups=describe_groups)
    monkeypatch.setattr(topics, "_admin", lambda options: nullcontext(admin))
    monkeypatch.setattr(topics.time, "sleep", lambda seconds: None)
    assert topics.members("g", {}) == []
    assert not answers


def test_a_topic_is_read_from_offsets_to_offsets(broker):
    broker.create_topic("t", partitions=3)
    for partition in (0, 1):
        produce(broker, "t", [b"%d" % number for number in range(1200)], partition)
    broker.delete_records("t", 1, 700)
    with Reader("t", broker.client_args) as reader:
        assert reader.ends() == {0: 1200, 1: 1200, 2: 0}
        actual = list(reader.read({0: 1100, 1: 1200}, {0: 1000, 1: 3}))
        produce(broker, "t", [b"later"], 1)
        again = list(reader.read({0: 2}))
        assert reader._consumer.position(TopicPartition("t", 1)) == 1200  # which was not asked for
        with pytest.raises(ConsumerError, match="t cannot be read to its end"):
            list(reader.read({2: 1}, seconds=0.01))
    for partition, offsets in ((0, range(1000, 1100)), (1, range(700, 1200))):
        mine = [m for m in actual if m.position.partition == partition]
        assert [m.position.offset for m in mine] == list(offsets)
        assert [m.value for m in mine] == [b"%d" % number for number in offsets]
    assert [m.position.offset for m in again] == [0, 1]


def test_what_no_topic_can_be_called_is_refused_before_a_broker_is_asked():
    with pytest.raises(ParameterError, match="'a b' is no name of a topic, which has up to 249"):
        Reader("a b", {"bootstrap_servers": "127.0.0.1:1"})


def test_a_log_that_ends_before_what_was_read_is_not_read_again(broker):
    """As one that is truncated meanwhile: kafka-python goes back to the first offset."""
    broker.create_topic("t")
    produce(broker, "t", [b"%d" % n for n in range(10)])
    with Reader("t", broker.client_args) as reader:
        rest = reader.read({0: 20}, {0: 15})
        with pytest.raises(ConsumerError, match="t:0 was read up to 15, and is another log now"):
            next(rest)


@pytest.mark.parametrize("ends", [{1: 1200}, {1: 600}, {0: 600, 2: 0}])
def test_a_topic_is_read_while_another_read_of_it_waits(broker, ends):
    """Of partitions that the first does not read, or of the same."""
    broker.create_topic("t", partitions=3)
    for partition in (0, 1):
        produce(broker, "t", [b""] * 1200, partition)
    with Reader("t", broker.client_args) as reader:
        first = reader.read({0: 1200})
        offsets = [next(first).position.offset]
        inner = [m.position.offset for m in reader.read(ends)]
        offsets += [m.position.offset for m in first]
    assert inner == [*range(max(ends.values()))]
    assert offsets == [*range(1200)]


@pytest.mark.parametrize(("offset", "expected"), [(4, 4), (5, None), (6, 6), (8, None)])
def test_where_an_offset_has_no_message_there_is_none(monkeypatch, offset, expected):
    """Offset 5 was compacted away, 7 and 8 are the ends of transactions."""
    reader = object.__new__(Reader)
    reader.topic = "t"
    reader._consumer = SimpleNamespace(
        beginning_offsets=lambda places: dict.fromkeys(places, 4),
        assign=lambda places: None,
        seek=lambda place, at: None,
        position=lambda place: 9,
    )
    left = [Message(Position("t", 0, at), None, b"") for at in (4, 6) if at >= offset]
    monkeypatch.setattr(Reader, "poll", lambda self, seconds: iter(left))
    message = reader.at(0, offset)
    assert (message and message.position.offset) == expected


def test_a_message_is_sent_with_its_key_and_headers(broker):
    broker.create_topic("t", partitions=2)
    with Producer(broker.client_args) as producer:
        producer.send(Outgoing("t", b"k", b"v", [("a", b"1"), ("a", b"2")], 1))
        producer.send(Outgoing("t", b"k", None, [], 1))
        producer.send(Outgoing("t", None, b"plain", [], 1))
        producer.flush()
    assert producer.confirmed == 3
    first, second, third = consume(broker, "t", 3)
    assert (first.partition, first.key, first.value) == (1, b"k", b"v")
    assert list(first.headers) == [("a", b"1"), ("a", b"2")]
    assert (second.key, second.value) == (b"k", None)
    assert (third.key, third.value, list(third.headers)) == (None, b"plain", [])


@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy", "zstd"])
def test_what_is_compressed_can_be_read_with_the_extra_alone(broker, codec):
    broker.create_topic("t")
    with Producer({**broker.client_args, "compression_type": codec}) as producer:
        for number in range(100):
            producer.send(Outgoing("t", None, b"%03d" % number * 50, []))
        producer.flush()
    with Reader("t", broker.client_args) as reader:
        actual = [message.value for message in reader.read(reader.ends())]
    assert actual == [b"%03d" % number * 50 for number in range(100)]


def test_a_topic_that_is_missing_is_named(broker):
    with Reader("nosuch", broker.client_args) as reader:
        assert reader.partitions == []
        with pytest.raises(ConsumerError, match="there is no topic nosuch"):
            reader.require()
    broker.create_topic("t", 2)
    with Reader("t", broker.client_args) as reader:
        reader.require(1)
        with pytest.raises(ConsumerError, match="t has no partition 2, it has 2: give one below"):
            reader.require(2)


class Holey(Reader):
    """Two partitions, most of whose offsets have no message."""

    def __init__(self, offsets):
        self.offsets, self.reads = offsets, 0

    def beginnings(self):
        return dict.fromkeys(self.offsets, 5)

    def ends(self):
        return dict.fromkeys(self.offsets, 100)

    def read(self, ends, beginnings=None, seconds=30):
        self.reads += 1
        for number, end in ends.items():
            for offset in self.offsets[number]:
                if beginnings[number] <= offset < end:
                    yield Message(Position("t", number, offset), None, b"", timestamp=offset)


@pytest.mark.parametrize(
    ("start", "partition", "expected", "reads"),
    [
        (None, None, [9, 40, 41], 3),
        ("latest", None, [41, 60, 99], 4),
        (None, 1, [9, 41, 60], 4),
        ("latest", 0, [40, 99], 4),  # all that there are
    ],
)
def test_a_sample_looks_past_offsets_without_messages(start, partition, expected, reads):
    reader = Holey({0: [40, 99], 1: [9, 41, 60]})
    assert [one.position.offset for one in reader.sample(3, start, partition)] == expected
    assert reader.reads == reads
    assert Holey({0: [], 1: []}).sample(3) == []


def test_what_topics_are_configured_by_is_asked_for_in_haste_by_one_client(monkeypatch):
    """A takeover waits for it, and who stops the worker waits for that."""
    made, asked = [], []

    class Admin:
        DEFAULT_CONFIG = KafkaAdminClient.DEFAULT_CONFIG

        def __init__(self, **options):
            made.append(options)

        def describe_configs(self, resources, config_filter):
            asked.append([one.name for one in resources])
            if len(asked) > 2:
                raise KafkaConnectionError
            policy = {"cleanup.policy": {"value": "compact"}, "none": {"value": None}}
            return {"topic": {one.name: policy for one in resources}}

        def close(self):
            pass

    monkeypatch.setattr(topics.kafka, "KafkaAdminClient", Admin)
    wanted = {name: {"cleanup.policy": "compact"} for name in ("t", "l", "out")}
    options = {"bootstrap_servers": "b:1", "request_timeout_ms": 30_000}
    assert topics.configs([["t", "l"], ["out"]], options) == wanted
    assert asked == [["t", "l"], ["out"]]
    [given] = made
    assert given["bootstrap_timeout_ms"] == given["request_timeout_ms"] == 5000
    assert topics.configs([["t"]], options) == {}
