"""The worker against the broker inside the process: each example exactly once."""

import errno
import json
import os
import platform
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from drift.consumers import CheckpointFolder, WorkerOptions, alarms, relearn
from drift.consumers.checkpoints.checkpoint import from_bytes
from drift.consumers.checkpoints.file_format import load
from drift.consumers.checkpoints.files import ModelFolder
from drift.consumers.checkpoints.journal import read_order
from drift.consumers.codec import Example
from drift.consumers.crash_points import install, remove
from drift.consumers.json_codec import JsonCodec
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.records import Message, Outgoing, Position
from drift.consumers.replay import Replay
from drift.errors import (
    CheckpointError,
    ConsumerError,
    ParameterError,
    UnavailableError,
)
from drift.models import LBP, RBP
from drift.models._state.codec import encode
from drift.testing import Abort, Aborted, Pause, patient_assignor, produce
from tests.consumers.stepping import claim_of, close, kill, learner_of, offsets, run, until
from tests.consumers.twin_order import in_time

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from kafka.errors import KafkaTimeoutError

from drift.consumers.client.assignor import LeadAssignor
from drift.consumers.client.producer import (  # after the check that there is a client
    Producer,
    UnsentError,
)
from drift.consumers.client.topics import Reader
from drift.consumers.fed import FedLearner
from drift.consumers.worker import Worker
from tests.consumers.labelled_logs import LOGS, POISON, Latin, log, loop, values
from tests.consumers.stepping import SESSION
from tests.consumers.topics import everything, hand_over, send, with_topics
from tests.crash_points import CHECKPOINT_POINTS, CLAIM_POINTS

#: With all that is poison, and long enough for three checkpoints and a rest.
BEGUN = {place: messages[:110] for place, messages in LOGS.items()}


def learnt(logs):
    """What a plain loop over logs learns."""
    return loop(tuple(in_time(logs)))[0]


def worker(broker, folder, group="g", session=SESSION, **options):
    # As busy as the machine may be, no partition is waited for in vain.
    given = {"start": "earliest", "predictions": "out", "dead_letters": "dead"}
    given |= options
    checkpoints = CheckpointFolder(folder, keep=3)
    consumer = {"session_timeout_ms": session, "heartbeat_interval_ms": 200}
    consumer |= given.pop("consumer", {})
    producer = given.pop("producer", None)
    one = Worker(
        LBP(budget=9),
        checkpoints,
        broker.client_args,
        WorkerOptions(topic="t", group=group, **given),
        consumer=consumer,
        producer=producer,
    )
    if group.startswith(
        "later"
    ):  # joins at once, where "g" would wait for the session of who was killed
        one._identity = one._consumer.identity
    return one


def follower(broker, folder, **options):
    """A worker that finds what its group would if it was "g"."""
    hand_over(broker, "later")
    return worker(broker, folder, "later", **options)


#: So that a model is learnt in many steps.
SLOWLY = {"max_poll_records": 40}


def work(one, count, limit=600):
    """Step until so many messages are learnt by this worker."""
    taken = 0
    for _ in range(limit):
        taken += one.step(0.1)
        if taken >= count:
            return taken
    raise AssertionError(f"{taken} of {count} messages in {limit} steps")


def finish(one, end=200):
    """Step until both partitions are learnt to their end."""
    until(one, lambda: offsets(one) == {("t", 0): end, ("t", 1): end})
    close(one)


@pytest.fixture
def topics(broker):
    return with_topics(broker, LOGS)


KEY = "t", None


def newest(folder, key=KEY):
    return CheckpointFolder(folder).newest(key)


def assert_exact(folder, logs=LOGS, key=KEY, **options):
    """The newest checkpoint is what a plain loop learns, and what its order and the logs give."""
    found = newest(folder, key)
    assert found.offsets == {place: own[-1].position.offset + 1 for place, own in logs.items()}
    assert encode(found.model) == learnt(logs)
    order = read_order(CheckpointFolder(folder).folder(key), found.id)
    again, _ = relearn(LBP(9), logs, order, WorkerOptions(topic="t", group="g", **options))
    assert encode(again.model) == learnt(logs)
    assert again.metrics.state() == found.metrics


def assert_published(broker, logs=LOGS):
    """Each prediction of a plain loop was sent, whether once or again, and each dead letter."""
    got = {
        (r.key().decode(), json.loads(r.value())["predicted"]) for r in everything(broker, "out")
    }
    assert got == set(loop(tuple(in_time(logs)))[1].items())
    letters = [(dict(one.headers()), one.value()) for one in everything(broker, "dead")]
    assert {(int(h["drift.partition"]), int(h["drift.offset"]), v) for h, v in letters} == {
        (partition, offset, value) for partition in range(2) for offset, value in POISON.items()
    }


def test_all_partitions_are_learnt_as_by_a_plain_loop(topics, tmp_path):
    one = worker(topics, tmp_path)
    work(one, 400)
    [metrics] = one.metrics.models
    assert (metrics.examples, metrics.values()["lag"]) == (400 - 2 * len(POISON), 0)
    close(one)
    assert one.metrics.forced_steps() == 0
    assert_exact(tmp_path)
    assert_published(topics)


def test_a_worker_goes_on_where_the_checkpoint_ends(topics, tmp_path):
    one = worker(topics, tmp_path, checkpoint_every=30, consumer=SLOWLY)
    work(one, 120)
    close(one)
    other = worker(topics, tmp_path, "later", start=None)
    finish(other)
    assert_exact(tmp_path)


FIRST = [*CLAIM_POINTS, "checkpoint.begun", "checkpoint.synced", "checkpoint.recorded"]
THIRD = ["message.taken", "outputs.flushed", *CHECKPOINT_POINTS]


