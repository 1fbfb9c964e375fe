"""The worker against the broker inside the process: each example exactly once."""

import errno
import json
import threading
import time
from concurrent.futures import wait
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from drift.consumers import CheckpointFolder, WorkerOptions, alarms
from drift.consumers.checkpoints.checkpoint import from_bytes
from drift.consumers.checkpoints.file_format import load
from drift.consumers.checkpoints.files import PartitionFolder
from drift.consumers.checkpoints.journal import read_order
from drift.consumers.checkpoints.state import encode
from drift.consumers.codec import Example, JsonCodec
from drift.consumers.crash_points import CHECKPOINT_POINTS, CLAIM_POINTS, install, remove
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.records import Message, Outgoing, Position
from drift.consumers.relearning import in_order, relearn
from drift.consumers.replay import Replay
from drift.errors import CheckpointError, ConsumerError, ParameterError, UnavailableError
from drift.models import LBP, RBP
from drift.testing import Abort, Aborted, patient_assignor, produce
from tests.consumers.stepping import close, run, until

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError

from drift.consumers.client.consumer import LeadAssignor
from drift.consumers.client.producer import (  # after the check that there is a client
    Producer,
    UnsentError,
)
from drift.consumers.client.topics import Reader
from drift.consumers.worker import Worker
from tests.consumers.test_workarounds import Latin

#: Milliseconds. The mock cluster leaves a member a second less to agree on partitions, which a busy
#: machine needs, and has whoever comes into a group after somebody else wait as long.
SESSION, SHORT = 8000, 2000
#: The time of the first message, in milliseconds.
BEGUN = 1_790_000_000_000
ENDS = {("t", 0): 200, ("t", 1): 200}
POISON = {7: b"{", 40: b'{"features": {"a": "Rome"}}', 41: None, 90: b'{"features": 1}'}


