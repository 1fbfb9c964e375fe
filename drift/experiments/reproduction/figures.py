"""Figures of the experiments of papers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
from drift.experiments.plots import shifts as mark_shifts
from drift.experiments.records import grouped
from drift.experiments.reproduction.curves import best, curves_of, error, label, records_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from drift.experiments.jobs import Record
    from drift.experiments.plots import End
    from drift.experiments.results import Results

__all__ = [
    "against_supports",
    "error_vs_budget",
    "over_time",
    "second_order_vs_budget",
    "test_error_by_epoch",
    "tracked_over_time",
]

#: Columns that are drawn against supports, with the axis of each: the rows of Crammer's figure 4.
_PANELS = {
    "test_error": "test error (%)",
    "error": "online error (%)",
    "updates": "updates (insertions)",
}
_BLACK, _BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY, _GREY = COLOURS
#: A model keeps its own colour.
_STYLES: dict[str, dict[str, Any]] = {
    "Perceptron": {"color": _BLACK, "linestyle": "--"},
    "SPA": {"color": _PINK, "linestyle": "-."},
    "RBP": {"color": _BLUE, "marker": "o"},
    "LBP": {"color": _RED, "marker": "s"},
    "Forgetron": {"color": _GREEN, "marker": "^"},
    "CKS": {"color": _GREY, "marker": "v"},
    "SOP": {"color": _BLACK, "linestyle": ":"},
    "RBSOP": {"color": _SKY, "marker": "o"},
    "LBSOP": {"color": _ORANGE, "marker": "s"},
    "Tracker": {"color": _ORANGE, "marker": "D"},
}
_LINES = ("Perceptron", "SPA", "SOP")
_FIRST_ORDER = ("RBP", "LBP", "Forgetron", "CKS", "Tracker", "Perceptron", "SPA")
#: What the first order reaches is drawn beside the second order.
_SECOND_ORDER = ("RBSOP", "LBSOP", "SOP", "LBP", "Perceptron")
#: From so many times on a range of errors has a logarithmic axis.
_WIDE = 3.0


def over_time(results: Results) -> Figure:
    """Error so far and supports, against examples: the Projectron's figures 6 and 7.

    Parameters
    ----------
    results
        Means over permutations are drawn.
    """
    figure, panels = panels_of(11.0, 4.6, columns=2)
    ends: tuple[list[End], ...] = ([], [])
    n = 0
    for name, style in styles(records_of(results)).items():
        drawn = [record for record in records_of(results)[name] if "window_errors" in record]
        if drawn:
            n, windows = drawn[0]["n_samples"], len(drawn[0]["window_errors"])
            stops = np.linspace(0, n, windows + 1).round()
            errors = np.mean([record["window_errors"] for record in drawn], axis=0)
            so_far = 100 * np.cumsum(errors * np.diff(stops)) / stops[1:]
            supports = np.mean([record["window_supports"] for record in drawn], axis=0)
            for panel, values, names in zip(panels, (so_far, supports), ends, strict=True):
                panel.plot(stops[1:], values, label=name, linewidth=1.6, color=style["color"])
                names.append((values[-1], name, style["color"]))
    for panel, axis in zip(panels, ("online error so far (%)", "supports"), strict=True):
        panel.set_ylabel(axis)
        examples(panel, n)
    log_axis(panels[1].yaxis)
    return finish(figure, f"{results.stream}: error and supports over time", panels, ends=ends)


def against_supports(results: Results) -> Figure:
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
    tested = results.settings["test_rows"] is not None
    columns = list(_PANELS) if tested else ["error"]
    figure, panels = panels_of(13.4 if tested else 7.0, 4.8, columns=len(columns))
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
                x, y, x_error, noise = np.array(points).T
                style: dict[str, Any] = {"label": name, "linewidth": 1.5, "markersize": 5}
                panel.errorbar(x, y, yerr=noise, xerr=x_error, **style | style_of[name])
                if len(points) > 1 and panel in errors:
                    ring = {"mfc": "none", "mec": style_of[name]["color"], "markersize": 11}
                    panel.plot(x[y.argmin()], y.min(), "o", zorder=4, **ring)
        panel.set_xlabel("supports")
        panel.set_ylabel(_PANELS[column])
        log_axis(panel.xaxis)
    low, high = errors[0].get_ylim()
    if low > 0 and high > _WIDE * low:
        log_errors(errors[0])
    note = "bars: ± one standard deviation; rings: lowest error of a curve"
    return finish(figure, f"{results.stream}: error against supports", panels, note=note)


def test_error_by_epoch(results: Results) -> Figure:
    """Test error after each epoch, and the paper's where it prints one.

    Parameters
    ----------
    results
        Means over permutations are drawn; a paper's numbers dotted, in the same colour.
    """
    figure, [panel] = panels_of(8.0, 4.8)
    ends = []
    for name, style in styles(records_of(results)).items():
        rows = [row for row in results.rows("epochs") if row["contender"] == name]
        epochs = [row["epoch"] for row in rows]
        if rows:
            errors = [row["test_error"] for row in rows]
            panel.plot(epochs, errors, label=name, linewidth=1.6, markersize=5, **style)
            ends.append((errors[-1], name, style["color"]))
        printed = results.settings["printed"].get(name, {}).get("test_error", ())
        if len(printed) == len(epochs):
            panel.plot(epochs, printed, linestyle=":", linewidth=1.3, color=style["color"])
    panel.set_xlabel("epochs")
    panel.set_ylabel("test error (%)")
    panel.set_xticks(range(1, results.settings["epochs"] + 1))
    note = "dotted: in the paper" if results.settings["printed"] else ""
    return finish(figure, f"{results.stream}: test error by epoch", [panel], note=note, ends=[ends])


def _curves(results: Results) -> dict[str, list[Record]]:
    """Rows of the table by curve."""
    rows = [
        {**row, "curve": results.settings["series"][row["contender"]] or row["contender"]}
        for row in results.rows("table")
    ]
    return {curve: group for (curve,), group in grouped(rows, "curve").items()}


def error_vs_budget(results: Results) -> Figure:
    """Error against budget, one panel for each group: the tracking paper's figures 3 and 4.

    Parameters
    ----------
    results
        Of `track`.

    Returns
    -------
    Figure
        Lines are means, bands one standard deviation to both sides, over streams and seeds;
        horizontal lines the Perceptron, SPA at its best decay and SOP; rings the best budgets.
        What a chunk needs is marked.
    """
    return _vs_budget(results, _FIRST_ORDER, "Perceptron", "")


def second_order_vs_budget(results: Results) -> Figure:
    """Draw the second-order models, beside the Perceptron and LBP, as `error_vs_budget` does.

    Parameters
    ----------
    results
        Of `track`.
    """
    return _vs_budget(results, _SECOND_ORDER, "SOP", ", second order")


def _vs_budget(results: Results, models: Sequence[str], baseline: str, order: str) -> Figure:
    groups = results.cached(curves_of)
    n_columns = min(2, len(groups))
    n_rows = -(-len(groups) // 2)
    size = 1.0 + 4.6 * n_columns, 1.2 + 3.4 * n_rows
    figure, panels = panels_of(*size, n_rows, n_columns, sharex=True, sharey=True)
    needs = {
        row["shifts"]: row["supports"] for row in results.rows("chunks") if row["model"] == baseline
    }
    for panel, (shifts, curve) in zip(panels, groups.items(), strict=False):
        for model in models:
            if model in curve and model in _LINES:
                mean, _ = error(curve[model][best(curve[model])])
                name = "SPA, best decay" if model == "SPA" else model
                panel.axhline(mean, label=name, linewidth=1.4, zorder=1, **_STYLES[model])
            elif model in curve:
                _budget_curve(panel, model, curve[model])
        panel.set_title(_shifts(shifts), fontsize=11)
        if shifts and shifts in needs:
            mark_shifts(panel, [needs[shifts]], [f"a chunk needs {needs[shifts]:.0f}"])
    for panel in panels[len(groups) :]:
        panel.set_visible(False)
    for row in range(n_rows):
        panels[row * n_columns].set_ylabel("error (%)")
    for panel in panels[max(0, len(groups) - n_columns) : len(groups)]:
        panel.set_xlabel("budget (supports)")
        panel.xaxis.set_tick_params(labelbottom=True)
    note = "bands: ± one standard deviation over streams and seeds; rings: best budget of a model"
    return finish(figure, f"{results.stream}: error against budget{order}", panels, note=note)


def tracked_over_time(results: Results) -> Figure:
    """Error over time in the group of `track` with the most shifts: the paper's figure 5.

    Each model at its best budget or decay; dotted verticals where the target shifts.
    """
    shifts, curve = max(results.cached(curves_of).items())
    lines = []
    n = 0
    for model, style in _STYLES.items():
        if model in curve:
            records = curve[model][best(curve[model])]
            n = records[0]["n_samples"]
            name = ", ".join(part for part in (model, label(records[0])) if part)
            look = {key: value for key, value in style.items() if key != "marker"}
            look |= {"linewidth": 1.5, "zorder": 3 if model in _LINES else 2}
            lines.append((name, f"{name}\n{error(records)[0]:.1f} %", records, look))
    title = f"{results.stream}: error over time, {_shifts(shifts)}"
    places = [n * k / (shifts + 1) for k in range(1, shifts + 1)]
    return error_in_windows(title, n, lines, places)


def _budget_curve(panel: Axes, model: str, curve: Mapping[float | None, Sequence[Record]]) -> None:
    budgets = np.array(list(curve), dtype=float)
    means, deviations = np.array([error(records) for records in curve.values()]).T
    color = _STYLES[model]["color"]
    panel.plot(budgets, means, label=model, linewidth=1.6, markersize=4, **_STYLES[model])
    low, high = means - deviations, means + deviations
    panel.fill_between(budgets, low, high, color=color, alpha=0.12, linewidth=0)
    ring = {"markeredgecolor": color, "markerfacecolor": "none", "markersize": 11}
    panel.plot(budgets[means.argmin()], means.min(), "o", zorder=4, **ring)
    log_axis(panel.xaxis)


def _shifts(shifts: int) -> str:
    return {0: "no shift", 1: "1 shift"}.get(shifts, f"{shifts} shifts")
