"""How time and memory grow: with the budget, and with the names seen.

Fitted exponents are slopes between logarithms: 1 is proportional, 0 does not grow.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import deque
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from river import linear_model

from benchmarks.memory import resident
from benchmarks.report import bar
from benchmarks.streams import stream
from benchmarks.timing import exponent, figure, filled, mistakes, progress, steps
from drift.experiments.plots import COLOURS, finish, log_axis, panels_of, save
from drift.models import LBP, RBP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.timing import Example

BUDGETS = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
MODELS = {
    "RBP B=1000": lambda: RBP(1000, seed=1),
    "LBP B=1000": lambda: LBP(1000),
    "River LogisticRegression": linear_model.LogisticRegression,
}
_NAMES_PER_ROW = 20
#: Examples that are in memory at a time, beside the model.
_CHUNK = 200


def growth(*, quick: bool) -> dict[str, Any]:
    """Budgets from 50 to 20,000, and names from 10^3 to 10^7."""
    examples = list(stream("rcv1 shifts").head(3_000 if quick else 20_000))
    by_budget = budgets(examples, BUDGETS[:5] if quick else BUDGETS, 3 if quick else 7)
    most = 10**5 if quick else 10**7
    # River's linear model has a weight for every name that it has seen.
    ends = {name: most // 10 if name.startswith("River") else most for name in MODELS}
    by_names = [row for name, end in ends.items() for row in fresh(name, end)]
    bars, sizes = [], [row["budget"] for row in by_budget]
    notes = [
        f"exponent of {what} in the budget: {exponent(sizes, [row[what] for row in by_budget]):.2f}"
        for what in ("us a prediction", "us an update", "MB")
    ]
    at = {(row["contender"], row["names seen"]): row for row in by_names}
    if not quick:
        ratio = at["RBP B=1000", 10**7]["MB"] / at["RBP B=1000", 10**5]["MB"]
        bars.append(bar("MB at 10^7 names / at 10^5", figure([ratio]), most=1.01))
    tables = {"RBP by budget": by_budget, "by names seen": by_names}
    return {"tables": tables, "notes": notes, "bars": bars, "draw": partial(_draw, tables)}


def budgets(examples: list[Example], sizes: tuple[int, ...], rounds: int) -> list[dict[str, Any]]:
    """Medians over rounds in which the budgets take turns; each is full."""
    models = {size: RBP(size, seed=1) for size in sizes}
    for size, model in progress(models.items(), "filling"):
        filled(model, cycle(examples), size)
    samples: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
    for _ in progress(range(rounds), "growth: rounds"):
        for size, model in models.items():
            samples[size].append(steps(model, examples[:1_000]))
    return [
        {
            "budget": size,
            "us a prediction": median(prediction for prediction, _ in samples[size]),
            "us an update": median(update for _, update in samples[size]),
            "MB": model._raw_memory_usage / 1e6,
        }
        for size, model in models.items()
    ]


def growing(total: int) -> Iterator[tuple[dict[str, float], bool]]:
    """Rows of 20 of 1,000 common words and of 20 names that never came before; random labels."""
    rng = random.Random(0)
    common = [f"word{j}" for j in range(1_000)]
    for first in range(0, total, _NAMES_PER_ROW):
        x = dict.fromkeys(rng.sample(common, 20), 0.2)
        x.update({f"name{j:08}": 0.1 for j in range(first, first + _NAMES_PER_ROW)})
        yield x, rng.random() < 0.5


def fresh(name: str, most: int) -> list[dict[str, Any]]:
    """Rows of the table, measured in a process of its own for the sake of its memory."""
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-m", __name__, name, str(most)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def main(name: str, most: int) -> None:
    """Learn names up to each decade; print time and memory there."""
    model, examples = MODELS[name](), growing(most)
    before, seen, table = resident(), 0, []
    spent: deque[float] = deque(maxlen=200)
    for size in [10**k for k in range(3, 9) if 10**k < most] + [most]:
        while seen < size:
            chunk = list(islice(examples, min(_CHUNK, (size - seen) // _NAMES_PER_ROW)))
            start = time.process_time()
            mistakes(model, chunk)
            spent.append(1e6 * (time.process_time() - start) / len(chunk))
            seen += len(chunk) * _NAMES_PER_ROW
        table.append(
            {
                "contender": name,
                "names seen": size,
                "us": median(spent),
                # River's weights are in compiled code, which its own count does not see.
                "MB": None if name.startswith("River") else model._raw_memory_usage / 1e6,
                "resident MB": resident() - before,
            }
        )
    print(json.dumps(table))


def _draw(tables: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Draw time above memory, a column for each of the two."""
    by_budget, by_names = tables.values()
    figure_, panels = panels_of(8.0, 5.8, 2, 2, sharex="col", sharey="row")
    rows = {name: [row for row in by_names if row["contender"] == name] for name in MODELS}
    lines = [
        (panels[0], "a prediction", "budget", "us a prediction", by_budget),
        (panels[0], "an update", "budget", "us an update", by_budget),
        (panels[2], "RBP", "budget", "MB", by_budget),
        *((panels[1], name, "names seen", "us", table) for name, table in rows.items()),
        *(
            (panels[3], f"{name}, resident", "names seen", "resident MB", table)
            for name, table in rows.items()
        ),
    ]
    for panel, label, along, what, table in lines:
        colour = COLOURS[1 + len(panel.lines)]
        at = [row[along] for row in table]
        panel.plot(at, [row[what] for row in table], ".-", color=colour, label=label)
    for panel in panels:
        log_axis(panel.xaxis)
        panel.legend(fontsize=7, frameon=False)
    panels[2].set_xlabel("budget")
    panels[3].set_xlabel("names seen")
    for panel, unit in ((panels[0], "µs"), (panels[2], "MB")):
        log_axis(panel.yaxis)
        panel.set_ylabel(unit)
    finish(figure_, "Time and memory against what grows", panels, legend=False)
    save(figure_, path)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
