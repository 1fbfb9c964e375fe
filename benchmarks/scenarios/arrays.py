"""Learning rows of arrays, against rows as dicts and what numpy takes for a matrix product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.report import bar
from benchmarks.streams import matrix_of, stream
from benchmarks.timing import Timed, mistakes, on_copies, on_examples, take_turns
from drift.models import LBP, RBP

if TYPE_CHECKING:
    from benchmarks.timing import Times

BUDGETS = (100, 300, 1000, 2000)
#: Dense rows: features, and the budget.
WIDTH, DENSE = 784, 5_000


def arrays(*, quick: bool) -> dict[str, Any]:
    """Stories as CSR and as dicts, dense rows beside the products with their supports."""
    words, dense = stories(quick=quick), dense_rows(quick=quick)
    bars = [
        bar(f"dicts B={budget} / CSR B={budget}", ratio, least=1.0)
        for budget in BUDGETS
        for ratio in [words.ratio(f"dicts B={budget}", f"CSR B={budget}")]
    ]
    tables = {"LBP, RCV1": _rows(words), f"RBP, {WIDTH} features without zeros": _rows(dense)}
    return {"tables": tables, "bars": bars}


def stories(*, quick: bool) -> Times:
    """Rows of a sparse matrix, and the same as dicts."""
    story = stream("rcv1 shifts").head(5_000 if quick else 20_000)
    split = len(story) - (1_000 if quick else 4_000)
    (X, y), examples = matrix_of(story), list(story)
    learnt, timed = examples[:split], examples[split:]
    contenders: dict[str, Timed] = {}
    for budget in BUDGETS:
        model, worded = LBP(budget), LBP(budget)
        model.learn_many(X[:split], y[:split])
        mistakes(worded, learnt)
        contenders[f"CSR B={budget}"] = _at_once(model, X[split:], y[split:])
        contenders[f"dicts B={budget}"] = on_examples(worded, timed)
    return take_turns(contenders, 3 if quick else 9, "arrays: stories")


def dense_rows(*, quick: bool) -> Times:
    """Rows of an array under random labels, and float32 products of 512 rows with the supports."""
    rng, budget = np.random.default_rng(0), DENSE // 10 if quick else DENSE
    rows = rng.random((3 * budget, WIDTH))
    labels = rng.random(len(rows)) < 0.5
    model = RBP(budget, seed=1)
    model.learn_many(rows, labels)
    assert model.n_supports == budget
    block, supports = rows[:512].astype(np.float32), rows[:budget].T.astype(np.float32)
    contenders = {
        f"rows, B={budget}": _at_once(model, rows[:1_000], labels[:1_000]),
        "a product": Timed(lambda: lambda: block @ supports, len(block)),
    }
    return take_turns(contenders, 3 if quick else 9, "arrays: dense")


def _at_once(model: Any, rows: Any, labels: Any) -> Timed:
    return on_copies(model, lambda one: one.predict_learn_many(rows, labels), len(labels))


def _rows(times: Times) -> list[dict[str, Any]]:
    return [
        {"contender": name, "us": us, "examples/s": 1e6 / us["median"]}
        for name in times
        for us in [times.microseconds(name)]
    ]
