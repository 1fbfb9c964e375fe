"""The precision of columns: that of new models, `drift.models.column_type`, and how to keep it."""

from __future__ import annotations

import math
import os

from drift.errors import ParameterError

__all__ = ["column_type", "is_wide", "power_of_two"]

_COLUMN_TYPES = ("float32", "float64")
_column_type = "float32"


def column_type(name: str | None = None) -> str:
    """Return the type of the columns of models created from now on; with `name`, set it.

    Norms, coefficients and kernel values are always float64. Columns are float32 by default; the
    environment variable ``DRIFT_COLUMNS`` sets another default.

    Parameters
    ----------
    name
        ``"float32"`` (half the memory, faster; inner products to about 1e-7 of the norms) or
        ``"float64"``.

    Returns
    -------
    str
        The type before the call.

    Raises
    ------
    ParameterError
        `name` is neither.

    Examples
    --------
    >>> before = column_type("float64")
    >>> column_type(before)
    'float64'
    """
    global _column_type  # noqa: PLW0603
    before = _column_type
    if name is not None:
        if name not in _COLUMN_TYPES:
            raise ParameterError(f"columns are float32 or float64, not {name!r}")
        _column_type = name
    return before


def is_wide(wide: bool) -> bool:  # noqa: FBT001
    """Whether a new model has float64 columns, which it has if it asks for them itself."""
    return wide or _column_type == "float64"


def power_of_two(squared_norm: float) -> float:
    """Return what values are divided by that are not stored with unit norm.

    It is the power of two above the norm, or 1 if that is 0: dividing by it rounds nothing, and
    float32 cannot overflow.
    """
    return math.ldexp(1.0, math.frexp(math.sqrt(squared_norm))[1])


column_type(os.environ.get("DRIFT_COLUMNS") or None)
