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
        At least 0. An example whose margin exceeds this by more than rounding causes no update.
    rivals
        What the margin of an example is. True: the score of its class minus the best other score.
        False: the least of that score and the other scores with their signs reversed.
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
