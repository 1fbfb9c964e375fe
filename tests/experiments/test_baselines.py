import random
import sys
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from drift.errors import LabelError, MissingExtraError, ParameterError
from drift.experiments.papers.baselines import BatchSVM, OnlineMaxMargin
from drift.kernels import RBF, Linear, Polynomial


def weights(model):
    """The hyperplane of a linear model over a and b."""
    return [model.decision_function_one(x) for x in ({"a": 1.0}, {"b": 1.0})]


def learnt(*examples, **parameters):
    model = OnlineMaxMargin(kernel=Linear(), **parameters)
    for (a, b), y in examples:
        model.learn_one({"a": a, "b": b}, y)
    return model


def test_one_point_is_at_margin_one():
    # the shortest w with 2 w_a >= 1
    assert weights(learnt(((2.0, 0.0), True))) == pytest.approx([0.5, 0.0], abs=1e-4)


def test_two_points():
    # the shortest w with w_a at least 1 and w_b at most -1
    model = learnt(((1.0, 0.0), True), ((0.0, 1.0), False))
    assert weights(model) == pytest.approx([1.0, -1.0], abs=1e-4)
    assert (model.n_mistakes, model.n_updates, model.n_supports) == (2, 2, 2)


def test_a_third_point_can_set_an_older_one_free():
    # w_a >= 1, w_b <= -1, w_a + w_b >= 1: (2, -1), where the first holds by itself
    model = learnt(((1.0, 0.0), True), ((0.0, 1.0), False), ((1.0, 1.0), True))
    assert weights(model) == pytest.approx([2.0, -1.0], abs=1e-3)
    assert model.decision_function_one({"a": 1.0, "b": 1.0}) == pytest.approx(1.0, abs=1e-3)
    assert (model.n_mistakes, model.n_updates, model.n_supports) == (3, 3, 2)


def test_a_satisfied_point_changes_nothing_until_it_is_violated():
    model = learnt(((1.0, 0.0), True), ((3.0, 1.0), True))
    assert (model.n_mistakes, model.n_updates) == (1, 1)
    # w_b <= -2.5 leaves 3 w_a + w_b >= 1 at w_a >= 3.5 / 3
    model.learn_one({"b": 0.4}, y=False)
    assert weights(model) == pytest.approx([3.5 / 3, -2.5], abs=1e-3)


def test_a_small_c_gives_points_up():
    # one point with either label: both coefficients reach C and cancel
    model = learnt(((1.0, 0.0), True), ((1.0, 0.0), False), C=0.5)
    assert weights(model) == pytest.approx([0.0, 0.0], abs=1e-4)


def test_mistakes_stay_within_theorem_4():
    rng = random.Random(4)
    model = OnlineMaxMargin(kernel=RBF(gamma=0.5))
    for _ in range(120):
        a, b = rng.uniform(-2, 2), rng.uniform(-2, 2)
        y = a * a + b * b > 2
        before = model.n_mistakes
        missed = model.predict_one({"a": a, "b": b}) != y
        model.learn_one({"a": a, "b": b}, y)
        assert model.n_mistakes - before >= missed
    # The last hypothesis satisfies every constraint, and k(x, x) = 1
    gram, coefficients = model._gram, model._coefficients
    margins = model._signs * (gram @ coefficients)
    assert margins.min() > 1 - 1e-3
    assert model.n_mistakes <= coefficients @ gram @ coefficients


def test_labels_are_those_of_the_models():
    with pytest.raises(LabelError, match="label 'spam': give bool"):
        OnlineMaxMargin().learn_one({"a": 1.0}, "spam")
    for positive, negative in ((True, False), (1, 0), (1, -1)):
        model = learnt(((1.0, 0.0), positive), ((0.0, 1.0), negative))
        assert weights(model) == pytest.approx([1.0, -1.0], abs=1e-4)


def test_nothing_learnt_predicts_false():
    model = OnlineMaxMargin()
    assert model.predict_one({"a": 1.0}) is False
    model.learn_one({"a": 1.0}, y=True)
    assert model.clone().n_supports == 0


def test_a_batch_svm_between_two_points():
    # the widest margin between 1 and 3 on a line is cut at 2
    svm = BatchSVM(C=100.0, kernel=Linear()).fit([[1.0], [3.0]], [True, False])
    assert svm.predict([[0.0], [1.9], [2.1]]).tolist() == [True, True, False]
    assert svm.n_supports == 2


def test_a_point_behind_the_margin_is_no_support():
    svm = BatchSVM(C=100.0, kernel=Linear()).fit([[0.0], [1.0], [3.0]], ["a", "a", "b"])
    assert svm.n_supports == 2
    assert svm.predict([[1.9], [2.1]]).tolist() == ["a", "b"]


def test_several_classes_vote():
    corners = np.array([[0.0, 4.0], [-4.0, -2.0], [4.0, -2.0]])
    svm = BatchSVM(C=10.0, kernel=Linear()).fit(corners, [0, 1, 2])
    assert svm.predict(corners / 2).tolist() == [0, 1, 2]


@pytest.mark.parametrize("normalize", [False, True, "rows"])
def test_sparse_is_dense_and_blocks_do_not_matter(normalize):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1_230, 3)), rng.random(1_230) < 0.5
    kernel = Polynomial(degree=2, normalize=normalize)
    dense = BatchSVM(kernel=kernel).fit(X[:60], y[:60])
    sparse = BatchSVM(kernel=kernel).fit(csr_array(X[:60]), y[:60])
    predictions = dense.predict(X)
    assert (sparse.predict(csr_array(X)) == predictions).all()
    assert (dense.predict(X[1_100:]) == predictions[1_100:]).all()
    own = BatchSVM(kernel=partial(kernel)).fit(X[:60], y[:60])  # a Gram matrix of ours
    assert (own.predict(X) == predictions).mean() > 0.99  # to scikit-learn's tolerance


@pytest.mark.parametrize("make", [BatchSVM, OnlineMaxMargin])
def test_a_c_that_is_not_positive_is_refused(make):
    with pytest.raises(ParameterError, match="C must be a number above 0, not 0"):
        make(C=0)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    for use in (
        lambda: BatchSVM().fit([[1.0], [2.0]], [0, 1]),
        lambda: OnlineMaxMargin().learn_one({"a": 1.0}, y=True),
    ):
        with pytest.raises(MissingExtraError, match=r'pip install "\.\[baselines\]"'):
            use()
