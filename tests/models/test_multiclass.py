"""The multiclass models against their twins, and what is theirs alone."""

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from drift.errors import LabelError, ParameterError
from drift.kernels import Linear, Polynomial
from drift.models import MIRA, MRBP, PassiveAggressive, ProjectronPlusPlus
from tests.models.cases import with_gram
from tests.models.cases_multiclass import CASES, KERNELS, STREAMS
from tests.models.oracles import near


@pytest.mark.covering(2)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("stream", STREAMS)
def test_agrees_with_its_twin(case, kernel, stream, tolerance):
    examples, matrix = with_gram(STREAMS[stream], kernel)
    make_model, make_twin = CASES[case]
    model, twin = make_model(KERNELS[kernel][0]), make_twin(matrix)
    splits = 0
    for t, (x, y) in enumerate(examples[:80]):  # all classes have come within half of them
        bound = 2 * tolerance * twin.size(t)
        scores = model.decision_function_one(x)
        expected = twin.step(t, y)
        if isinstance(scores, dict) or not isinstance(expected, dict):
            assert near(scores, expected, bound), f"scores of example {t}"
        else:
            splits += 1  # the first label that is not binary
        model.learn_one(x, y)
        assert model.n_mistakes == twin.mistakes, f"mistake at example {t}"
    assert model.n_supports == len(twin.supports)
    assert splits == (1 if case.startswith("P") else 0)


@pytest.mark.parametrize("stream", ["words", "digits", "drifting"])
def test_the_projecting_twin_takes_every_branch(stream):
    examples, matrix = with_gram(STREAMS[stream], "linear")
    twin = CASES["ProjectronPlusPlus"][1](matrix)
    for t, (_, y) in enumerate(examples):
        twin.step(t, y)
    assert min(twin.branches.values()) > 0


@pytest.mark.covering(1)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stream", STREAMS)
def test_batches_and_copies_do_as_the_loop_does(case, stream):
    examples = list(STREAMS[stream]())
    one, many = (CASES[case][0](None) for _ in range(2))
    predictions, copy = [], None
    for t, (x, y) in enumerate(examples):
        predictions.append(one.predict_one(dict(reversed(x.items()))))
        one.learn_one(x, y)
        if t == 40:
            copy = pickle.loads(pickle.dumps(one))
        elif copy is not None:
            copy.learn_one(x, y)
    rows, labels = [x for x, _ in examples], [y for _, y in examples]
    batches = [many.predict_learn_many(rows[s], labels[s]) for s in (slice(5), slice(5, None))]
    assert [y for batch in batches for y in batch] == predictions
    for other in (many, copy):
        assert pickle.dumps(other._supports) == pickle.dumps(one._supports)
        assert other.supports == one.supports
        assert other.n_mistakes == one.n_mistakes
        expected = [one.decision_function_one(x) for x in rows]
        assert [other.decision_function_one(x) for x in rows] == expected
    scores = many.decision_function_many(rows)
    assert scores.tolist() == [list(s.values()) for s in expected]
    assert list(many.predict_many(rows)) == [one.predict_one(x) for x in rows]
    probabilities = many.predict_proba_many(rows)
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert probabilities.tolist() == [list(one.predict_proba_one(x).values()) for x in rows]


@pytest.mark.parametrize("model_class", [MIRA, MRBP])
def test_before_learning_there_are_no_classes(model_class):
    model = model_class()
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.decision_function_one({}) == {}
    assert model.predict_many([{}, {}]).tolist() == [None, None]


@pytest.mark.parametrize("case", CASES)
def test_a_label_that_names_no_class_is_refused(case):
    model = CASES[case][0](None)
    for x, label in STREAMS["words"]():
        model.learn_one(x, label)
    before = pickle.dumps(model)
    for y in (["news"], None, float("nan"), pd.NA, Decimal("nan"), np.datetime64("NaT", "s")):
        message = "list, which is unhashable" if isinstance(y, list) else "is missing"
        with pytest.raises(LabelError, match=message):
            model.learn_one({"f0": 1.0}, y)
        with pytest.raises(LabelError, match=f"^row 1: .*{message}"):
            model.learn_many([{"f0": 1.0}, {"f1": 1.0}], ["red", y])
        assert pickle.dumps(model) == before


def test_two_classes_are_learnt_as_one_hypothesis_until_a_third_comes():
    model = PassiveAggressive(kernel=Linear())
    model.learn_one({"a": 1.0}, True)
    assert model.decision_function_one({"a": 1.0}) == 1.0
    assert model.supports == [({"a": 1.0}, 1.0)]
    with pytest.raises(LabelError):
        model.learn_one({"a": 1.0}, None)
    assert model.decision_function_one({"a": 1.0}) == 1.0
    model.learn_one({"b": 2.0}, False)  # tau = 1 / 4
    assert model.decision_function_one({"a": 1.0, "b": 1.0}) == 1.0 - 0.5
    model.learn_one({"c": 2.0}, "spam")  # from True, the first of two rivals with 0: tau = 1 / 8
    assert model.decision_function_one({"a": 1.0, "b": 1.0, "c": 1.0}) == {
        True: 0.5 * 0.5 - 0.25,
        False: -0.5 * 0.5,
        "spam": 0.25,
    }


