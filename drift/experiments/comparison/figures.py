"""Figures of comparisons: errors over time and against cost, importances, mean ranks."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.experiments.comparison.importances import curves
from drift.experiments.comparison.measures import COSTS, MEASURES
from drift.experiments.comparison.statistics import ranks_of
from drift.experiments.comparison.tables import BASELINES, costs, own_rows
from drift.experiments.plots import (
    COLOURS,
    GREY,
    error_in_windows,
    examples,
    finish,
    log_axis,
    log_errors,
    panels_of,
    shifts,
)
from drift.experiments.records import grouped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from drift.experiments.jobs import Record
    from drift.experiments.plots import Point
    from drift.experiments.results import Results

__all__ = [
    "Panel",
    "cost",
    "error_against_cost",
    "features_over_time",
    "importances",
    "panel_of",
    "ranks",
    "windows",
]

#: Curves that have a colour: more hide each other.
_BEST = 6
#: Errors of so many times the lowest are listed, not drawn.
_FAR = 3.0
#: Percent that are drawn, at least: a logarithmic axis has no zero.
_LEAST = 0.1
#: Models whose error over time is drawn: more hide each other.
_DRAWN = 7
#: Models whose importances are drawn.
_PANELS = 3


class Panel(NamedTuple):
    """What errors are drawn against.

    Each of `spots` is a model: its ``name``, ``cost``, ``error`` in percent; ``curve``, which joins
    it to others; and ``drift``, whether it is one of drift's.
    """

    axis: str
    spots: Sequence[Record]
    title: str = ""


def panel_of(rows: Iterable[Record], cost: str, ours: Collection[str], title: str = "") -> Panel:
    """Return a panel with a point for each of the rows of `costs`; `ours` are drift's models."""
    spots = [
        {"name": row["model"], "curve": row["model"], "drift": row["model"] in ours}
        | {"cost": COSTS[cost].factor * row[cost], "error": 100 * row["error"]}
        for row in rows
    ]
    return Panel(COSTS[cost].title, spots, title)


def error_against_cost(
    title: str, panels: Sequence[Panel], *, every: bool = False, narrow: bool = False
) -> Figure:
    """Draw errors against costs: a curve a series, else a point.

    Parameters
    ----------
    title
        Of the figure.
    panels
        Their errors have one axis.
    every
        Draw and name all. Else only the Pareto front and the best of each coloured curve are named,
        and errors of three times the lowest and more are listed above.
    narrow
        Put the panels one above the other, for pages that are read on a telephone, too.

    Returns
    -------
    Figure
        The six models of lowest error are coloured, the others and the baselines grey. The line is
        the Pareto front. Markers of models that are not drift's are hollow.
    """
    n = max(1, len(panels))
    size = (6.0, 5.4 * n, n, 1) if narrow else (12.6, 6.4, 1, n)
    figure, axes = panels_of(*size, sharey=True)
    least: dict[str, float] = {}
    for spot in (spot for panel in panels for spot in panel.spots):
        least[spot["curve"]] = min(spot["error"], least.get(spot["curve"], math.inf))
    lowest = max(min(least.values(), default=0.0), _LEAST)
    limit = math.inf if every else _FAR * lowest
    best = sorted((one for one in least if one not in BASELINES), key=least.__getitem__)[:_BEST]
    colours = dict(zip(best, COLOURS, strict=False))
    named = [
        _draw(axes, panel, colours, limit, every=every)
        for axes, panel in zip(axes, panels, strict=False)
        if panel.spots
    ]
    # With room for a name above the highest.
    axes[0].set_ylim(0.93 * lowest, min(limit, 1.12 * max(least.values(), default=lowest)))
    log_errors(axes[0])
    for left in axes if narrow else axes[:1]:
        left.set_ylabel("error (%)")
    note = (
        "line: Pareto front of error and cost; coloured: the six lowest errors; hollow: not drift's"
    )
    far = [f"{name} {error:.1f}" for name, error in least.items() if error >= limit]
    note += f"\nabove the panels (%): {', '.join(far)}" if far else ""
    return finish(figure, title, axes, note=note, points=named)


