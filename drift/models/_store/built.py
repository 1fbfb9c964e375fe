"""The compiled store, or the plain one where it was not built; and the type of its columns."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from typing import TYPE_CHECKING

from drift import __version__
from drift.errors import ParameterError

if TYPE_CHECKING:
    from types import ModuleType


def check_version(extension: ModuleType) -> None:
    """Refuse, with RuntimeError, a compiled module of another version of drift."""
    if (compiled_version := extension.__version__) != __version__:
        raise RuntimeError(
            f"the compiled extension {extension.__file__} is that of drift {compiled_version}, the "
            f"Python code that of drift {__version__}. Install drift again, in its source folder: "
            "pip install -e ."
        )


def is_main_process() -> bool:
    """Whether this is no worker process, which would repeat the main process's warnings."""
    return multiprocessing.parent_process() is None


try:
    from drift.models._store import columns

    check_version(columns)
    from drift.models._store.columns import (
        Calibration,
        ColumnStore,
        Guard,
        coded,
        prefix_votes,
        suspects,
    )
except ImportError:  # built without a C compiler
    from drift.models._base.rows import coded, suspects
    from drift.models._store.plain import Calibration, ColumnStore, Guard, prefix_votes  # type: ignore[assignment]

    if is_main_process():
        warnings.warn(
            "drift.models runs without its compiled extension: the same results, but 50 to 350 "
            "times more slowly. Install a C compiler, and then drift again, in its source folder: "
            "pip install -e .",
            RuntimeWarning,
            stacklevel=2,
        )

__all__ = [
    "Calibration",
    "ColumnStore",
    "Guard",
    "check_version",
    "coded",
    "column_type",
    "compiled",
    "is_main_process",
    "prefix_votes",
    "suspects",
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
