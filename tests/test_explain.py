"""Contributions of features against numbers by hand, and against all orders one by one."""

import math
import pickle
from collections import Counter
from itertools import permutations
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import base, compose, linear_model, multiclass, naive_bayes, preprocessing, tree

from drift import explain
from drift.errors import FeatureTypeError, ParameterError
from drift.explain import Baseline, Explainer, Importances
from drift.kernels import Linear
from drift.models import LBP, MIRA, OneVsRest, Perceptron, Threshold, Tracker


class Formula(base.Classifier):
    """A model whose log-odds are a function of the features."""

    def __init__(self, f):
        self.f = f
        self.asked = 0

    def learn_one(self, x, y):
        pass

    def predict_proba_one(self, x):
        self.asked += 1
        p = 1 / (1 + math.exp(-self.f(x)))
        return {False: 1 - p, True: p}


def baseline(**means):
    one = Baseline()
    one.learn_one(means)
    return one


def by_all_orders(f, x, means):
    """Mean change of f over all orders in which features go from the means to x."""
    total, orders = dict.fromkeys(x, 0.0), list(permutations(x))
    for order in orders:
        row = dict(means)
        for name in order:
            before = f(row)
            row[name] = x[name]
            total[name] += (f(row) - before) / len(orders)
    return total


def test_logistic_regression_by_hand():
    model = linear_model.LogisticRegression()
    model._weights.update({"a": 2.0, "b": -1.0, "c": 0.5, "d": 3.0, "e": 1.0})
    model.intercept = 0.25
    x = {"a": 1.0, "b": 2.0, "c": -2.0, "d": 0.5}
    why = Explainer(model, baseline(a=0.5, b=3.0, c=0.0, d=0.5, e=2.0)).explain_one(x, label=True)
    # weight * (value - mean); d is at its mean, e is absent
    assert why.contributions == pytest.approx({"e": -2.0, "a": 1.0, "b": 1.0, "c": -1.0}, abs=1e-8)
    assert (why.score, why.baseline) == pytest.approx((0.75, 1.75))
    assert why.is_exact
    assert set(why.errors.values()) == {0.0}
    assert why.of(False).contributions["e"] == pytest.approx(2.0)


def test_a_scaler_and_a_one_hot_encoder_stay_additive():
    numbers = compose.SelectType(float) | preprocessing.StandardScaler()
    texts = compose.SelectType(str) | preprocessing.OneHotEncoder()
    model = (numbers + texts) | linear_model.LogisticRegression(l2=0.01)
    explainer = Explainer(model)
    rng = np.random.default_rng(0)
    for _ in range(300):
        x = {name: rng.normal() for name in "abcde"} | {"colour": str(rng.choice(["red", "blue"]))}
        explainer.baseline.learn_one(x)
        model.learn_one(x, x["a"] + (x["colour"] == "red") > 0.5)
    x = dict.fromkeys("abcde", 2.0) | {"colour": "red"}
    why = explainer.explain_one(x, label=True)
    weights = model["LogisticRegression"].weights
    assert why.is_exact
    assert why.contributions["colour"] == pytest.approx(weights["colour_red"], abs=1e-6)
    assert list(why.contributions)[:2] == ["a", "colour"]


def test_a_linear_kernel_by_hand():
    """The only support is (1, 2, 0, 0, -1) with the coefficient 1, which the calibration scales."""
    model = Perceptron(kernel=Linear())
    model.learn_one({"a": 1.0, "b": 2.0, "e": -1.0}, True)
    x = {"a": 3.0, "b": 1.0, "c": 5.0, "d": 1.0, "e": 2.0}
    why = Explainer(model, baseline(a=1.0, b=1.5)).explain_one(x, label=True)
    scale = why.score / (3 * 1 + 1 * 2 - 2)
    products = {"a": 2 * 1, "e": -2, "b": -0.5 * 2, "c": 0, "d": 0}
    assert why.is_exact
    assert why.contributions == pytest.approx({n: scale * v for n, v in products.items()}, abs=1e-6)


class Named(Threshold):
    """A threshold of the user's."""


