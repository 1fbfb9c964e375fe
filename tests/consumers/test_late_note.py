"""What is said of late labels: if none has found its features, or a topic does not keep them."""

import json
import logging
import math

import pytest

from drift.consumers.checkpoints.checkpoint import Checkpoint, from_bytes, to_bytes
from drift.consumers.codec import Codec, Example
from drift.consumers.json_codec import JsonCodec
from drift.consumers.late import LateLearner, check_configs
from drift.consumers.metrics import Metrics
from drift.consumers.options import WorkerOptions
from drift.consumers.preparing import warn_of_compaction
from drift.consumers.records import Message, Position
from drift.models import LBP

SHAPE = JsonCodec(label="fraud", id="order.id", labels={"id": "ref"}, allow_empty=True)


class Own(Codec):
    def decode(self, value, headers=()):
        body = json.loads(value)
        return Example({}, None, body["order"]["id"])

    def decode_label(self, value, headers=()):
        body = json.loads(value)
        return Example({}, True, body["ref"])

    def encode(self, example):
        raise NotImplementedError


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("drift.consumers.unmatched.monotonic", lambda: now[0])
    return now


def new_learner(codec, **given):
    options = WorkerOptions(topic="orders", group="g", labels="frauds", **given)
    return LateLearner(LBP(9), codec, Metrics("orders", None), options)


def feed(learner, topic, offset, body, time=5):
    value = json.dumps(body).encode()
    learner.take(Message(Position(topic, 0, offset), None, value, (), time))


def warnings_of(learner, caplog):
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        learner.note()
    return caplog.messages


@pytest.mark.parametrize(
    ("codec", "shown"),
    [
        (SHAPE, ("'a7' at 'order.id'", "'A-7' at 'ref'")),
        (Own(), ("'a7'", "'A-7'")),
    ],
)
def test_labels_without_features_are_reported_with_the_place_of_the_ids(
    clock, caplog, codec, shown
):
    learner = new_learner(codec)
    feed(learner, "orders", 0, {"order": {"id": "a7"}})
    feed(learner, "frauds", 0, {"ref": "A-7", "fraud": True})
    clock[0] += 30
    assert warnings_of(learner, caplog) == []
    clock[0] += 1
    [line] = warnings_of(learner, caplog)
    assert line == (
        f"no label has found its features for 30 s: the first message of orders has the id "
        f"{shown[0]} and the time 1970-01-01T00:00:00+00:00, the first message of frauds has the "
        f"id {shown[1]} and the time 1970-01-01T00:00:00+00:00. Is that the same id? [codec] and "
        "[codec.labels] say where it is"
    )
    assert warnings_of(learner, caplog) == []  # once


def test_where_the_ids_are_the_same_the_times_are_named(clock, caplog):
    """As where one producer sends seconds: its features have expired before their label."""
    learner = new_learner(SHAPE, timestamps="create", grace=5)
    feed(learner, "frauds", 0, {"ref": "a7", "fraud": True}, time=1_800_000_000)
    feed(learner, "orders", 0, {"order": {"id": "a7"}}, time=1_800_000_000_000)
    feed(learner, "frauds", 1, {"ref": "b", "fraud": True}, time=10**17)
    clock[0] += 31
    [line] = warnings_of(learner, caplog)
    assert "orders has the id 'a7' at 'order.id' and the time 2027-01-15T08:00:00+00:00" in line
    assert (
        "frauds has the id 'a7' at 'ref' and the time 1970-01-21T20:00:00+00:00. The id is the"
        in line
    )
    assert "or sends seconds for milliseconds" in line


def test_there_is_no_warning_if_labels_find_features_or_no_features_came(clock, caplog):
    learner = new_learner(SHAPE)
    feed(learner, "frauds", 0, {"ref": "b", "fraud": True})
    clock[0] += 99
    assert warnings_of(learner, caplog) == []
    feed(learner, "orders", 0, {"order": {"id": "b"}})
    feed(learner, "orders", 1, {"order": {"id": "c"}})
    clock[0] += 99
    assert warnings_of(learner, caplog) == []
    assert learner.metrics.examples == 1


def test_a_label_beside_features_is_named_once(caplog):
    learner = new_learner(JsonCodec())
    for offset in range(3):
        label = {} if offset == 0 else {"label": True}
        feed(learner, "orders", offset, {"id": offset, "features": {}, **label})
    [line] = caplog.messages
    assert line.startswith("orders:0:1 has a label, which is ignored, as labels come from frauds:")


def test_no_error_is_shown_before_a_label_has_come():
    learner = new_learner(SHAPE)
    feed(learner, "orders", 0, {"order": {"id": "a"}})
    learner.note()
    known = learner.metrics.known()
    assert (known["examples"], known["unlabelled"], known["pending"]) == (0, 1, 1)
    assert not {"mistakes", "windowed_error", "windowed_label_latency_seconds"} & set(known)
    assert "no label yet" in learner.metrics.line()
    assert math.isnan(learner.metrics.windowed_error)
    feed(learner, "frauds", 0, {"ref": "a", "fraud": True}, time=2005)
    learner.note()
    known = learner.metrics.known()
    assert (known["mistakes"], known["windowed_error"]) == (1, 1)
    assert known["windowed_label_latency_seconds"] == 2
    assert "no label yet" not in learner.metrics.line()


