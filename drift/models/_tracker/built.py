"""The compiled core, or the reference where it was not built."""

from drift.models._base.extensions import check_version, warn_missing
from drift.models._store import built as store

__all__ = ["TrackerCore", "compiled"]

#: Whether all of drift's compiled extensions are in use.
compiled: bool = store.compiled

try:
    if not store.compiled:
        raise ImportError  # noqa: TRY301 - the store has warned
    from drift.models._tracker import core

    check_version(core)
    from drift.models._tracker.core import TrackerCore
except ImportError as problem:
    from drift.models._tracker.reference_core import TrackerCore  # type: ignore[assignment]

    if compiled:
        warn_missing("The Tracker takes some 200 times as long", problem)
    compiled = False
