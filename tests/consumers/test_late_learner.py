"""A learner of labels that come later, without a broker: any order of what comes, and restarts."""

import json
import uuid

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest

from drift.consumers import CheckpointFolder, read_logs, relearn
from drift.consumers.checkpoints import adoption
from drift.consumers.checkpoints.checkpoint import Checkpoint, from_bytes, to_bytes
from drift.consumers.checkpoints.file_format import describe, seal
from drift.consumers.checkpoints.state import encode
from drift.consumers.codec import Example, JsonCodec
from drift.consumers.exporter import Exporter
from drift.consumers.late import LateLearner
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics, WorkerMetrics
from drift.consumers.options import WorkerOptions
from drift.consumers.records import Message, Position
from drift.errors import CheckpointError, ConfigurationError, ConsumerError
from drift.models import LBP, Tracker
from tests.consumers.late_logs import JOIN, logs
from tests.consumers.twin_late import Twin

SENT = {"predictions": "out", "dead_letters": "dead", "orphans": "lost", "timestamps": "create"}


def options(**given):
    return WorkerOptions(topic="f", group="g", labels="l", **{**JOIN, **SENT, **given})


def learner(codec=None, model=None, **given):
    made = LateLearner(model or LBP(9), codec or JsonCodec(), Metrics("f", 0), options(**given))
    made.start({("f", 0): 0, ("l", 0): 0})
    return made


def messages(topic, log):
    return [
        Message(Position(topic, 0, n), None, value, (), time) for n, (time, value) in enumerate(log)
    ]


def restarted(one):
    """The learner that goes on from a checkpoint of this one."""
    data = to_bytes(Checkpoint(one.model, one.offsets, metrics=one.metrics.state(),
                               join=one.join_state()))  # fmt: skip
    other = LateLearner(LBP(9), one.codec, Metrics("f", 0), one.options)
    other.restore(from_bytes(data))
    return other


def supply(one, features, count):
    """Read again so many of what lies between the cursors."""
    offset = one.wanted
    end = min(offset + count, one.offsets["f", 0])
    one.supply(features[offset:end], end)


@given(st.integers(0, 10**6), st.sampled_from([1, 3, 40]), st.data())
def test_any_order_and_any_restart_give_what_lists_give(seed, pending, data):  # noqa: C901
    log = logs(25, seed)
    features, labels = messages("f", log[0]), messages("l", log[1])
    headers = {n: 5 + 40 * (n % 3) for n in range(1, len(features), 2)}  # their bytes by offset
    for n, size in headers.items():
        features[n] = features[n]._replace(headers=[("trace", bytes(size - 5))])
    codec = JsonCodec(weight="weight")
    one, sent = learner(codec, pending=pending, pending_bytes=1000), []
    steps = st.sampled_from(["features", "features", "labels", "restart", "again"])
    upto = {"f": 0, "l": 0}  # as far as the logs have come
    for step in [*data.draw(st.lists(steps, max_size=40)), "all"]:
        if step == "restart":
            one = restarted(one)
        elif step in {"features", "all"}:
            upto["f"] = len(features) if step == "all" else upto["f"] + 4
            for message in features[one.offsets["f", 0] : upto["f"]]:
                sent += one.take(message)
        sent += one.advance()
        while (step in {"again", "all"}) and one.wanted is not None:
            supply(one, features, 5)
            sent += one.advance()
        upto["l"] = len(labels) if step == "all" else upto["l"] + 3 * (step == "labels")
        while not one.waits and one.offsets["l", 0] < upto["l"]:
            sent += one.take(labels[one.offsets["l", 0]])
            while step == "all" and one.wanted is not None:
                supply(one, features, 5)
                sent += one.advance()
    parts = [[(n, *entry) for n, entry in enumerate(entries)] for entries in log]
    twin = Twin(*parts, one.options, codec=codec, headers=headers)
    twin.assert_joined(json.loads(json.dumps(one.join_state())))
    assert encode(one.model) == encode(twin.model(LBP(9)))
    made = [json.loads(out.value) for out in sent if out.topic == "out"]
    xs = {offset: example.features for offset, _, _, example in twin.features if example}
    assert {body["offset"] for body in made} == xs.keys()
    for after, model in twin.models(LBP(9), {body["labels_learnt"] for body in made}):
        for body in made:
            if body["labels_learnt"] == after:
                assert body["score"] == model.decision_function_one(xs[body["offset"]])


