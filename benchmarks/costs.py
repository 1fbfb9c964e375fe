"""How the time of an evaluation and of an update grows with the supports, for every model.

Each model of the registry learns stories under random labels until it holds a number of supports.
Copies of it then, in turns, predict fresh stories and learn each as a mistake. The exponent of the
number of supports is fitted to the medians, beside the order that the algorithm promises.

    python benchmarks/costs.py --output results/costs.json
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import argparse
import copy
import gc
import inspect
import statistics
import time
import tracemalloc
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data import Examples, stories
from machine import machine, write_json
from rich.console import Console
from rich.progress import track
from rich.table import Table
from timing import filled

from drift.models import MODELS, KernelClassifier
from drift.models.registry import ENTRIES

SIZES = (250, 500, 1000)
#: How far a fitted exponent may lie above the order before the model counts as slower. The sizes
#: span a factor of 4, so a half is a factor of 2: what a matrix pays that leaves the second-level
#: cache on the way, and half the distance to the next order.
TOLERANCE = 0.5


class Sample(NamedTuple):
    """Microseconds of one prediction and one update: medians over the examples of one round.

    Medians leave out what other processes take, and also the update in every m / 4 in which a model
    without budget makes room, O(m^2) where it holds a matrix.
    """

    prediction: float
    update: float


def make(name: str, size: int) -> KernelClassifier:
    """Make a model, of that budget if it has one."""
    known = inspect.signature(MODELS[name]).parameters
    wanted = {"budget": size, "seed": 0, "cache": "fixed"}
    return MODELS[name](**{key: value for key, value in wanted.items() if key in known})


def one_round(model: KernelClassifier, examples: Examples) -> Sample:
    """Predict each example and learn it as a mistake, timing both."""
    clock, predictions, updates = time.perf_counter, [], []
    gc.collect()
    gc.disable()
    try:
        for x, _ in examples:
            start = clock()
            predicted = model.predict_one(x)
            middle = clock()
            model.learn_one(x, not predicted)
            updates.append(clock() - middle)
            predictions.append(middle - start)
    finally:
        gc.enable()
    return Sample(1e6 * statistics.median(predictions), 1e6 * statistics.median(updates))


def peak(model: KernelClassifier, examples: Examples) -> float:
    """Kilobytes that an update takes above what is held before it: the median over examples."""
    peaks = []
    tracemalloc.start()
    try:
        for x, _ in examples:
            y = not model.predict_one(x)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            model.learn_one(x, y)
            peaks.append((tracemalloc.get_traced_memory()[1] - before) / 1e3)
    finally:
        tracemalloc.stop()
    return statistics.median(peaks)


def measure(examples: Examples, sizes: list[int], repeats: int, updates: int) -> dict[str, Any]:
    """Measure every model at every size, in turns."""
    states: dict[tuple[str, int], tuple[KernelClassifier, Examples]] = {}
    for name in track(MODELS, "filling", transient=True):
        for size in sizes:
            model = make(name, size)
            states[name, size] = model, list(filled(model, examples, size))
    samples: dict[tuple[str, int], list[Sample]] = {key: [] for key in states}
    for _ in track(range(repeats), "rounds", transient=True):
        for key, (model, rest) in states.items():
            copied = copy.deepcopy(model)
            one_round(copied, rest[:5])  # the copy comes into the caches
            samples[key].append(one_round(copied, rest[5 : 5 + updates]))
    orders = {entry.name: entry for entry in ENTRIES}
    results: dict[str, Any] = {}
    for name in MODELS:
        model, rest = states[name, sizes[-1]]
        row: dict[str, Any] = {"peak_kilobytes": peak(copy.deepcopy(model), rest[:20])}
        for kind in Sample._fields:
            medians = [
                statistics.median(getattr(sample, kind) for sample in samples[name, size])
                for size in sizes
            ]
            exponent = float(np.polyfit(np.log(sizes), np.log(medians), 1)[0])
            order = getattr(orders[name], kind)
            row[kind] = {
                "microseconds": dict(zip(sizes, medians, strict=True)),
                "exponent": exponent,
                "order": order,
                "no_slower": exponent <= order + TOLERANCE,
            }
        results[name] = row
    return results


def report(name: str, sizes: list[int], results: dict[str, Any]) -> None:
    """Print the table."""
    headings = ["model", "step", *(f"us, {size}" for size in sizes), "exponent", "order"]
    table = Table(*headings, "no slower", "peak KB", title=f"{name}, {sizes} supports")
    for model, row in results.items():
        for kind in Sample._fields:
            cost = row[kind]
            times = [f"{value:.1f}" for value in cost["microseconds"].values()]
            memory = f"{row['peak_kilobytes']:.1f}" if kind == "update" else ""
            verdict = "yes" if cost["no_slower"] else "NO"
            order = f"{cost['order']}"
            shown = [model, kind, *times, f"{cost['exponent']:.2f}", order, verdict, memory]
            table.add_row(*shown)
    Console(width=130).print(table)
    print(f"{8 * sizes[-1] / 1e3:.1f} KB: one row of {sizes[-1]} numbers")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--updates", type=int, default=40, help="examples timed in a round")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    arguments = parser.parse_args()
    stream = stories()
    name, examples = stream.name, list(stream.examples())
    sizes = list(SIZES)
    results = measure(examples, sizes, arguments.repeats, arguments.updates)
    report(name, sizes, results)
    if arguments.output:
        figures = {"stream": name, "tolerance": TOLERANCE, "models": results} | machine()
        write_json(arguments.output, figures)


if __name__ == "__main__":
    main()
