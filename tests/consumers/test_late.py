"""A worker whose labels come later, on a topic of their own, on the broker inside the process."""

import json
import random

import pytest

from drift.consumers import CheckpointFolder, WorkerOptions, relearn
from drift.consumers.checkpoints.journal import read_order
from drift.models import Tracker
from drift.models._state.codec import encode
from tests.consumers.stepping import close, until
from tests.consumers.test_worker import SHORT, kill

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from kafka import KafkaProducer

from drift.consumers.client.topics import Reader
from drift.consumers.worker import Worker

PAIRS, LATE = 300, 40
ALL = ("t", None)


@pytest.fixture
def topics(broker):
    """Features in two partitions, labels in three, 40 examples later, by keys of their own."""
    for name, count in (("t", 2), ("labels", 3), ("out", 1)):
        broker.create_topic(name, count)
    rng = random.Random(0)
    producer = KafkaProducer(**broker.client_args, linger_ms=60_000)
    for n in range(PAIRS + LATE):
        if n < PAIRS:
            features = {f"x{k}": rng.gauss(0, 1) for k in range(4)}
            value = json.dumps({"id": n, "features": features, "y": sum(features.values()) > 0})
            producer.send("t", value.encode(), partition=rng.randrange(2), timestamp_ms=10_000 * n)
        if n >= LATE:
            label = {"id": n - LATE, "label": (n - LATE) * 7 % 3 == 0}
            at = 10_000 * n + 1
            producer.send(
                "labels", json.dumps(label).encode(), partition=n * n % 3, timestamp_ms=at
            )
    producer.flush()
    producer.close()
    return broker


def options(**more):
    return WorkerOptions(
        topic="t",
        group="g",
        labels="labels",
        timestamps="create",
        start="earliest",
        predictions="out",
        checkpoint_every=70,
        **more,
    )


def worker(broker, folder, **more):
    consumer = {
        "session_timeout_ms": SHORT,
        "heartbeat_interval_ms": 200,
        "max_poll_records": 50,
    }
    folder = CheckpointFolder(folder)
    return Worker(Tracker(20), folder, broker.client_args, options(**more), consumer=consumer)


def logs(broker):
    found = {}
    for topic in ("t", "labels"):
        with Reader(topic, broker.client_args) as reader:
            for message in reader.read(reader.ends()):
                found.setdefault(message.position[:2], []).append(message)
    return found


def examples(one):
    return one.metrics.models[0].examples if one.metrics.models else 0


@pytest.mark.parametrize("stored", [0, 4 << 20])
@pytest.mark.parametrize("more", [{}, {"silence": True, "after": 300.0, "correct_for": 200.0}])
def test_a_worker_that_is_killed_within_the_delay_learns_each_label_once(
    topics, tmp_path, monkeypatch, stored, more
):
    monkeypatch.setattr("drift.consumers.join.STORED", stored)
    one = worker(topics, tmp_path, **more)
    until(one, lambda: examples(one) > 100)
    assert one._learner.join.pending > 10
    kill(one)
    other = worker(topics, tmp_path, **more)
    until(other, lambda: other._learner and sum(other._learner.offsets.values()) == 2 * PAIRS)
    close(other)
    newest = CheckpointFolder(tmp_path).newest(ALL)
    assert newest.metrics["examples"] == PAIRS
    runs = read_order(CheckpointFolder(tmp_path).folder(ALL), newest.id)
    learner, sent = relearn(Tracker(20, late=True), logs(topics), runs, options(**more))
    assert encode(learner.model) == encode(newest.model)
    predicted = {}
    with Reader("out", topics.client_args) as reader:
        for message in reader.read(reader.ends()):
            predicted.setdefault(message.key, json.loads(message.value)["predicted"])
    assert predicted == {one.key: json.loads(one.value)["predicted"] for one in sent}
    assert newest.metrics["unlabelled"] == PAIRS
