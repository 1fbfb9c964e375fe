"""Figures of the tracking experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.experiments.plots import error_in_windows, finish, log_axis, panels_of
from drift.experiments.plots import shifts as mark_shifts
from drift.experiments.tracking.report import best, error, label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from drift.experiments.folder import Record
    from drift.experiments.tracking.report import Curves

__all__ = ["error_over_time", "error_vs_budget"]

#: A model keeps its own colour.
_STYLES: dict[str, dict[str, Any]] = {
    "Perceptron": {"color": "#000000", "linestyle": "--"},
    "SPA": {"color": "#CC79A7", "linestyle": "-."},
    "RBP": {"color": "#0072B2", "marker": "o"},
    "LBP": {"color": "#D55E00", "marker": "s"},
    "Forgetron": {"color": "#009E73", "marker": "^"},
    "CKS": {"color": "#999999", "marker": "v"},
    "SOP": {"color": "#000000", "linestyle": ":"},
    "RBSOP": {"color": "#56B4E9", "marker": "o"},
    "LBSOP": {"color": "#E69F00", "marker": "s"},
    "Tracker": {"color": "#E69F00", "marker": "D"},
}
_BASELINES = ("Perceptron", "SPA", "SOP")
_FIRST_ORDER = ("RBP", "LBP", "Forgetron", "CKS", "Tracker", "Perceptron", "SPA")
#: What the first order reaches is drawn beside the second order.
_SECOND_ORDER = ("RBSOP", "LBSOP", "SOP", "LBP", "Perceptron")


def error_vs_budget(
    groups: Curves,
    stream: str,
    *,
    second_order: bool = False,
    chunks: Sequence[Mapping[str, Any]] = (),
) -> Figure:
    """Error against budget, one panel for each group: the paper's figures 3 and 4.

    Parameters
    ----------
    groups
        As from `drift.experiments.tracking.report.curves`.
    stream
        What was learnt, for the title.
    second_order
        Draw the second-order models, beside the Perceptron and LBP; else the first-order ones.
    chunks
        As from `drift.experiments.tracking.report.chunk_table`: what a chunk needs is marked.

    Returns
    -------
    Figure
        Lines are means, bands one standard deviation to both sides, over streams and seeds;
        horizontal lines the Perceptron, SPA at its best decay and SOP; rings the best budgets.
    """
    n_columns = min(2, len(groups))
    n_rows = -(-len(groups) // 2)
    size = 1.0 + 4.6 * n_columns, 1.2 + 3.4 * n_rows
    figure, panels = panels_of(*size, n_rows, n_columns, sharex=True, sharey=True)
    baseline = "SOP" if second_order else "Perceptron"
    needs = {row["shifts"]: row["supports"] for row in chunks if row["model"] == baseline}
    for panel, (shifts, curve) in zip(panels, groups.items(), strict=False):
        for model in _SECOND_ORDER if second_order else _FIRST_ORDER:
            if model in curve and model in _BASELINES:
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
    order = ", second order" if second_order else ""
    note = "bands: one standard deviation over streams and seeds; rings: the best budget of a model"
    finish(figure, f"{stream}: error against budget{order}", panels, note=note)
    return figure


def error_over_time(groups: Curves, stream: str) -> Figure:
    """Error over time in the group with the most shifts: the paper's figure 5.

    Parameters
    ----------
    groups
        As from `drift.experiments.tracking.report.curves`.
    stream
        What was learnt, for the title.

    Returns
    -------
    Figure
        Each model at its best budget or decay; dotted verticals where the target shifts.
    """
    shifts, curve = max(groups.items())
    lines = []
    n = 0
    for model, style in _STYLES.items():
        if model in curve:
            records = curve[model][best(curve[model])]
            n = records[0]["n_samples"]
            name = ", ".join(part for part in (model, label(records[0])) if part)
            look = {key: value for key, value in style.items() if key != "marker"}
            look |= {"linewidth": 1.5, "zorder": 3 if model in _BASELINES else 2}
            lines.append((name, f"{name}\n{error(records)[0]:.1f} %", records, look))
    title = f"{stream}: error over time, {_shifts(shifts)}"
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
