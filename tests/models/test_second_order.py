"""Second-order models on values of any size: right to within rounding, or refused."""

import pickle

import numpy as np
import pytest

from drift.errors import FeatureError
from drift.kernels import Linear, Polynomial
from drift.models import LBSOP, SOP, OneVsRest

#: Share of sum |coefficient * kernel| within which a score is zero, as the store documents it.
TIE = 2.0**-40


def features_of(X, degree):
    """Features whose inner product is the kernel: X itself, or all the products of 1 and X."""
    if degree == 1:
        return X
    with_one = np.column_stack([np.ones(len(X)), X])
    i, j = np.triu_indices(with_one.shape[1])
    return np.where(i == j, 1.0, np.sqrt(2.0)) * with_one[:, i] * with_one[:, j]


class Ridge:
    """Ridge regression over few features, by a QR factor: exact however large the kernel is.

    The score y' (I + Z Z')^{-1} Z z is z' w, with w the solution of the least squares of
    (y, 0) by (Z, I), and a / (a + k - k' A k) is 1 / (1 + ||(Z'Z + I)^{-1/2} z||^2).
    """

    def __init__(self, Z, y):
        rows = np.vstack([Z, np.eye(Z.shape[1])])
        self.lengths = np.linalg.norm(rows, axis=0)
        Q, self.R = np.linalg.qr(rows / self.lengths)
        self.Z = Z
        self.w = np.linalg.solve(self.R, Q[: len(Z)].T @ y)
        self.dual = y - (Z / self.lengths) @ self.w

    def score(self, z):
        """The linear score, how large its rounding error may be, and the factor in front of it."""
        u = z / self.lengths
        variance = 1.0 + np.sum(np.linalg.solve(self.R.T, u) ** 2)
        return u @ self.w, TIE * np.sum(np.abs(self.dual * (self.Z @ z))), 1.0 / variance


@pytest.mark.covering(2)
@pytest.mark.parametrize("make", [SOP, lambda kernel: LBSOP(20, kernel=kernel)])
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.usefixtures("tolerance")
def test_scores_and_mistakes_are_those_of_the_exact_solution_or_the_example_is_refused(
    make, degree
):
    rng = np.random.default_rng(7)
    unscaled = rng.standard_normal((150, 5))
    y = np.where(unscaled @ rng.standard_normal(5) + rng.standard_normal(150) > 0, 1.0, -1.0)
    for scale in 10.0 ** np.arange(-6, 7, 3):
        X = scale * unscaled
        Z = features_of(X, degree)
        model = make(kernel=Linear() if degree == 1 else Polynomial(2))
        supports, learnt, exact = [], 0, Ridge(Z[:0], y[:0])
        for t, row in enumerate(X):
            x = dict(enumerate(row.tolist()))
            if Z[t] @ Z[t] > 1e10:
                with pytest.raises(FeatureError, match=r"StandardScaler\(\), or use a larger ri"):
                    model.learn_one(x, y[t] > 0)
                continue
            linear, rounding, factor = exact.score(Z[t])
            slack = rounding + 1e-4 * min(1.0, abs(linear))
            shown = model.decision_function_one(x)
            assert shown == pytest.approx(factor * linear, rel=0, abs=factor * slack)
            assert model.predict_one(x) == (shown > 0.0)
            mistakes = model.n_mistakes
            model.learn_one(x, y[t] > 0)
            learnt += 1
            mistaken = model.n_mistakes > mistakes
            if abs(linear) > slack:
                assert mistaken == (y[t] * linear <= 0.0)
            if mistaken:
                supports = [*supports, t][-20 if make is not SOP else 0 :]
                exact = Ridge(Z[supports], y[supports])
        assert learnt == 150 or scale**degree > 1e3


@pytest.mark.parametrize(
    "make", [lambda: SOP(kernel=Linear()), lambda: OneVsRest(SOP(1.0, Linear()))]
)
@pytest.mark.usefixtures("tolerance")
def test_an_example_that_is_too_large_for_the_ridge_is_refused_by_every_call(make):
    model = make()
    model.learn_many([{"a": 1.0, "b": -1.0}, {"a": -2.0}, {"b": 3.0}], [True, False, False])
    before = pickle.dumps(model)
    large = {"a": 1.0, "b": 1e8}
    batch = np.array([[1.0, 0.0], [1.0, 1e8], [0.0, -1.0]])
    for call in (
        lambda: model.learn_one(large, True),
        lambda: model.learn_one(large, False),
        lambda: model.predict_one(large),
        lambda: model.predict_proba_one(large),
        lambda: model.decision_function_one(large),
        lambda: model.learn_many([{"a": 1.0}, large], [True, True]),
        lambda: model.learn_many(batch, [False, True, True]),
        lambda: model.predict_many(batch),
    ):
        with pytest.raises(FeatureError, match=r"is 100000000\.0: .*exceeds 1e\+10"):
            call()
        assert pickle.dumps(model) == before


def test_a_score_at_the_largest_support_is_that_computed_by_hand():
    model = SOP(kernel=Linear())
    model.learn_one({"a": 1e5}, True)  # the only support is the example: k / (1 + 2 k), k = 1e10
    assert model.decision_function_one({"a": 1e5}) == pytest.approx(0.5)
    assert model.decision_function_one({"a": -1e5}) == pytest.approx(-0.5)
