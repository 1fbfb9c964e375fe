"""OneVsRest and Averaged, around every model that they take."""

import copy
import math
import pickle
import random
from collections import Counter, defaultdict

import numpy as np
import pytest
from river import checks

from drift.errors import FeatureError, LabelError, ParameterError
from drift.kernels import Linear, Polynomial
from drift.models import (
    LBP,
    MIRA,
    MRBP,
    RBP,
    Averaged,
    Forgetron,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    Threshold,
    Tracker,
    VotedPerceptron,
)
from tests.models import oracles_multiclass
from tests.models.cases import CASES, KERNELS, with_gram
from tests.models.cases_multiclass import CASES as MULTICLASS
from tests.models.cases_multiclass import STREAMS as CLASSES
from tests.models.oracles import near
from tests.models.streams import drifting_stream, random_stream

BINARY = ["Perceptron", "SPA", "RBP", "LBP", "Forgetron", "PassiveAggressive", "SOP", "LBSOP"]


# --- one versus rest ---------------------------------------------------------------------------


@pytest.mark.covering(2)
@pytest.mark.parametrize("case", [*BINARY, "VotedPerceptron", "PassiveAggressive-budget"])
@pytest.mark.parametrize("kernel", ["default", "linear", "rbf"])
@pytest.mark.parametrize("stream", ["words", "degenerate"])
def test_each_class_learns_as_its_own_twin(case, kernel, stream, tolerance):
    examples, gram = with_gram(CLASSES[stream], kernel)
    k = KERNELS[kernel][0]
    model = OneVsRest(CASES[case].model(k, 9))
    twins = {}
    for t, (x, y) in enumerate(examples[:80]):
        scores = model.decision_function_one(x)
        assert list(scores) == list(twins)
        if y not in twins:
            twins[y] = CASES[case].twin(gram, k, 9)
        for label, twin in twins.items():
            size = twin.size(t)
            expected = twin.step(t, 1 if label == y else -1)
            if label in scores:
                assert near(scores[label], expected, tolerance * size)
        model.learn_one(x, y)
        assert {y: m.n_mistakes for y, m in model.models.items()} == {
            y: twin.mistakes for y, twin in twins.items()
        }
    supports = {y: len(twin.supports) for y, twin in twins.items()}
    assert {y: m.n_supports for y, m in model.models.items()} == supports
    together = {s for twin in twins.values() for s in twin.supports}
    shared = model._shared is not None
    assert model.n_supports == (len(together) if shared else sum(supports.values()))


def test_a_bias_is_each_classs_own():
    model = OneVsRest(Perceptron(kernel=Polynomial(degree=1, coef0=1.0), bias=True))
    model.learn_one({"a": 1.0}, "x")
    assert model.models["x"].supports == [({}, 1.0)]
    model.learn_one({"a": 1.0}, "y")
    assert model.models["x"].supports == [({}, 1.0), ({"a": 1.0}, -1.0)]
    assert model.models["y"].supports == [({}, 1.0)]
    assert model.decision_function_one({"a": 2.0}) == {"x": 1.0 - 3.0, "y": 1.0}
    assert model.predict_one({"a": 2.0}) == "y"


def test_the_example_read_last_is_not_mistaken_for_a_changed_one():
    model = OneVsRest(Perceptron(kernel=Linear()))
    x = {"a": 1.0}
    model.learn_one(x, "up")
    x["a"] = -2.0
    assert model.decision_function_one(x) == {"up": -2.0}
    model.learn_one(x, "up")
    assert model.models["up"].supports == [({"a": 1.0}, 1.0), ({"a": -2.0}, 1.0)]


class Changing(Perceptron):
    """Perceptron that changes its coefficients without a new support at two of three mistakes."""

    def _update(self, x, sign, score):
        if self.n_updates % 3 == 1:
            self._supports.add(x, sign)
        elif self.n_updates % 3 == 2:
            self._supports.scale_coefficients(-1e-101)
        else:
            self._supports.evict(0)


@pytest.mark.parametrize("labels", ["cacbc", "baabaabacacc"])
def test_an_example_that_is_read_again_is_scored_anew_where_a_class_changed(labels, monkeypatch):
    def scores():
        model = OneVsRest(Changing(kernel=Linear()))
        for label in labels:
            model.learn_one({"a": 1.0}, label)
            yield model.decision_function_one({"a": 1.0})

    shared = list(scores())
    monkeypatch.setattr(Changing, "_shares_supports", False)
    assert shared == list(scores())


@pytest.mark.parametrize("bad", [MIRA(), "RBP", OneVsRest(Perceptron())])
def test_what_is_not_binary_is_refused(bad):
    with pytest.raises(ParameterError, match="model must be a binary classifier"):
        OneVsRest(bad)


