"""Deviations from recent means: by hand, as the Tracker has them, in pipelines and in batches."""

import copy
import math
import pickle
import random
import re
from fractions import Fraction

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import (
    base,
    checks,
    compose,
    datasets,
    evaluate,
    forest,
    linear_model,
    metrics,
    preprocessing,
)

from drift.errors import FeatureError, FeatureTypeError, ParameterError
from drift.features import RecentDeviation
from drift.models import Tracker
from drift.models._tracker import tables
from tests.models.streams import random_stream

#: Whose rows within a batch know nothing of each other.
NOT_HELD = "check_transform_many_matches_transform_one"


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, marks=[pytest.mark.slow] * ("memory" in check.__name__))
        for check in checks.yield_checks(RecentDeviation())
    ],
    ids=lambda check: check.__name__,
)
def test_river_check(check):
    random.seed(1)  # the checks shuffle features
    if check.__name__ in RecentDeviation()._unit_test_skips():
        assert check.__name__ == NOT_HELD
        pytest.skip("what holds instead is below")
    check(RecentDeviation())


def test_memory_does_not_follow_the_stream():
    deviation, sizes = RecentDeviation(), []
    for t in range(400):
        deviation.learn_one({"a": t / 7, "b": -t / 3})
        sizes.append(len(pickle.dumps(deviation)))
    assert max(sizes[200:]) <= max(sizes[50:200])


def passed(deviation, examples):
    """Each example with its deviations, learnt thereafter."""
    for x in examples:
        yield deviation.transform_one(x)
        deviation.learn_one(x)


# --- what is added ------------------------------------------------------------------------------


def test_deviations_are_those_by_hand():
    examples = [{"a": 4.0}, {"a": 8.0}, {"a": 1}]
    first, second, third = passed(RecentDeviation([4, 1]), examples)
    assert first == {"a": 4.0, "a - mean of 4": 0.0, "a - mean of 1": 0.0}
    assert second == {"a": 8.0, "a - mean of 4": 4.0, "a - mean of 1": 4.0}
    # m is 4 / 4 = 1, then 1 + (8 - 1) / 4 = 11 / 4; w is 1 / 4, then 7 / 16
    by_hand = {"a": 1, "a - mean of 4": 1 - Fraction(11, 4) / Fraction(7, 16), "a - mean of 1": -7}
    assert third == pytest.approx({name: float(value) for name, value in by_hand.items()})
    assert list(third) == ["a", "a - mean of 4", "a - mean of 1"]


def test_the_horizons_are_those_of_the_tracker():
    assert RecentDeviation().horizons == tables.HORIZONS == (8.0, 32.0, 128.0)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_means_are_those_of_the_tracker(compiled, request):
    if not compiled:
        request.getfixturevalue("monkeypatch").setattr(
            "drift.models.tracker.TrackerCore", reference_core()
        )
    rng = random.Random(3)
    names = ["a", "b", "c"]
    deviation, model = RecentDeviation(), Tracker(5)
    for t in range(120):
        x = {name: rng.gauss(t / 50.0, 1.0) for name in names}
        if t % 7 == 0:
            x["b"] = math.nan
        if t % 5 == 0:
            x["c"] = None
        model.learn_one(x, x["a"] > 0.0)
        deviation.learn_one(x)
    actual = np.array([deviation._means[name] for name in names])
    assert actual.tolist() == model._core.arrays()["means"][:3].tolist()


def reference_core():
    from drift.models._tracker.reference_core import TrackerCore  # noqa: PLC0415

    return TrackerCore


def test_missing_values_have_no_deviation_and_move_no_mean():
    deviation, dense = RecentDeviation(), RecentDeviation()
    rows = [{"a": v, "b": 1.0} for v in (1.0, math.nan, None, 3.0, pd.NA, np.float64("nan"))]
    for t, x in enumerate([*rows, {"b": 1.0}]):
        actual = deviation.transform_one(x)
        assert actual["b - mean of 8"] == 0.0
        assert ("a - mean of 8" in actual) == (t in {0, 3})
        assert all(actual[name] is value for name, value in x.items())
        deviation.learn_one(x)
    for value in (1.0, 3.0):
        dense.learn_one({"a": value})
    assert deviation._means["a"] == dense._means["a"]


@pytest.mark.parametrize(
    "value", ["text", "3", b"3", True, np.True_, (1, 2), pd.Timestamp("2026-01-01"), pd.NA, 1j]
)
def test_what_is_no_number_passes_unchanged(value):
    deviation = RecentDeviation()
    deviation.learn_one({"a": value})
    assert deviation.transform_one({"a": value}) == {"a": value}
    assert deviation._means == {}


