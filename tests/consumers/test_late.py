"""Labels on a topic of their own: the worker against a twin of lists, killed at every step."""

import pytest

from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.checkpoints.state import encode
from drift.consumers.codec import JsonCodec
from drift.consumers.crash_points import CHECKPOINT_POINTS
from drift.errors import ConfigurationError, ConsumerError, ParameterError
from drift.models import LBP, Tracker
from drift.testing import Abort, Aborted
from tests.consumers.late_logs import JOIN, logs
from tests.consumers.stepping import close, run, until
from tests.consumers.twin_late import Twin, bodies

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from kafka import KafkaProducer

from drift.consumers.client.topics import Reader
from drift.consumers.worker import Worker
from tests.consumers.test_worker import SESSION, SHORT, everything, kill


def send(broker, topic, partition, log):
    producer = KafkaProducer(**broker.client_args)
    for time, value in log:
        producer.send(topic, value, key=b"", partition=partition, timestamp_ms=max(0, time))
    producer.flush(timeout=30)
    producer.close(timeout=5)


@pytest.fixture
def topics(broker):
    for topic in ("f", "l"):
        broker.create_topic(topic, partitions=2)
        for partition in range(2):
            send(broker, topic, partition, logs(seed=partition)[topic == "l"])
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
    producer = given.pop("producer", None)
    one = Worker(
        given.pop("model", LBP(budget=9)),
        CheckpointFolder(folder),
        broker.client_args,
        WorkerOptions(**given),
        consumer=consumer | given.pop("consumer", {}),
        producer=producer,
    )
    if group == "later":  # joins at once, where "g" would wait for the session of who was killed
        one._identity = one._consumer.identity
    return one


def twins(broker, options, given_up=None):
    found = []
    for partition in range(2):
        parts = []
        for topic in ("f", "l"):
            with Reader(topic, broker.client_args) as reader:
                ends = {partition: reader.ends()[partition]}
                parts.append([(m.position.offset, m.timestamp, m.value) for m in reader.read(ends)])
        found.append(Twin(*parts, options, (given_up or {}).get(partition, ())))
    return found


def finish(one, ends, limit=600):
    """Step until the labels of both partitions are learnt as far as the twins have them.

    The label after those is begun where there is one, which may drop what is too old for it.
    """
    for _ in range(limit):
        one.step(0.1)
        done = [learner.offsets["l", learner.labels[1]] for learner in one._learners.values()]
        at = [learner.offsets["f", learner.labels[1]] for learner in one._learners.values()]
        begun = all(own.waits or not own.metrics.lag for own in one._learners.values())
        if begun and done == [ends[k[1]] for k in one._learners] and sum(at) == 120:
            close(one)
            return
    raise AssertionError(f"learnt up to {done}, predicted up to {at}")


def assert_exact(folder, found):
    for partition, twin in enumerate(found):
        newest = CheckpointFolder(folder).newest(("f", partition))
        assert encode(newest.model) == encode(twin.model(LBP(budget=9)))
        twin.assert_joined(newest.join)
        poison = sum(example is None for *_, example in twin.features)
        counts = {k: n for k, n in newest.metrics.items() if k != "recent"}
        mistakes, model = 0, LBP(budget=9)
        for x, y, w in twin.learnt:
            mistakes += model.predict_one(x) != y
            model.learn_one(x, y) if w is None else model.learn_one(x, y, w=w)
        assert counts == {
            "examples": len(twin.learnt),
            "unlabelled": 60 - poison,
            "mistakes": mistakes,
            "dead_letters": poison + len(twin.refused),
        }


def assert_published(broker, found):
    got = bodies(everything(broker, "out"))
    lost = {(r.value, dict(r.headers)["drift.offset"]) for r in everything(broker, "lost")}
    dead = [(r.value, dict(r.headers)) for r in everything(broker, "dead")]
    for partition, twin in enumerate(found):
        xs = {o: e.features for o, _, _, e in twin.features if e is not None}
        mine = {k: v for k, v in got.items() if k.startswith(f"f:{partition}:")}
        assert mine.keys() == {f"f:{partition}:{offset}" for offset in xs}
        every = [body for bodies_ in mine.values() for body in bodies_]
        for after, model in twin.models(LBP(budget=9), {b["labels_learnt"] for b in every}):
            for body in every:
                if body["labels_learnt"] == after:
                    x = xs[body["offset"]]
                    assert body["predicted"] == model.predict_one(x)
                    assert body["score"] == model.decision_function_one(x)
        assert {(v, str(o).encode()) for o, v in twin.orphans} <= lost
        there = {(h["drift.topic"], int(h["drift.offset"])) for v, h in dead}
        assert {(b"l", offset) for offset, _ in twin.refused} <= there
    assert len(lost) == len({(v, o) for t in found for o, v in t.orphans})