@pytest.mark.parametrize("wrapper", [OneVsRest, Averaged])
def test_a_class_is_not_taken_for_a_model(wrapper):
    with pytest.raises(ParameterError, match=r"model must be an instance, such as Perceptron\(\)"):
        wrapper(Perceptron)


@pytest.mark.parametrize("make", [Perceptron, lambda: CASES["SOP"].model(None, 9)])
def test_a_refusal_changes_nothing(make):
    model = OneVsRest(make())
    with pytest.raises(FeatureError):
        model.learn_one({"a": math.inf}, "x")
    assert model.predict_one({}) is None
    for x, y in CLASSES["words"]():
        model.learn_one(x, y)
    before = pickle.dumps(model)
    for x, y, error in (({"a": math.inf}, "new", FeatureError), ({}, None, LabelError)):
        with pytest.raises(error):
            model.learn_one(x, y)
        with pytest.raises(error):
            model.learn_many([{}, x], ["red", y])
    model.predict_one({"a": 1.0})
    assert pickle.dumps(model) == before


# --- averages ----------------------------------------------------------------------------------


def brief_stream():
    return drifting_stream(90)


class AveragedTwin:
    """Adds up every hypothesis, a dict from example to coefficient by label."""

    def __init__(self, twin):
        self.twin = twin
        self.n_past = 0
        self.sums, self.sizes = defaultdict(Counter), defaultdict(Counter)

    def hypothesis(self):
        if hasattr(self.twin, "alpha"):
            return {s: {None: a} for s, a in zip(self.twin.supports, self.linear(), strict=True)}
        return dict(zip(self.twin.supports, map(dict, self.twin.tau), strict=True))

    def linear(self):
        if not hasattr(self.twin, "ridge"):
            return self.twin.alpha
        supports = self.twin.supports
        if not supports:
            return []
        gram = np.array([[self.twin.K[r][s] for s in supports] for r in supports]).reshape(
            len(supports), -1
        )
        return np.linalg.solve(self.twin.ridge * np.eye(len(supports)) + gram, self.twin.alpha)

    def step(self, t, y):
        self.n_past += 1
        for s, c in self.hypothesis().items():
            for label, a in c.items():
                self.sums[s][label] += a
                self.sizes[s][label] += abs(a)
        self.twin.step(t, y)

    def scores(self, t, labels):
        total = dict.fromkeys(labels, 0.0)
        size = 0.0
        for s in self.hypothesis():
            for label, a in self.sums[s].items():
                total[label] += a * self.twin.K[s][t]
            size += self.sizes[s].total() * abs(self.twin.K[s][t])
        n = max(self.n_past, 1)
        return {label: v / n for label, v in total.items()}, size / n


@pytest.mark.covering(2)
@pytest.mark.parametrize("case", [*BINARY, "Forgetron-basic", "VotedPerceptron"])
@pytest.mark.parametrize("kernel", ["default", "linear"])
def test_the_average_of_a_binary_model_is_that_of_all_hypotheses(case, kernel, tolerance):
    examples, gram = with_gram(brief_stream, kernel)
    k = KERNELS[kernel][0]
    model, twin = Averaged(CASES[case].model(k, 9)), AveragedTwin(CASES[case].twin(gram, k, 9))
    for t, (x, y) in enumerate(examples):
        if t % 7 == 0:
            expected, size = twin.scores(t, [None])
            bound = 2 * tolerance * size
            assert near(model.decision_function_one(x), expected[None], bound)
        model.learn_one(x, y)
        twin.step(t, 1 if y else -1)


@pytest.mark.covering(1)
@pytest.mark.parametrize("case", MULTICLASS)
@pytest.mark.parametrize("stream", ["words", "digits", "drifting"])
def test_the_average_of_a_multiclass_model_is_that_of_all_hypotheses(case, stream, tolerance):
    examples, gram = with_gram(CLASSES[stream], "default")
    make_model, make_twin = MULTICLASS[case]
    model, twin = Averaged(make_model(None)), AveragedTwin(make_twin(gram))
    for t, (x, y) in enumerate(examples):
        scores = model.decision_function_one(x)
        if t % 7 == 0 and isinstance(scores, dict):
            expected, size = twin.scores(t, scores)
            bound = 2 * tolerance * size
            assert near(scores, expected, bound)
        model.learn_one(x, y)
        twin.step(t, y)


