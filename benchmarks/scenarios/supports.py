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
from benchmarks.streams import stream
from benchmarks.timing import exponent, filled, progress, steps
from drift.models import MODELS
from drift.models.registry import ENTRIES

if TYPE_CHECKING:
    from benchmarks.timing import Example

SIZES = (250, 500, 1000)
STEPS = ("prediction", "update")
#: How far a fitted exponent may lie above the order before the model counts as slower. The sizes
#: span a factor of 4, so a half is a factor of 2: what a matrix pays that leaves the second-level
#: cache on the way, and half the distance to the next order.
TOLERANCE = 0.5


def measure(examples: list[Example], repeats: int, updates: int) -> list[dict[str, Any]]:
    """Measure every model at every size, in turns; a row for each of the two steps."""
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
    rows = []
    for entry in ENTRIES:
        for k, step in enumerate(STEPS):
            order = getattr(entry, step)
            us = [statistics.median(one[k] for one in samples[entry.name, size]) for size in SIZES]
            slope = exponent(SIZES, us)
            row = {"model": entry.name, "step": step} | dict(zip(map(str, SIZES), us, strict=True))
            verdict = slope <= order + TOLERANCE
            rows.append(row | {"exponent": slope, "order": order, "no slower": verdict})
    return rows


def supports(*, quick: bool) -> dict[str, Any]:
    """Times of every model at three sizes, with the exponents."""
    examples = list(stream("rcv1 shifts"))
    return {"table": measure(examples, 2 if quick else 9, 10 if quick else 40)}
