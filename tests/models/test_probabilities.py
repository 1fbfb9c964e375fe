"""Probabilities: one positive slope beside each model, learnt online, that changes no decision."""

import math
from itertools import islice

import numpy as np
import pytest

from drift.kernels import Linear, Polynomial
from drift.models import LBP, LBSOP, MRBP, Averaged, OneVsRest, PassiveAggressive, Perceptron
from tests.models.cases import CASES
from tests.models.cases_multiclass import CASES as MULTICLASS
from tests.models.cases_multiclass import STREAMS as CLASSES
from tests.models.streams import drifting_stream, random_stream


class Twin:
    """The slope from its definition, for scores by label: logistic regression without intercept."""

    def __init__(self):
        self.slope, self.square, self.squares, self.weights = 1.0, 0.0, [], []

    def probabilities(self, scores):
        """Softmax; the two labels of a binary model have half of its score, with opposite signs."""
        rms = math.sqrt(self.square)
        z = np.array(scores) * (self.slope / rms if rms else 1.0)
        powers = np.exp(z - z.max())
        return powers / powers.sum()

    def learn(self, scores, k, w):
        """Ascend the logarithm of the probability of class `k` by that of the slope."""
        if len(scores) < 2:
            return
        pairs = [(a - b) ** 2 for i, a in enumerate(scores) for b in scores[:i]]
        self.squares.append(np.mean(pairs))
        self.weights.append(w)
        ages = np.arange(len(self.squares))[::-1]
        self.square = np.average(self.squares, weights=0.999**ages * np.array(self.weights))
        p = self.probabilities(scores)
        z = np.array(scores) * (self.slope / math.sqrt(self.square) if self.square else 1.0)
        gradient = z[k] - p @ z
        step = 1.0 + min(0.05 * w * abs(gradient), 1.0)
        self.slope = self.slope * step if gradient > 0 else self.slope / step
        self.slope = min(max(self.slope, 1e-3), 1e3)


def scores_of(model, x):
    """Scores by class, from what the model shows."""
    score = model.decision_function_one(x)
    return list(score.values()) if isinstance(score, dict) else [-score / 2, score / 2]


def check(model, examples, weights, every=1):
    twin = Twin()
    for t, ((x, y), w) in enumerate(zip(examples, weights, strict=True)):
        shown = model.predict_proba_one(x)
        scores, labels = scores_of(model, x), list(shown)
        if shown:
            expected = twin.probabilities(scores)
            for p, theirs in zip(shown.values(), expected.tolist(), strict=True):
                assert math.isclose(p, theirs, rel_tol=1e-6, abs_tol=1e-12), t
            assert math.isclose(sum(shown.values()), 1.0, rel_tol=1e-6)
            assert shown[model.predict_one(x)] == max(shown.values())
        model.learn_one(x, y, w)
        if y not in labels:  # of no score before the example that brings it, and then 0
            labels, scores = list(model.predict_proba_one(x)), [*scores, 0.0]
        if t % every == 0 and len(scores) == len(labels):
            twin.learn(scores, labels.index(y), w)


@pytest.mark.covering(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", [c for c in CASES if "SOP" not in c])
@pytest.mark.usefixtures("tolerance")
def test_two_labels_have_those_of_the_twin(case, weighted):
    examples = [*islice(drifting_stream(), 80), *random_stream(60)]
    weights = [1.0 + weighted * (t % 5) for t in range(len(examples))]
    check(CASES[case].model(None, 9), examples, weights)


@pytest.mark.covering(1)
@pytest.mark.parametrize("stream", ["words", "digits", "drifting"])
@pytest.mark.parametrize("name", ["OneVsRest", *(c for c in MULTICLASS if c.startswith("M"))])
@pytest.mark.usefixtures("tolerance")
def test_several_classes_have_those_of_the_twin(name, stream):
    model = OneVsRest(LBP(9)) if name == "OneVsRest" else MULTICLASS[name][0](None)
    examples = list(CLASSES[stream]())
    check(model, examples, [1.0] * len(examples))


@pytest.mark.parametrize("make", [lambda: LBP(9), Perceptron])
def test_an_average_learns_from_every_sixteenth_example(make):
    examples = list(drifting_stream())
    check(Averaged(make()), examples, [1.0] * len(examples), every=16)


def test_a_binary_model_that_gets_classes_continues_with_its_slope():
    model = PassiveAggressive()
    for x, y in drifting_stream():
        model.learn_one(x, y)
    before = model.predict_proba_one({"w1": 1.0, "w25": 2.0})
    model._split_into_classes()
    assert model.predict_proba_one({"w1": 1.0, "w25": 2.0}) == pytest.approx(before)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LBP(9, kernel=Polynomial(degree=4)),
        lambda: LBSOP(9),
        lambda: MRBP(9, seed=1),
        lambda: OneVsRest(LBP(9)),
    ],
)
def test_the_log_loss_on_a_stream_that_drifts_is_less_than_that_of_the_frequencies(make):
    model, losses, wrong = make(), [], 0
    for x, y in drifting_stream(1200):
        p = model.predict_proba_one(x).get(y, 0.5)
        losses.append(-math.log(max(p, 1e-9)))
        wrong += model.predict_one(x) != y
        model.learn_one(x, y)
    share = wrong / len(losses)
    assert np.mean(losses[200:]) < math.log(2)
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)  # of errors alike
    assert np.mean(losses[200:]) < 1.3 * entropy


def test_labels_at_random_bring_the_probabilities_to_a_half():
    rng = np.random.default_rng(0)
    model = Perceptron(kernel=Linear())
    for _ in range(3000):
        model.learn_one({"a": rng.normal(), "b": rng.normal()}, bool(rng.random() < 0.5))
    shown = [model.predict_proba_one({"a": a, "b": 1.0})[True] for a in np.linspace(-2, 2, 9)]
    assert np.abs(np.array(shown) - 0.5).max() < 0.2


def test_scores_of_any_size_have_probabilities():
    model = Perceptron(kernel=Linear())
    for size in (1e140, 1e-140, 1e148, 1.0):
        for y in (True, False, True, True):
            model.learn_one({"a": size, "b": size * y}, y)
            assert 0.0 <= model.predict_proba_one({"a": size})[True] <= 1.0