def test_the_average_by_hand():
    model = Averaged(Perceptron(kernel=Linear()))
    for value, y in ((1.0, True), (2.0, True), (1.0, False)):
        model.learn_one({"a": value}, y)
    # Hypotheses: 0, then a with weight 1, twice; the last mistake's is not reached yet.
    assert model.decision_function_one({"a": 3.0}) == pytest.approx(3.0 * 2 / 3)
    assert model.model.decision_function_one({"a": 3.0}) == 0.0
    assert (model.n_mistakes, model.n_updates, model.n_supports) == (2, 2, 2)


def test_the_average_has_a_class_that_came_without_an_update():
    model = Averaged(MRBP(kernel=Linear()))
    model.learn_many([{"a": 1.0}, {"b": 1.0}], ["p", "q"])
    # Both scores are negative, so that the third class, with 0, wins at its first example.
    model.learn_one({"a": -3.0, "b": -2.0}, "r")
    assert model.n_updates == 2
    # Of the three hypotheses that predicted, two had a support of "p".
    assert model.decision_function_one({"a": 1.0}) == pytest.approx({"p": 2 / 3, "q": 0, "r": 0})
    assert model.predict_one({"a": 1.0}) == "p"


@pytest.mark.parametrize(
    "bad",
    [OneVsRest(Perceptron()), Averaged(Perceptron()), Threshold(Perceptron()), Tracker(), "RBP"],
    ids=lambda bad: type(bad).__name__,
)
def test_an_average_of_a_wrapper_is_refused(bad):
    with pytest.raises(ParameterError, match="but no wrapper and no Tracker, not "):
        Averaged(bad)


# --- both --------------------------------------------------------------------------------------

WRAPPED = {
    "OneVsRest(LBP)": lambda: OneVsRest(LBP(7)),
    "OneVsRest(Forgetron)": lambda: OneVsRest(Forgetron(7)),
    "OneVsRest(VotedPerceptron)": lambda: OneVsRest(VotedPerceptron()),
    "OneVsRest(Averaged)": lambda: OneVsRest(Averaged(LBP(7))),
    "Averaged(LBP)": lambda: Averaged(LBP(7)),
    "Averaged(PassiveAggressive)": lambda: Averaged(PassiveAggressive()),
    "Averaged(MIRA)": lambda: Averaged(MIRA(budget=7, cache="fixed")),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_batches_and_copies_do_as_the_loop_does(name):
    binary = name == "Averaged(LBP)"
    examples = list(random_stream(120) if binary else CLASSES["words"]())
    one, many = (WRAPPED[name]() for _ in range(2))
    predictions, copies = [], []
    for t, (x, y) in enumerate(examples):
        predictions.append(one.predict_one(x))
        one.learn_one(x, y)
        for other in copies:
            other.learn_one(dict(reversed(x.items())), y)
        if t == 40:
            copies = [pickle.loads(pickle.dumps(one)), one.clone(include_attributes=True)]
            copies += [copy.copy(one), copy.deepcopy(one)]
    rows, labels = [x for x, _ in examples], [y for _, y in examples]
    batches = [many.predict_learn_many(rows[s], labels[s]) for s in (slice(5), slice(5, None))]
    assert [y for batch in batches for y in batch] == predictions
    expected = [one.decision_function_one(x) for x in rows]
    for other in (many, *copies):
        assert [other.decision_function_one(x) for x in rows] == expected
    assert list(many.predict_many(rows)) == [one.predict_one(x) for x in rows]
    probabilities = [list(one.predict_proba_one(x).values()) for x in rows]
    assert many.predict_proba_many(rows).tolist() == probabilities


def river_checks():
    for first, (name, make) in enumerate(WRAPPED.items()):
        for i, check in enumerate(checks.yield_checks(make())):
            slow = (first + i) % len(WRAPPED) or "memory" in check.__name__
            marks = [pytest.mark.slow] if slow else []
            yield pytest.param(make(), check, id=f"{name}-{check.__name__}-{i}", marks=marks)


@pytest.mark.parametrize(("model", "check"), list(river_checks()))
def test_river_check(model, check):
    random.seed(1)  # the checks shuffle features
    check(model.clone())


def test_the_twins_of_several_classes_are_naive():
    """By hand: three classes on one line, the best wrong one loses what the right one gains."""
    twin = oracles_multiclass.MRBP(np.ones((3, 3)), 5, 0)
    for t, y in enumerate("abc"):
        twin.step(t, y)
    assert twin.tau == [{"a": 1.0}, {"b": 1.0, "a": -1.0}, {"c": 1.0, "b": -1.0}]


def test_a_wrapper_shows_the_model_and_its_parameters():
    assert repr(OneVsRest(RBP(budget=7))) == (
        "OneVsRest (\n  model=RBP (\n    budget=7\n    kernel=None\n    seed=None\n  )\n)"
    )
    assert str(Averaged(RBP(budget=7))) == "Averaged(RBP)"
