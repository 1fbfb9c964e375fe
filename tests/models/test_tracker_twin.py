"""The compiled Tracker gives the probabilities of the reference.

Which support is evicted may hang on a last bit: where the cores disagree on that, the comparison
ends, but not before nine tenths of the examples: the streams' seeds are such that no tie comes
sooner. What the reference does is checked by hand in test_tracker_parts.py.
"""

import random
from itertools import islice, product

import numpy as np
import pytest

from drift.models import compiled
from drift.models._tracker import tables
from tests.models.streams import clusters
from tests.models.tracker_cores import both, compare
from tests.models.tracker_streams import ALL, FEW

pytestmark = pytest.mark.skipif(not compiled, reason="there is one core")


#: Dense scaling that was asked for, and a single support, are no matter of the stream.
CASES = [
    *product(ALL, [False, True], ["auto", "sparse"], [3, 12]),
    *product(["late classes", "growing", "tiny"], [False, True], ["dense"], [1, 3]),
]


@pytest.mark.covering(1)
@pytest.mark.parametrize(("stream", "trees", "scale", "budget"), CASES)
def test_the_cores_agree(stream, trees, scale, budget):
    compare(both(budget, scale, trees=trees), islice(ALL[stream](), 115))


@pytest.mark.parametrize(
    "stream", [pytest.param(s, marks=[pytest.mark.slow] * (i % 2)) for i, s in enumerate(FEW)]
)
def test_the_cores_agree_on_few_names(stream):
    """Also on names that it is predicted with and learnt without."""
    unmet = {"unmet": 2.0}, {f"unmet{k}": 2.0 for k in range(17)}
    compare(both(3, trees=True), islice(FEW[stream](), 80), unmet=unmet, most=1e-5)


@pytest.mark.parametrize(
    "parameters",
    [
        dict(kernels=(0.5,), rates=(1.0,), forgetting=(2.0,)),
        dict(kernels=(3.0, 0.0, 24.0), rates=(0.1, 2.0, 20.0), forgetting=(0.0,)),
        dict(kernels=(0.0,), forgetting=(0.0, 100.0)),
        dict(kernels=(0.0, 1e6), rates=(1e6,), forgetting=(0.0,)),
    ],
)
def test_the_cores_agree_under_other_parameters(parameters):
    """With weights of examples, too."""
    stream = clusters(list("abc"), 90, seed=4)
    compare(both(6, **parameters), stream, weights=(0.3, 1.0, 2.5, 0.0), most=1e-5)


def test_a_row_of_many_new_names_turns_both_to_sparse_rows():
    """What the splines would learn of such a row has no room, and is dropped."""
    cores = both(3)
    wide = dict.fromkeys(range(2000), 1.0)
    stream = [{"a": 1.0}] * 10 + [wide] + [{"a": 1.0, 5: 2.0}, {7: 1.0}, {"a": 3.0}] * 4
    compare(cores, ((x, t % 3 if t == 10 else t % 2) for t, x in enumerate(stream)))
    assert all(core.state()["sparse"] for core in cores)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_members_that_lag_continue_from_others(n_classes):
    """Words that mean another class in each hundred of examples; a tenth of the labels is wrong."""
    rng, stream = random.Random(4), []
    for t in range(300):
        words = rng.sample(range(30), 5)
        y = rng.randrange(n_classes) if rng.random() < 0.1 else (max(words) + t // 100) % n_classes
        stream.append((dict.fromkeys(map(str, words), 1.0), y))
    cores, caught_up = both(4, "sparse"), set()
    learn, regrets = cores[1].learn, cores[1]._state.regrets

    def recorded(*example):
        nonlocal regrets
        learn(*example)
        before, regrets = regrets, cores[1]._state.regrets
        caught_up.update(np.flatnonzero((before > 0.5 * tables.PATIENCE) & (regrets == 0.0)))

    cores[1].learn = recorded
    compare(cores, stream)
    assert caught_up >= {1} if n_classes == 2 else True
