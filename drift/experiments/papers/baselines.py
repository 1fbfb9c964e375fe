"""What the papers compare online learners with: support vector machines, at once and online.

They need scikit-learn, which the extra ``baselines`` brings, and memory and time that a stream does
not have: all examples are kept. Two classes over the same kernels, with their docstrings, take more
than 300 lines.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from river.base import Classifier
from scipy.sparse import csr_array, hstack, issparse

from drift._checks import check_number
from drift.errors import LabelError, needing
from drift.kernels import DEFAULT_KERNEL, RBF, Linear, Polynomial

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from drift.kernels import Kernel
    from drift.types import Features, Label

    Array = NDArray[np.float64]

__all__ = ["BatchSVM", "OnlineMaxMargin"]

_BLOCK = 1_000  # rows predicted at a time
_CACHE = 1_000  # megabytes of kernel values that the solver keeps
#: A margin within so much of 1 satisfies its constraint: the solver stops at a tenth of it.
_SLACK = 1e-4


class BatchSVM:
    """Support vector machine, trained on all examples at once, over a kernel of drift.

    Parameters
    ----------
    C
        Largest coefficient of an example, positive: the price of an error.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.

    Raises
    ------
    ParameterError
        If `C` is not positive.

    Notes
    -----
    It has an intercept, unlike the models of drift. Several classes are decided one against one, by
    vote, as scikit-learn's ``SVC`` does. With a kernel of one's own training needs 8 n^2 bytes for
    n examples; those of `drift.kernels` are computed by scikit-learn.

    References
    ----------
    .. [1] K. Crammer, J. Kandola, Y. Singer, "Online classification on a budget", Advances in
       Neural Information Processing Systems 16 (2004), section 6, where it is the baseline.

    Examples
    --------
    >>> import numpy as np
    >>> from drift.experiments.papers.baselines import BatchSVM
    >>> from drift.streams import gaussians
    >>> points = gaussians(600)
    >>> X, y = points.rows, points.has("+1")
    >>> svm = BatchSVM(C=1.0).fit(X[:400], y[:400])
    >>> print((svm.predict(X[400:]) == y[400:]).mean())
    0.87
    """

    def __init__(self, C: float = 1.0, kernel: Kernel | None = None) -> None:
        check_number("C", C, above=True)
        self.C = C
        self.kernel = kernel

    def fit(self, X: ArrayLike | csr_array, y: ArrayLike) -> BatchSVM:
        """Train, forgetting what was learnt before.

        Parameters
        ----------
        X
            Examples, dense or sparse, shape (n, d).
        y
            Labels, two or more different ones, shape (n,).

        Returns
        -------
        BatchSVM
            Itself.

        Raises
        ------
        MissingExtraError
            scikit-learn is not installed.
        """
        kernel = self.kernel or DEFAULT_KERNEL
        self._svc = _svc(self.C, **_native(kernel) or {"kernel": partial(_gram, kernel)})
        self._svc.fit(self._scaled(X), np.asarray(y))
        return self

    def _scaled(self, X: ArrayLike | csr_array) -> csr_array:
        """Rows of unit norm where scikit-learn is to compute a kernel of such rows.

        The normalised polynomial kernel is one of rows with the constant term as a feature.
        """
        rows = csr_array(X if issparse(X) else np.asarray(X, dtype=np.float64))
        kernel = self.kernel or DEFAULT_KERNEL
        if not (_native(kernel) and getattr(kernel, "normalize", False)):
            return rows
        if isinstance(kernel, Polynomial) and not kernel.scales_rows:
            constant = csr_array(np.full((rows.shape[0], 1), kernel.coef0**0.5))
            rows = hstack([rows, constant], format="csr")
        norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        scaled = rows.copy()
        scaled.data /= np.repeat(norms, np.diff(rows.indptr))
        return scaled

    @property
    def n_supports(self) -> int:
        """Number of training examples that the decisions are made of."""
        return len(self._svc.support_)

    def predict(self, X: ArrayLike | csr_array) -> NDArray[Any]:
        """Labels of examples, shape (n,).

        Parameters
        ----------
        X
            Examples, dense or sparse, shape (n, d).
        """
        rows = self._scaled(X)
        starts = range(0, rows.shape[0], _BLOCK)
        return np.concatenate([self._svc.predict(rows[i : i + _BLOCK]) for i in starts])


class OnlineMaxMargin(Classifier):
    """The ideal online maximum margin learner, which relaxed ones approximate.

    After every example its hypothesis is the shortest one, through the origin, that gives each
    example so far a margin ``y f(x)`` of at least 1. An example whose margin is already so large
    changes nothing; any other has the problem solved afresh, over all examples so far.

    Parameters
    ----------
    C
        Largest coefficient of an example, positive. The default leaves the margins hard in all but
        name; data that cannot be separated need a smaller one.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that had the problem solved.

    Raises
    ------
    ParameterError
        If `C` is not positive.
    MissingExtraError
        scikit-learn is not installed.

    Notes
    -----
    For n examples it holds 8 n^2 bytes, and a solution takes more than n^2 time. ``SVC`` has an
    intercept, which the papers' learner has not: it is given each example ``y phi(x)`` as positive
    and its negative as negative, so that by symmetry the intercept is 0.

    References
    ----------
    .. [1] Y. Li, P. M. Long, "The relaxed online maximum margin algorithm", Advances in Neural
       Information Processing Systems 12 (2000), section 2.1, "The ideal online maximum margin
       algorithm", and theorem 4.

    Examples
    --------
    >>> from drift.experiments.papers.baselines import OnlineMaxMargin
    >>> from drift.kernels import Linear
    >>> model = OnlineMaxMargin(kernel=Linear())
    >>> model.learn_one({"a": 1.0}, True)
    >>> model.learn_one({"b": 1.0}, False)
    >>> model.predict_one({"a": 2.0, "b": 1.0})
    True
    """

    def __init__(self, C: float = 1e6, kernel: Kernel | None = None) -> None:
        check_number("C", C, above=True)
        self.C = C
        self.kernel = kernel
        self.n_mistakes = 0
        self.n_updates = 0
        self._examples: list[dict[Any, float]] = []
        self._signs = np.zeros(0)
        self._gram = np.zeros((0, 0))
        self._coefficients = np.zeros(0)  # with the label's sign

    @property
    def n_supports(self) -> int:
        """Number of examples whose coefficient is not zero."""
        return int(np.count_nonzero(self._coefficients))

    def learn_one(self, x: Features, y: Label) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name, numbers.
        y
            Label: bool, 0/1 or -1/+1.

        Raises
        ------
        LabelError
            If the label is none of these.
        MissingExtraError
            If scikit-learn is not installed.
        """
        if y not in {-1, 0, 1}:
            raise LabelError(f"label {y!r}: give bool, 0/1 or -1/+1")
        sign, row = 1.0 if y == 1 else -1.0, _kernel_row(self.kernel, x, [*self._examples, x])
        svc = _svc(self.C, tol=_SLACK / 10)
        self._examples.append(dict(x))
        self._signs = np.append(self._signs, sign)
        self._coefficients = np.append(self._coefficients, 0.0)
        self._gram = np.pad(self._gram, (0, 1))
        self._gram[-1] = self._gram[:, -1] = row
        margin = sign * float(self._coefficients @ row)
        self.n_mistakes += margin <= 0.0
        if margin < 1.0 - _SLACK:
            self.n_updates += 1
            self._solve(svc)

    def decision_function_one(self, x: Features) -> float:
        """Score of an example; the prediction is positive iff it is > 0.

        Parameters
        ----------
        x
            Features by name, numbers.
        """
        return float(self._coefficients @ _kernel_row(self.kernel, x, self._examples))

    def predict_one(self, x: Features, **kwargs: Any) -> bool:
        """Predict the label of one example.

        Parameters
        ----------
        x
            Features by name, numbers.
        **kwargs
            Ignored; River passes them on.
        """
        return self.decision_function_one(x) > 0.0

    def _solve(self, svc: Any) -> None:
        n = len(self._signs)
        signed = self._gram * np.outer(self._signs, self._signs)
        mirrored = np.block([[signed, -signed], [-signed, signed]])
        svc.fit(mirrored, np.repeat([1, -1], n))
        # Both copies of an example pull the same way.
        pull = np.zeros(2 * n)
        pull[svc.support_] = np.abs(svc.dual_coef_[0])
        self._coefficients = self._signs * (pull[:n] + pull[n:])


