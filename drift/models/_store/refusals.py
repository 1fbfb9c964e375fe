"""What both stores say where they refuse."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from drift.errors import FeatureError

if TYPE_CHECKING:
    from drift.kernels import Kernel

__all__ = ["NO_POINT", "finite_self_kernel", "no_finite_value"]

#: The error of a score without a point.
NO_POINT = (
    "the store has no point: read an example first, and again after a support was added or evicted"
)


def no_finite_value(kernel: Kernel) -> FeatureError:
    """Return the error for an example at which a kernel is infinite or undefined."""
    return FeatureError(
        f"the kernel {kernel!r} has no finite value at this example: scale the features, or leave "
        "the example out if it has none"
    )


def finite_self_kernel(kernel: Kernel, squared_norm: float) -> float:
    """Return k(x, x) for a squared norm.

    Raises
    ------
    FeatureError
        The kernel is infinite or undefined there.
    """
    try:
        value = float(kernel(squared_norm, squared_norm, squared_norm))
    except ArithmeticError as problem:
        raise no_finite_value(kernel) from problem
    if not math.isfinite(value):
        raise no_finite_value(kernel)
    return value
