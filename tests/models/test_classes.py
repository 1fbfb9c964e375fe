"""Rows of arrays under several classes: skipped or learnt, they equal the loop over rows."""

import pickle
from functools import cache

import numpy as np
import pytest
from scipy import sparse

from drift.kernels import RBF, Linear, Polynomial
from drift.models import (
    LBP,
    MIRA,
    MRBP,
    ROMMA,
    SPA,
    Forgetron,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    ProjectronPlusPlus,
    VotedPerceptron,
    compiled,
)

KERNELS = {
    "linear": Linear(),
    "quartic": Polynomial(4),
    "rbf": RBF(0.2),
    "custom": lambda dot, a, b: dot + 0.1 * dot * dot,
}
MODELS = {
    "MRBP": lambda k: MRBP(12, k, seed=1),
    "MIRA": lambda k: MIRA(0.1, kernel=k),
    "MIRA-fixed": lambda k: MIRA(0.1, 12, "fixed", k),
    "MIRA-variable": lambda k: MIRA(0.1, cache="variable", kernel=k),
    "multiclass PassiveAggressive": lambda k: PassiveAggressive(kernel=k),
    "multiclass PassiveAggressive-budget": lambda k: PassiveAggressive(kernel=k, budget=12),
    "ProjectronPlusPlus": lambda k: ProjectronPlusPlus(0.5, k),
    "Perceptron": lambda k: OneVsRest(Perceptron(k, bias=True)),
    "SPA": lambda k: OneVsRest(SPA(kernel=k)),
    "LBP": lambda k: OneVsRest(LBP(12, k)),
    "Forgetron": lambda k: OneVsRest(Forgetron(12, k)),
    "PassiveAggressive": lambda k: OneVsRest(PassiveAggressive(kernel=k)),
    "PassiveAggressive-budget": lambda k: OneVsRest(PassiveAggressive(0.5, k, 12)),
    "VotedPerceptron": lambda k: OneVsRest(VotedPerceptron(k, bias=True)),
    "VotedPerceptron-averaged": lambda k: OneVsRest(VotedPerceptron(k, averaged=True)),
    "ROMMA": lambda k: OneVsRest(ROMMA(kernel=k)),
    "ROMMA-aggressive": lambda k: OneVsRest(ROMMA(aggressive=True, kernel=k)),
    "ROMMA-noise": lambda k: OneVsRest(ROMMA(noise=2.0, kernel=k)),
    "ROMMA-aggressive-noise": lambda k: OneVsRest(ROMMA(aggressive=True, noise=2.0, kernel=k)),
}


def batch(kind, n=100, width=12, classes=5):
    """Rows around a centre for each class; the classes come one after the other."""
    rng = np.random.default_rng(5)
    y = np.minimum(rng.integers(classes, size=n), np.arange(n) // 12)
    X = rng.normal(size=(classes, width))[y] + 0.5 * rng.normal(size=(n, width))
    if kind == "again":  # few rows, each of them many times
        chosen = rng.integers(30, size=n)
        X, y = X[chosen], y[chosen]
        X[n // 3] = 0.0
    elif kind == "ties":
        X = np.rint(X)
    elif kind == "sparse":
        X[rng.random(X.shape) < 0.7] = 0.0
    elif kind == "constant":  # roundings that all go the same way
        X = 0.1 + 1e-7 * X
    return X, [f"class {k}" for k in y]


def as_dicts(X):
    return [{j: v for j, v in enumerate(x) if v} for x in X.tolist()]


def loop(model, rows, y):
    predictions = []
    for x, label in zip(rows, y, strict=True):
        predictions.append(model.predict_one(x))
        model.learn_one(x, label)
    return predictions


def in_two_batches(model, X, rows, y, first):
    """Models that learnt the rows one by one and in two batches, which are the same."""
    one, many = model.clone(), model.clone()
    expected = loop(one, rows, y.tolist())
    predictions = [*many.predict_learn_many(X[:first], y[:first])]
    predictions += [*many.predict_learn_many(X[first:], y[first:])]
    assert predictions == expected
    assert pickle.dumps(many) == pickle.dumps(one)
    return one, many


@pytest.mark.covering(1)
@pytest.mark.usefixtures("tolerance")
@pytest.mark.parametrize("kind", ["again", "ties", "sparse", "constant"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MODELS)
def test_a_batch_is_the_loop(name, kernel, kind):
    X, y = batch(kind)
    one, many = (MODELS[name](KERNELS[kernel]) for _ in range(2))
    expected = loop(one, as_dicts(X), y)
    predictions = [
        *many.predict_learn_many(X[:1], y[:1]),
        *many.predict_learn_many(sparse.csr_array(X[1:60]), y[1:60]),
        *many.predict_learn_many(X[60:], y[60:]),
    ]
    assert predictions == expected
    assert many.n_mistakes == one.n_mistakes
    scores = [one.decision_function_one(dict(enumerate(x))) for x in X[:20].tolist()]
    assert many.decision_function_many(X[:20]).tolist() == [[*s.values()] for s in scores]
    assert many.predict_many(X).tolist() == [one.predict_one(dict(enumerate(x))) for x in X]
    if kernel != "custom":  # a function has no pickle
        assert pickle.dumps(many) == pickle.dumps(one)


@pytest.mark.parametrize("name", ["Perceptron", "ROMMA-noise"])
def test_rows_that_no_class_learns_are_skipped(name):
    X, y = batch("clusters")
    model, learnt = MODELS[name](None), []
    learn = model._predict_learn
    model._predict_learn = lambda x, y: learnt.append(1) or learn(x, y)
    model.learn_many(X, y)
    learnt.clear()
    model.learn_many(X + 0.01, y)
    assert len(learnt) < len(X) / 2


def test_predictions_have_the_first_names_of_classes():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]])
    model = OneVsRest(Perceptron(Linear()))
    model.learn_many(X, [1, 2, 1, 2])
    predictions = model.predict_learn_many(X, [True, 2.0, True, 2.0])
    assert [repr(y) for y in predictions.tolist()] == ["1", "2", "1", "2"]


