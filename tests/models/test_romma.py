"""ROMMA: its constraints and bounds, the noise control over epochs, and data without a solution."""

import itertools
import math
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.kernels import RBF, Linear, Polynomial
from drift.models import ROMMA
from tests.models import oracles_margin
from tests.models.oracles import naive_gram, naive_kernel
from tests.models.stepping import assert_same, steps
from tests.models.streams import degenerate_stream, random_stream, separable


def product(f, g, noise=0.0):
    """Inner product of two expansions, by the quadratic kernel and the noise control."""
    return math.fsum(
        a * b * (naive_kernel("polynomial", x, z, degree=2) + noise * (x == z))
        for x, a in f
        for z, b in g
    )


@pytest.mark.parametrize("noise", [0.0, 0.7])
@pytest.mark.parametrize("aggressive", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_both_constraints_are_tight_after_an_update(aggressive, noise, seed):
    model = ROMMA(aggressive, noise, Polynomial(degree=2))
    updates = 0
    for x, y in random_stream(60, seed):
        before = model.supports
        model.learn_one(x, y)
        if model.n_updates == updates:
            continue
        updates = model.n_updates
        after, example = model.supports, [(x, 1.0 if y else -1.0)]
        assert product(after, example, noise) == pytest.approx(1.0)
        assert model._squared_norm == pytest.approx(product(after, after, noise))
        if len(after) > 1:  # not started afresh: the old constraint binds
            assert product(after, before, noise) == pytest.approx(product(before, before, noise))
            assert model._squared_norm > product(before, before, noise)
        elif before:  # the old constraint holds all the same
            assert product(after, before, noise) >= product(before, before, noise)
    assert updates > 5


@given(st.integers(0, 10**6), st.floats(0.05, 0.6), st.booleans())
def test_separable_data_bound_the_norm_and_the_mistakes(seed, gap, aggressive):
    examples, gamma = separable(seed, gap)
    model = ROMMA(aggressive, kernel=Linear())
    squared_norm = 0.0
    for x, y in examples * 2:
        model.learn_one(x, y)
        assert model._squared_norm >= squared_norm * (1 - 1e-12)
        squared_norm = model._squared_norm
    assert squared_norm <= (1 + 1e-9) / gamma**2
    assert model.n_mistakes <= (1 + 1e-9) / gamma**2  # theorem 3, with R = 1 and |u| = 1 / gamma


def test_by_hand():
    model = ROMMA(kernel=Linear())
    model.learn_one({"a": 2.0}, True)
    assert model.supports == [({"a": 2.0}, 0.25)]  # f = (1/2, 0)
    model.learn_one({"a": 1.0, "b": 1.0}, True)  # its score is 1/2: no mistake
    assert model.n_updates == 1
    model.learn_one({"a": 1.0, "b": 1.0}, False)
    # f_new = (1/2, v): <f_new, f> = |f|^2 whatever v is, and -(1/2 + v) = 1
    assert model.decision_function_one({"a": 1.0}) == pytest.approx(0.5)
    assert model.decision_function_one({"b": 1.0}) == pytest.approx(-1.5)
    model = ROMMA(aggressive=True, kernel=Linear())
    model.learn_one({"a": 2.0}, True)
    # f = (1/2, 0) becomes (1/2, 1/4): the same first coordinate, and 1/2 + 2/4 = 1
    model.learn_one({"a": 1.0, "b": 2.0}, True)
    assert model.decision_function_one({"a": 1.0}) == pytest.approx(0.5)
    assert model.decision_function_one({"b": 1.0}) == pytest.approx(0.25)
    # y f(x) = 1/8 is no less than <x, x> |f|^2 = 5/256: the smallest solution is x / <x, x>
    model.learn_one({"a": 0.25}, True)
    assert model.supports == [({"a": 0.25}, 16.0)]


def test_a_bias_is_a_zero_instance_with_coefficient_1():
    model = ROMMA(bias=True, kernel=Polynomial(normalize="rows"))
    assert model.supports == [({}, 1.0)]
    model.learn_one({"a": 2.0}, False)
    # |f|^2 = 1, f(x) = 1, k(x, x) = 16: D = 15, c = 17 / 15, d = -2 / 15
    (zero, c), (x, d) = model.supports
    assert (zero, x) == ({}, {"a": 1.0})
    assert (c, d) == (pytest.approx(17 / 15), pytest.approx(-2 / 15))


@pytest.mark.parametrize("aggressive", [False, True])
@pytest.mark.parametrize("make", [random_stream, degenerate_stream])
def test_the_noise_control_knows_examples_in_later_epochs(make, aggressive):
    examples = list(make()) * 3
    points = [{k: float(v) for k, v in x.items() if v == v} for x, _ in examples]
    gram = naive_gram(points, "polynomial", degree=2)
    twin = oracles_margin.ROMMA(gram, aggressive, 5.0)
    model = ROMMA(aggressive, noise=5.0, kernel=Polynomial(degree=2))
    assert_same(model, steps(twin, examples), examples, 1e-9)
    assert model.n_supports > len({frozenset(x.items()) for x, _ in model.supports})


def test_the_same_example_is_one_with_the_same_features_and_values():
    models = [ROMMA(True, 3.0, RBF(1.0)) for _ in range(2)]
    plain, dressed = models
    for x, y in list(random_stream(40)) * 2:
        plain.learn_one(x, y)
        other = {k: np.float64(v) for k, v in reversed(x.items())}
        dressed.learn_one({"absent": float("nan")} | other | {"zero": 0, "none": False}, y)
    assert plain.supports == dressed.supports
    assert pickle.dumps(plain) == pickle.dumps(dressed)


@pytest.mark.parametrize("noise", [0.0, 1e-3])
@pytest.mark.parametrize("aggressive", [False, True])
@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-6, 1e-3, 0.1])
def test_contradictions_never_end_in_infinity(aggressive, noise, angle):
    rng = random.Random(0)
    model = ROMMA(aggressive, noise, Linear())
    pool = [{"a": 1.0}, {"a": 1.0, "b": angle}, {"a": -1.0, "b": angle}]
    pool += [{"b": 1e-80}, {"b": 1e-30}, {"b": 1e-75}, {"a": 1e150}, {"b": -1e150}]
    for _ in range(2000):
        x = rng.choice(pool)
        model.learn_one(x, rng.random() < 0.5)
        assert math.isfinite(model._squared_norm)
        assert math.isfinite(model.decision_function_one(x))
    assert all(math.isfinite(a) for _, a in model.supports)


@pytest.mark.parametrize("aggressive", [False, True])
def test_an_update_leaves_a_margin_that_rounding_does_not_hide(aggressive):
    rng = random.Random(1)
    model = ROMMA(aggressive, kernel=Linear())
    norms = []
    for _ in range(3000):  # labels at random
        x, y = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1), "c": 1.0}, rng.random() < 0.5
        updates = model.n_updates
        model.learn_one(x, y)
        if model.n_updates > updates:
            score = model.decision_function_one(x)
            assert score == pytest.approx(1.0 if y else -1.0, abs=2.0**-10)
            norms.append(model._squared_norm)
    assert any(after < before for before, after in itertools.pairwise(norms))  # restarts


def test_an_example_without_information_is_not_learnt():
    model = ROMMA(kernel=Linear())
    model.learn_one({}, True)
    model.learn_one({"a": 1e-100}, True)
    assert (model.n_mistakes, model.n_updates, model.n_supports) == (2, 0, 0)
    model = ROMMA(noise=1.0, kernel=Linear())
    model.learn_one({}, True)
    assert (model.n_updates, model.n_supports) == (1, 1)
