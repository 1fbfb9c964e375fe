"""Error against what it costs: the figure that comparisons, the arena and papers share."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.experiments.comparison.measures import COSTS
from drift.experiments.comparison.tables import grouped
from drift.experiments.plots import COLOURS, GREY, finish, log_axis, log_errors, panels_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from drift.experiments.jobs import Record
    from drift.experiments.plots import Point

__all__ = ["Panel", "error_against_cost", "panel_of"]

#: Curves that have a colour: more hide each other.
_BEST = 6
#: Errors so many times the least are said, not drawn.
_FAR = 3.0
#: Percent that are drawn, at least: a logarithmic axis has no zero.
_LEAST = 0.1


class Panel(NamedTuple):
    """What errors are drawn against.

    Each of `spots` is a model: its ``name``, ``cost``, ``error`` in percent; ``curve``, which joins
    it to others; and ``drift``, whether it is one of drift's.
    """

    axis: str
    spots: Sequence[Record]
    title: str = ""


def panel_of(
    rows: Iterable[Record], cost: str, records: Iterable[Record], title: str = ""
) -> Panel:
    """Return a panel with a point for each model.

    Parameters
    ----------
    rows
        Of `drift.experiments.comparison.tables.costs`.
    cost
        ``microseconds`` or ``memory``.
    records
        Runs, of which those of drift's models have a fingerprint of its code.
    title
        Of the panel.
    """
    ours = {record["model"] for record in records if record.get("code")}
    spots = [
        {"name": row["model"], "curve": row["model"], "drift": row["model"] in ours}
        | {"cost": COSTS[cost].factor * row[cost], "error": 100 * row["error"]}
        for row in rows
    ]
    return Panel(COSTS[cost].title, spots, title)


def error_against_cost(title: str, panels: Sequence[Panel], *, every: bool = False) -> Figure:
    """Draw errors against costs: a curve a series, else a point.

    Parameters
    ----------
    title
        Of the figure.
    panels
        Side by side; their errors have one axis.
    every
        Draw and name all. Else those on the front and the best of the coloured curves are named,
        and errors of three times the least and more are written above.

    Returns
    -------
    Figure
        Coloured are the six curves of least error, grey is the rest. A line is the front, which
        nothing beats in both. Models that are not drift's are hollow.
    """
    figure, axes = panels_of(12.6, 6.4, columns=max(1, len(panels)), sharey=True)
    least: dict[str, float] = {}
    for spot in (spot for panel in panels for spot in panel.spots):
        least[spot["curve"]] = min(spot["error"], least.get(spot["curve"], math.inf))
    lowest = max(min(least.values(), default=0.0), _LEAST)
    limit = math.inf if every else _FAR * lowest
    colours = dict(zip(sorted(least, key=least.__getitem__)[:_BEST], COLOURS, strict=False))
    named = [
        _draw(axes, panel, colours, limit, every=every)
        for axes, panel in zip(axes, panels, strict=False)
        if panel.spots
    ]
    axes[0].set_ylim(0.93 * lowest, None if every else limit)
    log_errors(axes[0])
    axes[0].set_ylabel("error (%)")
    note = (
        "line: the front, which nothing beats in both; coloured: the six of least error; "
        "hollow: River's"
    )
    far = [f"{name} {error:.1f}" for name, error in least.items() if error >= limit]
    note += f"\nabove the panels (%): {', '.join(far)}" if far else ""
    finish(figure, title, axes, note=note, points=named)
    return figure


def _draw(
    axes: Axes, panel: Panel, colours: Mapping[str, str], limit: float, *, every: bool
) -> tuple[list[Point], list[tuple[float, float]]]:
    """Draw errors; return those to name, each with name and colour, and what no name may hide."""
    best = []
    for (curve,), own in grouped(panel.spots, "curve").items():
        style: dict[str, Any] = {"color": colours.get(curve, GREY), "marker": "o"}
        style |= {} if own[0]["drift"] else {"markerfacecolor": "white"}
        style |= {"zorder": 3} if curve in colours else {"alpha": 0.55}
        line = sorted(map(_place, own))
        axes.plot(*zip(*line, strict=True), label=curve, linewidth=1.2, markersize=5, **style)
        best += [min(own, key=lambda spot: spot["error"])] if curve in colours else []
    drawn = [spot for spot in panel.spots if spot["error"] < limit]
    front = _front(drawn)
    corners = [_place(spot) for spot in front]
    axes.plot(*zip(*corners, strict=True), drawstyle="steps-post", color="0.3", lw=1, zorder=1)
    along = [
        (a ** (1 - part) * b**part, error)
        for (a, error), (b, _) in pairwise(corners)
        for part in np.linspace(0, 1, 40)
    ]
    low, high = (pick(spot["cost"] for spot in drawn) for pick in (min, max))
    axes.set_xlim(low / 1.5, 1.5 * high * (high / low) ** 0.2)  # with room for names at the right
    axes.set(xlabel=panel.axis, title=panel.title)
    log_axis(axes.xaxis)
    shown = {spot["name"]: spot for spot in (drawn if every else [*best, *front])}
    names = [(*_place(one), name, colours.get(one["curve"], GREY)) for name, one in shown.items()]
    return names, [*map(_place, drawn), *along]


def _place(spot: Record) -> tuple[float, float]:
    return spot["cost"], max(spot["error"], _LEAST)


def _front(spots: Sequence[Record]) -> list[Record]:
    """Return what no other beats in both cost and error, the cheapest first."""
    front: list[Record] = []
    for spot in sorted(spots, key=lambda spot: (spot["cost"], spot["error"])):
        if not front or spot["error"] < front[-1]["error"]:
            front.append(spot)
    return front
