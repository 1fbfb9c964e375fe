"""What is compiled: the column store and what is built with it; or the same in plain Python.

Other modules import these names from here. Beside the store they are the guard, the calibration,
`prefix_votes` for the `VotedPerceptron`, and `numbered_objects` and `rows_to_check` for batches.
"""

from __future__ import annotations

import os

from drift.errors import ParameterError
from drift.models._base.extensions import check_version, warn_missing

try:
    from drift.models._store import columns

    check_version(columns)
    from drift.models._store.columns import (
        Calibration,
        ColumnStore,
        Guard,
        numbered_objects,
        prefix_votes,
        rows_to_check,
    )
except ImportError:  # built without a C compiler
    from drift.models._base.guard import Guard  # type: ignore[assignment]
    from drift.models._base.rows import numbered_objects, rows_to_check
    from drift.models._store.calibration import Calibration  # type: ignore[assignment]
    from drift.models._store.plain import ColumnStore, prefix_votes  # type: ignore[assignment]

    warn_missing(": the same results, but 50 to 350 times more slowly")

__all__ = [
    "Calibration",
    "ColumnStore",
    "Guard",
    "column_type",
    "compiled",
    "numbered_objects",
    "prefix_votes",
    "rows_to_check",
]

#: Whether the compiled column store is in use.
compiled: bool = ColumnStore.__module__ == "drift.models._store.columns"

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


column_type(os.environ.get("DRIFT_COLUMNS") or None)
