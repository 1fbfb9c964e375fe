"""A learner of labels that come later, without a broker: any order of what comes, and restarts."""

import json
import uuid

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest
from river.preprocessing import StandardScaler

from drift._late import final_step
from drift.consumers import CheckpointFolder, relearn
from drift.consumers import join as join_module
from drift.consumers.checkpoints import adoption, files, join_state
from drift.consumers.checkpoints.checkpoint import Checkpoint, from_bytes, to_bytes
from drift.consumers.checkpoints.file_format import describe, seal
from drift.consumers.codec import Example
from drift.consumers.exporter import Exporter
from drift.consumers.json_codec import JsonCodec
from drift.consumers.late import LateLearner
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics, WorkerMetrics
from drift.consumers.options import WorkerOptions
from drift.consumers.records import Gap, Message, Position
from drift.consumers.shadow import Shadow
from drift.errors import CheckpointError, ConfigurationError, ConsumerError, UnavailableError
from drift.models import LBP, Tracker
from drift.models._state.codec import encode
from drift.models._tracker.names import hash_of
from tests.consumers.late_logs import JOIN, SILENCE, logs, messages
from tests.consumers.twin_late import Twin
from tests.consumers.twin_order import in_time

SENT = {"predictions": "out", "dead_letters": "dead", "orphans": "lost", "timestamps": "create"}
WEIGHTED = JsonCodec(weight="weight")


def options(**given):
    return WorkerOptions(topic="f", group="g", labels="l", **{**JOIN, **SENT, **given})


def learner(codec=None, model=None, **given):
    return LateLearner(model or LBP(9), codec or JsonCodec(), Metrics("f"), options(**given))


class Logs:
    """The logs as a worker asks for them, a few messages at a time."""

    def __init__(self, given_logs, first=0):
        self.logs, self.first, self.asked = given_logs, first, 0

    def reread(self, place, offset):
        self.asked += 1
        assert self.asked < 1000
        if offset < self.first:
            raise Gap({place: offset})
        result = self.logs[place][offset : offset + 4]
        return result, offset + len(result)

    def bound(self, place, start):
        return self.first if start == "earliest" else len(self.logs[place])


def saved(one):
    """The bytes of a checkpoint, with all that a worker puts into it."""
    return to_bytes(
        Checkpoint(
            one.model,
            one.offsets,
            metrics=one.metrics.state(),
            clocks=one.clocks,
            join=one.join_state()(),
        )
    )


def restarted(one, source=None):
    """The learner that continues from a checkpoint of this one."""
    other = LateLearner(LBP(9), one.codec, Metrics("f"), one.options)
    other.restore(from_bytes(saved(one)))
    other.read_again(source, "folder")
    return other


@st.composite
def orders(draw, n=25):
    """Logs, and an order in which their records are taken: that of time, or any other."""
    given_logs = messages(logs(n, draw(st.integers(0, 10**6))))
    for place, log in given_logs.items():
        for k, message in enumerate(log[::2]):
            headers = [("trace", bytes(40 * (k % 3)))]
            given_logs[place][2 * k] = message._replace(headers=headers)
    if draw(st.booleans()):
        return given_logs, in_time(given_logs)
    taken, at = [], dict.fromkeys(given_logs, 0)
    pieces = st.tuples(st.sampled_from([*given_logs]), st.integers(1, 9))
    for place, count in [*draw(st.lists(pieces, max_size=20)), *((p, n) for p in given_logs)]:
        taken += given_logs[place][at[place] : at[place] + count]
        at[place] += count
    return given_logs, taken


CASES = st.sampled_from(
    [{}, {"pending": 3}, {"pending": 1, "pending_bytes": 1000}, SILENCE, SILENCE | {"pending": 4}]
)


@given(orders(), CASES, st.sampled_from([0, 300, 4 << 20]), st.lists(st.integers(0, 80)))
def test_any_order_and_any_restart_give_what_lists_give(order, given_options, stored, restarts):
    given_logs, taken = order
    one, sent = learner(WEIGHTED, **given_options), []
    twin = Twin(one.options, LBP(9), WEIGHTED)
    source, runs = Logs(given_logs), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_state, "STORED", stored)
        patch.setattr(join_module, "_FULL", 2)
        for number, message in enumerate(taken):
            sent += one.take(message)
            twin.take(message)
            twin.assert_like(one)
            if number in restarts:
                runs += one.runs.all()
                one = restarted(one, source)
                twin.assert_like(one)
    assert_sent(sent, twin)
    again, same = relearn(LBP(9), given_logs, runs + one.runs.all(), one.options, WEIGHTED)
    twin.assert_like(again)
    assert_sent(same, twin)


