"""Perceptrons that project: an example that the supports nearly span makes no new support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift._checks import check_number
from drift.models._linalg.span import ClassProjector, Projector, margin_step, within
from drift.models._template.binary import KernelClassifier
from drift.models._template.two_or_more import TwoOrMore

if TYPE_CHECKING:
    from collections.abc import Callable

    from drift.kernels import Kernel
    from drift.models._linalg.span import Projection
    from drift.types import Array, Features, Label

__all__ = ["Projectron", "ProjectronPlusPlus"]


class Projectron(KernelClassifier):
    """Projectron: a mistake that lies near the span of the supports is projected onto it.

    On a mistake, with ``P k`` the projection of ``k(x, .)`` onto the span of the supports and
    ``delta = k(x, .) - P k`` its error, the hypothesis becomes ``f + y P k``, over the same
    supports, if ``||delta||`` is at most the tolerance, else ``f + y k(x, .)``, with `x` a new
    support. The number of supports is bounded by the data and the tolerance, but unknown
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
        Number of examples that were added to the hypothesis, projected or not; here, the mistakes.

    Raises
    ------
    ParameterError
        If `tolerance` is not a number of at least 0.

    Notes
    -----
    A mistake takes O(m^2) time, and the factor of the supports' Gram matrix O(m^2) memory, for
    ``m`` supports; columns are float64 whatever `column_type` is. The mistake bound is for
    ``k(x, x) <= 1``. An error ``||delta||^2`` of up to 2^-40 of ``k(x, x)`` counts as 0, and so
    does an excess over the tolerance by as much. The tolerance ignores the example's weight, which
    multiplies the update. If ``||k(x, .)||`` is at most the tolerance for every example, none
    becomes a support and the score stays 0.

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
    Accuracy: 84.72%
    >>> model.n_supports, model.n_mistakes
    (87, 191)
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

    def _update(self, x: Features, sign: float, score: float) -> None:
        projection = self._projector.project(self._supports)
        if within(self.tolerance, [projection], squared=self.squared):
            self._projector.absorb(self._supports, projection, self._weight * sign)
        else:
            self._projector.insert(self._supports, projection, x, self._weight * sign)