def values(n=200, seed=0):
    """Messages of a target that shifts, four of them poison."""
    codec = JsonCodec()
    for t in range(n):
        features = {f"w{(7 * t + k * k + seed) % 23}": 1.0 + k for k in range(5)}
        label = (sum(map(len, features)) + t // 100) % 2 == 0
        yield POISON.get(t, codec.encode(Example(features, label)))


def loop(model, messages):
    """What a plain loop over messages learns, by partition and offset."""
    codec = JsonCodec()
    predictions = {}
    for (_, *where), value in messages:
        if where[1] in POISON:
            continue
        example = codec.decode(value)
        predictions[tuple(where)] = model.predict_one(example.features)
        model.learn_one(example.features, example.label)
    return predictions


def fill(broker, begin=0, end=200):
    """Append messages to both partitions, whose times alternate, stand still and fall back."""
    producer = KafkaProducer(**broker.client_args, linger_ms=60_000)
    for partition in range(2):
        for offset, value in list(enumerate(values(seed=partition)))[begin:end]:
            stamp = BEGUN + 10 * (offset // 3) + 7 * partition - 25 * (offset % 11 == 5)
            producer.send("t", value, key=b"", partition=partition, timestamp_ms=stamp)
    producer.flush()
    producer.close()


def by_time(messages):
    """Sort messages of all partitions by their times, which in a partition never fall."""
    keyed, latest = [], {}
    for message in messages:
        _, partition, offset = message.position
        latest[partition] = max(latest.get(partition, 0), message.timestamp)
        keyed.append(((latest[partition], partition, offset), message))
    return [message for _, message in sorted(keyed, key=lambda one: one[0])]


def learnt(broker, folder):
    """The messages in the order of the journal: in each run by their times."""
    checkpoints = CheckpointFolder(folder)
    runs = read_order(checkpoints.folder(("t", None)), checkpoints.newest(("t", None)).id)
    rest, found = by_time(everything(broker, "t")), []
    for part in runs:
        is_part = [m.position.offset < part.get(m.position[:2], 0) for m in rest]
        found += [message for message, is_in in zip(rest, is_part, strict=True) if is_in]
        rest = [message for message, is_in in zip(rest, is_part, strict=True) if not is_in]
    return found


def worker(broker, folder, group="g", session=SESSION, few=None, **options):
    options = {"start": "earliest", "predictions": "out", "dead_letters": "dead"} | options
    # What is in the logs is in time, however slow the machine is.
    options = {"max_idle": 30.0} | options
    checkpoints = CheckpointFolder(folder, keep=3)
    consumer = {"session_timeout_ms": session, "heartbeat_interval_ms": 200}
    consumer |= options.pop("consumer", {})
    producer = options.pop("producer", None)
    one = Worker(
        LBP(budget=9),
        checkpoints,
        broker.client_args,
        WorkerOptions(topic="t", group=group, **options),
        consumer=consumer,
        producer=producer,
    )
    if group == "later":  # joins at once, where "g" would wait for the session of who was killed
        one._identity = one._consumer.identity
    if few:
        one._consumer.consumer.config["max_poll_records"] = few
    return one


def work(one, count, limit=600):
    """Step until so many messages are learnt by this worker."""
    taken = 0
    for _ in range(limit):
        taken += one.step(0.1)
        if taken >= count:
            return taken
    raise AssertionError(f"{taken} of {count} messages in {limit} steps")


def finish(one):
    """Step until both partitions are learnt to their end."""
    until(one, lambda: one._learner is not None and one._learner.offsets == ENDS)
    close(one)


def kill(one):
    """Let go of the clients; what the producer has not sent is lost, as in a kill."""
    sender = one._producer.producer._sender  # to close the producer would flush it first
    sender.force_close()
    sender.join(10)
    one._writer.shutdown()
    one._consumer.close()


@contextmanager
def hold_up(one):
    """Keep a worker's thread from writing what is begun in the block until its end."""
    assert one._end_save()
    go_on = threading.Event()
    one._writer.submit(go_on.wait)
    try:
        yield
    finally:
        go_on.set()


@pytest.fixture
def topics(broker):
    broker.create_topic("t", partitions=2)
    broker.create_topic("out")
    broker.create_topic("dead")
    fill(broker)
    return broker


def assert_exact(broker, folder, *, is_live=False):
    """Each example was learnt once, in the order of time, as by a plain loop to the last bit.

    What is learnt as it comes may be in another order, that of the journal.
    """
    messages = learnt(broker, folder)
    places = [message.position[1:] for message in messages]
    assert sorted(places) == [
        (partition, offset) for partition in range(2) for offset in range(200)
    ]
    if not is_live:
        assert places == [message.position[1:] for message in by_time(everything(broker, "t"))]
        assert places != sorted(places)  # the partitions alternate
    plain = LBP(budget=9)
    predictions = loop(plain, [(message.position, message.value) for message in messages])
    newest = CheckpointFolder(folder).newest(("t", None))
    assert newest.offsets == ENDS
    assert newest.metrics["examples"] == len(predictions) == 400 - 2 * len(POISON)
    assert encode(newest.model) == encode(plain)


def everything(broker, topic):
    """All records of a topic."""
    with Reader(topic, broker.client_args) as reader:
        count = sum(reader.ends().values())
        records = []
        while len(records) < count:
            records += reader.poll(1.0)
    return records


def assert_published(broker, folder):
    """Each prediction of a plain loop was sent, whether once or again, and each dead letter."""
    got = {(r.key.decode(), json.loads(r.value)["predicted"]) for r in everything(broker, "out")}
    messages = [(message.position, message.value) for message in learnt(broker, folder)]
    predictions = loop(LBP(budget=9), messages)
    assert got == {(f"t:{p}:{offset}", said) for (p, offset), said in predictions.items()}
    letters = [(dict(letter.headers), letter.value) for letter in everything(broker, "dead")]
    assert {(int(h["drift.partition"]), int(h["drift.offset"]), v) for h, v in letters} == {
        (partition, offset, value) for partition in range(2) for offset, value in POISON.items()
    }


def test_all_partitions_are_learnt_in_the_order_of_time_as_by_a_plain_loop(topics, tmp_path):
    one = worker(topics, tmp_path)
    work(one, 400)
    [metrics] = one.metrics.models
    assert (metrics.examples, metrics.lag) == (400 - 2 * len(POISON), 0)
    close(one)
    assert_exact(topics, tmp_path)
    assert_published(topics, tmp_path)
    assert one.metrics.forced_steps() == 0


def test_what_the_journal_says_gives_the_model_back(topics, tmp_path):
    one = worker(topics, tmp_path, few=60, checkpoint_every=30)
    finish(one)
    checkpoints = CheckpointFolder(tmp_path)
    newest = checkpoints.newest(("t", None))
    runs = read_order(checkpoints.folder(("t", None)), newest.id)
    logs = {place: [] for place in ENDS}
    for message in everything(topics, "t"):
        logs[message.position[:2]].append(message)
    assert [m.position for m in in_order(logs, runs, one.options)] == [
        message.position for message in learnt(topics, tmp_path)
    ]
    learner, _ = relearn(LBP(budget=9), logs, runs, one.options)
    assert encode(learner.model) == encode(newest.model)
    assert learner.offsets == newest.offsets == ENDS


def test_a_worker_goes_on_where_the_checkpoint_ends(topics, tmp_path):
    one = worker(topics, tmp_path, checkpoint_every=30, few=60)
    work(one, 120)
    close(one)
    other = worker(topics, tmp_path, "later", start=None)
    finish(other)
    assert_exact(topics, tmp_path)


FIRST = [*CLAIM_POINTS, "checkpoint.begun", "checkpoint.synced", "checkpoint.recorded"]
THIRD = ["message.taken", "outputs.flushed", *CHECKPOINT_POINTS]


@pytest.mark.parametrize(
    ("point", "count"), [*((point, 1) for point in FIRST), *((point, 3) for point in THIRD)]
)
def test_a_crash_at_any_step_loses_and_doubles_nothing(topics, tmp_path, point, count):
    # What the worker does not wait for is in no hurry to be sent.
    slow = {"linger_ms": 60_000}
    # At the first checkpoint it counts that there is no offset in the group yet.
    same = ("g", SHORT) if point in CHECKPOINT_POINTS and count == 1 else None
    one = worker(topics, tmp_path, *(same or ()), few=60, checkpoint_every=50, producer=slow)
    with Abort(point, count=count), pytest.raises(Aborted):
        work(one, 400)
    kill(one)
    finish(worker(topics, tmp_path, *(same or ("later",))))
    assert_exact(topics, tmp_path)
    assert_published(topics, tmp_path)


@pytest.mark.parametrize("count", [510, 560, 640])
def test_a_crash_neither_forgets_nor_repeats_an_alarm(broker, tmp_path, monkeypatch, count):
    monkeypatch.setattr(alarms, "_FIRST", 64)
    for topic in ("t", "out", "dead", "events"):
        broker.create_topic(topic)
    # From 500 on each is wrong: the last example says otherwise.
    labels = [i < 500 or i % 2 == 0 for i in range(700)]
    produce(broker, "t", [JsonCodec().encode(Example({"a": 1.0}, label)) for label in labels])
    given_options = {"few": 20, "checkpoint_every": 40, "events": "events"}
    one = worker(broker, tmp_path, **given_options)
    with Abort("message.taken", count=count), pytest.raises(Aborted):
        work(one, 700)
    kill(one)
    other = worker(broker, tmp_path, "later", **given_options)
    until(other, lambda: other._learner is not None and other._learner.offsets == {("t", 0): 700})
    close(other)
    events = everything(broker, "events")
    (key,) = {record.key for record in events}
    assert 500 < int(key.decode().removeprefix("alarm:error:t:0:")) < 640
    assert len({record.value for record in events}) == 1
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
    plain = LBP(budget=9)
    loop(plain, [(("t", 0, 0), first), (("t", 0, 2), second)])
    assert encode(CheckpointFolder(tmp_path).newest(("t", None)).model) == encode(plain)
    with Reader("dead", broker.client_args) as dead, Reader("t", broker.client_args) as topic:
        [(letter, replayed)] = Replay(dead, topic)
    assert (letter.key, letter.value) == (b"key", first)
    assert [(name.encode(), value) for name, value in letter.headers[:3]] == [
        *((b"trace", b"1"), (b"caf\xe9", b"2"), (b"trace", b"3")),
    ]
    assert dict(letter.headers)["drift.error"].startswith(b"headers['caf\\\\xe9'] is no UTF-8")
    assert replayed.headers[1][0].encode() == b"caf\xe9"


def test_a_damaged_checkpoint_is_made_good_from_the_one_before(topics, tmp_path, caplog):
    one = worker(topics, tmp_path, session=SHORT, checkpoint_every=50, few=60)
    work(one, 400)
    close(one)  # which commits the last offsets to Kafka
    *_, newest = sorted((tmp_path / "t-all").glob("checkpoint-*"))
    newest.write_bytes(newest.read_bytes()[:-1])
    assert sum(CheckpointFolder(tmp_path).newest(("t", None)).offsets.values()) < 400
    finish(worker(topics, tmp_path, session=SHORT))
    assert_exact(topics, tmp_path)
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
    one._close()


def test_a_worker_waits_for_its_topic_and_does_not_have_it_made(broker, tmp_path, caplog):
    one = worker(broker, tmp_path, predictions=None, dead_letters=None)
    assert one.step(0.1) == one.step(0.1) == 0
    assert [record.message for record in caplog.records if record.name == "drift.consumers"] == [
        "there is no topic t, or this user may not see it: waiting for it"
    ]
    broker.create_topic("t", partitions=2)
    fill(broker)
    finish(one)
    assert_exact(broker, tmp_path, is_live=True)


def test_progress_without_its_checkpoint_is_refused(topics, tmp_path):
    one = worker(topics, tmp_path / "a", session=SHORT)
    work(one, 400)
    close(one)
    other = worker(topics, tmp_path / "b", session=SHORT)
    with pytest.raises(ConsumerError, match=r"has been learnt up to 200, but .* has no checkpoint"):
        work(other, 1)
    other._close()


def test_a_model_goes_back_to_before_a_partition_came(topics, tmp_path):
    one = worker(topics, tmp_path, session=SHORT)
    work(one, 400)
    close(one)
    folder = CheckpointFolder(tmp_path)
    epoch, _ = folder.claim(("t", None))
    folder.save(("t", None), epoch, LBP(budget=9), {("t", 0): 0})
    other = worker(topics, tmp_path, session=SHORT, start=None)
    finish(other)
    assert_exact(topics, tmp_path)


def test_a_model_knows_all_its_partitions_from_its_first_checkpoint(topics, tmp_path):
    one = worker(topics, tmp_path)
    work(one, 1)
    first = min((tmp_path / "t-all").glob("checkpoint-*"))
    assert from_bytes(load(first)).offsets == {("t", 0): 0, ("t", 1): 0}
    kill(one)


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
    until(one, lambda: one.metrics.partitions == 2)
    close(one)
    assert CheckpointFolder(tmp_path).newest(("t", None)).offsets == ENDS


def test_what_an_error_interrupts_is_not_saved(topics, tmp_path, monkeypatch):
    one = worker(topics, tmp_path)
    send, sent = one._producer.send, []

    def fail(outgoing):
        sent.append(outgoing.lane)
        if len(sent) == 50:
            raise RuntimeError("the client is broken")
        send(outgoing)

    monkeypatch.setattr(one._producer, "send", fail)
    with pytest.raises(RuntimeError, match="broken"):
        run(one)
    assert CheckpointFolder(tmp_path).newest(("t", None)).offsets == dict.fromkeys(ENDS, 0)
    finish(worker(topics, tmp_path, "later"))
    assert_exact(topics, tmp_path)


def test_what_was_learnt_before_messages_could_not_be_read_is_saved(topics, tmp_path, monkeypatch):
    one = worker(topics, tmp_path, checkpoint_every=10**6, checkpoint_seconds=10**6)
    poll = one._consumer.poll

    def fail(seconds):
        if one._learner is not None and one._learner.offsets == ENDS:
            raise ConsumerError("kafka-python cannot read a message")
        return poll(seconds)

    monkeypatch.setattr(one._consumer, "poll", fail)
    with pytest.raises(ConsumerError, match="cannot read a message"):
        run(one)
    assert_exact(topics, tmp_path)
    assert_published(topics, tmp_path)


@pytest.mark.parametrize("failing", [{1}, {2}, {3, 4}])
def test_what_the_broker_never_answered_is_sent_again(
    topics, tmp_path, monkeypatch, caplog, failing
):
    one = worker(topics, tmp_path, few=60, checkpoint_every=100)
    flush, calls = one._producer.flush, []

    def fail():
        calls.append(None)
        if len(calls) in failing:
            raise UnsentError("the broker does not answer")
        flush()

    monkeypatch.setattr(one._producer, "flush", fail)
    finish(one)
    assert caplog.text.count("going back to the checkpoint") == len(failing)
    assert_exact(topics, tmp_path)
    assert_published(topics, tmp_path)


def test_a_worker_that_is_told_to_stop_does_not_wait_for_an_outage_to_end(
    topics, tmp_path, monkeypatch, caplog
):
    one = worker(topics, tmp_path, session=SHORT, checkpoint_every=10**6, checkpoint_seconds=10**6)
    work(one, 100)
    flush = Mock(side_effect=UnsentError("the broker does not answer"))
    with monkeypatch.context() as patch:
        patch.setattr(one._producer, "flush", flush)
        close(one)
    assert "what was learnt since the checkpoint is learnt again" in caplog.text
    finish(worker(topics, tmp_path, session=SHORT))
    assert_exact(topics, tmp_path)
    assert_published(topics, tmp_path)


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
def test_messages_that_were_deleted_before_they_were_learnt(topics, tmp_path, on_gap, caplog):
    one = worker(topics, tmp_path, session=SHORT)
    work(one, 400)
    close(one)
    for partition in range(2):
        produce(topics, "t", values(), partition)
    topics.delete_records("t", 1, before=250)
    other = worker(topics, tmp_path, session=SHORT, on_gap=on_gap)
    if on_gap == "stop":
        with pytest.raises(ConsumerError, match=r"t:1 begins at 250, behind 200.*: 50 messages"):
            work(other, 10**6)
        other._close()
        return
    work(other, 350)
    close(other)
    assert "t:1: 50 messages are gone, going on at 250" in caplog.text
    newest = CheckpointFolder(tmp_path).newest(("t", None))
    assert newest.offsets == {("t", 0): 400, ("t", 1): 400}
    poison = 3 * len(POISON) + sum(offset >= 50 for offset in POISON)
    assert newest.metrics["examples"] == 400 + 350 - poison


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"predictions": "t"}, "t, t, dead: .* need a topic each"),
        ({"dead_letters": "out"}, "t, out, out: .* need a topic each"),
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
    one = worker(topics, tmp_path, start="latest")
    until(one, lambda: one.metrics.partitions == 2)
    close(one)
    assert "t:1 begins at its end, 200, as was asked for: 200 messages before" in caplog.text


