"""Learning rows of arrays, against rows as dicts and what numpy takes for a matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.models import floor
from benchmarks.report import bar
from benchmarks.streams import matrix_of, stream
from benchmarks.timing import Contender, mistakes, on_copies, on_examples, take_turns
from drift.models import RBP

BUDGETS = (100, 300, 1000, 2000)
#: Dense rows: features, and the budget.
WIDTH, DENSE = 784, 5_000


def arrays(*, quick: bool) -> dict[str, Any]:
    """Stories as CSR and as dicts, dense rows against the products of their supports."""
    tables, bars = {}, []
    story = stream("rcv1 shifts").head(5_000 if quick else 20_000)
    split, rounds = len(story) - (1_000 if quick else 4_000), 3 if quick else 9
    (X, y), timed = matrix_of(story), list(story)[split:]
    contenders: dict[str, Contender] = {}
    for budget in BUDGETS:
        model, worded = RBP(budget, seed=1), RBP(budget, seed=1)
        model.learn_many(X[:split], y[:split])
        mistakes(worded, list(story)[:split])
        contenders[f"CSR B={budget}"] = _at_once(model, X[split:], y[split:])
        contenders[f"dicts B={budget}"] = on_examples(worded, timed)
        contenders[f"floor B={budget}"] = floor(worded, timed)
    times = take_turns(contenders, rounds, "arrays: rounds")
    tables["RCV1"] = _rows(times)
    for budget in BUDGETS:
        csr, words = f"CSR B={budget}", f"dicts B={budget}"
        bars.append(bar(f"{words} / {csr}", times.ratio(words, csr), least=1.0))
    figure = times.ratio("CSR B=1000", "floor B=1000")
    bars.append(bar("CSR B=1000 / floor B=1000", figure, most=1.0))

    rng = np.random.default_rng(0)
    rows, budget = rng.random((2 * DENSE + 1_000, WIDTH)), DENSE // 10 if quick else DENSE
    labels = rng.random(len(rows)) < 0.5
    model = RBP(budget, seed=1)
    model.learn_many(rows[: 2 * DENSE], labels[: 2 * DENSE])
    block, supports = rows[:512].astype(np.float32), rows[:budget].T.astype(np.float32)
    contenders = {
        f"dense rows, B={budget}": _at_once(model, rows[2 * DENSE :], labels[2 * DENSE :]),
        "a product of 512 rows": Contender(lambda: lambda: block @ supports, len(block)),
    }
    tables[f"{WIDTH} features without zeros"] = _rows(take_turns(contenders, rounds, "dense"))
    return {"tables": tables, "bars": bars}


def _at_once(model: Any, rows: Any, labels: Any) -> Contender:
    return on_copies(model, lambda one: one.predict_learn_many(rows, labels), len(labels))


def _rows(times: Any) -> list[dict[str, Any]]:
    return [
        {"contender": name, "us": us, "examples/s": 1e6 / us["median"]}
        for name in times
        for us in [times.microseconds(name)]
    ]
