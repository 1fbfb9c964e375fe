"""The arena's figure: error against time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.experiments.arena.costs import costs
from drift.experiments.arena.results import OWN
from drift.experiments.plots import COLOURS, GREY, finish, log_axis, log_errors, panels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from drift.experiments.arena.results import ArenaResults

__all__ = ["against_cost"]


def against_cost(results: ArenaResults) -> Figure:
    """Draw mean error against time an example: a point a model, named where it is.

    Parameters
    ----------
    results
        Of a group of streams those count on which every model of the panel has ended well.
    """
    groups = {kind: costs(results, real=kind == "real") for kind in ("real", "generated")}
    drawn = {kind: (streams, rows) for kind, (streams, rows) in groups.items() if rows}
    figure, panels = panels_of(12, 6, columns=max(1, len(drawn)))
    named = []
    for panel, (kind, (streams, rows)) in zip(panels, drawn.items(), strict=False):
        names = []
        for row in rows:
            x, y, own = row["microseconds"], 100 * row["error"], row["model"].startswith(OWN)
            beaten = any(a["error"] < row["error"] and a["microseconds"] <= x for a in rows)
            colour = COLOURS[2 if own else 1]
            panel.plot(x, y, "D" if own else "o", color=colour)
            names.append((x, y, row["model"], GREY if beaten else colour))
        times = [row["microseconds"] for row in rows]
        panel.set(title=f"mean of {len(streams)} {kind} streams", xlabel="time an example (µs)")
        panel.set_xlim(min(times) / 2, 5 * max(times))  # room for names
        log_axis(panel.xaxis)
        log_errors(panel)
        named.append((names, ()))
    panels[0].set_ylabel("mean error (%)")
    note = "grey: another model is better in both"
    finish(figure, "Error against time", panels, note=note, points=named)
    return figure
