"""Projection of an example onto the span of the supports, for models that never evict one."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.models._base.guard import Part
from drift.models._base.rounding import RELATIVE_TOLERANCE, sums_or_zeros
from drift.models._linalg.gram import GramFactor

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from numpy.typing import NDArray

    from drift.models._store.built import Guard
    from drift.models._store.supports import SupportSet
    from drift.types import Features

__all__ = ["ClassProjector", "Projection", "Projector", "margin_step", "within"]


class Projection(NamedTuple):
    """Where the projection ``P k`` of an example ``k = k(x, .)`` lies.

    Attributes
    ----------
    squared_norm
        ``||P k||^2``.
    squared_error
        ``||k - P k||^2``, the paper's ``||delta||^2``; 0 where that is rounding error.
    whitened
        ``P k`` in an orthonormal basis of the span.
    """

    squared_norm: float
    squared_error: float
    whitened: NDArray[Any]


def _projection(factor: Any, row: NDArray[Any], self_kernel: float) -> Projection:
    """Project a point, given the kernel between it and the supports, in order, and itself."""
    whitened = factor.whiten(row)
    error = factor.residual(whitened, self_kernel)
    return Projection(float(whitened @ whitened), error, whitened)


class Projector(Part):
    """The span of a support set, to whose supports `insert` alone adds, and which loses none.

    The support set is an argument, not a part, of it: a copy of a model copies each by itself.
    """

    def __init__(self) -> None:
        self._factor: Any = None  # a GramFactor, from the first projection on

    def project(self, supports: SupportSet) -> Projection:
        """Project the point that the supports have read; changes nothing that shows."""
        if self._factor is None:
            self._factor = GramFactor()
        kernels = supports.kernels(self._factor.capacity)
        return _projection(self._factor, kernels, supports.self_kernel())

    def absorb(self, supports: SupportSet, projection: Projection, coefficient: float) -> None:
        """Add ``coefficient P k`` to the hypothesis: no new support."""
        if len(supports):
            values = self._factor.coefficients(projection.whitened)
            values *= coefficient
            supports.add_coefficients(values)

    def for_class(self, slots_by_age: Iterable[int]) -> ClassProjector:
        """Return a copy of the span for a class, whose supports are in these slots."""
        return ClassProjector(copy.deepcopy(self._factor), slots_by_age)

    def insert(
        self, supports: SupportSet, projection: Projection, x: Features, coefficient: float
    ) -> None:
        """Add ``coefficient k`` to the hypothesis: a new support, with a positive error."""
        supports.add(x, coefficient)
        error = math.sqrt(projection.squared_error)
        self._factor.append(projection.whitened, error, supports.guard)


class ClassProjector(Part):
    """The span of the supports of one class in a store that several classes share.

    Parameters
    ----------
    factor
        Factor of the Gram matrix of the class's supports; None where there are none.
    slots_by_age
        Their slots, the oldest first.
    """

    def __init__(self, factor: Any = None, slots_by_age: Iterable[int] = ()) -> None:
        self._factor = GramFactor() if factor is None else factor
        self._slots = list(slots_by_age)

    def project(self, row: NDArray[Any], self_kernel: float) -> Projection:
        """Project a point, given the kernel between it and every slot, and with itself."""
        by_age = np.zeros(self._factor.capacity)
        by_age[: len(self._slots)] = row[self._slots]
        return _projection(self._factor, by_age, self_kernel)

    def absorb(
        self, coefficients: NDArray[Any], projection: Projection, coefficient: float
    ) -> None:
        """Add ``coefficient P k`` to a hypothesis, its coefficients by slot."""
        more = coefficient * self._factor.coefficients(projection.whitened)[: len(self._slots)]
        coefficients[self._slots] = sums_or_zeros(coefficients[self._slots], more)

    def insert(self, slot: int, projection: Projection, guard: Guard) -> None:
        """Add the support in a slot; its projection error is positive."""
        self._slots.append(slot)
        self._factor.append(projection.whitened, math.sqrt(projection.squared_error), guard)


def within(tolerance: float, projections: Collection[Projection], *, squared: bool) -> bool:
    """Whether the errors of projections add up to no more than the tolerance, up to rounding.

    Parameters
    ----------
    tolerance
        ``eta``.
    projections
        The projections.
    squared
        Whether the tolerance is on the squared error.
    """
    largest = tolerance if squared else tolerance * tolerance
    error = math.fsum(projection.squared_error for projection in projections)
    return error - largest <= RELATIVE_TOLERANCE * math.fsum(
        (error, *(projection.squared_norm for projection in projections))
    )


def margin_step(  # noqa: PLR0913 - the symbols of one formula
    loss: float,
    projections: Collection[Projection],
    tolerance: float,
    error_bound: float,
    weight: float,
    *,
    squared: bool,
) -> float:
    """Step of Projectron++ for an example whose margin is positive but small; 0 for none.

    Parameters
    ----------
    loss
        ``l = 1 - margin``.
    projections
        The projections of what is added to the hypothesis.
    tolerance
        ``eta``.
    error_bound
        Losses up to this are rounding errors.
    weight
        The largest step.
    squared
        Whether the tolerance is on the squared error.

    Returns
    -------
    float
        ``tau``, the smallest of ``l / ||P k||^2``, ``2 (l - error / eta) / ||P k||^2`` and the
        weight.

    Examples
    --------
    >>> margin_step(0.5, [Projection(1.0, 0.02, None)], 0.1, 0.0, 1.0, squared=True)
    0.5
    >>> margin_step(0.5, [Projection(1.0, 0.06, None)], 0.1, 0.0, 1.0, squared=True)
    0.0
    """
    error = math.fsum(projection.squared_error for projection in projections)
    squared_norm = math.fsum(projection.squared_norm for projection in projections)
    error = error if squared else math.sqrt(error)
    excess = loss
    if error > 0.0:
        excess -= error / tolerance if tolerance > 0.0 else math.inf
    if excess <= error_bound:
        return 0.0
    step = min(loss, 2.0 * excess)
    return step / squared_norm if step < weight * squared_norm else weight
