"""Figures of the results: time against budget, error against time, growth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import Bbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.text import Annotation

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

#: Where a name may be, in points from its point: right or left of it, the nearest first.
_PLACES = sorted(
    ((side, up) for side in (5, -5) for up in range(-40, 41, 2)),
    key=lambda place: (abs(place[1]) + 8 * (place[0] < 0), place[1]),
)
#: From how many points on a line leads from the name to its point.
_FAR = 6


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
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            _plain(axis)
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
    figure = Figure(figsize=(13, 7), layout="constrained")
    whole, corner = figure.subplots(1, 2)
    written = {}
    for panel in (whole, corner):
        written[panel] = _error_panel(panel, table, names=panel is corner)
        panel.set(xscale="log", xlabel="predict + learn, us an example")
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        _plain(panel.xaxis)
    best = sorted(row["error"] for row in table)
    fast = sorted(_median(row["us"]) for row in table)
    corner.set_xlim(fast[0] * 0.93, 1.3 * fast[len(fast) * 2 // 3])
    corner.set_ylim(100 * best[0] - 0.5, 100 * best[len(best) * 3 // 4])
    whole.margins(x=0.2)
    whole.set(ylabel="error, %", title="all, others than drift's in red")
    corner.set_title("the lower left corner; numbers are budgets and tolerances")
    handles, labels = whole.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    figure.draw_without_rendering()  # now the panels have their places
    for panel, texts in written.items():
        _part(panel, texts, [(_median(row["us"]), 100 * row["error"]) for row in table])
    return figure


def _error_panel(panel: Axes, table: Table, *, names: bool) -> list[Annotation]:
    """Draw lines through the sizes of a model; with `names`, say which size each point is.

    Returns the texts beside the points.
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
        for row, x, y in zip(rows, us, errors, strict=True):
            if names:
                size = row["contender"].rpartition("=")[2]
                written.append(_name(panel, size, (x, y), colour))
    for row in others:
        peer = row["contender"].startswith(("River", "VW", "scikit"))
        colour = "#aa0000" if peer else "black"
        at = _median(row["us"]), 100 * row["error"]
        panel.plot(*at, "x" if peer else ".", color=colour)
        if names or not _crowded(at, table):
            text = row["contender"].replace(" + SGDClassifier, blocks of 100", "")
            text = text.replace(" + LogisticRegression", "")
            written.append(_name(panel, text, at, colour))
    return written


def _crowded(at: tuple[float, float], table: Table) -> bool:
    """Whether many contenders are near a point."""
    near = [
        row
        for row in table
        if 0.6 < _median(row["us"]) / at[0] < 1.6 and abs(100 * row["error"] - at[1]) < 1.0
    ]
    return len(near) > 4


def _name(panel: Axes, text: str, at: tuple[float, float], colour: str) -> Annotation:
    return panel.annotate(
        text,
        at,
        fontsize=7,
        color=colour,
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        annotation_clip=True,
        bbox={"color": "white", "alpha": 0.7, "pad": 0},  # over the lines
        arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5, "shrinkA": 0, "shrinkB": 2},
    )


def _part(panel: Axes, texts: list[Annotation], points: list[tuple[float, float]]) -> None:
    """Move texts up or down, or to the left of their point, until none hides another or a point.

    They stay in the panel. One that finds no such place stays beside its point. A line leads from a
    text that has gone far to its point.
    """
    marker = 3 * panel.figure.dpi / 72
    centres = panel.transData.transform(points)
    hidden = [Bbox([centre - marker, centre + marker]) for centre in centres]
    for text in sorted(texts, key=lambda text: text.xy[1]):
        if not panel.bbox.contains(*panel.transData.transform(text.xy)):
            continue  # nor is it drawn
        for place in _PLACES:
            text.set(position=place, horizontalalignment="left" if place[0] > 0 else "right")
            box = Text.get_window_extent(text)  # without the line to the point
            inside = panel.bbox.contains(*box.min) and panel.bbox.contains(*box.max)
            if inside and not box.count_overlaps(hidden):
                break
        else:
            place = _PLACES[0]
            text.set(position=place, horizontalalignment="left")
        text.arrow_patch.set_visible(abs(place[1]) > _FAR)
        hidden.append(Text.get_window_extent(text))


def _plain(axis: Axis) -> None:
    """Numbers, not powers of ten."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


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
            _plain(panel.yaxis)
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
