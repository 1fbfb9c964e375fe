"""Perceptrons that drop the supports which the others classify well without them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from drift._checks import check_integer, check_number
from drift.models._template.binary import KernelClassifier
from drift.models._template.leave_one_out import LeaveOneOut

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.types import Features

__all__ = ["CKS", "VariableCachePerceptron"]


class _CachePerceptron(LeaveOneOut, KernelClassifier):
    """Perceptron with a margin, on a budget or without one."""

    _wide = True

    def __init__(self, margin: float, kernel: Kernel | None, budget: int | None) -> None:
        super().__init__(kernel, budget)
        self.margin = margin

    @property
    def _update_margin(self) -> float:  # type: ignore[override]
        return math.inf if self.margin else 0.0  # ties with a margin are for `_should_update`

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        return sign * score <= self.margin + self._supports.error_bound()

    def _update(self, x: Features, sign: float, score: float) -> None:
        kernels = self._kernels_by_slot()
        if self._over_budget(coming=1):
            self._evict_most_redundant()
        coefficient = self._weight * sign
        self._record(self._supports.add(x, coefficient), kernels, coefficient)

    def _margins(self) -> Any:
        return (np.sign(self._rest.coefficients) * self._rest.values)[:, 0]


class CKS(_CachePerceptron):
    r"""Perceptron on a budget that evicts the support which the others classify best.

    An example with ``y f(x) <= margin`` becomes a support with coefficient ``y``. On a full budget
    the most redundant support is evicted before: the support ``j`` with the largest margin without
    its own term, ``y_j (f - alpha_j k(x_j, .))(x_j)``.

    Parameters
    ----------
    budget
        Largest number of supports, at least 1.
    margin
        The paper's ``beta``, at least 0: the margin up to which an example becomes a support.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis: examples within the margin.

    Raises
    ------
    ParameterError
        If `budget` is not an integer of at least 1, or `margin` not a number of at least 0.

    See Also
    --------
    VariableCachePerceptron : The same criterion, without a fixed budget.
    RBP, LBP : Random and oldest evictions.
    PassiveAggressive : Better on noisy labels.

    Notes
    -----
    The model keeps the supports' margins. An update takes two kernel rows, and an eviction one
    more, in O(budget) memory. Columns are float64 whatever `column_type` is. If several margins are
    equal up to rounding, the oldest support is evicted.

    **It keeps noise.** Noisy examples have the smallest margins, and are never evicted. With noisy
    labels or a drifting target they fill the budget. On the first 10,000 examples of a9a, at a
    budget of 100, the error is 34.1 %. The majority class has 23.8, `LBP` 24.8, and
    ``PassiveAggressive(0.02, budget=100)`` 16.9. On two classes that a plane separates, `CKS` has
    11.6, `LBP` 12.4 and `PassiveAggressive` 5.5. With a tenth of the labels flipped, they have
    36.8, 28.8 and 16.4, and the majority class 33.1. Use `PassiveAggressive` unless labels are
    clean and the target does not drift.

    References
    ----------
    .. [1] K. Crammer, J. Kandola, Y. Singer, "Online classification on a budget", NIPS 16 (2003),
       figure 3.
    .. [2] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget Perceptron", Machine Learning 69 (2007), section 4 (CKS).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import CKS
    >>> evaluate.progressive_val_score(datasets.Phishing(), CKS(budget=50), metrics.Accuracy())
    Accuracy: 67.92%
    """

    def __init__(
        self, budget: int = 100, margin: float = 0.0, kernel: Kernel | None = None
    ) -> None:
        budget = check_integer("budget", budget)
        check_number("margin", margin)
        super().__init__(margin, kernel, budget)
        self.budget = budget


class VariableCachePerceptron(_CachePerceptron):
    r"""Perceptron that drops supports as soon as the others classify them well enough.

    An example with ``y f(x) <= margin`` becomes a support with coefficient ``y``. Then redundant
    supports are evicted, one by one: the support ``j`` with the largest margin without its own
    term, ``y_j (f - alpha_j k(x_j, .))(x_j)``, as long as that is at least the deletion threshold.
    The number of supports adapts to the stream; there is no fixed limit.

    Parameters
    ----------
    margin
        The paper's ``beta``, at least 0: the margin up to which an example becomes a support.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    distill_margin
        The deletion threshold, positive; None for `margin`, which must be positive then.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis: examples within the margin.

    Raises
    ------
    ParameterError
        If `margin` is not a number of at least 0, or the deletion threshold is not above 0: the
        first example, whose margin without its own term is 0, would be evicted at once.

    See Also
    --------
    CKS : The same criterion on a fixed budget.

    Notes
    -----
    Theorem 1 of the paper bounds the number of supports by ``(R^2 + 2 margin) / gamma^2``. It holds
    if some ``u`` of unit norm has ``y u(x) >= gamma > 0`` on all examples, ``k(x, x) <= R^2``, and
    the deletion threshold is at least ``margin``. On other streams the number is not bounded,
    because noisy examples stay.

    The model keeps the supports' margins. An update takes two kernel rows, and an eviction one
    more, in memory linear in the number of supports. Columns are float64 whatever `column_type` is.
    If several margins are equal up to rounding, the oldest support is evicted.

    References
    ----------
    .. [1] K. Crammer, J. Kandola, Y. Singer, "Online classification on a budget", NIPS 16 (2003),
       figures 1 and 2.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import VariableCachePerceptron
    >>> model = VariableCachePerceptron()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 79.84%
    >>> model.n_updates, model.n_supports
    (253, 143)
    """

    def __init__(
        self,
        margin: float = 0.01,
        kernel: Kernel | None = None,
        distill_margin: float | None = None,
    ) -> None:
        check_number("margin", margin, above=distill_margin is None)
        if distill_margin is not None:
            check_number("distill_margin", distill_margin, above=True)
        super().__init__(margin, kernel, None)
        self.distill_margin = distill_margin

    def _update(self, x: Features, sign: float, score: float) -> None:
        super()._update(x, sign, score)
        least = self.margin if self.distill_margin is None else self.distill_margin
        while self._evict_most_redundant(least):
            pass