def assert_sent(sent, twin):
    """Compare what is to be sent with the twin's."""
    made = {out.key: json.loads(out.value) for out in sent if out.topic == "out"}
    assert {key: (body["predicted"], body["score"]) for key, body in made.items()} == {
        str(position).encode(): prediction for position, prediction in twin.predictions.items()
    }
    for topic, positions in (("dead", twin.dead), ("lost", twin.orphans)):
        headers = [dict(out.headers) for out in sent if out.topic == topic]
        assert [
            (h["drift.topic"].decode(), int(h["drift.partition"]), int(h["drift.offset"]))
            for h in headers
        ] == positions


@given(orders(), st.lists(st.integers(0, 80)))
@settings(max_examples=8)
def test_a_tracker_continues_from_within_the_delay(order, restarts):
    given_logs, taken = order
    one, runs = learner(WEIGHTED, Tracker(4, late=True), predictions=None), []
    plain = Tracker(4, late=True)
    twin = Twin(one.options, plain, WEIGHTED, with_scores=False)
    for number, message in enumerate(taken):
        one.take(message)
        twin.take(message)
        if number in restarts:
            runs += one.runs.all()
            one = restarted(one, Logs(given_logs))
    twin.assert_like(one)
    again = Tracker(4, late=True)
    relearn(again, given_logs, runs + one.runs.all(), one.options, WEIGHTED)
    assert encode(again) == encode(one.model)


@pytest.mark.parametrize("given_options", [JOIN, SILENCE])
def test_the_logs_have_something_of_each_kind(given_options):
    twin = Twin(options(**given_options), LBP(9), WEIGHTED)
    for message in in_time(messages(logs())):
        twin.take(message)
    silent = {"silent", "corrected", "confirmed"} if given_options is SILENCE else {"expired"}
    assert {"learnt", "duplicate", "orphan", "repeated"} | silent <= (+twin.join.counts).keys()
    assert twin.dead
    assert twin.mistakes


# --- what it costs a message ----------------------------------------------------------------------


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
    assert (one.metrics.examples, one.metrics.mistakes) == (4, 4)  # as they were predicted at first
    unnamed = Message(Position("f", 0, 4), None, b'{"features": {"a": 1}}', timestamp=9)
    assert len(one.take(unnamed)) == (predictions is not None)
    assert not len(one.model._core.tickets)  # as no label finds it


@pytest.mark.parametrize("which", ["tracker", "pipeline", "shadow"])
def test_labels_of_equal_features_take_their_own_tickets_though_others_are_lost(which):
    def tracker():
        return Tracker(4, late=True, trees=False)

    model = StandardScaler() | tracker() if which == "pipeline" else tracker()
    one = learner(model=LBP(9) if which == "shadow" else model)
    if which == "shadow":
        one.shadow = Shadow(model)
    for n in range(6):
        one.take(pair(n, {"a": 1.0})[0])
    tickets = final_step(model)._core.tickets
    waiting = {*range(6)}
    for offset, n in enumerate((4, 1, 2)):
        label = pair(n, {}, timestamp=0)[1]
        one.take(label._replace(position=Position("l", 0, offset)))
        waiting -= {n}
        keys = tickets.state()["keys"][: len(tickets)].tolist()
        assert keys == [hash_of(f"0:{m}") for m in sorted(waiting)]


def test_mistakes_are_those_of_what_was_sent():
    one = learner()
    sent = [one.take(pair(n, {"a": 1.0})[0])[0] for n in range(3)]
    assert [json.loads(out.value)["predicted"] for out in sent] == [False] * 3
    for n in range(3):
        one = restarted(one)
        one.take(pair(n, {}, timestamp=0)[1])
    assert one.model.predict_one({"a": 1.0}) is True  # as it would say now
    assert (one.metrics.examples, one.metrics.mistakes) == (3, 3)


def test_a_correction_is_learnt_and_counts_as_no_example():
    one = learner(silence=False, after=1, correct_for=9)
    plain = LBP(9)
    for n in range(2):
        one.take(pair(n, {"a": 1.0 + n})[0]._replace(timestamp=0))
    one.take(pair(7, {}, timestamp=5000)[1]._replace(position=Position("l", 0, 0)))
    assert (one.metrics.examples, one.metrics.mistakes) == (2, 0)
    for n in range(2):
        plain.learn_one({"a": 1.0 + n}, False)
    assert encode(one.model) == encode(plain)
    one.take(pair(1, {}, timestamp=5000)[1])
    plain.learn_one({"a": 2.0}, True)
    assert encode(one.model) == encode(plain)
    assert (one.metrics.examples, one.metrics.mistakes) == (2, 0)
    assert +one.join.counts == {"silent": 2, "corrected": 1}


