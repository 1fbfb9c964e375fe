"""Coefficients of several hypotheses over the supports of one store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drift.models._base.guard import Part
from drift.models._base.rounding import sums_or_zeros

if TYPE_CHECKING:
    from drift.models._store.built import ColumnStore
    from drift.types import Array

__all__ = ["Coefficients"]

_ALL = slice(None)


class Coefficients(Part):
    """Coefficients by hypothesis and slot.

    Attributes
    ----------
    matrix : ndarray of shape (room for hypotheses, room for slots)
        The coefficients; zero where a slot is free.
    """

    _not_copied = frozenset({"matrix"})

    def __init__(self) -> None:
        self.matrix = np.zeros((0, 0))

    def reserve(self, hypotheses: int, slots: int) -> None:
        """Have room for at least this many hypotheses and slots."""
        rows, columns = self.matrix.shape
        if hypotheses > rows or slots > columns:
            more = max(hypotheses - rows, 0), max(slots - columns, 0)
            self.matrix = np.pad(self.matrix, ((0, more[0]), (0, more[1])))

    def score(self, store: ColumnStore, hypotheses: slice | None = None) -> tuple[Array, Array]:
        """Score of the store's point by hypothesis, and bounds on the rounding errors."""
        matrix = self.matrix if hypotheses is None else self.matrix[hypotheses]
        scores, error_bounds = np.zeros(len(matrix)), np.zeros(len(matrix))
        if matrix.size:
            store.class_scores(matrix, scores, error_bounds)
        return scores, error_bounds

    def clear(self, store: ColumnStore, slot: int, hypotheses: slice = _ALL) -> None:
        """Set the coefficients of a support to 0."""
        store.guard.save(self.matrix, slot)
        self.matrix[hypotheses, slot] = 0.0

    def merge(
        self, store: ColumnStore, slot: int, target: int, ratio: float, hypotheses: slice = _ALL
    ) -> None:
        """Add a share of a support's coefficients to another's; 0 where they cancel."""
        if ratio:
            store.guard.save(self.matrix, target)
            before, more = self.matrix[hypotheses, target], ratio * self.matrix[hypotheses, slot]
            self.matrix[hypotheses, target] = sums_or_zeros(before, more, store.relative_tolerance)