@given(st.integers(0, 10**6), st.data())
@settings(max_examples=25)
def test_what_was_noted_is_in_the_checkpoint_and_a_crash_notes_nothing_twice(seed, data):
    log = logs(25, seed)
    features, labels = messages("f", log[0]), messages("l", log[1])
    codec = JsonCodec(weight="weight")
    one, sent = learner(codec, Tracker(4, late=True)), []
    saved = restarted(one)
    steps = st.sampled_from(["features", "features", "labels", "save", "crash"])
    upto = {"f": 0, "l": 0}
    for step in [*data.draw(st.lists(steps, max_size=40)), "all"]:
        if step == "save":
            saved = restarted(one)
        elif step == "crash":
            one = restarted(saved)
        for name in "fl":
            end = len(features if name == "f" else labels)
            grows = step == ("features" if name == "f" else "labels")
            upto[name] = end if step == "all" else min(upto[name] + 4 * grows, end)
        for message in features[one.offsets["f", 0] : upto["f"]]:
            sent += one.take(message)
        while True:
            sent += one.advance()
            if one.wanted is not None:
                supply(one, features, 5)
            elif not one.waits and one.offsets["l", 0] < upto["l"]:
                sent += one.take(labels[one.offsets["l", 0]])
            else:
                break
    made = [json.loads(out.value) for out in sent if out.topic == "out"]
    made = [(body["offset"], body["labels_learnt"]) for body in made]
    twin = Twin(*([(n, *entry) for n, entry in enumerate(part)] for part in log), one.options,
                codec=codec)  # fmt: skip
    twin.assert_joined(json.loads(json.dumps(one.join_state())))
    assert encode(one.model) == encode(twin.followed(Tracker(4, late=True), made))
    again = Tracker(4, late=True)
    relearn(again, *read_logs(features, labels, codec), made, options=one.options)
    assert encode(again) == encode(one.model)


@pytest.mark.parametrize("predictions", ["out", None])
def test_a_message_leaves_one_ticket_which_its_label_takes(predictions):
    one = learner(model=Tracker(4, late=True), predictions=predictions)
    for n in range(4):
        one.take(pair(n, {"a": n / 4})[0])
    assert len(one.model._core.tickets) == 4
    for left, n in ((3, 2), (2, 0), (1, 3), (0, 1)):
        label = pair(n, {}, timestamp=0)[1]
        one.take(label._replace(position=Position("l", 0, 3 - left)))
        assert len(one.model._core.tickets) == left
    assert (one.metrics.examples, one.metrics.mistakes) == (4, 1)  # the first alone


class Failing(LBP):
    """A model that cannot learn some features."""

    def learn_one(self, x, y, w=1):
        if "bad" in x:
            raise ValueError("no")
        super().learn_one(x, y, w)


def pair(name, x, **more):
    return (
        Message(Position("f", 0, name), None, json.dumps({"id": name, "features": x}).encode()),
        Message(
            Position("l", 0, name), None, json.dumps({"id": name, "label": True}).encode(), **more
        ),
    )


def test_what_a_model_cannot_learn_is_a_dead_letter_of_its_label_and_done():
    one = learner(model=Failing(9))
    features, label = pair(0, {"bad": 1.0})
    one.take(features)
    [letter] = one.take(label)
    assert (letter.topic, dict(letter.headers)["drift.topic"]) == ("dead", b"l")
    assert one.take(label._replace(position=Position("l", 0, 1))) == []
    one.note()
    assert (one.metrics.late["duplicates"], one.metrics.examples, one.metrics.dead_letters) == (
        1,
        0,
        1,
    )


@pytest.mark.parametrize("step", ["take", "supply", "label"])
def test_no_memory_skips_no_message(step):
    class Full(JsonCodec):
        def decode(self, value, headers=()):
            raise MemoryError

        decode_label = decode

    one, (features, label) = learner(Full()), pair(0, {"a": 1.0})
    with pytest.raises(MemoryError):
        one.supply([features], 1) if step == "supply" else one.take(
            features if step == "take" else label
        )
    assert one.offsets == {("f", 0): 0, ("l", 0): 0}


class Naming(JsonCodec):
    """Gives ids of a type of its own, made by `kind`."""

    kind = uuid.UUID

    def decode(self, value, headers=()):
        example = super().decode(value)
        return example._replace(id=type(self).kind(example.id))

    def decode_label(self, value, headers=()):
        example = super().decode_label(value)
        return example._replace(id=type(self).kind(example.id))


@pytest.mark.parametrize(
    "kind",
    [lambda n: uuid.UUID(int=n), lambda n: [n], lambda n: (n,), lambda n: b"7", lambda n: 1 << 64,
     bool, float, lambda n: "\ud800"],
    ids=["uuid", "list", "tuple", "bytes", "long", "bool", "float", "surrogate"],
)  # fmt: skip
def test_an_id_that_a_checkpoint_would_give_back_as_another_is_refused(kind):
    codec = type("Odd", (Naming,), {"kind": staticmethod(kind)})()
    one, (features, label) = learner(codec), pair(0, {"a": 1.0})
    for message in (features, label):
        [letter] = one.take(message)
        headers = dict(letter.headers)
        assert (letter.topic, headers["drift.topic"]) == ("dead", message.position.topic.encode())
        assert headers["drift.error"].startswith((b"id is ", b"id holds half "))
    read, known = read_logs([features], [label], codec)
    join, _ = relearn(LBP(9), read, known, options=one.options)
    assert join.state() == one.join_state()


