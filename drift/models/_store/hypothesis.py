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
    """

    budget: int | None

    # --- the point ------------------------------------------------------------------------------

    def read(self, x: Features) -> None:
        """Read an example; FeatureError and FeatureTypeError change nothing."""

    def read_support(self, i: int) -> None:
        """Read the `i`-th oldest support, from 0."""

    def score(self) -> float:
        """Score of the point, ``sum_i coefficient_i k(x_i, x)``; 0 within rounding of 0."""

    def score_of(self, x: Features) -> float:
        """Read an example and return its score."""

    def rounding(self) -> float:
        """Bound on the rounding error of the score."""

    def self_kernel(self) -> float:
        """Kernel between the point and itself."""

    def content(self, x: Features) -> Content:
        """Return the content of the example read last."""

    # --- the supports ---------------------------------------------------------------------------

    def n_supports(self) -> int:
        """Number of supports, in a quarter of the time that `len` takes."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[dict[Hashable, float], float]]:
        """Yield each support and its coefficient, the oldest first."""

    def coefficient(self, i: int) -> float:
        """Coefficient of the `i`-th oldest support, from 0."""

    def add(self, x: Features, coefficient: float) -> int:
        """Add the example read last, which is `x`, as the newest support; return its slot."""

    def evict(self, i: int) -> int:
        """Evict the `i`-th oldest support, from 0; return its slot."""

    def scale_coefficients(self, c: float) -> None:
        """Multiply every coefficient by a number, in constant time."""

    def smallest(self) -> int:
        """Slot of the smallest coefficient, without the newest; of equal ones the oldest."""

    def nearest(self, slot: int) -> tuple[int, float]:
        """Read a support; return the slot of its nearest neighbour and the share for `merge`."""

    def merge(self, slot: int, target: int, share: float) -> None:
        """Evict a support and add a share of its coefficient to another's; if they cancel, 0."""

    # --- what they belong to --------------------------------------------------------------------

    @property
    def kernel(self) -> Kernel:
        """Kernel between examples."""

    @property
    def store(self) -> ColumnStore:
        """The column store."""

    @property
    def slots_in_store(self) -> array[int] | None:
        """Slots of the supports, the oldest first; None if they are all of the store's supports."""

    @property
    def tie(self) -> float:
        """A score below this share of its terms' magnitudes is rounding error."""

    @property
    def calibration(self) -> Calibration:
        """The store's calibration of scores."""

    @property
    def guard(self) -> Guard:
        """The model's lock, with rollback of failed updates."""

    @guard.setter
    def guard(self, guard: Any) -> None: ...
