"""Supports of one hypothesis, numbered from the oldest to the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.kernels import Linear, Polynomial
from drift.models._base.examples import LARGEST, content_of
from drift.models._base.guard import undoes_itself
from drift.models._store import built
from drift.models._store.check import check_budget

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from drift.kernels import Kernel
    from drift.models._base.examples import Content
    from drift.models._store.built import Calibration, ColumnStore, Guard
    from drift.types import Array, Features

__all__ = ["SupportSet"]


@undoes_itself
class SupportSet:
    """Supports with their coefficients, ``f = sum_i coefficient_i k(x_i, .)``, the oldest first.

    Parameters
    ----------
    kernel
        Kernel between examples.
    budget
        Largest number of supports, for which memory is reserved; None: unbounded. The algorithm
        enforces it.
    wide
        Use float64 columns even if `column_type` is float32.
    """

    def __init__(self, kernel: Kernel, budget: int | None = None, *, wide: bool = False) -> None:
        self.kernel = kernel
        self.budget = budget
        self._bind(built.ColumnStore(kernel, wide or built.column_type() == "float64", self._limit))

    #: Slots of the supports among the store's, the oldest first; None: all of the store's supports.
    slots_in_store = None

    @property
    def _limit(self) -> int | None:
        """Number of slots needed: a support may be added before another is evicted."""
        return None if self.budget is None else self.budget + 1

    def _bind(self, store: ColumnStore) -> None:
        """Bind the store's methods directly: delegation would cost a tenth of a prediction."""
        #: The column store.
        self.store = store
        #: Read an example as the point; FeatureError and FeatureTypeError change nothing.
        self.read = store.read
        #: Score f(x) of the point read last.
        self.score = store.score
        #: Read an example as the point and return its score.
        self.score_of = store.score_of
        #: Read an example as the point and let a model learn it; see the store.
        self.learn = store.learn
        #: Make the example read last the newest support; return its slot.
        self.add = store.add
        #: Number of supports: as `len`, in a quarter of its time.
        self.n_supports = store.n_supports
        #: Evict support number `i`; return its slot.
        self.evict = store.evict
        #: Bound on the rounding error of the last score.
        self.rounding = store.rounding
        #: Kernel between the point and itself.
        self.self_kernel = store.self_kernel
        #: Predict rows up to the next update of a class; see the store.
        self.scan_classes = store.scan_classes
        #: Score of the point under several sets of coefficients; see the store.
        self.class_scores = store.class_scores
        #: Write the coefficient of each slot into a buffer; see the store.
        self.coefficients = store.coefficients
        #: Set the coefficient of each slot from a buffer; see the store.
        self.set_coefficients = store.set_coefficients
        #: Add a number to the coefficient of each slot; see the store.
        self.add_coefficients = store.add_coefficients
        #: Slot of the smallest support, the newest excluded; see the store.
        self.smallest = store.smallest
        #: Read a support as the point; slot of its nearest neighbour and the merge's share.
        self.nearest = store.nearest
        #: Evict a support and add a share of its coefficient to another's; see the store.
        self.merge = store.merge
        #: Multiply every coefficient by a number, in constant time.
        self.scale = store.scale_all
        #: Score of each row of an array.
        self.score_rows = store.score_rows
        #: Let a model learn the rows of an array; see the store.
        self.learn_rows = store.learn_rows

    def __len__(self) -> int:
        return self.n_supports()

    @property
    def guard(self) -> Guard:
        """The model's lock, with rollback of failed updates."""
        return self.store.guard

    @guard.setter
    def guard(self, guard: Any) -> None:
        self.store.guard = guard

    @property
    def calibration(self) -> Calibration:
        """Calibration of the model's scores."""
        return self.store.calibration

    @property
    def tie(self) -> float:
        """A score below this share of its terms' magnitudes is rounding error."""
        return self.store.tie

    @property
    def safe_norm2(self) -> float:
        """Sum of squares up to which an example is not too large for the kernel."""
        kernel, most = self.kernel, LARGEST
        if isinstance(kernel, Linear):
            most = min(most, self.store.largest_self_kernel)
        elif isinstance(kernel, Polynomial):
            most = min(most, self.store.largest_self_kernel ** (1.0 / kernel.degree) - kernel.coef0)
        return 0.999 * most

    @property
    def capacity(self) -> int:
        """Number of allocated slots."""
        return self.store.capacity

    @property
    def slots(self) -> list[int]:
        """The supports' slots, the oldest first."""
        return self.store.slots()

    @property
    def serials(self) -> list[int]:
        """Serial number of each support, counting all ever added; the oldest first."""
        return self.store.support_serials()

    def kernels(self, n: int | None = None) -> Array:
        """Kernel between the point and each slot, with zeros up to `n` values or the capacity."""
        kernels = np.zeros(self.capacity if n is None else n)
        self.store.write_kernels(kernels)
        return kernels

    def content(self, x: Features) -> Content:
        """Return the content of the example read last."""
        return content_of(x)

    def coefficient(self, i: int) -> float:
        """Coefficient of support number `i`."""
        return self.store.coefficient(self.store.slot(i))

    def read_support(self, i: int) -> None:
        """Read support number `i` as the point."""
        self.store.read_support(self.store.slot(i))

    def __iter__(self) -> Iterator[tuple[dict[Hashable, float], float]]:
        """Yield each support and its coefficient, the oldest first."""
        for slot in self.slots:
            yield self.store.support(slot), self.store.coefficient(slot)

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
