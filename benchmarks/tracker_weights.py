"""Draw the weights of a Tracker's members while its stream shifts, for docs/tracker.md.

python -m benchmarks.tracker_weights docs/img/tracker-weights.svg
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.experiments.plots import COLOURS, examples, finish, panels_of, save
from drift.models import Tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

ROWS, EVERY = 2000, 20
#: What each third of the stream asks of a point in the square.
QUESTIONS = ("right of a diagonal?", "black on a 4 x 4 board?", "left of the diagonal?")


def stream(seed: int = 1, noise: float = 0.05) -> Iterator[tuple[dict[str, float], bool]]:
    """Points of a square under three questions, one after the other; some labels are wrong."""
    rng = np.random.default_rng(seed)
    for t in range(3 * ROWS):
        a, b = rng.random(2)
        answers = (a > b, (int(4 * a) + int(4 * b)) % 2 == 0, a < b)
        yield {"a": a, "b": b}, bool(answers[t // ROWS] != (rng.random() < noise))


def run(model: Tracker) -> tuple[dict[str, list[float]], NDArray[Any]]:
    """Weight by kind of member, every so many examples, and which predictions were wrong."""
    weights, wrong = defaultdict(list), []
    for t, (x, y) in enumerate(stream()):
        if t % EVERY == 0:
            kinds: dict[str, float] = defaultdict(float)
            for expert in model.experts:
                kinds[expert.kernel.partition(",")[0]] += expert.weight
            for kind, weight in kinds.items():
                weights[kind].append(weight)
        wrong.append(model.predict_one(x) != y)
        model.learn_one(x, y)
    return weights, np.array(wrong)


def main() -> None:
    """Run the stream and save the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", type=Path)
    weights, wrong = run(Tracker(budget=200))
    at = np.arange(0, 3 * ROWS, EVERY)
    figure, (upper, lower) = panels_of(9.0, 5.2, rows=2, sharex=True, height_ratios=(3, 1))
    upper.stackplot(at, *weights.values(), labels=[*weights], colors=[*COLOURS[1:7], "0.8"])
    upper.set_ylim(0, 1)
    upper.set_ylabel("weight")
    window = 100
    errors = 100 * wrong.reshape(-1, window).mean(axis=1)
    lower.plot(np.arange(len(errors)) * window + window / 2, errors, color="black")
    lower.set_ylim(0, 60)
    lower.set_ylabel("error (%)")
    examples(lower, 3 * ROWS)
    for i, question in enumerate(QUESTIONS):
        upper.text(ROWS * (i + 0.5), 1.02, question, ha="center", fontsize=10)
        for panel in (upper, lower):
            panel.axvline(ROWS * i, color="0.2", linestyle=":")
    finish(figure, "Weights of the members while the stream shifts", [upper], columns=7)
    save(figure, parser.parse_args().figure)


if __name__ == "__main__":
    main()
