"""The figure of the arena."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.experiments.arena.models import MODELS
from drift.experiments.arena.standings import Standings
from drift.experiments.arena.streams import KINDS
from drift.experiments.comparison.figures import error_against_cost, panel_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from drift.experiments.results import Results

__all__ = ["arena_cost"]


def arena_cost(results: Results) -> Figure:
    """Error against time, of each kind of streams.

    Parameters
    ----------
    results
        Of the arena.
    """
    standings, panels = results.cached(Standings.of), []
    ours = [name for name, family in MODELS.items() if family.library == "drift"]
    for kind in KINDS:
        streams, rows = standings.costs(kind)
        title = f"mean of {len(streams)} {kind} streams"
        panels += [panel_of(rows, "microseconds", ours, title)] if rows else []
    return error_against_cost("Error against time", panels, every=True, narrow=True)
