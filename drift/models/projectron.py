"""Perceptrons that project: an example that the supports nearly span makes no new support."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

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

    Let ``P k`` be the projection of ``k(x, .)`` onto the span of the supports, and
    ``delta = k(x, .) - P k`` its error. On a mistake, if ``||delta||`` is at most the tolerance,
    the hypothesis becomes ``f + y P k``, over the same supports. Otherwise it becomes
    ``f + y k(x, .)``, and the example a support. The number of supports is bounded. The bound
    depends on the data and the tolerance, and is not known beforehand.

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
    For ``m`` supports, a mistake takes O(m^2) time, and the factor of the supports' Gram matrix
    O(m^2) memory. Columns are float64 whatever `column_type` is. The mistake bound holds if
    ``k(x, x) <= 1``. An error ``||delta||^2`` of up to 2^-40 of ``k(x, x)`` counts as 0, and so
    does an excess over the tolerance by as much. The weight of an example multiplies the update;
    the tolerance ignores it. If ``||k(x, .)||`` is at most the tolerance for every example, no
    example becomes a support, and the score stays 0.

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

    A mistake is learnt as by `Projectron`, with the projection ``P k`` and its error ``delta``. A
    margin ``y f(x)`` in (0, 1] has the loss ``l = 1 - y f(x)``. If ``||delta|| / eta`` is below
    ``l``, the hypothesis becomes ``f + y tau P k``, where ``tau`` is the smallest of
    ``l / ||P k||^2``, ``2 (l - ||delta|| / eta) / ||P k||^2`` and 1. Such an example never becomes
    a support.

    From the first label on that is not bool, 0/1 or -1/+1, each class has a hypothesis and a span.
    The margin is then ``f_y(x) - max_{r != y} f_r(x)``. An update is added to the hypothesis of the
    example's class and subtracted from that of the best other class. Each of the two is projected
    onto the span of its class. Their squared errors are summed, and so are their squared norms.

    Parameters
    ----------
    tolerance
        The paper's ``eta``, at least 0, in units of ``sqrt(k(x, x))``: the largest error that the
        projection of a mistake may make. With 0 only examples that the supports span are
        projected.
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
    A small margin takes O(m^2) time, as a mistake does; all else is as in `Projectron`. The weight
    ``w`` of an example multiplies the update of a mistake, and ``tau`` is at most ``w`` instead of
    1. A difference ``l - ||delta|| / eta`` within rounding of 0 counts as 0.

    Each class has a factor of its supports' Gram matrix. If the error of a mistake exceeds the
    tolerance, the example becomes a support of the two classes, except of one whose supports span
    it.

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
    _class_update_margin = 1.0
    _stored_names: ClassVar = {"_class_projectors": "_spans", "_pending_step": "_small_margin"}

    def __init__(
        self,
        tolerance: float = 0.1,
        kernel: Kernel | None = None,
        squared: bool = False,  # noqa: FBT001, FBT002 - River passes parameters by name
    ) -> None:
        super().__init__(tolerance, kernel, squared)
        # Between the two hooks of a step: projections of a small margin by class index, and tau.
        self._pending_step: tuple[dict[int, Projection], float] | None = None
        self._class_projectors: list[ClassProjector] = []  # by class index

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        error_bound = self._supports.error_bound()
        return self._plan_update(
            sign * score, error_bound, lambda: {0: self._projector.project(self._supports)}
        )

    def _plan_update(
        self, margin: float, error_bound: float, project: Callable[[], dict[int, Projection]]
    ) -> bool:
        """Whether the point causes an update. Its projections, if any are made, are kept for it."""
        if margin <= 0.0:
            return True
        loss = 1.0 - margin
        if loss <= error_bound:
            return False
        projections = project()
        tau = margin_step(
            loss,
            projections.values(),
            self.tolerance,
            error_bound,
            self._weight,
            squared=self.squared,
        )
        if tau > 0.0:
            self._pending_step = projections, tau
        return tau > 0.0

    def _update(self, x: Features, sign: float, score: float) -> None:
        if self._pending_step is None:
            super()._update(x, sign, score)
            return
        (projections, tau), self._pending_step = self._pending_step, None
        self._projector.absorb(self._supports, projections[0], sign * tau)

    # --- more than two classes -----------------------------------------------------------------

    def _split_into_classes(self) -> None:
        super()._split_into_classes()
        slots = self._supports.slots_by_age
        self._class_projectors = [self._projector.for_class(slots) for _ in self._halves]
        self._projector = Projector()

    def _add_class(self, y: Label) -> None:
        super()._add_class(y)
        self._class_projectors.append(ClassProjector())

    def _project(self, k: int, rival: int) -> dict[int, Projection]:
        """Project the point onto the spans of class `k` and its rival; result by class index."""
        kernels, self_kernel = self._supports.kernels(), self._supports.self_kernel()
        projectors = self._class_projectors
        return {c: projectors[c].project(kernels, self_kernel) for c in (k, rival) if c >= 0}

    def _should_update_class(self, k: int, rival: int, margin: float, error_bound: float) -> bool:
        return self._plan_update(margin, error_bound, lambda: self._project(k, rival))

    def _update_class(self, x: Features, k: int, rival: int, scores: Array) -> None:
        if self._pending_step is not None:
            (projections, tau), self._pending_step = self._pending_step, None
            self._absorb(projections, k, tau)
            return
        projections = self._project(k, rival)
        if within(self.tolerance, projections.values(), squared=self.squared):
            self._absorb(projections, k, self._weight)
            return
        new = {c: p for c, p in projections.items() if p.squared_error > 0.0}
        w = self._weight
        self._absorb({c: p for c, p in projections.items() if c not in new}, k, w)
        slot = self._add_support(x, {c: w if c == k else -w for c in new})
        for c, projection in new.items():
            self._class_projectors[c].insert(slot, projection, self._guard)

    def _absorb(self, projections: dict[int, Projection], k: int, tau: float) -> None:
        """Add the projection of class `k`, times `tau`, to its prototype; subtract the rival's."""
        for c, projection in projections.items():
            coefficients = self._prototypes.matrix[c]
            self._guard.save(coefficients)
            self._class_projectors[c].absorb(coefficients, projection, tau if c == k else -tau)
