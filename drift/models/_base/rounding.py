"""Sums that are 0 where their terms cancel within rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RELATIVE_TOLERANCE", "sum_or_zero", "sums_or_zeros"]

#: A double sum up to this times its terms' magnitudes is rounding error.
RELATIVE_TOLERANCE = 2.0**-40


def sum_or_zero(a: float, b: float, relative_tolerance: float = RELATIVE_TOLERANCE) -> float:
    """Return the sum of two numbers; 0 if they cancel within rounding."""
    return 0.0 if abs(a + b) <= relative_tolerance * (abs(a) + abs(b)) else a + b


def sums_or_zeros(
    a: NDArray[Any], b: NDArray[Any], relative_tolerance: float = RELATIVE_TOLERANCE
) -> NDArray[Any]:
    """Return the sums of two arrays, 0 where their terms cancel within rounding."""
    sums: NDArray[Any] = a + b
    sums[np.abs(sums) <= relative_tolerance * (np.abs(a) + np.abs(b))] = 0.0
    return sums
