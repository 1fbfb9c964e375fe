"""Figures of a comparison: error over time, error against cost, and mean ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drift.experiments.comparison.measures import COSTS
from drift.experiments.comparison.statistics import ranks_of
from drift.experiments.plots import (
    COLOURS,
    examples,
    finish,
    log_axis,
    log_errors,
    panels_of,
    shifts,
    styles,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from drift.experiments.comparison.results import ComparisonResults
    from drift.experiments.plots import Point

__all__ = ["against_cost", "over_time", "ranks"]

#: Models whose error over time is drawn: more hide each other.
_BEST = 7


def over_time(results: ComparisonResults, stream: str) -> Figure:
    """Error in each window of the best models and of no change; known drifts are vertical lines.

    Parameters
    ----------
    results
        Means over seeds and folds are drawn.
    stream
        Its name.
    """
    best = [row["model"] for row in results.summary_rows if row["stream"] == stream]
    drawn = [*best[:_BEST], *(name for name in best[_BEST:] if name == "no change")]
    figure, [panel] = panels_of(9.6, 4.8)
    look = styles(drawn)
    ends = []
    for name in drawn:
        windows: dict[float, list[float]] = {}
        for row in results.window_rows:
            if (row["model"], row["stream"]) == (name, stream) and row["error"] is not None:
                middle = (row["start"] + row["stop"]) / 2
                windows.setdefault(middle, []).append(100 * row["error"])
        errors = [float(np.mean(values)) for values in windows.values()]
        colour = look[name]["color"]
        panel.plot(list(windows), errors, label=name, linewidth=1.4, color=colour)
        ends += [(errors[-1], name, colour)] if errors else []
    shifts(panel, [drift.row for drift in results.streams[stream].drifts], ["drift"])
    examples(panel, len(results.streams[stream]))
    panel.set_ylabel("error in the window (%)")
    finish(figure, f"{stream}: error over time", [panel], ends=[ends])
    return figure


def against_cost(results: ComparisonResults) -> Figure:
    """Error against time and against memory: a point a model, means over streams.

    Parameters
    ----------
    results
        Models that ended on every stream are drawn.
    """
    figure, panels = panels_of(11.0, 5.2, columns=2, sharey=True)
    rows = results.summary_rows
    names = list(dict.fromkeys(row["model"] for row in rows))
    streams = {row["stream"] for row in rows}
    look = styles(names)
    points: list[list[Point]] = [[], []]
    for name in names:
        own = [row for row in rows if row["model"] == name and row["status"] == "ok"]
        if {row["stream"] for row in own} != streams or any(row["error"] is None for row in own):
            continue
        error = 100 * float(np.mean([row["error"] for row in own]))
        for panel, named, (cost, shown) in zip(panels, points, COSTS.items(), strict=True):
            sizes = np.log([shown.factor * max(row[cost], 1e-3) for row in own])
            x = float(np.exp(sizes.mean()))
            panel.plot(x, error, label=name, linestyle="", markersize=7, **look[name])
            named.append((x, error, name, look[name]["color"]))
    for panel, shown in zip(panels, COSTS.values(), strict=True):
        panel.set_xlabel(shown.title)
        panel.margins(x=0.2)  # for names
        log_axis(panel.xaxis)
    log_errors(panels[0])
    panels[0].set_ylabel("error (%)")
    title = f"{', '.join(streams) if len(streams) == 1 else 'mean'}: error against cost"
    finish(figure, title, panels, points=[(named, ()) for named in points])
    return figure


def ranks(results: ComparisonResults) -> Figure:
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
    means, critical = ranks_of(results.run_rows)
    order = sorted(means, key=means.__getitem__)
    figure, [panel] = panels_of(8.2, 1.2 + 0.28 * len(order))
    for height, name in enumerate(order):
        panel.plot([means[name]], [height], "o", color=COLOURS[1], markersize=5)
        panel.annotate(f"  {name}", (means[name], height), va="center", fontsize=9)
        last = max(i for i, other in enumerate(order) if means[other] - means[name] <= critical)
        if last > height:
            ends = [means[name], means[order[last]]]
            panel.plot(ends, [height + 0.35] * 2, color=COLOURS[2], linewidth=2, alpha=0.6)
    panel.set_xlim(0.5, len(order) + 1.5)
    panel.set_ylim(len(order) - 0.3, -0.7)
    panel.set_yticks([])
    panel.set_xlabel("mean rank of the error")
    title = f"Mean ranks; bars join what differs by less than {critical:.2f}"
    finish(figure, title, [panel])
    return figure
