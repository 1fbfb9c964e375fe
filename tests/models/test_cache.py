"""Caches: what they hold, what the paper proves of it, and sums that are kept up for long."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.kernels import Linear, Polynomial
from drift.models import CKS, VariableCachePerceptron
from drift.models._linalg.leave_one_out import LeaveOneOutScores
from tests.models.oracles import naive_kernel
from tests.models.streams import drifting_stream, separable

value = st.integers(-3, 3) | st.floats(-2, 2)
row = st.dictionaries(st.sampled_from("abcd"), value, max_size=4)
stream = st.lists(st.tuples(row, st.booleans()), max_size=40)


def margins(model):
    """Each support's margin without its own share and the sum of its terms' sizes."""
    supports = model.supports
    for i, (x, y) in enumerate(supports):
        terms = [
            a * naive_kernel("polynomial", z, x, degree=2)
            for j, (z, a) in enumerate(supports)
            if j != i
        ]
        yield y * math.fsum(terms), math.fsum(map(abs, terms))


@given(stream, st.integers(1, 6), st.sampled_from([0.0, 0.1, 2.0]))
def test_cks_keeps_to_its_budget(examples, budget, margin):
    model = CKS(budget, margin, Polynomial(degree=2))
    for x, y in examples:
        supports = model.n_supports
        score = model.decision_function_one(x)
        model.learn_one(x, y)
        if (score if y else -score) <= margin:
            assert model.n_supports == min(supports + 1, budget)
            assert model.supports[-1][1] == (1.0 if y else -1.0)
        else:
            assert model.n_supports == supports


@given(stream, st.sampled_from([0.01, 0.5, 4.0]), st.sampled_from([None, 0.01, 3.0]))
def test_the_variable_cache_holds_nothing_that_the_others_classify(examples, margin, threshold):
    model = VariableCachePerceptron(margin, Polynomial(degree=2), threshold)
    for x, y in examples:
        model.learn_one(x, y)
        for without, size in margins(model):
            assert without < (threshold or margin) + 1e-14 * size


@given(st.integers(0, 10**6), st.floats(0.02, 0.6), st.floats(0.001, 2.0), st.floats(1.0, 3.0))
def test_theorem_1_bounds_the_cache_on_separable_data(seed, gap, margin, more):
    examples, gamma = separable(seed, gap)
    models = [
        VariableCachePerceptron(margin, Linear()),
        VariableCachePerceptron(margin, Linear(), distill_margin=more * margin),
    ]
    for model in models:
        for x, y in examples:
            model.learn_one(x, y)
            assert model.n_supports <= (1 + 2 * margin) / gamma**2 * (1 + 1e-9)


def test_which_support_goes_by_hand():
    # <x, z>: supports a (+) and a + b (+) score each other 1, b (-) scores the latter 1.
    model = CKS(budget=3, margin=10.0, kernel=Linear())
    a, ab, b = {"a": 1.0}, {"a": 1.0, "b": 1.0}, {"b": 1.0}
    for x, y in ((a, True), (ab, True), (b, False)):
        model.learn_one(x, y)
    # without their own share: a: 1; a + b: 1 - 1 = 0; b: -1
    model.learn_one({"c": 1.0}, True)
    assert [x for x, _ in model.supports] == [ab, b, {"c": 1.0}]
    model.learn_one({"d": 1.0}, True)  # a + b: -1; b: -1; c: 0
    assert [x for x, _ in model.supports] == [ab, b, {"d": 1.0}]
    model = CKS(budget=2, kernel=Linear())
    for name in "abc":  # all 0: the oldest goes
        model.learn_one({name: 1.0}, True)
    assert [x for x, _ in model.supports] == [{"b": 1.0}, {"c": 1.0}]


def test_sums_that_are_kept_up_stay_those_computed_afresh():
    rng = random.Random(0)
    examples = list(drifting_stream(400)) * 8
    model = CKS(30, margin=4.0, kernel=Polynomial(degree=2))
    for x, y in examples:
        size = rng.choice([1e-6, 1.0, 1e6])  # terms that dwarf the others come and go
        model.learn_one({k: size * v for k, v in x.items()}, y)
    rest = model._rest
    for slot in model._supports.slots_by_age:
        without, size = list(margins(model))[rest.age_rank(slot)]
        kept_up = (rest.coefficients * rest.values)[slot, 0]
        assert kept_up == pytest.approx(without, rel=0, abs=rest.relative_tolerance * size)
        assert rest.sizes[slot] == pytest.approx(size, rel=rest.relative_tolerance)


def test_thousands_of_changes_make_a_sum_stale():
    rest = LeaveOneOutScores(2, 2.0**-40)
    rest.insert(0, np.zeros(0), np.array([1.0, -0.5]))
    row = np.full(len(rest.sizes), 0.1)
    rest.insert(2, row, np.array([0.5, 1.0]))  # stays: its term is what roundings are a share of
    changes = 0
    while not rest.stale():
        rest.insert(1, row, np.array([-1.0, 0.3]))
        rest.remove(1, row)
        changes += 2
        assert changes < 20_000
    assert changes > 2_000
    assert rest.stale()[0] == 0


def test_a_margin_of_0_goes_with_a_threshold_above_it():
    model = VariableCachePerceptron(0.0, Linear(), distill_margin=0.5)
    model.learn_one({"a": 1.0}, True)
    assert model.n_supports == 1
