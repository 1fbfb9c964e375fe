"""One hypothesis for each class, all of them over the same supports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._store.check import check_keys
from drift.models._store.classes import ClassHypotheses
from drift.models._store.coefficients import Coefficients

if TYPE_CHECKING:
    from drift.models._store.built import Calibration
    from drift.models._store.supports import SupportSet
    from drift.types import Array, Label

__all__ = ["Prototypes"]


class Prototypes(Coefficients):
    """Coefficients by class and slot.

    A class index counts the classes in the order of their first examples. `k` is the index of the
    point's class.

    Attributes
    ----------
    labels : list
        Label by class index.
    matrix : ndarray of shape (room for classes, room for slots)
        The coefficients; 0 in free slots.
    error_bounds : ndarray of shape (n_classes,)
        Bounds on the rounding errors of the last scores.
    """

    _not_copied = frozenset({"matrix", "error_bounds"})

    def __init__(self) -> None:
        self.labels: list[Label] = []
        super().__init__()
        self.error_bounds = np.zeros(0)
        self._index_by_label: dict[Label, int] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {
            "labels": self.labels,
            "matrix": self.matrix,
            "roundings": np.zeros(0),  # they have no meaning beyond a step
            "_numbers": self._index_by_label,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.labels, self.matrix, self.error_bounds = state["labels"], state["matrix"], np.zeros(0)
        check_keys("label", self.labels)
        self._index_by_label = {label: k for k, label in enumerate(self.labels)}

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: Label) -> bool:
        return label in self._index_by_label

    def index_of(self, label: Label) -> int:
        """Class index of a label."""
        return self._index_by_label[label]

    def add_class(self, label: Label) -> None:
        """Add a class, whose prototype is zero."""
        self._index_by_label[label] = len(self.labels)
        self.labels.append(label)
        room = len(self.matrix)
        if len(self.labels) > room:
            self.reserve(max(len(self.labels), room + room // 2), 0)

    def score_point(self, supports: SupportSet) -> Array:
        """Score the point. Scores within rounding of the best are set to the best."""
        scores, self.error_bounds = self.score(supports.store, slice(len(self.labels)))
        if len(scores):
            best = scores.max()
            scores[scores >= best - 2.0 * self.error_bounds.max()] = best
        return scores

    def class_hypotheses(self, calibration: Calibration, update_margin: float) -> ClassHypotheses:
        """Return what the store needs to learn a batch; it reads the matrix in place."""
        n = len(self.labels)
        return ClassHypotheses(
            self._index_by_label,
            self.matrix[:n],
            np.ones(n),
            calibration,
            update_margin,
            over_rival=True,
        )

    def scores_by_label(self, scores: Array) -> dict[Label, float]:
        """Score by label."""
        return dict(zip(self.labels, scores.tolist(), strict=True))

    def rival(self, scores: Array, k: int) -> int:
        """Best class other than `k`, the first of equal ones (within rounding); -1 without one."""
        if len(self.labels) < 2:
            return -1
        others = scores.copy()
        others[k] = -np.inf
        return int((others >= others.max() - 2.0 * self.error_bounds.max(initial=0.0)).argmax())

    def margin(self, scores: Array, k: int, rival: int) -> tuple[float, float]:
        """Score of class `k` minus its rival's, and a bound on its error; 0 if within the bound."""
        margin, error_bound = float(scores[k]), float(self.error_bounds[k])
        if rival >= 0:
            margin -= float(scores[rival])
            error_bound += float(self.error_bounds[rival])
        return 0.0 if abs(margin) <= error_bound else margin, error_bound

    def set_support(self, slot: int, supports: SupportSet, coefficients: dict[int, float]) -> None:
        """Set the coefficients of a new support by class index; the index -1 is ignored."""
        self.reserve(len(self.labels), supports.capacity)
        supports.guard.save(self.matrix, slot)
        for c, coefficient in coefficients.items():
            if c >= 0:
                self.matrix[c, slot] = coefficient

    def squared_norms(self) -> Array:
        """Squared norm of each support's coefficients, by slot."""
        squares: Array = np.square(self.matrix[: len(self.labels)]).sum(axis=0)
        return squares

    def coefficients_of(self, slot: int) -> dict[Label, float]:
        """Coefficients of a support by label, without zeros."""
        column = self.matrix[: len(self.labels), slot].tolist()
        return {label: c for label, c in zip(self.labels, column, strict=True) if c}