@pytest.mark.parametrize("value", [3, np.float32(3), np.int8(3), Fraction(3), np.float64(3)])
def test_numbers_of_all_kinds_have_deviations(value):
    deviation = RecentDeviation([8])
    deviation.learn_one({"a": 1.0})
    actual = deviation.transform_one({"a": value})
    assert actual == {"a": value, "a - mean of 8": 2.0}
    assert type(actual["a"]) is type(value)
    assert type(actual["a - mean of 8"]) is float


def test_names_of_any_kind_have_names_for_their_deviations():
    deviation = RecentDeviation([8, 2.5])
    names = ["a", 3, ("a", 1), None, 2.0, frozenset("b")]
    actual = deviation.transform_one(dict.fromkeys(names, 1.0))
    assert len(actual) == len(names) * 3
    assert list(actual)[len(names) :] == [
        *("a - mean of 8", "a - mean of 2.5", (3, 8), (3, 2.5)),
        *((("a", 1), 8), (("a", 1), 2.5), (None, 8), (None, 2.5)),
        *((2.0, 8), (2.0, 2.5), (frozenset("b"), 8), (frozenset("b"), 2.5)),
    ]


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "horizons", [(), [], 8, "8", [0], [0.5], [-1], [math.nan], [math.inf], ["8"], [8, 8.0], None]
)
def test_other_horizons_are_refused(horizons):
    with pytest.raises(
        ParameterError, match=r"horizons (must be a list|.* at least 1|has a number)"
    ):
        RecentDeviation(horizons)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1.5e300, 10**400, np.float32("inf")])
@pytest.mark.parametrize("method", ["learn_one", "transform_one"])
def test_a_value_without_a_finite_mean_is_refused_and_nothing_is_learnt(value, method):
    deviation = RecentDeviation()
    deviation.learn_one({"a": 1.0})
    before = pickle.dumps(deviation)
    with pytest.raises(FeatureError, match=re.escape(f"feature 'b' is {value!r:.80}: ")):
        getattr(deviation, method)({"a": 2.0, "b": value})
    assert pickle.dumps(deviation) == before


def test_the_largest_values_have_finite_deviations():
    examples = [{"a": sign * 1e300} for sign in (1, -1, -1, 1, -1, 1, 1)]
    for z in passed(RecentDeviation([1, 1.5, 8]), examples):
        assert all(map(math.isfinite, z.values()))


def test_the_name_of_another_features_deviation_is_refused():
    x = {"a - mean of 8": 1.0, "a": 2.0}
    with pytest.raises(ParameterError, match="called 'a - mean of 8'"):
        RecentDeviation().transform_one(x)
    with pytest.raises(ParameterError, match="called 'a - mean of 8'"):
        RecentDeviation().transform_many(pd.DataFrame([x]))


def test_examples_that_are_no_dicts_are_refused():
    for method in (RecentDeviation().learn_one, RecentDeviation().transform_one):
        with pytest.raises(FeatureTypeError, match="dict"):
            method("some text")


# --- properties ---------------------------------------------------------------------------------

VALUES = st.one_of(
    st.floats(-1e6, 1e6), st.integers(-50, 50), st.none(), st.just(math.nan), st.text(max_size=2)
)
EXAMPLES = st.lists(st.dictionaries(st.sampled_from("abcd"), VALUES), max_size=30)


@given(value=st.floats(-1e300, 1e300), n=st.integers(1, 60), h=st.floats(1.0, 1e6))
def test_what_is_constant_deviates_by_nothing(value, n, h):
    examples = [{"a": value}] * n
    for z in passed(RecentDeviation([h]), examples):
        deviation = [v for name, v in z.items() if name != "a"]
        assert deviation == pytest.approx([0.0], abs=1e-9 * abs(value) + 1e-300)


@given(examples=EXAMPLES, seed=st.integers(0, 5))
def test_the_order_of_features_does_not_matter(examples, seed):
    shuffled = [dict(random.Random(seed).sample(list(x.items()), len(x))) for x in examples]
    one, other = (list(passed(RecentDeviation(), some)) for some in (examples, shuffled))
    assert str([sorted(x.items()) for x in one]) == str([sorted(x.items()) for x in other])