@pytest.mark.parametrize(
    ("point", "count"), [*((point, 1) for point in FIRST), *((point, 3) for point in THIRD)]
)
def test_a_crash_at_any_step_loses_and_doubles_nothing(broker, tmp_path, point, count):
    topics = with_topics(broker, BEGUN)
    # What the worker does not wait for is in no hurry to be sent.
    slow = {"linger_ms": 60_000}
    given = {"checkpoint_every": 50, "producer": slow, "consumer": SLOWLY}
    one = worker(topics, tmp_path, **given)
    with Abort(point, count=count), pytest.raises(Aborted):
        work(one, 10**6)
    kill(one)
    # At the first checkpoint it counts that there is no offset in the group yet.
    finish(follower(topics, tmp_path), 110)
    assert_exact(tmp_path, BEGUN)
    assert_published(topics, BEGUN)


@pytest.mark.parametrize("count", [510, 560, 640])
def test_a_crash_neither_forgets_nor_repeats_an_alarm(broker, tmp_path, monkeypatch, count):
    monkeypatch.setattr(alarms, "_FIRST", 64)
    for topic in ("t", "out", "dead", "events"):
        broker.create_topic(topic)
    # From 500 on each is wrong: the last example says otherwise.
    labels = [i < 500 or i % 2 == 0 for i in range(700)]
    produce(broker, "t", [JsonCodec().encode(Example({"a": 1.0}, label)) for label in labels])
    given = {"consumer": {"max_poll_records": 20}, "checkpoint_every": 40, "events": "events"}
    one = worker(broker, tmp_path, **given)
    with Abort("message.taken", count=count), pytest.raises(Aborted):
        work(one, 700)
    kill(one)
    other = worker(broker, tmp_path, "later", **given)
    until(
        other,
        lambda: learner_of(other) is not None and learner_of(other).offsets == {("t", 0): 700},
    )
    close(other)
    events = everything(broker, "events")
    (key,) = {record.key() for record in events}
    assert 500 < int(key.decode().removeprefix("alarm:error:t:0:")) < 640
    # The group is another one after the crash, as its first member would be waited for.
    assert len({record.value().replace(b'"later"', b'"g"') for record in events}) == 1
    newest = CheckpointFolder(tmp_path).newest(("t", None))
    assert newest.metrics["alarmed"] == {"error": 1, "log_loss": 0}


def test_a_header_whose_name_is_no_utf8_stops_nothing_and_is_kept(broker, tmp_path):
    for topic in ("t", "out", "dead"):
        broker.create_topic(topic)
    first, second = values(2)
    headers = [("trace", b"1"), (Latin("caf\xe9"), b"2"), ("trace", b"3")]
    with Producer(broker.client_args) as producer:
        for value, named in ((first, []), (first, headers), (second, headers[:1])):
            producer.send(Outgoing("t", b"key", value, named))
        producer.flush()
    one = worker(broker, tmp_path)
    work(one, 3)
    close(one)
    assert encode(newest(tmp_path).model) == learnt({("t", 0): log(0, 2)})
    with Reader("dead", broker.client_args) as dead, Reader("t", broker.client_args) as topic:
        [(letter, replayed)] = Replay(dead, topic)
    assert (letter.key, letter.value) == (b"key", first)
    assert [(name.encode(), value) for name, value in letter.headers[:3]] == [
        *((b"trace", b"1"), (b"caf\xe9", b"2"), (b"trace", b"3")),
    ]
    assert dict(letter.headers)["drift.error"].startswith(b"headers['caf\\\\xe9'] is no UTF-8")
    assert replayed.headers[1][0].encode() == b"caf\xe9"


def test_a_damaged_checkpoint_is_made_good_from_the_one_before(topics, tmp_path, caplog):
    given = {"checkpoint_every": 50, "consumer": SLOWLY}
    one = worker(topics, tmp_path, **given)
    work(one, 400)
    close(one)  # which commits the last offsets to Kafka
    *_, last = sorted((tmp_path / "t-all").glob("checkpoint-*"))
    last.write_bytes(last.read_bytes()[:-1])
    assert sum(newest(tmp_path).offsets.values()) < 400
    finish(follower(topics, tmp_path))
    assert_exact(tmp_path)
    assert "; going back to " in caplog.text


def test_a_message_that_comes_again_is_passed_over():
    metrics = Metrics("t", 0)
    options = WorkerOptions(topic="t", group="g", predictions="out")
    learner = Learner(LBP(budget=9), JsonCodec(), metrics, options)
    first, second, *_ = (
        Message(Position("t", 0, offset), None, value) for offset, value in enumerate(values(2))
    )
    assert len(learner.take(first)) == len(learner.take(second)) == 1
    before = encode(learner.model)
    assert learner.take(first) == learner.take(second) == []
    assert (encode(learner.model), metrics.examples) == (before, 2)
    assert (learner.offsets, learner.since_checkpoint) == ({("t", 0): 2}, 2)


def test_a_first_start_has_to_say_where(topics, tmp_path):
    one = worker(topics, tmp_path, start=None)
    with pytest.raises(ConsumerError, match="or --from latest, in Python start='earliest' or"):
        work(one, 1)
    one.close()


def test_a_worker_waits_for_its_topic_and_does_not_have_it_made(broker, tmp_path, caplog):
    one = worker(broker, tmp_path, predictions=None, dead_letters=None)
    assert one.step(0.1) == one.step(0.1) == 0
    assert [record.message for record in caplog.records if record.name == "drift.consumers"] == [
        "there is no topic t, or this user may not see it: waiting for it"
    ]
    broker.create_topic("t", partitions=2)
    send(broker, [message for log in LOGS.values() for message in log])
    finish(one)
    assert_exact(tmp_path)