def test_lag_is_that_of_all_partitions(topics, tmp_path):
    one = worker(topics, tmp_path)
    work(one, 400)
    learner = one._learner
    assert learner.metrics.lag == 0
    for partition, count in ((0, 3), (1, 4)):
        produce(topics, "t", values(count), partition)
    one._consumer.consumer.config["max_poll_records"] = 1
    work(one, 1)
    assert 0 < learner.metrics.lag <= 6
    close(one)


@pytest.mark.parametrize(
    ("taken", "saved"), [(0, []), (1, [61, 122]), (29, [61, 122]), (30, [30, 59, 61, 90, 122])]
)
def test_a_checkpoint_is_due_after_so_many_messages_or_seconds(
    broker, tmp_path, monkeypatch, taken, saved
):
    one = worker(broker, tmp_path, checkpoint_every=30, checkpoint_seconds=60)
    begun, saves = one._saved, []
    with monkeypatch.context() as patch:
        patch.setattr(one._consumer, "refresh", lambda: None)
        patch.setattr(one, "_learner", SimpleNamespace(since_checkpoint=taken))
        for seconds in (30, 59, 61, 90, 122):
            clock = SimpleNamespace(monotonic=lambda now=begun + seconds: now)
            patch.setattr("drift.consumers.worker.time", clock)
            patch.setattr(one, "_begin_save", lambda now=seconds: saves.append(now))
            one._save_due()
    assert saves == saved
    one._close()


