"""Labels on a separate topic: the worker against a twin of lists, killed at every step."""

import json
import random
import re
import threading

import pytest
from click.testing import CliRunner

from drift.cli import app
from drift.consumers import CheckpointFolder, WorkerOptions, relearn, takeover
from drift.consumers.checkpoints import join_state
from drift.consumers.checkpoints.journal import read_order
from drift.consumers.json_codec import JsonCodec
from drift.consumers.late import LateLearner
from drift.consumers.metrics import Metrics
from drift.consumers.records import Message, Position
from drift.errors import CheckpointError, ConfigurationError, ConsumerError, ParameterError
from drift.models import LBP, Tracker
from drift.models._state.codec import encode
from drift.testing import Abort, Aborted, MockKafka, produce
from tests.consumers.late_logs import JOIN, SILENCE, logs, messages
from tests.consumers.stepping import close, kill, learner_of, offsets, run, until
from tests.consumers.twin_late import Twin
from tests.consumers.twin_order import in_time

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from drift.consumers.client.consumer import GroupConsumer  # as there is a client
from drift.consumers.worker import Worker
from tests.consumers.stepping import SESSION
from tests.consumers.topics import everything, send
from tests.crash_points import CHECKPOINT_POINTS

#: Two partitions of features, three of labels; an id and its label need not be in like ones.
LOGS = messages(logs())
ENDS = {place: len(log) for place, log in LOGS.items()}
KEY = "f", None
WEIGHTED = JsonCodec(weight="weight")


@pytest.fixture
def topics(broker):
    return with_logs(broker, LOGS)


def with_logs(broker, given_logs):
    broker.create_topic("f", partitions=2)
    broker.create_topic("l", partitions=3)
    send(broker, [message for log in given_logs.values() for message in log])
    for topic in ("out", "dead", "lost"):
        broker.create_topic(topic)
    return broker


def worker(broker, folder, group="g", session=SESSION, **options):
    consumer = {"session_timeout_ms": session, "heartbeat_interval_ms": 200}
    given = {
        "topic": "f",
        "group": group,
        "start": "earliest",
        "labels": "l",
        "orphans": "lost",
        "predictions": "out",
        "dead_letters": "dead",
        "timestamps": "create",
        **JOIN,
        **options,
    }
    consumer |= given.pop("consumer", {})
    producer = given.pop("producer", None)
    one = Worker(
        given.pop("model", LBP(budget=9)),
        CheckpointFolder(folder),
        broker.client_args,
        WorkerOptions(**given),
        codec=WEIGHTED,
        consumer=consumer,
        producer=producer,
    )
    if group.startswith(
        "later"
    ):  # joins at once, where "g" would wait for the session of who was killed
        one._identity = one._consumer.identity
    return one


#: So that a model is learnt in many steps, and no output is sent before somebody waits for it.
SLOWLY = {
    "checkpoint_every": 10,
    "consumer": {"max_poll_records": 3},
    "producer": {"linger_ms": 60_000},
}


def finish(one):
    """Step until all partitions are learnt to their end."""
    until(one, lambda: offsets(one) == ENDS)
    close(one)
    assert one.metrics.forced_steps() == 0


def twin_of(options, model=None, given_logs=LOGS, **more):
    twin = Twin(options, model or LBP(budget=9), WEIGHTED, **more)
    for message in in_time(given_logs):
        twin.take(message)
    return twin


def newest(folder):
    return CheckpointFolder(folder).newest(KEY)


def assert_exact(folder, options, twin, model=None):
    """The newest checkpoint is what the twin is, and what its order and the logs give."""
    result = newest(folder)
    learner = LateLearner(LBP(9), WEIGHTED, Metrics("f"), options)
    learner.restore(result)
    twin.assert_like(learner)
    order = read_order(CheckpointFolder(folder).folder(KEY), result.id)
    again, _ = relearn(model or LBP(budget=9), LOGS, order, options, WEIGHTED)
    assert encode(again.model) == encode(result.model)
    twin.assert_like(again)


def assert_published(broker, twin):
    """Each prediction, dead letter and orphan of the twin was sent, whether once or again."""
    got = {
        (body["topic"], body["partition"], body["offset"], body["predicted"], body["score"])
        for body in (json.loads(record.value()) for record in everything(broker, "out"))
    }
    assert got == {(*position, *prediction) for position, prediction in twin.predictions.items()}
    for topic, positions in (("dead", twin.dead), ("lost", twin.orphans)):
        headers = [dict(record.headers()) for record in everything(broker, topic)]
        assert {
            (h["drift.topic"].decode(), int(h["drift.partition"]), int(h["drift.offset"]))
            for h in headers
        } == {*positions}