@given(examples=EXAMPLES)
def test_a_deviation_is_from_the_mean_of_all_values_before(examples):
    """By weights that fall by 1 - 1 / h with each value, instead of running sums."""
    values = {}
    for x, z in zip(examples, passed(RecentDeviation([8, 32]), examples), strict=True):
        for name, value in x.items():
            number = isinstance(value, (int, float)) and value == value
            assert (f"{name} - mean of 8" in z) == number
            if not number:
                continue
            before = values.setdefault(name, [])
            for h in (8, 32):
                weights = [(1 - 1 / h) ** age for age in range(len(before))][::-1]
                mean = np.average(before, weights=weights) if before else value
                assert z[f"{name} - mean of {h}"] == pytest.approx(value - mean, abs=1e-6)
            before.append(value)


# --- in pipelines -------------------------------------------------------------------------------


class Recorder(base.Classifier):
    """What comes out of a pipeline, when it is predicted and when it is learnt."""

    def __init__(self):
        self.predicted, self.learnt = [], []

    def predict_one(self, x):
        self.predicted.append(x)
        return True

    def predict_proba_one(self, x):
        return {self.predict_one(x): 1.0}

    def learn_one(self, x, y):
        self.learnt.append(x)

    def predict_many(self, X):
        self.predicted += X.to_dict("records")

    def learn_many(self, X, y):
        self.learnt += X.to_dict("records")


def constant(x):
    return dict(x)


