"""What cannot be learnt is refused by name, and leaves the model as it was, byte for byte."""

import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from river.preprocessing import StandardScaler

from drift.errors import FeatureError, FeatureTypeError, LabelError, ParameterError
from drift.kernels import RBF, Linear, Polynomial
from drift.models import (
    ALMA2,
    CKS,
    LBP,
    MIRA,
    MRBP,
    RBP,
    SPA,
    Averaged,
    Forgetron,
    MulticlassKernelClassifier,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    Projectron,
    ProjectronPlusPlus,
    VariableCachePerceptron,
)
from tests.models.cases import CASES
from tests.models.streams import random_stream


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
    ({"town": None}, FeatureTypeError, r"'town' is None.*StatImputer\(\('town', "),
    ({"town": pd.NA}, FeatureTypeError, "'town' is <NA>.*StatImputer"),
    ({"town": [1.0]}, FeatureTypeError, r"'town' is \[1.0\], a list.*make a number of it"),
    ({"size": Decimal("sNaN")}, FeatureTypeError, r"'size' is Decimal\('sNaN'\), a Decimal"),
    ({"town": 1j}, FeatureTypeError, "'town' is 1j, a complex"),
    ([("f0", 1.0)], FeatureTypeError, "dict.*not in a list"),
    (None, FeatureTypeError, "dict.*not in a NoneType"),
    (np.ones(2), FeatureTypeError, r"not in a numpy ndarray: array\(.*for learn_many"),
    (pd.DataFrame({"f0": [1.0, 2.0]}), FeatureTypeError, "not in a pandas DataFrame: f0 0.*_many"),
    ("cheap pills", FeatureTypeError, "not in a str: 'cheap pills'; for text .*TFIDF"),
]


@pytest.mark.covering(1)
@pytest.mark.usefixtures("tolerance")
def test_bad_features(model):
    before = pickle.dumps(model)
    for x, error, message in BAD_FEATURES:
        for call in (
            lambda x: model.learn_one(x, True),
            model.predict_one,
            model.predict_proba_one,
            model.decision_function_one,
        ):
            with pytest.raises(error, match=message):
                call(x)
            assert pickle.dumps(model) == before


NO_LABELS = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT]
BAD_LABELS = ["spam", 2, -2]
UNHASHABLE = [[1], {"a": 1}, np.array([1]), np.array([1, 2])]


def test_bad_labels(model):
    if isinstance(model, MulticlassKernelClassifier):
        pytest.skip("learns any label that names a class: see test_multiclass")
    before = pickle.dumps(model)
    told_of = [(y, r"bool, 0/1 and -1/.1.*OneVsRest") for y in BAD_LABELS]
    told_of += [(y, "unhashable: use a string") for y in UNHASHABLE]  # OneVsRest takes none either
    told_of += [(y, "without a label") for y in NO_LABELS]
    for y, message in told_of:
        with pytest.raises(LabelError, match=message):
            model.learn_one({"f0": 1.0}, y)
        with pytest.raises(LabelError, match=f"^row 1: .*{message}"):
            model.learn_many([{"f0": 1.0}, {"f1": 1.0}], [True, y])
        assert pickle.dumps(model) == before


@pytest.mark.parametrize("make", [RBP, MRBP, lambda: OneVsRest(RBP())])
def test_a_real_number_is_no_label(make):
    model = make()
    model.learn_one({"f0": 1.0}, 1.0)  # a whole one may be a class, as files have them
    before = pickle.dumps(model)
    for y in (1.5, np.float32(0.5), Fraction(1, 3), float("inf")):
        with pytest.raises(LabelError, match=r"^label .* is a real number, and drift classifies"):
            model.learn_one({"f1": 1.0}, y)
        with pytest.raises(LabelError, match=r"^row 1: label .* is a real number"):
            model.learn_many([{"f1": 1.0}, {"f2": 1.0}], [1.0, y])
    assert pickle.dumps(model) == before


def test_labels_of_two_kinds(model):
    if isinstance(model, MulticlassKernelClassifier):
        pytest.skip("learns any label that names a class: see test_multiclass")
    before = pickle.dumps(model)
    with pytest.raises(LabelError, match=r"-1 does not match .*False and True: .*OneVsRest"):
        model.learn_one({"f0": 1.0}, -1)
    assert pickle.dumps(model) == before
    with pytest.raises(LabelError, match="does not match"):
        Perceptron().learn_many([{}, {}], [0, -1])


BAD_BATCHES = [
    (np.array([[1.0, 0.0], [0.0, np.inf]]), FeatureError, "row 1: feature 1 is inf"),
    (np.array([["a", "b"], ["c", "d"]]), FeatureTypeError, "numbers, not <U1"),
    (np.array([1.0, 2.0]), ParameterError, "two dimensions.*reshape it to a row"),
    ([{"a": 1.0}, {"b": "Rome"}], FeatureTypeError, "row 1: feature 'b' is 'Rome'"),
    (pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, np.inf]}), FeatureError, "row 1: feature 'b'"),
    (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), FeatureTypeError, "row 0: feature 'b'"),
    (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), ParameterError, "'a' 2 times: rename"),
    ("text", FeatureTypeError, "a batch is a DataFrame"),
]


def test_a_batch_with_a_bad_row_is_not_learnt_at_all(model):
    before = pickle.dumps(model)
    for X, error, message in BAD_BATCHES:
        for call in (
            lambda X: model.learn_many(X, [True, False]),
            lambda X: model.predict_learn_many(X, [True, False]),
            model.predict_many,
            model.predict_proba_many,
        ):
            with pytest.raises(error, match=message):
                call(X)
            assert pickle.dumps(model) == before


