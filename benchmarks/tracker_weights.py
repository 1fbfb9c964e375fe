"""Draw which members of a Tracker help while its stream shifts, for docs/tracker.md.

python -m benchmarks.tracker_weights docs/img/tracker-weights.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.experiments.plots import COLOURS, Canvas, examples, finish, panels_of, save, shifts
from drift.models import Tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from drift.models._tracker.members import Member

ROWS, WINDOW = 2000, 200
#: What each third of the stream asks of a point in the square.
QUESTIONS = ("right of a diagonal?", "black on a 4 x 4 board?", "left of the diagonal?")


def kind_of(member: Member) -> str:
    """Return what kind of member it is, over the features or beside their context."""
    if member.rate:
        return "kernels"
    kind = member.kernel.rpartition(" ")[2]
    return kind if kind in {"splines", "trees"} else "linear models"


def stream(seed: int = 1, noise: float = 0.05) -> Iterator[tuple[dict[str, float], bool]]:
    """Points of a square under three questions, one after the other; some labels are wrong."""
    rng = np.random.default_rng(seed)
    for t in range(3 * ROWS):
        a, b = rng.random(2)
        answers = (a > b, (int(4 * a) + int(4 * b)) % 2 == 0, a < b)
        yield {"a": a, "b": b}, bool(answers[t // ROWS] != (rng.random() < noise))


def run(model: Tracker) -> dict[str, NDArray[Any]]:
    """Return the error in each window, in percent: of the Tracker, and of each member by its kind.

    Errors of a kind have a row for each member.
    """
    wrong, counts = [], []
    for t, (x, y) in enumerate(stream(), start=1):
        wrong.append(model.predict_one(x) != y)
        model.learn_one(x, y)
        if t % WINDOW == 0:
            counts.append([t * member.error for member in model.members])
    errors = {"Tracker": np.reshape(wrong, (1, -1, WINDOW)).mean(axis=2)}
    members = np.diff(counts, axis=0, prepend=0).T / WINDOW
    names = [kind_of(one) for one in model.members]
    errors |= {kind: members[[kind == name for name in names]] for kind in dict.fromkeys(names)}
    return {kind: 100 * of_kind for kind, of_kind in errors.items()}


def draw(errors: dict[str, NDArray[Any]]) -> Canvas:
    """Draw a line for each kind: under each question its member that errs least there."""
    figure, [panel] = panels_of(9.0, 4.4)
    at = (np.arange(3 * ROWS // WINDOW) + 0.5) * WINDOW
    for (kind, of_kind), colour in zip(errors.items(), COLOURS, strict=False):
        parts = np.split(of_kind, 3, axis=1)
        line = np.concatenate([part[part.mean(axis=1).argmin()] for part in parts])
        width, order = (2.4, 3) if kind == "Tracker" else (1.5, 2)
        panel.plot(at, line, label=kind, color=colour, lw=width, zorder=order)
    shifts(panel, [ROWS * i for i in range(3)], QUESTIONS)
    examples(panel, 3 * ROWS)
    panel.set_ylim(0, 70)
    panel.set_ylabel(f"error in {WINDOW} examples (%)")
    note = "the best member of each kind; 5 % of the labels are wrong"
    return finish(figure, "Which members help while the stream shifts", [panel], note=note)


def main() -> None:
    """Run the stream and save the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", type=Path)
    figure = parser.parse_args().figure
    save(draw(run(Tracker(budget=200))), figure)


if __name__ == "__main__":
    main()
