"""Figures of the results: time against budget, error against time, growth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drift.experiments.plots import (
    COLOURS,
    GREY,
    End,
    Point,
    finish,
    log_axis,
    panels_of,
    save,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Table = list[dict[str, Any]]

BLACK, BLUE, RED, GREEN, PINK, ORANGE, SKY, _ = COLOURS
_KERNELS = {"poly4": BLUE, "linear": GREEN, "rbf": RED}
_DICTS = {"rcv1-dicts": "RCV1, 77 words", "a9a-dicts": "a9a, 14 features", "mnist-dicts": "MNIST"}
#: Peers that the plots on dicts have as lines.
_LINES = {"River LogisticRegression": "--", "River PAClassifier": ":", "VW linear": "-."}
#: Families of contenders in the plot of error against time, in the order of the legend.
_FAMILIES = {
    "RBP": (BLUE, "o-"),
    "LBP": (RED, "s-"),
    "Forgetron": (GREEN, "^-"),
    "LBP linear": (ORANGE, "s--"),
    "LBP rbf": (PINK, "s:"),
    "MRBP": (SKY, "v-"),
    "RBSOP": (BLUE, "D-"),
    "LBSOP": (RED, "D-"),
    "CKS": (GREY, "P-"),
    "Projectron": ("#777777", "<-"),
    "ProjectronPlusPlus": ("#777777", ">-"),
}
#: What is grown, by scenario.
_GROWTH = {
    "growth-budget": "budget",
    "growth-nonzeros": "nonzeros of an example",
    "growth-names": "names seen",
    "growth-length": "examples seen",
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
            save(figure, path)
            drawn.append(path)
    return drawn


def _median(value: Any) -> float:
    return float(value["median"] if isinstance(value, dict) else value)


def dicts(measured: dict[str, Table]) -> Figure | None:
    """Time per example against the budget, a panel for each stream."""
    names = [name for name in _DICTS if name in measured]
    if not names:
        return None
    figure, panels = panels_of(5.0 * len(names) + 0.6, 4.8, columns=len(names), sharey=True)
    ends = [_dict_panel(panel, measured[name]) for panel, name in zip(panels, names, strict=True)]
    for panel, name in zip(panels, names, strict=True):
        panel.set(title=_DICTS[name], xlabel="budget")
        log_axis(panel.xaxis)
    log_axis(panels[0].yaxis)
    panels[0].set_ylabel("predict + learn, µs an example")
    note = "bands: RBP, LBP and Forgetron of a kernel, from the fastest to the slowest"
    return finish(figure, "Time an example against the budget", panels, note=note, ends=ends)


def _dict_panel(panel: Axes, table: Table) -> list[End]:
    """Draw a band for each kernel, the floor and the peers; return their names and heights."""
    ends = []
    for kernel, colour in _KERNELS.items():
        by_budget: dict[int, list[float]] = {}
        for row in table:
            name, _, budget = row["contender"].partition(" B=")
            if name.endswith(f" {kernel}") and budget.isdigit():
                by_budget.setdefault(int(budget), []).append(_median(row["us"]))
        at = sorted(by_budget)
        low, high = ([pick(by_budget[budget]) for budget in at] for pick in (min, max))
        panel.fill_between(at, low, high, color=colour, alpha=0.35, linewidth=1.2)
        ends += [(high[-1], kernel, colour)] if at else []
    floors = [row for row in table if row["contender"].startswith("floor")]
    at = [int(row["contender"].rpartition("=")[2]) for row in floors]
    lowest = [_median(row["us"]) for row in floors]
    panel.plot(at, lowest, color=BLACK, lw=1.2)
    ends += [(lowest[-1], "floor", BLACK)] if lowest else []
    for row in table:
        if row["contender"] in _LINES:
            us = _median(row["us"])
            panel.axhline(us, color="0.35", ls=_LINES[row["contender"]], lw=1)
            ends.append((us, row["contender"], "#595959"))
    return ends


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
    figure, panels = panels_of(13, 7, columns=2)
    whole, corner = panels
    named = [_error_panel(panel, table, names=panel is corner) for panel in panels]
    best = sorted(row["error"] for row in table)
    fast = sorted(_median(row["us"]) for row in table)
    for panel in panels:
        panel.set_xlabel("predict + learn, µs an example")
        log_axis(panel.xaxis)
    whole.margins(x=0.2)
    whole.set(ylabel="error (%)", title="all; red: not drift's")
    corner.set_xlim(fast[0] * 0.93, 1.3 * fast[len(fast) * 2 // 3])
    corner.set_ylim(100 * best[0] - 0.5, 100 * best[len(best) * 3 // 4])
    log_axis(corner.xaxis)
    corner.set_title("the lower left corner; numbers are budgets and tolerances")
    others = [(_median(row["us"]), 100 * row["error"]) for row in table]
    points = [(names, others) for names in named]
    return finish(figure, "RCV1: error against time", panels, points=points)


def _error_panel(panel: Axes, table: Table, *, names: bool) -> list[Point]:
    """Draw lines through the sizes of a model; with `names`, say which size each point is.

    Returns the points that have a name, with it and its colour.
    """
    written = []
    families: dict[str, Table] = {}
    others = []
    for row in table:
        family = row["contender"].partition(" B=")[0].partition(" tolerance=")[0]
        (families.setdefault(family, []) if family in _FAMILIES else others).append(row)
    for family, (colour, style) in _FAMILIES.items():
        rows = families.get(family, [])
        us, errors = [_median(r["us"]) for r in rows], [100 * r["error"] for r in rows]
        panel.plot(us, errors, style, color=colour, label=family, lw=1, ms=5)
        points = list(zip(us, errors, strict=True))
        sizes = [row["contender"].rpartition("=")[2] for row in rows]
        if names:  # the second point has the family's name, as the first one is often out of sight
            sizes[1:2] = [f"{family} {size}" for size in sizes[1:2]]
            written += [(*at, size, colour) for at, size in zip(points, sizes, strict=True)]
        elif points:
            written.append((*points[-1], family, colour))
    for row in others:
        peer = row["contender"].startswith(("River", "VW", "scikit"))
        colour = "#aa0000" if peer else BLACK
        at = _median(row["us"]), 100 * row["error"]
        panel.plot(*at, "x" if peer else ".", color=colour)
        text = row["contender"].replace(" + SGDClassifier, blocks of 100", "")
        written.append((*at, text.replace(" + LogisticRegression", ""), colour))
    return written


def growth(measured: dict[str, Table]) -> Figure | None:
    """Time and memory against what grows, a column of panels for each scenario."""
    present = [name for name in _GROWTH if name in measured]
    if not present:
        return None
    n = len(present)
    figure, panels = panels_of(4.0 * n, 5.8, 2, n, sharex="col", sharey="row")
    for above, below, name in zip(panels, panels[n:], present, strict=False):
        lines = _growth_lines(measured[name])
        for colour, (above_label, us, below_label, mb, rows) in zip(
            COLOURS[1:], lines, strict=False
        ):
            sizes = [row["size"] for row in rows]
            above.plot(
                sizes, [_median(row[us]) for row in rows], ".-", color=colour, label=above_label
            )
            if below_label:
                below.plot(sizes, [row[mb] for row in rows], ".-", color=colour, label=below_label)
        for panel in (above, below):
            log_axis(panel.xaxis)
            panel.legend(fontsize=7, frameon=False)
        below.set_xlabel(_GROWTH[name])
    for panel, unit in ((panels[0], "µs"), (panels[n], "MB")):
        log_axis(panel.yaxis)
        panel.set_ylabel(unit)
    return finish(figure, "Time and memory against what grows", panels, legend=False)


def _growth_lines(table: Table) -> list[tuple[str, str, str, str, Table]]:
    if "contender" not in table[0]:
        return [
            ("a prediction", "us a prediction", "RBP", "MB", table),
            ("an update", "us an update", "", "MB", table),
        ]
    lines = []
    for name in dict.fromkeys(row["contender"] for row in table):
        rows = [row for row in table if row["contender"] == name]
        lines.append((name, "us", f"{name}, resident", "resident MB", rows))
    return lines
