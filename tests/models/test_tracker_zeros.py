"""A 0 is a value to the tracker: of arrays and data frames, too, but not of sparse matrices."""

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from drift.models import Tracker

NAMES = "a", "b", "c", "d"


@cache
def examples():
    rng = np.random.default_rng(0)
    X = rng.normal([0.0, 20.0, 100.0, 0.0], 1.0, (150, 4))
    X[rng.random(X.shape) < 0.3] = 0.0
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, (np.nan_to_num(X) @ [1.0, 0.1, 0.01, 1.0] > 1.5).tolist()


@cache  # for more than one form of batch
def looped(names, *, zeros):
    """What is predicted of each example before it is learnt, as a dict with its zeros or not."""
    X, y = examples()
    model, predictions = Tracker(), []
    for row, label in zip(X.tolist(), y, strict=True):
        x = {k: v for k, v in zip(names, row, strict=True) if zeros or v}
        predictions.append(model.predict_one(x))
        model.learn_one(x, label)
    return predictions


@pytest.mark.parametrize(
    ("batch", "zeros"),
    [
        (lambda X: X, True),
        (np.asfortranarray, True),
        (lambda X: pd.DataFrame(X, columns=list(NAMES)), True),
        (lambda X: pl.DataFrame(X, schema=list(NAMES)), True),
        (sparse.csr_array, False),
    ],
    ids=["array", "columns first", "pandas", "polars", "sparse"],
)
def test_rows_of_a_batch_have_the_zeros_that_it_holds(batch, zeros):
    X, y = examples()
    given = batch(X)
    names = NAMES if hasattr(given, "columns") else range(4)
    model = Tracker()
    actual = [*model.predict_learn_many(given[:50], y[:50])]
    actual += [*model.predict_learn_many(given[50:], y[50:])]
    assert actual[1:] == looped(names, zeros=zeros)[1:]


def test_zeros_of_arrays_are_dropped_once_rows_are_sparse():
    model = Tracker(scale="sparse")
    X = np.eye(3)
    model.learn_many(X, [0, 1, 2])
    assert [*model.predict_many(X)] == [*model.predict_many(sparse.csr_array(X))]
