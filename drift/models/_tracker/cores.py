"""The core of a tracker: compiled or not, and for labels at once or late."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from drift.models._store import supports as stores

if TYPE_CHECKING:
    from drift.models._tracker.plan import Plan

__all__ = ["new_core"]


def new_core(plan: Plan, scale: str, seed: int, delay: int) -> Any:
    """Return the core of a tracker, of the kind of the stores in use.

    Parameters
    ----------
    plan
        Parameters of the tracker.
    scale, seed, delay
        The tracker's own.
    """
    if delay:
        from drift.models._tracker.late import LateCore  # noqa: PLC0415  (imports numpy)

        return LateCore(partial(new_core, plan, scale, seed, 0), delay)
    if stores.ColumnStore.__module__ == "drift.models._store.columns":
        from drift.models._store.columns import TrackerCore  # noqa: PLC0415
    else:
        from drift.models._tracker.plain import TrackerCore  # type: ignore[assignment]  # noqa: PLC0415
    return TrackerCore(plan, scale, seed, stores.column_type() == "float64")
