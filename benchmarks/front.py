"""Draw the picture of the README: error over time where the target shifts, and where it drifts.

    DRIFT_DATA=... python -m benchmarks.front docs/img/front.svg
    python tools/dark.py docs/img/front.svg

Streams and models are the arena's, with its settings, except for logistic regression: it has
the learning rate, of eight, that is best in hindsight.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.experiments.arena.models import contenders_of
from drift.experiments.arena.streams import STREAMS
from drift.experiments.plots import Canvas, examples, finish, panels_of, save, shifts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.streams import Stream

Curves = dict[str, "NDArray[Any]"]

POINTS = 40
TITLES = {
    "rcv1 shifts": "News (RCV1): the question changes seven times",
    "electricity": "Electricity prices: they drift throughout",
}
COLOURS = ("#D55E00", "#0072B2", "#007A59", "#9A4D7C")  # of Okabe and Ito, darker where too light


def wrong(model: Any, rows: Stream) -> NDArray[Any]:
    """Predict each row, then learn it; return which predictions were wrong."""
    missed = []
    for x, y in rows:
        missed.append(model.predict_one(x) != y)
        model.learn_one(x, y)
    return np.array(missed)


def run(name: str) -> Curves:
    """Return the wrong predictions of each model."""
    rows = STREAMS[name].make()
    curves = {}
    for family in ("Tracker", "LBP", "logistic regression", "ARF"):
        entrants = contenders_of(family, multiclass=False, sparse=STREAMS[name].sparse)
        chosen = entrants.values() if family == "logistic regression" else [entrants[family]]
        curves[family] = min((wrong(one.make(), rows) for one in chosen), key=np.mean)
    return curves | {"adaptive random forest": curves.pop("ARF")}


def draw(results: dict[str, Curves]) -> Canvas:
    """Draw a panel a stream, with the error of each model on all of it."""
    figure, panels = panels_of(6.2, 6.0, rows=2, sharey=True)  # to be read on a telephone, too
    named = []
    for panel, (name, title) in zip(panels, TITLES.items(), strict=True):
        curves = results[name]
        n = len(curves["Tracker"])
        ends = []
        for (model, missed), colour in zip(curves.items(), COLOURS, strict=True):
            parts = np.array_split(missed, POINTS)
            at = (np.arange(POINTS) + 0.5) * n / POINTS
            errors = [100 * part.mean() for part in parts]
            first = model == "Tracker"
            panel.plot(at, errors, color=colour, lw=2.4 if first else 1.3, zorder=3 if first else 2)
            ends.append((100 * missed.mean(), f"{model}\n{100 * missed.mean():.1f} %", colour))
        shifts(panel, [one.row for one in STREAMS[name].make().drifts])
        examples(panel, n)
        panel.set_title(title, fontsize=11, loc="left")
        named.append(ends)
    for panel in panels:
        panel.set(ylim=(0, 36), ylabel="error (%)")
    return finish(figure, "", panels, ends=named)


def main() -> None:
    """Run the models and save the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", help="file to write")
    figure = parser.parse_args().figure
    save(draw({name: run(name) for name in TITLES}), figure)


if __name__ == "__main__":
    main()