def test_progress_without_its_checkpoint_is_refused(topics, tmp_path):
    one = worker(topics, tmp_path / "a")
    work(one, 400)
    close(one)
    other = follower(topics, tmp_path / "b")
    with pytest.raises(ConsumerError, match=r"has been learnt up to 200, but .* has no checkpoint"):
        work(other, 1)
    other.close()


@pytest.mark.parametrize("start", ["latest", None])
def test_a_partition_that_is_added_begins_at_its_beginning(topics, tmp_path, start):
    """Whatever was committed for it, by a model that is gone, or asked for."""
    one = worker(topics, tmp_path)
    work(one, 400)
    close(one)
    folder = CheckpointFolder(tmp_path)
    epoch, _ = folder.claim(KEY)
    folder.save(KEY, epoch, LBP(budget=9), {("t", 0): 0})
    other = follower(topics, tmp_path, start=start)
    finish(other)
    found = newest(tmp_path)
    assert encode(found.model) == learnt(LOGS)
    assert found.metrics["examples"] == 400 - 2 * len(POISON)


def test_a_partition_that_is_added_while_the_disk_is_full_keeps_no_other_waiting(
    topics, tmp_path, monkeypatch
):
    """What is learnt meanwhile stays, though it cannot be saved."""
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    folder, ((first, _), (second, _)) = CheckpointFolder(tmp_path), LOGS.items()
    epoch, _ = folder.claim(KEY)
    folder.save(KEY, epoch, LBP(budget=9), {first: 0})
    one = worker(topics, tmp_path, checkpoint_every=30)
    install("checkpoint.half-written", full)
    try:
        until(one, lambda: offsets(one) == {first: 200})
        model, tried = learner_of(one), full.call_count
        assert one.metrics.partitions == 1
        assert "No space left on device" in one.metrics.trouble[KEY]
        monkeypatch.setattr("drift.consumers.worker._LATER", 0.0)
        claim_of(one).starts_again = 0.0  # as time passes
        for _ in range(3):
            assert one.step(0.1) == 0
        assert full.call_count > tried
        assert (learner_of(one) is model, offsets(one)) == (True, {first: 200})
        assert model.runs.first == {}
    finally:
        remove("checkpoint.half-written")
    finish(one)
    assert one.metrics.trouble == {}
    assert newest(tmp_path).metrics["examples"] == 400 - 2 * len(POISON)
    order = read_order(tmp_path / "t-all", newest(tmp_path).id, "1-1")
    assert order.first == {second: 0}


def test_the_owner_of_a_folder_is_its_last_worker(topics, tmp_path):
    folder = CheckpointFolder(tmp_path)
    for group in ("g", "h"):
        options = WorkerOptions(topic="t", group=group)
        kill(Worker(LBP(budget=9), folder, topics.client_args, options))
        on = f"process {os.getpid()} on {platform.node()}"
        assert folder.owner == f"{on}, of the group {group},"


@pytest.mark.parametrize("times", [1, 99])
def test_a_broker_that_goes_as_a_model_is_taken_over_is_an_outage(
    topics, tmp_path, monkeypatch, times
):
    one = worker(topics, tmp_path)
    real, away = one._consumer.partitions, [UnavailableError("no answer")] * times

    def partitions(topic):
        if away:
            raise away.pop()
        return real(topic)

    monkeypatch.setattr(one._consumer, "partitions", partitions)
    until(one, lambda: one._refused)
    if times == 1:
        finish(one)
        assert_exact(tmp_path)
    else:
        close(one)


def test_all_partitions_are_known_from_the_first_checkpoint(topics, tmp_path):
    one = worker(topics, tmp_path)
    work(one, 1)
    first = min((tmp_path / "t-all").glob("checkpoint-*"))
    assert from_bytes(load(first)).offsets == {("t", 0): 0, ("t", 1): 0}
    kill(one)


# --- one partition ------------------------------------------------------------------------------


def test_a_partition_is_learnt_alone_where_that_is_asked_for(topics, tmp_path):
    for partition in range(2):
        own = {"group": f"g{partition}", "partition": partition}
        one = worker(topics, tmp_path, **own)
        place = "t", partition
        until(one, lambda place=place, one=one: offsets(one) == {place: 200})
        assert one.metrics.problems() == []
        close(one)
        assert_exact(tmp_path, {place: LOGS[place]}, place, partition=partition)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t-0", "t-1"]
    with pytest.raises(CheckpointError, match="models of single partitions, t-0, t-1, and one"):
        run(worker(topics, tmp_path, "g3"))


def test_a_partition_that_there_is_not_is_refused(topics, tmp_path):
    one = worker(topics, tmp_path, partition=7)
    with pytest.raises(ConsumerError, match="t has no partition 7, it has 2: give one below"):
        run(one)
    assert not any(tmp_path.iterdir())


