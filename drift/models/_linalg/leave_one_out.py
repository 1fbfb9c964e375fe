"""Leave-one-out scores: each support's under all the others, updated as they come and go."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._base.guard import Part
from drift.models._store.check import check_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["LeaveOneOutScores", "largest_by_row"]

#: Relative rounding error of one float64 operation.
_UNIT = 2.0**-53


def largest_by_row(matrix: Array) -> Array:
    """Return the maximum of each row; of many short ones faster than along the axis."""
    largest = matrix[:, 0].copy()
    for column in matrix.T[1:]:
        np.maximum(largest, column, out=largest)
    return largest


class LeaveOneOutScores(Part):
    """``rest_j = sum_{i != j} coefficient_i k(x_i, x_j)`` for each support ``j``, by slot.

    An insertion or eviction needs the kernel row of the support that comes or goes alone. Memory is
    a few such rows, because there is no Gram matrix. A support's own term stays out of its sum,
    where it would bury the others' and return only to be subtracted.

    Parameters
    ----------
    outputs
        Number of scores of an example, and of coefficients of a support: 1 for two classes.
    relative_tolerance
        A score up to this times the sum of its terms' sizes is rounding error.

    Attributes
    ----------
    values : ndarray of shape (capacity, outputs)
        ``rest_j`` by slot; 0 in free slots.
    sizes : ndarray of shape (capacity,)
        Sum of the sizes of its terms, by slot: the scale of their rounding errors.
    coefficients : ndarray of shape (capacity, outputs)
        Coefficients by slot; 0 in free slots.
    """

    def __init__(self, outputs: int, relative_tolerance: float) -> None:
        self.relative_tolerance = relative_tolerance
        self.values = np.zeros((0, outputs))
        self.sizes = np.zeros(0)
        self.coefficients = np.zeros((0, outputs))
        # Bound on what the changes since a sum was last computed have left in rounding errors.
        self._errors = np.zeros(0)
        self._born = np.full(0, math.inf)  # grows with each insertion; inf in free slots
        self._births = 0

    def __getstate__(self) -> dict[str, Any]:
        others = {name: value for name, value in vars(self).items() if name != "relative_tolerance"}
        return {"tie": self.relative_tolerance, **others}  # the name that stored models have

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set_attributes(state, {"tie": "relative_tolerance"})
        rows, outputs = len(self._born), self.values.shape[-1]
        for name in ("values", "coefficients"):
            check_array(name, getattr(self, name), (rows, outputs))
        for name in ("sizes", "_errors"):
            check_array(name, getattr(self, name), (rows,))

    def slots(self) -> list[int]:
        """Return the supports' slots."""
        return np.flatnonzero(self._born < math.inf).tolist()

    def widen(self, outputs: int) -> None:
        """Make room for more scores of an example."""
        more = outputs - self.values.shape[1]
        if more > 0:
            for name in ("values", "coefficients"):
                setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, more))))

    def insert(self, slot: int, row: Array, coefficients: Array | float) -> None:
        """Add a support.

        Parameters
        ----------
        slot
            Its slot, free until now.
        row
            Kernel between it and each slot; values of free slots and its own are ignored.
        coefficients
            Its coefficient in each output.
        """
        if slot >= len(self.sizes):
            more = max(16, slot // 4)
            for name in ("values", "coefficients"):
                setattr(self, name, np.pad(getattr(self, name), ((0, more), (0, 0))))
            for name, empty in (("sizes", 0.0), ("_errors", 0.0), ("_born", math.inf)):
                padded = np.pad(getattr(self, name), (0, more), constant_values=empty)
                setattr(self, name, padded)
            row = np.pad(row, (0, len(self.sizes) - len(row)))
        row = self._masked(row)
        self.refresh(slot, row)
        self.coefficients[slot] = coefficients
        self._change(row, self.coefficients[slot], 1.0)
        self._born[slot] = self._births
        self._births += 1

    def remove(self, slot: int, row: Array) -> None:
        """Forget the support in a slot, whose kernel row is `row`."""
        self._born[slot] = math.inf
        self._change(self._masked(row), self.coefficients[slot], -1.0)
        for by_slot in (self.values, self.sizes, self.coefficients, self._errors):
            by_slot[slot] = 0.0

    def _change(self, row: Array, coefficients: Array, sign: float) -> None:
        """Add a support's term to every sum (`sign` 1) or subtract it (-1)."""
        terms = np.abs(row) * np.abs(coefficients).max()
        self._errors += _UNIT * (self.sizes + terms)
        for k in np.flatnonzero(coefficients):  # few of many classes
            self.values[:, k] += sign * row * coefficients[k]
        self.sizes += sign * terms

    def _masked(self, row: Array) -> Array:
        """Return a copy of a kernel row with 0 in free slots, whose values are arbitrary."""
        return np.where(self._born < math.inf, row, 0.0)

    def refresh(self, slot: int, row: Array) -> None:
        """Recompute a support's sum from its kernel row."""
        others = self._masked(row)
        others[slot] = 0.0
        self.values[slot] = others @ self.coefficients
        self.sizes[slot] = np.abs(others) @ largest_by_row(np.abs(self.coefficients))
        self._errors[slot] = 0.0

    def stale(self) -> list[int]:
        """Slots whose sums have to be computed afresh: rounding errors may be too large.

        That is so after some thousands of changes, or when a term has gone that dwarfed the rest.
        """
        return np.flatnonzero(self._errors > self.relative_tolerance * self.sizes).tolist()

    def age_rank(self, slot: int) -> int:
        """Return how many supports are older than the one in a slot."""
        return int(np.count_nonzero(self._born < self._born[slot]))

    def oldest_of_largest(self, margins: Array, least: float = -math.inf) -> int | None:
        """Choose among the supports whose margin is largest, up to rounding, the oldest.

        Parameters
        ----------
        margins
            A margin by slot, made from `values`.
        least
            Supports whose margin is below this, by more than rounding, do not count.

        Returns
        -------
        int or None
            A slot; None where no support counts.
        """
        slack = self.relative_tolerance * self.sizes
        slots = np.flatnonzero((self._born < math.inf) & (margins + slack >= least))
        if not len(slots):
            return None
        surely = (margins - slack)[slots].max()  # the largest margin is at least this
        tied = slots[(margins + slack)[slots] >= surely]
        return int(tied[self._born[tied].argmin()])
