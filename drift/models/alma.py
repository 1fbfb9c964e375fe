"""ALMA: an approximate maximal margin by updates that shrink, with projections or without."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from drift._checks import check_number
from drift.models._linalg.span import Projector, within
from drift.models._template.binary import KernelClassifier

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.types import Features

__all__ = ["ALMA2"]


class ALMA2(KernelClassifier):
    """Approximate large margin algorithm with the Euclidean norm, ALMA_2.

    It works on the normalised ``phi = k(x, .) / sqrt(k(x, x))``. Let ``n`` be the number of
    updates, this one included. An example whose margin ``y f(x) / sqrt(k(x, x))`` is at most
    ``(1 - alpha) B / sqrt(n)`` is an update: ``y C / sqrt(n) phi`` is added to ``f``. If the norm
    of ``f`` is then above 1, ``f`` is divided by it.

    Parameters
    ----------
    alpha
        Above 0 and up to 1: the share of the largest margin that the hypothesis may lack. With 1
        only mistakes are updates.
    B
        Positive, the scale of the margins that are learnt; None for ``1 / alpha``.
    C
        Positive, the scale of the updates.
    tolerance
        The paper's ``eta``, at least 0. If the error ``C / sqrt(n) ||phi - P phi||`` is at most
        this, the update adds the projection ``P phi`` onto the span of the supports, and no new
        support. With None nothing is projected, and every update adds a support.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of updates: mistakes, and examples with a small margin.

    Raises
    ------
    ParameterError
        If `alpha` is not above 0 and up to 1, `B` or `C` not a positive number, or `tolerance` not
        a number of at least 0.

    Notes
    -----
    The weight of an example multiplies its ``C``.

    Scores are ``f(x)``. They are not divided by ``sqrt(k(x, x))``, which would not change their
    sign. If ``k(x, x) = 0``, ``phi`` is the zero vector and its margin 0: the example counts as an
    update, but adds no support.

    With a `tolerance`, the projection's error is measured before the division by the norm. For
    ``m`` supports an update then takes O(m^2) time, and the factor of the supports' Gram matrix
    O(m^2) memory. Since updates shrink, ``m`` is at most ``(C / eta)^2``. Columns are always
    float64.

    With a `tolerance` there is a bound on the mistakes ([2]_, theorem 7), against hypotheses of
    norm 1 or less whose margin is above `tolerance`. It holds if ``C^2 + 2 (1 - alpha) B C = 1``;
    the norm of ``phi``, which must be at most 1, always is. The defaults do not satisfy the
    equation. With ``C = 0.895`` and the other two defaults they do.

    See Also
    --------
    ProjectronPlusPlus : Projects mistakes and small margins, too, with steps that do not shrink.

    References
    ----------
    .. [1] C. Gentile, "A new approximate maximal margin classification algorithm", Journal of
       Machine Learning Research 2 (2001), figure 1 with p = 2.
    .. [2] F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", Journal of
       Machine Learning Research 10 (2009), section 6 (the projections).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import ALMA2
    >>> plain, bounded = ALMA2(), ALMA2(tolerance=0.05)
    >>> evaluate.progressive_val_score(datasets.Phishing(), plain, metrics.Accuracy())
    Accuracy: 86.40%
    >>> evaluate.progressive_val_score(datasets.Phishing(), bounded, metrics.Accuracy())
    Accuracy: 86.08%
    >>> plain.n_supports, bounded.n_supports
    (195, 73)
    """

    _wide = True  # `_squared_norm` sums up scores, with their rounding errors

    def __init__(
        self,
        alpha: float = 0.9,
        B: float | None = None,
        C: float = math.sqrt(2.0),
        tolerance: float | None = None,
        kernel: Kernel | None = None,
    ) -> None:
        check_number("alpha", alpha, above=True, most=1.0)
        if B is not None:
            check_number("B", B, above=True)
        check_number("C", C, above=True)
        if tolerance is not None:
            check_number("tolerance", tolerance)
        super().__init__(kernel)
        self.alpha = alpha
        self.B = B
        self.C = C
        self.tolerance = tolerance
        self._projector = Projector()
        self._squared_norm = 0.0  # ||f||^2

    @property
    def _shares_supports(self) -> bool:  # type: ignore[override]
        return self.tolerance is None  # the projector uses the store's slots

    def _length(self) -> float:
        """sqrt(k(x, x)); 0 if that is negative, under a function that is not a kernel."""
        return math.sqrt(max(self._supports.self_kernel(), 0.0))

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        factor = 1.0 / self.alpha if self.B is None else self.B
        margin = (1.0 - self.alpha) * factor / math.sqrt(self.n_updates + 1)
        return sign * score <= margin * self._length() + self._supports.error_bound()

    def _update(self, x: Features, sign: float, score: float) -> None:
        length = self._length()
        if length == 0.0:
            return
        rate = self._weight * self.C / math.sqrt(self.n_updates)
        added = self._add_or_project(x, sign, rate, length)
        margin = sign * score / length
        self._squared_norm += 2.0 * rate * margin + rate * rate * added
        if self._squared_norm > 1.0:
            self._supports.scale_coefficients(1.0 / math.sqrt(self._squared_norm))
            self._squared_norm = 1.0

    def _add_or_project(self, x: Features, sign: float, rate: float, length: float) -> float:
        """Add ``sign rate phi`` or its projection; return the squared norm of phi or P phi."""
        supports, coefficient = self._supports, sign * rate / length
        if self.tolerance is None:
            supports.add(x, coefficient)
            return 1.0
        projection = self._projector.project(supports)
        if within(self.tolerance * length / rate, [projection], squared=False):
            self._projector.absorb(supports, projection, coefficient)
            return projection.squared_norm / (length * length)
        self._projector.insert(supports, projection, x, coefficient)
        return 1.0