# --- what is read ahead -------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["count", "bytes"])
def test_one_partition_that_is_far_ahead_is_not_read_on(broker, tmp_path, monkeypatch, by):
    """The one has hundreds of records before the first of the other: it is paused, and sought."""
    ahead, again = 300, 100
    if by == "count":
        monkeypatch.setattr("drift.consumers.order._AHEAD", ahead)
        monkeypatch.setattr("drift.consumers.order._AGAIN", again)
    else:
        size = len(log(0, 1)[0].value)
        monkeypatch.setattr("drift.consumers.order._AHEAD_BYTES", ahead * size)
        monkeypatch.setattr("drift.consumers.order._AGAIN_BYTES", again * size)
    broker.create_topic("t", partitions=2)
    many = [one._replace(timestamp=1 + n) for n, one in enumerate(log(0, 1500))]
    few = [one._replace(timestamp=1 + 200 * n) for n, one in enumerate(log(1, 8))]
    send(broker, many + few)
    one = worker(broker, tmp_path, predictions=None, dead_letters=None)
    held, start = [True], one._consumer.start

    def start_held(place, *given):
        start(place, *given)
        if place == ("t", 1) and held[0]:  # it brings nothing, as with a slow broker
            one._consumer.pause(place)

    monkeypatch.setattr(one._consumer, "start", start_held)
    until(one, lambda: claim_of(one) and claim_of(one).paused)
    for _ in range(3):
        assert one.step(0.05) == 0
    assert claim_of(one).paused == {("t", 0)}
    assert ahead <= len(claim_of(one).order.buffered(("t", 0))) <= ahead + 500
    held[0] = False
    start(("t", 1), 0)
    most = 0
    end = time.monotonic() + 60
    while offsets(one) != {("t", 0): 1500, ("t", 1): 8}:
        assert time.monotonic() < end
        one.step(0.1)
        most = max(most, len(claim_of(one).order.buffered(("t", 0))))
    assert most <= ahead + 500
    close(one)
    assert one.metrics.forced_steps() == 0
    assert_exact(tmp_path, {("t", 0): many, ("t", 1): few})


def test_a_partition_is_read_on_behind_what_waits_or_was_learnt():
    place, last = ("t", 0), log(0, 8)[-1]._replace(leader_epoch=3)
    for waiting, expected in (([(last, 0.0)], (place, 8, 3)), ([], (place, 5, 2))):
        learner, consumer = Mock(), Mock()
        learner.options = WorkerOptions(topic="t", group="g")
        learner.offsets, learner.leader_epochs, learner.clocks = {place: 5}, {place: 2}, {}
        fed = FedLearner(learner, consumer)
        fed.start(place)
        consumer.start.reset_mock()
        fed.order.buffered(place).extend(waiting)
        fed._read_on(place)
        consumer.start.assert_called_once_with(*expected)


@pytest.mark.parametrize("on_gap", ["stop", "skip"])
def test_what_is_deleted_behind_records_that_wait_is_a_gap_behind_them(
    broker, tmp_path, monkeypatch, on_gap, caplog
):
    broker.create_topic("t", partitions=2)
    send(broker, [message for own in LOGS.values() for message in own[:100]])
    one = worker(broker, tmp_path, on_gap=on_gap, predictions=None, dead_letters=None)
    first, second = LOGS
    until(one, lambda: offsets(one) == {first: 100, second: 100})
    with monkeypatch.context() as patch:
        # The first partition keeps the second's records waiting.
        patch.setattr(one._consumer, "ended_at", lambda place: -float("inf"))
        send(broker, LOGS[second][100:150])
        until(one, lambda: len(claim_of(one).order.buffered(second)) == 50)
        for place in LOGS:
            one._consumer.pause(place)
        # A fetch that is under way would bring what is deleted below.
        until(one, lambda: not one._consumer.consumer._fetcher.in_flight_fetches())
        send(broker, LOGS[second][150:])
        broker.delete_records("t", 1, before=170)
        one._consumer.start(first, 100)
        one._consumer.start(second, 150)
        if on_gap == "stop":
            with pytest.raises(ConsumerError, match=r"t:1 starts at 170, after 150.*: 20 mess"):
                run(one)
            assert newest(tmp_path).offsets == {first: 100, second: 100}
            return
        until(one, lambda: len(claim_of(one).order.buffered(second)) == 80)
        assert offsets(one)[second] == 100
    send(broker, LOGS[first][100:])
    finish(one)
    assert "t:1: 20 messages are gone, continuing at 170" in caplog.text
    left = {first: LOGS[first], second: LOGS[second][:150] + LOGS[second][170:]}
    found = newest(tmp_path)
    order = read_order(tmp_path / "t-all", found.id)
    again, _ = relearn(LBP(9), left, order, one.options)
    assert encode(again.model) == encode(found.model)
    assert found.metrics["examples"] == 380 - 2 * len(POISON)


def test_a_worker_stops_at_a_signal_of_another_thread(topics, tmp_path):
    one = worker(topics, tmp_path)
    thread = threading.Thread(target=one.run, kwargs={"signals": False})
    thread.start()
    one.stop()
    thread.join(30)
    assert not thread.is_alive()


def test_any_river_model_is_learnt(topics, tmp_path):
    checkpoints, clients = CheckpointFolder(tmp_path), topics.client_args
    options = WorkerOptions(topic="t", group="h", start="latest")
    one = Worker(RBP(5, seed=1), checkpoints, clients, options)
    until(one, lambda: len(one.assignment.started()) == 2)
    close(one)
    assert newest(tmp_path).offsets == {("t", 0): 200, ("t", 1): 200}


def test_what_an_error_interrupts_is_not_saved(topics, tmp_path, monkeypatch):
    one = worker(topics, tmp_path)
    send, sent = one._producer.send, []

    def fail(outgoing):
        sent.append(outgoing)
        if len(sent) == 50:
            raise RuntimeError("the client is broken")
        send(outgoing)

    monkeypatch.setattr(one._producer, "send", fail)
    with pytest.raises(RuntimeError, match="broken"):
        run(one)
    assert newest(tmp_path).offsets == {("t", 0): 0, ("t", 1): 0}
    finish(worker(topics, tmp_path, "later"))
    assert_exact(tmp_path)