def test_an_id_of_numpys_is_that_of_the_message():
    codec = type("Numpys", (Naming,), {"kind": np.int64})()
    one, (features, label) = learner(codec), pair(0, {"a": 1.0})
    one.take(features)
    one.take(label._replace(value=b'{"id": 1, "label": true}'))
    assert one.waits
    one.advance()
    later = restarted(one)
    later.offsets["f", 0] = 1
    later.take(label._replace(position=Position("l", 0, 1)))
    assert later.metrics.late == {}
    assert later.model.n_supports == 1


#: Headers that a checkpoint has to give back as they came.
ODD = ("none", None), ("empty", b""), ("é", b"\xff")


def test_headers_are_there_when_features_are_learnt():
    seen = []

    class Headed(JsonCodec):
        def decode(self, value, headers=()):
            seen.append(headers)
            return Example({"a": float(dict(headers)["a"])}, id=0)

    one, (features, label) = learner(Headed()), pair(0, {})
    one.take(features._replace(headers=[("a", b"2.5"), *ODD]))
    one.take(label._replace(value=b'{"id": 1, "label": true}'))  # so that they are looked at
    other = restarted(one)
    assert other.join_state() == one.join_state()
    other.take(label._replace(value=b'{"id": 1, "label": true}'))
    assert other.waits
    one.advance()
    later = restarted(learner(Headed()))
    later.join = other.join
    later.offsets["f", 0] = 1
    later.take(label)
    assert later.model.supports[0][0] == {"a": 2.5}
    assert seen[-1] == [("a", b"2.5"), *ODD]


def test_times_of_producers_are_refused_before_anything_is_taken():
    one = learner(timestamps="log")
    message = pair(0, {})[0]
    one.check([message._replace(appended=True)])
    with pytest.raises(ConsumerError, match="f:0:0 has the time of its producer"):
        one.check([message._replace(appended=True), message])


def test_checkpoints_with_and_without_labels_of_their_own_do_not_mix():
    late = from_bytes(to_bytes(Checkpoint(LBP(9), {}, join=learner().join_state())))
    plain = from_bytes(to_bytes(Checkpoint(LBP(9), {})))
    options = WorkerOptions(topic="f", group="g")
    with pytest.raises(ConfigurationError, match="was learnt with labels from a topic"):
        Learner(LBP(9), JsonCodec(), Metrics("f", 0), options).restore(late)
    with pytest.raises(ConfigurationError, match="was learnt without labels from a topic"):
        learner().restore(plain)


@pytest.mark.parametrize(
    ("size", "join", "message"),
    [
        (10**9, b"{}", "the header's join is 1000000000, not a number"),
        (True, b"{}", "the header's join is True, not a number"),
        (1, b"{", "the state of its labels is no JSON"),
    ],
)
def test_a_forged_join_is_refused(size, join, message):
    plain = describe(to_bytes(Checkpoint(LBP(9), {})))
    data = seal({**plain.header, "join": size}, plain.payload + join, None)
    with pytest.raises(CheckpointError, match=message):
        from_bytes(data)


def test_a_join_that_lacks_something_is_refused():
    with pytest.raises(CheckpointError, match=r"has no state of labels: KeyError\('offsets'\)"):
        learner().restore(from_bytes(to_bytes(Checkpoint(LBP(9), {}, join={"kept": []}))))


def test_what_waits_is_shown_and_counters_begin_with_the_process():
    one = learner()
    for n in range(3):
        one.take(pair(n, {"a": 1.0})[0]._replace(timestamp=1000 * n))
    _, label = pair(1, {})
    one.take(label._replace(position=Position("l", 0, 0), timestamp=2500))
    one.take(label._replace(position=Position("l", 0, 1), timestamp=2600))
    one.note()
    with Exporter(worker := WorkerMetrics()) as exporter:
        worker.models = [one.metrics]
        shown = generate_latest(exporter.registry).decode()
        other = restarted(one)
        other.note()
        other.take(label._replace(position=Position("l", 0, 2), timestamp=2700))
        other.note()
        worker.models = [other.metrics]
        later = generate_latest(exporter.registry).decode()
    place = '{partition="0",topic="f"}'
    assert f"drift_pending{place} 1.0" in shown
    assert f"drift_join_delay_seconds{place} 1.5" in shown
    assert f"drift_blocked_seconds{place} 0.0" in shown
    assert f"drift_duplicates_total{place} 0.0" in shown  # as it was when it was first looked at
    assert f"drift_duplicates_total{place} 1.0" in later
    assert other.metrics.late["duplicates"] == 2


def test_two_logs_are_not_adopted_at_one_offset(tmp_path):
    one, folder = learner(), CheckpointFolder(tmp_path)
    epoch = folder.claim(("f", 0)).epoch
    folder.save(("f", 0), epoch, one.model, {("f", 0): 3}, join=one.join_state())
    [(partition, _)] = adoption.newest(tmp_path)
    with pytest.raises(CheckpointError, match="it goes on in two logs"):
        adoption.adopt(partition, 5, None)
    adoption.adopt(partition, None, None)
    assert folder.newest(("f", 0)).join == one.join_state()