def _draw(
    axes: Axes, panel: Panel, colours: Mapping[str, str], limit: float, *, every: bool
) -> tuple[list[Point], list[tuple[float, float]]]:
    """Draw errors; return the points to name, with colours, and those that names must not hide."""
    best = []
    for (curve,), spots in grouped(panel.spots, "curve").items():
        style: dict[str, Any] = {"color": colours.get(curve, GREY), "marker": "o"}
        style |= {} if spots[0]["drift"] else {"markerfacecolor": "white"}
        style |= {"zorder": 3} if curve in colours else {"alpha": 0.55}
        line = sorted(map(_place, spots))
        axes.plot(*zip(*line, strict=True), label=curve, linewidth=1.2, markersize=5, **style)
        best += [min(spots, key=lambda spot: spot["error"])] if curve in colours else []
    drawn = [spot for spot in panel.spots if spot["error"] < limit]
    front = _front(drawn)
    corners = [_place(spot) for spot in front]
    axes.plot(*zip(*corners, strict=True), drawstyle="steps-post", color="0.3", lw=1, zorder=1)
    along = [
        place
        for (a, high), (b, low) in pairwise(corners)
        for part in np.linspace(0, 1, 40)
        for place in ((a ** (1 - part) * b**part, high), (b, high ** (1 - part) * low**part))
    ]
    low, high = (pick(spot["cost"] for spot in drawn) for pick in (min, max))
    axes.set_xlim(low / 1.5, 1.5 * high * (high / low) ** 0.2)  # with room for names at the right
    axes.set(xlabel=panel.axis, title=panel.title)
    log_axis(axes.xaxis)
    shown = {spot["name"]: spot for spot in (drawn if every else [*best, *front])}
    names = [
        (*_place(spot), name, colours.get(spot["curve"], GREY)) for name, spot in shown.items()
    ]
    return names, [*map(_place, drawn), *along]


def _place(spot: Record) -> tuple[float, float]:
    return spot["cost"], max(spot["error"], _LEAST)


def _front(spots: Sequence[Record]) -> list[Record]:
    """Return the Pareto front of cost and error, the cheapest first."""
    front: list[Record] = []
    for spot in sorted(spots, key=lambda spot: (spot["cost"], spot["error"])):
        if not front or spot["error"] < front[-1]["error"]:
            front.append(spot)
    return front


def windows(results: Results) -> Figure:
    """Error in each window of the best models and of no change; known drifts are vertical lines.

    Parameters
    ----------
    results
        On one stream. Means over seeds and folds are drawn.
    """
    best = results.rows("table")
    drawn = [*best[:_DRAWN], *(row for row in best[_DRAWN:] if row["model"] == "no change")]
    lines = []
    colours = iter(COLOURS)
    for row in drawn:
        name, error = row["model"], MEASURES["error"].text(row["error_after_label"])
        records = [
            {"window_errors": [window["error"] for window in record["windows"]]}
            for record in results.records
            if record["model"] == name
        ]
        style: dict[str, Any] = {"linewidth": 1.0, "color": GREY}
        if name not in BASELINES:
            style = {"linewidth": 1.4, "color": next(colours)}
        lines.append((name, f"{name}, {error} %", records, style))
    (stream, known), *_ = results.streams.items()
    places = [drift["row"] for drift in known["drifts"]]
    title = f"{stream}: error over time{_after(best)}"
    return error_in_windows(title, known["rows"], lines, places, ["drift"])


def _after(rows: Iterable[Record]) -> str:
    """Say which rows the errors are of, where some came before the first label."""
    return ", after the first label" if any(row["blind"] for row in rows) else ""


