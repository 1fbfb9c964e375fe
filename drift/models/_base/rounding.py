"""Sums that are 0 where their terms cancel within rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TIE", "sum_or_zero", "sums_or_zeros"]

#: A double sum below this share of its terms' magnitudes is rounding error.
TIE = 2.0**-40


def sum_or_zero(a: float, b: float, tie: float = TIE) -> float:
    """Return the sum of two numbers; 0 if they cancel within rounding."""
    return 0.0 if abs(a + b) <= tie * (abs(a) + abs(b)) else a + b


def sums_or_zeros(a: NDArray[Any], b: NDArray[Any], tie: float = TIE) -> NDArray[Any]:
    """Return the sums of two arrays, 0 where their terms cancel within rounding."""
    sums: NDArray[Any] = a + b
    sums[np.abs(sums) <= tie * (np.abs(a) + np.abs(b))] = 0.0
    return sums
