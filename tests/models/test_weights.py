"""Examples with weights: what a weight means is in the twins; what it never does is here."""

import math
import pickle
import random
from itertools import islice

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import evaluate, metrics
from scipy import sparse

from drift.errors import ParameterError
from drift.kernels import Linear
from drift.models import (
    LBP,
    LBSOP,
    MRBP,
    SOP,
    Averaged,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    ProjectronPlusPlus,
    StructuredProjectron,
    from_bytes,
)
from tests.models.cases import CASES, KERNELS, with_gram
from tests.models.cases_multiclass import CASES as MULTICLASS
from tests.models.cases_multiclass import STREAMS as CLASSES
from tests.models.oracles import near
from tests.models.oracles_structured import (
    Tagger,
    check,
    tagged,
    tagging_argmax,
    tagging_kernel,
    taggings,
)
from tests.models.stepping import assert_same, steps
from tests.models.streams import STREAMS, as_arrays, drifting_stream, random_stream


def drawn(n, seed=7):
    """Weights of any size, ones and zeros among them."""
    rng = random.Random(seed)
    return [rng.choice([0, 1, 1.0, 3, 0.25, 10.0 ** rng.uniform(-2, 2)]) for _ in range(n)]


# --- what a weight means -----------------------------------------------------------------------


@pytest.mark.covering(1)
@pytest.mark.parametrize("stream", [s for s in STREAMS if s != "signed"])
@pytest.mark.parametrize("kernel", ["default", "linear", "rbf"])
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_its_twin(case, kernel, stream, tolerance):
    examples, gram = with_gram(STREAMS[stream], kernel)
    k, weights = KERNELS[kernel][0], drawn(len(examples))
    trace = steps(CASES[case].twin(gram, k, 9), examples, weights)
    assert_same(CASES[case].model(k, 9), trace, examples, tolerance, weights)


def test_noise_is_that_of_the_weights_of_equal_examples(tolerance):
    """The one stream that has such: the sample above may leave it out."""
    examples, gram = with_gram(STREAMS["degenerate"], "rbf")
    k, weights = KERNELS["rbf"][0], drawn(len(examples))
    trace = steps(CASES["ROMMA-noise"].twin(gram, k, 9), examples, weights)
    assert_same(CASES["ROMMA-noise"].model(k, 9), trace, examples, tolerance, weights)


@pytest.mark.covering(1)
@pytest.mark.parametrize("stream", CLASSES)
@pytest.mark.parametrize("kernel", ["default", "linear", "rbf"])
@pytest.mark.parametrize("case", MULTICLASS)
def test_a_multiclass_model_agrees_with_its_twin(case, kernel, stream, tolerance):
    examples, gram = with_gram(CLASSES[stream], kernel)
    make_model, make_twin = MULTICLASS[case]
    model, twin = make_model(KERNELS[kernel][0]), make_twin(gram)
    for t, ((x, y), twin.w) in enumerate(zip(examples, drawn(len(examples)), strict=True)):
        if twin.w:
            bound = 2 * tolerance * twin.size(t)
            scores, expected = model.decision_function_one(x), twin.step(t, y)
            if isinstance(scores, dict) or not isinstance(expected, dict):
                assert near(scores, expected, bound), f"scores of {t}"
        model.learn_one(x, y, twin.w)
        assert model.n_mistakes == twin.mistakes, f"mistake at example {t}"
    assert model.n_supports == len(twin.supports)


@pytest.mark.parametrize("tolerance", [0.0, 0.9])
def test_a_structured_model_agrees_with_its_twin(tolerance):
    model = StructuredProjectron(tagging_kernel, tagging_argmax, tolerance)
    examples = list(tagged())
    check(model, Tagger(tagging_argmax, tolerance), examples, taggings, drawn(len(examples)))


@pytest.mark.parametrize("case", ["Perceptron", "LBP", "Forgetron", "SOP", "ROMMA-noise"])
def test_each_class_of_several_learns_as_its_own_twin(case, tolerance):
    examples, gram = with_gram(CLASSES["words"], "default")
    model, twins = OneVsRest(CASES[case].model(None, 9)), {}
    for t, ((x, y), w) in enumerate(zip(examples, drawn(len(examples)), strict=True)):
        scores = model.decision_function_one(x)
        assert list(scores) == list(twins)
        model.learn_one(x, y, w)
        if not w:
            continue
        if y not in twins:
            twins[y] = CASES[case].twin(gram, None, 9)
        for label, twin in twins.items():
            size, twin.w = twin.size(t), w
            expected = twin.step(t, 1 if label == y else -1)
            if label in scores:
                assert near(scores[label], expected, tolerance * size)


