# The contract of both stores, for type checkers, editors and readers.

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Self

from drift.kernels import Kernel
from drift.models._base.guard import Part
from drift.models._base.rows import Rows
from drift.models._store.classes import ClassHypotheses
from drift.models._store.stepped_model import SteppedModel
from drift.types import Features

__version__: str

# The plain forms of these have the docstrings: `_base/rows.py`, `_base/guard.py`, `calibration.py`.

def numbered_objects(values: list[Any]) -> tuple[list[Any], bytearray] | None: ...
def rows_to_check(rows: Rows | list[Any], largest: float) -> list[int]: ...

class Guard:
    def acquire(self) -> None: ...
    def release(self) -> None: ...
    def run(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...
    def update(self, part: Part, change: Callable[..., Any], *args: Any) -> Any: ...
    def save(self, array: Any, slot: int = ...) -> None: ...
    def defer(self, call: Callable[[], Any]) -> None: ...

class Calibration:
    slope: float
    mean_square: float
    total_weight: float
    score_factor: float
    def __init__(
        self, slope: float = ..., mean_square: float = ..., total_weight: float = ...
    ) -> None: ...
    def learn(self, score: float, sign: float, w: float) -> None: ...
    def learn_classes(self, scores: Any, k: int, w: float) -> None: ...
    def state(self) -> list[float]: ...

class ColumnStore:
    """The column store: supports by feature, and the score of an example.

    The point is the example or support that was read last. There is none after an update that was
    undone, or an example that was refused: what needs it raises RuntimeError until another is read.
    So does what needs its features, all but `self_kernel`, after a support was added or evicted.
    A slot is the place of one support; there are `capacity` at most. What takes a slot raises
    IndexError if no support is there. Buffers by slot, such as `out`, have a double for each slot.
    A buffer of another type, with fewer items, or not contiguous, raises ValueError.

    Parameters
    ----------
    kernel
        A kernel of `drift.kernels`, or any other, which must take numpy arrays and floats.
    wide
        Keep the columns in float64 instead of float32. The plain store always does.
    limit
        Number of slots not to exceed when growing ahead of need; None for no limit.

    Attributes
    ----------
    guard
        The model's lock, with rollback of failed updates.
    calibration
        Calibration of the model's scores.
    n_added
        Number of supports ever added, which is the serial number of the last one.
    n_read
        Changes with the point. Equal points in succession may count once.
    relative_tolerance
        A score up to this times the sum of its terms' magnitudes is rounding error.
    largest_self_kernel
        A larger k(x, x) is refused, for kernels that grow with x.
    capacity
        Number of slots for which there is memory, a multiple of `LANES`. The plain store needs none
        ahead: it gives the least that has all slots.
    """

    guard: Guard
    calibration: Calibration
    n_added: int
    n_read: int
    kernel: Kernel
    wide: bool
    relative_tolerance: float
    largest_self_kernel: float
    capacity: int
    def __init__(self, kernel: Kernel, wide: bool = ..., limit: int | None = ...) -> None: ...

    # --- the point ------------------------------------------------------------------------------

    def read(self, x: Features) -> None:
        """Read an example as the point.

        Raises
        ------
        FeatureError, FeatureTypeError
            A value is not a finite number, or k(x, x) is too large. The supports do not change.
        """

    def read_slot(self, slot: int) -> None:
        """Read the support in a slot as the point."""

    def score(self) -> float:
        """Return the point's sum of coefficient * kernel; 0 within rounding of 0.

        Raises
        ------
        FeatureError
            The sum is not finite.
        """

    def score_of(self, x: Features) -> float:
        """Read an example and return its score."""

    def error_bound(self) -> float:
        """Return a bound on the rounding error of `score`, which is computed if it was not."""

    def self_kernel(self) -> float:
        """Return the kernel between the point and itself, which may have become a support.

        Raises
        ------
        FeatureError
            A user's kernel is not finite there.
        """

    def write_kernels(self, out: Any) -> int:
        """Write the kernel between the point and each slot; return the number of slots.

        A free slot gets an arbitrary value.
        """

    def class_scores(self, coefficients: Any, scores: Any, error_bounds: Any) -> None:
        """Score the point under several sets of coefficients, from the same kernel values.

        Parameters
        ----------
        coefficients
            A row for each set, `capacity` wide or wider, with zeros after the last slot. It may be
            narrower if all slots fit, rounded up to a multiple of `LANES`.
        scores
            Gets the score of each set; 0 within rounding of 0.
        error_bounds
            Gets the bound on each score's rounding error.

        Raises
        ------
        FeatureError
            A score is not finite.
        """

    # --- learning and batches -------------------------------------------------------------------

    def learn_with(self, x: Features, y: Any, sign: float, model: SteppedModel) -> float:
        """Read an example, let a model learn it, and return the score before the update.

        An example with a margin above ``model._update_margin`` changes only the calibration, unless
        the model would adopt its label.
        """

    def score_rows(self, rows: Rows | list[Any], scores: list[float]) -> None:
        """Append the score of each row."""

    def learn_rows_with(
        self,
        rows: Rows | list[Any],
        predictions: list[Any],
        labels: list[Any] | None,
        signs: Any,
        model: SteppedModel,
        *,
        stop: int | None = ...,
        until_update: bool = ...,
    ) -> None:
        """Predict rows, and learn them as `learn_with` does, from row ``len(predictions)`` on.

        Parameters
        ----------
        rows
            The examples.
        predictions
            Gets the prediction of each row, one of ``model._labels``, once the row is learnt.
        labels
            Label of each row; None: predict only.
        signs
            Signs of the labels, int8; ignored without labels.
        model
            The model that learns. Its margin is read once.
        stop
            Stop before this row; None for the end.
        until_update
            Whether to stop before a row that needs an update.
        """

    def learn_class_rows_until_update(
        self,
        rows: Rows | list[Any],
        predictions: list[Any],
        labels: list[Any] | None,
        classes: ClassHypotheses,
    ) -> None:
        """Predict and learn rows, from ``len(predictions)`` on, up to the first that may update.

        Learning such a row changes only the classes' calibration.

        Parameters
        ----------
        rows
            The examples.
        predictions
            Gets the prediction of each row before that one.
        labels
            Label of each row. None: predict only, up to the first tie within rounding.
        classes
            The classes' hypotheses, and when a row causes no update.
        """

    # --- the supports ---------------------------------------------------------------------------

    def n_supports(self) -> int:
        """Return the number of supports."""

    def slot(self, i: int) -> int:
        """Return the slot of the `i`-th oldest support, from 0; negative: from the newest, -1.

        Raises
        ------
        IndexError
            There are fewer supports.
        """

    def slots_by_age(self) -> list[int]:
        """Return the supports' slots, the oldest first."""

    def serials_by_age(self) -> list[int]:
        """Return the supports' serial numbers, counting all ever added from 1; the oldest first."""

    def support_in_slot(self, slot: int) -> dict[Hashable, float]:
        """Return a support: of unit norm if the kernel normalises examples, else as added."""

    def add(self, x: Features, coefficient: float) -> int:
        """Add an example as the newest support; return its slot.

        It is read first, unless it is the point already. It is not the point any more then. If
        anything fails, the code of a name included, the supports do not change.

        Raises
        ------
        FeatureError, FeatureTypeError
            As by `read`, or k(x, x) of a user's kernel is not finite.
        """

    def evict(self, i: int) -> int:
        """Evict the `i`-th oldest support, as `slot` counts; return its slot.

        Names that no other support has are forgotten.
        """

    def evict_slot(self, slot: int) -> None:
        """Evict the support in a slot."""

    def slot_of_smallest(self, magnitudes: Any = ...) -> int:
        """Return the slot of the smallest support, without the newest; of equal ones the oldest.

        Parameters
        ----------
        magnitudes
            Magnitude by slot; by default that of the coefficient. NaN is never the smallest.

        Raises
        ------
        IndexError
            There are fewer than two supports.
        ValueError
            All magnitudes are NaN.
        """

    def nearest(self, slot: int, slots_by_age: Any = ...) -> tuple[int, float]:
        """Read a support as the point; return its nearest neighbour's slot and a ratio to merge.

        The nearest neighbour ``j`` is the one onto which a projection of the support ``i`` loses
        least: ``k(x_i, x_j)^2 / k(x_j, x_j)`` is the largest; of equals, the first. So it may be
        opposite. The ratio is ``k(x_i, x_j) / k(x_j, x_j)``, negative then. If all others are
        orthogonal, the result is -1 and 0.0.

        Parameters
        ----------
        slot
            Slot of the support.
        slots_by_age
            Slots of the candidates, int32; by default all supports, the oldest first.
        """

    def merge(self, slot: int, target: int, ratio: float) -> None:
        """Evict a support and add its coefficient times a ratio to another's; if they cancel, 0.

        A ratio of 0 needs no other support: what `nearest` returns can be passed on.

        Raises
        ------
        ValueError
            A support is to be merged into itself.
        """

    # --- coefficients ---------------------------------------------------------------------------

    def coefficient_in_slot(self, slot: int) -> float:
        """Return the coefficient of the support in a slot."""

    def write_coefficients(self, out: Any) -> int:
        """Write the coefficient of each slot, 0 for a free one; return the number of slots."""

    def set_coefficients(self, values: Any) -> None:
        """Set the coefficient of each slot; free slots ignore it."""

    def add_coefficients(self, values: Any) -> None:
        """Add a number to the coefficient of each slot; free slots ignore it.

        Terms that cancel within the `relative_tolerance` give 0: a coefficient of 1e-16 that should
        be 0 could decide the sign of a score.
        """

    def scale_coefficients(self, c: float) -> None:
        """Multiply every coefficient by a number, in constant time."""

    # --- state ----------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that a store is, as plain values and arrays, with the order of sums.

        Each store restores the other's state. Its keys are those of stored models:

        - ``wide``, ``capacity``, ``n_added``: the attributes;
        - ``most``: `largest_self_kernel`;
        - ``calibration``: arguments of `Calibration`;
        - ``names``: name of each column, None if it is free;
        - ``free_columns``, ``free_slots``: stacks, of which the last item is used next;
        - ``dense``: columns with a value for each slot in memory;
        - ``serials``: serial number by slot, 0 in a free one;
        - ``sizes``: number of features by slot;
        - ``ids``, ``values``: column and stored value of each feature, slot after slot;
        - ``scale``: what each slot's values were divided by, to be stored; 0 for a free one;
        - ``squared``: |x|^2 by slot; of the stored values if the kernel normalises examples;
        - ``weight``, ``factor``: coefficient by slot, and the factor of them all.
        """

    @classmethod
    def restore(cls, kernel: Kernel, limit: int | None, state: dict[str, Any]) -> Self:
        """Build a store from the `state` of either.

        Raises
        ------
        ValueError
            The state is inconsistent; `check.py` says what that means.
        """

    # --- rollback: compiled only, called by the compiled guard ----------------------------------

    # A compiled `Calibration` has them, too, and the store calls them. A plain object has
    # `rollback_copy` instead, from which the plain guard restores it.

    def start(self) -> None:
        """Start an update: changes can be undone until it is finished."""

    def undo(self) -> None:
        """Restore the state before the update, bit for bit.

        If memory is out, sums may be rounded in another order from then on.
        """

    def finish(self) -> BaseException | None:
        """Finish the update; return an exception that a forgotten name's code raised, or None."""

def prefix_votes(
    store: ColumnStore,
    slots_by_age: Sequence[int] | None,
    coefficients: Sequence[float],
    votes: Sequence[float],
    averaged: bool,
) -> tuple[float, float]:
    """Score the point under all prefixes of an expansion; return their vote and the last score.

    Parameters
    ----------
    store
        A store that has read the point.
    slots_by_age
        Slots of the supports of the expansion, in its order, int32; None: all supports.
    coefficients
        Coefficient of each support; doubles.
    votes
        Votes of each prefix, from the empty prefix on; doubles.
    averaged
        A prefix votes with its score instead of its sign. A sum within rounding of 0 is 0.
    """