def test_a_heartbeat_moves_the_time_and_is_no_label():
    one = learner(silence=False, after=1)
    one.take(pair(1, {"a": 1.0})[0]._replace(timestamp=0))
    beat = Message(Position("l", 0, 0), None, b"", timestamp=500)
    assert one.take(beat) == []
    assert one.metrics.examples == 0
    assert one.take(Message(Position("l", 0, 1), None, None, timestamp=5000)) == []
    one.note()
    assert (one.metrics.examples, one.metrics.skipped, one.metrics.late["silent"]) == (1, 2, 1)
    assert (one.metrics.dead_letters, one.metrics.late["orphans"]) == (0, 0)
    # A label may be lost with these.
    for n, more in enumerate(({"key": b"k"}, {"headers": [("h", b"")]}, {"value": b" "})):
        [letter] = one.take(beat._replace(position=Position("l", 0, 2 + n), **more))
        assert letter.topic == "dead"
    assert one.metrics.skipped == 2


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


@pytest.mark.parametrize("label_first", [True, False])
def test_what_a_model_cannot_learn_is_a_dead_letter_of_its_label_and_waits_on(label_first):
    """So that the label that is right is learnt, which may be the letter, sent once more."""
    one = learner(model=LBP(9))
    features, label = pair(0, {"a": 1.0})
    wrong = label._replace(value=b'{"id": 0, "label": "yes"}')
    sent = []
    for message in (wrong, features) if label_first else (features, wrong):
        sent += one.take(message)
    [letter] = [out for out in sent if out.topic == "dead"]
    assert dict(letter.headers)["drift.topic"] == b"l"
    assert (one.join.pending, one.metrics.examples) == (1, 0)
    one = restarted(one)
    for offset in (1, 2):
        assert one.take(label._replace(position=Position("l", 0, offset))) == []
    one.note()
    late = one.metrics.late
    assert (late["duplicates"], one.metrics.examples, one.metrics.dead_letters) == (1, 1, 1)
    assert (+one.join.counts, one.join.pending) == ({"learnt": 1, "duplicate": 1}, 0)
    plain = LBP(9)
    plain.learn_one({"a": 1.0}, True)
    assert encode(one.model) == encode(plain)


def test_a_correction_that_cannot_be_learnt_leaves_room_for_another():
    one = learner(silence=False, after=1, correct_for=9)
    one.take(pair(0, {"a": 1.0})[0]._replace(timestamp=0))
    one.take(pair(7, {}, timestamp=5000)[1]._replace(position=Position("l", 0, 0)))
    plain = LBP(9)
    plain.learn_one({"a": 1.0}, False)
    label = pair(0, {}, timestamp=5000)[1]
    wrong = label._replace(value=b'{"id": 0, "label": "yes"}', position=Position("l", 0, 1))
    assert [out.topic for out in one.take(wrong)] == ["dead"]
    assert encode(one.model) == encode(plain)
    assert one.take(label._replace(position=Position("l", 0, 2))) == []
    plain.learn_one({"a": 1.0}, True)
    assert encode(one.model) == encode(plain)
    assert +one.join.counts == {"silent": 1, "corrected": 1}


def test_what_cannot_be_learnt_by_its_silence_is_a_dead_letter_of_its_features():
    one = learner(model=Failing(9), silence=False, after=1)
    own = {"key": b"c7", "timestamp": 20, "headers": [("trace", b"7")]}
    one.take(pair(0, {"bad": 1.0})[0]._replace(**own))
    [letter] = one.take(pair(1, {}, timestamp=5000)[1]._replace(position=Position("l", 0, 0)))
    headers = dict(letter.headers)
    assert (letter.topic, letter.key) == ("dead", b"c7")
    assert letter.value == pair(0, {"bad": 1.0})[0].value
    assert (headers["drift.topic"], headers["drift.offset"], headers["trace"]) == (b"f", b"0", b"7")
    assert headers["drift.timestamp"] == b"20"


@pytest.mark.parametrize("which", [0, 1])
def test_no_memory_skips_no_message(which):
    class Full(JsonCodec):
        def decode(self, value, headers=()):
            raise MemoryError

        decode_label = decode

    one = learner(Full())
    with pytest.raises(MemoryError):
        one.take(pair(0, {"a": 1.0})[which])
    assert one.offsets == {}


