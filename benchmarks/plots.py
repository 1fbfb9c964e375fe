"""Figures of the results: time against budget, error against time, growth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes

Table = list[dict[str, Any]]

#: Colours of Okabe and Ito, which colour-blind readers can tell apart.
_COLOURS = {"poly4": "#0072B2", "linear": "#009E73", "rbf": "#D55E00"}
_MARKERS = {"RBP": "o", "LBP": "s", "Forgetron": "^"}
_DICTS = {"rcv1-dicts": "RCV1, 77 words", "a9a-dicts": "a9a, 14 features", "mnist-dicts": "MNIST"}
#: Peers that the plots on dicts have as lines.
_LINES = {"River LogisticRegression": "--", "River PAClassifier": ":", "VW linear": "-."}
#: Families of contenders in the plot of error against time, in the order of the legend.
_FAMILIES = {
    "RBP": ("#0072B2", "o-"),
    "LBP": ("#D55E00", "s-"),
    "Forgetron": ("#009E73", "^-"),
    "LBP linear": ("#E69F00", "s--"),
    "LBP rbf": ("#CC79A7", "s:"),
    "MRBP": ("#56B4E9", "v-"),
    "RBSOP": ("#0072B2", "D-"),
    "LBSOP": ("#D55E00", "D-"),
    "CKS": ("#999999", "P-"),
    "Projectron": ("#777777", "<-"),
    "ProjectronPlusPlus": ("#777777", ">-"),
}


def draw_all(results: dict[str, Any], folder: Path) -> list[Path]:
    """Draw what there are results for; return the files."""
    measured = {name: result["table"] for name, result in results.items() if result.get("table")}
    drawings: dict[str, Callable[[dict[str, Table]], Figure | None]] = {
        "dicts": dicts,
        "error-time": error_time,
        "growth": growth,
    }
    drawn = []
    for name, draw in drawings.items():
        figure = draw(measured)
        if figure is not None:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"speed-{name}.svg"
            with mpl.rc_context({"svg.hashsalt": "drift", "svg.fonttype": "none"}):
                figure.savefig(path, metadata={"Date": None})
            drawn.append(path)
    return drawn


def _median(value: Any) -> float:
    return float(value["median"] if isinstance(value, dict) else value)


def dicts(measured: dict[str, Table]) -> Figure | None:
    """Time per example against the budget, a panel for each stream."""
    names = [name for name in _DICTS if name in measured]
    if not names:
        return None
    figure = Figure(figsize=(4.2 * len(names) + 0.6, 4.6), layout="constrained")
    panels: list[Axes] = list(figure.subplots(1, len(names), squeeze=False).flat)
    for panel, name in zip(panels, names, strict=True):
        _dict_panel(panel, measured[name])
        panel.set(title=_DICTS[name], xlabel="budget", xscale="log", yscale="log")
    panels[0].set_ylabel("predict + learn, us an example")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    return figure


def _dict_panel(panel: Axes, table: Table) -> None:
    for kernel, colour in _COLOURS.items():
        for model, marker in _MARKERS.items():
            chosen = [r for r in table if r["contender"].startswith(f"{model} {kernel} B=")]
            chosen = [r for r in chosen if r["contender"].rpartition("=")[2].isdigit()]
            at = [int(row["contender"].rpartition("=")[2]) for row in chosen]
            us = [_median(row["us"]) for row in chosen]
            label = f"{model} {kernel}"
            panel.plot(at, us, marker=marker, color=colour, label=label, lw=1.2, ms=4)
    floors = [row for row in table if row["contender"].startswith("floor")]
    at = [int(row["contender"].rpartition("=")[2]) for row in floors]
    panel.plot(at, [_median(row["us"]) for row in floors], color="black", label="floor")
    for row in table:
        if row["contender"] in _LINES:
            style = _LINES[row["contender"]]
            panel.axhline(_median(row["us"]), color="black", ls=style, lw=1, label=row["contender"])


def error_time(measured: dict[str, Table]) -> Figure | None:
    """Error against time, one point for each contender, lines through the sizes of a model."""
    if "rcv1-error-time" not in measured:
        return None
    slow = [
        row
        for row in measured.get("rcv1-error-time-slow", [])
        if not row["contender"].startswith("LBP")
    ]
    table = measured["rcv1-error-time"] + slow
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    panel = figure.subplots()
    others = []
    families: dict[str, Table] = {}
    for row in table:
        family = row["contender"].partition(" B=")[0].partition(" tolerance=")[0]
        (families.setdefault(family, []) if family in _FAMILIES else others).append(row)
    for family, (colour, style) in _FAMILIES.items():
        rows = families.get(family, [])
        us, errors = [_median(r["us"]) for r in rows], [100 * r["error"] for r in rows]
        panel.plot(us, errors, style, color=colour, label=family, lw=1, ms=5)
        for row, x, y in zip(rows, us, errors, strict=True):
            size = row["contender"].rpartition("=")[2]
            panel.annotate(size, (x, y), fontsize=6, xytext=(3, 3), textcoords="offset points")
    for row in others:
        peer = row["contender"].startswith(("River", "VW", "scikit"))
        at = _median(row["us"]), 100 * row["error"]
        panel.plot(*at, "x" if peer else ".", color="#aa0000" if peer else "black")
        text = row["contender"].replace(" + SGDClassifier, blocks of 100", "")
        panel.annotate(text, at, fontsize=7, xytext=(5, -3), textcoords="offset points")
    panel.set(xscale="log", xlabel="predict + learn, us an example", ylabel="error, %")
    panel.set_title("RCV1, target shifts seven times: the numbers are budgets or tolerances")
    panel.margins(x=0.15)
    panel.legend(fontsize=8, ncols=2)
    return figure


def growth(measured: dict[str, Table]) -> Figure | None:
    """Time and memory against what grows, a column of panels for each scenario."""
    names = {
        "growth-budget": "budget",
        "growth-nonzeros": "nonzeros of an example",
        "growth-names": "names seen",
        "growth-length": "examples seen",
    }
    present = [name for name in names if name in measured]
    if not present:
        return None
    figure = Figure(figsize=(3.6 * len(present), 5.6), layout="constrained")
    panels = figure.subplots(2, len(present), squeeze=False, sharex="col")
    for (above, below), name in zip(panels.T, present, strict=True):
        for above_label, us, below_label, mb, rows in _growth_lines(measured[name]):
            sizes = [row["size"] for row in rows]
            above.plot(sizes, [_median(row[us]) for row in rows], ".-", label=above_label)
            below.plot(sizes, [row[mb] for row in rows], ".-", label=below_label)
        for panel in (above, below):
            panel.set(xscale="log", yscale="log")
            low, high = panel.get_ylim()
            panel.set_ylim(low / 3, high * 3)  # what is flat looks flat
            panel.legend(fontsize=7)
        below.set_xlabel(names[name])
    panels[0][0].set_ylabel("us")
    panels[1][0].set_ylabel("MB")
    return figure


def _growth_lines(table: Table) -> list[tuple[str, str, str, str, Table]]:
    if "contender" not in table[0]:
        return [
            ("a prediction", "us a prediction", "RBP", "MB", table),
            ("an update", "us an update", "_", "MB", table),
        ]
    lines = []
    for name in dict.fromkeys(row["contender"] for row in table):
        rows = [row for row in table if row["contender"] == name]
        lines.append((name, "us", f"{name}, resident", "resident MB", rows))
    return lines
