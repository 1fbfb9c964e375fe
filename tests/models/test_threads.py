"""A model used from several threads is right or raises RuntimeError; it never corrupts."""

import copy
import sys
import threading

import numpy as np
import pytest
from streams import random_stream

from drift.kernels import Polynomial
from drift.models import LBP, RBP, Forgetron, OneVsRest, Perceptron, _ahead, compiled
from drift.models._names import IN_USE

pytestmark = pytest.mark.skipif(
    not compiled, reason="a call into the plain store is no single step"
)


class Yielding:
    """A kernel that lets other threads in while it is computed."""

    def __init__(self, inside):
        self.inside = inside

    def __call__(self, dot, a, b):
        if np.ndim(dot):
            self.inside()
        return dot


@pytest.fixture(autouse=True)
def _switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_thread(function):
    """Run a function in another thread; return what it raised."""
    raised = []

    def run():
        try:
            function()
        except Exception as error:  # noqa: BLE001 - for the caller to look at
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None


@pytest.mark.parametrize(
    "make",
    [Perceptron, lambda: RBP(20, seed=1), lambda: LBP(20), lambda: Forgetron(20)],
    ids=["Perceptron", "RBP", "LBP", "Forgetron"],
)
def test_threads_that_learn_at_once_leave_a_sound_model(make):
    model, examples = make(), list(random_stream(300))
    learnt, refused, others = [], [], []

    def work(part):
        for x, y in part:
            try:
                model.predict_one(x)
                model.learn_one(x, y)
                learnt.append(1)
            except RuntimeError as error:
                refused.append(str(error))
            except BaseException as error:  # noqa: BLE001
                others.append(error)

    threads = [threading.Thread(target=work, args=(examples[k::3],)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not others
    assert set(refused) <= {IN_USE}
    assert len(learnt) + len(refused) == len(examples)
    assert model.n_updates == model.n_mistakes <= len(examples)
    held = model.supports
    assert len(held) == model.n_supports == min(model.n_updates, getattr(model, "budget", 10**9))
    twin = copy.deepcopy(model)
    for x, y in examples[:50]:
        assert model.decision_function_one(x) == twin.decision_function_one(x)
        model.learn_one(x, y)
        twin.learn_one(x, y)
    assert model.supports == twin.supports


def test_another_thread_is_kept_out_of_an_update():
    model = Perceptron(Polynomial(2))
    update, met = model._update, []

    def slow(x, sign, score):
        met.append(in_thread(lambda: model.predict_one({"a": 1.0})))
        met.append(in_thread(lambda: model.learn_one({"a": 1.0}, True)))
        met.append(in_thread(lambda: copy.deepcopy(model)))
        update(x, sign, score)

    model._update = slow
    model.learn_one({"b": 2.0}, True)
    assert [str(error) for error in met] == [IN_USE] * 3
    assert in_thread(lambda: model.predict_one({"a": 1.0})) is None
    assert model.supports == [({"b": 2.0}, 1.0)]


def test_an_update_that_fails_lets_others_in_again():
    model = Perceptron()
    model._update = lambda x, sign, score: 1 / 0
    with pytest.raises(ZeroDivisionError):
        model.learn_one({"a": 1.0}, True)
    assert in_thread(lambda: model.predict_one({"a": 1.0})) is None


@pytest.mark.parametrize("way", ["one", "many"])
def test_a_kernel_that_uses_the_model_is_told(way):
    def inside():
        if len(seen) < 1:
            seen.append(1)
            in_thread(lambda: model.decision_function_one({0: 5.0}))

    seen = [1]
    model = Perceptron(Yielding(inside))
    model.learn_one({0: 1.0}, True)
    seen.clear()
    scores = {
        "one": lambda: model.decision_function_one({0: 3.0}),
        "many": lambda: model.decision_function_many(np.array([[3.0]])),
    }
    with pytest.raises(RuntimeError, match="in use elsewhere"):
        scores[way]()
    assert model.decision_function_one({0: 3.0}) == 3.0


def test_the_models_of_several_classes_under_threads():
    model, examples = OneVsRest(RBP(10, seed=1)), list(random_stream(90))
    for k, (x, _) in enumerate(examples[:9]):
        model.learn_one(x, k % 3)
    errors = []

    def work(part):
        for x, y in part:
            try:
                model.learn_one(x, int(y))
            except RuntimeError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=work, args=(examples[k::2],)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(errors) <= {IN_USE}
    assert all(len(binary.supports) <= 10 for binary in model.models.values())


def test_another_thread_is_kept_out_of_rows_that_are_decided_ahead(monkeypatch):
    monkeypatch.setattr(_ahead, "LEAST_SUPPORTS", 3)
    monkeypatch.setattr(_ahead, "LEAST_ROWS", 2)
    X = np.random.default_rng(1).normal(size=(60, 4))
    y = [int(k) for k in X.argmax(axis=1)]
    model = OneVsRest(Perceptron())
    model.learn_many(X[:30], y[:30])
    learn, met = model._learn, []

    def slow(x, label):
        met.append(in_thread(lambda: learn({0: 1.0}, "new")))
        return learn(x, label)

    supports = model.n_supports
    monkeypatch.setattr(model, "_learn", slow)
    model._learn_rows(model._table(X[30:]), y[30:], None)
    monkeypatch.undo()
    assert met
    assert {str(error) for error in met} == {IN_USE}
    assert "new" not in model.models
    assert model.n_supports > supports
    assert in_thread(lambda: model.learn_one({0: 1.0}, "new")) is None