# --- ids and labels -------------------------------------------------------------------------------


class Naming(JsonCodec):
    """Gives ids, or labels, of its own type, made by `kind`."""

    kind, field = uuid.UUID, "id"

    def decode(self, value, headers=()):
        return self.changed(super().decode(value))

    def decode_label(self, value, headers=()):
        return self.changed(super().decode_label(value))

    def changed(self, example):
        given = getattr(example, self.field)
        made = None if given is None else type(self).kind(given)
        return example._replace(**{self.field: made})


def naming(kind, field="id"):
    made = {"kind": staticmethod(kind), "field": field}
    return type("Odd", (Naming,), made)(weight="weight")


ODD = {
    "uuid": lambda n: uuid.UUID(int=int(n)),
    "list": lambda n: [n],
    "tuple": lambda n: (n,),
    "bytes": lambda _: b"7",
    "surrogate": lambda _: "\ud800",
}


@pytest.mark.parametrize(
    "kind",
    [*ODD.values(), lambda n: 1 << 64, bool, float],
    ids=[*ODD, "long", "bool", "float"],
)
def test_an_id_that_a_checkpoint_would_give_back_as_another_is_refused(kind):
    one, (features, label) = learner(naming(kind)), pair(0, {"a": 1.0})
    for message in (features, label):
        [letter] = one.take(message)
        headers = dict(letter.headers)
        assert (letter.topic, headers["drift.topic"]) == ("dead", message.position.topic.encode())
        assert headers["drift.error"].startswith((b"id is ", b"id holds half "))
    assert one.join.snapshot()()[0]["early"] == []


@pytest.mark.parametrize(
    ("kind", "field"),
    [*((kind, "label") for kind in ODD.values()), (lambda _: float("nan"), "label"),
     (lambda _: "much", "weight"), (lambda _: float("inf"), "weight")],
)  # fmt: skip
def test_a_label_that_a_checkpoint_would_give_back_as_another_is_refused(kind, field):
    one = learner(naming(kind, field))
    [letter] = one.take(pair(0, {})[1]._replace(value=b'{"id": 7, "label": true, "weight": 2}'))
    assert dict(letter.headers)["drift.error"].startswith(field.encode())
    assert saved(one)


def test_what_is_numpys_is_that_of_the_message():
    class Numpys(JsonCodec):
        def decode(self, value, headers=()):
            example = super().decode(value)
            return example._replace(id=np.int64(example.id))

        def decode_label(self, value, headers=()):
            example = self.decode(value)
            return Example({}, np.bool_(example.label), example.id, None, np.float64(2.5))

    one, (features, label) = learner(Numpys()), pair(0, {"a": 1.0})
    one.take(label._replace(value=b'{"id": 0, "features": {}, "label": true}'))
    later = restarted(one)
    later.take(features)
    plain = LBP(9)
    plain.learn_one({"a": 1.0}, True, w=2.5)
    assert encode(later.model) == encode(plain)


#: Headers that a checkpoint has to give back as they came.
ODD_HEADERS = ("none", None), ("empty", b""), ("é", b"\xff")


@pytest.mark.parametrize("stored", [0, 4 << 20])
def test_headers_are_there_when_features_are_learnt(stored, monkeypatch):
    monkeypatch.setattr(join_state, "STORED", stored)
    seen = []

    class Headed(JsonCodec):
        def decode(self, value, headers=()):
            seen.append(headers)
            return Example({"a": float(dict(headers)["a"])}, id=0)

    one, (features, label) = learner(Headed()), pair(0, {})
    features = features._replace(headers=[("a", b"2.5"), *ODD_HEADERS])
    one.take(features)
    source = Logs({("f", 0): [features]})
    later = restarted(restarted(one, source), source)
    assert source.asked == (2 if stored == 0 else 0)
    later.take(label)
    assert later.model.supports[0][0] == {"a": 2.5}
    assert seen[-1] == [("a", b"2.5"), *ODD_HEADERS]


# --- what was stored ------------------------------------------------------------------------------


