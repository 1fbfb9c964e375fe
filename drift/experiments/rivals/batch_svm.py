"""What the papers compare online learners with: a support vector machine, trained at once.

It needs scikit-learn, which the extra ``baselines`` brings, and memory and time that a stream does
not have: all examples are kept.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from drift._checks import check_number
from drift.errors import needing
from drift.kernels import DEFAULT_KERNEL, RBF, Linear, Polynomial

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from drift.kernels import Kernel

    Array = NDArray[np.float64]

__all__ = ["BatchSVM"]

_BLOCK = 1_000  # rows predicted at a time
_CACHE = 1_000  # megabytes of kernel values that the solver keeps


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
    >>> from drift.experiments.rivals import BatchSVM
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
        with needing("scikit-learn", "baselines"):
            from sklearn.svm import SVC  # noqa: PLC0415 - optional
        kernel = self.kernel or DEFAULT_KERNEL
        how = _native(kernel) or {"kernel": partial(_gram, kernel)}
        self._svc = SVC(C=self.C, cache_size=_CACHE, **how)
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