def test_what_was_learnt_before_messages_could_not_be_read_is_saved(topics, tmp_path, monkeypatch):
    one = worker(topics, tmp_path, checkpoint_every=10**6, checkpoint_seconds=10**6)
    poll = one._consumer.poll

    def fail(seconds):
        if sum(offsets(one).values()) == 400:
            raise ConsumerError("kafka-python cannot read a message")
        return poll(seconds)

    monkeypatch.setattr(one._consumer, "poll", fail)
    with pytest.raises(ConsumerError, match="cannot read a message"):
        run(one)
    assert_exact(tmp_path)
    assert_published(topics)


@pytest.mark.parametrize("failing", [{1}, {2}, {3, 4}])
def test_what_the_broker_never_answered_is_sent_again(
    topics, tmp_path, monkeypatch, caplog, failing
):
    one = worker(topics, tmp_path, checkpoint_every=100, consumer=SLOWLY)
    flush, calls = one._producer.flush, []

    def fail():
        calls.append(None)
        if len(calls) in failing:
            raise UnsentError("the broker does not answer")
        flush()

    monkeypatch.setattr(one._producer, "flush", fail)
    finish(one)
    assert caplog.text.count("going back to the checkpoint") == len(failing)
    assert_exact(tmp_path)
    assert_published(topics)


def test_a_worker_that_is_told_to_stop_does_not_wait_for_an_outage_to_end(
    topics, tmp_path, monkeypatch, caplog
):
    one = worker(topics, tmp_path, checkpoint_every=10**6, checkpoint_seconds=10**6)
    work(one, 100)
    flush = Mock(side_effect=UnsentError("the broker does not answer"))
    with monkeypatch.context() as patch:
        patch.setattr(one._producer, "flush", flush)
        close(one)
    assert "what was learnt since the checkpoint is learnt again" in caplog.text
    finish(follower(topics, tmp_path))
    assert_exact(tmp_path)
    assert_published(topics)


@pytest.mark.parametrize("told", [True, False])
def test_what_may_pass_is_no_error_of_a_worker_that_is_told_to_stop(
    topics, tmp_path, monkeypatch, told
):
    one = worker(topics, tmp_path)

    def step():
        if told:
            one.stop()
        raise UnavailableError("the broker does not answer")

    monkeypatch.setattr(one, "step", step)
    with nullcontext() if told else pytest.raises(UnavailableError, match="does not answer"):
        one.run(signals=False)


@pytest.mark.parametrize("on_gap", ["stop", "skip"])
def test_messages_that_were_deleted_before_they_were_learnt(
    topics, tmp_path, monkeypatch, on_gap, caplog
):
    one = worker(topics, tmp_path)
    work(one, 400)
    close(one)
    whole = {("t", partition): log(partition, 400) for partition in range(2)}
    for own in whole.values():
        send(topics, own[200:])
    topics.delete_records("t", 1, before=250)
    other = follower(topics, tmp_path, on_gap=on_gap)
    away = iter([UnavailableError("the broker does not answer")] * 2)
    bound = other._consumer.bound

    def asked(*of):
        """Ask a broker that is away as it is asked where the log begins now."""
        for problem in away:
            raise problem
        return bound(*of)

    monkeypatch.setattr(other._consumer, "bound", asked)
    if on_gap == "stop":
        with pytest.raises(ConsumerError, match=r"t:1 starts at 250, after 200.*: 50 messages"):
            work(other, 10**6)
        other.close()
        return
    finish(other, 400)
    assert "t:1: 50 messages are gone, continuing at 250" in caplog.text
    assert [*away] == []
    del whole["t", 1][200:250]
    assert_exact(tmp_path, whole)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"predictions": "t"}, "^topic and predictions are both 't': give .* is learnt again$"),
        ({"dead_letters": "out"}, "predictions and dead_letters are both 'out': .* its own$"),
        ({"predictions": "o u t"}, r"'o u t' is no name of a topic, which has up to 249 letters"),
        ({"dead_letters": ".."}, r"'\.\.' is no name of a topic"),
        ({"events": "é" * 300}, r"'é{79} is no name of a topic"),
        ({"checkpoint_every": 0}, "checkpoint_every must be at least 1, not 0"),
        ({"checkpoint_seconds": float("nan")}, "checkpoint_seconds must be at least 0, not nan"),
        (
            {"consumer": {"security_protocol": "ssl"}},
            "security_protocol cannot be 'ssl': did you mean 'SSL'?",
        ),
        ({"on_gap": "go"}, "on_gap cannot be 'go'"),
    ],
)
def test_settings_that_cannot_work_are_refused(broker, tmp_path, options, message):
    with pytest.raises(ParameterError, match=message):
        worker(broker, tmp_path, **options)


def test_beginning_at_the_end_says_what_is_left_out(topics, tmp_path, caplog):
    """The order says it, too: relearn leaves it out of whole logs."""
    one = worker(topics, tmp_path, start="latest")
    until(one, lambda: len(one.assignment.started()) == 2)
    assert "t:1 starts at its end, 200 (latest): 200 messages before" in caplog.text
    whole = {place: log(place[1], 210) for place in LOGS}
    send(topics, [message for each in whole.values() for message in each[200:]])
    finish(one, 210)
    found = newest(tmp_path)
    order = read_order(tmp_path / "t-all", found.id)
    again, _ = relearn(LBP(9), whole, order, one.options)
    assert encode(again.model) == encode(found.model)
    assert again.metrics.examples == found.metrics["examples"] == 20


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (slice(20, None), r"not what the worker .*: the log of t:1 begins at 20, and the .* at 0"),
        (slice(199), "t:1:199 was learnt, and the logs have it not"),
        (slice(0, None, 3), "was learnt, and the logs have it not|not what the worker has learnt"),
        (slice(0), "was learnt, and the logs have it not"),
        (None, "was learnt, and the logs have it not"),
    ],
)
def test_logs_that_lack_messages_are_not_relearnt(topics, tmp_path, left, message):
    one = worker(topics, tmp_path)
    finish(one)
    order = read_order(tmp_path / "t-all", newest(tmp_path).id)
    logs = {**LOGS, ("t", 1): LOGS["t", 1][left]} if left else {("t", 0): LOGS["t", 0]}
    with pytest.raises(CheckpointError, match=message):
        relearn(LBP(9), logs, order, one.options)


