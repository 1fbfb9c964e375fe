"""The order of questions and labels is that of River's `simulate_qa`, the oracle."""

import datetime as dt
import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.naive_bayes import GaussianNB
from river.stream import simulate_qa

from drift._durations import seconds_of
from drift.errors import ParameterError
from drift.experiments import compare
from drift.experiments.comparison.clock import delays_of, timed
from drift.experiments.comparison.protocol import counted_rows, order_of
from drift.experiments.comparison.tables import remarks
from drift.models import LBP
from drift.streams import Stream

START = dt.datetime(2024, 2, 28, 23, 30, tzinfo=dt.UTC)
quarters = st.integers(0, 40).map(lambda n: n / 4)
rows = st.lists(st.tuples(quarters, quarters), min_size=1, max_size=40)


def rivers(examples, moment, delay):
    """Events of River's own simulation."""
    events = simulate_qa(iter(examples), moment, delay)
    return [i if y is None else ~i for i, _, y in events]


def examples_of(pairs):
    return [({"at": at, "late": late, "a": 1.0}, i % 2) for i, (at, late) in enumerate(pairs)]


@given(rows)
def test_the_order_is_rivers(pairs):
    pairs.sort(key=lambda pair: pair[0])
    examples = examples_of(pairs)
    moments, delays = (np.array(column) for column in zip(*pairs, strict=True))
    stream = Stream(examples, moments=moments, delays=delays)
    assert order_of(stream).tolist() == rivers(examples, "at", "late")
    assert order_of(Stream(examples, moments=moments), 2.5).tolist() == rivers(examples, "at", 2.5)
    assert order_of(Stream(examples, delays=delays)).tolist() == rivers(examples, None, "late")
    for whole in (0, 3):
        assert order_of(Stream(examples), whole).tolist() == rivers(examples, None, whole)


@pytest.mark.filterwarnings("ignore:.*no label is late:RuntimeWarning")
@given(rows)
def test_names_functions_and_times_give_the_same_order(pairs):
    pairs.sort(key=lambda pair: pair[0])
    examples = examples_of(pairs)
    expected = rivers(examples, "at", "late")
    times = [
        ({"at": START + dt.timedelta(days=x["at"]), "late": dt.timedelta(days=x["late"])}, y)
        for x, y in examples
    ]
    for given_examples, moment, delay in (
        (examples, "at", "late"),
        (examples, lambda x: x["at"], lambda x, _: x["late"]),
        (times, "at", "late"),
    ):
        stream = timed(Stream(given_examples), moment, delay)
        assert order_of(stream, delay).tolist() == expected


def test_labels_at_the_very_moment_come_first_however_seconds_are_rounded():
    """Of times with microseconds, whose seconds since 1970 no float has exactly."""
    step = dt.timedelta(microseconds=100_001)
    examples = [({"at": START + i * step}, i % 2) for i in range(200)]
    stream = timed(Stream(examples), "at", 3 * step)
    assert order_of(stream, 3 * step).tolist() == rivers(examples, "at", 3 * step)


@given(rows)
def test_rows_whose_moments_fall_are_sorted_and_a_note_says_so(pairs):
    examples = examples_of(pairs)
    stream = Stream(examples)
    falls = any(b < a for (a, _), (b, _) in pairwise(pairs))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ordered = timed(stream, "at", "late")
    assert [str(one.message) for one in warned] == [f"stream: {note}" for note in ordered.notes]
    assert any("sorted by the moment" in note for note in ordered.notes) == falls
    expected = sorted(examples, key=lambda pair: pair[0]["at"])
    assert [(x["at"], y) for x, y in ordered] == [(x["at"], y) for x, y in expected]
    assert order_of(ordered, "late").tolist() == rivers(expected, "at", "late")


@pytest.mark.parametrize(
    ("moments", "delay", "soon"),
    [
        ([0, 10, 20], 3, True),
        ([0, 10, 20], 10, True),  # a label comes before a row of its moment
        ([0, 10, 20], 10.5, False),
        ([0, 10, 13], 5, False),
        ([0, 10, 20], 0, False),
        ([0, 10, 20], "wait", True),
        (None, 1, False),
    ],
)
def test_a_delay_that_makes_no_label_late_is_noted(moments, delay, soon):
    examples = [({"wait": float(i)}, i) for i in range(3)]
    stream = Stream(examples, moments=moments)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        notes = timed(stream, None, delay).notes
    assert [str(one.message) for one in warned] == [f"stream: {note}" for note in notes]
    assert [note.partition(":")[0] for note in notes] == ["no label is late"] * soon


