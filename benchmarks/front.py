"""Draw the picture of the README: error over time where the target shifts, and where it drifts.

    DRIFT_DATA=... python -m benchmarks.front docs/img/front

writes `front.svg` and `front-dark.svg`. Models run as they come, with a budget of 300; logistic
regression has the learning rate, of eight, that is best in hindsight.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator
from river import forest, linear_model, optim

from benchmarks.contenders import RATES
from benchmarks.streams import Stream, stream
from drift.experiments.plots import Canvas
from drift.models import LBP, OneVsRest, Tracker

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

Curves = dict[str, "NDArray[Any]"]

BUDGET, POINTS = 300, 40
STREAMS = {
    "rcv1-0": "News (RCV1): the question changes seven times",
    "electricity": "Electricity prices: they drift throughout",
}
COLOURS = {
    False: ("#D55E00", "#0072B2", "#007A59", "#9A4D7C"),  # of Okabe and Ito, darker where too light
    True: ("#F0883E", "#56B4E9", "#2CC79B", "#DE9FC4"),
}


def wrong(model: Any, rows: Stream) -> NDArray[Any]:
    """Predict each row, then learn it; return which predictions were wrong."""
    missed = []
    for x, y in rows:
        missed.append(model.predict_one(x) != y)
        model.learn_one(x, y)
    return np.array(missed)


def run(name: str) -> Curves:
    """Return the wrong predictions of each model."""
    raw = stream(name)
    scaled, binary = raw.scaled(), len(set(raw.y)) == 2
    linear = linear_model.LogisticRegression if binary else linear_model.SoftmaxRegression
    by_rate = [wrong(linear(optim.SGD(rate)), scaled) for rate in RATES]
    return {
        "Tracker": wrong(Tracker(budget=BUDGET), raw),
        "LBP": wrong(LBP(BUDGET) if binary else OneVsRest(LBP(BUDGET)), scaled),
        "logistic regression": min(by_rate, key=np.mean),
        "adaptive random forest": wrong(forest.ARFClassifier(seed=0), raw),
    }


def draw(results: dict[str, Curves], *, dark: bool) -> Canvas:
    """Draw a panel a stream, with the error of each model on all of it."""
    figure = Canvas(figsize=(10.0, 3.9), layout="constrained")
    panels: list[Axes] = list(figure.subplots(1, 2))
    ink = mpl.rcParams["text.color"]
    for panel, (name, title) in zip(panels, STREAMS.items(), strict=True):
        curves = results[name]
        n = len(curves["Tracker"])
        ends = []
        for (model, missed), colour in zip(curves.items(), COLOURS[dark], strict=True):
            parts = np.array_split(missed, POINTS)
            at = (np.arange(POINTS) + 0.5) * n / POINTS
            errors = [100 * part.mean() for part in parts]
            first = model == "Tracker"
            panel.plot(at, errors, color=colour, lw=2.4 if first else 1.3, zorder=3 if first else 2)
            ends.append((100 * missed.mean(), f"{model}\n{100 * missed.mean():.1f} %", colour))
        high = 36
        for shift in stream(name).shifts:
            panel.axvline(shift, color=ink, alpha=0.45, ls=":", lw=1)
        if stream(name).shifts:
            panel.text(stream(name).shifts[0], high, " shift", va="top", fontsize=8, alpha=0.8)
        for place, (_, text, colour) in zip(_apart(ends, high), sorted(ends), strict=True):
            panel.text(1.02 * n, place, text, color=colour, va="center", fontsize=9)
        panel.set_title(title, fontsize=11, loc="left")
        panel.set(xlim=(0, n), ylim=(0, high), xlabel="examples")
        panel.xaxis.set_major_locator(MaxNLocator(4))
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", alpha=0.25)
    panels[0].set_ylabel(f"error (%), {POINTS} parts of the stream")
    return figure


def _apart(ends: list[tuple[float, str, str]], high: float) -> list[float]:
    """Return heights for the names, lowest first, so far apart that none hides another."""
    gap, places = high / 8, []
    for value, _, _ in sorted(ends):
        places.append(max(value, places[-1] + gap if places else 0.0))
    return places


def main() -> None:
    """Run the models and save both variants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", help="file without its ending")
    figure = parser.parse_args().figure
    results = {name: run(name) for name in STREAMS}
    for dark in (False, True):
        ink = "#e6edf3" if dark else "#1f2328"
        inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
        style: dict[str, Any] = {**dict.fromkeys(inked, ink), "svg.fonttype": "none"}
        style["svg.hashsalt"] = "drift"
        with mpl.rc_context(style):
            path = f"{figure}{'-dark' * dark}.svg"
            draw(results, dark=dark).savefig(path, transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
