"""The style of every figure, and the only module of drift that imports matplotlib.

Figures are made without pyplot: no window, no global state, Agg when they are saved.
"""

from __future__ import annotations

from functools import partial
from io import BytesIO
from math import hypot
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from drift.errors import needing

with needing("matplotlib", "plots"):
    import matplotlib as mpl
    from matplotlib.colors import to_hex, to_rgb
    from matplotlib.figure import Figure
    from matplotlib.path import Path
    from matplotlib.text import Text
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
    from matplotlib.transforms import Bbox

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from drift.experiments.jobs import Record

__all__ = [
    "COLOURS",
    "GREY",
    "Canvas",
    "End",
    "Point",
    "error_in_windows",
    "examples",
    "finish",
    "log_axis",
    "log_errors",
    "panels_of",
    "save",
    "shifts",
    "styles",
]

#: The height at which a line ends, its name and its colour.
End: TypeAlias = tuple[float, str, str]
#: A point's coordinates, its name and its colour.
Point: TypeAlias = tuple[float, float, str, str]

#: Those of Okabe and Ito, which colour-blind readers can tell apart.
COLOURS = (
    *("#000000", "#0072B2", "#D55E00", "#009E73"),
    *("#CC79A7", "#E69F00", "#56B4E9", "#999999"),
)
#: Of what is drawn for comparison only.
GREY = "#9A9A9A"
_MARKERS = "os^vDPX*"
#: Ticks of a logarithmic axis of errors.
_PERCENT = (0.5, 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50)
#: Ticks of a part of a logarithmic axis that has hardly any round ones.
_EVEN = partial(MaxNLocator, 7, steps=[1, 2, 5, 10])
#: Where a name may begin or end, in points from its point: right or left of it, the nearest first.
_PLACES = sorted(
    ((right, up) for right in (6, -6, 20, -20, 50, -50) for up in range(-80, 81, 2)),
    key=lambda place: (hypot(*place) + 2 * (place[0] < 0), place[1]),
)
#: From how many points on a line leads from the name to its point.
_FAR = 9


class Canvas(Figure):
    """A figure that a notebook shows although pyplot is not there to tell it how."""

    def _repr_svg_(self) -> str:
        buffer = BytesIO()
        save(self, buffer)
        return buffer.getvalue().decode()


def panels_of(
    width: float, height: float, rows: int = 1, columns: int = 1, **share: Any
) -> tuple[Canvas, list[Axes]]:
    """Make a figure of so many inches, and its panels row by row."""
    figure = Canvas(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **share).flat)


def save(figure: Figure, path: str | os.PathLike[str] | BytesIO) -> None:
    """Write an SVG whose text is text, and whose bytes are the same each time."""
    with mpl.rc_context({"svg.hashsalt": "drift", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})


def styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour and marker of each name."""
    return {
        # From the ninth on colours come again, with other markers.
        name: {
            "color": COLOURS[i % len(COLOURS)],
            "marker": _MARKERS[(i + i // len(COLOURS)) % len(_MARKERS)],
        }
        for i, name in enumerate(names)
    }


def log_axis(axis: Axis) -> None:
    """Make an axis logarithmic, with ticks at 1, 2 and 5 times powers of ten, or the latter.

    Where that were too few, ticks are as far from each other as on a linear axis.
    """
    (axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale)("log")
    low, high = axis.get_view_interval()
    subs = (1, 2, 5) if high < 500 * low else (1,)
    known = (sub * 10.0**power for sub in subs for power in range(-12, 13))
    few = sum(low <= tick <= high for tick in known) < 3
    axis.set_major_locator(_EVEN() if few else LogLocator(subs=subs, numticks=99))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def log_errors(panel: Axes) -> None:
    """Make the y axis logarithmic, with round numbers of percent."""
    panel.set_yscale("log")
    low, high = panel.get_ylim()
    panel.set_yticks([], minor=True)
    ticks = [tick for tick in _PERCENT if low <= tick <= high]
    even = _EVEN().tick_values(low, high)
    panel.set_yticks(ticks if len(ticks) > 2 else [tick for tick in even if low <= tick <= high])
    panel.yaxis.set_major_formatter("{x:g}")


def examples(panel: Axes, n: int) -> None:
    """Make the x axis one of a stream's examples, from none to all, with round ticks on both."""
    panel.set_xlim(0, n)
    panel.set_xlabel("examples")
    panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def shifts(panel: Axes, places: Sequence[float], names: Sequence[str] = ("shift",)) -> None:
    """Mark where the target shifts, with what it becomes, or with what the first line is."""
    for place in places:
        panel.axvline(place, color="0.45", linestyle=":", linewidth=1.1, zorder=0)
    look: dict[str, Any] = {"textcoords": "offset points", "va": "top", "fontsize": 8}
    for place, name in zip(places, names, strict=False):
        top = panel.get_xaxis_transform()
        panel.annotate(name, (place, 1), xytext=(4, -3), xycoords=top, **look)