def test_features_that_were_deleted_are_given_up_where_that_was_requested(monkeypatch):
    monkeypatch.setattr(join_state, "STORED", 40)
    features = [pair(n, {"a": 1.0})[0] for n in range(9)]
    for on_gap in ("stop", "skip"):
        one = learner(on_gap=on_gap)
        for message in features:
            one.take(message)
        source = Logs({("f", 0): features}, first=5)
        other = LateLearner(LBP(9), one.codec, Metrics("f"), one.options)
        other.restore(from_bytes(saved(one)))
        if on_gap == "stop":
            with pytest.raises(ConsumerError, match="f:0 starts at 5, after 1, the first mes"):
                other.read_again(source, "folder")
    other.read_again(source, "folder")
    assert [*other.join._waiting] == [0, 5, 6, 7, 8]
    assert (other.join.counts["evicted"], other.join.missing()) == (4, {})
    assert other.since_checkpoint == 2  # the next one names the codec, and does not ask for them
    assert [*restarted(other, source).join._waiting] == [0, 5, 6, 7, 8]


def test_what_a_log_has_not_any_more_amid_it_is_lost(monkeypatch):
    """As records that are compacted, or of an aborted transaction."""
    monkeypatch.setattr(join_state, "STORED", 0)
    features = [pair(n, {"a": 1.0})[0] for n in range(5)]
    one = learner()
    for message in features:
        one.take(message)

    class Sparse(Logs):
        def reread(self, place, offset):
            actual, end = super().reread(place, offset)
            return [message for message in actual if message.position.offset != 3], end

    other = restarted(one, Sparse({("f", 0): features}))
    assert ([*other.join._waiting], other.join.missing()) == ([0, 1, 2, 4], {})
    assert other.join.counts["evicted"] == 1


@pytest.mark.parametrize("on_gap", ["stop", "skip"])
def test_of_a_log_that_ends_before_its_checkpoint_no_more_is_waited_for(monkeypatch, on_gap):
    """As after an unclean leader election, amid the features that wait."""
    monkeypatch.setattr(join_state, "STORED", 0)
    features = [pair(n, {"a": 1.0})[0] for n in range(5)]
    one = learner(on_gap=on_gap)
    for message in features:
        one.take(message)

    class Away(Logs):
        def bound(self, place, start):
            if self.asked < 20:
                raise UnavailableError("no broker")
            return super().bound(place, start)

    source = Away({("f", 0): features[:3]})
    said = "f:0 has messages from 0 to 3, and 5 is the next offset of its checkpoint: its log ends "
    with pytest.raises(ConsumerError, match=said):
        restarted(one, source)
    assert source.asked == 20


def test_of_a_log_that_was_made_anew_no_other_features_get_the_labels(monkeypatch, caplog):
    """As after drift checkpoint adopt, of a truncated topic that has grown since."""
    monkeypatch.setattr(join_state, "STORED", 0)
    features = [pair(n, {"a": 1.0})[0] for n in range(5)]
    one = learner()
    for message in features:
        one.take(message)
    anew = [pair(n if n < 3 else 10 + n, {"a": -1.0})[0] for n in range(5)]
    anew = [new._replace(position=old.position) for new, old in zip(anew, features, strict=True)]
    anew[1] = anew[1]._replace(value=b"{")
    other = restarted(one, Logs({("f", 0): anew}))
    assert ([*other.join._waiting], other.join.missing()) == ([0, 2], {})
    assert "f:0 no longer has 3 of the features that wait, or has others" in caplog.text


def test_times_of_producers_are_refused_before_anything_is_taken():
    one = learner(timestamps="log")
    message = pair(0, {})[0]
    one.check([message._replace(appended=True)])
    with pytest.raises(ConsumerError, match="f:0:0 has the time of its producer"):
        one.check([message._replace(appended=True), message])


def test_checkpoints_with_and_without_labels_of_their_own_do_not_mix():
    late = from_bytes(to_bytes(Checkpoint(LBP(9), {}, join=learner().join_state()())))
    plain = from_bytes(to_bytes(Checkpoint(LBP(9), {})))
    options = WorkerOptions(topic="f", group="g")
    with pytest.raises(ConfigurationError, match="was learnt with labels from a topic"):
        Learner(LBP(9), JsonCodec(), Metrics("f", 0), options).restore(late)
    with pytest.raises(ConfigurationError, match="was learnt without labels from a topic"):
        learner().restore(plain)