PIPELINES = {
    "alone": lambda d, r: d | r,
    "behind a function": lambda d, r: compose.FuncTransformer(constant) | d | r,
    "within another": lambda d, r: compose.Pipeline(compose.FuncTransformer(constant) | d, r),
    "within a union": lambda d, r: (compose.Discard("a", "b", "c") + d) | r,
    "within a pipeline of a union": lambda d, r: (
        ((compose.Select("a") | compose.FuncTransformer(constant)) + (compose.Select("a", "b") | d))
        | r
    ),
}
#: Some come several times in a row.
ROWS = [{"a": float(t // 3), "b": float(t % 5 > 2)} for t in range(40)]


@pytest.mark.parametrize("during_predict", [False, True])
@pytest.mark.parametrize("shape", PIPELINES)
def test_a_pipeline_predicts_and_learns_the_deviations_from_what_was_before(shape, during_predict):
    model = PIPELINES[shape](RecentDeviation(), Recorder())
    expected = list(passed(RecentDeviation(), ROWS))

    def run():
        for x in ROWS:
            model.predict_one(x)
            model.predict_proba_one(dict(x))
            model.learn_one(x, True)

    if during_predict:
        with compose.learn_during_predict():
            run()
    else:
        run()
    recorder = model["Recorder"]
    assert recorder.learnt == recorder.predicted[::2] == recorder.predicted[1::2] == expected


def test_a_pipeline_does_so_with_batches():
    model = compose.Select("a", "b") | RecentDeviation() | Recorder()
    for first in range(0, len(ROWS), 9):
        X = pd.DataFrame(ROWS[first : first + 9])
        model.predict_many(X)
        model.learn_many(X, pd.Series([True] * len(X)))
    recorder = model["Recorder"]
    assert recorder.learnt == recorder.predicted == list(passed(RecentDeviation(), ROWS))


def test_late_labels_learn_the_deviations_of_when_examples_were_seen_only_before_the_pipeline():
    deviation, recorder = RecentDeviation(), Recorder()
    expected = list(passed(RecentDeviation(), ROWS))
    seen = zip(passed(deviation, ROWS), [True] * len(ROWS), strict=True)
    evaluate.progressive_val_score(seen, recorder, metrics.Accuracy(), delay=10)
    assert recorder.predicted == recorder.learnt == expected

    model = RecentDeviation() | Recorder()
    stream = [(x, True) for x in ROWS]
    evaluate.progressive_val_score(stream, model, metrics.Accuracy(), delay=10)
    assert model["Recorder"].learnt == expected  # from those before it
    assert model["Recorder"].predicted != expected  # from those before its tenth predecessor


def test_it_helps_a_forest_and_a_linear_model_where_levels_wander():
    rng, stream = random.Random(5), []
    for t in range(600):
        noise = rng.gauss(0.0, 1.0)
        stream.append(({"load": 20.0 * math.sin(t / 150.0) + noise}, noise > 0.0))
    for model in (
        preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        compose.Pipeline(forest.ARFClassifier(n_models=3, seed=0)),
    ):
        accuracies = [
            evaluate.progressive_val_score(stream, one, metrics.Accuracy()).get()
            for one in (model.clone(), RecentDeviation() | model.clone())
        ]
        assert accuracies[1] > accuracies[0] + 0.15


def test_real_features_go_through_with_missing_ones_and_texts():
    model = RecentDeviation() | compose.SelectType(int, float) | forest.ARFClassifier(3, seed=0)
    for t, (x, y) in enumerate(datasets.Phishing().take(60)):
        some = x | {"town": "Rome", "open": "yes"} if t % 2 else dict(list(x.items())[:4])
        assert model.predict_one(some) in {None, True, False}
        model.learn_one(some, y)


def test_a_copy_continues_as_the_original_would():
    rows = [x for x, _ in random_stream(60)]
    original = RecentDeviation([3, 20])
    list(passed(original, rows[:40]))
    copies = [
        pickle.loads(pickle.dumps(original)),
        original.clone(include_attributes=True),
        copy.deepcopy(original),
    ]
    expected = list(passed(original, rows[40:]))
    assert all(list(passed(one, rows[40:])) == expected for one in copies)
    fresh = original.clone()
    assert fresh.horizons == (3.0, 20.0)
    assert list(passed(fresh, rows)) == list(passed(RecentDeviation((3, 20)), rows))


# --- batches ------------------------------------------------------------------------------------

LIBRARIES = {
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": pl.DataFrame,
    "arrow": lambda columns: pytest.importorskip("pyarrow").table(columns),
}


def columns(n, seed=0):
    rng = random.Random(seed)
    return {
        "a": [rng.gauss(0.0, 1.0) for _ in range(n)],
        "b": [None if rng.random() < 0.3 else rng.gauss(3.0, 1.0) for _ in range(n)],
        "c": [rng.randrange(5) for _ in range(n)],
        "town": [rng.choice(["Rome", "Oslo", None]) for _ in range(n)],
        "open": [rng.random() < 0.5 for _ in range(n)],
    }


@pytest.mark.parametrize("size", [1, 7, 24])
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_batch_is_the_loop_over_its_rows(library, size):
    frame = LIBRARIES[library](columns(24))
    table = nw.from_native(frame)
    looped, batched = RecentDeviation(), RecentDeviation()
    for first in range(0, 24, size):
        part = table[first : first + size]
        rows = list(part.iter_rows(named=True))
        before = pickle.dumps(batched)
        given_back = batched.transform_many(part.to_native())
        assert pickle.dumps(batched) == before
        assert type(given_back) is type(frame)
        batched.learn_many(part.to_native(), [True] * size)
        out = nw.from_native(given_back)
        assert out[list(table.columns)].to_native().equals(part.to_native())
        expected = list(passed(looped, rows))
        names = {name: None for z in expected for name in z}
        assert set(out.columns) == set(names)
        for name in out.columns[5:]:
            values = [z.get(name, math.nan) for z in expected]
            assert np.array_equal(out[name].to_numpy(), values, equal_nan=True)
    assert batched._means == looped._means


def test_a_batch_keeps_the_index_and_names_that_are_no_texts():
    frame = pd.DataFrame({0: [1.0, 3.0], "a": ["x", "y"]}, index=[7, 7])
    actual = RecentDeviation([8]).transform_many(frame)
    assert actual.columns.tolist() == [0, "a", (0, 8)]
    assert actual.index.tolist() == [7, 7]
    assert actual[0, 8].tolist() == [0.0, 2.0]


def test_columns_of_objects_have_deviations_where_there_are_numbers():
    frame = pd.DataFrame({"a": ["x", 2.0, True, 5]}, dtype=object)
    actual = RecentDeviation([1]).transform_many(frame)
    assert actual["a - mean of 1"].tolist() == pytest.approx(
        [math.nan, 0, math.nan, 3], nan_ok=True
    )


@pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame({"a": []}), pl.DataFrame()])
def test_a_batch_of_nothing_is_nothing(frame):
    deviation = RecentDeviation()
    deviation.learn_many(frame)
    assert deviation.transform_many(frame).equals(frame)
    assert deviation._means == {}


def test_batches_that_are_refused_change_nothing():
    deviation = RecentDeviation()
    for bad, error, output in [
        (pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, math.inf]}), FeatureError, "row 1: feature 'b'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ParameterError, "rename all but one"),
        ([{"a": 1.0}], FeatureTypeError, "a batch is a DataFrame, not a list"),
        (np.eye(2), FeatureTypeError, "a batch is a DataFrame, not a ndarray"),
    ]:
        for method in (deviation.learn_many, deviation.transform_many):
            with pytest.raises(error, match=output):
                method(bad)
    assert deviation._means == {}
