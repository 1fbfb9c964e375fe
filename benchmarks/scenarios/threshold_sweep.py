"""The constants of thresholds: labels that are remembered, and rows that a share may lack.

None of the streams is held out by the arena: on those no constant may be chosen.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from benchmarks.report import markdown
from benchmarks.scenarios import threshold
from benchmarks.scenarios.threshold import PRECISION, RECALL, hindsight, predicted, reached
from benchmarks.timing import progress
from drift._decision import Decision

#: Beside those of `threshold`, rows that several targets take turns in, and commoner classes.
MORE = {"outdoor": 7, "mnist": 5, "reuters shifts": True, "a9a one-hot": True, "spam": True}
STREAMS = threshold.STREAMS | MORE
NAMES = (
    *("F1", "cost", "recall", "precision", "rate"),
    *("recall: hits", "precision: hits", "rate: hits"),
)
MEMORIES, LACKING = (100, 300, 1_000), (5, 10, 20, 50)


def losses(name: str, positive: Any, kind: type[Decision] = Decision) -> tuple[float, ...]:
    """Return what each goal loses, and the hits that recall, precision and rate miss.

    F1 and cost are relative to hindsight, the rate to what was asked for; recall and precision are
    off by points. Hits are compared with those of as many rows of the largest probabilities.
    """
    rows = truth, shares = predicted(name, positive)
    best, least = hindsight(*rows)
    f1, cost, recall, precision, rate, said = reached(rows, kind)
    ranked = np.cumsum(truth[np.argsort(-shares, kind="stable")])
    missed = [1 - (one & truth).sum() / ranked[one.sum() - 1] for one in said]
    off = abs(recall - RECALL), abs(precision - PRECISION), abs(2 * rate / truth.mean() - 1)
    return (1 - f1 / best, cost / least - 1, *off, *missed)


def threshold_sweep(*, quick: bool) -> dict[str, Any]:
    """Return mean and largest loss of the streams in %, by the two constants."""
    streams = dict([*STREAMS.items()][: 1 if quick else None])
    table = []
    for memory, lacking in progress([*product(MEMORIES, LACKING)], "sweep"):
        kind = type("Tried", (Decision,), {"memory": memory, "lacking": float(lacking)})
        lost = 100 * np.array([losses(*one, kind) for one in streams.items()])
        pairs = zip(NAMES, lost.mean(axis=0), lost.max(axis=0), strict=True)
        cells = {name: f"{mean:.1f} / {most:.1f}" for name, mean, most in pairs}
        table.append({"labels": memory, "rows": lacking} | cells)
    return {"table": table, "notes": [markdown(table)]}