@pytest.mark.parametrize(
    ("sizes", "join", "message"),
    [
        ([10**9, 0], b"{}", r"the header's join is \[1000000000, 0\], more bytes than there are"),
        ([2, 10**9], b"{}", "more bytes than there are"),
        ([-1, 3], b"{}", "not two numbers of bytes"),
        ([2], b"{}", "not two numbers of bytes"),
        ([True, 1], b"{}", "not two numbers of bytes"),
        (2, b"{}", "the header's join is 2, not two numbers of bytes"),
        ([1, 0], b"{", "the state of its labels is no JSON"),
    ],
)
def test_a_forged_join_is_refused(sizes, join, message):
    plain = describe(to_bytes(Checkpoint(LBP(9), {})))
    data = seal({**plain.header, "join": sizes}, [plain.payload, join], None)
    with pytest.raises(CheckpointError, match=message):
        from_bytes(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("offsets"), r"no state of labels: KeyError\('offsets'\)"),
        (lambda state: state.update(sizes=["2"]), r"no state of labels: ValueError"),
        (lambda state: state.update(counts=3), r"no state of labels: AttributeError"),
        (lambda state: state.update(places=[["f", 7]]), r"has not learnt: \('f', 7\)"),
        (lambda state: state.update(places=[["f", 7], [3, 5]]), r"has not learnt: \('f', 7\)"),
        (lambda state: state.update(places=[["f", 7], [3, "f"]]), "a number is none"),
        (lambda state: state.update(offsets=[1]), r"has not learnt: \('f', 0\), 1"),
        (lambda state: state.update(done=[[0], [0]]), "an id is there twice"),
    ],
)
def test_a_poisoned_join_is_refused(change, message, monkeypatch):
    monkeypatch.setattr(join_state, "STORED", 0)
    one = learner()
    one.take(pair(0, {"a": 1.0})[0])
    state, values = one.join_state()()
    change(state)
    data = to_bytes(Checkpoint(one.model, one.offsets, join=(state, values)))
    with pytest.raises(CheckpointError, match=message):
        learner().restore(from_bytes(data))
    for odd in ([], 3, "x", None):
        data = to_bytes(Checkpoint(one.model, one.offsets, join=(odd, b"")))
        with pytest.raises(CheckpointError, match="no state of labels"):
            learner().restore(from_bytes(data))


def test_what_waits_is_shown_and_counters_start_with_the_process():
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
    place = '{group="",model="LBP",topic="f"}'
    assert f"drift_pending{place} 2.0" in shown
    assert f"drift_windowed_label_latency_seconds{place} 1.5" in shown
    assert f"drift_duplicates_total{place} 0.0" in shown  # as it was when it was first looked at
    assert f"drift_duplicates_total{place} 1.0" in later
    assert other.metrics.late["duplicates"] == 2


def test_of_two_logs_one_is_adopted_at_an_offset(tmp_path):
    """With what waits before it; without an offset both go on as they are."""
    one, folder = learner(grace=10**6), CheckpointFolder(tmp_path, options().settings())
    for n in range(4):
        one.take(pair(n, {"a": 1.0})[0])
        _, label = pair(10 + n, {})
        one.take(label._replace(position=Position("l", 1, n)))
    epoch = folder.claim(("f", None)).epoch
    identity = {"topic_id": "1", "labels_topic_id": "2", "cluster_id": "c", "group": "g"}
    given = {"join": one.join_state(), "identity": identity, "clocks": one.clocks}
    folder.save(("f", None), epoch, one.model, one.offsets, **given)
    [(partition, _)] = files.newest(tmp_path)
    adoption.adopt(partition, "f", None, None)
    both = folder.newest(("f", None))
    assert (both.offsets, both.clocks, both.identity) == (one.offsets, one.clocks, {})
    assert json.dumps(both.join[0]) == json.dumps(one.join_state()()[0])
    assert both.join[1] == b"".join(pair(n, {"a": 1.0})[0].value for n in range(4))
    folder.save(("f", None), folder.claim(("f", None)).epoch, one.model, one.offsets, **given)
    adoption.adopt(partition, "f", 3, None)
    left = folder.newest(("f", None))
    assert left.offsets == {("f", 0): 3, ("l", 1): 4}
    assert left.identity == {"labels_topic_id": "2", "cluster_id": "c"}
    assert [*left.clocks] == [("l", 1)]
    other = learner(grace=10**6)
    other.restore(left)
    assert ([*other.join._waiting], [*other.join._early]) == ([0, 1, 2], [10, 11, 12, 13])
    assert (other.join.counts["evicted"], other.join.missing()) == (1, {})
    adoption.adopt(partition, "l", 1, None, partition=1)
    other.restore(folder.newest(("f", None)))
    assert ([*other.join._waiting], [*other.join._early]) == ([0, 1, 2], [10])
    assert other.offsets == {("f", 0): 3, ("l", 1): 1}
