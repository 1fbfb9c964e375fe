"""Models that evict the most redundant support: the one that the others classify best."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from drift.models._linalg.leave_one_out import LeaveOneOutScores
from drift.models._template.kernel_model import KernelModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


__all__ = ["LeaveOneOut"]


class LeaveOneOut(KernelModel):
    """Classifier that keeps the leave-one-out scores of its supports."""

    _rest: Any = None  # a LeaveOneOutScores, from the first support on

    @abstractmethod
    def _margins(self) -> NDArray[np.float64]:
        """Margin of each support without its share, by slot; in free slots anything."""

    def _kernel_row(self, outputs: int = 1) -> NDArray[np.float64]:
        """Kernel between the point and each slot; makes room for so many scores of an example."""
        if self._rest is None:
            self._rest = LeaveOneOutScores(outputs, self._supports.tie)
        self._rest.widen(outputs)
        row: NDArray[np.float64] = self._rest.new_row()
        self._supports.write_kernels(row)
        return row

    def _insert(self, slot: int, row: Any, coefficients: Any) -> None:
        """Record a new support."""
        self._rest.insert(slot, row, coefficients)
        self._refresh()

    def _evict_most_redundant(self, least: float = -math.inf) -> bool:
        """Evict the support of largest margin without its share, if that is at least `least`."""
        slot = self._rest.oldest_of_largest(self._margins(), least)
        if slot is None:
            return False
        number = self._rest.number(slot)
        self._supports.read_support(number)
        row = self._kernel_row()
        self._evict(number)
        self._rest.remove(slot, row)
        self._refresh()
        return True

    def _refresh(self) -> None:
        for slot in self._rest.stale():
            self._supports.read_support(self._rest.number(slot))
            self._rest.refresh(slot, self._kernel_row())
