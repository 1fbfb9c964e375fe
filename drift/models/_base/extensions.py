"""Compiled extensions: one of another version is refused, and a missing one is warned of."""

from __future__ import annotations

import multiprocessing
import warnings
from typing import TYPE_CHECKING

from drift import __version__

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["check_version", "warn_missing"]

_REMEDY = "in its source folder: pip install -e ."


def check_version(extension: ModuleType) -> None:
    """Refuse, with RuntimeError, a compiled module of another version of drift."""
    if (compiled_version := extension.__version__) != __version__:
        raise RuntimeError(
            f"the compiled extension {extension.__file__} is that of drift {compiled_version}, the "
            f"Python code that of drift {__version__}. Install drift again, {_REMEDY}"
        )


def warn_missing(cost: str, problem: ImportError) -> None:
    """Warn that drift runs without a compiled extension.

    Worker processes stay silent, because they would repeat the main process's warning.

    Parameters
    ----------
    cost
        A sentence that says what that costs.
    problem
        Why the extension could not be imported.
    """
    if multiprocessing.parent_process() is None:
        warnings.warn(
            f"drift.models runs without its compiled extension ({problem}). {cost}. Install a C "
            f"compiler, and then drift again, {_REMEDY} (with -v pip shows why one fails)",
            RuntimeWarning,
            stacklevel=3,
        )
