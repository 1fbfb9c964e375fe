"""A 0 is a value to the tracker: of arrays and data frames, too, but not of sparse matrices."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from drift.models import Tracker

NAMES = ["a", "b", "c", "d"]


def examples():
    rng = np.random.default_rng(0)
    X = rng.normal([0.0, 20.0, 100.0, 0.0], 1.0, (300, 4))
    X[rng.random(X.shape) < 0.3] = 0.0
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, (np.nan_to_num(X) @ [1.0, 0.1, 0.01, 1.0] > 1.5).tolist()


def learnt(rows, y):
    model, predictions = Tracker(), []
    for x, label in zip(rows, y, strict=True):
        predictions.append(model.predict_one(x))
        model.learn_one(x, label)
    return predictions


@pytest.mark.parametrize(
    ("batch", "zeros"),
    [
        (lambda X: X, True),
        (np.asfortranarray, True),
        (lambda X: pd.DataFrame(X, columns=NAMES), True),
        (lambda X: pl.DataFrame(X, schema=NAMES), True),
        (sparse.csr_array, False),
    ],
    ids=["array", "columns first", "pandas", "polars", "sparse"],
)
def test_rows_of_a_batch_have_the_zeros_that_it_holds(batch, zeros):
    X, y = examples()
    given = batch(X)
    names = NAMES if hasattr(given, "columns") else range(4)
    rows = [{k: v for k, v in zip(names, x, strict=True) if zeros or v} for x in X.tolist()]
    model = Tracker()
    actual = [*model.predict_learn_many(given[:100], y[:100])]
    actual += [*model.predict_learn_many(given[100:], y[100:])]
    assert actual[1:] == learnt(rows, y)[1:]


def test_zeros_of_arrays_are_dropped_once_rows_are_sparse():
    model = Tracker(scale="sparse")
    X = np.eye(3)
    model.learn_many(X, [0, 1, 2])
    assert [*model.predict_many(X)] == [*model.predict_many(sparse.csr_array(X))]
