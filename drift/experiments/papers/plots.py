"""Figures of a paper's experiment."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.experiments.plots import Canvas, finish, log_axis, log_errors, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from drift.experiments.papers.results import PaperResults

__all__ = ["against_cost", "against_supports", "by_epoch", "in_windows", "over_time"]

#: Columns that are drawn against supports, with the axis of each: the rows of Crammer's figure 4.
_PANELS = {
    "test_error": "test error (%)",
    "error": "online error (%)",
    "updates": "updates (insertions)",
}
#: Columns that an error on a stream is drawn against, and ticks of its axis.
_COSTS = {"megabytes": "memory (MB)", "microseconds": "time an example (µs)"}
#: Contenders whose error over time is drawn: more hide each other.
_BEST = 6


def over_time(results: PaperResults) -> Figure:
    """Error so far and supports held, against examples: the Projectron's figures 6 and 7.

    Parameters
    ----------
    results
        Means over permutations are drawn.
    """
    figure = Canvas(figsize=(10.2, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    style_of = styles(results.records)
    for name, records in results.records.items():
        drawn = [record for record in records if "window_errors" in record]
        if drawn:
            n, windows = drawn[0]["n_samples"], len(drawn[0]["window_errors"])
            ends = np.linspace(0, n, windows + 1).round()
            errors = np.mean([record["window_errors"] for record in drawn], axis=0)
            so_far = 100 * np.cumsum(errors * np.diff(ends)) / ends[1:]
            supports = np.mean([record["window_supports"] for record in drawn], axis=0)
            for panel, values in ((left, so_far), (right, supports)):
                style = {**style_of[name], "markevery": 0.1}
                panel.plot(ends[1:], values, label=name, linewidth=1.5, markersize=4, **style)
    left.set_ylabel("average online error (%)")
    right.set_ylabel("supports")
    right.set_yscale("log")
    for panel in (left, right):
        panel.set_xlabel("examples")
    return _finished(figure, f"{results.stream}: error and supports over time", [left, right])


def against_supports(results: PaperResults) -> Figure:
    """Error against supports, a curve a series and a point a contender that has none.

    Parameters
    ----------
    results
        Means over permutations are drawn, and bars of one standard deviation to both sides.

    Returns
    -------
    Figure
        A panel for the online error; where there is a test part, three, as in figure 4 of Crammer,
        Kandola and Singer: test error, online error, updates.
    """
    columns = list(_PANELS) if results.is_tested else ["error"]
    figure = Canvas(figsize=(1.4 + 4.4 * len(columns), 4.6), layout="constrained")
    panels: list[Axes] = list(figure.subplots(1, len(columns), squeeze=False).flat)
    curves = _curves(results)
    style_of = styles(curves)
    for panel, column in zip(panels, columns, strict=True):
        for name, rows in curves.items():
            points = sorted(
                (row["supports"], row[column], row["supports_std"], row[f"{column}_std"])
                for row in rows
                if row[column] is not None
            )
            if points:
                x, y, spread, noise = np.array(points).T
                style: dict[str, Any] = {"label": name, "linewidth": 1.5, "markersize": 5}
                panel.errorbar(x, y, yerr=noise, xerr=spread, **style | style_of[name])
        panel.set_xlabel("supports")
        panel.set_ylabel(_PANELS[column])
        log_axis(panel, np.unique([max(1.0, row["supports"]) for row in results.table()]))
    return _finished(figure, f"{results.stream}: against supports", panels)


def against_cost(results: PaperResults) -> Figure:
    """Error on a stream against memory, and against time: a curve a series, else a point.

    Parameters
    ----------
    results
        Of a stream. Means over runs are drawn.
    """
    figure = Canvas(figsize=(12.0, 7.6), layout="constrained")
    panels: list[Axes] = list(figure.subplots(1, 2, sharey=True))
    curves = _curves(results)
    style_of = styles(curves)
    for panel, (column, heading) in zip(panels, _COSTS.items(), strict=True):
        for name, rows in curves.items():
            points = sorted((row[column], row["error"]) for row in rows)
            style: dict[str, Any] = {"label": name, "linewidth": 1.2, "markersize": 5}
            # River's are hollow, so that the two kinds can be told apart at a glance.
            style |= {"markerfacecolor": "none"} if name.startswith("River") else {}
            panel.plot(*zip(*points, strict=True), **style | style_of[name])
        panel.set_xscale("log")
        panel.set_xlabel(heading)
    log_errors(panels[0])
    panels[0].set_ylabel("online error (%)")
    title = f"{results.stream}, {results.settings['target']}: error against memory and time"
    return _finished(figure, title, panels, columns=4)  # the names of River's models are long


def in_windows(results: PaperResults) -> Figure:
    """Error in each part of a stream, of the contenders whose error on all of it is least.

    Parameters
    ----------
    results
        Means over runs are drawn.
    """
    figure = Canvas(figsize=(10.2, 4.8), layout="constrained")
    panel = figure.subplots()
    best = sorted(results.table(), key=itemgetter("error"))[:_BEST]
    drawn = {row["contender"]: results.records[row["contender"]] for row in best}
    style_of = styles(drawn)
    for name, records in drawn.items():
        errors = 100 * np.mean([record["window_errors"] for record in records], axis=0)
        middles = (np.arange(len(errors)) + 0.5) * records[0]["n_samples"] / len(errors)
        panel.plot(middles, errors, label=name, linewidth=1.2, markersize=4, **style_of[name])
    panel.set_xlabel("examples")
    panel.set_ylabel("error in the window (%)")
    title = (
        f"{results.stream}, {results.settings['target']}: error over time of the {len(best)} best"
    )
    return _finished(figure, title, [panel], columns=3)


def by_epoch(results: PaperResults) -> Figure:
    """Test error after each epoch, and the paper's where it prints one.

    Parameters
    ----------
    results
        Means over permutations are drawn; a paper's numbers dotted, in the same colour.
    """
    figure = Canvas(figsize=(7.2, 4.8), layout="constrained")
    panel = figure.subplots()
    style_of = styles(results.records)
    for name, style in style_of.items():
        rows = [row for row in results.epoch_table() if row["contender"] == name]
        epochs = [row["epoch"] for row in rows]
        if rows:
            errors = [row["test_error"] for row in rows]
            panel.plot(epochs, errors, label=name, linewidth=1.5, markersize=5, **style)
        printed = results.printed.get(name, {}).get("test_error", ())
        if len(printed) == len(epochs):
            panel.plot(epochs, printed, linestyle=":", linewidth=1.2, color=style["color"])
    panel.set_xlabel("epochs")
    panel.set_ylabel("test error (%); dotted: in the paper")
    panel.set_xticks(range(1, results.settings["epochs"] + 1))
    return _finished(figure, f"{results.stream}: test error by epoch", [panel], columns=3)


def _curves(results: PaperResults) -> dict[str, list[dict[str, Any]]]:
    """Rows of the table by curve."""
    curves: dict[str, list[dict[str, Any]]] = {}
    for row in results.table():
        curves.setdefault(results.series[row["contender"]] or row["contender"], []).append(row)
    return curves


def _finished(figure: Figure, title: str, panels: list[Axes], columns: int = 0) -> Figure:
    for panel in panels:
        panel.grid(alpha=0.25)
        panel.set_axisbelow(True)
    finish(figure, title, panels, columns)
    return figure