@pytest.mark.parametrize("given", [JOIN, SILENCE])
def test_labels_of_a_second_topic_are_learnt_as_by_a_loop_over_lists(topics, tmp_path, given):
    one = worker(topics, tmp_path, **given)
    twin = twin_of(one.options)
    finish(one)
    assert_exact(tmp_path, one.options, twin)
    assert_published(topics, twin)


#: Bytes of values that a checkpoint has: all of them, or that of one, which take 80 to 99.
ALL, FEW = 4 << 20, 100
#: The others are between the same two steps of the worker, and test_worker.py has each.
SHORTLY = {
    *(("message.taken", 80, ALL), ("outputs.flushed", 3, FEW)),
    ("checkpoint.renamed", 3, FEW),
}
CRASHES = [
    pytest.param((point, count, stored), id=f"{point}-{count}-{stored}", marks=marks)
    for point in ("message.taken", "outputs.flushed", *CHECKPOINT_POINTS)
    for count in ((3, 80) if point == "message.taken" else (3,))
    for stored in (ALL, FEW)
    for marks in [() if (point, count, stored) in SHORTLY else pytest.mark.slow]
]


@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_at_any_step_loses_and_doubles_nothing(topics, tmp_path, monkeypatch, crash):
    """Amid the delay, with values that were stored, and with others that are read again."""
    point, count, stored = crash
    monkeypatch.setattr(join_state, "STORED", stored)
    one = worker(topics, tmp_path, **SILENCE, **SLOWLY)
    twin = twin_of(one.options)
    with Abort(point, count=count), pytest.raises(Aborted):
        until(one, lambda: False)
    kill(one)
    state, values = newest(tmp_path).join
    if count != 3 or point != "message.taken":
        assert state["ids"]  # of features that wait
        # How many wait depends on when the checkpoint was due.
        assert (len(state["lengths"]) < len(state["ids"])) == (
            stored == FEW and len(state["ids"]) > 1
        )
        assert sum(state["lengths"]) == len(values) <= stored
    other = worker(topics, tmp_path, "later", **SILENCE)
    finish(other)
    assert_exact(tmp_path, other.options, twin)
    assert_published(topics, twin)


@pytest.mark.parametrize("point", [None, "checkpoint.renamed"])
def test_a_tracker_continues_amid_the_delay_across_a_crash_too(topics, tmp_path, point):
    given = {**SLOWLY, "predictions": None}
    one = worker(topics, tmp_path, model=Tracker(9), **given)
    plain = Tracker(9, late=True)
    twin = twin_of(one.options, plain, with_scores=False)
    if point is None:
        finish(one)
    else:
        with Abort(point, count=3), pytest.raises(Aborted):
            until(one, lambda: False)
        kill(one)
        finish(worker(topics, tmp_path, "later", model=Tracker(9), **given))
    assert newest(tmp_path).model.late is True
    assert_exact(tmp_path, one.options, twin, Tracker(9, late=True))


@pytest.mark.parametrize("late", [True, False])
def test_what_a_tracker_says_of_its_labels_counts(topics, tmp_path, late):
    one = worker(topics, tmp_path, model=Tracker(9, late=late))
    assert one._loader.model.late is late
    one.close()


@pytest.mark.parametrize("partition", [0, 1])
def test_one_partition_of_both_topics_is_learnt_alone(topics, tmp_path, partition):
    logs = {place: log for place, log in LOGS.items() if place[1] == partition}
    one = worker(topics, tmp_path, partition=partition)
    until(one, lambda: offsets(one) == {place: len(log) for place, log in logs.items()})
    close(one)
    twin = twin_of(one.options, given_logs=logs)
    actual = CheckpointFolder(tmp_path).newest(("f", partition))
    learner = LateLearner(LBP(9), WEIGHTED, Metrics("f", partition), one.options)
    learner.restore(actual)
    twin.assert_like(learner)
    assert_published(topics, twin)


def test_a_partition_that_the_labels_have_not_is_refused(broker, tmp_path):
    broker.create_topic("f", partitions=3)
    broker.create_topic("l", partitions=2)
    none = dict.fromkeys(("predictions", "dead_letters", "orphans"))
    one = worker(broker, tmp_path, partition=2, **none)
    with pytest.raises(ConsumerError, match="l has no partition 2, it has 2: give one below"):
        run(one)


