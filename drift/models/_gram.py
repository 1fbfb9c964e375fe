"""The inverse of the supports' Gram matrix, kept up under insertions and evictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["InverseGram"]

#: After so many changes the inverse is checked, and computed afresh if it is off by more than this.
_CHECK_EVERY = 64
_TOLERANCE = 1e-8


class InverseGram:
    """``(ridge I + G)^{-1}`` over the supports, by their slots.

    Both matrices are kept, in their lower triangles; rows and columns of free slots are zero. A
    change is one symmetric rank-one update in place, O(m^2).

    Parameters
    ----------
    ridge
        What is added to the diagonal, at least 0.

    Attributes
    ----------
    capacity : int
        Length of the rows that the methods take: zero behind the last slot.
    """

    def __init__(self, ridge: float) -> None:
        self.ridge = ridge
        self.capacity = 0
        self._gram = np.zeros((0, 0), order="F")
        self._inverse = np.zeros((0, 0), order="F")
        self._changes = 0

    def reserve(self, slots: int) -> None:
        """Make room for a number of slots."""
        if slots <= self.capacity:
            return
        before, self.capacity = self.capacity, max(16, slots, self.capacity * 5 // 4)
        for name in ("_gram", "_inverse"):
            wider = np.zeros((self.capacity, self.capacity), order="F")
            wider[:before, :before] = getattr(self, name)
            setattr(self, name, wider)

    def times(self, row: Array) -> Array:
        """Inverse times a row."""
        return linalg.blas.dsymv(1.0, self._inverse, row, lower=1)

    def insert(self, slot: int, row: Array, own: float, weights: Array, spread: float) -> None:
        """Add a support.

        Parameters
        ----------
        slot
            Its slot, free until now.
        row
            Kernel between it and the others.
        own
            Kernel between it and itself.
        weights
            ``times(row)``.
        spread
            ``ridge + own - row . weights``, positive.
        """
        held = self._gram.diagonal() != 0.0
        self._gram[slot, :slot] = np.where(held, row, 0.0)[:slot]
        self._gram[slot:, slot] = np.where(held, row, 0.0)[slot:]
        self._gram[slot, slot] = self.ridge + own
        direction = weights.copy()
        direction[slot] = -1.0
        self._add(1.0 / spread, direction)
        self._count()

    def remove(self, slot: int) -> None:
        """Forget the support in a slot."""
        column = self._column(self._inverse, slot)
        self._add(-1.0 / column[slot], column)
        for matrix in (self._inverse, self._gram):
            matrix[slot, :slot] = 0.0
            matrix[slot:, slot] = 0.0
        self._count()

    def _add(self, factor: float, direction: Array) -> None:
        self._inverse = linalg.blas.dsyr(factor, direction, lower=1, a=self._inverse, overwrite_a=1)

    def _column(self, matrix: Array, slot: int) -> Array:
        return np.concatenate([matrix[slot, :slot], matrix[slot:, slot]])

    def _count(self) -> None:
        self._changes += 1
        if self._changes % _CHECK_EVERY or not self.capacity:
            return
        slots = np.flatnonzero(self._gram.diagonal())
        if not len(slots):
            return
        # One column of K K^{-1} tells; a full check would cost m^3.
        slot = slots[self._changes // _CHECK_EVERY % len(slots)]
        product = linalg.blas.dsymv(1.0, self._gram, self._column(self._inverse, slot), lower=1)
        product[slot] -= 1.0
        if np.abs(product).max() > _TOLERANCE:
            square = np.ix_(slots, slots)
            lower = self._gram[square]
            self._inverse[square] = linalg.inv(np.tril(lower) + np.tril(lower, -1).T)
