"""What a store needs to predict several classes, and to know which rows would update one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from array import array

    from drift.types import Array, Label

__all__ = ["ClassHypotheses"]


class ClassHypotheses(NamedTuple):
    """The hypotheses of several classes over the slots of one store.

    Parameters
    ----------
    index_of
        Index of each class by its label, in order.
    coefficients
        A row for each class, as for `ColumnStore.class_scores`.
    coefficient_factors
        Factor of each class's coefficients, and so of its score; doubles.
    calibration
        Calibration of these scores.
    update_margin
        At least 0. An example whose margin exceeds this by more than rounding causes no update.
    over_rival
        Whether an example's margin is the score of its class minus the best other score, the
        rival's. Else it is the least of that score and the other scores with their signs reversed.
    repeats_may_update
        Whether an example that equals a support may cause an update, whatever its score.
    """

    index_of: dict[Label, int]
    coefficients: Array
    coefficient_factors: Array | array[float]
    calibration: Any  # of the compiled module or of the plain one
    update_margin: float
    over_rival: bool = False
    repeats_may_update: bool = False