def test_labels_of_a_second_topic_are_learnt_as_by_a_loop_over_lists(topics, tmp_path):
    one = worker(topics, tmp_path)
    found = twins(topics, one.options)
    assert all(twin.counts[kind] for twin in found for kind in ("learnt", "orphan", "duplicate"))
    finish(one, [twin.labels_end for twin in found])
    assert_exact(tmp_path, found)
    assert_published(topics, found)


#: The others are between the same two steps of the worker, and test_worker.py has each.
SHORTLY = ("message.taken", "outputs.flushed", "checkpoint.half-written", "checkpoint.renamed")
POINTS = [(point, 3) for point in SHORTLY] + [
    pytest.param(point, 3, marks=pytest.mark.slow)
    for point in CHECKPOINT_POINTS
    if point not in SHORTLY
]


@pytest.mark.parametrize(("point", "count"), [("message.taken", 150), *POINTS])
def test_a_crash_at_any_step_loses_and_doubles_nothing(topics, tmp_path, point, count):
    slow = {"linger_ms": 60_000}  # what the worker does not wait for is in no hurry to be sent
    one = worker(topics, tmp_path, checkpoint_every=25, producer=slow)
    found = twins(topics, one.options)
    ends = [twin.labels_end for twin in found]
    with Abort(point, count=count), pytest.raises(Aborted):
        finish(one, ends)
    kill(one)
    finish(worker(topics, tmp_path, "later"), ends)
    assert_exact(tmp_path, found)
    assert_published(topics, found)


@pytest.mark.parametrize("point", [None, "checkpoint.renamed"])
def test_a_tracker_learns_what_it_really_predicted_across_a_crash_too(topics, tmp_path, point):
    one = worker(topics, tmp_path, model=Tracker(9), checkpoint_every=25)
    found = twins(topics, one.options)
    ends = [twin.labels_end for twin in found]
    if point is None:
        finish(one, ends)
    else:
        with Abort(point, count=3), pytest.raises(Aborted):
            finish(one, ends)
        kill(one)
        finish(worker(topics, tmp_path, "later", model=Tracker(9)), ends)
    got = bodies(everything(topics, "out"))
    for partition, twin in enumerate(found):
        newest = CheckpointFolder(tmp_path).newest(("f", partition))
        assert newest.model.late is True
        twin.assert_joined(newest.join)
        made = [
            (body["offset"], body["labels_learnt"])
            for key, several in got.items()
            for body in several
            if key.startswith(f"f:{partition}:")
        ]
        assert encode(newest.model) == encode(twin.followed(Tracker(9, late=True), made))


@pytest.mark.parametrize("late", [True, False])
def test_what_a_tracker_says_of_its_labels_counts(topics, tmp_path, late):
    one = worker(topics, tmp_path, model=Tracker(9, late=late))
    assert one.model.late is late
    one._close()


def test_what_lies_between_the_cursors_is_read_again_where_it_was_too_much(topics, tmp_path):
    narrow = {"pending": 3, "pending_bytes": 400}
    one = worker(topics, tmp_path, checkpoint_every=20, **narrow)
    one._consumer.consumer.config["max_poll_records"] = 30
    again, asked = one._consumer.again, []
    one._consumer.again = lambda place, offset: asked.append(place) or again(place, offset)
    found = twins(topics, one.options)
    finish(one, [twin.labels_end for twin in found])
    assert asked
    assert_exact(tmp_path, found)
    assert_published(topics, found)


def test_features_that_do_not_come_block_until_they_are_given_up(
    broker, tmp_path, monkeypatch, caplog
):
    for topic in ("f", "l", "out", "dead", "lost"):
        broker.create_topic(topic, partitions=2)
    x = b'{"id": "%d", "features": {"a": 1.0}}'
    y = b'{"id": "%d", "label": true}'
    for partition in range(2):
        send(broker, "f", partition, [(n, x % n) for n in range(60)])
        send(broker, "l", partition, [(100, y % n) for n in (5, 70, 7)])
    monkeypatch.setattr("drift.consumers.late._PATIENCE", 0.05)
    wide = {"grace": 1000, "pending": 100, "pending_bytes": 10_000}
    one = worker(broker, tmp_path, session=SHORT, orphans=None, **wide)
    with pytest.raises(AssertionError, match=r"learnt up to \[1, 1\], predicted up to \[60, 60\]"):
        finish(one, [3, 3], 40)
    assert caplog.text.count("l:0: nothing is learnt for 0 s: the features of label 1 have") == 1
    assert all(metrics.late["blocked_seconds"] > 0 for metrics in one.metrics.models)
    close(one)
    assert CheckpointFolder(tmp_path).newest(("f", 0)).offsets == {("f", 0): 60, ("l", 0): 1}
    other = worker(broker, tmp_path, session=SHORT, idle_timeout=0.05, **wide)
    finish(other, [3, 3])
    given_up = {partition: [(1, 60)] for partition in range(2)}
    assert_exact(tmp_path, twins(broker, other.options, given_up))
    newest = CheckpointFolder(tmp_path).newest(("f", 1))
    assert newest.join["given_up"] == [[1, 60]]
    letters = {
        r.position.partition: dict(r.headers)["drift.error"] for r in everything(broker, "lost")
    }
    assert letters == {
        n: f"'70' given up, as nothing came after f:{n}:60".encode() for n in range(2)
    }


