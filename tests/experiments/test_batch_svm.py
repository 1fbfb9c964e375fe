import sys
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from drift.errors import MissingExtraError, ParameterError
from drift.experiments.rivals import BatchSVM
from drift.kernels import Linear, Polynomial


def test_a_batch_svm_between_two_points():
    # the widest margin between 1 and 3 on a line is cut at 2
    svm = BatchSVM(C=100.0, kernel=Linear()).fit([[1.0], [3.0]], [True, False])
    assert svm.predict([[0.0], [1.9], [2.1]]).tolist() == [True, True, False]
    assert svm.n_supports == 2


def test_a_point_beyond_the_margin_is_no_support():
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


def test_a_c_that_is_not_positive_is_refused():
    with pytest.raises(ParameterError, match="C must be a number above 0, not 0"):
        BatchSVM(C=0)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(MissingExtraError, match=r'pip install "\.\[baselines\]"'):
        BatchSVM().fit([[1.0], [2.0]], [0, 1])