def test_another_model_or_codec_is_not_relearnt(topics, tmp_path):
    one = worker(topics, tmp_path)
    finish(one)
    order = read_order(tmp_path / "t-all", newest(tmp_path).id)
    for model, codec in [(LBP(2), None), (LBP(9), JsonCodec(drop=["features.w1"]))]:
        with pytest.raises(CheckpointError, match="give its model and shadow as they were"):
            relearn(model, LOGS, order, one.options, codec)


def test_lag_is_that_of_all_partitions(topics, tmp_path):
    one = worker(topics, tmp_path)
    work(one, 400)
    metrics = learner_of(one).metrics
    assert metrics.lags == {("t", 0): (0, None), ("t", 1): (0, None)}
    one._consumer.consumer.config["max_poll_records"] = 1
    for partition, count in ((0, 3), (1, 4)):
        send(topics, log(partition, 200 + count)[200:])
    work(one, 1)
    assert 0 < metrics.values()["lag"] <= 6
    # The oldest of each, as it waits in the worker.
    for place, (lag, oldest) in metrics.lags.items():
        following = log(place[1], 210)[learner_of(one).offsets[place]]
        assert oldest == (following.timestamp if lag else None)
    close(one)


def test_everything_is_saved_every_so_many_seconds(topics, tmp_path, monkeypatch):
    one = worker(topics, tmp_path, checkpoint_every=30, checkpoint_seconds=60)
    work(one, 1)
    begun, saves = one._saved, []
    with monkeypatch.context() as patch:
        patch.setattr(one, "_begin_save", lambda _: saves.append((seconds, taken)))
        for seconds, taken in ((30, 29), (31, 30), (59, 1), (61, 0), (62, 1), (122, 1), (130, 31)):
            clock = SimpleNamespace(monotonic=lambda now=begun + seconds: now)
            patch.setattr("drift.consumers.worker.time", clock)
            learner_of(one).since_checkpoint = taken
            one._save_due()
    assert saves == [(31, 30), (122, 1), (130, 31)]
    learner_of(one).since_checkpoint = 0
    kill(one)


def test_marks_of_transactions_are_passed_over(topics, tmp_path, monkeypatch):
    one = worker(topics, tmp_path, checkpoint_seconds=1e-9)
    work(one, 400)
    monkeypatch.setattr(one._consumer, "position", lambda place: (203, 0))
    one.step(0.1)
    monkeypatch.undo()
    assert one._end_save(claim_of(one))
    found = newest(tmp_path)
    assert found.offsets == {("t", 0): 203, ("t", 1): 203}
    assert found.metrics["examples"] == 400 - 2 * len(POISON)
    kill(one)


# --- checkpoints, which are written while others are learnt ---------------------------------------


def test_a_checkpoint_is_of_when_it_was_begun(topics, tmp_path):
    """The worker goes on while it is written, and what it learns is in the next one."""
    one = worker(topics, tmp_path, checkpoint_every=30, consumer=SLOWLY, checkpoint_seconds=10**6)
    with Pause("checkpoint.half-written", count=2) as pause:
        until(one, lambda: sum(offsets(one).values()) >= 30 and claim_of(one).saving is not None)
        begun = dict(claim_of(one).saving.offsets)
        assert pause.wait()
        one.options = WorkerOptions(topic="t", group="g", checkpoint_every=10**6)
        until(one, lambda: sum(offsets(one).values()) > sum(begun.values()) + 60)
        assert sum(newest(tmp_path).offsets.values()) == 0
        pause.release()
        assert one._end_save(claim_of(one))
    found = newest(tmp_path)
    assert found.offsets == begun
    before = (m for m in in_time(LOGS) if m.position.offset < begun[m.position[:2]])
    assert encode(found.model) == loop(tuple(before))[0]
    finish(one)
    assert_exact(tmp_path)


def learn_all(topics, folder, point, act):
    """Learn both partitions with `act` at a point, and stop."""
    one = worker(topics, folder, checkpoint_every=30, consumer=SLOWLY)
    install(point, act)
    try:
        until(one, lambda: sum(offsets(one).values()) == 400)
    finally:
        remove(point)
    close(one)
    return one


@pytest.mark.parametrize("point", ["checkpoint.half-written", "checkpoint.order-half-written"])
def test_a_full_disk_costs_a_checkpoint_and_nothing_of_the_order(topics, tmp_path, point, caplog):
    times = [0]

    def full():
        times[0] += 1
        if times[0] in {2, 3}:
            raise OSError(errno.ENOSPC, "No space left on device")

    one = learn_all(topics, tmp_path, point, full)
    assert one.metrics.trouble == {}
    assert caplog.text.count("no checkpoint, the next is tried later") == 2
    assert_exact(tmp_path)


