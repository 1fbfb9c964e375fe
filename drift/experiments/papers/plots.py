"""Figures of a paper's experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.experiments.comparison.rows import grouped
from drift.experiments.cost_figure import Panel, error_against_cost
from drift.experiments.plots import (
    COLOURS,
    error_in_windows,
    examples,
    finish,
    log_axis,
    log_errors,
    panels_of,
    styles,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from drift.experiments.folder import Record
    from drift.experiments.papers.results import PaperResults
    from drift.experiments.plots import End

__all__ = ["against_cost", "against_supports", "by_epoch", "in_windows", "over_time"]

#: Columns that are drawn against supports, with the axis of each: the rows of Crammer's figure 4.
_PANELS = {
    "test_error": "test error (%)",
    "error": "online error (%)",
    "updates": "updates (insertions)",
}
#: Columns that an error on a stream is drawn against, and the name of the axis.
_COSTS = {"megabytes": "memory (MB)", "microseconds": "time an example (µs)"}
#: Contenders that have a colour where there are many: more hide each other.
_BEST = 6
#: From so many times on a range of errors has a logarithmic axis.
_WIDE = 3.0


def over_time(results: PaperResults) -> Figure:
    """Error so far and supports held, against examples: the Projectron's figures 6 and 7.

    Parameters
    ----------
    results
        Means over permutations are drawn.
    """
    figure, panels = panels_of(11.0, 4.6, columns=2)
    ends: tuple[list[End], ...] = ([], [])
    n = 0
    for name, style in styles(results.records).items():
        drawn = [record for record in results.records[name] if "window_errors" in record]
        if drawn:
            n, windows = drawn[0]["n_samples"], len(drawn[0]["window_errors"])
            stops = np.linspace(0, n, windows + 1).round()
            errors = np.mean([record["window_errors"] for record in drawn], axis=0)
            so_far = 100 * np.cumsum(errors * np.diff(stops)) / stops[1:]
            supports = np.mean([record["window_supports"] for record in drawn], axis=0)
            for panel, values, names in zip(panels, (so_far, supports), ends, strict=True):
                panel.plot(stops[1:], values, label=name, linewidth=1.6, color=style["color"])
                names.append((values[-1], name, style["color"]))
    for panel, label in zip(panels, ("online error so far (%)", "supports"), strict=True):
        panel.set_ylabel(label)
        examples(panel, n)
    log_axis(panels[1].yaxis)
    finish(figure, f"{results.stream}: error and supports over time", panels, ends=ends)
    return figure


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
        Kandola and Singer: test error, online error, updates. Each curve's least error is ringed.
    """
    columns = list(_PANELS) if results.is_tested else ["error"]
    figure, panels = panels_of(13.4 if results.is_tested else 7.0, 4.8, columns=len(columns))
    errors = [panel for panel, column in zip(panels, columns, strict=True) if column != "updates"]
    for other in errors[1:]:
        other.sharey(errors[0])  # their levels are compared
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
                if len(points) > 1 and panel in errors:
                    ring = {"mfc": "none", "mec": style_of[name]["color"], "markersize": 11}
                    panel.plot(x[y.argmin()], y.min(), "o", zorder=4, **ring)
        panel.set_xlabel("supports")
        panel.set_ylabel(_PANELS[column])
        log_axis(panel.xaxis)
    low, high = errors[0].get_ylim()
    if low > 0 and high > _WIDE * low:
        log_errors(errors[0])
    note = "bars: one standard deviation to both sides; rings: the least error of a curve"
    finish(figure, f"{results.stream}: error against supports", panels, note=note)
    return figure


def against_cost(results: PaperResults) -> Figure:
    """Error on a stream against memory, and against time: a curve a series, else a point.

    Parameters
    ----------
    results
        Of a stream. Means over runs are drawn.
    """
    panels = [
        Panel(
            axis,
            [
                {"name": row["contender"], "cost": row[column], "error": row["error"]}
                | {"curve": name, "drift": not name.startswith("River")}
                for name, rows in _curves(results).items()
                for row in rows
            ],
        )
        for column, axis in _COSTS.items()
    ]
    return error_against_cost(f"{_name(results)}: error against memory and time", panels)


def in_windows(results: PaperResults) -> Figure:
    """Error in each part of a stream, of the contenders whose error on all of it is least.

    Parameters
    ----------
    results
        Means over runs are drawn.
    """
    best = sorted(results.table(), key=lambda row: row["error"])[:_BEST]
    lines = []
    for row, colour in zip(best, COLOURS, strict=False):
        name, look = row["contender"], {"linewidth": 1.4, "color": colour}
        lines.append((name, f"{name}, {row['error']:.2f} %", results.records[name], look))
    n = results.settings["rows"]
    parts = (results.settings["target"] or "").split(", then ")
    places = [n * k / len(parts) for k in range(len(parts))][len(parts) == 1 :]
    title = f"{_name(results)}: error over time of the {len(best)} best"
    return error_in_windows(title, n, lines, places, parts)


def by_epoch(results: PaperResults) -> Figure:
    """Test error after each epoch, and the paper's where it prints one.

    Parameters
    ----------
    results
        Means over permutations are drawn; a paper's numbers dotted, in the same colour.
    """
    figure, [panel] = panels_of(8.0, 4.8)
    ends = []
    for name, style in styles(results.records).items():
        rows = [row for row in results.epoch_table() if row["contender"] == name]
        epochs = [row["epoch"] for row in rows]
        if rows:
            errors = [row["test_error"] for row in rows]
            panel.plot(epochs, errors, label=name, linewidth=1.6, markersize=5, **style)
            ends.append((errors[-1], name, style["color"]))
        printed = results.printed.get(name, {}).get("test_error", ())
        if len(printed) == len(epochs):
            panel.plot(epochs, printed, linestyle=":", linewidth=1.3, color=style["color"])
    panel.set_xlabel("epochs")
    panel.set_ylabel("test error (%)")
    panel.set_xticks(range(1, results.settings["epochs"] + 1))
    note = "dotted: in the paper" if results.printed else ""
    finish(figure, f"{results.stream}: test error by epoch", [panel], note=note, ends=[ends])
    return figure


def _curves(results: PaperResults) -> dict[str, list[Record]]:
    """Rows of the table by curve."""
    rows = [
        {**row, "curve": results.series[row["contender"]] or row["contender"]}
        for row in results.table()
    ]
    return {curve: own for (curve,), own in grouped(rows, "curve").items()}


def _name(results: PaperResults) -> str:
    """Return the stream, and its target where that is a topic's name."""
    target = results.settings["target"]
    return results.stream if target is None or target.isdigit() else f"{results.stream}, {target}"
