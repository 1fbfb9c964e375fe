"""Parameters are fixed once a model is built, and arrays do not follow data frames in silence."""

import copy
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest

from drift import models
from drift.errors import ParameterError
from drift.experiments import Contender
from drift.features import RecentDeviation
from drift.kernels import Linear
from drift.models import LBP, RBP, Averaged, OneVsRest, StructuredProjectron, Threshold, Tracker
from drift.models.registry import ENTRIES
from tests.models.oracles_structured import tagging_argmax, tagging_kernel

EVERY = [
    *(OneVsRest(LBP()), Averaged(LBP()), Threshold(LBP(), cost=(1, 2)), RecentDeviation([2, 8])),
    *(getattr(models, one.name)() for one in ENTRIES),
]


@pytest.mark.parametrize("model", EVERY, ids=lambda model: type(model).__name__)
def test_every_parameter_of_every_model_is_fixed(model):
    for name in inspect.signature(type(model)).parameters:
        before = getattr(model, name)
        with pytest.raises(ParameterError, match=rf"^{name} of a {type(model).__name__} is fixed"):
            setattr(model, name, object())
        assert getattr(model, name) is before
        setattr(model, name, before)  # no change is none
        copies = (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.clone())
        for copied in copies:
            with pytest.raises(ParameterError):
                setattr(copied, name, object())


@pytest.mark.parametrize(
    "model",
    [*EVERY, StructuredProjectron(tagging_kernel, tagging_argmax)],
    ids=lambda model: type(model).__name__,
)
def test_a_clone_that_keeps_what_was_learnt_keeps_its_parameters(model):
    for name in inspect.signature(type(model)).parameters:
        with pytest.raises(ParameterError, match=r"(?s)either new ones, here .*, or include_"):
            model.clone({name: getattr(model, name)}, include_attributes=True)
    assert repr(model.clone(include_attributes=True)) == repr(model)


def test_a_clone_has_other_parameters():
    decided = Threshold(LBP(budget=3)).clone({"recall": 0.9, "positive": "bad"})
    assert (decided.recall, decided.positive, decided.model.budget) == (0.9, "bad", 3)
    assert RecentDeviation().clone({"horizons": [2]}).horizons == (2.0,)
    model = Tracker(budget=30).clone({"budget": 50, "late": True})
    assert (model.budget, model.late) == (50, True)
    assert LBP().clone({"kernel": Linear()}).kernel == Linear()
    assert Contender(RBP(budget=3, seed=None)).make(7).seed == 7


class Fading(LBP):
    rate = 0.5  # of states from before the parameter

    def __init__(self, fade=0.9, rate=0.25):
        super().__init__()
        self.fade, self.rate = fade, rate


def test_models_of_users_are_fixed_too():
    model = Fading(0.8)
    assert (model.fade, model.rate, model.budget) == (0.8, 0.25, 100)
    for name in ("fade", "rate", "budget"):
        with pytest.raises(ParameterError, match=f"{name} of a Fading is fixed"):
            setattr(model, name, 0.7)
    assert model.clone({"fade": 0.7}).fade == 0.7
    state = model.__getstate__()
    del state["rate"]
    earlier = Fading.__new__(Fading)
    earlier.__setstate__(state)
    assert earlier.rate == Fading.rate == 0.5


X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0]})
ARRAY = X.to_numpy()
Y = [True, False, True]


@pytest.mark.parametrize("model", [LBP(), Tracker(9), OneVsRest(LBP())], ids=str)
@pytest.mark.parametrize(("first", "then"), [(X, ARRAY), (ARRAY, X)], ids=["frame", "array"])
def test_an_array_after_a_frame_is_refused(model, first, then):
    model = model.clone()
    model.learn_many(first, Y)
    before = model.to_bytes()
    for call in (
        lambda: model.predict_many(then),
        lambda: model.predict_proba_many(then),
        lambda: model.learn_many(then, Y),
        lambda: model.predict_learn_many(then, Y),
    ):
        with pytest.raises(ParameterError, match=r"^X has the features .* the last batch learnt"):
            call()
    assert model.to_bytes() == before
    model.predict_many(first)


def test_what_may_follow_a_frame():
    model = LBP()
    model.learn_many(pd.DataFrame(ARRAY), Y)  # whose columns are 0 and 1
    model.predict_many(ARRAY)
    model.predict_many(np.zeros((0, 2)))
    named = LBP()
    named.learn_many(X, Y)
    named.predict_many(X.rename(columns={"a": "c", "b": "d"}))  # as examples one by one may
    named.predict_many([{0: 1.0}])


def test_a_model_without_a_budget_has_no_such_attribute():
    assert not hasattr(models.Perceptron(), "budget")