def test_marks_of_transactions_are_passed_over(topics, tmp_path, monkeypatch):
    one = worker(topics, tmp_path, checkpoint_seconds=1e-9)
    work(one, 400)
    monkeypatch.setattr(one._consumer, "position", lambda place: (203, 0))
    one.step(0.1)
    monkeypatch.undo()
    assert one._end_save()
    newest = CheckpointFolder(tmp_path).newest(("t", None))
    assert newest.offsets == {("t", 0): 203, ("t", 1): 203}
    assert newest.metrics["examples"] == 400 - 2 * len(POISON)
    kill(one)


@pytest.mark.parametrize("is_writing", [True, False])
def test_a_worker_goes_on_that_was_fenced_by_a_zombie(topics, tmp_path, caplog, is_writing):
    one = worker(topics, tmp_path, checkpoint_every=30, few=60)
    work(one, 120)
    if is_writing:  # so that it is refused where a checkpoint ends, else where one begins
        with hold_up(one):
            assert one._begin_save()
            CheckpointFolder(tmp_path).claim(("t", None))
        wait([one._saving.written])
        one._learner.since_checkpoint = 30  # the next one is due at the same time
    else:
        assert one._end_save()
        CheckpointFolder(tmp_path).claim(("t", None))
    finish(one)
    assert_exact(topics, tmp_path)
    assert caplog.text.count("claimed again since, our epoch is 1") == 1
    assert "no checkpoint, the next is tried later" not in caplog.text


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
    assert_exact(topics, tmp_path)
    assert (one.metrics.trouble, one.metrics.partitions) == ({}, 2)