def test_what_comes_live_is_learnt_as_it_comes_and_can_be_learnt_once_more(broker, tmp_path):
    """The order is that of arrival, back and forth in time: what was written down gives it back."""
    broker.create_topic("f", partitions=2)
    broker.create_topic("l", partitions=3)
    none = dict.fromkeys(("predictions", "dead_letters", "orphans"))
    one, rng = worker(broker, tmp_path, checkpoint_every=20, **none), random.Random(3)
    until(one, lambda: len(offsets(one)) == 5)
    at = dict.fromkeys(LOGS, 0)
    twin = Twin(one.options, LBP(budget=9), WEIGHTED)
    while at != ENDS:
        place = rng.choice([place for place in LOGS if at[place] < ENDS[place]])
        new = LOGS[place][at[place] : at[place] + 14]
        at[place] += len(new)
        send(broker, new)
        until(one, lambda: offsets(one) == at)
        for message in new:
            twin.take(message)
    close(one)
    assert len(read_order(CheckpointFolder(tmp_path).folder(KEY), newest(tmp_path).id)) > 5
    assert_exact(tmp_path, one.options, twin)


# --- gaps ---------------------------------------------------------------------------------------


def test_labels_that_were_deleted_are_missed_by_name(topics, tmp_path):
    finish(worker(topics, tmp_path))
    end = ENDS["l", 1]
    label = LOGS["l", 1][-1]
    send(topics, [label] * 50)
    topics.delete_records("l", 1, before=end + 40)
    with pytest.raises(ConsumerError, match=rf"l:1 starts at {end + 40}, after {end}"):
        run(worker(topics, tmp_path, "later"))


def test_features_that_wait_and_were_deleted_are_missed_by_name(topics, tmp_path, monkeypatch):
    monkeypatch.setattr(join_state, "STORED", 0)
    given = {"max_age": 10**6, "pending": 1000, "pending_bytes": 10**6}
    finish(worker(topics, tmp_path, **given))
    state, _ = newest(tmp_path).join
    first = min(
        offset
        for place, offset in zip(state["place"], state["offsets"], strict=True)
        if state["places"][place] == ["f", 1]
    )
    topics.delete_records("f", 1, before=20)
    with pytest.raises(ConsumerError, match=rf"f:1 starts at 20, after {first}, the first mes"):
        run(worker(topics, tmp_path, "later", **given))
    for n in range(2):  # the second has nothing to ask for any more
        one = worker(topics, tmp_path, f"later-{n}", on_gap="skip", **given)
        until(one, lambda one=one: one.metrics.partitions == 2)
        close(one)
        one_by_one = zip(state["place"], state["offsets"], strict=True)
        gone = [o for place, o in one_by_one if state["places"][place] == ["f", 1] and o < 20]
        after = newest(tmp_path).join[0]
        assert len(after["ids"]) == len(state["ids"]) - len(gone)
        assert after["counts"]["evicted"] == len(gone) > 0


# --- logs that are no longer those of the checkpoint ----------------------------------------------


#: So that much waits.
LONG = {"max_age": 10**6, "grace": 10**6, "pending": 1000, "pending_bytes": 10**6}


def learn_whole(folder, identity=None):
    """Learn the logs on a cluster of their own, which is gone then; return the worker's twin."""
    with MockKafka(rebalance_delay=0.01) as whole:
        one = worker(with_logs(whole, LOGS), folder, **LONG)
        one._identity = dict(identity or {}).copy
        finish(one)
    return twin_of(one.options)


def refusal(broker, folder, identity=None, group="later"):
    """What a worker says that ends at once."""
    one = worker(broker, folder, group, **LONG)
    one._identity = dict(identity or {}).copy
    with pytest.raises((CheckpointError, ConsumerError)) as raised:
        run(one)
    return str(raised.value)


def follow(said):
    """Run the commands that an error names, as they stand there; return options and answers."""
    commands, shown = re.findall(r"drift (checkpoint adopt \S+(?: --\w+ \w+)+)", said), ""
    for command in commands:
        done = CliRunner().invoke(app, command.split())
        assert done.exit_code == 0, done.output
        shown += done.output
    return [command.split(maxsplit=3)[3] for command in commands], shown


