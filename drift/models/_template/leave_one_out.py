"""The template of algorithms that evict the support that the others classify best."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from drift.models._linalg.leave_one_out import LeaveOneOutScores
from drift.models._store.check import check_slots
from drift.models._template.kernel_model import KernelModel

if TYPE_CHECKING:
    from drift.types import Array

__all__ = ["LeaveOneOut"]


class LeaveOneOut(KernelModel):
    """Classifier that knows the score of each support without the support's own term.

    An update calls `_kernels_by_slot` first. Then it evicts, if it must, by
    `_evict_most_redundant`. Then it adds the support and calls `_record`.
    """

    #: Those scores, the rest of each support's sum; None before the first support.
    _rest: LeaveOneOutScores = None  # type: ignore[assignment]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._rest is not None:  # else the algorithm may do without
            check_slots("_rest", self._rest.slots(), self._supports)

    @abstractmethod
    def _margins(self) -> Array:
        """Margin of each support's score in `_rest`, by slot; free slots may have any value."""

    def _kernels_by_slot(self, n_scores: int = 1) -> Array:
        """Make room for an example's scores, and return the point's kernel with each slot."""
        if self._rest is None:
            self._rest = LeaveOneOutScores(n_scores, self._supports.relative_tolerance)
        self._rest.widen(n_scores)
        return self._supports.kernels(len(self._rest.sizes))

    def _record(self, slot: int, kernels: Array, coefficients: Any) -> None:
        """Record the support just added, its kernel with each slot, and its coefficients."""
        self._rest.insert(slot, kernels, coefficients)
        self._refresh()

    def _evict_most_redundant(self, least: float = -math.inf) -> bool:
        """Evict the support with the largest of the `_margins`, if that is at least `least`.

        Return whether a support was evicted. Another support than the example may then be the
        point.
        """
        slot = self._rest.oldest_of_largest(self._margins(), least)
        if slot is None:
            return False
        i = self._rest.age_rank(slot)
        self._supports.read_support(i)
        kernels = self._kernels_by_slot()
        self._evict_support(i)
        self._rest.remove(slot, kernels)
        self._refresh()
        return True

    def _refresh(self) -> None:
        """Compute those sums anew whose rounding errors have grown too large."""
        for slot in self._rest.stale():
            self._supports.read_support(self._rest.age_rank(slot))
            self._rest.refresh(slot, self._kernels_by_slot())
