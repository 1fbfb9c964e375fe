"""What figures of all experiments share, and the only module that imports matplotlib.

Figures are made without pyplot: no window, no global state, Agg when they are saved.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from drift.errors import MissingExtraError

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator
except ImportError as missing:
    raise MissingExtraError("matplotlib", "plots") from missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "Canvas", "finish", "log_axis", "log_errors", "styles"]

#: Those of Okabe and Ito, which colour-blind readers can tell apart.
COLOURS = (
    *("#000000", "#0072B2", "#D55E00", "#009E73"),
    *("#CC79A7", "#E69F00", "#56B4E9", "#999999"),
)
_MARKERS = "os^vDPX*"
#: Ticks of a logarithmic axis of errors.
_PERCENT = (0.5, 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50)


class Canvas(Figure):
    """A figure that a notebook shows although pyplot is not there to tell it how."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def log_axis(panel: Axes, values: np.ndarray[Any, Any]) -> None:
    """Make the x axis logarithmic, with ticks at some of the values, which ascend."""
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(FixedLocator(_ticks(values)))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter("{x:.0f}")


def _ticks(values: np.ndarray[Any, Any]) -> list[float]:
    """Values far enough apart on a logarithmic axis for their numbers not to touch."""
    ticks = [float(values[-1])]
    for value in values[-2::-1]:
        if 1.4 * value <= ticks[-1]:
            ticks.append(float(value))
    return ticks


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


def log_errors(panel: Axes) -> None:
    """Make the y axis logarithmic, with round numbers of percent."""
    panel.set_yscale("log")
    low, high = panel.get_ylim()
    panel.set_yticks([], minor=True)
    panel.set_yticks([tick for tick in _PERCENT if low <= tick <= high])
    panel.yaxis.set_major_formatter("{x:g}")


def finish(figure: Figure, title: str, panels: Sequence[Axes], columns: int = 0) -> None:
    """Give a figure its title, and below it the legend of the panel that has most.

    The legend has as many columns as the figure has room for, unless told otherwise.
    """
    figure.suptitle(title, fontsize=12)
    legends = [panel.get_legend_handles_labels() for panel in panels]
    handles, labels = max(legends, key=lambda legend: len(legend[0]))
    if handles:
        columns = columns or (5 if figure.get_figwidth() > 7 else 3)
        figure.legend(
            handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
        )
