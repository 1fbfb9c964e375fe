"""A Tracker that is told how late labels come trusts members by the forecasts that they made."""

import math
import pickle
from itertools import islice

import numpy as np
import pytest
from oracles_tracker import Tracker as Twin
from oracles_tracker_parts import first
from test_multiclass import clusters
from test_tracker_twin import ALL, check_enough

from drift.models import Tracker


class Late:
    """Naive twin, which trusts members by what they said before the labels in between came.

    `then` is the model as it was when an example was predicted, `delay` examples ago.
    """

    def __init__(self, delay, *args, **kwargs):
        self.now, self.then = Twin(*args, **kwargs), Twin(*args, **kwargs)
        self.delay, self.waiting = delay, []
        n = len(self.now.weights) + 1
        self.votes, self.weights = np.full(n, 1 / n), np.full(n, 1 / n)

    def opinions(self, twin, x):
        """Classes that the members and the whole choose, and their probabilities by class."""
        chances = np.array(list(twin.proba(x).values()))
        members = twin.p[:, : len(chances)]
        return [*twin.choices, twin.prediction], np.vstack([members, chances])

    def proba(self, x):
        _, chances = self.opinions(self.now, x)
        mixed = self.weights @ chances
        return dict(zip(self.now.classes, mixed / mixed.sum(), strict=True))

    def predict(self, x):
        choices, _ = self.opinions(self.now, x)
        ballots = [self.votes[np.equal(choices, k)].sum() for k in range(self.now.known)]
        if self.now.decide == "probability":
            ballots = list(self.proba(x).values())
        gaps = max(ballots, default=0.0) - np.sort(ballots)[:-1]
        self.doubtful = self.now.doubtful or bool(np.any(abs(gaps - 1e-6) < 5e-7))
        return self.now.classes[first(ballots, 1e-6)] if self.now.classes else None

    def learn(self, x, y, w=1.0):
        if w == 0.0:
            return
        if len(self.waiting) > self.delay:
            self.then.learn(*self.waiting.pop(0))
        if y in self.then.classes:
            k = self.then.classes.index(y)
            choices, chances = self.opinions(self.then, x)
            votes = self.votes * np.exp(-0.02 * w * np.not_equal(choices, k))
            weights = self.weights * chances[:, k] ** (0.05 * w)
            self.votes = (1 - 1e-4) * votes / votes.sum() + 1e-4 / len(votes)
            self.weights = (1 - 1e-4) * weights / weights.sum() + 1e-4 / len(weights)
        self.waiting.append((x, y, w))
        self.now.learn(x, y, w)


@pytest.mark.covering(1)
@pytest.mark.parametrize("delay", [1, 7, 40])
@pytest.mark.parametrize("stream", ["drifting", "checkerboard", "text", "late classes", "growing"])
@pytest.mark.usefixtures("tolerance")
def test_agrees_with_its_twin(stream, delay):
    model, twin, waiting = Tracker(12, seed=9, delay=delay), Late(delay, 12, seed=9), []
    examples, compared = list(islice(ALL[stream](), 120)), 0
    for t, (x, y) in enumerate(examples):
        prediction, chances = twin.predict(x), twin.proba(x)
        if twin.doubtful:
            break
        assert model.predict_proba_one(x) == pytest.approx(chances, abs=1e-4), f"example {t}"
        assert model.predict_one(x) == prediction, f"example {t}"
        waiting.append((x, y))
        if len(waiting) > delay:
            example = waiting.pop(0)
            model.learn_one(*example)
            twin.learn(*example)
        compared += 1
    check_enough(compared, len(examples))


@pytest.mark.usefixtures("tolerance")
def test_agrees_with_its_twin_with_weights_of_examples():
    given = dict(seed=-3, kernels=(2.0,), decide="probability")
    model, twin = Tracker(6, delay=5, **given), Late(5, 6, **given)
    for t, (x, y) in enumerate(clusters(list("abc"), 90, seed=4)):
        assert model.predict_one(x) == twin.predict(x), f"example {t}"
        assert model.predict_proba_one(x) == pytest.approx(twin.proba(x), abs=1e-4), f"example {t}"
        w = (0.3, 1.0, 2.5, 0.0)[t % 4]
        model.learn_one(x, y, w)
        twin.learn(x, y, w)


def alternating(n):
    """Labels of which the one before tells the next, as long as it is known."""
    for t in range(n):
        yield {"a": (t // 20) % 2 + 0.01 * (t % 7), "b": float(t % 3)}, (t // 30) % 2 == 1


@pytest.mark.compiled  # 3,000 rows: the plain core says the same by the twin above
def test_what_members_say_once_they_know_the_labels_between_does_not_count():
    """The last label is the next one in 29 of 30 cases: it is of no use to who learns it late."""
    wrong = []
    for delay in (0, 30):
        model, waiting, mistakes = Tracker(20, delay=delay), [], 0
        for t, (x, y) in enumerate(alternating(1500)):
            mistakes += t > 500 and model.predict_one(x) != y
            waiting.append((x, y))
            if len(waiting) > 30:
                model.learn_one(*waiting.pop(0))
        wrong.append(mistakes)
    assert wrong[1] < 0.8 * wrong[0]


@pytest.mark.usefixtures("tolerance")
@pytest.mark.parametrize("kind", [float, np.array])
def test_an_example_that_waits_stays_what_it_was(kind):
    """Its dict is the caller's, and so are values that can change."""
    models, x = [Tracker(5, delay=3) for _ in range(2)], {"a": kind(0.0)}
    for a, y in [(2.0, "x"), (0.0, "y"), (-1.0, "x"), (0.5, "z"), (3.0, "x"), (1.0, "y")] * 3:
        x["a"] += a - x["a"]
        models[0].learn_one(x, y)
        models[1].learn_one({"a": a}, y)
    assert pickle.dumps(models[0]) == pickle.dumps(models[1])


def test_one_stored_before_there_was_a_delay_goes_on_without():
    model = Tracker(5)
    model.learn_one({"a": 1.0}, "x")
    state = model.__getstate__()
    del state["delay"]
    other = Tracker.__new__(Tracker)
    other.__setstate__(state)
    assert other.delay == 0
    assert other.predict_one({"a": 1.0}) == "x"


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state["pending"].pop(),
        lambda state: state["votes"].pop(),
        lambda state: state["votes"].__setitem__(0, math.nan),
        lambda state: state["weights"].__setitem__(slice(None), [0.0] * 23),
        lambda state: state["behind"].update(state["core"]),
        lambda state: state["behind"].pop("gates"),
    ],
)
def test_a_state_whose_parts_do_not_fit_is_refused(change):
    model = Tracker(5, delay=3)
    for x, y in clusters(list("ab"), 10):
        model.learn_one(x, y)
    state = model.__getstate__()
    change(state["_core"])
    with pytest.raises((ValueError, KeyError)):
        pickle.loads(pickle.dumps(Tracker(5))).__setstate__(state)