def learn_on(broker, folder, ends, identity=None):
    one = worker(broker, folder, "later-on", **LONG)
    one._identity = dict(identity or {}).copy
    until(one, lambda: offsets(one) == ends)
    close(one)
    return one.options


@pytest.mark.parametrize("stored", [0, 4 << 20])
@pytest.mark.parametrize(("topic", "first"), [("f", 14), ("l", 0)])
def test_of_a_log_that_was_truncated_the_remedy_works(  # noqa: PLR0917
    broker, tmp_path, monkeypatch, topic, first, stored
):
    """As after an unclean leader election; nothing is learnt twice, and what comes is learnt."""
    monkeypatch.setattr(join_state, "STORED", stored)
    place = topic, 1
    twin = learn_whole(tmp_path)
    left = {**LOGS, place: LOGS[place][:14]}
    with_logs(broker, left)
    said = refusal(broker, tmp_path)
    assert f"{topic}:1 has messages from 0 to 14, and {ENDS[place]} is the next off" in said
    commands, shown = follow(said)
    assert commands == [f"--topic {topic} --partition 1 --offset {first}"]
    waited = len(twin.join.waiting + twin.join.early)
    twin.join.drop(place, range(first, ENDS[place]))
    dropped = waited - len(twin.join.waiting + twin.join.early)
    kind = "messages" if topic == "f" else "labels"
    assert f"as it is now, and drops {dropped} {kind} of it that waited there\n" in shown
    assert dropped > 1
    twin.offsets[place], twin.stamps[place] = first, []
    for message in LOGS[place][:14]:
        twin.take(message)
    for name, value in (("f", {"features": {"w1": 2.0}}), ("l", {"label": True})):
        body, log = json.dumps({"id": "new", **value}).encode(), left[name, 1]
        new = Message(Position(name, 1, len(log)), None, body, (), 70_000)
        send(broker, [new])
        twin.take(new)
        left[name, 1] = [*log, new]
    examples = twin.examples
    options = learn_on(broker, tmp_path, {at: len(log) for at, log in left.items()})
    learner = LateLearner(LBP(9), WEIGHTED, Metrics("f"), options)
    learner.restore(newest(tmp_path))
    twin.assert_like(learner)
    assert learner.metrics.examples == examples


@pytest.mark.parametrize("recreated", ["f", "l", "fl"])
def test_of_topics_that_were_recreated_the_remedy_works(broker, tmp_path, recreated):
    names = {"f": "topic_id", "l": "labels_topic_id"}
    before = {"topic_id": "1", "labels_topic_id": "2", "cluster_id": "c", "group": "g"}
    now = before | {names[topic]: "3" for topic in recreated}
    twin = learn_whole(tmp_path, before)
    new = messages(logs(n=20, seed=5))
    left = {place: (new if place[0] in recreated else LOGS)[place] for place in LOGS}
    with_logs(broker, left)
    said = refusal(broker, tmp_path, now)
    assert f"learnt from another {' and '.join(recreated)}\n" in said
    assert "another cluster" not in said
    if len(recreated) == 2:  # one of the two is not enough
        follow(said[: said.index(" and drift")])
        said = refusal(broker, tmp_path, now, "later-2")  # which waits for no session
        assert "learnt from another l\n" in said
        assert "another cluster" not in said
    assert follow(said)[0] == [f"--topic {recreated[-1]} --offset 0"]
    for place in [place for place in LOGS if place[0] in recreated]:
        twin.join.drop(place, range(ENDS[place]))
        del twin.offsets[place], twin.stamps[place]
    for message in in_time({place: left[place] for place in left if place[0] in recreated}):
        twin.take(message)
    ends = {place: len(log) for place, log in left.items()}
    options = learn_on(broker, tmp_path, ends, now)
    learner = LateLearner(LBP(9), WEIGHTED, Metrics("f"), options)
    learner.restore(newest(tmp_path))
    twin.assert_like(learner)
    assert newest(tmp_path).identity == now


# --- takeovers ----------------------------------------------------------------------------------


@pytest.fixture
def slow(topics, tmp_path, monkeypatch):
    """A worker that is about to read waiting features again, and the event that lets it."""
    monkeypatch.setattr(join_state, "STORED", 0)
    given = {"max_age": 10**6, "pending": 1000, "pending_bytes": 10**6}
    finish(worker(topics, tmp_path, **given))
    asked, go, reread = threading.Event(), threading.Event(), GroupConsumer.reread

    def wait(*asked_for):
        asked.set()
        assert go.wait(60)
        return reread(*asked_for)

    monkeypatch.setattr(GroupConsumer, "reread", wait)
    one = worker(topics, tmp_path, "later", **given)
    until(one, asked.is_set)
    yield one, go
    go.set()
    close(one)


