"""The join of features and labels, against lists that are looked through from their beginning."""

import json
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.consumers import join as module
from drift.consumers.join import Early, Join, JoinOptions, Waiting
from drift.consumers.records import Message, Position
from drift.errors import ParameterError
from tests.consumers.twin_late import Lists

IDS = st.one_of(st.integers(0, 7), st.sampled_from(["a", "1", "2"]))
#: By how much the time goes on, or back, as at the live edge of several partitions.
STEPS = st.one_of(st.integers(0, 3_000), st.integers(0, 20_000), st.integers(-4_000, 0))
EVENTS = st.tuples(
    st.sampled_from(["features", "features", "label"]), IDS, STEPS, st.integers(1, 9), st.booleans()
)


@st.composite
def options(draw):
    silence = draw(st.sampled_from([None, False, True]))
    return JoinOptions(
        max_age=draw(st.sampled_from([0, 3.5, 20, 100])),
        grace=draw(st.sampled_from([0, 1, 10, 100])),
        pending=draw(st.sampled_from([1, 2, 5, 100])),
        pending_bytes=draw(st.sampled_from([1, 12, 1000])),
        silence=silence,
        after=None if silence is None else draw(st.sampled_from([0, 2, 15])),
        correct_for=draw(st.sampled_from([0, 4, 50])),
    )


class Log:
    """The messages of features by partition, with gaps between their offsets."""

    def __init__(self):
        self.places, self.end = {}, {}

    def append(self, place, size, time):
        offset = self.end.get(place, 0)
        self.end[place] = offset + 1 + size % 3 // 2
        message = Message(
            Position(*place, offset), None, bytes([65 + offset % 26]) * size, [("n", b"")], time
        )
        self.places.setdefault(place, []).append(message)
        return message

    def fill(self, join):
        """Have a join read again what it lacks."""
        for place, first in join.missing().items():
            for message in self.places[place]:
                if message.position.offset >= first:
                    join.supply(message)
        assert join.missing() == {}


#: Next offsets of the logs, which no test gets to.
OFFSETS = {("f", 0): 1000, ("f", 1): 1000, ("l", 0): 1000}


def restored(join):
    """The join that a checkpoint gives back, by way of its JSON."""
    state, values = join.snapshot()()
    return Join.restore(json.loads(json.dumps(state)), values, join.options, OFFSETS)


def assert_same(join, lists):
    assert [*join._waiting.items()] == lists.waiting
    assert [*join._silent.items()] == lists.silent
    assert [*join._early.items()] == lists.early
    assert [*join._done.items()] == lists.done
    assert +join.counts == +lists.counts
    assert (join.pending, join._bytes) == (len(lists.waiting), lists.size)
    assert join._bytes <= join.options.pending_bytes
    assert len(lists.waiting + lists.silent) <= join.options.pending


