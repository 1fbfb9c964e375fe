"""Rows of a batch whose dense columns are summed together: the same bits as row by row."""

import sys

import numpy as np
import pytest

from drift.errors import FeatureError
from drift.kernels import RBF, Linear, Polynomial
from drift.models import MIRA, OneVsRest, VotedPerceptron, compiled
from drift.models._store.rows import Row
from drift.models._store.supports import ColumnStore
from drift.models._template.batches import rows_of

pytestmark = pytest.mark.skipif(not compiled, reason="the compiled extension is missing")

#: Columns of a row, as many as have a window, so that few supports make one worth while.
WIDTH = 1000
KERNELS = [Linear(), Polynomial(3, coef0=0.5), Polynomial(4, normalize=True), RBF(0.2)]


def made(n, width, seed=0):
    """Rows with columns of every density, from a tenth of the rows to all of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width))
    X[rng.random(X.shape) > np.linspace(0.05, 1.5, width)] = 0.0
    return X


def filled(kernel, supports, *, wide):
    store = ColumnStore(kernel, wide)
    rows = rows_of(supports)
    for i in range(len(rows)):
        row = Row(rows, i)
        store.read(row)
        store.add(row, (-1.0) ** i * (1.0 + i % 7))
    return store


def looked_at(store, row):
    """All that a store says of a row."""
    store.read(row)
    score, kernels = store.score(), np.zeros(store.capacity)
    n = store.fill_row(kernels)
    return score, store.rounding(), kernels[:n].tolist()


class Pair:
    """A store that is held, and so may look ahead, and one that is not, with the same supports."""

    def __init__(self, kernel, supports, *, wide):
        self.alone, self.together = self.stores = [
            filled(kernel, supports, wide=wide) for _ in range(2)
        ]
        self.slots = list(range(len(supports)))
        self.windows = 0  # rows that were looked at while there was one
        self.together.guard.hold()

    def look_at(self, row):
        assert looked_at(self.together, row) == looked_at(self.alone, row)
        self.windows += sys.getsizeof(self.together) > sys.getsizeof(self.alone)

    def add(self, row):
        for store in self.stores:
            store.read(row)
        self.slots.append(*{store.add(row, 1.0) for store in self.stores})

    def remove(self, i):
        slot = self.slots.pop(i)
        for store in self.stores:
            store.remove(slot)

    def end(self):
        self.together.guard.release()
        assert sys.getsizeof(self.together) == sys.getsizeof(self.alone)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_scores_are_those_of_the_rows_alone(kernel, wide):
    pair = Pair(kernel, made(1000, WIDTH), wide=wide)
    batch = rows_of(made(400, WIDTH, seed=1))
    rng = np.random.default_rng(2)
    i = 0
    while i < len(batch):
        pair.look_at(Row(batch, i))
        if rng.random() < 0.3:
            pair.add(Row(batch, i))
        if rng.random() < 0.1:
            pair.remove(rng.integers(len(pair.slots)))
        if 200 <= i < 220:  # columns turn sparse
            for _ in range(45):
                pair.remove(-1)
        elif 240 <= i < 280:  # and dense again
            for k in range(i - 25, i):
                pair.add(Row(batch, k))
        elif i >= 300:  # more than a window makes up for
            for k in range(4):
                pair.remove(rng.integers(len(pair.slots)))
                pair.add(Row(batch, k))
        i += int(rng.choice([-3, 0, 1, 2], p=[0.02, 0.08, 0.8, 0.1]))
    pair.end()
    assert pair.windows > 100


def test_another_batch_has_windows_of_its_own():
    pair = Pair(Linear(), made(900, WIDTH), wide=False)
    for first, stop in ((0, 22), (20, 32)):
        batch = rows_of(made(32, WIDTH, seed=first))
        for i in range(first, stop):
            pair.look_at(Row(batch, i))
    pair.end()
    assert pair.windows > 20


def test_a_row_that_cannot_be_learnt_is_told_in_its_turn():
    X = made(64, WIDTH)
    X[40] = 1e300
    batch = rows_of(X)
    pair = Pair(Polynomial(4), made(900, WIDTH), wide=False)
    for i in range(40):
        pair.look_at(Row(batch, i))
    with pytest.raises(FeatureError):
        pair.together.read(Row(batch, 40))
    for i in range(41, 64):
        pair.look_at(Row(batch, i))
    pair.end()
    assert pair.windows > 40


def test_rows_of_more_columns_than_are_summed_at_once():
    batch = rows_of(made(40, 1600))
    pair = Pair(Polynomial(4), made(540, 1600), wide=True)
    for i in range(40):
        pair.look_at(Row(batch, i))
    pair.end()
    assert pair.windows == 0


@pytest.mark.parametrize(
    "model",
    [
        MIRA(kernel=Polynomial(5, normalize=True)),
        MIRA(cache="fixed", budget=800, kernel=RBF(0.01)),
        OneVsRest(VotedPerceptron(Polynomial(2))),
    ],
    ids=lambda model: repr(model)[:30],
)
def test_a_batch_is_the_loop(model):
    X = made(1200, WIDTH)
    y = np.random.default_rng(1).integers(4, size=1200)  # which nobody can learn
    alone, together = model.clone(), model.clone()
    predictions = [
        *together.predict_learn_many(X[:1000], y[:1000]),
        *together.predict_learn_many(X[1000:], y[1000:]),
    ]
    for x, label, predicted in zip(X, y.tolist(), predictions, strict=True):
        row = {int(j): float(x[j]) for j in np.flatnonzero(x)}
        assert alone.predict_one(row) == predicted
        alone.learn_one(row, label)
    assert together.n_mistakes == alone.n_mistakes
    assert together.n_supports == alone.n_supports > 780
    row = {int(j): float(X[0, j]) for j in np.flatnonzero(X[0])}
    assert together.decision_function_one(row) == alone.decision_function_one(row)
