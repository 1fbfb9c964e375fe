"""Time of predict_one + learn_one per example, through the dict API, beside peers and the floor.

One process, one thread. Every contender learns the first part of the same stream (RCV1 stories with
seven shifts, or newswire without `DRIFT_DATA`) until the budgets are full; then copies of it run
over the rest, in turns, several times. Figures are medians; ratios are within the run.

    python benchmarks/per_example.py --output results/per_example.json
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import argparse
import copy
import gc
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyximport
from rich.console import Console
from rich.progress import track
from rich.table import Table
from river import linear_model

from drift.models import LBP, RBP, SPA, Forgetron, Perceptron, _columns_py, _support

if TYPE_CHECKING:
    from collections.abc import Callable

    from common import Examples

pyximport.install(language_level=3, inplace=False)
sys.path.insert(0, str(Path(__file__).parent))
from common import machine, stream  # noqa: E402
from floor import walk  # type: ignore[import-not-found]  # noqa: E402

BUDGETS = (100, 1000, 2000)
#: Reached or not, by budget: at most so many times the floor, at least so many times River's speed.
FLOOR_BARS = {100: 2.5, 1000: 2.5, 2000: 3.5}
RIVER_BARS = {100: 2.3, 1000: 1.7, 2000: 1.3}
MEMORY_BAR = 8.0  # megabytes at B = 2000
REFERENCE = "River LogisticRegression"


def prequential(model: Any, examples: Examples) -> None:
    """Predict each example, then learn it."""
    predict, learn = model.predict_one, model.learn_one
    for x, y in examples:
        predict(x)
        learn(x, y)


def in_plain_python(model: RBP) -> RBP:
    """Return a copy of a model over the store in plain Python."""
    with mock.patch.object(_support, "ColumnStore", _columns_py.ColumnStore):
        return copy.deepcopy(model)


def contenders() -> dict[str, Callable[[], Any]]:
    """Models by name."""
    return {
        REFERENCE: linear_model.LogisticRegression,
        "River Perceptron": linear_model.Perceptron,
        "River PAClassifier": linear_model.PAClassifier,
        "Perceptron": Perceptron,
        "SPA": SPA,
        **{f"RBP, B = {b}": lambda b=b: RBP(b, seed=1) for b in BUDGETS},
        **{f"LBP, B = {b}": lambda b=b: LBP(b) for b in BUDGETS},
        **{f"Forgetron, B = {b}": lambda b=b: Forgetron(b) for b in BUDGETS},
    }


def seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Wall time of one call, garbage collected before and not during it."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        function(*arguments)
        return time.perf_counter() - start
    finally:
        gc.enable()


def floor(examples: Examples, vocabulary: dict[str, int]) -> None:
    """Do what no learner of dicts can do without."""
    for x, _ in examples:
        walk(x, vocabulary)  # predict_one is given a dict and must read it,
        walk(x, vocabulary)  # and so is learn_one


def learnt_models(examples: Examples) -> dict[str, Any]:
    """Every contender after the first part of the stream."""
    models = {}
    for name, make in contenders().items():
        models[name] = make()
        prequential(models[name], examples)
    return models


def measure(models: dict[str, Any], timed: Examples, repeats: int) -> dict[str, list[float]]:
    """Microseconds per example of the floors and of every contender, in every round."""
    times: dict[str, list[float]] = {}

    def note(name: str, spent: float, count: int = len(timed)) -> None:
        times.setdefault(name, []).append(1e6 * spent / count)

    vocabularies = {b: numbered_words(models[f"RBP, B = {b}"]) for b in BUDGETS}
    for _ in track(range(repeats), "rounds", transient=True):
        for b, vocabulary in vocabularies.items():
            note(f"floor, B = {b}", seconds(floor, timed, vocabulary))
        for name, model in models.items():
            note(name, seconds(prequential, copy.deepcopy(model), timed))
    few = timed[:50]
    for b in track(BUDGETS, "plain Python", transient=True):
        for _ in range(3):
            slow = in_plain_python(models[f"RBP, B = {b}"])
            note(f"plain Python RBP, B = {b}", seconds(prequential, slow, few), len(few))
    return times


def numbered_words(model: RBP) -> dict[str, int]:
    """The vocabulary that a model holds."""
    words = dict.fromkeys(word for x, _ in model.supports for word in x)
    return {word: number for number, word in enumerate(words)}


def report(name: str, times: dict[str, list[float]], models: dict[str, Any]) -> dict[str, Any]:
    """Print the table; return what goes into the file."""
    medians = {key: statistics.median(values) for key, values in times.items()}
    river = medians[REFERENCE]
    headings = ("contender", "us/example", "min", "max", "x floor", "River LR / it", "MB")
    table = Table(*headings, title=name)
    rows = {}
    for key, median in medians.items():
        budget = int(key.rpartition("= ")[2]) if "= " in key else 1000
        size = models[key]._raw_memory_usage / 1e6 if key in models else float("nan")
        rows[key] = {
            "median": median,
            "min": min(times[key]),
            "max": max(times[key]),
            "over_floor": median / medians[f"floor, B = {budget}"],
            "river_over_it": river / median,
            "megabytes": size,
        }
        table.add_row(key, *(f"{value:.2f}" for value in rows[key].values()))
    Console(width=110).print(table)
    bars = []
    for b in BUDGETS:
        row = rows[f"RBP, B = {b}"]
        bars += [
            (f"B = {b}: times the floor, at most", FLOOR_BARS[b], row["over_floor"]),
            (f"B = {b}: {REFERENCE}'s time / ours, at least", RIVER_BARS[b], row["river_over_it"]),
        ]
    bars.append(("B = 2000: MB, at most", MEMORY_BAR, rows["RBP, B = 2000"]["megabytes"]))
    for text, bar, value in bars:
        reached = value <= bar if "at most" in text else value >= bar
        print(f"{'reached' if reached else 'MISSED '}  {text} {bar}: {value:.2f}")
    return {"stream": name, "contenders": rows, "bars": bars}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--timed", type=int, default=4000, help="examples timed, at the end")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    arguments = parser.parse_args()
    name, examples = stream()
    learnt, timed = examples[: -arguments.timed], examples[-arguments.timed :]
    models = learnt_models(learnt)
    times = measure(models, timed, arguments.repeats)
    results = report(name, times, models) | machine()
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
