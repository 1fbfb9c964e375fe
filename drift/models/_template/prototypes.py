"""One hypothesis for each class, all of them over the same supports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._base.guard import Part
from drift.models._base.rounding import sums_or_zeros
from drift.models._store.classes import Classes

if TYPE_CHECKING:
    from drift.models._store.built import Calibration
    from drift.models._store.supports import SupportSet
    from drift.types import Array, Label

__all__ = ["Prototypes"]


class Prototypes(Part):
    """Coefficients by class and slot; a class that nothing was learnt of scores 0.

    Attributes
    ----------
    labels : list
        The classes, in the order of their first examples.
    matrix : ndarray of shape (room for classes, room for slots)
        Coefficients; zero where a slot is free.
    roundings : ndarray of shape (n_classes,)
        Bounds on the rounding errors of the last scores.
    """

    _kept = frozenset({"matrix", "roundings"})

    def __init__(self) -> None:
        self.labels: list[Label] = []
        self.matrix = np.zeros((0, 0))
        self.roundings = np.zeros(0)
        self._numbers: dict[Label, int] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"roundings": np.zeros(0)}  # of no meaning beyond one step

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: Label) -> bool:
        return label in self._numbers

    def number(self, label: Label) -> int:
        """Return the number of a class."""
        return self._numbers[label]

    def add(self, label: Label) -> None:
        """Add a class, with a prototype of zero."""
        self._numbers[label] = len(self.labels)
        self.labels.append(label)
        self._make_room(len(self.labels), self.matrix.shape[1])

    def _make_room(self, classes: int, slots: int) -> None:
        rows, columns = self.matrix.shape
        if classes <= rows and slots <= columns:
            return
        more = max(classes - rows, rows // 2) if classes > rows else 0
        self.matrix = np.pad(self.matrix, ((0, more), (0, max(slots - columns, 0))))

    def scores(self, supports: SupportSet) -> Array:
        """Score the point; scores within rounding of the best are set to the best."""
        n = len(self.labels)
        scores, self.roundings = np.zeros(n), np.zeros(n)
        if n and len(supports):
            supports.class_scores(self.matrix[:n], scores, self.roundings)
            best = scores.max()
            scores[scores >= best - 2.0 * self.roundings.max()] = best
        return scores

    def classes(self, calibration: Calibration, margin: float) -> Classes:
        """Return the hypotheses for the store."""
        n = len(self.labels)
        return Classes(self._numbers, self.matrix[:n], np.ones(n), calibration, margin, rivals=True)

    def by_label(self, scores: Array) -> dict[Label, float]:
        """Scores with the classes' names."""
        return dict(zip(self.labels, scores.tolist(), strict=True))

    def rival(self, scores: Array, k: int) -> int:
        """Best class other than `k`, the first of those within rounding; -1 without others."""
        if len(self.labels) < 2:
            return -1
        others = scores.copy()
        others[k] = -np.inf
        return int((others >= others.max() - 2.0 * self.roundings.max(initial=0.0)).argmax())

    def margin(self, scores: Array, k: int, rival: int) -> tuple[float, float]:
        """Score of class `k` above its rival's, 0 within rounding of 0; a bound on the rounding."""
        margin, rounding = float(scores[k]), float(self.roundings[k])
        if rival >= 0:
            margin -= float(scores[rival])
            rounding += float(self.roundings[rival])
        return 0.0 if abs(margin) <= rounding else margin, rounding

    def put(self, slot: int, supports: SupportSet, coefficients: dict[int, float]) -> None:
        """Set the coefficients, by number of class, of a new support; -1 is no class."""
        self._make_room(len(self.labels), supports.capacity)
        supports.guard.keep(self.matrix, slot)
        for k, coefficient in coefficients.items():
            if k >= 0:
                self.matrix[k, slot] = coefficient

    def sizes(self) -> Array:
        """Squared norm, by slot, of a support's coefficients."""
        squares: Array = np.square(self.matrix[: len(self.labels)]).sum(axis=0)
        return squares

    def merge(self, slot: int, target: int, share: float, supports: SupportSet) -> None:
        """Forget the coefficients of a support and add a share to another's; what cancels is 0."""
        if share:
            supports.guard.keep(self.matrix, target)
            before, more = self.matrix[:, target], share * self.matrix[:, slot]
            self.matrix[:, target] = sums_or_zeros(before, more, supports.tie)
        self.drop(slot, supports)

    def drop(self, slot: int, supports: SupportSet) -> None:
        """Forget the coefficients of a support."""
        supports.guard.keep(self.matrix, slot)
        self.matrix[:, slot] = 0.0

    def of(self, slot: int) -> dict[Label, float]:
        """Coefficient by label, where it is not 0, of a support."""
        column = self.matrix[: len(self.labels), slot].tolist()
        return {label: c for label, c in zip(self.labels, column, strict=True) if c}
