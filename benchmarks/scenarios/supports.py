"""How the time of an evaluation and of an update grows with the supports, for every model.

Each model of the registry learns stories under random labels until it holds a number of supports.
Copies of it then, in turns, predict fresh stories and learn each as a mistake. The exponent of the
number of supports is fitted to the medians, beside the order that the algorithm promises.

Medians leave out the update in every m / 4 in which a model without budget makes room, O(m^2) where
it holds a matrix.
"""

from __future__ import annotations

import copy
import statistics
from typing import TYPE_CHECKING, Any

from benchmarks.models import made
from benchmarks.report import markdown, shown
from benchmarks.streams import stream
from benchmarks.timing import exponent, filled, progress, steps
from drift.models import MODELS
from drift.models.registry import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.timing import Example
    from drift.models.registry import Entry

SIZES = (250, 500, 1000)
STEPS = ("prediction", "update")
#: How far a fitted exponent may lie above the order before the model counts as slower. The sizes
#: span a factor of 4, so a half is a factor of 2: what a matrix pays that leaves the second-level
#: cache on the way, and half the distance to the next order.
TOLERANCE = 0.5


def measure(examples: list[Example], repeats: int, updates: int) -> list[dict[str, Any]]:
    """Measure every model at every size, in turns; a row for each model."""
    states: dict[tuple[str, int], tuple[Any, list[Example]]] = {}
    for name in progress(MODELS, "filling"):
        for size in SIZES:
            model = made(name, size)
            states[name, size] = model, list(filled(model, examples, size))
    samples: dict[tuple[str, int], list[tuple[float, float]]] = {key: [] for key in states}
    for _ in progress(range(repeats), "rounds"):
        for key, (model, rest) in states.items():
            copied = copy.deepcopy(model)
            steps(copied, rest[:5])  # the copy comes into the caches
            samples[key].append(steps(copied, rest[5 : 5 + updates]))
    return [row_of(one, [samples[one.name, size] for size in SIZES]) for one in ENTRIES]


def row_of(entry: Entry, samples: Sequence[Sequence[tuple[float, float]]]) -> dict[str, Any]:
    """Return medians, exponents and orders of a model, by its samples at each size."""
    row: dict[str, Any] = {"model": entry.name}
    is_slower = False
    for step, times in zip(STEPS, zip(*map(_medians, samples), strict=True), strict=True):
        order, slope = getattr(entry, step), exponent(SIZES, times)
        row[f"{step}, us at {' / '.join(map(str, SIZES))}"] = " / ".join(map(shown, times))
        row |= {f"{step}: exponent": slope, f"{step}: order": order}
        is_slower |= slope > order + TOLERANCE
    return row | {"no slower": not is_slower}


def _medians(samples: Sequence[tuple[float, float]]) -> list[float]:
    return [statistics.median(times) for times in zip(*samples, strict=True)]


def supports(*, quick: bool) -> dict[str, Any]:
    """Times of every model at three sizes, with the exponents."""
    examples = list(stream("rcv1 shifts"))
    table = measure(examples, 2 if quick else 9, 10 if quick else 40)
    return {"table": table, "notes": [markdown(table)]}