def error_in_windows(
    title: str,
    n: int,
    lines: Iterable[tuple[str, str, Sequence[Record], dict[str, Any]]],
    places: Sequence[float],
    names: Sequence[str] = ("shift",),
) -> Figure:
    """Draw errors over the examples of a stream, means over runs, with marks as from `shifts`.

    A line has a name, a text at its end, the records of its runs, whose windows may lack an error,
    and a style.
    """
    figure, [panel] = panels_of(11.0, 4.8)
    ends: list[End] = []
    for name, text, records, style in lines:
        shares = np.array([record["window_errors"] for record in records], dtype=float)
        errors = 100 * np.ma.masked_invalid(shares).mean(axis=0).filled(np.nan)
        middles = (np.arange(len(errors)) + 0.5) * n / len(errors)
        panel.plot(middles, errors, label=name, **style)
        ends += [(error, text, style["color"]) for error in errors[np.isfinite(errors)][-1:]]
    shifts(panel, places, names)
    examples(panel, n)
    panel.set_ylim(bottom=0)
    panel.set_ylabel("error in the window (%)")
    return finish(figure, title, [panel], note="right: error of all windows", ends=[ends])


def finish(  # noqa: PLR0913 - what a figure may have, by keyword
    figure: Figure,
    title: str,
    panels: Sequence[Axes],
    *,
    note: str = "",
    ends: Iterable[Iterable[End]] = (),
    points: Iterable[tuple[Iterable[Point], Sequence[Sequence[float]]]] = (),
    legend: bool = True,
    columns: int = 0,
) -> Figure:
    """Give a figure its title and grid, a note that says how to read it, and names; return it.

    For each panel, `ends` are the lines that are named where they end, and `points` those that are
    named beside them, with others that no name may hide. Where there are neither, the legend of the
    panel that has most is below the figure, with as many columns as there is room for or `columns`.
    """
    ends, points = list(ends), list(points)
    figure.suptitle(title, fontsize=12, parse_math=False)  # names come from anyone
    for panel in panels:
        panel.grid(alpha=0.25)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    legends = [panel.get_legend_handles_labels() for panel in panels]
    handles, labels = max(legends, key=lambda legend: len(legend[0]))
    if handles and legend and not ends and not points:
        columns = columns or (5 if figure.get_figwidth() > 7.5 else 3)
        look: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "fontsize": 9}
        look |= {"title": note or None, "title_fontsize": 9, "frameon": False}
        for text in figure.legend(handles, labels, **look).get_texts():
            text.set_parse_math(False)
    elif note:
        figure.supxlabel(note, fontsize=9, parse_math=False)
    for panel, lines in zip(panels, ends, strict=False):
        _name_ends(figure, panel, lines)
    for panel, (named, others) in zip(panels, points, strict=False):
        _name_points(figure, panel, named, others)
    return figure


