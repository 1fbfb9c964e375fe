"""Scores of pairs of an input and an output under a joint kernel, as an argmax asks for them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from drift.errors import ParameterError
from drift.models._store.features import TIE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Pair = tuple[Any, Hashable]
    JointKernel = Callable[[Pair, Pair], float]

__all__ = ["Argmax", "Score", "kernel_row", "weighted_sum"]

#: Largest kernel value: sums of a few squares of it are finite.
_LARGEST = 2.0**500


class Argmax(Protocol):
    """What `StructuredProjectron` asks of an argmax."""

    def __call__(self, x: Any, score: Score, exclude: Hashable | None) -> Hashable | None:
        """Return the output other than `exclude` with the highest score; None if there is none."""


def kernel_row(joint_kernel: JointKernel, pair: Pair, others: Sequence[Pair]) -> Array:
    """Kernel between a pair and others, or ParameterError where that is no finite number."""
    values = [joint_kernel(pair, other) for other in others]
    try:
        row = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        row = np.full(len(others), math.nan)
    if row.shape != (len(others),) or not (abs(row) <= _LARGEST).all():
        raise ParameterError(
            f"joint_kernel must return a finite number for two pairs, not {values!r:.80} for a "
            f"pair with {len(others)} others"
        )
    return row


def weighted_sum(weights: Array, terms: Array, sizes: Array) -> tuple[float, float]:
    """Weighted sum of terms, 0 where that is rounding error; and a bound on that error."""
    total, rounding = float(weights @ terms), TIE * float(abs(weights) @ sizes)
    return (0.0 if abs(total) <= rounding else total), rounding


class Score:
    """The hypothesis at one input, as `StructuredProjectron` gives it to the argmax.

    Called with a candidate output ``y`` it returns ``f(x, y)``, at the cost of one kernel value for
    each support; a candidate that comes again costs nothing. A decoder that does not try candidates
    one by one makes its potentials from `supports`.

    Attributes
    ----------
    supports : list of ((x, y), coefficient)
        The supports and their coefficients, ``f = sum_i coefficient_i k((x_i, y_i), .)``.
    """

    def __init__(
        self,
        x: Any,
        joint_kernel: JointKernel,
        pairs: list[Pair],
        weights: Array,
    ) -> None:
        self._x = x
        self._joint_kernel = joint_kernel
        self._pairs = pairs
        self._weights = weights
        self._rows: dict[Hashable, Array] = {}

    def __call__(self, y: Hashable) -> float:
        """Score of an output."""
        row = self.row(y)
        return weighted_sum(self._weights, row, abs(row))[0]

    def row(self, y: Hashable) -> Array:
        """Kernel between the input with an output and each support."""
        if y not in self._rows:
            self._rows[y] = kernel_row(self._joint_kernel, (self._x, y), self._pairs)
        return self._rows[y]

    @property
    def supports(self) -> list[tuple[Pair, float]]:
        """The supports and their coefficients, the oldest first."""
        return list(zip(self._pairs, self._weights.tolist(), strict=True))