def test_a_checkpoint_that_is_refused_is_trouble_until_one_is_written(
    topics, tmp_path, monkeypatch
):
    def refuse():
        raise CheckpointError("t-all: No space left on device")

    one = worker(topics, tmp_path, few=60, checkpoint_seconds=0)
    work(one, 1)
    assert one._end_save()
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFolder, "prepare", lambda *_, **__: refuse)
        taken = work(one, 60)
        assert not one._end_save()
        assert one._learner.since_checkpoint >= taken
        assert one.metrics.trouble == {("t", None): "t-all: No space left on device"}
        assert one.metrics.problems() == ["no checkpoint: t-all: No space left on device"]
    one.step(0.1)
    assert one._end_save()
    assert (one.metrics.trouble, one.metrics.problems()) == ({}, [])
    finish(one)
    assert_exact(topics, tmp_path)


def test_a_right_that_is_missing_for_longer_is_for_a_person(topics, tmp_path, monkeypatch):
    monkeypatch.setattr("drift.consumers.worker._PATIENCE", 0.0)

    def claim(*_):
        raise CheckpointError("t-0: cannot be written") from PermissionError("403")

    monkeypatch.setattr(PartitionFolder, "claim", claim)
    one = worker(topics, tmp_path)
    with pytest.raises(CheckpointError, match="cannot be written"):
        work(one, 1)
    one._close()


