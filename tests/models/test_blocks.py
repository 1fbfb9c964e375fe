"""Blocks of dense rows through BLAS decide as the one loop does, row for row."""

import numpy as np
import pytest

from drift.kernels import RBF, Linear, Polynomial
from drift.models import LBP, RBP, SPA, Perceptron, compiled
from drift.models._template import blocks
from drift.models._template.batches import Table

pytestmark = pytest.mark.skipif(not compiled, reason="the compiled extension is missing")

KERNELS = [
    Linear(),
    Polynomial(4, normalize=True),
    Polynomial(4, normalize="rows"),
    Polynomial(3, coef0=0.5),
    RBF(0.2),
]
MODELS = {
    "Perceptron": Perceptron,
    "SPA": lambda kernel: SPA(kernel=kernel),
    "RBP": lambda kernel: RBP(30, kernel, seed=1),
    "LBP": lambda kernel: LBP(30, kernel),
}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "LEAST_PRODUCTS", 1)
    monkeypatch.setattr(blocks, "LEAST_ROWS", 2)
    monkeypatch.setattr(blocks, "BLOCK", 23)
    monkeypatch.setattr(blocks, "CHAIN", 4)


def batch(kind, n=160, width=9):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, width)) + 0.3
    if kind == "ties":  # the same few rows again and again, and zeros
        X = rng.integers(-2, 3, size=(6, width))[rng.integers(6, size=n)].astype(float)
        X[n // 2] = 0.0
    elif kind == "constant":  # roundings that all go the same way
        X = np.full((n, width), 0.1) + 1e-9 * rng.normal(size=(n, width))
    elif kind == "sparse columns":
        X[rng.random(X.shape) < 0.6] = 0.0
    return X, (X @ rng.normal(size=width) + 0.3 * rng.normal(size=n) > 0.0).tolist()


@pytest.mark.parametrize("kind", ["gaussian", "ties", "constant", "sparse columns"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_a_batch_of_dense_rows_is_the_loop(name, kernel, kind):
    X, y = batch(kind)
    alone, together = MODELS[name](kernel), MODELS[name](kernel)
    predictions = []
    for x, label in zip(X, y, strict=True):
        predictions.append(alone.predict_one(dict(enumerate(x))))
        alone.learn_one(dict(enumerate(x)), label)
    first = together.predict_learn_many(X[:40], y[:40])
    assert together.n_supports < 3 or blocks.pays(Table(X[40:]), together._supports)
    rest = together.predict_learn_many(X[40:], y[40:])
    assert [*first, *rest] == predictions
    assert together.n_mistakes == alone.n_mistakes
    assert together.n_updates == alone.n_updates
    assert together.supports == alone.supports
    assert together.predict_many(X).tolist() == [alone.predict_one(dict(enumerate(x))) for x in X]


def test_a_user_s_own_kernel_and_float64_columns_take_the_one_loop():
    X, y = batch("gaussian")
    model = Perceptron(lambda dot, a, b: dot)
    model.learn_many(X, y)
    assert not blocks.pays(Table(X), model._supports)
    X[3, 3] = np.nan
    model = Perceptron()
    model.learn_many(X, y)
    assert not blocks.pays(Table(X), model._supports)
    assert blocks.pays(Table(np.nan_to_num(X, nan=1.0)), model._supports)


def test_most_rows_are_decided_by_the_product():
    X, y = batch("gaussian", n=600)
    model = RBP(30, seed=1)
    model.learn_many(X[:300], y[:300])
    looked_at = []
    exact = model._supports.score_of
    model._supports.score_of = lambda x: looked_at.append(x) or exact(x)
    model.predict_many(X[300:])
    assert len(looked_at) < 10