@pytest.mark.parametrize("point", ["checkpoint.begun", "checkpoint.half-written"])
def test_a_worker_goes_on_that_was_fenced_by_a_zombie(topics, tmp_path, point, caplog):
    """Whether it finds out as it begins a checkpoint, or as that is written."""
    times = [0]

    def claim():
        times[0] += 1
        if times[0] == 3:
            CheckpointFolder(tmp_path).claim(KEY)

    learn_all(topics, tmp_path, point, claim)
    assert caplog.text.count("claimed again since") == 1
    assert_exact(tmp_path)


def lose_partitions(one):
    one._lose(list(one.assignment.places))
    kill(one)


def stop_amid_an_outage(one):
    def step():
        one.stop()
        raise UnsentError("the broker does not answer")

    one.step = step
    one.run(signals=False)


@pytest.mark.parametrize("go", [lose_partitions, stop_amid_an_outage])
def test_a_worker_says_that_it_was_fenced_though_it_goes(topics, tmp_path, caplog, go):
    """It does not come to look at the checkpoint that was being written."""
    one = worker(topics, tmp_path, checkpoint_every=30, consumer=SLOWLY, checkpoint_seconds=10**6)
    with Pause("checkpoint.half-written", count=2) as pause:
        until(one, lambda: sum(offsets(one).values()) >= 30 and claim_of(one).saving is not None)
        assert pause.wait()
        CheckpointFolder(tmp_path).claim(KEY)
        pause.release()
    go(one)
    assert one._claims == {}
    assert caplog.text.count("claimed again since") == 1


def test_nothing_is_learnt_before_the_first_checkpoint_is_written(topics, tmp_path):
    def full():
        full.times += 1
        raise OSError(errno.ENOSPC, "No space left on device")

    full.times = 0
    one = worker(topics, tmp_path)
    install("checkpoint.half-written", full)
    try:
        for _ in range(300):  # until there are partitions
            assert not one.step(0.1)
            if full.times:
                break
        assert full.times
        assert "no checkpoint: " in "; ".join(one.metrics.problems())
        assert all("No space left on device" in why for why in one.metrics.trouble.values())
    finally:
        remove("checkpoint.half-written")
    finish(one)
    assert_exact(tmp_path)
    assert (one.metrics.trouble, one.metrics.partitions) == ({}, 2)


def test_a_checkpoint_that_fails_is_a_trouble_until_there_is_one(topics, tmp_path, monkeypatch):
    one = worker(topics, tmp_path, checkpoint_every=10**6, checkpoint_seconds=10**6)
    work(one, 1)
    with monkeypatch.context() as patch:
        why = "t-all: No space left on device"
        patch.setattr(CheckpointFolder, "prepare", Mock(side_effect=CheckpointError(why)))
        one._save_new()
        assert one.metrics.trouble == {KEY: why}
        assert one.metrics.problems() == [f"no checkpoint: {why}"]
    one._save_new()
    assert one.metrics.problems() == []
    one._refuse_save(claim_of(one), CheckpointError("again"))
    one._drop_all()
    one.assignment.revoke(list(one.assignment.places))
    one.step(0.1)
    assert "no checkpoint" not in "; ".join(one.metrics.problems())
    kill(one)