def test_what_becomes_of_features_and_labels_is_counted():
    given = {"max_age": 9, "grace": 1, "silence": False, "after": 5, "correct_for": 3, "pending": 3}
    learner = new_learner(JsonCodec(), **given)

    def features(offset, name, time):
        feed(learner, "orders", offset, {"features": {"a": 1}, "id": name}, 1000 * time)

    def label(offset, name, label, time):
        feed(learner, "frauds", offset, {"id": name, "label": label}, 1000 * time)

    for offset, name in enumerate("abcd"):  # there is room for three of them
        features(offset, name, 10)
    label(0, "b", True, 11)
    label(1, "b", True, 11)
    label(2, "nobody", True, 12)
    features(4, "e", 14)
    features(5, "b", 14)
    label(3, "e", False, 16)  # c and d have been silent by now
    label(4, "c", True, 17)
    learner.note()
    wanted = {
        "orphans": 1,
        "duplicates": 1,
        "repeated": 1,
        "expired": 0,
        "evicted": 1,
        "silent": 2,
        "corrected": 1,
        "pending": 0,
    }
    assert {name: learner.metrics.known()[name] for name in wanted} == wanted
    assert learner.metrics.examples == 4  # b, c and d as silent ones, and e


def test_a_label_that_waits_is_in_a_checkpoint():
    learner = new_learner(JsonCodec())
    feed(learner, "frauds", 0, {"id": "a", "label": True})
    data = to_bytes(Checkpoint(learner.model, learner.offsets, join=learner.join_state()()))
    other = new_learner(JsonCodec())
    other.restore(from_bytes(data))
    feed(other, "orders", 0, {"id": "a", "features": {"b": 1}})
    assert (other.metrics.examples, other.join.counts["learnt"]) == (1, 1)


DAY = 86_400_000  # in milliseconds
GONE = ": at a restart those that it needs may be gone, which ends a worker. Set "
SHORT = (
    "orders keeps messages for 7d (retention.ms), and they wait for a label for 14d (max_age)"
    f"{GONE}retention.ms of orders to more than 1209600000"
)
SHORT_FOR_SILENCE = (
    "orders keeps messages for 120d (retention.ms), and they wait for a label for 120d (after and "
    f"correct_for){GONE}retention.ms of orders to more than 10368000000"
)
SMALL = (
    "orders keeps 3000 bytes of messages in 3 partitions (retention.bytes), and 3001 may wait for "
    f"a label (pending_bytes){GONE}retention.bytes of orders to more than 1000"
)
ONE = (
    "orders keeps 999 bytes of messages in 1 partition (retention.bytes), and 1999 may wait for a "
    f"label (pending_bytes){GONE}retention.bytes of orders to more than 1999"
)
TWO_WEEKS = {"max_age": 14 * 86_400.0}
SILENCE = {"silence": False, "after": 30 * 86_400.0, "correct_for": 90 * 86_400.0}


@pytest.mark.parametrize(
    ("given", "config", "said"),
    [
        (TWO_WEEKS, {"retention.ms": f"{7 * DAY}"}, [SHORT]),
        (SILENCE, {"retention.ms": f"{120 * DAY}"}, [SHORT_FOR_SILENCE]),
        ({"pending_bytes": 3001}, {"retention.bytes": "1000"}, [SMALL]),
        ({"pending_bytes": 1999, "partition": 2}, {"retention.bytes": "1999"}, []),
        ({"pending_bytes": 1999, "partition": 2}, {"retention.bytes": "999"}, [ONE]),
        (TWO_WEEKS, {"retention.ms": f"{14 * DAY + 1}"}, []),
        ({"pending_bytes": 3000}, {"retention.ms": "-1", "retention.bytes": "1000"}, []),
        ({}, {"retention.bytes": "-1", "cleanup.policy": "delete"}, []),
        ({}, {}, []),  # the broker does not say it
    ],
)
def test_a_topic_that_does_not_keep_what_waits_is_named(caplog, given, config, said):
    options = WorkerOptions(topic="orders", group="g", labels="frauds", **given)
    # What waits of the labels is in the checkpoint.
    check_configs({"orders": config, "frauds": {"retention.ms": "1"}}, options, 3)
    assert caplog.messages == said


@pytest.mark.parametrize("size", ["-1", "1"])
def test_of_a_topic_without_known_partitions_no_size_is_named(caplog, size):
    options = WorkerOptions(topic="orders", group="g", labels="frauds")
    check_configs({"orders": {"retention.bytes": size}}, options, 0)
    assert not caplog.messages


def test_topics_that_lose_what_is_read_or_sent_are_named(caplog):
    compacted = {"cleanup.policy": "compact,delete"}
    given = {"topic": "orders", "group": "g", "predictions": "out", "dead_letters": "dead"}
    configs = {"orders": compacted, "out": {"cleanup.policy": "delete"}, "dead": compacted}
    warn_of_compaction(configs, WorkerOptions(**given))
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("orders is compacted: of messages with one key only the last stays")
    assert second.startswith("dead is compacted: of what is sent there with one key only the last")
    caplog.clear()
    warn_of_compaction({}, WorkerOptions(**given))
    assert not caplog.records
