"""What cannot be learnt is refused by name, and leaves the model as it was, byte for byte."""

import pickle

import numpy as np
import pandas as pd
import pytest
from cases import CASES
from streams import random_stream

from drift.errors import FeatureError, FeatureTypeError, LabelError, ParameterError
from drift.kernels import Linear, Polynomial
from drift.models import LBP, MulticlassKernelClassifier, Perceptron


@pytest.fixture(params=CASES)
def model(request):
    model = CASES[request.param].model(None, 5)
    for x, y in random_stream(40):
        model.learn_one(x, y)
    return model


BAD_FEATURES = [
    ({"f0": 1.0, "size": float("inf")}, FeatureError, "'size' is inf.*finite"),
    ({"size": float("-inf")}, FeatureError, "'size' is -inf"),
    ({"size": 10**400}, FeatureError, "'size' is 1000"),
    ({"f0": 1.0, "size": 1e200}, FeatureError, "'size' is 1e.200: too large"),
    ({"f0": 1.0, "town": "Rome"}, FeatureTypeError, "'town' is 'Rome', a str.*OneHotEncoder"),
    ({"town": None}, FeatureTypeError, "'town' is None.*StatImputer"),
    ({"town": [1.0]}, FeatureTypeError, r"'town' is \[1.0\], a list"),
    ({"town": 1j}, FeatureTypeError, "'town' is 1j, a complex"),
    ([("f0", 1.0)], FeatureTypeError, "dict.*not in a list"),
    (None, FeatureTypeError, "dict.*not in a NoneType"),
]


@pytest.mark.parametrize(("x", "error", "message"), BAD_FEATURES)
@pytest.mark.usefixtures("tolerance")
def test_bad_features(model, x, error, message):
    before = pickle.dumps(model)
    for call in (
        lambda: model.learn_one(x, True),
        lambda: model.predict_one(x),
        lambda: model.predict_proba_one(x),
        lambda: model.decision_function_one(x),
    ):
        with pytest.raises(error, match=message):
            call()
        assert pickle.dumps(model) == before


@pytest.mark.parametrize("y", ["spam", 2, -2, 0.5, None, float("nan"), [1], {"a": 1}])
def test_bad_labels(model, y):
    if isinstance(model, MulticlassKernelClassifier):
        pytest.skip("learns any label that names a class: see test_multiclass")
    before = pickle.dumps(model)
    with pytest.raises(LabelError, match=r"bool, 0/1 and -1/.1.*OneVsRest"):
        model.learn_one({"f0": 1.0}, y)
    with pytest.raises(LabelError, match="OneVsRest"):
        model.learn_many([{"f0": 1.0}, {"f1": 1.0}], [True, y])
    assert pickle.dumps(model) == before


def test_labels_of_two_kinds(model):
    if isinstance(model, MulticlassKernelClassifier):
        pytest.skip("learns any label that names a class: see test_multiclass")
    before = pickle.dumps(model)
    with pytest.raises(LabelError, match=r"-1 does not go with .*False and True"):
        model.learn_one({"f0": 1.0}, -1)
    assert pickle.dumps(model) == before
    with pytest.raises(LabelError, match="does not go with"):
        Perceptron().learn_many([{}, {}], [0, -1])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.array([[1.0, 0.0], [0.0, np.inf]]), FeatureError, "row 1: feature 1 is inf"),
        (np.array([["a", "b"], ["c", "d"]]), FeatureTypeError, "numbers, not <U1"),
        (np.array([1.0, 2.0]), ParameterError, "two dimensions"),
        ([{"a": 1.0}, {"b": "Rome"}], FeatureTypeError, "row 1: feature 'b' is 'Rome'"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, np.inf]}), FeatureError, "row 1: feature 'b'"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), FeatureTypeError, "row 0: feature 'b'"),
        ("text", FeatureTypeError, "a batch is a DataFrame"),
    ],
)
def test_a_batch_with_a_bad_row_is_not_learnt_at_all(model, X, error, message):
    before = pickle.dumps(model)
    for call in (
        lambda: model.learn_many(X, [True, False]),
        lambda: model.predict_learn_many(X, [True, False]),
        lambda: model.predict_many(X),
        lambda: model.predict_proba_many(X),
    ):
        with pytest.raises(error, match=message):
            call()
        assert pickle.dumps(model) == before


def test_lengths_that_differ(model):
    with pytest.raises(ParameterError, match="X has 2 rows and y 1 labels"):
        model.learn_many([{}, {}], [True])
    with pytest.raises(ParameterError, match="labels are a Series"):
        model.learn_many([{}, {}], 1)


def test_a_kernel_that_would_overflow_is_refused_before_it_does():
    model = LBP(kernel=Polynomial(degree=30))
    model.learn_one({"a": 1.0}, True)
    with pytest.raises(FeatureError, match=r"'a' is 1.*too large.*StandardScaler"):
        model.learn_one({"a": 1e6}, False)
    assert model.n_supports == 1


def test_a_value_that_float32_cannot_hold_is_learnt_all_the_same():
    model = LBP(kernel=Linear())
    model.learn_one({"a": 1e60}, True)
    assert model.decision_function_one({"a": 1e-60}) == pytest.approx(1.0)