def test_a_right_that_is_missing_for_longer_is_for_a_person(topics, tmp_path, monkeypatch):
    monkeypatch.setattr("drift.consumers.worker._OUTAGE", 0.0)

    def claim(*_):
        raise CheckpointError("t-0: cannot be written") from PermissionError("403")

    monkeypatch.setattr(ModelFolder, "claim", claim)
    one = worker(topics, tmp_path)
    with pytest.raises(CheckpointError, match="cannot be written"):
        work(one, 1)
    one.close()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_worker_without_a_partition_says_so_once(topics, tmp_path, monkeypatch, caplog, is_there):
    monkeypatch.setattr("drift.consumers.worker._TOO_LONG", -1.0)
    one = worker(topics, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(one._consumer, "poll", lambda seconds: [])
        cluster = one._consumer.consumer._cluster
        patch.setattr(cluster, "partitions_for_topic", lambda topic: {0, 1} if is_there else None)
        assert [one.step(0.1) for _ in range(3)] == [0, 0, 0]
    assert caplog.text.count("no partition of t for") == 1
    why = "the others of g have them all" if is_there else "there is no topic t, or this user may n"
    assert why in caplog.text
    assert one.metrics.problems()[-1] == "no partition is assigned"
    polled = one.metrics.polled
    monkeypatch.setattr("drift.consumers.worker._LONG", -1.0)
    work(one, 1)
    assert one.metrics.polled > polled
    assert "partitions of t: 2, after " in caplog.text
    kill(one)


def test_a_worker_that_was_long_in_a_step_has_not_been_without_a_partition(
    topics, tmp_path, monkeypatch, caplog
):
    """As one that waits for its outputs to be acknowledged."""
    one = worker(topics, tmp_path)
    work(one, 100)
    monkeypatch.setattr("drift.consumers.worker._LONG", -1.0)
    one._drop_all()
    work(one, 200)
    assert "partitions of t" not in caplog.text
    kill(one)


def test_a_worker_knows_whether_a_broker_is_there(topics, tmp_path):
    quick = {"reconnect_backoff_max_ms": 500}  # by default a minute of tries ends in 30 s of none
    one = worker(topics, tmp_path, checkpoint_seconds=0, consumer=quick, producer=quick)
    work(one, 400)  # else a save waits for what is being sent until it is given up
    one.step(0.1)
    assert one.metrics.problems() == []
    topics.down()
    for problems in (["no broker is connected"], []):
        until(one, lambda problems=problems: one.metrics.problems() == problems)
        topics.up()
    close(one)


def test_a_folder_that_is_read_only_for_a_moment_is_waited_for(
    topics, tmp_path, monkeypatch, caplog
):
    claims = []

    def claim(files, owner):
        claims.append(files.path.name)
        if len(claims) < 4:
            raise CheckpointError("t-0: cannot be written") from OSError(errno.EROFS, "Read-only")
        return claimed(files, owner)

    claimed = ModelFolder.claim
    monkeypatch.setattr(ModelFolder, "claim", claim)
    one = worker(topics, tmp_path)
    finish(one)
    assert_exact(tmp_path)
    assert caplog.text.count("tried again") == 1
    claims.clear()
    idle = worker(topics, tmp_path, "later")
    until(idle, lambda: idle.metrics.partitions == 2)
    assert len(claims) == 4
    assert idle.metrics.problems() == []  # though there is nothing to save
    close(idle)
    claims.clear()
    monkeypatch.setattr("drift.consumers.worker._OUTAGE", 0.0)
    impatient = worker(topics, tmp_path, "later still")
    with pytest.raises(UnavailableError, match="cannot be written"):
        work(impatient, 1)
    impatient.close()


def test_what_comes_after_the_slice_comes_at_the_next_step(broker, tmp_path, monkeypatch):
    monkeypatch.setattr("drift.consumers.worker._SLICE", -1.0)
    broker.create_topic("t")
    messages = log(0, 15)
    send(broker, messages)
    one = worker(broker, tmp_path, predictions=None, dead_letters=None)
    assert one._consumer.consumer.config["max_poll_records"] > len(messages)
    end = time.monotonic() + 60
    while offsets(one) != {("t", 0): len(messages)}:
        assert one.step(0.1) <= 1
        assert time.monotonic() < end
    close(one)
    assert_exact(tmp_path, {("t", 0): messages})


def test_a_slow_model_polls_within_its_slice(topics, tmp_path, monkeypatch):
    one, now = worker(topics, tmp_path, session=120_000), [0.0]
    take = Learner.take

    def slow(*given):
        now[0] += 10.0
        return take(*given)

    monkeypatch.setattr(Learner, "take", slow)
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("drift.consumers.worker.time", clock)
    end = time.monotonic() + 60
    while sum(offsets(one).values()) < 40:
        assert one.step(0.1) <= 4  # of 10 s each, in 30 s
        assert time.monotonic() < end
    assert min(offsets(one).values()) >= 18  # as their times have it
    monkeypatch.undo()
    kill(one)


def test_the_slice_is_shorter_than_the_silence_that_a_group_takes(topics, tmp_path):
    """Also while the group rebalances, and a member sends no heartbeat between two polls."""
    silence = {"max_poll_interval_ms": 20_000}
    for session, given, seconds in ((120, {}, 30.0), (120, silence, 5.0), (10, silence, 2.5)):
        one = worker(topics, tmp_path, session=1000 * session, consumer=given)
        assert one._slice == seconds
        one.close()


def test_a_broker_that_is_silent_while_partitions_are_taken_over_is_waited_for(
    topics, tmp_path, monkeypatch, caplog
):
    one = worker(topics, tmp_path)
    asked = []

    def committed(*_, **__):
        asked.append(None)
        if len(asked) < 4:
            raise KafkaTimeoutError("silence")

    monkeypatch.setattr(one._consumer.consumer, "committed", committed)
    finish(one)
    assert_exact(tmp_path)
    assert caplog.text.count("the broker does not answer (KafkaTimeoutError: silence); tried") == 1


def test_partitions_that_are_lost_are_not_saved_and_those_that_go_are(topics, tmp_path):
    one = worker(topics, tmp_path, checkpoint_every=10**6, checkpoint_seconds=10**6)
    work(one, 400)
    listener = one._consumer.consumer._subscription.rebalance_listener
    listener.on_partitions_lost({("t", 0)})
    assert learner_of(one) is None
    assert one.assignment.waiting() == [("t", 1)]
    assert newest(tmp_path).offsets == {("t", 0): 0, ("t", 1): 0}
    one.assignment.assign([("t", 0)])
    work(one, 400)  # all of them once more, by a model that has not learnt them
    listener.on_partitions_revoked([("t", 0), ("t", 1)])
    assert (learner_of(one), one.assignment.places) == (None, {})
    assert_exact(tmp_path)
    kill(one)


def test_a_worker_keeps_its_model_as_a_standby_joins_which_goes_on_when_it_leaves(broker, tmp_path):
    for topic, partitions in (("t", 2), ("out", 1), ("dead", 1)):
        broker.create_topic(topic, partitions=partitions)
    send(broker, [message for log in LOGS.values() for message in log[:100]])

    def member():
        assignor = patient_assignor(1.0, broker._asked, of=LeadAssignor())
        given = broker.group_args | {"partition_assignment_strategy": [assignor]}
        return worker(broker, tmp_path, consumer=given), assignor

    one, assignor = member()
    work(one, 200)
    learner, agreed = learner_of(one), assignor._led
    other, _ = member()
    end = time.monotonic() + 60
    while assignor._led == agreed:
        assert time.monotonic() < end
        assert one.step(0.1) == other.step(0.1) == 0
        assert learner_of(one) is learner
    assert (one.metrics.partitions, one.metrics.taken_over) == (2, 2)
    assert (other.metrics.partitions, learner_of(other)) == (0, None)
    close(one)
    send(broker, [message for log in LOGS.values() for message in log[100:]])
    until(other, lambda: offsets(other) == {("t", 0): 200, ("t", 1): 200})
    assert learner_of(other).epoch == learner.epoch + 1
    close(other)
    assert_exact(tmp_path)
    assert_published(broker)
    assert len(everything(broker, "out")) == len(loop(tuple(in_time(LOGS)))[1])  # each once