def _name_ends(figure: Figure, panel: Axes, ends: Iterable[End]) -> None:
    """Write names to the right of a finished panel, none over another."""
    ends = sorted(ends)
    texts = [
        _beside(panel, text, (1, y), colour, panel.get_yaxis_transform())
        for y, text, colour in ends
    ]
    figure.draw_without_rendering()  # gives the panels their places, beside what has been written
    point = figure.dpi / 72
    wanted = [panel.transData.transform((panel.get_xlim()[0], y))[1] / point for y, _, _ in ends]
    heights = [text.get_window_extent().height / point + 2 for text in texts]
    places = _apart(wanted, heights, panel.bbox.y1 / point)
    for text, place, at in zip(texts, places, wanted, strict=True):
        text.set_position((6, place - at))


def _apart(wanted: list[float], heights: list[float], top: float) -> list[float]:
    """Return places, lowest first, at least so far apart and near those wanted."""
    places: list[float] = []
    for k, at in enumerate(wanted):
        least = places[-1] + (heights[k - 1] + heights[k]) / 2 if k else at
        places.append(max(at, least))
    for k in reversed(range(len(places))):
        most = top if k + 1 == len(places) else places[k + 1] - (heights[k] + heights[k + 1]) / 2
        places[k] = min(places[k], most)
    return places


def _name_points(
    figure: Figure, panel: Axes, names: Iterable[Point], others: Sequence[Sequence[float]]
) -> None:
    """Write names beside points in a finished panel where they hide no other name and no point.

    A name that finds no such place stays beside its point. A line leads from a far one to its
    point, past other names and their points if a place allows it.
    """
    texts = [
        _beside(panel, text, (x, y), colour, panel.transData, line=True)
        for x, y, text, colour in sorted(names, key=lambda name: name[1])
        if panel.viewLim.contains(x, y)
    ]
    for text in texts:
        text.set_in_layout(False)  # the panel keeps its place
    figure.draw_without_rendering()  # gives the panels their places, beside what has been written
    point = figure.dpi / 72
    centres = panel.transData.transform([*others, *(text.xy for text in texts)])
    hidden = [Bbox([centre - 3 * point, centre + 3 * point]) for centre in centres]
    marks = hidden[len(others) :]
    for text, at, mark in zip(texts, centres[len(others) :], list(marks), strict=True):
        own = Text.get_window_extent(text)  # 6 points to the right, without the line to the point
        crossed = [box for box in marks if not box.overlaps(mark)]
        free = []
        for place in _PLACES:
            right = place[0] - 6 - own.width / point * (place[0] < 0)
            box = own.translated(right * point, place[1] * point)
            inside = panel.bbox.contains(*box.min) and panel.bbox.contains(*box.max)
            if inside and not box.count_overlaps(hidden):
                free.append((place, box))
                line = Path([at, np.mean([box.min, box.max], axis=0)])
                if not any(line.intersects_bbox(other) for other in crossed):
                    break
        else:
            free.append((_PLACES[0], own))
            place, box = free[0]
        text.set(position=place, horizontalalignment="left" if place[0] > 0 else "right")
        text.arrow_patch.set_visible(hypot(*place) > _FAR)
        hidden.append(box)
        marks.append(box)


def _beside(  # noqa: PLR0913 - what stands where
    panel: Axes,
    text: str,
    at: tuple[float, float],
    colour: str,
    coordinates: Any,
    *,
    line: bool = False,
) -> Any:
    ink: Any = 0.72 * np.array(to_rgb(colour))  # light colours are hard to read
    arrow = {"arrowstyle": "-", "color": colour, "lw": 0.5, "shrinkA": 0, "shrinkB": 2}
    return panel.annotate(
        text,
        at,
        xycoords=coordinates,
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=to_hex(ink),
        annotation_clip=False,
        arrowprops=arrow if line else None,
        parse_math=False,
    )
