"""Perceptrons that project: an example that the supports nearly span makes no new support."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from drift.models._projector import Projector, margin_step
from drift.models.base import KernelClassifier, check_number

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.models._projector import Projection
    from drift.types import Features

__all__ = ["Projectron", "ProjectronPlusPlus"]


class Projectron(KernelClassifier):
    """Projectron: a mistake that lies near the span of the supports is projected onto it.

    On a mistake, with ``P k`` the projection of ``k(x, .)`` onto the span of the supports and
    ``delta = k(x, .) - P k`` its error, the hypothesis becomes ``f + y P k``, over the same
    supports, if ``||delta||`` is at most the tolerance, else ``f + y k(x, .)``, with `x` a new
    support. The number of supports is bounded, by the data and the tolerance, and not known
    beforehand.

    Parameters
    ----------
    tolerance
        The paper's ``eta``, at least 0, in units of ``sqrt(k(x, x))``: the largest error that a
        projection may make. With 0 the hypothesis is that of the `Perceptron`, over linearly
        independent supports.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    squared
        Compare ``||delta||^2`` with the tolerance, as the paper's printed experiments did, instead
        of ``||delta||``, as its figures and theorems do.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that were added to the hypothesis, projected or not; here, of mistakes.

    Raises
    ------
    ParameterError
        If `tolerance` is not a number of at least 0.

    Notes
    -----
    A mistake takes O(m^2) time, and the factor of the supports' Gram matrix O(m^2) memory, for
    ``m`` supports; columns are float64 whatever `column_type` says. The mistake bound is for
    ``k(x, x) <= 1``. An error ``||delta||^2`` of up to 2^-40 of ``k(x, x)`` is rounding, and none.
    Where ``k(x, x)`` is below the tolerance for every example, none becomes a support and
    the score stays 0.

    See Also
    --------
    ProjectronPlusPlus : Learns from correct predictions of a small margin, too.
    ALMA2 : An approximate maximal margin, with projections or without.

    References
    ----------
    .. [1] F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", Journal of
       Machine Learning Research 10 (2009), section 3, figure 2; section 7.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import Projectron
    >>> model = Projectron(tolerance=1.0)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 82.32%
    >>> model.n_supports, model.n_mistakes
    (59, 221)
    """

    _wide = True

    def __init__(
        self,
        tolerance: float = 0.1,
        kernel: Kernel | None = None,
        squared: bool = False,  # noqa: FBT001, FBT002 - River passes parameters by name
    ) -> None:
        check_number("tolerance", tolerance)
        super().__init__(kernel)
        self.tolerance = tolerance
        self.squared = squared
        self._projector = Projector()

    def _error(self, projection: Projection) -> float:
        """What the tolerance is about."""
        error = projection.squared_error
        return error if self.squared else math.sqrt(error)

    def _update(self, x: Features, sign: float, score: float) -> None:
        projection = self._projector.project(self._supports)
        if self._error(projection) <= self.tolerance:
            self._projector.absorb(self._supports, projection, sign)
        else:
            self._projector.insert(self._supports, projection, x, sign)


class ProjectronPlusPlus(Projectron):
    """Projectron++: a Projectron that also projects correct predictions of a small margin.

    A mistake is learnt as the `Projectron` learns it. An example with a margin ``y f(x)`` in
    (0, 1] and so the loss ``l = 1 - y f(x)``, whose projection ``P k`` has the error ``delta`` with
    ``||delta|| / eta < l``, makes the hypothesis ``f + y tau P k``, where ``tau`` is the smallest
    of ``l / ||P k||^2``, ``2 (l - ||delta|| / eta) / ||P k||^2`` and 1. It never becomes a support.

    Parameters
    ----------
    tolerance
        The paper's ``eta``, at least 0, in units of ``sqrt(k(x, x))``: the largest error that the
        projection of a mistake may make. With 0 only what the supports span is projected.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    squared
        Take ``||delta||^2`` for ``||delta||`` throughout, as the paper's printed experiments did,
        instead of ``||delta||``, as its figures and theorems do.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that were added to the hypothesis, projected or not: of mistakes, and of
        small margins that could be projected.

    Raises
    ------
    ParameterError
        If `tolerance` is not a number of at least 0.

    Notes
    -----
    A mistake and a small margin take O(m^2) time each; all else is as it is with `Projectron`. A
    loss beyond the error, ``l - ||delta|| / eta``, that is within rounding of 0 is none.

    References
    ----------
    .. [1] F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", Journal of
       Machine Learning Research 10 (2009), section 4, figure 5; section 7.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import ProjectronPlusPlus
    >>> model = ProjectronPlusPlus(tolerance=1.0)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 82.48%
    >>> model.n_supports, model.n_mistakes, model.n_updates
    (58, 219, 232)
    """

    _update_margin = 1.0

    def __init__(
        self,
        tolerance: float = 0.1,
        kernel: Kernel | None = None,
        squared: bool = False,  # noqa: FBT001, FBT002 - River passes parameters by name
    ) -> None:
        super().__init__(tolerance, kernel, squared)
        self._small_margin: tuple[Projection, float] | None = None  # and tau, within one step

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        margin, rounding = sign * score, self._supports.rounding()
        if margin <= 0.0:
            return True
        loss = 1.0 - margin
        if loss <= rounding:
            return False
        projection = self._projector.project(self._supports)
        error, squared_norm = self._error(projection), projection.squared_norm
        tau = margin_step(loss, error, squared_norm, self.tolerance, rounding)
        if tau > 0.0:
            self._small_margin = projection, tau
        return tau > 0.0

    def _update(self, x: Features, sign: float, score: float) -> None:
        if self._small_margin is None:
            super()._update(x, sign, score)
            return
        (projection, tau), self._small_margin = self._small_margin, None
        self._projector.absorb(self._supports, projection, sign * tau)
