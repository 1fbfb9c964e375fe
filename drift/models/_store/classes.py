"""Hypotheses over the slots of one store."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Classes"]


class Classes(NamedTuple):
    """Hypotheses over the slots of one store.

    Parameters
    ----------
    numbers
        Number of each class by its label, in their order.
    weights
        A row for each, as for `ColumnStore.class_scores`.
    factors
        Factor of each one's scores; doubles.
    calibration
        Calibration of these scores.
    margin
        At least 0. An example causes no update if its class has more than this, beyond rounding.
    rivals
        True: more than each other class by the margin. False: a score above the margin, and those
        of all other classes below minus the margin.
    supports_may_update
        Whether an example that equals a support may cause an update in any case.
    """

    numbers: dict[Any, int]
    weights: Any
    factors: Any
    calibration: Any
    margin: float
    rivals: bool = False
    supports_may_update: bool = False