def test_a_decision_is_in_a_checkpoint_before_anything_follows_from_it(broker, tmp_path):
    for topic in ("f", "l", "out", "dead", "lost"):
        broker.create_topic(topic)
    send(broker, "f", 0, [(0, b'{"id": 1, "features": {"a": 1.0}}')])
    send(broker, "l", 0, [(0, b'{"id": 2, "label": true}'), (0, b'{"id": 1, "label": true}')])
    rare = {"checkpoint_every": 10**6, "checkpoint_seconds": 10**6}
    one = worker(broker, tmp_path, idle_timeout=0.01, session=SHORT, **rare)
    until(one, lambda: sum(metrics.examples for metrics in one.metrics.models))
    newest = CheckpointFolder(tmp_path).newest(("f", 0))
    assert (newest.join["given_up"], newest.offsets["l", 0]) == ([[0, 1]], 0)
    kill(one)


def test_topics_must_have_as_many_partitions(broker, tmp_path):
    broker.create_topic("f", partitions=3)
    broker.create_topic("l", partitions=2)
    one = worker(broker, tmp_path, predictions=None, dead_letters=None, orphans=None)
    with pytest.raises(ConsumerError, match=r"f has 3 and l has 2 partitions: .* add them to both"):
        one.step(0.1)
    one._close()


def test_times_of_producers_are_refused_unless_asked_for(topics, tmp_path):
    one = worker(topics, tmp_path, timestamps="log")
    with pytest.raises(
        ConsumerError, match=r"[fl]:\d:0 has the time of its producer.*--timestamps"
    ):
        run(one)


def test_labels_that_were_deleted_are_missed_by_name(topics, tmp_path):
    one = worker(topics, tmp_path, session=SHORT)
    found = twins(topics, one.options)
    finish(one, [twin.labels_end for twin in found])
    end = found[1].labels_end
    send(topics, "l", 1, [(60_000, b'{"id": 1, "label": true}')] * 50)
    topics.delete_records("l", 1, before=end + 40)
    other = worker(topics, tmp_path, session=SHORT)
    with pytest.raises(ConsumerError, match=rf"l:1 begins at {end + 40}, behind {end}"):
        finish(other, [10**6, 10**6])
    other._close()


def test_features_that_were_deleted_before_they_were_learnt_are_missed_by_name(topics, tmp_path):
    one = worker(topics, tmp_path, session=SHORT, grace=10**6)
    ends = [twin.labels_end for twin in twins(topics, one.options)]
    finish(one, ends)
    folder = CheckpointFolder(tmp_path)
    newest, epoch = folder.newest(("f", 1)), folder.claim(("f", 1)).epoch
    behind = {**newest.join, "offsets": [20, *newest.join["offsets"][1:]]}
    folder.configuration = newest.configuration
    folder.save(("f", 1), epoch, newest.model, newest.offsets, newest.metrics, join=behind)
    topics.delete_records("f", 1, before=30)
    other = worker(topics, tmp_path, session=SHORT, grace=10**6)
    with pytest.raises(ConsumerError, match=r"f:1 begins at 30, behind 20"):
        finish(other, [10**6, 10**6])
    other._close()
    finish(worker(topics, tmp_path, session=SHORT, grace=10**6, on_gap="skip"), ends)
    assert folder.newest(("f", 1)).join["offsets"][0] == 30  # so that it is not asked for again


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grace": 3}, "labels.grace: 2 in the checkpoint, 3 now"),
        ({"labels": None}, "learnt with labels from a topic of their own"),
        ({"labels": "dead", "dead_letters": None}, 'labels: "l" in the checkpoint, "dead" now'),
    ],
)
def test_other_settings_are_refused_by_name(broker, tmp_path, options, message):
    for topic in ("f", "l", "out", "dead", "lost"):
        broker.create_topic(topic)
    one = worker(broker, tmp_path)
    until(one, lambda: one.metrics.partitions)
    close(one)
    other = worker(broker, tmp_path, "later", **options)
    with pytest.raises(ConfigurationError, match=message):
        finish(other, [])
    other._close()


@pytest.mark.parametrize(
    ("options", "codec", "message"),
    [
        ({"single": True}, JsonCodec(), "single with labels: the order of two logs is known"),
        ({"labels": "f"}, JsonCodec(), "f, f, out, dead, lost: .* need a topic each"),
        ({"idle_timeout": 0}, JsonCodec(), "idle_timeout must be above 0, not 0"),
        ({}, JsonCodec(label="y"), "labels find their features by the id: say where"),
        ({}, object(), "object has no decode_label"),
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