def epochs(folder):
    return CheckpointFolder(folder)._files(KEY).listing().epochs


def test_a_worker_polls_while_a_model_is_taken_over(slow, tmp_path, monkeypatch, caplog):
    """However long that takes, it stays in the group, and claims once."""
    caplog.set_level("INFO")
    one, go = slow
    for _ in range(3):
        before = one.metrics.polled
        assert one.step(0.01) == 0
        assert one.metrics.polled > before
    assert [*one._taking] == [KEY]
    assert one.assignment.started() == []
    assert one.metrics.partitions == 0
    assert one.metrics.is_alive()
    [problem] = one.metrics.problems()
    assert problem.startswith("f is being taken over for ")
    monkeypatch.setattr(takeover, "_OFTEN", 0.0)
    one.step(0.01)
    assert "f is being taken over for " in caplog.text
    go.set()
    until(one, lambda: one.metrics.partitions == 2)
    assert one.metrics.problems() == []
    assert one.metrics.reread > 0
    assert epochs(tmp_path)[-1] == 2


def test_a_takeover_is_abandoned_where_the_partitions_go(slow, tmp_path):
    one, go = slow
    places = [*one.assignment.places]
    one._lose(places)
    [thread] = one._taker._threads
    go.set()
    one.assignment.assign(places)
    until(one, lambda: one.metrics.partitions == 2)
    assert thread.is_alive()  # it did the next one
    assert epochs(tmp_path)[-1] == 3
    assert offsets(one) == ENDS


# --- what is refused ----------------------------------------------------------------------------


def test_times_of_producers_are_refused_by_default(topics, tmp_path):
    one = worker(topics, tmp_path / "one", timestamps="log")
    with pytest.raises(
        ConsumerError,
        match=r"[fl]:\d:0 has the time of its producer.*another group and folder.*--from latest",
    ):
        run(one)
    other = worker(topics, tmp_path / "other", "later", timestamps="log", start="latest")
    until(other, lambda: offsets(other) == ENDS)
    close(other)


def test_other_settings_are_refused_by_name(broker, tmp_path):
    for topic in ("f", "l", "out", "dead", "lost"):
        broker.create_topic(topic)
    one = worker(broker, tmp_path)
    produce(broker, "f", [b'{"id": 1, "features": {}}'])
    until(one, lambda: learner_of(one) and learner_of(one).metrics.unlabelled)
    close(one)
    for n, (options, message) in enumerate(
        [
            (SILENCE | {"pending": 40}, "labels.after: null in the checkpoint, 8 now"),
            ({"labels": None}, "learnt with labels from a topic of their own"),
            ({"labels": "dead", "dead_letters": None}, 'labels: "l" in the checkpoint, "dead" now'),
        ]
    ):
        with pytest.raises(ConfigurationError, match=message):
            run(worker(broker, tmp_path, f"later-{n}", **options))


@pytest.mark.parametrize(
    ("options", "codec", "message"),
    [
        (
            {"labels": "f"},
            JsonCodec(),
            "^topic and labels are both 'f': give each a topic of its own$",
        ),
        ({"max_idle": -1}, JsonCodec(), "max_idle must be at least 0"),
        ({"partition": -1}, JsonCodec(), "partition must be at least 0, not -1"),
        ({"silence": True}, JsonCodec(), "silence and after belong together"),
        ({}, JsonCodec(label="y"), "labels find their features by the id: say where"),
        ({}, object(), "object is no codec: derive it from drift.consumers.Codec"),
        (
            {"silence": "legit", "after": 9},
            JsonCodec(classes=["ok", "fraud"]),
            r"silence is 'legit', which is none of the codec's classes, \['ok', 'fraud'\]",
        ),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(tmp_path, options, codec, message):
    given = {"topic": "f", "group": "g", "labels": "l", "predictions": "out", **options}
    with pytest.raises(ParameterError, match=message):
        Worker(
            LBP(budget=9),
            CheckpointFolder(tmp_path),
            {},
            WorkerOptions(dead_letters="dead", orphans="lost", **given),
            codec=codec,
        )
