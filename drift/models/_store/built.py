"""The column store and what is compiled with it, or the same in plain Python.

Other modules import these names from here. Beside the store they are the guard, the calibration,
`prefix_votes` for the `VotedPerceptron`, and `numbered_objects` and `rows_to_check` for batches.
"""

from __future__ import annotations

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
except ImportError as problem:  # built without a C compiler, or damaged
    from drift.models._base.guard import Guard  # type: ignore[assignment]
    from drift.models._base.rows import numbered_objects, rows_to_check
    from drift.models._store.calibration import Calibration  # type: ignore[assignment]
    from drift.models._store.plain import ColumnStore, prefix_votes  # type: ignore[assignment]

    warn_missing("All models give the same results, but 50 to 350 times more slowly", problem)

__all__ = [
    "Calibration",
    "ColumnStore",
    "Guard",
    "compiled",
    "numbered_objects",
    "prefix_votes",
    "rows_to_check",
]

#: Whether the compiled column store is in use.
compiled: bool = ColumnStore.__module__ == "drift.models._store.columns"
