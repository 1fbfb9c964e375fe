"""The join of features and labels, against lists that are looked through from their beginning."""

import json
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.consumers import join as module
from drift.consumers.checkpoints import join_state
from drift.consumers.join import Join, JoinOptions
from drift.consumers.records import Message, Position
from drift.consumers.waiting import Early, Waiting
from drift.errors import ParameterError
from tests.consumers.twin_late import Lists

IDS = st.one_of(st.integers(0, 7), st.sampled_from(["a", "1", "sch\u00f6n"]))
#: By how much time advances or falls back, as at the live edge of several partitions.
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
        key = bytes([200 + offset % 26]) if size % 4 else None
        value = bytes([65 + offset % 26]) * size
        message = Message(Position(*place, offset), key, value, [("n", b"")], time or None)
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
    assert [*zip(*join._done.snapshot()(), strict=True)] == lists.done
    assert +join.counts == +lists.counts
    assert (join.pending, join._bytes) == (len(lists.waiting), lists.size)
    assert join._early_bytes == lists.early_size
    assert max(join._bytes, join._early_bytes) <= join.options.pending_bytes
    assert len(lists.waiting + lists.silent) <= join.options.pending


def compare(given_options, events, stored, restart):
    """Have a join and lists take what comes; `restart` says after which, and what is lost there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_state, "STORED", stored)
        patch.setattr(module, "_FULL", 2)
        _compare(given_options, events, stored, restart)


def _compare(given_options, events, stored, restart):
    join, lists, log, time = Join(given_options), Lists(given_options), Log(), 0
    for number, (kind, name, step, size, flag) in enumerate(events):
        time = max(0, time + step)
        if kind == "features":
            place = "f", size % 2
            message = log.append(place, size, time)
            at = place, message.position.offset, time, flag, message.whole_size
            own = {"key": message.key, "timestamp": message.timestamp}
            waiting = Waiting(*at, message.value, message.headers, **own)
            assert waiting.message == message
            assert [*join.orphans(time)] == lists.orphans(time)
            assert join.features(name, waiting) == lists.features(name, waiting)
        else:
            given = b"k" * (size % 3), b"v" * size, [("name", b"n")] if size % 2 else ()
            message = Message(Position("l", 0, number), *given, time)
            early = Early(message, flag, None if size < 6 else size / 4, time)
            assert [*join.silent(time)] == lists.ages(time)
            assert join.label(name, early) == lists.label(name, early)
            assert [*join.orphans()] == lists.orphans()
        assert_same(join, lists)
        lost = restart(number)
        if lost is None:
            continue
        join = restored(join)
        rows = [one for _, one in lists.silent + lists.waiting]
        kept = [n for n in range(len(rows)) if sum(r.size for r in rows[: n + 1]) <= stored]
        assert len(join._missing) == len(rows) - len(kept)
        join.drop(("f", 1), lost)
        lists.drop(("f", 1), range(lost))
        log.fill(join)
        assert_same(join, lists)


@given(options(), st.lists(EVENTS, max_size=40), st.sampled_from([0, 3, 10, 4 << 20]))
def test_a_join_is_that_of_lists_and_continues_from_each_state(given_options, events, stored):
    compare(given_options, events, stored, lambda _: 0)


@given(options(), st.lists(EVENTS, max_size=40), st.integers(0, 30), st.integers(0, 12))
def test_what_cannot_be_read_again_is_lost_and_the_rest_continues(
    given_options, events, at, before
):
    compare(given_options, events, 0, lambda number: before if number == at else None)


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


def test_labels_that_wait_have_room_for_as_many_bytes_as_was_said():
    """Each has 2 of key, 3 of its value and 5 of a header."""
    join = Join(JoinOptions(pending_bytes=30))
    for n in range(4):
        message = Message(Position("l", 0, n), b"ky", b"val", [("name", b"1")], 0)
        assert join.label(n, Early(message, True, None, 0)) == ("early", None)
        assert [one.message.position.offset for one in join.orphans()] == ([0] if n == 3 else [])
    assert [*join._early] == [1, 2, 3]
    for n in range(16):  # features of 2 bytes
        assert join.features(100 + n, row(n)) is None
        assert (join.pending, join.counts["evicted"]) == ((n + 1, 0) if n < 15 else (15, 1))
    assert join.features(2, row(0)).message.position.offset == 2
    assert join._early_bytes == 20


def test_ids_are_remembered_for_as_many_bytes_as_was_said():
    join = Join(JoinOptions(pending_bytes=20))
    for name in ("eight by", "sechs\u00df", 7):  # 8, 7 and 8 bytes
        join.features(name, row(0))
        assert join.label(name, early(0))[0] == "learnt"
        assert [*join.silent(0)] == []
    kinds = [join.label(name, early(0))[0] for name in ("eight by", "sechs\u00df", 7)]
    assert kinds == ["early", "duplicate", "duplicate"]
    assert [name in restored(join)._done for name in ("eight by", "sechs\u00df", 7)] == [0, 1, 1]


def test_what_is_gone_from_the_log_is_lost_and_counted(monkeypatch):
    monkeypatch.setattr(join_state, "STORED", 5)
    join = Join(JoinOptions(silence=False, after=1))
    for n in range(4):
        join.features(n, row(n, 1000 * n, place=("f", n % 2)))
    assert [*join.silent(1001)] == [row(0)]
    other = restored(join)
    assert other.missing() == {("f", 0): 2, ("f", 1): 3}
    other.drop(("f", 0), 2)
    assert other.missing() == {("f", 0): 2, ("f", 1): 3}
    other.drop(("f", 0), 3)
    assert other.missing() == {("f", 1): 3}
    assert ([*other._silent], [*other._waiting], other._bytes) == ([0], [1, 3], 6)
    other.supply(Message(Position("f", 0, 2), None, b"{}"))  # too late
    other.supply(Message(Position("f", 1, 3), None, b"{}"))
    assert other.label(3, early(4000))[1] == row(3, 3000, place=("f", 1))
    assert +other.counts == Counter({"silent": 1, "evicted": 1, "learnt": 1})


def test_what_was_learnt_by_its_silence_and_is_gone_is_no_loss(monkeypatch):
    monkeypatch.setattr(join_state, "STORED", 0)
    join = Join(JoinOptions(silence=False, after=1))
    for n in range(2):
        join.features(n, row(n, 1000 * n))
    assert [*join.silent(1001)] == [row(0)]
    other = restored(join)
    other.drop(("f", 0), 2)
    assert (other.pending, other._bytes, len(other._silent)) == (0, 0, 0)
    assert +other.counts == Counter({"silent": 1, "evicted": 1})


def some():
    """A join that has something of each kind: 0 is silent, 1 and 3 wait, 2 is done, "e" early."""
    join = Join(JoinOptions(silence=False, after=1))
    for n in range(4):
        join.features(n, row(n, 1000 * n))
    assert len([*join.silent(1001)]) == 1
    join.label(2, early(2000))
    join.label("e", early(2000))
    return join


STATE, VALUES = some().snapshot()()
[EARLY] = json.loads(json.dumps(STATE["early"]))


def early_at(*position):
    """The label that waits, as read somewhere else."""
    return [*EARLY[:4], [[*position], *EARLY[4][1:]]]


#: What no join has written, by its part of the state.
FORGED = {
    "time": [None, "1", 1.0, True, -2],
    "counts": [None, 3, [], {"learnt": -1}, {"learnt": 1.0}, {"learnt": None}],
    "silent": [None, -1, True, 4, 1.0],
    "ids": [None, 7, [], [0, 1], [0, 1, 3, 4], [0, 0, 3], [0, [], 3], [0, 1.0, 3]],
    "places": [None, [], [["f"]], [5], [["f", 7]], [["f", False]], [["f", "0"]], [[["f"], 0]],
               [["f", 0], ["f", "1"]], [["f", 0], ["g", 0], [0, "f"]]],
    "place": [None, [0, 0], [0, 0, 1], [0, 0, -1], [0, 0, False]],
    "offsets": [None, [0, 1], [0, 1, -1], [0, 1, "3"], [0, 1, 1000], [0, 1, 1]],
    "times": [None, [0, 0], [0, 0, None], [0, 0, 1.5], [0, 0, -2]],
    "predicted": [None, 7, [], [True]],
    "classes": [None, 7, ["a"]],
    "chances": [None, 7, "AAAA", "A"],
    "sizes": [None, [1, 2], [2, 2, -2], [2, 2, None]],
    "lengths": [None, [], [2, 2, 3], [1, 1, 2, 2], [-2, 2, 6], [2, 2, "2"]],
    "headers": [None, 7, [], [[], [], [["n"]]], [[], [], [["n", 5]]]],
    "keys": [None, 7, [], [None, None], [None, None, 7], [None, None, "\u0100"]],
    "timestamps": [None, 7, [], [0, 0], [0, 0, "1"], [0, 0, True], [0, 0, 1.0]],
    "done": [None, [[2]], [[2, 4], [1]], [[2], ["1"]], [[2], [-2]], [[2.0], [1]], [[[]], [1]],
             [[2, 2], [1, 1]], [[2, 1], [1, 1]], [[2, 0], [1, 1]], [[2, "e"], [1, 1]]],
    "early": [None, 3, [3], [EARLY[:4]], [[*EARLY[:3], None, EARLY[4]]], [[*EARLY[:4], None]],
              [[[], *EARLY[1:]]], [[1, *EARLY[1:]]], [EARLY, EARLY],
              [EARLY, ["other", *EARLY[1:]]], [early_at("l", 0, 1000)], [early_at("l", 0, -1)],
              [early_at("l", 0, "0")], [early_at("l", 1, 0)], [early_at("l", 0.0, 0)],
              [early_at("l", 0)], [early_at(None, 0, 0)], [early_at(["l"], 0, 0)]],
}  # fmt: skip
#: What the learner takes for a state that cannot be.
REFUSED = AttributeError, IndexError, KeyError, TypeError, ValueError


@pytest.mark.parametrize("part", [*STATE])
def test_a_state_that_none_has_written_is_refused(part):
    state = json.loads(json.dumps(STATE))
    assert Join.restore(state, VALUES, some().options, OFFSETS).counts == some().counts
    for forged in FORGED[part]:
        with pytest.raises(REFUSED):
            Join.restore({**state, part: forged}, VALUES, some().options, OFFSETS)
    without = {name: value for name, value in state.items() if name != part}
    if part in {"keys", "timestamps"}:  # an earlier version wrote none
        Join.restore(without, VALUES, some().options, OFFSETS)
        return
    with pytest.raises(KeyError):
        Join.restore(without, VALUES, some().options, OFFSETS)


@pytest.mark.parametrize(
    ("part", "forged", "message"),
    [
        ("offsets", [0, 1, 1000], r"an offset that it has not learnt: \('f', 0\), 1000"),
        ("offsets", [0, 1, 1], r"an offset twice, or before another: \('f', 0\), 1"),
        ("offsets", [0, 3, 1], r"an offset twice, or before another: \('f', 0\), 1"),
        ("places", [["f", 0], ["f", 0]], "a partition is there twice"),
        ("places", [["f", 7]], r"a partition that it has not learnt: \('f', 7\)"),
        ("done", [[2, 3], [1, 1]], "an id is there twice"),
        ("ids", [0, None, 3], "an id is neither a string nor an integer"),
        ("early", [early_at("l", 0, "0")], "a number is none"),
        ("early", [early_at("l", 0, 1000)], r"has not learnt: \('l', 0\), 1000"),
        ("sizes", [2, 2, -2], "a number is below 0"),
        ("silent", 4, "more or less features than there are"),
    ],
)
def test_a_fault_in_a_state_is_reported(part, forged, message):
    state = {**json.loads(json.dumps(STATE)), part: forged}
    with pytest.raises(ValueError, match=message):
        Join.restore(state, VALUES, some().options, OFFSETS)


def test_values_of_another_length_are_refused():
    for values in (VALUES[:-1], VALUES + b"1"):
        with pytest.raises(ValueError, match="more or less features"):
            Join.restore(STATE, values, some().options, OFFSETS)


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