class Halved(Named):
    """One that halves the log-odds."""

    def answer_one(self, x, ticket=False):  # noqa: FBT002 - as of drift's models
        label, score, chances = super().answer_one(x, ticket)
        if len(chances) < 2:
            return label, score, chances
        odds = 0.5 * math.log(chances[True] / chances[False])
        return label, score, {False: 1 / (1 + math.exp(odds)), True: 1 / (1 + math.exp(-odds))}

    def predict_proba_one(self, x, **kwargs):
        return self.answer_one(x, **kwargs)[2]


@pytest.mark.parametrize("inner", [Perceptron(kernel=Linear()), Tracker(late=True)], ids=str)
@pytest.mark.parametrize(
    ("around", "share"),
    [(Threshold, 1), (Named, 1), (lambda inner: Threshold(Named(inner)), 1), (Halved, 0.5)],
)
def test_a_threshold_is_explained_by_its_own_probabilities(inner, around, share):
    model, inner, x = around(inner.clone()), inner.clone(), dict.fromkeys("abcde", 1.0)
    for i in range(20):
        other = {"a": float(i % 3), "b": float(i % 5), "e": -1.0}
        model.learn_one(other, i % 3 > 1)
        inner.learn_one(other, i % 3 > 1)
    why, expected = (Explainer(one).explain_one(x, label=True) for one in (model, inner))
    assert why.score == pytest.approx(share * expected.score)
    assert why.contributions == pytest.approx(
        {name: share * value for name, value in expected.contributions.items()}, abs=1e-8
    )


def test_a_pipeline_stays_where_it_learns_during_predictions():
    model = preprocessing.StandardScaler() | Perceptron(kernel=Linear())
    for i in range(20):
        model.learn_one(dict.fromkeys("abcde", float(i)), i % 3 > 1)
    before = pickle.dumps(model)
    with compose.learn_during_predict():
        why = Explainer(model).explain_one(dict.fromkeys("abcde", 7.0), label=1)
        assert why.label is True
        assert pickle.dumps(model) == before
        model.predict_one({"a": 3.0})
        assert pickle.dumps(model) != before


def test_naive_bayes_of_two_classes_is_additive():
    model = naive_bayes.GaussianNB()
    rng = np.random.default_rng(1)
    for i in range(100):
        model.learn_one(dict(zip("abcde", rng.normal(i % 2, 1, 5), strict=True)), i % 2 == 0)
    explainer = Explainer(model, baseline(a=0.5, b=0.5, c=0.5, d=0.5, e=0.5))
    assert explainer.explain_one(dict.fromkeys("abcde", 1.0)).is_exact


def test_an_interaction_is_shared_equally():
    def both(x):
        return 3 * x["a"] * x["b"] + x["c"]

    why = Explainer(Formula(both), baseline(a=0.0, b=0.0, c=0.0)).explain_one(
        {"a": 1.0, "b": 1.0, "c": -1.0}, label=True
    )
    assert why.contributions == pytest.approx({"a": 1.5, "b": 1.5, "c": -1.0})
    assert why.is_exact


def test_a_pair_of_orders_is_exact_for_interactions_of_two():
    names = "abcdef"
    weights = np.triu(np.random.default_rng(0).normal(size=(6, 6)), 1)

    def pairs(x):
        v = np.array([x[name] for name in names])
        return v @ weights @ v

    x = dict.fromkeys(names, 1.0)
    means = dict.fromkeys(names, 0.0)
    why = Explainer(Formula(pairs), baseline(**means), pairs=2).explain_one(x, label=True)
    halves = (weights.sum(axis=0) + weights.sum(axis=1)) / 2
    assert why.contributions == pytest.approx(dict(zip(names, halves, strict=True)), abs=1e-8)


def test_sampled_contributions_are_near_those_of_all_orders():
    def tangled(x):
        return x["a"] * x["b"] * x["c"] + max(x["c"], x["d"]) * x["e"] - x["a"]

    x = {"a": 1.0, "b": 2.0, "c": 1.5, "d": -1.0, "e": 1.0}
    means = dict.fromkeys(x, 0.25)
    exact = by_all_orders(tangled, x, means)
    for seed in range(20):
        one = Explainer(Formula(tangled), baseline(**means), pairs=12, seed=seed)
        why = one.explain_one(x, label=True)
        assert not why.is_exact
        for name, value in why.contributions.items():
            assert abs(value - exact[name]) <= 5 * why.errors[name] + 1e-9
    assert one.explain_one(x, label=True).contributions == why.contributions