class ProjectronPlusPlus(Projectron, TwoOrMore):
    """Projectron++, for two classes or more: projects correct predictions of a small margin, too.

    A mistake is learnt as the `Projectron` learns it. An example with a margin ``y f(x)`` in
    (0, 1] and so the loss ``l = 1 - y f(x)``, whose projection ``P k`` has the error ``delta`` with
    ``||delta|| / eta < l``, makes the hypothesis ``f + y tau P k``, where ``tau`` is the smallest
    of ``l / ||P k||^2``, ``2 (l - ||delta|| / eta) / ||P k||^2`` and 1. It never becomes a support.

    With a label other than bool, 0/1 or -1/+1 each class gets a hypothesis and a span.
    The margin is then ``f_y(x) - max_{r != y} f_r(x)``; an update adds to the example's class
    what it takes from the best other, each part projected onto the span of its class, and both
    squared errors and both squared norms add up.

    Parameters
    ----------
    tolerance
        The paper's ``eta``, at least 0, in units of ``sqrt(k(x, x))``: the largest error that the
        projection of a mistake may make. With 0 only what the supports span is projected.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    squared
        Use ``||delta||^2`` for ``||delta||`` throughout, as the paper's printed experiments did,
        instead of ``||delta||``, as its figures and theorems do.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that were added to the hypothesis, projected or not: mistakes, and small
        margins that could be projected.

    Raises
    ------
    ParameterError
        If `tolerance` is not a number of at least 0.

    Notes
    -----
    A mistake and a small margin take O(m^2) time each; all else is as in `Projectron`. With a
    weight ``w``, ``tau`` is at most ``w``, and a mistake's update is multiplied by it. A loss
    beyond the error, ``l - ||delta|| / eta``, counts as 0 within rounding.

    Each class has a factor of its supports' Gram matrix. Where the error of a mistake is beyond the
    tolerance, a part that its class's supports span exactly is projected all the same.

    References
    ----------
    .. [1] F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", Journal of
       Machine Learning Research 10 (2009), section 4, figure 5; section 5; section 7.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import ProjectronPlusPlus
    >>> model = ProjectronPlusPlus(tolerance=1.0)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 84.40%
    >>> model.n_supports, model.n_mistakes, model.n_updates
    (86, 195, 200)
    """

    _update_margin = 1.0
    _class_margin = 1.0

    def __init__(
        self,
        tolerance: float = 0.1,
        kernel: Kernel | None = None,
        squared: bool = False,  # noqa: FBT001, FBT002 - River passes parameters by name
    ) -> None:
        super().__init__(tolerance, kernel, squared)
        # The projection of a small margin, by class index, and tau, between two hooks of a step.
        self._small_margin: tuple[dict[int, Projection], float] | None = None
        self._spans: list[ClassProjector] = []  # by class index

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        rounding = self._supports.rounding()
        return self._causes_update(
            sign * score, rounding, lambda: {0: self._projector.project(self._supports)}
        )

    def _causes_update(
        self, margin: float, rounding: float, project: Callable[[], dict[int, Projection]]
    ) -> bool:
        """Whether an example causes an update; keep the projection made for that until then."""
        if margin <= 0.0:
            return True
        loss = 1.0 - margin
        if loss <= rounding:
            return False
        parts = project()
        tau = margin_step(
            loss, parts.values(), self.tolerance, rounding, self._weight, squared=self.squared
        )
        if tau > 0.0:
            self._small_margin = parts, tau
        return tau > 0.0

    def _update(self, x: Features, sign: float, score: float) -> None:
        if self._small_margin is None:
            super()._update(x, sign, score)
            return
        (parts, tau), self._small_margin = self._small_margin, None
        self._projector.absorb(self._supports, parts[0], sign * tau)

    # --- more than two classes -----------------------------------------------------------------

    def _split_into_classes(self) -> None:
        super()._split_into_classes()
        slots = self._supports.slots
        self._spans = [self._projector.for_class(slots) for _ in self._halves]
        self._projector = Projector()

    def _add_class(self, y: Label) -> None:
        super()._add_class(y)
        self._spans.append(ClassProjector())

    def _project(self, k: int, rival: int) -> dict[int, Projection]:
        """Project the point onto the spans of class `k` and its rival; result by class index."""
        kernels, self_kernel = self._supports.kernels(), self._supports.self_kernel()
        return {c: self._spans[c].project(kernels, self_kernel) for c in (k, rival) if c >= 0}

    def _should_update_class(self, k: int, rival: int, margin: float, rounding: float) -> bool:
        return self._causes_update(margin, rounding, lambda: self._project(k, rival))

    def _update_class(self, x: Features, k: int, rival: int, scores: Array) -> None:
        if self._small_margin is not None:
            (parts, tau), self._small_margin = self._small_margin, None
            self._absorb(parts, k, tau)
            return
        parts = self._project(k, rival)
        if within(self.tolerance, parts.values(), squared=self.squared):
            self._absorb(parts, k, self._weight)
            return
        fresh = {c: part for c, part in parts.items() if part.squared_error > 0.0}
        w = self._weight
        self._absorb({c: part for c, part in parts.items() if c not in fresh}, k, w)
        slot = self._add_support(x, {c: w if c == k else -w for c in fresh})
        for c, part in fresh.items():
            self._spans[c].insert(slot, part, self._guard)

    def _absorb(self, parts: dict[int, Projection], k: int, tau: float) -> None:
        for c, part in parts.items():
            coefficients = self._prototypes.matrix[c]
            self._guard.save(coefficients)
            self._spans[c].absorb(coefficients, part, tau if c == k else -tau)
