"""How time and memory grow: with the budget, an example's size, the names and the examples seen.

Fitted exponents are slopes between logarithms: 1 is proportional, 0 does not grow.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import deque
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from river import linear_model
from scipy.sparse import csr_array

from benchmarks.data import Examples, Stream, drawn, stories
from benchmarks.machine import ROOT, resident
from benchmarks.timing import exponent, figure, filled, prequential, progress, steps
from benchmarks.twins import check
from drift.models import LBP, RBP, Forgetron

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.scenarios import Settings

_NAMES_PER_ROW = 20
#: Examples that are in memory at a time, beside the model.
_CHUNK = 200


def full(size: int, examples: Examples) -> RBP:
    """RBP whose budget is full: it has learnt the examples over and over."""
    model = RBP(size, seed=1)
    filled(model, cycle(examples), size)
    return model


def measured(sizes: list[int], models: list[Any], rows: list[Examples], rounds: int) -> list[Any]:
    """Medians over rounds in which the sizes take turns."""
    samples: list[list[tuple[float, float]]] = [[] for _ in sizes]
    for _ in progress(range(rounds), "growth: rounds"):
        for sample, model, examples in zip(samples, models, rows, strict=True):
            sample.append(steps(model, examples))
    return [
        {
            "size": size,
            "us a prediction": figure([prediction for prediction, _ in sample]),
            "us an update": figure([update for _, update in sample]),
            "MB": model._raw_memory_usage / 1e6,
        }
        for size, sample, model in zip(sizes, samples, models, strict=True)
    ]


def fitted(table: list[dict[str, Any]], what: str) -> dict[str, Any]:
    """Exponents over all sizes, and over the larger half of them, where constants count less."""
    figures = {}
    columns = [column for column in table[0] if column.startswith(("us", "MB"))]
    for column in columns:
        values = [row[column] for row in table]
        medians = [v["median"] if isinstance(v, dict) else v for v in values]
        sizes = [float(row["size"]) for row in table]
        half = len(sizes) // 2
        figures[f"exponent of {column} in {what}"] = figure([exponent(sizes, medians)])
        figures[f"exponent of {column} in {what}, larger half"] = figure(
            [exponent(sizes[half:], medians[half:])]
        )
    return figures


def result(
    stream: str, checked: list[str], table: list[dict[str, Any]], figures: dict[str, Any]
) -> dict[str, Any]:
    """What the scenarios of this module share: each figure is a line of text."""
    return {
        "stream": {"name": stream},
        "checked": checked,
        "table": table,
        "figures": figures,
        "notes": [f"{name}: {value['median']:.2f}" for name, value in figures.items()],
    }


def budget(settings: Settings) -> dict[str, Any]:
    """RBP on stories, budgets from 50 to 20,000."""
    sizes = settings.pick(
        [50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000], [50, 100, 200, 500, 1000]
    )
    stream = stories(settings.pick(20_000, 3_000))
    checked = check(
        stream.part(0, settings.pick(1_500, 500)), {"RBP B=50": lambda: RBP(50, seed=1)}
    )
    examples = list(stream)
    models = [full(size, examples) for size in progress(sizes, "filling")]
    table = measured(sizes, models, [examples[:1_000]] * len(sizes), settings.pick(7, 3))
    return result(stream.name, checked, table, fitted(table, "B"))


def nonzeros(settings: Settings) -> dict[str, Any]:
    """RBP of budget 1,000 on rows drawn at random, of 5 to 1,000 features out of 50,000."""
    sizes = settings.pick([5, 10, 20, 50, 100, 200, 500, 1000], [5, 10, 20, 50])
    limit = settings.pick(1_000, 200)
    rows, models, checked = [], [], []
    for size in progress(sizes, "filling"):
        stream = drawn(3 * limit, size, 50_000)
        name = f"RBP, {size} nonzeros"
        checked += check(stream.part(0, 300), {name: lambda: RBP(50, seed=1)})
        examples = list(stream)
        models.append(full(limit, examples))
        rows.append(examples[:500])
    table = measured(sizes, models, rows, settings.pick(7, 3))
    return result("drawn", checked, table, fitted(table, "nonzeros"))


def growing(total: int) -> Iterator[tuple[dict[str, float], bool]]:
    """Rows of 20 of 1,000 common words and of 20 names that never came before; random labels."""
    rng = random.Random(0)
    common = [f"word{j}" for j in range(1_000)]
    for first in range(0, total, _NAMES_PER_ROW):
        x = dict.fromkeys(rng.sample(common, 20), 0.2)
        x.update({f"name{j:08}": 0.1 for j in range(first, first + _NAMES_PER_ROW)})
        yield x, rng.random() < 0.5


def names(settings: Settings) -> dict[str, Any]:
    """Names seen, 10^3 to 10^7; a fresh process for each model, for the sake of its memory."""
    most = settings.pick(10**7, 10**5)
    first = list(growing(600 * _NAMES_PER_ROW))
    checked = check(as_stream(first), {"RBP B=100": lambda: RBP(100, seed=1)})
    table = fresh("names", "RBP B=1000", most) + fresh("names", "LBP B=1000", most)
    # River's linear model has a weight for every name that it has seen.
    table += fresh("names", "River LogisticRegression", most // 10)
    figures = flatness(table, "names")
    at = {(row["contender"], row["size"]): row for row in table}
    if ("RBP B=1000", 10**7) in at:
        last, before = at["RBP B=1000", 10**7], at["RBP B=1000", 10**5]
        text = "memory at 10^7 names / at 10^5"
        figures[text] = figure([last["MB"] / before["MB"]])
        figures[f"resident {text}"] = figure([last["resident MB"] / before["resident MB"]])
    return result("names", checked, table, figures)


def length(settings: Settings) -> dict[str, Any]:
    """Examples seen, 10^3 to 5,000,000, of 20 words out of 20,000 each."""
    most = settings.pick(5_000_000, 100_000)
    stream = drawn(1_000, 20, 20_000)
    makers = {"RBP B=100": lambda: RBP(100, seed=1), "Forgetron B=100": lambda: Forgetron(100)}
    checked = check(stream, makers)
    table = [row for name in makers for row in fresh("length", name, most)]
    return result("drawn", checked, table, flatness(table, "length"))


def as_stream(examples: Examples) -> Stream:
    """Dicts as a stream, for the twins."""
    columns = {name: j for j, name in enumerate(dict.fromkeys(k for x, _ in examples for k in x))}
    matrix = np.zeros((len(examples), len(columns)))
    for i, (x, _) in enumerate(examples):
        for name, value in x.items():
            matrix[i, columns[name]] = value
    labels = np.array([y for _, y in examples])
    return Stream(csr_array(matrix), labels, list(columns), name="names")


def flatness(table: list[dict[str, Any]], what: str) -> dict[str, Any]:
    """Exponents of each model, from a hundredth of the largest size on, where budgets are full."""
    figures = {}
    for name in dict.fromkeys(row["contender"] for row in table):
        rows = [row for row in table if row["contender"] == name]
        rows = [row for row in rows if 100 * row["size"] >= rows[-1]["size"]]
        sizes = [float(row["size"]) for row in rows]
        for column in ("us", "MB", "resident MB"):
            if rows[0][column] is not None:
                slope = exponent(sizes, [row[column] for row in rows])
                figures[f"exponent of {column} in {what}, {name}"] = figure([slope])
    return figures


# --- in a fresh process ---------------------------------------------------------------------------


def fresh(kind: str, name: str, most: int) -> list[dict[str, Any]]:
    """Rows of the table, measured in its own process."""
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-m", __name__, kind, name, str(most)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def main(kind: str, name: str, most: int) -> None:
    """Learn one stream up to each decade; print time and memory there."""
    model = {
        "RBP B=1000": lambda: RBP(1000, seed=1),
        "LBP B=1000": lambda: LBP(1000),
        "RBP B=100": lambda: RBP(100, seed=1),
        "Forgetron B=100": lambda: Forgetron(100),
        "River LogisticRegression": linear_model.LogisticRegression,
    }[name]()
    if kind == "names":
        examples: Iterator[tuple[dict[str, float], bool]] = growing(most)
        per_row = _NAMES_PER_ROW
    else:
        examples, per_row = cycle(list(drawn(20_000, 20, 20_000))), 1
    before, seen, table = resident(), 0, []
    spent: deque[float] = deque(maxlen=200)
    for size in [10**k for k in range(3, 9) if 10**k < most] + [most]:
        while seen < size:
            chunk = list(islice(examples, min(_CHUNK, (size - seen) // per_row)))
            start = time.process_time()
            prequential(model, chunk)
            spent.append(1e6 * (time.process_time() - start) / len(chunk))
            seen += len(chunk) * per_row
        table.append(
            {
                "contender": name,
                "size": size,
                "us": float(np.median(spent)),
                # River's weights are in compiled code, which its own count does not see.
                "MB": None if name.startswith("River") else model._raw_memory_usage / 1e6,
                "resident MB": resident() - before,
            }
        )
    print(json.dumps(table))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