def test_a_delay_is_no_feature():
    """It tells the label of coin flips."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=300).tolist()
    examples = [({"a": 1.0, "wait": 1 + 30 * y}, y) for y in labels]
    runs = compare(GaussianNB(), examples, delay="wait", jobs=1).rows("runs")
    assert runs[0]["error"] > 0.35
    assert timed(Stream(examples), None, "wait").examples[0][0] == {"a": 1.0}


def test_delays_of_more_rows_than_there_are_are_named():
    examples = [({"a": 1.0, "wait": 3600.0 + i}, i % 2) for i in range(20)]
    said = "each label comes 3,600 rows late or more, and there are 20: beside a moment"
    with pytest.warns(RuntimeWarning, match=said):
        stream = timed(Stream(examples), None, "wait")
    assert stream.notes[-1].startswith(said)


def test_a_run_that_no_label_comes_in_time_for_says_so():
    examples = [({"a": float(i)}, i % 2) for i in range(20)]
    results = compare(LBP(budget=3), examples, delay=50, jobs=1)
    for row in results.rows("runs"):
        assert (row["status"], row["rows"], row["error"]) == ("no label in time", 0, None)
        assert "no label comes before the last row" in row["message"]


def test_both_errors_of_late_labels_by_hand():
    """The baselines get the last two of seven rows wrong, whose class has changed."""
    examples = [({"a": 1.0}, i < 8) for i in range(10)]
    results = compare(LBP(), examples, delay=3, jobs=1)
    for run in results.rows("runs")[1:]:
        assert (run["error"], run["error_after_label"]) == pytest.approx((4 / 9, 2 / 7))
    rows, whole, cited = remarks(results.rows("runs"))
    assert rows == "stream: 2 rows came before the first label"
    assert whole.startswith("'all rows' counts these as mistakes of every model")
    assert cited.startswith("'after label' leaves them out")
    folds = compare(LBP(), examples, delay=3, folds=4, jobs=1).rows("runs")
    blind = [run["blind"] for run in folds]
    few = f"stream: in each fold {min(blind)} to {max(blind)} rows came before the first label"
    assert next(remarks(folds)) == few


@pytest.mark.parametrize("delay", [None, 1, 5, 13])
def test_rows_that_count_are_the_same_for_every_delay(delay):
    examples = [({"a": float(i % 3)}, i % 2) for i in range(20)]
    run = compare(LBP(budget=3), examples, delay=delay, jobs=1).rows("runs")[0]
    blind = (delay or 1) - 1
    assert (run["rows"], run["blind"]) == (19, blind)
    assert run["mistakes"] >= blind
    assert run["error"] == pytest.approx(run["mistakes"] / 19)
    stream = Stream(examples)
    assert counted_rows(order_of(stream, delay), None) == (1, 1 + blind)


def test_moments_and_delays_go_with_their_examples():
    examples = [({"a": float(i)}, i % 2) for i in range(7)]
    stream = Stream(examples, moments=np.arange(7) * 10, delays=np.arange(7))
    assert stream.head(3).moments.tolist() == [0, 10, 20]
    assert stream.head(3).delays.tolist() == [0, 1, 2]
    shuffled = stream.block_shuffled(2)
    assert shuffled.moments.tolist() == stream.moments.tolist()
    assert shuffled.delays.tolist() == [x["a"] for x, _ in shuffled]
    plain = Stream(examples)
    different = {one.sha256 for one in (stream, plain, Stream(examples, delays=np.arange(7)))}
    assert len(different) == 3


@pytest.mark.parametrize(
    ("clocks", "message"),
    [
        ({"moments": [0, 1]}, r"stream has 3 examples, and moments of shape \(2,\)"),
        ({"moments": [0, math.nan, 1]}, "moment of example 1 must be a finite number, not nan"),
        ({"delays": [0, 1, -2]}, "delay of example 2 must be 0 or more: .*, not -2"),
        ({"delays": [0, math.inf, 2]}, "delay of example 1 must be 0 or more"),
    ],
)
def test_bad_clocks_are_refused(clocks, message):
    clocks = {name: np.array(values, dtype=float) for name, values in clocks.items()}
    with pytest.raises(ParameterError, match=message):
        Stream([({"a": 1.0}, 0)] * 3, **clocks)


def test_times_of_two_kinds_are_refused():
    examples = [({"at": START}, 0), ({"at": START.replace(tzinfo=None)}, 1)]
    with pytest.raises(ParameterError, match="with and without a zone"):
        timed(Stream(examples), "at", None)
    with pytest.raises(ParameterError, match=r"is a span of time, .*give a moment, too"):
        timed(Stream([({"late": dt.timedelta(1)}, 0)]), None, "late")


def test_functions_that_fail_are_named_with_the_example():
    stream = Stream([({"a": 1.0}, 0), ({}, 1)])
    for clocks in ((lambda x: x["a"], None), (None, lambda x, _: x["a"])):
        with pytest.raises(ParameterError, match=r"fails on example 1 \(KeyError: 'a'\)"):
            timed(stream, *clocks)
    with pytest.raises(ParameterError, match=r"for the delay fails on example 0 \(TypeError"):
        timed(stream, None, lambda x: 1)


def test_a_span_of_any_library_is_one():
    stream = Stream([({"a": 1.0}, 0)] * 2, moments=np.zeros(2))
    for span in (dt.timedelta(minutes=1), np.timedelta64(1, "m"), "1 min", 60, np.int64(60)):
        assert delays_of(stream, span).tolist() == [60, 60]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1 second", 1),
        ("90 min", 5400),
        ("36h", 129_600),
        ("2 days", 172_800),
        ("1 week", 604_800),
        ("1.5 hours", 5400),
        *(
            (text, None)
            for text in ("2", "two days", "2 days later", "-1 d", "day", "2 months", "2M")
        ),
    ],
)
def test_spans_as_people_write_them(text, seconds):
    assert seconds_of(text) == seconds