@pytest.mark.parametrize(
    ("model", "classes"),
    [
        (Tracker(budget=30), 4),
        (Tracker(budget=30, late=True), 2),
        (LBP(budget=20), 2),
        (MIRA(), 4),
        (OneVsRest(LBP(budget=20)), 4),
        (preprocessing.StandardScaler() | LBP(budget=20), 2),
        (tree.HoeffdingAdaptiveTreeClassifier(grace_period=20, seed=1), 4),
    ],
    ids=["Tracker", "late", "LBP", "MIRA", "OneVsRest", "pipeline", "tree"],
)
def test_contributions_add_up_and_the_model_stays(model, classes):
    model = model.clone()
    explainer = Explainer(model, pairs=3)
    rng = np.random.default_rng(2)
    rows = [dict(zip("abcdef", rng.normal(size=6).tolist(), strict=True)) for _ in range(120)]
    for x in rows:
        explainer.baseline.learn_one(x)
        kind = int(x["a"] * x["b"] > 0) + 2 * int(x["c"] > 0.5)
        model.learn_one(x, kind if classes == 4 else kind > 0)
    before = pickle.dumps(model)
    for x in rows[:5]:
        why = explainer.explain_one(x)
        for label in why.labels:
            one = why.of(label)
            assert sum(one.contributions.values()) == pytest.approx(one.score - one.baseline)
        assert why.label == max(why.labels, key=lambda label: why.of(label).score)
    assert pickle.dumps(model) == before


def test_indicators_of_a_category_count_together():
    def cards(x):
        return 2 * x.get("card=visa", 0) - x.get("card=amex", 0) + x.get("=", 0)

    known = Baseline()
    for _ in range(3):
        known.learn_one({"card=amex": 1, "sum": 1.0})
    why = Explainer(Formula(cards), known).explain_one({"card=visa": 1, "sum": 1.0, "=": 1}, True)
    assert why.contributions == pytest.approx({"card": 3.0, "=": 1.0})


def test_missing_values_count_as_they_are_given():
    def missing(x):
        return 1.0 if x["a"] is None else x["a"]

    known = baseline(a=0.0)
    assert Explainer(Formula(missing), known).explain_one({"a": None, "b": math.nan}, True)
    why = Explainer(Formula(missing), known).explain_one({"a": None, "b": math.nan}, True)
    assert why.contributions == pytest.approx({"a": 1.0})


def test_an_example_like_the_baseline_has_no_contributions():
    why = Explainer(Formula(lambda x: x["a"]), baseline(a=2.0)).explain_one({"a": 2.0})
    assert (why.contributions, why.score, why.baseline) == ({}, pytest.approx(2.0), why.score)


def test_certain_probabilities_count_as_one_in_a_million():
    model = Formula(lambda x: 0.0)
    model.predict_proba_one = lambda x: {"a": 1.0, "b": 0.0, "c": 0.0}
    assert Explainer(model).explain_one({}).score == pytest.approx(math.log(1e6))
    assert Explainer(model).explain_one({}, "b").score == pytest.approx(-math.log(1e6))


@pytest.mark.parametrize("kind", [pd.Series, MappingProxyType, Counter])
def test_features_come_in_anything_with_names(kind):
    model = Tracker(budget=9)
    for i in range(20):
        model.learn_one({"a": float(i % 3), "b": 1.0}, i % 3 > 1)
    explainer = Explainer(model, baseline(a=1.0, c=2.0))
    x = {"a": 2, "b": 3}
    why = explainer.explain_one(kind(x))
    assert why.contributions == explainer.explain_one(x).contributions
    for wrong in ("ab", None, [("a", 1.0)]):
        with pytest.raises(FeatureTypeError, match="features must come in a dict"):
            explainer.explain_one(wrong)


