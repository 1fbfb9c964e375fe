"""Figures of a comparison: error over time, error against cost, and mean ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.experiments.comparison.measures import COSTS, MEASURES
from drift.experiments.comparison.statistics import ranks_of
from drift.experiments.comparison.tables import costs, own_rows
from drift.experiments.figures import error_against_cost, panel_of
from drift.experiments.plots import COLOURS, error_in_windows, finish, panels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from drift.experiments.results import Results

__all__ = ["cost", "ranks", "windows"]

#: Models whose error over time is drawn: more hide each other.
_BEST = 7


def windows(results: Results) -> Figure:
    """Error in each window of the best models and of no change; known drifts are vertical lines.

    Parameters
    ----------
    results
        On one stream. Means over seeds and folds are drawn.
    """
    best = results.rows("table")
    drawn = [*best[:_BEST], *(row for row in best[_BEST:] if row["model"] == "no change")]
    lines = []
    for row, colour in zip(drawn, COLOURS, strict=False):
        name, error = row["model"], MEASURES["error"].text(row["error"])
        records = [
            {"window_errors": [window["error"] for window in record["windows"]]}
            for record in results.records
            if record["model"] == name
        ]
        lines.append((name, f"{name}, {error} %", records, {"linewidth": 1.4, "color": colour}))
    (stream, known), *_ = results.streams.items()
    places = [drift["row"] for drift in known["drifts"]]
    title = f"{stream}: error over time"
    return error_in_windows(title, known["rows"], lines, places, ["drift"])


def cost(results: Results) -> Figure:
    """Error against time and against memory: a point a model, means over streams.

    Parameters
    ----------
    results
        Models that ended on every stream, in its own order, are drawn.
    """
    streams = [name for name, stream in results.streams.items() if not stream["shuffled"]]
    rows = costs(results.rows("table"), streams)
    panels = [panel_of(rows, one, results.records) for one in COSTS]
    name = streams[0] if len(streams) == 1 else "mean"
    return error_against_cost(f"{name}: error against cost", panels, every=True)


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
