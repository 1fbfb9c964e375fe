"""The arena's figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.experiments.arena.standings import Standings
from drift.experiments.figures import error_against_cost, panel_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from drift.experiments.results import Results

__all__ = ["cost"]


def cost(results: Results) -> Figure:
    """Error against time, of real streams and of generated ones.

    Parameters
    ----------
    results
        Of the arena.
    """
    standings, panels = results.once(Standings.of), []
    for kind in ("real", "generated"):
        streams, rows = standings.costs(real=kind == "real")
        title = f"mean of {len(streams)} {kind} streams"
        panels += [panel_of(rows, "microseconds", results.records, title)] if rows else []
    return error_against_cost("Error against time", panels, every=True)