def test_batches_are_loops():
    model = LBP(budget=10)
    rows = [{0: float(i % 3), 1: float(i % 5), 2: float(i % 2), 3: 1.0} for i in range(1, 30)]
    for x in rows:
        model.learn_one(x, x[0] > x[1])
    explainer = Explainer(model)
    expected = [explainer.explain_one(x).contributions for x in rows]
    for X in (rows, pd.DataFrame(rows)):
        assert [one.contributions for one in explainer.explain_many(X)] == expected


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=1, max_size=40))
def test_means_are_those_of_faded_sums(values):
    known = Baseline(memory=4)
    for value, has in values:
        known.learn_one({"a": value} if has else {"a": None, "b": "text"})
    weights = [0.75 ** (len(values) - i) for i in range(len(values))]
    have = [w * has for w, (_, has) in zip(weights, values, strict=True)]
    if abs(sum(have) - sum(weights) / 2) < 1e-9:
        return
    expected = {}
    if sum(have) > sum(weights) / 2:
        total = sum(w * value for w, (value, _) in zip(have, values, strict=True))
        expected = {"a": pytest.approx(total / sum(have), abs=1e-9)}
    assert known.features == expected


def test_means_are_kept_of_what_is_frequent():
    known = Baseline()
    for i in range(30_000):
        known.learn_one({"every": 1.0, f"word{i}": 1.0})
    assert known.features == {"every": pytest.approx(1.0)}
    assert len(known._sums) <= 4_096 + 1
    again = Baseline.restore(known.state())
    for one in (known, again):
        one.learn_one({"every": 7.0})
    assert again.features == known.features
    good = {"total": 2, "step": 1, "sums": [["a", 1, 3]]}
    assert Baseline.restore(good).features == {"a": 3.0}
    for wrong in (
        *({}, {"sums": 3}, None, good | {"sums": [["a", 0, 1]]}, good | {"sums": [[[], 1, 3]]}),
        *(good | {name: n} for name in ("total", "step") for n in (0, -1, 10**400, math.nan)),
    ):
        with pytest.raises(ParameterError, match="no state of a baseline"):
            Baseline.restore(wrong)


def test_importances_are_faded_means_of_absolute_contributions():
    importances = Importances(memory=2)
    model = Formula(lambda x: 2 * x.get("a", 0) - x.get("b", 0))
    explainer = Explainer(model)
    for x in ({"a": 1.0}, {"b": 1.0}, {"b": 3.0}):
        importances.learn_one(explainer.explain_one(x, True))
    # weights 1/4, 1/2, 1, in all 7/4
    assert importances.get() == pytest.approx({"b": (0.5 + 3) / 1.75, "a": 0.5 / 1.75})


def test_what_cannot_be_explained_is_refused_by_name(monkeypatch):
    with pytest.raises(ParameterError, match="OneVsOneClassifier gives no probabilities"):
        Explainer(
            preprocessing.StandardScaler()
            | multiclass.OneVsOneClassifier(linear_model.LogisticRegression())
        )
    with pytest.raises(ParameterError, match="model must be an instance"):
        Explainer(LBP)
    with pytest.raises(ParameterError, match="Tracker gives no probabilities yet"):
        Explainer(Tracker()).explain_one({"a": 1.0})
    with pytest.raises(ParameterError, match="knows no class 'maybe'"):
        Explainer(LBP()).explain_one({"a": 1.0}, "maybe")
    with pytest.raises(ParameterError, match="pairs must be an integer of at least 2"):
        Explainer(LBP(), pairs=1)
    ticks = iter(range(1000))
    monkeypatch.setattr(explain, "perf_counter", lambda: float(next(ticks)))
    x = dict.fromkeys("abcdef", 1.0)
    with pytest.raises(ParameterError, match=r"seconds=1.5 is too small.* of 6 features, took 1"):
        Explainer(LBP(), seconds=1.5).explain_one(x)


def test_time_ends_the_sampling(monkeypatch):
    def asked(seconds):
        model = Formula(lambda x: math.prod(1 + v for v in x.values()))
        ticks = iter(range(1000))
        monkeypatch.setattr(explain, "perf_counter", lambda: float(next(ticks)))
        means = baseline(**dict.fromkeys("abcdef", 0.0))
        Explainer(model, means, seconds=seconds).explain_one(dict.fromkeys("abcdef", 0.1))
        return model.asked

    assert asked(None) == 2 + 2 + 8 * 2 * 5  # label and probabilities, ends, pairs of orders
    assert asked(3.0) == 2 + 2 + 3 * 2 * 5
