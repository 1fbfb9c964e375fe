"""drift's clients and test tools on a real broker."""

import json
import os
import re
import signal
import threading
import time
import uuid

import pytest

from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.consumers.dead_letters import dead_letter
from drift.consumers.json_codec import JsonCodec
from drift.consumers.keyed_models import KeyedModels
from drift.consumers.records import Message, Outgoing, Position
from drift.consumers.replay import Replay
from drift.errors import ConsumerError, UnavailableError
from drift.models import LBP
from drift.models._state.codec import encode
from drift.testing import consume, produce
from tests.consumers.stepping import close, kill, learner_of, run, until
from tools.kafka import broker as tool

pytest.importorskip("kafka")

import kafka

from drift.consumers.client.producer import Producer
from drift.consumers.client.topics import Reader, create, members
from drift.consumers.client.workarounds import join_again
from drift.consumers.worker import Worker

pytestmark = pytest.mark.kafka

COUNT = 10_000
LOG_TIME = {"message.timestamp.type": "LogAppendTime"}
EXAMPLE = b'{"features": {"a": %d}, "label": %d}'


def values(partition):
    return [f"{partition}-{number}".encode() for number in range(COUNT // 2)]


class Group:
    """Workers that save only when they are told, on a topic of which a plain loop learns, too."""

    def __init__(self, address, topic, folder):
        self.address, self.topic, self.folder = address, topic, folder
        self.out, self.place = f"{topic}.out", (topic, 0)
        self.model, self.count = LBP(budget=9), 0

    def worker(self, **consumer):
        given = {"heartbeat_interval_ms": 200}
        options = WorkerOptions(
            topic=self.topic,
            group=self.topic,
            start="earliest",
            predictions=self.out,
            checkpoint_every=10**6,
            checkpoint_seconds=10**6,
        )
        folder, kafka = CheckpointFolder(self.folder), {"bootstrap_servers": self.address}
        return Worker(LBP(budget=9), folder, kafka, options, consumer=given | consumer)

    def send(self, count):
        texts = []
        for n in range(self.count, self.count + count):
            x, y = {"a": n % 7 - 3.0, "b": n % 3}, n % 5 > 2
            self.model.learn_one(x, y)
            texts.append(json.dumps({"features": x, "label": y}).encode())
        produce(self.address, self.topic, texts, 0)
        self.count += count

    def learn(self, one, *others):
        """Step until one of them has learnt all that was sent."""

        def has_learnt():
            for other in others:
                other.step(0.1)
            return learner_of(one) and learner_of(one).offsets.get(self.place) == self.count

        until(one, has_learnt)

    def rebalance(self, one, *standbys):
        """Step until they have agreed anew; the one that learns keeps its model."""
        [assignor] = one._consumer._options["partition_assignment_strategy"]
        agreed, learner = assignor._led, learner_of(one)

        def has_agreed():
            for standby in standbys:
                standby.step(0.1)
            assert learner_of(one) is learner
            return assignor._led > agreed

        until(one, has_agreed)

    def learning_and_standby(self, **given):
        """Return a worker that has learnt since its last checkpoint, and a standby."""
        one, other = (self.worker(**given) for _ in range(2))
        self.send(20)
        self.learn(one)
        self.rebalance(one, other)
        one._save_new()
        self.send(20)
        self.learn(one, other)
        return one, other

    def assert_exact(self):
        """The checkpoint is the plain loop's; return how many predictions were sent again."""
        newest = CheckpointFolder(self.folder).newest((self.topic, None))
        assert newest.offsets == {self.place: self.count, (self.topic, 1): 0}
        assert encode(newest.model) == encode(self.model)
        sent = [key.decode() for key in keys(self.address, self.out)]
        assert set(sent) == {f"{self.topic}:0:{n}" for n in range(self.count)}
        return len(sent) - self.count


@pytest.fixture
def group(kafka_address, kafka_topic, tmp_path):
    return Group(kafka_address, kafka_topic, tmp_path)


def test_a_worker_keeps_its_model_while_standbys_come_and_go(group):
    one, first, second = (group.worker() for _ in range(3))
    group.send(20)
    group.learn(one)
    epoch = learner_of(one).epoch
    group.rebalance(one, first)
    group.rebalance(one, first, second)
    group.send(20)
    group.learn(one, first, second)
    close(first)
    group.rebalance(one, second)
    assert one.metrics.taken_over == 2  # of two partitions, once
    assert first.metrics.partitions == second.metrics.partitions == 0
    close(one)
    group.send(20)
    group.learn(second)
    assert learner_of(second).epoch == epoch + 1
    close(second)
    assert group.assert_exact() == 0


def test_a_standby_goes_on_from_the_checkpoint_of_a_worker_that_was_killed(group):
    one, other = group.learning_and_standby()
    kill(one)
    group.learn(other)
    close(other)
    group.assert_exact()


@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_worker_that_comes_back_too_late_saves_nothing(group, is_frozen, caplog):
    """Whether it was frozen or was amid a message for longer than it may be silent."""
    given = {"session_timeout_ms": 3000} if is_frozen else {"max_poll_interval_ms": 5000}
    one, other = group.learning_and_standby(**given)
    learner, coordinator = learner_of(one), one._consumer.consumer._coordinator
    if is_frozen:
        coordinator._disable_heartbeat()
    group.learn(other)
    assert learner_of(other).epoch == learner.epoch + 1
    assert learner_of(one) is learner
    one._save_new()
    assert learner_of(one) is None
    assert "claimed again since" in caplog.text
    if is_frozen:
        coordinator._enable_heartbeat()
    group.send(20)
    group.learn(other, one)
    close(one)
    other._save_new()  # unless the other one has claimed once more, before it knew
    group.learn(other)
    close(other)
    group.assert_exact()


def test_what_a_transaction_gave_up_is_not_learnt(kafka_address, kafka_topic, tmp_path):
    producer = pytest.importorskip("confluent_kafka").Producer(
        {"bootstrap.servers": kafka_address, "transactional.id": kafka_topic}
    )
    producer.init_transactions()
    for committed in (True, False, True):
        producer.begin_transaction()
        for number in range(5):
            producer.produce(kafka_topic, EXAMPLE % (number, committed), partition=0)
        producer.flush()
        producer.commit_transaction() if committed else producer.abort_transaction()
    one = Worker(
        LBP(budget=9),
        CheckpointFolder(tmp_path),
        {"bootstrap_servers": kafka_address},
        WorkerOptions(topic=kafka_topic, group=kafka_topic, start="earliest"),
    )
    place = kafka_topic, 0
    until(one, lambda: learner_of(one) and learner_of(one).offsets.get(place, 0) >= 18)
    assert learner_of(one).offsets[place] == 18  # five messages and a mark, three times
    assert learner_of(one).metrics.examples == 10
    # An open one holds back its own partition alone.
    producer.begin_transaction()
    producer.produce(kafka_topic, EXAMPLE % (5, True), partition=0)
    producer.flush()
    produce(kafka_address, kafka_topic, [EXAMPLE % (n, True) for n in range(20)], 1)
    until(one, lambda: learner_of(one).offsets[kafka_topic, 1] == 20)
    produce(kafka_address, kafka_topic, [EXAMPLE % (n, True) for n in range(20)], 0)
    produce(kafka_address, kafka_topic, [EXAMPLE % (n, True) for n in range(20)], 1)
    until(one, lambda: learner_of(one).offsets[kafka_topic, 1] == 40)
    assert learner_of(one).offsets[place] == 18
    producer.commit_transaction()
    until(one, lambda: learner_of(one).metrics.examples == 71)
    assert one.metrics.forced_steps() == 0
    close(one)


def test_who_is_left_has_the_models_of_keys_of_who_is_killed(kafka_address, kafka_topic, tmp_path):
    """Two workers share the partitions until one goes without a word; none is lost or doubled."""
    places = {(kafka_topic, 0), (kafka_topic, 1)}
    learnt = {place: {f"{place[1]}-{n}": LBP(budget=3) for n in range(5)} for place in places}

    def send(first, count):
        for place, models in learnt.items():
            made = []
            for n in range(first, first + count):
                key, x, y = f"{place[1]}-{n % 5}", {f"w{n % 7}": 1.0, "b": n % 3}, n % 4 > 1
                models[key].learn_one(x, y)
                made.append(json.dumps({"key": key, "features": x, "label": y}).encode())
            produce(kafka_address, kafka_topic, made, place[1])

    def make():
        return Worker(
            LBP(budget=3),
            CheckpointFolder(tmp_path),
            {"bootstrap_servers": kafka_address},
            WorkerOptions(
                topic=kafka_topic,
                group=kafka_topic,
                start="earliest",
                prior=False,
                max_models=4,
                checkpoint_every=20,
            ),
            codec=JsonCodec(key="key"),
            consumer={"heartbeat_interval_ms": 100},
        )

    def offsets(*workers):
        claims = [claim for one in workers for claim in one._claims.values()]
        return {place: at for claim in claims for place, at in claim.learner.offsets.items()}

    one, other = make(), make()

    def both(done):
        def step():
            other.step(0.1)
            return done()

        until(one, step)

    both(lambda: len(one._claims) == len(other._claims) == 1)
    send(0, 50)
    both(lambda: offsets(one, other) == dict.fromkeys(places, 50))
    kill(other)
    send(50, 25)
    until(one, lambda: offsets(one) == dict.fromkeys(places, 75))
    close(one)
    folder = CheckpointFolder(tmp_path)
    for place, models in learnt.items():
        epoch, newest = folder.claim(place)
        assert newest.offsets == {place: 75}
        found = KeyedModels(ModelStore(folder.folder(place), epoch, newest.models), 9)
        assert {key: encode(found.get(key)) for key in models} == {
            key: encode(model) for key, model in models.items()
        }
        assert found.count == len(models)
        found.close()


def test_a_member_whose_name_is_taken_gets_an_error(kafka_address, kafka_topic, member):
    options = {
        "bootstrap_servers": kafka_address,
        "group_id": kafka_topic,
        "group_instance_id": "one",
        "heartbeat_interval_ms": 200,
    }
    first, second = (member(options, kafka_topic) for _ in range(2))
    end = time.monotonic() + 60
    for one in (first, second):
        while not one.assignment.places:
            assert time.monotonic() < end
            list(one.poll(0.2))

    def poll_on():
        while time.monotonic() < end:
            list(first.poll(0.2))

    with pytest.raises(ConsumerError, match="another worker has joined the group as one"):
        poll_on()
    list(second.poll(0.2))


def test_kafka_python_does_not_tell_a_member_whose_name_is_taken(kafka_address, kafka_topic):
    made = [
        kafka.KafkaConsumer(
            kafka_topic,
            bootstrap_servers=kafka_address,
            group_id=kafka_topic,
            group_instance_id="one",
            heartbeat_interval_ms=200,
            metadata_max_age_ms=1_000,  # a topic that is not known yet gives no assignment
        )
        for _ in range(2)
    ]
    end = time.monotonic() + 60
    for one in made:
        while not one.assignment():
            assert time.monotonic() < end
            join_again(one)  # without which it may wait for ever, by another fault of its client
            one.poll(timeout_ms=200)
    coordinator = made[0]._coordinator
    while coordinator._heartbeat_enabled:
        assert time.monotonic() < end
        made[0].poll(timeout_ms=200)
    for _ in range(3):
        made[0].poll(timeout_ms=200)
    assert made[0].assignment()
    for one in made:
        one.close()


@pytest.mark.skipif(not tool.fetched(), reason="python tools/kafka/broker.py fetch gets a broker")
@pytest.mark.slow
def test_a_killed_broker_comes_back_with_its_records(tmp_path):
    with tool.Broker(tmp_path) as broker:
        produce(broker.address, "t", values(0))
        address, killed = broker.address, broker.pid
        with pytest.raises(tool.BrokerError, match=r"runs in .* already"):
            tool.Broker(tmp_path).start()
        broker.stop(kill=True)
        assert not tool.answers(broker.port)
        assert broker.start() == address
        assert broker.pid != killed
        records = consume(address, "t", COUNT // 2, timeout=30)
    assert [record.value for record in records] == values(0)
    assert not tool.answers(broker.port)


@pytest.fixture
def two_logs(kafka_address):
    """Two topics with the times of the log, and what makes workers of them."""
    kafka = pytest.importorskip("kafka")
    admin = kafka.KafkaAdminClient(bootstrap_servers=kafka_address)
    name = f"drift-test-{uuid.uuid4().hex}"
    topics = [name, f"{name}-labels"]

    def make(folder, **configs):
        made = Worker(
            LBP(9),
            CheckpointFolder(folder),
            {"bootstrap_servers": kafka_address, "metadata_max_age_ms": 500},
            WorkerOptions(topic=name, group=name, start="earliest", labels=topics[1]),
        )
        made.step(0.1)  # it waits for them
        wanted = {"num_partitions": 1, "replication_factor": 1, "configs": LOG_TIME | configs}
        admin.create_topics({topic: dict(wanted) for topic in topics}, wait_for_metadata=True)
        return made

    yield admin, topics, make
    admin.delete_topics(topics)
    admin.close()


def test_labels_are_learnt_by_the_times_of_the_log_and_one_topic_may_grow(
    kafka_address, two_logs, tmp_path
):
    admin, topics, make = two_logs
    one = make(tmp_path)
    produce(kafka_address, topics[0], [b'{"id": %d, "features": {"a": 1.0}}' % n for n in range(9)])
    produce(kafka_address, topics[1], [b'{"id": %d, "label": true}' % n for n in (7, 3, 7)])
    until(one, lambda: sum(metrics.late["duplicates"] for metrics in one.metrics.models))
    assert [(m.examples, m.unlabelled, m.late["pending"]) for m in one.metrics.models] == [
        (2, 9, 7)
    ]
    admin.create_partitions({topics[1]: 2})
    until(one, lambda: one.metrics.models and len(learner_of(one).offsets) == 3)
    produce(kafka_address, topics[1], [b'{"id": 5, "label": true}'], 1)
    until(one, lambda: one.metrics.models and one.metrics.models[0].examples == 3)
    close(one)
    newest = CheckpointFolder(tmp_path).newest((topics[0], None))
    assert newest.offsets == {(topics[0], 0): 9, (topics[1], 0): 3, (topics[1], 1): 1}
    assert newest.identity.keys() == {"topic_id", "labels_topic_id", "cluster_id", "group"}


def test_topics_that_forget_all_but_the_last_of_a_key_are_refused(two_logs, tmp_path):
    _, topics, make = two_logs
    one = make(tmp_path, **{"cleanup.policy": "compact"})
    with pytest.raises(ConsumerError, match=rf"{topics[0]} is compacted"):
        run(one)


def test_a_topic_that_deletes_what_waits_for_its_label_is_named(two_logs, tmp_path, caplog):
    _, topics, make = two_logs
    one = make(tmp_path, **{"retention.ms": "3600000", "retention.bytes": "9000"})
    until(one, lambda: learner_of(one))
    close(one)
    shown = [text for text in caplog.messages if "at a restart" in text]
    assert len(shown) == 2
    assert shown[0].startswith(f"{topics[0]} keeps messages for 1h (retention.ms), and they wait ")
    assert shown[1].startswith(f"{topics[0]} keeps 9000 bytes of messages in 1 partition (ret")


def test_an_output_that_is_deleted_is_named_before_the_producer_gives_up(
    kafka_address, kafka_topic, caplog
):
    admin = kafka.KafkaAdminClient(bootstrap_servers=kafka_address)
    name = f"{kafka_topic}-out"
    admin.create_topics({name: {"num_partitions": 3}}, wait_for_metadata=True)
    end = time.monotonic() + 30
    with Producer({"bootstrap_servers": kafka_address}) as producer:
        producer.send(Outgoing(name, None, b"{}", []))
        producer.flush()
        admin.delete_topics([name])
        producer.send(Outgoing(name, None, b"{}", []))
        said = f"there is no topic {name}, or this user may not see it: what is sent there is"
        while said not in caplog.text:
            assert time.monotonic() < end
            time.sleep(0.05)
        admin.create_topics({name: {"num_partitions": 3}}, wait_for_metadata=True)
        assert "Create it, with 3 partitions" in caplog.text
    admin.delete_topics([name])
    admin.close()


def test_what_an_output_topic_refuses_is_named(kafka_address, two_logs, tmp_path, monkeypatch):
    """A clock that is hours ahead; and a letter without a key, for a compacted topic."""
    _, topics, make = two_logs
    kill(make(tmp_path, **{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}))
    options = {"bootstrap_servers": kafka_address}
    with Producer(options) as producer:
        producer.send(Outgoing(topics[0], None, b"{}", []))
        with pytest.raises(ConsumerError, match=rf"{topics[0]} refuses .* cleanup.policy=delete"):
            producer.flush()
    ahead = time.time_ns() + 7_200 * 10**9
    monkeypatch.setattr("drift.consumers.client.batches.time.time_ns", lambda: ahead)
    with Producer(options) as producer:
        producer.send(Outgoing(topics[0], b"key", b"{}", []))
        with pytest.raises(
            UnavailableError, match=rf"{topics[0]} refuses .* clock of this machine"
        ):
            producer.flush()


def test_who_is_in_a_group_is_known(kafka_address, kafka_topic, member):
    options = {"bootstrap_servers": kafka_address}
    assert members(kafka_topic, options) == []
    given = {**options, "group_id": kafka_topic, "group_instance_id": "worker-1"}
    one = member(given, kafka_topic)
    end = time.monotonic() + 60
    while not one.assignment.places:
        assert time.monotonic() < end
        list(one.poll(0.2))
    [actual] = members(kafka_topic, options)
    assert re.fullmatch(r"worker-1 at [\d.:a-f]+", actual)


def test_a_log_starts_at_a_time(kafka_address, kafka_topic):
    producer = kafka.KafkaProducer(bootstrap_servers=kafka_address)
    for second in (10, 20, 20, 30):
        producer.send(kafka_topic, b"{}", partition=0, timestamp_ms=1000 * second)
    producer.flush()
    producer.close()
    options = {"bootstrap_servers": kafka_address, "group_id": kafka_topic}
    with Reader(kafka_topic, options) as reader:
        starts = [reader.starts(start)[0] for start in (10, 10.001, 20, 30, 31)]
        assert starts == [0, 1, 1, 3, 4]
        assert reader.starts("earliest") == {0: 0, 1: 0}
        assert reader.starts("latest") == reader.ends() == {0: 4, 1: 0}
        assert reader.committed() == {}
        assert reader.identity().keys() == {"topic_id", "cluster_id"}


# --- outputs ------------------------------------------------------------------------------------

IMPATIENT = {"request_timeout_ms": 1000}


@pytest.fixture
def stop(kafka_broker):
    """Stops the broker for so many seconds, as a machine that is paused; another thread goes on."""
    timers = []

    def stop(seconds):
        os.kill(kafka_broker.pid, signal.SIGSTOP)
        timers.append(threading.Timer(seconds, os.kill, (kafka_broker.pid, signal.SIGCONT)))
        timers[-1].start()

    yield stop
    for timer in timers:
        timer.join()


@pytest.fixture
def stopped_topic(kafka_broker):
    """A topic on the broker that `stop` stops, which `kafka_topic` may not be on."""
    name = f"drift-test-{uuid.uuid4().hex}"
    create(name, 2, {"bootstrap_servers": kafka_broker.address})
    return name


def keys(address, topic):
    with Reader(topic, {"bootstrap_servers": address}) as reader:
        return [message.key for message in reader.read(reader.ends())]


@pytest.mark.slow
@pytest.mark.parametrize("times", [(3, 60_000), (30, 10_000)])
def test_outputs_through_a_stop_are_all_there_in_order(
    kafka_broker, stopped_topic, stop, tmp_path, times
):
    """Each once, unless they expired: then again from a checkpoint on."""
    seconds, delivery = times
    address, out, count = kafka_broker.address, f"{stopped_topic}.out", 3000
    produce(address, stopped_topic, [EXAMPLE % (n, n % 2) for n in range(count)], 0)
    one = Worker(
        LBP(budget=9),
        CheckpointFolder(tmp_path),
        {"bootstrap_servers": address},
        WorkerOptions(
            topic=stopped_topic,
            group=stopped_topic,
            start="earliest",
            predictions=out,
            checkpoint_every=200,
        ),
        consumer={"max_poll_records": 20},
        producer={**IMPATIENT, "delivery_timeout_ms": delivery, "linger_ms": 1},
    )
    until(one, lambda: learner_of(one) and learner_of(one).metrics.examples > 500)
    stop(seconds)
    until(one, lambda: learner_of(one) and learner_of(one).metrics.examples == count, seconds + 60)
    close(one)
    offsets = [int(key.decode().split(":")[-1]) for key in keys(address, out)]
    if delivery > 1000 * seconds:
        assert offsets == list(range(count))
    # A run ends where the worker went back, not behind what had been sent.
    following = 0
    for offset in offsets:
        assert offset <= following
        following = offset + 1
    assert following == count


@pytest.mark.slow
def test_a_replay_through_a_stop_sends_each_message_once(kafka_broker, stopped_topic, stop):
    address, letters = kafka_broker.address, f"{stopped_topic}.dead"
    kafka_options = {"bootstrap_servers": address}
    values = [EXAMPLE % (n, n % 2) for n in range(40)]
    with Producer(kafka_options) as producer:
        for n, value in enumerate(values):
            message = Message(Position(stopped_topic, 0, n), None, value)
            producer.send(dead_letter(message, ValueError("no"), letters))
        producer.flush()
    with (
        Reader(letters, kafka_options) as dead,
        Reader(stopped_topic, kafka_options) as topic,
        Producer({**kafka_options, **IMPATIENT}) as producer,
    ):
        producer.check([stopped_topic])
        for n, (_, outgoing) in enumerate([*Replay(dead, topic)]):
            if n == 5:
                stop(3)
            producer.send(outgoing)
            time.sleep(0.02)  # so that several batches are on their way
        producer.flush()
        assert producer.confirmed == len(values)
        sent = [message.value for message in topic.read(topic.ends())]
    assert sent == values