def importances(results: Results) -> Figure:
    """Which features mattered when: a panel for each of the best models on the first stream.

    Parameters
    ----------
    results
        Of a comparison with `explain`. Means over seeds and folds are drawn.
    """
    (stream, known), *_ = results.streams.items()
    found = curves(results.rows("importances"), stream)
    best = [row["model"] for row in results.rows("table") if row["stream"] == stream]
    shown = {name: found[name] for name in best if name in found}
    places = [drift["row"] for drift in known["drifts"]]
    return features_over_time(stream, dict(list(shown.items())[:_PANELS]), known["rows"], places)


def features_over_time(
    title: str,
    models: Mapping[str, tuple[Sequence[float], Mapping[str, Sequence[float]]]],
    n: int,
    drifts: Sequence[float] = (),
) -> Figure:
    """Draw importances of features over a stream, a panel a model.

    Parameters
    ----------
    title
        Of the figure.
    models
        By name the rows at which importances were taken, and by feature their values there.
    n
        Rows of the stream.
    drifts
        Rows that are marked.
    """
    figure, panels = panels_of(11.0, 1.2 + 3.0 * len(models), len(models), 1)
    names = dict.fromkeys(name for _, features in models.values() for name in features)
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    ends: list[list[tuple[float, str, str]]] = []
    for panel, (model, (rows, features)) in zip(panels, models.items(), strict=True):
        ends.append([])
        for name, values in features.items():
            panel.plot(rows, values, label=name, color=colours[name], linewidth=1.6)
            ends[-1].append((values[-1], name, colours[name]))
        shifts(panel, drifts, ["drift"])
        examples(panel, n)
        panel.set_ylim(bottom=0)
        panel.set_ylabel("mean |contribution|")
        panel.set_title(model, fontsize=10, loc="left", parse_math=False)
    return finish(
        figure,
        f"{title}: which features mattered when",
        panels,
        note="contributions to the log-odds of the predicted class, of recent rows",
        ends=ends,
    )


def cost(results: Results) -> Figure:
    """Error against time and against memory: a point a model, means over streams.

    Parameters
    ----------
    results
        Models that ended on every stream, in its own order, are drawn.
    """
    streams = [name for name, stream in results.streams.items() if not stream["shuffled"]]
    rows = results.rows("table")
    spots = costs([row | {"error": row["error_after_label"]} for row in rows], streams)
    # Records of drift's models have a fingerprint of its code; those of River's, too, where texts
    # take one of drift's in their place.
    ours = {record["model"] for record in results.records if record.get("code")}
    ours -= {record["model"] for record in results.records if not record.get("code")}
    panels = [panel_of(spots, cost, ours) for cost in COSTS]
    name = streams[0] if len(streams) == 1 else "mean"
    return error_against_cost(f"{name}: error against cost{_after(rows)}", panels, every=True)


def ranks(results: Results) -> Figure:
    """Mean ranks of the models over streams, or folds, on a line: an illustration, no test.

    Parameters
    ----------
    results
        Models that ended everywhere are drawn. A bar joins those whose ranks differ by less than
        the critical difference of Nemenyi's test at 5 %.

    References
    ----------
    .. [1] J. Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7
       (2006), section 3.2.2.
    """
    means, critical = ranks_of(own_rows(results))
    order = sorted(means, key=means.__getitem__)
    figure, [panel] = panels_of(8.2, 1.2 + 0.28 * len(order))
    for height, name in enumerate(order):
        panel.plot([means[name]], [height], "o", color=COLOURS[1], markersize=5)
        place = means[name], height
        panel.annotate(f"  {name}", place, va="center", fontsize=9, parse_math=False)
        last = max(i for i, other in enumerate(order) if means[other] - means[name] <= critical)
        if last > height:
            ends = [means[name], means[order[last]]]
            panel.plot(ends, [height + 0.35] * 2, color=COLOURS[2], linewidth=2, alpha=0.6)
    panel.set_xlim(0.5, len(order) + 1.5)
    panel.set_ylim(len(order) - 0.3, -0.7)
    panel.set_yticks([])
    panel.set_xlabel("mean rank of the error")
    title = f"Mean ranks; bars join what differs by less than {critical:.2f}"
    return finish(figure, title, [panel])