def test_a_worker_without_a_partition_says_so_once(topics, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("drift.consumers.worker._PATIENCE", -1.0)
    one = worker(topics, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(one._consumer, "poll", lambda seconds: [])
        assert one.step(0.1) == one.step(0.1) == 0
    assert caplog.text.count("no partition of t for") == 1
    assert one.metrics.problems()[-1] == "no partition is assigned"
    polled = one.metrics.polled
    monkeypatch.setattr("drift.consumers.worker._LONG", -1.0)
    work(one, 1)
    assert one.metrics.polled > polled
    assert "partitions of t: 2, after " in caplog.text
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

    claimed = PartitionFolder.claim
    monkeypatch.setattr(PartitionFolder, "claim", claim)
    one = worker(topics, tmp_path, session=SHORT)
    finish(one)
    assert_exact(topics, tmp_path)
    assert caplog.text.count("tried again") == 1
    claims.clear()
    idle = worker(topics, tmp_path, session=SHORT)
    until(idle, lambda: idle.metrics.partitions == 2)
    assert len(claims) == 4
    assert idle.metrics.problems() == []  # though there is nothing to save
    close(idle)
    claims.clear()
    monkeypatch.setattr("drift.consumers.worker._PATIENCE", 0.0)
    impatient = worker(topics, tmp_path, session=SHORT)
    with pytest.raises(UnavailableError, match="cannot be written"):
        work(impatient, 1)
    impatient._close()


def test_what_comes_after_the_patience_comes_again(broker, tmp_path, monkeypatch):
    monkeypatch.setattr("drift.consumers.worker._PATIENCE", -1.0)
    broker.create_topic("t")
    messages = list(values(40))[8:38]  # no poison among them
    produce(broker, "t", messages)
    one = worker(broker, tmp_path, predictions=None, dead_letters=None)
    assert one._consumer.consumer.config["max_poll_records"] > len(messages)
    end = time.monotonic() + 60
    while one._learner is None or one._learner.offsets["t", 0] < len(messages):
        assert one.step(0.1) <= 1
        assert time.monotonic() < end
    plain, codec = LBP(budget=9), JsonCodec()
    for example in map(codec.decode, messages):
        plain.learn_one(example.features, example.label)
    assert encode(one._learner.model) == encode(plain)
    close(one)


def test_the_patience_is_that_of_all_partitions_and_none_is_left_behind(
    topics, tmp_path, monkeypatch
):
    one, now = worker(topics, tmp_path), [0.0]
    take = Learner.take

    def slow(*given):
        now[0] += 10.0
        return take(*given)

    monkeypatch.setattr(Learner, "take", slow)
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("drift.consumers.worker.time", clock)
    end = time.monotonic() + 60
    while sum(one.metrics.models[n].examples for n in range(len(one.metrics.models))) < 40:
        assert one.step(0.1) <= 4  # of 10 s each, in 30 s
        assert time.monotonic() < end
    assert all(offset > 5 for offset in one._learner.offsets.values())
    monkeypatch.undo()
    kill(one)


def test_the_patience_is_shorter_than_the_silence_that_a_group_takes(topics, tmp_path):
    silence = {"max_poll_interval_ms": 20_000}
    assert worker(topics, tmp_path)._patience == 30.0
    assert worker(topics, tmp_path, consumer=silence)._patience == 5.0


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
    assert_exact(topics, tmp_path)
    assert caplog.text.count("the broker does not answer (KafkaTimeoutError: silence); tried") == 1


@pytest.mark.parametrize(("what", "saved"), [("lost", 0), ("revoked", 200)])
def test_what_is_lost_is_not_saved_and_what_goes_is(topics, tmp_path, what, saved):
    one = worker(topics, tmp_path, checkpoint_every=10**6, checkpoint_seconds=10**6)
    work(one, 400)
    listener = one._consumer.consumer._subscription.rebalance_listener
    getattr(listener, f"on_partitions_{what}")({("t", 0), ("t", 1)})
    newest = CheckpointFolder(tmp_path).newest(("t", None))
    assert newest.offsets == dict.fromkeys(ENDS, saved)
    assert one._learner is None
    assert not one.assignment.states
    kill(one)


def test_one_worker_learns_all_and_another_goes_on_when_it_leaves(broker, tmp_path):
    for topic, partitions in (("t", 2), ("out", 1), ("dead", 1)):
        broker.create_topic(topic, partitions=partitions)
    fill(broker, end=100)

    def member():
        strategy = [patient_assignor(1.0, of=LeadAssignor())]
        return worker(broker, tmp_path, consumer={"partition_assignment_strategy": strategy})

    one = member()
    work(one, 200)
    other = member()
    end = time.monotonic() + 60
    while one.metrics.rebalances < 4 or one.metrics.partitions < 2:  # both were given back
        assert time.monotonic() < end
        assert one.step(0.1) == other.step(0.1) == 0
    assert (other.metrics.partitions, other._learner) == (0, None)
    close(one)
    fill(broker, 100)
    finish(other)
    assert other.metrics.partitions == 2
    assert_exact(broker, tmp_path, is_live=True)
    assert_published(broker, tmp_path)
