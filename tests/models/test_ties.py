"""What is decided of a tie hangs on no last bit, whichever way a processor rounds it."""

import copy

import numpy as np
import pytest

from drift.kernels import RBF, Linear
from drift.models import PassiveAggressive
from tests.models.cases import CASES
from tests.models.cases_multiclass import CASES as MULTICLASS


@pytest.fixture
def nearby(tolerance):
    """Return a function of an example that has it, and it with each value's last bit moved."""

    def around(model, x):
        kind = np.float32 if tolerance == 1e-5 and not model._wide else np.float64
        x = {name: kind(value) for name, value in x.items()}
        moved = [{n: np.nextafter(v, kind(to))} for n, v in x.items() for to in (-np.inf, np.inf)]
        return [{n: float(v) for n, v in (x | more).items()} for more in [{}, *moved]]

    return around


def decided(model, x, y):
    """What a model predicts of an example, and what learning it changes."""
    model = copy.deepcopy(model)
    before = model.n_mistakes, model.n_updates, model.n_supports
    predicted = model.predict_one(x)
    model.learn_one(x, y)
    after = model.n_mistakes, model.n_updates, model.n_supports
    return predicted, *(b - a for a, b in zip(before, after, strict=True))


def trained(case, kernel):
    model = CASES[case].model(kernel, 9)
    model.learn_one({"a": 0.7}, True)
    model.learn_one({"b": 0.7}, False)
    return model


@pytest.mark.parametrize("case", [case for case in CASES if not case.endswith("-one")])
def test_a_score_of_zero_is_zero(case, nearby):
    model = trained(case, Linear())
    a, b = (model.decision_function_one({name: 1.0}) for name in "ab")
    for x in nearby(model, {"a": -b, "b": a}):
        assert model.decision_function_one(x) == 0.0
        for y in (True, False):
            assert decided(model, x, y)[:2] == (False, 1)  # a mistake, either way


@pytest.mark.parametrize("case", CASES)
def test_an_example_between_two(case, nearby):
    for kernel in (Linear(), None, RBF(0.7)):
        model = trained(case, kernel)
        for y in (True, False):
            outcomes = {decided(model, x, y) for x in nearby(model, {"a": 0.3, "b": 0.3})}
            assert len(outcomes) == 1, kernel


@pytest.mark.parametrize("case", [case for case in CASES if not case.endswith("-one")])
def test_an_example_on_the_margin(case, nearby):
    model = trained(case, Linear())
    for margin in (0.01, 1.0):  # of caches; of all that is aggressive
        x = {"a": margin / model.decision_function_one({"a": 1.0})}
        assert len({decided(model, one, True) for one in nearby(model, x)}) == 1, margin


@pytest.mark.parametrize("case", MULTICLASS)
def test_an_example_between_classes(case, nearby):
    model = MULTICLASS[case][0](Linear())
    for name in "abc":
        model.learn_one({name: 0.7}, name)
    for names in ("ab", "ac", "bc", "abc"):
        for y in "abcd":
            outcomes = {decided(model, x, y) for x in nearby(model, dict.fromkeys(names, 0.3))}
            assert len(outcomes) == 1, (names, y)


def test_a_passive_aggressive_step_ends_on_the_margin():
    model = PassiveAggressive(1000.0, kernel=Linear())
    model.learn_one({"a": 0.1}, True)
    assert model.decision_function_one({"a": 0.1}) == pytest.approx(1.0, abs=1e-12)
