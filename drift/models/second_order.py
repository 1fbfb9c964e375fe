"""Second-order Perceptrons: the same mistakes, in a space whitened by the supports themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift._checks import check_integer, check_number, check_seed
from drift.errors import ParameterError
from drift.models._linalg.gram import InverseGram
from drift.models._store.check import check_array, check_slots
from drift.models._template.binary import KernelClassifier
from drift.models._template.draws import Drawing

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.models._base.rows import Rows
    from drift.types import Features

__all__ = ["LBSOP", "RBSOP", "SOP"]

#: Largest k(x, x) / ridge. The terms of a score may be as large as that, and the score itself about
#: 1: beyond it, the rounding errors of a few terms would hide the score.
_MAX_KERNEL_TO_RIDGE = 1e10


class _SecondOrder(KernelClassifier):
    """Second-order Perceptron, on a budget or without one."""

    _wide = True

    def __init__(self, ridge: float, kernel: Kernel | None, budget: int | None) -> None:
        check_number("ridge", ridge, above=True)
        super().__init__(kernel, budget)
        self.ridge = ridge
        self._supports.store.largest_self_kernel = float(_MAX_KERNEL_TO_RIDGE * ridge)
        self._inverse: Any = None  # an InverseGram, from the first support on
        self._signs: Any = None  # sign of each label by slot, with the inverse's capacity

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._inverse is None:
            check_slots("_inverse", [], self._supports)
        else:
            check_slots("_inverse", self._inverse.slots(), self._supports)
            check_array("_signs", self._signs, (self._inverse.capacity,))
            check_slots("_signs", np.flatnonzero(self._signs), self._supports)

    def _decision(self, score: float) -> float:
        if score == 0.0 or self._inverse is None:
            return score
        kernels, solution = self._solve()
        solution = self._inverse.refine(solution, kernels)
        schur: float = self._inverse.schur(self._supports.self_kernel(), kernels, solution)
        return self.ridge / schur * score

    def _decide_rows(self, rows: Rows | list[Features], decisions: list[Any]) -> None:
        decisions.extend(self.decision_function_one(rows[i]) for i in range(len(rows)))

    def _solve(self) -> tuple[Any, Any]:
        """Return the kernel ``k`` between the point and each slot, and ``A k``."""
        kernels = self._supports.kernels(self._inverse.capacity)
        return kernels, self._inverse.times(kernels)

    def _update(self, x: Features, sign: float, score: float) -> None:
        if self._inverse is None:
            self._inverse = InverseGram(self.ridge)
            self._signs = np.zeros(0)
        inverse, supports, w = self._inverse, self._supports, self._weight
        self_kernel = supports.self_kernel()
        if w != 1.0 and w * self_kernel > _MAX_KERNEL_TO_RIDGE * self.ridge:
            raise ParameterError(
                f"weight {w:g} makes the ridge vanish beside it: give less, or use a larger ridge"
            )
        if inverse.reserve(len(supports) + 1):
            self._signs = np.pad(self._signs, (0, inverse.capacity - len(self._signs)))
        recomputed = inverse.prepare(self_kernel, w)
        kernels, solution = self._solve()
        if recomputed:
            coefficients = inverse.times(self._signs)
        else:
            coefficients = np.zeros(inverse.capacity)
            supports.write_coefficients(coefficients)
        if self._over_budget(coming=1):
            evicted = supports.evict(self._rank_to_evict())
            column = inverse.remove(evicted, self._guard)
            # The products A k and A y are corrected for the eviction, not computed again.
            solution -= solution[evicted] * column
            coefficients -= coefficients[evicted] * column
            kernels[evicted] = self._signs[evicted] = 0.0
        solution = inverse.refine(solution, kernels)
        schur = inverse.schur(self_kernel, kernels, solution, w)
        slot = supports.add(x, 0.0)
        kernels[slot] = self_kernel
        inverse.insert(slot, kernels, solution, schur, self._guard)
        coefficient = (sign - float(solution @ self._signs)) / schur
        self._signs[slot] = sign
        coefficients -= coefficient * solution
        coefficients[slot] = coefficient
        supports.set_coefficients(inverse.refine(coefficients, self._signs))

    def _rank_to_evict(self) -> int:
        """Age rank, from 0 for the oldest, of the support to evict on a full budget."""
        return 0


class SOP(_SecondOrder):
    """Second-order Perceptron, in dual form.

    Let ``y`` be the labels of the supports, ``G`` their Gram matrix, ``k`` the kernel between them
    and the example, and ``A = (a I + G)^{-1}``. The score is
    ``a / (a + k(x, x) - k' A k) * y' A k``. This is what a ridge regression of the labels predicts
    that includes the example itself, with label 0. Every mistake becomes a support.

    Parameters
    ----------
    ridge
        The paper's ``a``, positive.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis; here, the mistakes.

    Raises
    ------
    ParameterError
        If `ridge` is not a number above 0.

    Notes
    -----
    The score has the sign of ``y' A k``, a sum over the supports with the coefficients ``A y``. For
    ``m`` supports, a prediction therefore takes O(m) time. An update and `decision_function_one`
    take O(m^2) time, and ``A`` takes O(m^2) memory. Columns are float64 whatever `column_type` is.

    Weights are those of weighted least squares: for a support of weight ``w``, the diagonal has
    ``a / w`` instead of ``a``, as if the support were stored ``w`` times.

    Rounding errors of a score grow with ``k(x, x) / a``. Solutions are refined where the errors may
    matter. With the linear and polynomial kernels without `normalize`, an example is refused if
    ``k(x, x) / a`` exceeds 1e10. With a kernel of your own, keep it below that yourself.

    References
    ----------
    .. [1] N. Cesa-Bianchi, A. Conconi, C. Gentile, "A second-order Perceptron algorithm", SIAM
       Journal on Computing 34 (2005).
    .. [2] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget Perceptron", Machine Learning 69 (2007), section 4 (SOP).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import SOP
    >>> evaluate.progressive_val_score(datasets.Phishing(), SOP(), metrics.Accuracy())
    Accuracy: 86.40%
    """

    def __init__(self, ridge: float = 1.0, kernel: Kernel | None = None) -> None:
        super().__init__(ridge, kernel, None)


class RBSOP(Drawing, _SecondOrder):
    """Second-order Perceptron on a budget that evicts a support drawn uniformly at random.

    Parameters
    ----------
    budget
        Largest number of supports, at least 1.
    ridge
        The paper's ``a``, positive.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    seed
        Seed of the draws; None for random ones.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis; here, the mistakes.

    Raises
    ------
    ParameterError
        If `budget` is not an integer of at least 1, or `ridge` not a number above 0.

    See Also
    --------
    SOP : The score, without a budget.
    RBP : The same eviction, first order.

    References
    ----------
    .. [1] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget Perceptron", Machine Learning 69 (2007), section 4 (RBSOP).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import RBSOP
    >>> model = RBSOP(budget=50, seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 79.60%
    """

    def __init__(
        self,
        budget: int = 100,
        ridge: float = 1.0,
        kernel: Kernel | None = None,
        seed: int | None = None,
    ) -> None:
        budget = check_integer("budget", budget)
        super().__init__(ridge, kernel, budget)
        self.budget = budget
        self.seed = check_seed(seed)
        self._start_draws(self.seed)

    def _rank_to_evict(self) -> int:
        return self._draw(self.budget)


class LBSOP(_SecondOrder):
    """Second-order Perceptron on a budget that evicts the oldest support.

    Parameters
    ----------
    budget
        Largest number of supports, at least 1.
    ridge
        The paper's ``a``, positive.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis; here, the mistakes.

    Raises
    ------
    ParameterError
        If `budget` is not an integer of at least 1, or `ridge` not a number above 0.

    See Also
    --------
    SOP : The score, without a budget.
    LBP : The same eviction, first order.

    References
    ----------
    .. [1] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget Perceptron", Machine Learning 69 (2007), section 4 (LBSOP).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import LBSOP
    >>> evaluate.progressive_val_score(datasets.Phishing(), LBSOP(budget=50), metrics.Accuracy())
    Accuracy: 83.60%
    """

    def __init__(self, budget: int = 100, ridge: float = 1.0, kernel: Kernel | None = None) -> None:
        budget = check_integer("budget", budget)
        super().__init__(ridge, kernel, budget)
        self.budget = budget
