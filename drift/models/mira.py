"""MIRA: the smallest change of all prototypes that gives an example its margin, on a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift._checks import check_choice, check_integer, check_number
from drift.errors import ParameterError
from drift.models._linalg.leave_one_out import largest_by_row
from drift.models._template.leave_one_out import LeaveOneOut
from drift.models._template.multiclass import MulticlassKernelClassifier

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.types import Array, Features

__all__ = ["MIRA"]

_CACHES = ("unbounded", "fixed", "variable")


class MIRA(LeaveOneOut, MulticlassKernelClassifier):
    r"""Margin Infused Relaxed Algorithm (ultraconservative, multiclass), with a cache.

    An example of class ``y`` with ``f_y(x) - max_{r != y} f_r(x) <= margin`` becomes a support. Its
    coefficients ``tau`` minimize ``k(x, x) |tau|^2 / 2 + sum_r tau_r (f_r(x) - margin [r = y])``
    subject to ``tau_r <= [r = y]`` and ``sum_r tau_r = 0``.

    Parameters
    ----------
    margin
        The paper's ``beta``, at least 0.
    budget
        Largest number of supports, at least 1, of the fixed cache; None for the others.
    cache
        ``"unbounded"`` keeps every support. ``"fixed"`` evicts a support before another is added
        on a full budget. ``"variable"`` adds the support, then evicts supports while the largest
        margin is at least `distill_margin`. Both evict the support with the largest margin, the
        oldest of equals. The margin is the score of the support's class above the best other
        class, without the support's own term.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    distill_margin
        The variable cache's threshold, above 0; None for `margin`, as in figure 2 of the paper.

    Attributes
    ----------
    n_mistakes : int
        Number of examples learnt whose label did not score above all others before the update.
    n_updates : int
        Number of examples that changed the hypothesis.

    Raises
    ------
    ParameterError
        If `margin` is not a number of at least 0, `cache` none of the three, `budget` given without
        a fixed cache or not an integer of at least 1 with it, or `distill_margin` not above 0.

    Notes
    -----
    An example with ``tau = 0`` is not stored, unless it is the first one. The first one gets 1 for
    its class, and -1 in equal shares for the others.

    The model keeps the supports' margins. For ``k`` classes and ``m`` supports that takes O(k m)
    memory and, for each support added or evicted, O(k m) time and a kernel row. Columns are float64
    whatever `column_type` is.

    With the weight ``w``, the coefficient of the example's class is at most ``w`` instead of 1.

    **The fixed cache keeps noise.** Noisy examples have the smallest margins, so they are evicted
    last and fill the cache, as in `CKS`. On the first 10,000 examples of a9a, at a budget of 100,
    the error is 36.3 %. The majority class has 23.8, `MRBP` 24.1, and
    ``PassiveAggressive(0.02, budget=100)`` 16.9. Use `PassiveAggressive` unless labels are clean
    and classes separable.

    On the paper's data, a `distill_margin` of ``margin / 2`` gives the cache sizes of figure 4;
    None gives larger caches.

    References
    ----------
    .. [1] K. Crammer, J. Kandola, Y. Singer, "Online classification on a budget", Advances in
       Neural Information Processing Systems 16 (2003), figures 1 to 3.
    .. [2] K. Crammer, Y. Singer, "Ultraconservative online algorithms for multiclass problems",
       Journal of Machine Learning Research 3 (2003), section 6.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from drift.kernels import RBF
    >>> from drift.models import MIRA
    >>> model = preprocessing.StandardScaler() | MIRA(budget=50, cache="fixed", kernel=RBF(0.2))
    >>> segments = datasets.ImageSegments().take(500)
    >>> evaluate.progressive_val_score(segments, model, metrics.Accuracy())
    Accuracy: 65.13%
    """

    _wide = True

    def __init__(
        self,
        margin: float = 0.01,
        budget: int | None = None,
        cache: str = "unbounded",
        kernel: Kernel | None = None,
        distill_margin: float | None = None,
    ) -> None:
        check_number("margin", margin)
        check_choice("cache", cache, _CACHES)
        if cache == "fixed":
            budget = check_integer("budget", budget)
        elif budget is not None:
            raise ParameterError(f"budget must be None with cache={cache!r}, not {budget!r}")
        threshold = margin if distill_margin is None else distill_margin
        if distill_margin is not None:
            check_number("distill_margin", distill_margin, above=True)
        elif cache == "variable":
            check_number("margin", margin, above=True)
        super().__init__(kernel, budget)
        self.margin = margin
        self.budget = budget
        self.cache = cache
        self.distill_margin = distill_margin
        self._threshold = threshold
        self._class_of: Any = None  # class index by slot, unless the cache is unbounded

    @property
    def _class_update_margin(self) -> float:  # type: ignore[override]
        return self.margin

    def _should_update_class(self, k: int, rival: int, margin: float, error_bound: float) -> bool:
        # If the margin is exactly reached, tau is 0: only the first support is stored then.
        below = margin < self.margin - error_bound or not len(self._supports)
        return below and self._supports.self_kernel() > 0.0

    def _update_class(self, x: Features, k: int, rival: int, scores: Array) -> None:
        n_classes, self_kernel = len(scores), self._supports.self_kernel()
        if rival < 0:  # a single class competes with the score 0
            scores = np.append(scores, 0.0)
        tau = smallest_change(k, scores, self.margin, self_kernel, self._weight)[:n_classes]
        coefficients = dict(enumerate(tau.tolist()))
        if self.cache == "unbounded":
            self._add_support(x, coefficients)
            return
        kernels = self._kernels_by_slot(n_classes)
        if self._over_budget(coming=1):
            self._evict_most_redundant()
        slot = self._add_support(x, coefficients)
        self._record(slot, kernels, tau)
        more = len(self._rest.sizes) - (0 if self._class_of is None else len(self._class_of))
        if more:
            classes = [] if self._class_of is None else self._class_of
            self._class_of = np.pad(np.array(classes, dtype=np.intp), (0, more))
        self._class_of[slot] = k
        while self.cache == "variable" and self._evict_most_redundant(self._threshold):
            pass

    def _margins(self) -> Array:
        others = self._rest.values.copy()
        own = np.arange(len(others)), self._class_of
        margins: Array = others[own]
        if others.shape[1] > 1:
            others[own] = -np.inf
            margins -= largest_by_row(others)
        return margins


def smallest_change(
    k: int, scores: Array, margin: float, self_kernel: float, weight: float = 1.0
) -> Array:
    """Solve for MIRA's coefficients, a projection onto the simplex, by sorting.

    Parameters
    ----------
    k
        Class index of the example.
    scores
        Score of each class.
    margin
        What class `k` is to score above the others.
    self_kernel
        ``k(x, x)``, positive.
    weight
        The largest coefficient, positive.

    Returns
    -------
    ndarray of shape (n_classes,)
        ``tau``. Where it would be 0: `weight` for class `k`, and ``-weight`` in equal shares for
        the others.

    Examples
    --------
    >>> import numpy as np
    >>> smallest_change(0, np.array([0.0, 1.0, -9.0]), margin=0.0, self_kernel=1.0)
    array([ 0.5, -0.5,  0. ])
    """
    # Let d_r be how far f_r / k(x, x) is below the best rival's (`below`), and d_k how far class k
    # is below it, the margin subtracted (`gap`). The solution has a level t: each rival's tau_r is
    # -max(0, t - d_r), and tau_k = min(weight, d_k - t) is minus their sum. Only differences of
    # scores occur. So a small weight is not lost beside a large score, nor a small score beside a
    # large weight.
    own = scores[k] - margin
    rivals = np.delete(scores, k)
    best = rivals.max()
    gap, below = (best - own) / self_kernel, (best - rivals) / self_kernel
    if gap <= 0.0:
        return _tau(k, weight, np.full(len(rivals), -weight / len(rivals)))
    ascending = np.sort(below)
    sums, counts = np.cumsum(ascending), np.arange(1, len(rivals) + 1)

    def level(levels: Array) -> float:
        # The first always counts: its distance is 0, because it is the best rival's.
        return float(levels[np.flatnonzero(ascending < levels)[-1]])

    t = level((sums + gap) / (counts + 1))
    own_change = gap - t
    if own_change > weight:
        t, own_change = level((sums + weight) / counts), weight
    return _tau(k, own_change, np.minimum(below - t, 0.0))


def _tau(k: int, own: float, rivals: Array) -> Array:
    """Coefficients by class index, from class `k`'s own and its rivals'."""
    tau: Array = np.insert(rivals, k, own)
    return tau