def _svc(C: float, **parameters: Any) -> Any:
    with needing("scikit-learn", "baselines"):
        from sklearn.svm import SVC  # noqa: PLC0415 - optional
    return SVC(C=C, **{"kernel": "precomputed", "cache_size": _CACHE} | parameters)


def _native(kernel: Kernel) -> dict[str, Any]:
    """What scikit-learn calls a kernel, over rows scaled to unit norm if need be; else nothing."""
    if isinstance(kernel, Polynomial):
        poly = {"kernel": "poly", "degree": kernel.degree}
        if kernel.normalize and not kernel.scales_rows:
            return poly | {"coef0": 0.0, "gamma": 1.0 + kernel.coef0}
        return poly | {"coef0": kernel.coef0, "gamma": 1.0}
    if isinstance(kernel, RBF):
        return {"kernel": "rbf", "gamma": kernel.gamma}
    return {"kernel": "linear"} if isinstance(kernel, Linear) else {}


def _gram(kernel: Kernel, A: csr_array, B: csr_array) -> Array:
    """Kernel between every row of A and every row of B."""
    squares = [np.asarray(M.multiply(M).sum(axis=1)).ravel() for M in (A, B)]
    gram: Array = kernel((A @ B.T).toarray(), squares[0][:, None], squares[1][None, :])
    return gram


def _kernel_row(kernel: Kernel | None, x: Features, others: list[Any]) -> Array:
    dots = np.array([sum(v * z.get(name, 0.0) for name, v in x.items()) for z in others])
    squares = np.array([sum(v * v for v in z.values()) for z in others])
    own = sum(v * v for v in x.values())
    row: Array = np.asarray((kernel or DEFAULT_KERNEL)(dots, np.full(len(others), own), squares))
    return row
