"""Brokers for the tests of consumers."""

import importlib
import logging
import os
import uuid

import pytest

from drift.consumers.assignment import Assignment
from drift.consumers.checkpoints import keyed_file
from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.testing import MockKafka
from tests.consumers.s3 import Store
from tools.kafka import broker as tool
from tools.kafka.security import SecureBroker

#: The broker of this process, once it has been started.
BROKER = pytest.StashKey()


@pytest.fixture(autouse=True)
def _unsynced(monkeypatch):
    """Leave files to the system's memory: no test takes the power away."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(keyed_file, "_SYNCHRONOUS", "off")


@pytest.fixture
def caplog(caplog, request):
    """What drift says: threads of clients that earlier tests left may say something at any time."""
    ours = logging.Filter("" if request.node.get_closest_marker("kafka") else "drift")
    caplog.handler.addFilter(ours)
    yield caplog
    caplog.handler.removeFilter(ours)


@pytest.fixture
def member():
    """Makes members of a group that no worker has, closed after the test."""
    pytest.importorskip("kafka")
    consumer = importlib.import_module("drift.consumers.client.consumer")
    made = []

    def make(options, topic="t", **more):
        assignment = Assignment()
        made.append(
            consumer.GroupConsumer(
                [topic],
                {"group_id": "g", **options},
                assignment,
                leave=lambda: None,
                lose=assignment.revoke,
                **more,
            )
        )
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def stores(monkeypatch):
    """Closes the files of models after the test, also those of killed workers."""
    opened, init = [], ModelStore.__init__

    def noted(self, *given, **more):
        opened.append(self)
        init(self, *given, **more)

    monkeypatch.setattr(ModelStore, "__init__", noted)
    yield
    for one in opened:
        if hasattr(one, "_db"):
            one.close()


@pytest.fixture
def broker(monkeypatch):
    """A cluster inside the process, whose clients need not wait for it, nor for other members."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    kafka = pytest.importorskip("kafka.cluster", reason="kafka-python is not installed")
    monkeypatch.setitem(kafka.ClusterMetadata.DEFAULT_CONFIG, "retry_backoff_ms", 5)
    # It answers a fetch that finds nothing after this time, whatever comes meanwhile, and all that
    # is asked on the same connection behind it.
    consumer = importlib.import_module("drift.consumers.client.consumer")
    monkeypatch.setitem(consumer.DEFAULTS, "fetch_max_wait_ms", 10)
    with MockKafka(rebalance_delay=0.01) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _kafka_broker(tmp_path_factory):
    with SecureBroker(tmp_path_factory.mktemp("kafka")) as started:
        yield started


@pytest.fixture
def kafka_broker(request):
    """A real Kafka broker that starts here, where its jars have been fetched.

    One for all tests, as to start it takes longer than they do. After the last of them it stops, as
    one that is idle takes a twentieth of a core.
    """
    if not tool.fetched():
        pytest.skip("no Kafka: python tools/kafka/broker.py fetch")
    broker = request.getfixturevalue("_kafka_broker")
    if broker.pid is None:  # it had stopped, and another process left some tests to this one
        broker.start()
    request.config.stash[BROKER] = broker
    return broker


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Stop the broker after the last test that needs it."""
    yield
    if BROKER in item.config.stash and not (nextitem and nextitem.get_closest_marker("kafka")):
        item.config.stash[BROKER].stop()


@pytest.fixture
def kafka_address(request):
    """Where a real Kafka broker answers: DRIFT_KAFKA's, else the one that starts here."""
    return os.environ.get("DRIFT_KAFKA") or request.getfixturevalue("kafka_broker").address


@pytest.fixture
def kafka_topic(kafka_address):
    """A topic of its own of two partitions on the real broker, gone after the test."""
    name = f"drift-test-{uuid.uuid4().hex}"
    admin = pytest.importorskip("kafka").KafkaAdminClient(bootstrap_servers=kafka_address)
    wanted = {"num_partitions": 2, "replication_factor": 1}
    wanted["configs"] = {"retention.ms": "-1"}  # some records have times of 1970
    admin.create_topics({name: wanted}, wait_for_metadata=True)
    yield name
    admin.delete_topics([name])
    admin.close()


@pytest.fixture(scope="session")
def s3():
    """A store that speaks S3, inside the process."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    with Store() as store, pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment.items():
            patch.setenv(name, value)
        yield store


@pytest.fixture
def bucket(s3):
    """A bucket of that store, which is empty, and the store well, again after the test.

    One for all tests, as a client of another takes as long as a test.
    """
    yield "s3://bucket/root"
    s3.objects.clear()
    s3.lose, s3.delay, s3.answers = 0.0, 0.0, None