@pytest.mark.parametrize("name", ["Perceptron", "ROMMA-aggressive", "MIRA"])
@pytest.mark.parametrize("kernel", ["linear", "quartic", "rbf"])
def test_most_rows_are_predicted_in_compiled_code(name, kernel):
    X, y = batch("clusters", n=600)
    model, asked = MODELS[name](KERNELS[kernel]), []
    model.learn_many(X, y)
    predict = model._predict
    model._predict = lambda x: asked.append(1) or predict(x)
    predictions = model.predict_many(X + 0.01)
    assert len(asked) < 0.05 * len(X)
    assert (predictions == [model.predict_one(dict(enumerate(x))) for x in X + 0.01]).all()


@pytest.mark.skipif(not compiled, reason="only compiled code sums columns by chunks")
@pytest.mark.parametrize(
    "model",
    [
        MIRA(kernel=Polynomial(5, normalize=True)),
        MIRA(cache="fixed", budget=80, kernel=RBF(0.01)),
        OneVsRest(VotedPerceptron(Polynomial(2))),
    ],
    ids=lambda model: repr(model)[:30],
)
def test_rows_of_more_columns_than_are_summed_at_once(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1600))
    X[rng.random(X.shape) > np.linspace(0.05, 1.5, 1600)] = 0.0  # of every density
    in_two_batches(model, X, as_dicts(X), rng.integers(4, size=200), 150)  # which nobody can learn


@cache  # for one model after the other
def wide_rows():
    """Rows as an array and as dicts, and which of them have a label that nobody can learn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(640, 1500))
    dense = np.linspace(0.0, 2.0, 1500)
    X[:500][rng.random((500, 1500)) > dense] = 0.0  # of every density
    X[500:560][rng.random((60, 1500)) > dense[::-1]] = 0.0  # columns turn dense and sparse
    X[600:620] = X[580:600]
    return X, as_dicts(X), rng.random(640) < 0.5


@pytest.mark.covering(1)
@pytest.mark.skipif(not compiled, reason="only compiled code has windows")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        OneVsRest(LBP(360, RBF(0.01))),
        OneVsRest(Forgetron(360)),
        OneVsRest(SPA(kernel=Polynomial(3))),
        PassiveAggressive(kernel=Polynomial(4, normalize="rows"), budget=360),
        MRBP(360, Linear(), seed=1),
        ProjectronPlusPlus(2.0, RBF(0.01)),
    ],
    ids=lambda model: repr(model)[:30],
)
def test_rows_whose_columns_do_not_fit_a_cache(model, classes):
    X, rows, unlearnable = wide_rows()
    y = (X[:, 1499] > 0) + (X[:, 1498] > 1.0) * (classes - 2)
    y[unlearnable] = 0
    model = getattr(model, "model", model) if classes == 2 else model
    one, many = in_two_batches(model, X, rows, y, 450)
    assert many.predict_many(X[300:]).tolist() == [one.predict_one(x) for x in rows[300:]]
    assert pickle.dumps(many) == pickle.dumps(one)