@pytest.mark.covering(2)
@pytest.mark.parametrize("make", [PassiveAggressive, ProjectronPlusPlus])
@pytest.mark.parametrize("way", ["loop", "batch", "pickles"])
@pytest.mark.parametrize(
    ("examples", "classes"),
    [
        ([(1, True), (-3, False), (9, "z")], [True, False, "z"]),  # the second needs no update
        ([(1, False), (-3, True), (9, "z")], [False, True, "z"]),
        ([(1, True), (-3, False), (2, True), (9, -1)], [True, False, -1]),
        ([(1, 1), (-3, 0), (9, "z")], [1, 0, "z"]),
        ([(1, -1), (-3, 1), (9, 2)], [-1, 1, 2]),
        ([(1, 1), (2, 1), (9, "z")], [1, "z"]),
        ([(1, True), (2, True), (9, "z"), (1, False)], [True, "z", False]),
        ([(1, False), (9, "z")], [False, "z"]),
        ([(9, "z"), (1, True)], ["z", True]),
    ],
)
def test_classes_are_in_the_order_of_their_first_examples(make, way, examples, classes):
    model = make(kernel=Linear())
    if way == "batch":
        labels = [y for _, y in examples]
        model.learn_many(np.array([[float(v)] for v, _ in examples]), labels)
    for v, y in examples * (way != "batch"):
        model.learn_one({0: float(v)}, y)
        if way == "pickles":
            model = pickle.loads(pickle.dumps(model))
    found = list(model.predict_proba_one({0: 1.0}))
    assert found == classes
    assert [*map(type, found)] == [*map(type, classes)]
    assert model.predict_one({}) == classes[0]  # all scores are 0


def test_a_budget_of_mira_goes_with_its_fixed_cache():
    for bad in (dict(cache="fixed"), dict(budget=5), dict(budget=0, cache="fixed")):
        with pytest.raises(ParameterError, match="budget must be"):
            MIRA(**bad)
    with pytest.raises(ParameterError, match="cache cannot be"):
        MIRA(cache="elastic")
    with pytest.raises(ParameterError, match="distill_margin must be"):
        MIRA(cache="variable", distill_margin=0.0)
    with pytest.raises(ParameterError, match="margin must be"):
        MIRA(0.0, cache="variable")


def test_room_for_classes_follows_the_classes_and_not_the_supports():
    model = MIRA(kernel=Linear())
    for t in range(900):
        model.learn_one({f"word{t}": 1.0}, f"class{t % 3}")
    assert model.n_supports == 900
    assert model._prototypes.matrix.shape[0] <= 4


def test_a_margin_of_classes_alone_makes_small_margins_updates():
    class Wider(MRBP):
        _class_update_margin = 1.0

    examples = [({"a": 1.0}, "x"), ({"b": 1.0}, "y"), ({"a": 0.5}, "x"), ({"a": 2.0}, "x")]
    models = Wider(kernel=Linear()), Wider(kernel=Linear())
    for x, y in examples:
        models[0].learn_one(x, y)
    models[1].learn_many(*zip(*examples, strict=True))
    for model in models:
        # 0 without another class; 0 against "x"; 0.5 - 0; (2 + 1) - (-1), which is above 1
        assert (model.n_updates, model.n_mistakes) == (3, 2)


def test_a_score_of_its_own_is_scored_in_batches_too():
    class Opposite(MRBP):
        def _score(self):
            return -super()._score()

    model = Opposite(kernel=Linear())
    for x, y in [({"a": 1.0}, "x"), ({"b": 1.0}, "y")]:
        model.learn_one(x, y)
    assert model.predict_many([{"a": 1.0}, {"b": 1.0}]).tolist() == ["y", "x"]
    mistakes = model.n_mistakes
    model.learn_many([{"a": 1.0}, {"a": 0.0}], ["y", "y"])
    assert model.n_mistakes == mistakes + 1  # the second, at 0


def test_mira_by_hand():
    model = MIRA(0.0, kernel=Polynomial(degree=1, coef0=0.0))
    model.learn_one({"a": 1.0}, "x")  # with the unnamed class: tau = 1
    model.learn_one({"a": 1.0}, "y")  # f = (1, 0): half of the gap for each
    assert model.supports == [({"a": 1.0}, {"x": 1.0}), ({"a": 1.0}, {"x": -0.5, "y": 0.5})]
    assert model.predict_one({"a": 1.0}) == "x"  # the first of two equals
    assert np.array_equal(model.decision_function_many([{"a": 2.0}]), [[1.0, 1.0]])
