"""The threshold of a rare class, against a naive twin and against hindsight."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift._decision import Decision
from drift.experiments.comparison.predictions import decided


def f1(said, true):
    return 2 * np.sum(said & true) / max(1, np.sum(said) + np.sum(true))


def at_once(n):
    return np.stack([np.arange(n), ~np.arange(n)], axis=1).ravel()


def naive(scores, positive, order):
    """Of 64 labels at most: try each score seen as the threshold, and stay above what is left.

    After a label of the class all older ones count 299 / 300 of before.
    """
    seen, said, threshold = [], {}, 0.5
    for event in order:
        if event >= 0:
            said[event] = scores[event] >= threshold
            continue
        seen.append([scores[~event], positive[~event], 1.0])
        if not any(hit for _, hit, _ in seen):
            continue
        if positive[~event]:
            seen = [[score, hit, w * 299 / 300] for score, hit, w in seen]
        there = sum(w for _, hit, w in seen if hit)
        best, least = 0.0, None
        for least_claimed in sorted({score for score, *_ in seen}):
            claimed = [(hit, w) for score, hit, w in seen if score >= least_claimed]
            value = 2 * sum(w for hit, w in claimed if hit) / (sum(w for _, w in claimed) + there)
            if value > best + 1e-12:
                best, least = value, least_claimed
        if best < 1.499999999 * 2 * there / (sum(w for *_, w in seen) + there):
            threshold = 0.5
            continue
        below = max((score for score, *_ in seen if score < least), default=None)
        odds = [math.log(p / (1 - p)) for p in (least, below or 0.5)]
        middle = -40.0 if below is None else odds[1]
        threshold = 1 / (1 + math.exp(-(odds[0] + middle) / 2))
    return [said[i] for i in range(len(scores))]


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.booleans(), st.integers(0, 5)), min_size=1, max_size=60
    )
)
def test_decisions_are_those_of_the_naive_twin(rows):
    n = len(rows)
    scores = np.array([tenths / 10 for tenths, _, _ in rows])
    positive = np.array([hit for _, hit, _ in rows])
    due = sorted((i + late + 0.5, ~i) for i, (_, _, late) in enumerate(rows))
    order = [event for _, event in sorted([*((i, i) for i in range(n)), *due])]
    actual, _ = decided(scores, positive, np.array(order))
    assert actual.tolist() == naive(scores.tolist(), positive.tolist(), order)


@pytest.mark.parametrize("share", [0.01, 0.05])
@pytest.mark.parametrize("bias", [0.0, 3.0])
def test_it_is_nearly_as_good_as_the_best_in_hindsight(share, bias):
    """Whether probabilities are calibrated or far too high."""
    rng = np.random.default_rng(3)
    n = 20_000
    positive = rng.random(n) < share
    place = rng.normal(size=n) + 2.5 * positive
    odds = 2.5 * place - 3.125 + math.log(share / (1 - share)) + bias  # by Bayes' rule
    shares = 1 / (1 + np.exp(-odds))
    said, _ = decided(shares, positive, at_once(n))
    decision, thresholds = Decision(), []
    for label in zip(shares.tolist(), positive.tolist(), strict=True):
        decision.learn(*label)
        thresholds.append(decision.threshold)
    best = max(f1(odds >= edge, positive) for edge in np.quantile(odds, np.linspace(0.8, 1, 200)))
    assert f1(said, positive) > 0.9 * best
    if not bias:  # around half the best F1, where probabilities are right
        assert np.mean(thresholds[n // 2 :]) == pytest.approx(best / 2, abs=0.06)


def test_what_has_no_score_or_no_label_in_time_teaches_nothing():
    scores = np.array([0.9, np.nan, 0.2, 0.6])
    positive = np.array([False, True, True, True])
    assert decided(scores, positive, np.array([0, 1, 2, 3, -1, -2, -3, -4]))[0].tolist() == [
        *(True, False, False, True),
    ]
    said, threshold = decided(np.full(4, np.nan), positive, at_once(4))
    assert (said.tolist(), threshold) == ([False] * 4, None)


def test_probabilities_of_none_and_all_are_in_order():
    positive = np.arange(20) % 5 == 4
    said, threshold = decided(positive.astype(float), positive, at_once(20))
    assert said.tolist() == positive.tolist()
    assert threshold == pytest.approx(0.5, abs=0.01)


def test_a_model_that_knows_nothing_does_not_always_say_yes():
    rng = np.random.default_rng(0)
    positive = rng.random(5_000) < 0.02
    said, threshold = decided(rng.uniform(0.01, 0.03, 5_000), positive, at_once(5_000))
    assert said.mean() < 0.02
    assert threshold > 0.02
