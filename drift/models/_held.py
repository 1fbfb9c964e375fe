"""What the prototypes say of the supports themselves, for caches that evict by margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from drift.models._prototypes import Array

__all__ = ["HeldScores"]

#: Share of the sum of its terms' sizes within which a margin is rounding error.
_TIE = 2.0**-40


class HeldScores:
    """Scores of all classes at every support, kept up as supports come and go; by slot.

    A support that comes or goes takes its kernel row and O(k m) operations, for ``k`` classes and
    ``m`` supports.
    """

    def __init__(self) -> None:
        self._scores = np.zeros((0, 0))
        self._own = np.zeros(0)  # k(x, x)
        self._class = np.zeros(0, dtype=np.intp)
        self._size = np.zeros(0)  # sum over the supports of the largest |tau| times |k|
        self._largest_tau = np.zeros(0)

    def _make_room(self, classes: int, slots: int) -> None:
        rows, columns = self._scores.shape
        if classes <= rows and slots <= columns:
            return
        classes, slots = max(classes, rows), max(slots, columns)
        self._scores = np.pad(self._scores, ((0, classes - rows), (0, slots - columns)))
        for name in ("_own", "_class", "_size", "_largest_tau"):
            setattr(self, name, np.pad(getattr(self, name), (0, slots - columns)))

    def add(self, slot: int, k: int, tau: Array, scores: Array, row: Array) -> None:
        """Take in a support.

        Parameters
        ----------
        slot
            Its slot.
        k
            Number of its class.
        tau
            Its coefficients by class.
        scores
            Its scores by class without them.
        row
            Kernel between it and every slot, its own included.
        """
        self._make_room(len(tau), len(row))
        self._own[slot], self._class[slot] = row[slot], k
        self._scores[: len(tau), slot] = scores
        sizes = np.abs(row)
        self._size[slot] = self._largest_tau[: len(row)] @ sizes
        self._largest_tau[slot] = np.abs(tau).max()
        self._change(tau, row)
        self._size[: len(row)] += self._largest_tau[slot] * sizes

    def remove(self, slot: int, tau: Array, row: Array) -> None:
        """Forget a support, given its coefficients and the kernel between it and every slot."""
        self._change(-tau, row)
        self._size[: len(row)] -= self._largest_tau[slot] * np.abs(row)
        self._scores[:, slot] = 0.0
        self._own[slot] = self._size[slot] = self._largest_tau[slot] = 0.0

    def _change(self, tau: Array, row: Array) -> None:
        self._scores[: len(tau), : len(row)] += tau[:, np.newaxis] * row

    def largest(self, slots: list[int], weights: Array) -> tuple[int, float, float]:
        """Find the support with the largest margin without its own part.

        Parameters
        ----------
        slots
            The supports' slots, the oldest first.
        weights
            Coefficients by class and slot, of all classes.

        Returns
        -------
        int
            Its number; the oldest one among those within rounding.
        float
            The margin: the score of its own class above the best other; 0 for that while there is
            none.
        float
            Bound on the margin's rounding error.
        """
        self._make_room(*weights.shape)  # a class that is new has a score, too
        others = self._scores[:, slots] - weights[:, slots] * self._own[slots]
        columns = np.arange(len(slots))
        classes = self._class[slots]
        margins = others[classes, columns]
        if len(others) > 1:
            others[classes, columns] = -np.inf
            margins = margins - others.max(axis=0)
        roundings = _TIE * np.maximum(self._size[slots], 0.0)
        best = int((margins + roundings).argmax())
        oldest = int((margins + roundings >= margins[best] - roundings[best]).argmax())
        return oldest, float(margins[oldest]), float(roundings[oldest])