@given(options(), st.lists(EVENTS, max_size=40), st.sampled_from([0, 3, 10, 4 << 20]))
def test_a_join_is_that_of_lists_and_goes_on_from_each_state(given_options, events, stored):
    join, lists, log, time = Join(given_options), Lists(given_options), Log(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STORED", stored)
        for number, (kind, name, step, size, flag) in enumerate(events):
            time = max(0, time + step)
            if kind == "features":
                place = "f", size % 2
                message = log.append(place, size, time)
                at = place, message.position.offset, time, flag, message.size
                waiting = Waiting(*at, message.value, message.headers)
                assert [*join.orphans(time)] == lists.orphans(time)
                assert join.features(name, waiting) == lists.features(name, waiting)
            else:
                message = Message(Position("l", 0, number), b"k", b"v", (), time)
                early = Early(message, flag, None if size < 6 else size / 4, time)
                assert [*join.silent(time)] == lists.ages(time)
                assert join.label(name, early) == lists.label(name, early)
                assert [*join.orphans()] == lists.orphans()
            assert_same(join, lists)
            join = restored(join)
            rows = [one for _, one in lists.silent + lists.waiting]
            kept = [n for n in range(len(rows)) if sum(r.size for r in rows[: n + 1]) <= stored]
            assert len(join._missing) == len(rows) - len(kept)
            log.fill(join)
            assert_same(join, lists)


def row(offset, time=0, size=2, place=("f", 0)):
    return Waiting(place, offset, time, predicted=False, size=size, value=b"{}"[:size])


def early(time, *, label=True, offset=0):
    return Early(Message(Position("l", 0, offset), None, b"", (), time), label, None, time)


def test_a_label_before_its_features_waits_for_the_grace():
    for grace, outcome in ((5, "learnt"), (4.999, "orphan")):
        join = Join(JoinOptions(grace=grace))
        label = early(2000)
        assert join.label("a", label) == ("early", None)
        assert join.label("a", label) == ("duplicate", None)
        orphans = [*join.orphans(7000)]
        assert join.features("a", row(0, 7000)) == (label if outcome == "learnt" else None)
        assert orphans == ([] if outcome == "learnt" else [label])
        assert +join.counts == Counter({outcome: 1, "duplicate": 1})
        assert join.pending == (outcome == "orphan")  # then they wait for another label


def test_labels_for_which_there_is_no_room_are_given_up_the_oldest_first():
    join, labels = Join(JoinOptions(pending=2)), [early(n, offset=n) for n in range(4)]
    given_up = []
    for n, label in enumerate(labels):
        join.label(n, label)
        given_up += join.orphans()
    assert given_up == labels[:2]


def test_of_a_repeated_id_the_first_counts_and_its_label_once():
    join = Join(JoinOptions())
    for offset in range(3):
        assert join.features("a", row(offset)) is None
    kinds = [join.label(name, early(9)) for name in "aab"]
    assert kinds == [("learnt", row(0)), ("duplicate", None), ("early", None)]
    assert join.features("a", row(3)) is None
    assert join.counts == Counter({"learnt": 1, "duplicate": 1, "repeated": 3})


def test_ages_are_of_the_labels_time_and_at_their_bound_nothing_is_too_old():
    join = Join(JoinOptions(max_age=10))
    join.features("a", row(0, 1000))
    assert [*join.orphans(10**9)] == []  # features alone make nothing old
    assert ([*join.silent(11_000)], join.pending) == ([], 1)
    assert ([*join.silent(11_001)], join.pending) == ([], 0)
    assert join.counts == Counter({"expired": 1})
    join.features("b", row(1, 1000))
    assert join.label("b", early(2000))[0] == "learnt"
    assert [*join.silent(12_000)] == []
    assert join.label("b", early(12_000))[0] == "duplicate"
    assert [*join.silent(12_001)] == []  # its id is forgotten
    assert join.label("b", early(12_001))[0] == "early"


def test_silence_is_a_label_that_another_one_corrects_for_a_while():
    options = JoinOptions(silence=False, after=10, correct_for=20)
    join = Join(options)
    for n, name in enumerate("abc"):
        join.features(name, row(n, 1000 * n))
    assert [*join.silent(10_000)] == []
    assert [*join.silent(12_001)] == [row(n, 1000 * n) for n in range(3)]
    assert join.label("a", early(13_000, label=True)) == ("corrected", row(0))
    assert join.label("b", early(13_000, label=False)) == ("confirmed", None)
    assert join.label("a", early(13_000, label=False)) == ("duplicate", None)
    assert [*join.silent(32_000)] == []
    assert [*join._silent] == ["c"]
    assert [*join.silent(32_001)] == []
    assert join.label("c", early(32_001)) == ("early", None)
    assert join.counts == Counter({"silent": 3, "corrected": 1, "confirmed": 1, "duplicate": 1})
    assert join._bytes == 0


def test_what_was_learnt_by_its_silence_makes_room_first_and_is_no_loss():
    join = Join(JoinOptions(silence=False, after=1, pending=3, pending_bytes=7))
    for n in range(3):
        join.features(n, row(n, 1000 * n))
    assert [*join.silent(2001)] == [row(0), row(1, 1000)]
    join.features(3, row(3, 3000))  # too many
    assert ([*join._silent], [*join._waiting], +join.counts["evicted"]) == ([1], [2, 3], 0)
    join.features(4, row(4, 3000, size=2))
    assert ([*join._silent], [*join._waiting], join.counts["evicted"]) == ([], [2, 3, 4], 0)
    join.features(5, row(5, 3000, size=1))
    assert ([*join._waiting], join.counts["evicted"]) == ([3, 4, 5], 1)
    large = Waiting(("f", 0), 6, 3000, None, 8, bytes(8))
    join.features(6, large)  # it has no room by itself
    assert (join.pending, join._bytes, join.counts["evicted"]) == (0, 0, 5)


def test_what_is_gone_from_the_log_is_lost_and_counted(monkeypatch):
    monkeypatch.setattr(module, "STORED", 5)
    join = Join(JoinOptions(silence=False, after=1))
    for n in range(4):
        join.features(n, row(n, 1000 * n, place=("f", n % 2)))
    assert [*join.silent(1001)] == [row(0)]
    other = restored(join)
    assert other.missing() == {("f", 0): 2, ("f", 1): 3}
    other.lose(("f", 0), 2)
    assert other.missing() == {("f", 0): 2, ("f", 1): 3}
    other.lose(("f", 0), 3)
    assert other.missing() == {("f", 1): 3}
    assert ([*other._silent], [*other._waiting], other._bytes) == ([0], [1, 3], 6)
    other.supply(Message(Position("f", 0, 2), None, b"{}"))  # too late
    other.supply(Message(Position("f", 1, 3), None, b"{}"))
    assert other.label(3, early(4000))[1] == row(3, 3000, place=("f", 1))
    assert +other.counts == Counter({"silent": 1, "evicted": 1, "learnt": 1})


def test_what_was_learnt_by_its_silence_and_is_gone_is_no_loss(monkeypatch):
    monkeypatch.setattr(module, "STORED", 0)
    join = Join(JoinOptions(silence=False, after=1))
    for n in range(2):
        join.features(n, row(n, 1000 * n))
    assert [*join.silent(1001)] == [row(0)]
    other = restored(join)
    other.lose(("f", 0), 2)
    assert (other.pending, other._bytes, len(other._silent)) == (0, 0, 0)
    assert +other.counts == Counter({"silent": 1, "evicted": 1})


def some():
    """A join that has something of each kind."""
    join = Join(JoinOptions(silence=False, after=1))
    for n in range(3):
        join.features(n, row(n, 1000 * n))
    assert len([*join.silent(1001)]) == 1
    join.label(2, early(2000))
    join.label("e", early(2000))
    return join


def at_position(*position):
    """Forge where a label that waits was read."""
    return lambda state: state["early"][0][4].__setitem__(0, [*position])


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        (lambda state: state.pop("early"), KeyError),
        (lambda state: state.update(time="1"), ValueError),
        (lambda state: state.update(time=None), ValueError),
        (lambda state: state.update(counts=[]), AttributeError),
        (lambda state: state.update(counts={"learnt": -1}), ValueError),
        (lambda state: state.update(silent=3), ValueError),
        (lambda state: state.update(silent=-1), ValueError),
        (lambda state: state.update(silent=True), ValueError),
        (lambda state: state.update(offsets=[0, "1"]), ValueError),
        (lambda state: state.update(offsets=[0]), ValueError),
        (lambda state: state.update(times=[0, 0.5]), ValueError),
        (lambda state: state.update(place=[0, 1]), IndexError),
        (lambda state: state.update(place=[0, -1]), ValueError),
        (lambda state: state.update(places=[["f"]]), ValueError),
        (lambda state: state.update(sizes=[2, -2]), ValueError),
        (lambda state: state.update(lengths=[2, 3]), ValueError),
        (lambda state: state.update(lengths=[1, 1, 2]), ValueError),
        (lambda state: state.update(headers=[[], [["n", 7]]]), AttributeError),
        (lambda state: state.update(ids=[0, 0]), ValueError),
        (lambda state: state.update(ids=[0, []]), ValueError),
        (lambda state: state.update(done=[[2]]), IndexError),
        (lambda state: state.update(done=[[2, 3], [1]]), ValueError),
        (lambda state: state.update(done=[[2], [None]]), ValueError),
        (lambda state: state.update(early=[["e", True, None, 1]]), ValueError),
        (lambda state: state.update(early=[["e", True, None, None, []]]), ValueError),
        (lambda state: state.update(offsets=[0, 1000]), ValueError),
        (lambda state: state.update(offsets=[0, 0]), ValueError),
        (
            lambda state: state.update(places=[["f", 0], ["f", 0]], place=[0, 1], offsets=[0, 0]),
            ValueError,
        ),
        (lambda state: state.update(places=[["f", 7]]), ValueError),
        (lambda state: state.update(places=[["f", False]]), ValueError),
        (lambda state: state.update(places=[["f", 0], ["f", "1"]]), ValueError),
        (lambda state: state.update(places=[[["f"], 0]]), ValueError),
        (lambda state: state.update(done=[[2, 1], [2000, 1]]), ValueError),
        (lambda state: state.update(done=[[2, 2], [2000, 1]]), ValueError),
        (lambda state: state.update(done=[[2, "e"], [2000, 1]]), ValueError),
        (lambda state: state.update(ids=[0, 1.0]), ValueError),
        (lambda state: state["early"].append(state["early"][0]), ValueError),
        (at_position("l", 0, 1000), ValueError),
        (at_position("l", 0, -1), ValueError),
        (at_position("l", 0, "0"), ValueError),
        (at_position("l", 1, 0), ValueError),
        (at_position("l", 0.0, 0), ValueError),
        (at_position("l", 0), ValueError),
        (at_position(None, 0, 0), ValueError),
    ],
)
def test_a_state_that_none_has_written_is_refused(change, errors):
    state, values = some().snapshot()()
    state = json.loads(json.dumps(state))
    assert Join.restore(state, values, some().options, OFFSETS).counts == some().counts
    change(state)
    with pytest.raises(errors):
        Join.restore(state, values, some().options, OFFSETS)


def test_a_snapshot_is_of_when_it_was_made():
    join = some()
    before, write = json.dumps(join.snapshot()()[0]), join.snapshot()
    join.features("new", row(9, 9000))
    join.label(1, early(3000))
    assert json.dumps(write()[0]) == before


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ParameterError, match="pending must be at least 1, not 0"):
        JoinOptions(pending=0)
    for name in ("max_age", "grace", "correct_for"):
        with pytest.raises(ParameterError, match=f"{name} must be a finite number, not inf"):
            JoinOptions(**{name: math.inf})
    for alone in ({"silence": False}, {"after": 3}):
        with pytest.raises(ParameterError, match="silence and after belong together"):
            JoinOptions(**alone)
