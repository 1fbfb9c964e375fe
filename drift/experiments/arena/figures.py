"""The figures of the arena."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.experiments.arena.models import MODELS
from drift.experiments.arena.standings import Standings
from drift.experiments.arena.streams import KINDS, STREAMS
from drift.experiments.comparison.figures import error_against_cost, panel_of
from drift.experiments.plots import COLOURS, finish, panels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from drift.experiments.results import Results

__all__ = ["arena_cost", "arena_leads"]


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


def arena_leads(results: Results) -> Figure:
    """By how much the Tracker is ahead of the best other model on each held-out stream.

    Parameters
    ----------
    results
        Of the arena.
    """
    rows = results.cached(Standings.of).leads()
    figure, (axes,) = panels_of(6.0, 0.8 + 0.27 * len(rows), 1, 1)
    for kind, colour, is_real in (("data set", COLOURS[1], True), ("generated", COLOURS[5], False)):
        chosen = [
            (place, row)
            for place, row in enumerate(rows)
            if bool(STREAMS[row["stream"]].source) is is_real
        ]
        leads = [-100 * row["gap"] for _, row in chosen]
        places = [place for place, _ in chosen]
        bars = axes.barh(places, leads, height=0.7, color=colour, label=kind)
        axes.bar_label(bars, fmt="%+.1f", padding=3, fontsize=8)
    axes.margins(x=0.15)  # for the numbers
    axes.set_yticks(range(len(rows)), [f"{row['stream']} ({row['rival']})" for row in rows])
    axes.invert_yaxis()
    axes.axvline(0, color="0.3", lw=1)
    axes.set_xlabel("lead of the Tracker over the best other (points)")
    return finish(figure, "Held-out streams", [axes], columns=2)
