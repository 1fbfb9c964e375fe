"""Batches whose rows bring new names make the model that the loop makes, bit for bit.

Run it under the sanitizers, too: `python tools/sanitize.py`.
"""

import copy
import pickle
from functools import cache

import numpy as np
import pytest
from scipy import sparse

from drift.models import Averaged, OneVsRest, compiled
from tests.models.cases import CASES as BINARY
from tests.models.cases import KERNELS
from tests.models.cases_multiclass import CASES as MULTICLASS

pytestmark = pytest.mark.skipif(not compiled, reason="the compiled extension is missing")

#: Names and supports before: enough for a row's inner products to be taken many rows at a time.
NAMES, SUPPORTS = 950, 600
#: Names that a row brings. Compiled code sums 1024 at once: rows have about as many in all, or
#: about as many new ones, and far fewer and far more.
BROUGHT = [10, 73, 74, 75, 1023, 1024, 1025, 5000, 20_000]
BUDGET = SUPPORTS + 8

ALONE = {
    **{name: lambda k, case=case: case.model(k, BUDGET) for name, case in BINARY.items()},
    **{f"{name}, classes": lambda k, make=make: make(k) for name, (make, _) in MULTICLASS.items()},
}
WRAPPED = {
    f"{wrapper.__name__}({name})": lambda k, w=wrapper, case=case: w(case.model(k, BUDGET))
    for wrapper in (OneVsRest, Averaged)
    for name, case in BINARY.items()
}
MODELS = ALONE | WRAPPED
CASES = [
    *((name, kernel) for name in ALONE for kernel in KERNELS),
    *((name, kernel) for name in WRAPPED for kernel in ("default", "rbf")),
]
#: What the fast suite has of them: updates by margin, by mistake, by class, over a shared store.
FAST = {
    ("PassiveAggressive-timid", "linear"),
    ("LBP", "default"),
    ("MIRA, classes", "quadratic"),
    ("OneVsRest(Perceptron)", "rbf"),
}


@cache
def data():
    """Rows to start with, and a batch: what one row brings, two of the next have as well."""
    rng = np.random.default_rng(0)
    n = 6 * len(BROUGHT)
    brought = sparse.lil_array((n, sum(BROUGHT)))
    first = 0
    for i, size in enumerate(BROUGHT):
        for row in (6 * i + 1, 6 * i + 2, 6 * i + 4):
            # Small: second-order models refuse kernel values that they would have to round.
            brought[row, first : first + size] = rng.normal(size=size) / 10
        first += size
    known = sparse.csr_array(rng.normal(size=(n, NAMES)))
    batch = sparse.hstack([known, brought], format="csr")
    return [dict(enumerate(x)) for x in rng.normal(size=(SUPPORTS, NAMES)).tolist()], batch


@pytest.mark.parametrize(
    ("name", "kernel"),
    [pytest.param(*case, marks=[] if case in FAST else pytest.mark.slow) for case in CASES],
)
def test_rows_that_bring_names_while_a_batch_is_learnt(name, kernel):
    before, batch = data()
    looped = MODELS[name](KERNELS[kernel][0])
    n_classes = 3 if name.startswith("OneVsRest") or name.endswith("classes") else 2
    for x in before:
        predicted = looped.predict_one(x)
        looped.learn_one(x, 0 if predicted is None else (predicted + 1) % n_classes)
    together = copy.deepcopy(looped)
    labels = np.random.default_rng(1).integers(n_classes, size=batch.shape[0])
    predictions = []
    for i, label in enumerate(labels.tolist()):
        row = batch[[i]]
        x = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        predictions.append(looped.predict_one(x))
        looped.learn_one(x, label)
    assert together.predict_learn_many(batch, labels).tolist() == predictions
    assert pickle.dumps(together) == pickle.dumps(looped)