def test_a_hypothesis_counts_in_the_average_with_the_weight_of_the_example_it_meets():
    model = Averaged(Perceptron(kernel=Linear()))
    for value, y, w in ((1.0, True, 3.0), (2.0, True, 2.0), (1.0, False, 0.5), (1.0, False, 0)):
        model.learn_one({"a": value}, y, w)
    # Hypotheses: 0 with weight 3, then 3 a with 2 and 0.5; 3 a - 0.5 a is not reached yet.
    assert model.decision_function_one({"a": 11.0}) == pytest.approx(11.0 * 3 * 2.5 / 5.5)


def test_a_second_order_weight_is_so_many_copies_of_the_support():
    x, z = {"a": 1.0}, {"a": 0.5, "b": 1.0}
    model = SOP(ridge=0.5, kernel=Linear())
    model.learn_one(x, True, w=3)
    # Least squares of the label 1 three times at a = 1, with the ridge 1/2: 3 / (3 + 1/2) a.
    [(_, coefficient)] = model.supports
    assert coefficient == pytest.approx(3 / 3.5)
    model.learn_one(z, False, w=2)
    A = np.array([[1.0, 0.0]] * 3 + [[0.5, 1.0]] * 2)
    w = np.linalg.solve(0.5 * np.eye(2) + A.T @ A, A.T @ [1, 1, 1, -1, -1])
    supports = sum(c * np.array([h.get("a", 0.0), h.get("b", 0.0)]) for h, c in model.supports)
    assert supports == pytest.approx(w)


@pytest.mark.parametrize("case", ["Perceptron", "SPA", "RBP", "LBP", "CKS", "VotedPerceptron"])
def test_equal_weights_only_scale_what_the_perceptrons_learn(case):
    one, two = (CASES[case].model(None, 9) for _ in range(2))
    for x, y in drifting_stream():
        one.learn_one(x, y)
        two.learn_one(x, y, w=4)
        assert two.predict_one(x) == one.predict_one(x)
    coefficients = np.array([c for _, c in one.supports])
    assert np.array([c for _, c in two.supports]) == pytest.approx(4 * coefficients)


# --- what it never does --------------------------------------------------------------------------

MAKE = {name: case.model for name, case in CASES.items()}
MAKE |= {f"{name}, classes": lambda k, B, m=make: m(k) for name, (make, _) in MULTICLASS.items()}
for wrapper in (OneVsRest, Averaged):
    for name in ("LBP", "VotedPerceptron", "LBSOP"):
        case = CASES[name]
        MAKE[f"{wrapper.__name__}({name})"] = lambda k, B, c=case, w=wrapper: w(c.model(k, B))
MAKE["OneVsRest(Averaged)"] = lambda k, B: OneVsRest(Averaged(LBP(B, kernel=k)))


def examples_of(name):
    several = "classes" in name or "OneVsRest" in name
    return list(islice(CLASSES["words"]() if several else drifting_stream(), 30))


@pytest.mark.parametrize("name", MAKE)
def test_one_is_no_weight_and_zero_changes_nothing(name):
    one, two = (MAKE[name](None, 9) for _ in range(2))
    ones, before = [1, 1.0, True, np.float64(1), np.int8(1)], pickle.dumps(two)
    for t, (x, y) in enumerate(examples_of(name)):
        for label in (y, "never seen", None):  # nor is the label looked at
            two.learn_one(x, label, w=0)
        assert pickle.dumps(two) == before
        one.learn_one(x, y)
        two.learn_one(x, y, ones[t % len(ones)])
        before = pickle.dumps(one)
        assert pickle.dumps(two) == before


@pytest.mark.parametrize("name", MAKE)
def test_a_batch_is_learnt_as_the_loop_learns_it(name):
    examples = examples_of(name)
    X, y = as_arrays(examples)
    weights = drawn(len(y))
    one, *several = (MAKE[name](None, 9) for _ in range(5))
    expected = []
    for x, label, w in zip(X.tolist(), y, weights, strict=True):
        features = dict(enumerate(x))
        expected.append(one.predict_one(features))
        one.learn_one(features, label, w)
    forms = [
        (X, np.array(weights)),
        ([dict(enumerate(row)) for row in X.tolist()], weights),
        (sparse.csr_array(X), pd.Series(weights, dtype=object)),
    ]
    for model, (rows, w) in zip(several, forms, strict=False):
        assert list(model.predict_learn_many(rows, y, w)) == expected
        assert pickle.dumps(model) == pickle.dumps(one)
    *_, batch = several
    batch.learn_many(pl.DataFrame(X), y, 0)
    assert pickle.dumps(batch) == pickle.dumps(MAKE[name](None, 9))


EXTREMES = {
    "smallest": [1e-100],
    "below rounding": [1e-17],
    "beyond rounding": [1e17],
    "largest": [1e100],
    "all": [1e100, 1.0, 1e-100],
}


