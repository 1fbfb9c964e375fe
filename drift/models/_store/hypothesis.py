"""What a model's hooks may ask of its supports, whether or not other hypotheses share them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from array import array
    from collections.abc import Hashable, Iterator

    from drift.kernels import Kernel
    from drift.models._base.examples import Content
    from drift.models._store.built import Calibration, ColumnStore, Guard
    from drift.types import Features

__all__ = ["Hypothesis"]


class Hypothesis(Protocol):
    """Supports with coefficients, and the point: the example or support that was read last.

    `SupportSet` has a store to itself; `SharedSupports` is one of several hypotheses over a store.
    A class may set `_shares_supports` if its hooks use nothing else of ``self._supports``.

    What takes an `i` means a support's age rank, from 0 for the oldest. A *slot* is another number,
    its place in the store: the two agree only until a support is evicted.

    What adds or evicts a support *ends the point*: until an example or support is read again,
    `score` raises RuntimeError. `add` reads its example by itself.
    """

    budget: int | None

    # --- the point ------------------------------------------------------------------------------

    def read(self, x: Features) -> None:
        """Make an example the point; FeatureError and FeatureTypeError change nothing."""

    def read_support(self, i: int) -> None:
        """Make the `i`-th oldest support the point; negative: from the newest, -1."""

    def score(self) -> float:
        """Return the point's score, ``sum_i coefficient_i k(x_i, x)``; 0 within rounding of 0."""

    def score_of(self, x: Features) -> float:
        """Read an example and return its score."""

    def error_bound(self) -> float:
        """Return a bound on the rounding error of `score`."""

    def self_kernel(self) -> float:
        """Return the kernel between the point and itself."""

    def content(self, x: Features) -> Content:
        """Return the content of the example read last."""

    # --- the supports ---------------------------------------------------------------------------

    def n_supports(self) -> int:
        """Return the number of supports, in a quarter of the time that `len` takes."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[dict[Hashable, float], float]]:
        """Yield each support and its coefficient, the oldest first."""

    def coefficient(self, i: int) -> float:
        """Return the coefficient of the `i`-th oldest support; negative: from the newest, -1."""

    def add(self, x: Features, coefficient: float) -> int:
        """Add `x`, the last example, as the newest support; return its slot. Ends the point."""

    def evict(self, i: int) -> int:
        """Evict the `i`-th oldest support; negative: from the newest, -1. Ends the point.

        Return its slot.
        """

    def scale_coefficients(self, c: float) -> None:
        """Multiply every coefficient by a number, in constant time."""

    def slot_of_smallest(self) -> int:
        """Return the slot of the smallest coefficient, without the newest; of equals the oldest."""

    def nearest(self, slot: int) -> tuple[int, float]:
        """Make a support the point; return its nearest neighbour's slot and a ratio to merge."""

    def merge(self, slot: int, target: int, ratio: float) -> None:
        """Evict a support and add its coefficient times a ratio to another's; if they cancel, 0.

        Ends the point.
        """

    # --- what they belong to --------------------------------------------------------------------

    @property
    def kernel(self) -> Kernel:
        """Kernel between examples."""

    @property
    def store(self) -> ColumnStore:
        """The column store."""

    @property
    def own_slots_by_age(self) -> array[int] | None:
        """Slots of the supports, the oldest first; None if they are all of the store's supports."""

    @property
    def relative_tolerance(self) -> float:
        """A score up to this times the sum of its terms' magnitudes is rounding error."""

    @property
    def calibration(self) -> Calibration:
        """The store's calibration of scores."""

    @property
    def guard(self) -> Guard:
        """The model's lock, with rollback of failed updates."""

    @guard.setter
    def guard(self, guard: Any) -> None: ...
