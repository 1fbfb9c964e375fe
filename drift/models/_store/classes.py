"""What a store needs to predict several classes, and to know which rows would update one."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["ClassHypotheses"]


class ClassHypotheses(NamedTuple):
    """The hypotheses of several classes over the slots of one store.

    Parameters
    ----------
    index_of
        Index of each class by its label, in order.
    coefficients
        A row for each class, as for `ColumnStore.class_scores`.
    factors
        Factor of each class's score; doubles.
    calibration
        Calibration of these scores.
    margin
        At least 0. An example causes no update if it clears this margin by more than rounding.
    rivals
        True: the score of the example's class exceeds each other score by more than the margin.
        False: that score is above the margin, and all others are below minus the margin.
    supports_may_update
        Whether an example that equals a support may cause an update, whatever its score.
    """

    index_of: dict[Any, int]
    coefficients: Any
    factors: Any
    calibration: Any
    margin: float
    rivals: bool = False
    supports_may_update: bool = False
