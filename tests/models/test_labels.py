"""Predictions come back in the kind of label that was learnt."""

import numpy as np
import pytest

from drift.models import Perceptron

A, B = {"a": 1.0}, {"b": 1.0}


@pytest.mark.parametrize(
    ("positive", "negative", "kind"),
    [
        (True, False, bool),
        (np.True_, np.False_, bool),
        (1, 0, int),
        (1, -1, int),
        (np.int64(1), np.int64(-1), int),
        (1.0, -1.0, int),
        (1.0, 0.0, int),
    ],
)
@pytest.mark.parametrize("positive_first", [True, False])
def test_kinds_of_label(positive, negative, kind, positive_first):
    model = Perceptron()
    for x, y in [(A, positive), (B, negative)][:: 1 if positive_first else -1] * 3:
        model.learn_one(x, y)
    for x, y in ((A, positive), (B, negative)):
        prediction = model.predict_one(x)
        assert prediction == y
        assert type(prediction) is kind
        assert model.predict_proba_one(x)[y] > 0.5
    assert set(model.predict_proba_one(A)) == {positive, negative}


def test_minus_one_is_learnt_as_negative():
    model = Perceptron()
    for _ in range(3):
        model.learn_one(A, 1)
        model.learn_one(B, -1)
    assert model.n_mistakes == 2
    assert [model.predict_one(A), model.predict_one(B)] == [1, -1]


def test_a_batch_may_hold_the_first_negative_label():
    model = Perceptron()
    model.learn_one(A, 1)
    predictions = model.predict_learn_many([B, A, B], np.array([-1, 1, -1]))
    assert predictions.tolist() == [1, 1, -1]


@pytest.mark.parametrize("truth", [True, np.True_])
@pytest.mark.parametrize("negative", [0, -1])
def test_a_truth_among_numbers_leaves_their_kind(truth, negative):
    model = Perceptron()
    for _ in range(3):
        model.learn_one(B, negative)
        model.learn_one(A, truth)
    assert [model.predict_one(A), model.predict_one(B)] == [1, negative]
    assert type(model.predict_one(A)) is int
