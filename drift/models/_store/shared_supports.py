"""Supports that several hypotheses share: stored once, and one kernel row for all of them.

`OneVsRest` makes a `SharedStore`, and for each class a `SharedSupports`, which becomes its model's
``_supports``. The store reads and scores an example once for all hypotheses. A support leaves the
store when the last hypothesis that has it evicts it.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._base.examples import content_of
from drift.models._base.guard import Part
from drift.models._store import built
from drift.models._store.coefficients import Coefficients
from drift.models._store.constants import MAX_COEFFICIENT_FACTOR, MIN_COEFFICIENT_FACTOR
from drift.models._store.precision import is_wide
from drift.models._store.refusals import NO_POINT

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from drift.kernels import Kernel
    from drift.models._base.examples import Content
    from drift.models._store.built import Calibration, ColumnStore, Guard
    from drift.types import Features

__all__ = ["SharedStore", "SharedSupports"]


class SharedStore(Part):
    """One column store under the supports of several hypotheses.

    Between two calls of `read` the hypotheses may learn the example that was read, one after the
    other, each through its `SharedSupports`.

    Parameters
    ----------
    kernel
        Kernel between examples.
    wide
        Use float64 columns even if `column_type` is float32.

    Attributes
    ----------
    coefficients : Coefficients
        The coefficients of all hypotheses, each without its hypothesis's factor.
    users : ndarray of shape (room for slots,)
        Number of hypotheses that have a slot's support.
    """

    _not_copied = frozenset({"users", "example", "_example_scores"})

    n_examples = 0  # read so far; an equal one counts if a hypothesis has changed

    def __init__(self, kernel: Kernel, *, wide: bool) -> None:
        self.store = built.ColumnStore(kernel, is_wide(wide))
        self.coefficients = Coefficients()
        self.users = np.zeros(0, dtype=np.int64)
        self._forget_example()

    def _forget_example(self) -> None:
        self.n_examples += 1
        self.example_read_at = -1  # `n_read` of the store when it read the example last
        self.changed = False  # whether a hypothesis has changed since
        self.example: Any = None
        self.example_slot = -1  # of the example, once it is a support
        self.example_self_kernel = 0.0  # k(x, x)
        self._example_scores: Any = None  # of the example, and their error bounds
        self.example_content: Content | None = None

    def reserve(self) -> None:
        """Have room in the arrays for all slots of the store."""
        more = self.store.capacity - len(self.users)
        if more > 0:
            self.coefficients.reserve(0, self.store.capacity)
            self.users = np.pad(self.users, (0, more))

    def add_hypothesis(self) -> int:
        """Make room for one more hypothesis; return its index."""
        index = len(self.coefficients.matrix)
        self.coefficients.reserve(index + 1, 0)
        self.changed = True
        return index

    def read(self, x: Features) -> None:
        """Read an example as the point of all hypotheses; all score it before any learns it."""
        self.example = None
        self.store.read(x)
        if self.changed or self.store.n_read != self.example_read_at:
            self._forget_example()
            self.example_read_at = self.store.n_read
            self.example_self_kernel = self.store.self_kernel()
        self.example = x

    def read_again(self) -> None:
        """Have the store's point be the example, whatever was read or changed since."""
        if self.example is None:
            raise RuntimeError(NO_POINT)
        if self.changed or self.store.n_read != self.example_read_at:
            self.store.read(self.example)
            self.example_read_at = self.store.n_read

    def example_scores(self) -> tuple[Any, Any]:
        """Scores of the example, without the hypotheses' factors, and their error bounds.

        They are computed once. What a hypothesis changes later is not in them.
        """
        if self._example_scores is None:
            self.read_again()
            self._example_scores = self.coefficients.score(self.store)
        return self._example_scores  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        return {
            "kernel": self.store.kernel,
            "store": self.store.state(),
            "matrix": self.coefficients.matrix,
            "users": self.users,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.store = built.ColumnStore.restore(state["kernel"], None, state["store"])
        self.coefficients = Coefficients()
        self.coefficients.matrix = state["matrix"]
        self.users = state["users"]
        self._forget_example()


class SharedSupports(Part):
    """The supports of one hypothesis in a `SharedStore`: a `Hypothesis`."""

    def __init__(self, shared: SharedStore, budget: int | None) -> None:
        self.budget = budget
        self._shared = shared
        self.index = shared.add_hypothesis()  # the hypothesis's row in the matrix of coefficients
        self.coefficient_factor = 1.0  # of that row
        self.own_slots_by_age = array("i")
        self._support_is_point = False  # whether the point is a support instead of the example
        self._forget_changes()

    def _forget_changes(self) -> None:
        # Both are the number of an example, `n_examples`: 0 is none.
        self._changed_at = 0  # when this hypothesis has changed: the scores are older
        self._point_ended_at = 0  # when its supports have changed: it has no point

    @property
    def _own(self) -> slice:
        """The hypothesis in the matrix of coefficients."""
        return slice(self.index, self.index + 1)

    # --- the point --------------------------------------------------------------------------------

    def read(self, x: Features) -> None:
        """Read an example as the point, unless it is the store's point already."""
        self._support_is_point = False
        self._point_ended_at = 0
        if x is not self._shared.example:
            self._shared.read(x)
        else:
            self._shared.read_again()

    def read_support(self, i: int) -> None:
        """Make the `i`-th oldest support the point; negative: from the newest, -1."""
        self._shared.store.read_slot(self.own_slots_by_age[i])
        self._support_is_point = True
        self._point_ended_at = 0

    def score(self) -> float:
        """Return the point's score, ``sum_i coefficient_i k(x_i, x)``; 0 within rounding of 0."""
        return self.coefficient_factor * self._score_and_error_bound()[0]

    def score_of(self, x: Features) -> float:
        """Read an example as the point and return its score."""
        self.read(x)
        return self.score()

    def error_bound(self) -> float:
        """Return a bound on the rounding error of `score`."""
        return abs(self.coefficient_factor) * self._score_and_error_bound()[1]

    def _score_and_error_bound(self) -> tuple[float, float]:
        """Return the point's score, without the factor, and the bound on its error."""
        shared = self._shared
        if self._point_ended_at == shared.n_examples:
            raise RuntimeError(NO_POINT)
        changed = self._changed_at == shared.n_examples
        if not self._support_is_point and (changed or shared.example is None):
            shared.read_again()
        if self._support_is_point or changed:
            scores, error_bounds = shared.coefficients.score(shared.store, self._own)
            return float(scores[0]), float(error_bounds[0])
        scores, error_bounds = shared.example_scores()
        return float(scores[self.index]), float(error_bounds[self.index])

    def self_kernel(self) -> float:
        """Return the kernel between the point and itself."""
        shared = self._shared
        if self._support_is_point:
            return shared.store.self_kernel()
        if shared.example is None:
            raise RuntimeError(NO_POINT)
        return shared.example_self_kernel

    def content(self, x: Features) -> Content:
        """Return the content of the example read last, computed once for all hypotheses."""
        shared = self._shared
        if shared.example_content is None:
            shared.example_content = content_of(x)
        return shared.example_content

    # --- the supports -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.own_slots_by_age)

    n_supports = __len__

    def __iter__(self) -> Iterator[tuple[dict[Hashable, float], float]]:
        """Yield each support and its coefficient, the oldest first."""
        for i, slot in enumerate(self.own_slots_by_age):
            yield self._shared.store.support_in_slot(slot), self.coefficient(i)

    def coefficient(self, i: int) -> float:
        """Return the coefficient of the `i`-th oldest support; negative: from the newest, -1."""
        return self.coefficient_factor * float(
            self._shared.coefficients.matrix[self.index, self.own_slots_by_age[i]]
        )

    def add(self, x: Features, coefficient: float) -> int:
        """Add `x`, the last example, as the newest support; return its slot. Ends the point."""
        shared = self._shared
        if shared.example_slot < 0:
            shared.example_slot = shared.store.add(x, 0.0)
            shared.reserve()
        self._save_slot(shared.example_slot)
        shared.users[shared.example_slot] += 1
        shared.coefficients.matrix[self.index, shared.example_slot] = (
            coefficient / self.coefficient_factor
        )
        self.own_slots_by_age.append(shared.example_slot)
        return shared.example_slot

    def evict(self, i: int) -> int:
        """Evict the `i`-th oldest support; negative: from the newest, -1. Ends the point."""
        shared, slot = self._shared, self.own_slots_by_age.pop(i)
        self._save_slot(slot)
        shared.coefficients.matrix[self.index, slot] = 0.0
        shared.users[slot] -= 1
        if not shared.users[slot]:
            shared.store.evict_slot(slot)
            if slot == shared.example_slot:
                shared.example_slot = -1
        return slot

    def _save_slot(self, slot: int) -> None:
        """Save what is kept of a slot, before this hypothesis adds or evicts its support."""
        guard = self._shared.store.guard
        guard.save(self._shared.users, slot)
        guard.save(self._shared.coefficients.matrix, slot)
        self._note_change()
        self._point_ended_at = self._changed_at

    def _note_change(self) -> None:
        self._shared.changed = True
        self._changed_at = self._shared.n_examples

    def scale_coefficients(self, c: float) -> None:
        """Multiply every coefficient by a number, in constant time."""
        self.coefficient_factor *= c
        if not MIN_COEFFICIENT_FACTOR < abs(self.coefficient_factor) < MAX_COEFFICIENT_FACTOR:
            row = self._shared.coefficients.matrix[self.index]
            self.guard.save(row)
            row *= self.coefficient_factor
            self._note_change()
            self.coefficient_factor = 1.0

    def slot_of_smallest(self) -> int:
        """Return the slot of the smallest coefficient, without the newest; of equals the oldest."""
        if len(self.own_slots_by_age) < 2:
            raise IndexError("no support but the newest")
        slots = np.frombuffer(self.own_slots_by_age, np.intc)[:-1]
        magnitudes = np.abs(self._shared.coefficients.matrix[self.index, slots])
        smallest = magnitudes.min() * (1.0 + self.relative_tolerance)
        return int(slots[(magnitudes <= smallest).argmax()])

    def nearest(self, slot: int) -> tuple[int, float]:
        """Make a support the point; return its nearest neighbour's slot and a ratio to merge."""
        self._support_is_point = True
        self._point_ended_at = 0
        return self._shared.store.nearest(slot, self.own_slots_by_age)

    def merge(self, slot: int, target: int, ratio: float) -> None:
        """Evict a support and add its coefficient times a ratio to another's; if they cancel, 0."""
        shared = self._shared
        shared.coefficients.merge(shared.store, slot, target, ratio, self._own)
        self.evict(self.own_slots_by_age.index(slot))

    # --- what they belong to ----------------------------------------------------------------------

    @property
    def kernel(self) -> Kernel:
        """Kernel between examples."""
        return self._shared.store.kernel

    @property
    def store(self) -> ColumnStore:
        """The column store."""
        return self._shared.store

    @property
    def relative_tolerance(self) -> float:
        """A score up to this times the sum of its terms' magnitudes is rounding error."""
        return self._shared.store.relative_tolerance

    @property
    def calibration(self) -> Calibration:
        """The store's calibration, which does not learn from one class's scores."""
        return self._shared.store.calibration

    @property
    def guard(self) -> Guard:
        """The model's lock, with rollback of failed updates."""
        return self._shared.store.guard

    @guard.setter
    def guard(self, guard: Any) -> None:
        self._shared.store.guard = guard

    # --- state ------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {  # under the names that stored models have
            "budget": self.budget,
            "_shared": self._shared,
            "_number": self.index,
            "_factor": self.coefficient_factor,
            "_order": self.own_slots_by_age.tolist(),
            "_at_support": False,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.budget = state["budget"]
        self._shared = state["_shared"]
        self.index = state["_number"]
        self.coefficient_factor = state["_factor"]
        self.own_slots_by_age = array("i", state["_order"])
        self._support_is_point = False
        self._forget_changes()