def test_lengths_that_differ(model):
    with pytest.raises(ParameterError, match="X has 2 rows and y 1 label"):
        model.learn_many([{}, {}], [True])
    with pytest.raises(ParameterError, match="labels are a Series"):
        model.learn_many([{}, {}], 1)
    with pytest.raises(ParameterError, match=r"labels .* not the shape \(2, 1\): pass one column"):
        model.learn_many([{}, {}], np.array([[True], [False]]))


def test_labels_and_weights_in_another_order_than_the_rows(model):
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=[7, 8, 9])
    y, w = pd.Series([True, False, True]), pd.Series([1.0, 2.0, 3.0])
    before = pickle.dumps(model)
    for learn in (model.learn_many, model.predict_learn_many):
        with pytest.raises(ParameterError, match=r"y has the index .* y.loc\[X.index\]"):
            learn(X, y.set_axis([9, 8, 7]))
        with pytest.raises(ParameterError, match=r"w has the index .* or w.to_numpy\(\)"):
            learn(X, y.set_axis(X.index), w.set_axis([9, 8, 7]))
    assert pickle.dumps(model) == before
    # Rows of other names, or of names that repeat, are matched one by one.
    for index in ([7, 8, 9], [0, 1, 2], [8, 9, 10], [7, 7, 8], list("pqr")):
        model.learn_many(X, y.set_axis(index), w.set_axis(index))
    model.learn_many(X, y.set_axis([9, 8, 7]).to_numpy())


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Projectron(tolerance=-1), "tolerance must be a number of at least 0"),
        (lambda: ProjectronPlusPlus(tolerance=math.inf), "tolerance must be"),
        (lambda: ALMA2(tolerance=math.nan), "tolerance must be"),
        (lambda: ALMA2(alpha=0), "alpha must be a number above 0 and up to 1, not 0"),
        (lambda: ALMA2(B=0), "B must be a number above 0"),
        (lambda: ALMA2(C=-1.0), "C must be a number above 0"),
        (lambda: CKS(budget=0), "budget must be"),
        (lambda: CKS(margin=-0.1), "margin must be a number of at least 0"),
        (lambda: CKS(margin=float("inf")), "margin must be"),
        (lambda: VariableCachePerceptron(margin=0.0), "margin must be a number above 0"),
        (lambda: VariableCachePerceptron(-0.1, distill_margin=1.0), "margin must be a number of"),
        (lambda: VariableCachePerceptron(distill_margin=0.0), "distill_margin must be .* above 0"),
        (lambda: RBP(budget=0), "budget must be"),
        (lambda: RBP(budget=2.5), "budget must be"),
        (lambda: RBP(budget=True), "budget must be"),
        (lambda: SPA(decay=0), "decay must be"),
        (lambda: SPA(decay=float("nan")), "decay must be"),
        (lambda: Forgetron(shrinking="slow"), "shrinking cannot be"),
        (lambda: RBP(kernel="rbf"), "kernel must be"),
        (lambda: SPA(decay="1"), "decay must be a number above 0, not '1'"),
        (lambda: CKS(margin=None), "margin must be a number of at least 0, not None"),
        (lambda: ALMA2(alpha=1.5), "alpha must be a number above 0 and up to 1, not 1.5"),
        (lambda: RBF(gamma="scale"), "gamma must be a number above 0, not 'scale'"),
        (lambda: Polynomial(coef0=1j), "coef0 must be a number of at least 0"),
        (lambda: Polynomial(degree=2.0), "degree must be an integer of at least 1, not 2.0"),
        (lambda: LBP(budget=True), "budget must be an integer of at least 1, not True"),
        (lambda: RBP(seed="1"), "seed must be an integer or None, not '1'"),
        (lambda: LBP(kernel=RBF), r"an instance, such as RBF\(\), not the class"),
        (lambda: MIRA(cache="full"), "cache cannot be 'full': choose among"),
        (lambda: MIRA(budget=5, cache="fixed", distill_margin=-3), "distill_margin must be a num"),
        (lambda: OneVsRest(StandardScaler() | LBP()), "not Pipeline: put transformers in front of"),
        (lambda: Averaged(StandardScaler() | LBP()), "not Pipeline: put transformers in front of"),
        (lambda: OneVsRest(MIRA()), "not MIRA: .* multiclass models need no wrapper"),
    ],
)
def test_parameters_are_refused_by_name(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_numpy_s_integers_are_integers():
    model = RBP(budget=np.int64(3), kernel=Polynomial(degree=np.int32(2)), seed=np.int64(1))
    twin = RBP(budget=3, kernel=Polynomial(degree=2), seed=1)
    for x, y in random_stream(0, 60):
        model.learn_one(x, y)
        twin.learn_one(x, y)
    assert pickle.dumps(model) == pickle.dumps(twin)


def test_a_class_for_two_or_more_overrides_no_method_that_both_templates_have():
    class Doubling:
        def _score(self):
            return 2.0 * super()._score()

    with pytest.raises(TypeError, match=r"^Doubled overrides _score, which TwoOrMore takes from"):

        class Doubled(Doubling, PassiveAggressive):
            pass


def test_a_step_that_compiled_code_takes_by_itself_is_not_overridden():
    with pytest.raises(TypeError, match=r"^Stepping overrides _step_class, which compiled code"):

        class Stepping(MRBP):
            def _step_class(self, x, y):
                return super()._step_class(x, y)

    with pytest.raises(TypeError, match=r"^Counting overrides _step, which compiled code"):

        class Counting(LBP):
            def _step(self, *example):
                super()._step(*example)
