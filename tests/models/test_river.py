"""River's own checks, over every registered class and kernel."""

import copy
import itertools
import pickle
import random

import numpy as np
import pytest
from river import base, checks, compose, datasets, metrics, preprocessing

from drift.kernels import RBF
from drift.models import (
    MODELS,
    RBP,
    SOP,
    SPA,
    Averaged,
    OneVsRest,
    Perceptron,
    VotedPerceptron,
    compiled,
)
from drift.models.registry import ENTRIES
from tests.models.cases import CASES, EVERY_KERNEL, Laplace, canonical
from tests.models.streams import drifting_stream, random_stream


def river_checks():
    """Each check of each model, with the kernels in turn; the fast suite has some.

    That of memory takes as long as fifty others: the fast suite has it for RBP alone.
    """
    some = 8 if compiled else 16
    for first, (name, model_class) in enumerate(MODELS.items()):
        turns = itertools.islice(itertools.cycle(EVERY_KERNEL), first, None)
        every = enumerate(checks.yield_checks(model_class()))
        for (i, check), kernel in zip(every, turns, strict=False):
            model = model_class(kernel=EVERY_KERNEL[kernel])
            fast = name == "RBP" if "memory" in check.__name__ else (first + i) % some == 0
            marks = [] if fast else [pytest.mark.slow]
            yield pytest.param(
                model, check, id=f"{name}-{kernel}-{check.__name__}-{i}", marks=marks
            )


@pytest.mark.parametrize(("model", "check"), list(river_checks()))
def test_river_check(model, check):
    random.seed(1)  # the checks shuffle features
    assert not model._unit_test_skips()
    check(model.clone())


@pytest.mark.slow
@pytest.mark.parametrize("kernel", EVERY_KERNEL)
@pytest.mark.parametrize("name", MODELS)
def test_every_river_check_with_every_kernel(name, kernel):
    model = MODELS[name](kernel=EVERY_KERNEL[kernel])
    for check in checks.yield_checks(model):
        random.seed(1)
        check(model.clone())


def test_the_own_kernel_gives_the_scores_of_its_definition():
    model = RBP(5, kernel=Laplace(), seed=0)
    for x, y in random_stream(60):
        model.learn_one(x, y)
    x = {"f0": 0.3, "f1": 0.4, "new": 1.0}
    expected = 0.0
    for support, coefficient in model.supports:
        squared = sum((x.get(k, 0.0) - support.get(k, 0.0)) ** 2 for k in x | support)
        expected += coefficient * np.exp(-0.5 * np.sqrt(squared))
    assert model.decision_function_one(x) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", [*MODELS, "OneVsRest", "Averaged", "Averaged of classes"])
def test_an_answer_is_label_score_and_probabilities_at_once(name):
    wrapped = {
        "OneVsRest": lambda: OneVsRest(SOP()),
        "Averaged": lambda: Averaged(SOP()),
        "Averaged of classes": lambda: Averaged(MODELS["MRBP"]()),
    }
    model = wrapped.get(name, MODELS.get(name))()
    for i, (x, y) in enumerate(random_stream(60)):
        score = getattr(model, "decision_function_one", lambda _: None)
        apart = model.predict_one(x), score(x), model.predict_proba_one(x)
        model.predict_one({"f0": i})  # so that the answer does not find the example read
        assert model.answer_one(x) == apart
        model.learn_one(x, y)


def test_works_in_a_pipeline_with_metrics():
    model = preprocessing.StandardScaler() | RBP(budget=30, kernel=RBF(0.1), seed=0)
    accuracy, auc = metrics.Accuracy(), metrics.ROCAUC()
    mistakes = 0
    for x, y in datasets.Phishing().take(500):
        prediction = model.predict_one(x)
        mistakes += prediction != y
        accuracy.update(y, prediction)
        auc.update(y, model.predict_proba_one(x))
        model.learn_one(x, y)
    assert accuracy.get() == pytest.approx(1 - mistakes / 500)
    assert auc.get() > 0.5


def test_is_a_mini_batch_classifier_that_a_pipeline_feeds():
    model = compose.Discard("f0") | SPA()
    assert isinstance(model["SPA"], base.MiniBatchClassifier)
    for x, y in random_stream(20):
        model.learn_one(x, y)
    assert "f0" not in {name for x, _ in model["SPA"].supports for name in x}


@pytest.mark.parametrize("case", CASES)
def test_a_copy_continues_as_the_original_would(case):
    examples = list(drifting_stream(120))
    original = CASES[case].model(None, 7)
    for x, y in examples[:70]:
        original.learn_one(x, y)
    copies = [
        pickle.loads(pickle.dumps(original)),
        original.clone(include_attributes=True),
        copy.copy(original),
    ]
    for x, y in examples[70:]:
        original.learn_one(x, y)
    for one in copies:
        for x, y in examples[70:]:
            one.learn_one(x, y)
        assert canonical(one) == canonical(original)


def test_before_learning():
    model = RBP()
    assert model.predict_one({"a": 1.0}) is False
    assert model.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    assert model.decision_function_one({}) == 0.0


def test_probabilities_are_the_logistic_function_of_the_score():
    model = SPA()
    model.learn_one({"a": 1.0}, True)
    assert model.decision_function_one({"b": 1.0}) == 1.0  # (1 + 0)^4
    probability = model.predict_proba_one({"b": 1.0})
    assert probability[True] == pytest.approx(1 / (1 + np.exp(-1)))
    assert probability[False] == pytest.approx(1 / (1 + np.exp(1)))


@pytest.mark.parametrize("model_class", [Perceptron, VotedPerceptron])
def test_a_bias_is_a_zero_instance_with_coefficient_1(model_class):
    model = model_class(bias=True)
    assert model.supports == [({}, 1.0)]
    model.learn_one({"a": 2.0}, False)  # a mistake, or with no votes a tie
    assert model.supports == [({}, 1.0), ({"a": 2.0}, -1.0)]
    # k(0, x) = 2^4 (1 + 0)^4 / sqrt(1 (1 + 4)^4)
    assert Perceptron(bias=True).decision_function_one({"a": 2.0}) == pytest.approx(16 / 25)


@pytest.mark.parametrize(
    ("powers", "names"),
    [
        ((1, 1, 0), "ALMA2 Forgetron LBP MRBP Perceptron RBP ROMMA SPA"),
        ((1, 1, 1), "CKS MIRA PassiveAggressive VariableCachePerceptron VotedPerceptron"),
        ((2, 1, 2), "LBSOP Projectron ProjectronPlusPlus RBSOP SOP"),  # an inverse
    ],
)
def test_the_registry_says_what_each_model_costs(powers, names):
    costs = {one.model.__name__: (one.memory, one.prediction, one.update) for one in ENTRIES}
    assert {name: costs[name] for name in names.split()} == dict.fromkeys(names.split(), powers)