@pytest.mark.parametrize("name", MAKE)
def test_the_most_extreme_weights_are_learnt_or_refused(name):
    """Nothing vanishes beside them that makes a model fail, and every state can be stored."""
    for kind, weights in EXTREMES.items():
        model = MAKE[name](None, 5)
        for t, (x, y) in enumerate(examples_of(name)):
            try:
                model.learn_one(x, y, weights[t % len(weights)])
            except ParameterError as error:
                assert "ridge" in str(error), kind  # noqa: PT017 - others must not be raised
                break
        chances = from_bytes(model.to_bytes()).predict_proba_one({"a": 1.0, "b": 0.5})
        assert chances == model.predict_proba_one({"a": 1.0, "b": 0.5}), kind
        assert all(0.0 <= chance <= 1.0 for chance in chances.values()), kind


def test_a_weight_for_all_rows():
    X, y = as_arrays(random_stream(60))
    one, two = LBP(9), LBP(9)
    for x, label in zip(X.tolist(), y, strict=True):
        one.learn_one(dict(enumerate(x)), label, 2.5)
    two.learn_many(X, y, w=2.5)
    assert pickle.dumps(two) == pickle.dumps(one)


@pytest.mark.parametrize("name", MAKE)
def test_a_bad_weight_is_refused(name):
    model = MAKE[name](None, 9)
    for x, y in examples_of(name)[:30]:
        model.learn_one(x, y)
    before = pickle.dumps(model)
    for w in (-1.0, math.nan, math.inf, "2", None, [2], 1j, np.timedelta64(2), 1e200, 1e-200):
        with pytest.raises(ParameterError, match=r"^weight .*: give .* or 0 to pass"):
            model.learn_one({"f0": 1.0}, True, w)
        with pytest.raises(ParameterError, match=r"^row 1: weight .*: give .* or 0 to pass"):
            model.learn_many([{"f0": 1.0}, {"f1": 1.0}], [True, False], [1.0, w])
        assert pickle.dumps(model) == before


def test_weights_that_do_not_go_with_the_rows_are_refused():
    model = LBP()
    for w, message in (([1.0], "2 rows and w 1 weight"), (np.ones((2, 1)), "one dimension")):
        with pytest.raises(ParameterError, match=message):
            model.learn_many([{}, {}], [True, False], w)
    with pytest.raises(ParameterError, match=r"weights are a Series, .*, not a str"):
        model.learn_many([{}, {}], [True, False], "12")
    with pytest.raises(ParameterError, match="weight -2"):
        model.learn_many([{}, {}], [True, False], -2)
    assert model.n_mistakes == 0


def test_a_structured_model_refuses_and_passes_over_as_the_others_do():
    model = StructuredProjectron(tagging_kernel, tagging_argmax)
    (x, y), *_ = tagged()
    before = pickle.dumps(model)
    with pytest.raises(ParameterError, match=r"^weight -1"):
        model.learn_one(x, y, w=-1)
    model.learn_one(x, y, w=0)
    assert pickle.dumps(model) == before


class Failing:
    """A linear kernel of which every copy raises once all have had so many calls."""

    normalize = False
    left = 0

    def __call__(self, dot, a, b):
        Failing.left -= 1
        if not Failing.left:
            raise KeyboardInterrupt
        return dot


@pytest.mark.parametrize("name", MAKE)
def test_a_failed_example_leaves_no_weight(name):
    Failing.left = 0
    model = MAKE[name](Failing(), 3)
    examples = examples_of(name)
    for x, y in examples[:25]:
        model.learn_one(x, y, 2.0)
    failed = 0
    for calls in range(1, 5):
        for x, y in examples[25:]:
            before = pickle.dumps(model)
            Failing.left = calls
            try:
                model.learn_one(x, y, 0.5)
            except KeyboardInterrupt:
                failed += 1
                assert pickle.dumps(model) == before
    assert failed


def test_a_weight_that_makes_the_ridge_vanish_is_refused():
    for model in (SOP(kernel=Linear()), LBSOP(kernel=Linear())):
        before = pickle.dumps(model)
        with pytest.raises(ParameterError, match=r"weight 1e.06 .* a larger ridge"):
            model.learn_one({"a": 1e3}, True, w=1e6)
        assert pickle.dumps(model) == before
        model.learn_one({"a": 1e3}, True, w=1e3)


@pytest.mark.parametrize("make", [LBP, PassiveAggressive, MRBP, ProjectronPlusPlus])
def test_river_s_evaluation_passes_weights_on(make):
    seed = {"seed": 1} if make is MRBP else {}
    one, two = make(**seed), make(**seed)
    examples, weights = list(random_stream(60)), drawn(60)
    for (x, y), w in zip(examples, weights, strict=True):
        one.learn_one(x, y, w)
    weighted = [(x, y, {"w": w}) for (x, y), w in zip(examples, weights, strict=True)]
    evaluate.progressive_val_score(weighted, two, metrics.Accuracy())
    assert pickle.dumps(two) == pickle.dumps(one)
