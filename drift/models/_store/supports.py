"""Supports of one hypothesis in a store of its own, counted from the oldest to the newest.

A model's ``_supports`` is a `SupportSet`, unless `OneVsRest` has put a `SharedSupports` in its
place. It adds to the store a budget, age ranks instead of slots, and what is stored of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.kernels import Linear, Polynomial
from drift.models._base.examples import LARGEST, content_of
from drift.models._base.guard import undoes_itself
from drift.models._store import built
from drift.models._store.check import check_budget
from drift.models._store.precision import is_wide

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from drift.kernels import Kernel
    from drift.models._base.examples import Content
    from drift.models._store.built import Calibration, ColumnStore, Guard
    from drift.types import Array, Features

__all__ = ["SupportSet"]


@undoes_itself
class SupportSet:
    """The supports of one hypothesis, in a store of their own: `Hypothesis`, and more.

    It adds the store's methods for batches and for coefficients by slot, `slots_by_age` and
    `serials_by_age`, and magnitudes for `slot_of_smallest`.

    Parameters
    ----------
    kernel
        Kernel between examples.
    budget
        Largest number of supports; None: unbounded. The algorithm enforces it. Memory doubles as
        it grows, but never exceeds what ``budget + 1`` supports need, rounded up.
    wide
        Use float64 columns even if `column_type` is float32.
    """

    #: All supports in the store belong to this hypothesis.
    own_slots_by_age = None

    def __init__(self, kernel: Kernel, budget: int | None = None, *, wide: bool = False) -> None:
        self.kernel = kernel
        self.budget = budget
        self._bind(built.ColumnStore(kernel, is_wide(wide), self._limit))

    @property
    def _limit(self) -> int | None:
        """Number of slots needed: a support may be added before another is evicted."""
        return None if self.budget is None else self.budget + 1

    def _bind(self, store: ColumnStore) -> None:
        """Bind the store's methods directly: delegation would cost a tenth of a prediction.

        `hypothesis.py` beside this file describes the first group, `columns.pyi` the second.
        """
        self.store = store
        self.read = store.read
        self.score = store.score
        self.score_of = store.score_of
        self.error_bound = store.error_bound
        self.self_kernel = store.self_kernel
        self.n_supports = store.n_supports
        self.add = store.add
        self.evict = store.evict
        self.scale_coefficients = store.scale_coefficients
        self.slot_of_smallest = store.slot_of_smallest
        self.nearest = store.nearest
        self.merge = store.merge

        self.learn_with = store.learn_with
        self.learn_rows_with = store.learn_rows_with
        self.score_rows = store.score_rows
        self.class_scores = store.class_scores
        self.learn_class_rows_until_update = store.learn_class_rows_until_update
        self.write_coefficients = store.write_coefficients
        self.set_coefficients = store.set_coefficients
        self.add_coefficients = store.add_coefficients

    # --- the point --------------------------------------------------------------------------------

    def read_support(self, i: int) -> None:
        """Make the `i`-th oldest support the point; negative: from the newest, -1."""
        self.store.read_slot(self.store.slot(i))

    def content(self, x: Features) -> Content:
        """Return the content of the example read last."""
        return content_of(x)

    def kernels(self, n: int | None = None) -> Array:
        """Return the point's kernel with each slot, with zeros up to `n` values or the capacity."""
        kernels = np.zeros(self.capacity if n is None else n)
        self.store.write_kernels(kernels)
        return kernels

    @property
    def safe_squared_norm(self) -> float:
        """Squared norm up to which no example is too large for the kernel, even if rounded."""
        kernel, largest = self.kernel, LARGEST
        if isinstance(kernel, Linear):
            largest = min(largest, self.store.largest_self_kernel)
        elif isinstance(kernel, Polynomial):
            largest = min(
                largest, self.store.largest_self_kernel ** (1.0 / kernel.degree) - kernel.coef0
            )
        return 0.999 * largest

    # --- the supports -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.n_supports()

    def __iter__(self) -> Iterator[tuple[dict[Hashable, float], float]]:
        """Yield each support and its coefficient, the oldest first."""
        for slot in self.slots_by_age:
            yield self.store.support_in_slot(slot), self.store.coefficient_in_slot(slot)

    def coefficient(self, i: int) -> float:
        """Return the coefficient of the `i`-th oldest support; negative: from the newest, -1."""
        return self.store.coefficient_in_slot(self.store.slot(i))

    @property
    def slots_by_age(self) -> list[int]:
        """The supports' slots, the oldest first."""
        return self.store.slots_by_age()

    @property
    def serials_by_age(self) -> list[int]:
        """Serial number of each support, counting all ever added; the oldest first."""
        return self.store.serials_by_age()

    @property
    def capacity(self) -> int:
        """Number of allocated slots."""
        return self.store.capacity

    # --- what they belong to ----------------------------------------------------------------------

    @property
    def relative_tolerance(self) -> float:
        """A score up to this times the sum of its terms' magnitudes is rounding error."""
        return self.store.relative_tolerance

    @property
    def calibration(self) -> Calibration:
        """Calibration of the model's scores."""
        return self.store.calibration

    @property
    def guard(self) -> Guard:
        """The model's lock, with rollback of failed updates."""
        return self.store.guard

    @guard.setter
    def guard(self, guard: Any) -> None:
        self.store.guard = guard

    # --- state ------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "budget": self.budget,
            "store": self.store.state(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        check_budget(state["budget"])
        self.kernel = state["kernel"]
        self.budget = state["budget"]
        self._bind(built.ColumnStore.restore(self.kernel, self._limit, state["store"]))
        check_budget(self.budget, len(self))
