"""The constants of thresholds: labels that are remembered, and rows that a share may lack.

None of the streams is held out by the arena: on those no constant may be chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.report import markdown
from benchmarks.scenarios import threshold
from benchmarks.scenarios.threshold import PRECISION, RECALL, decided, hindsight, predicted, reached
from benchmarks.timing import progress
from drift import _decision

#: Beside those of `threshold`, rows that several targets take turns in, and commoner classes.
MORE = {"outdoor": 7, "mnist": 5, "reuters shifts": True, "a9a one-hot": True, "spam": True}
STREAMS = threshold.STREAMS | MORE
NAMES = (
    *("F1", "cost", "recall", "precision", "rate"),
    *("recall: hits", "precision: hits", "rate: hits"),
)
MEMORIES, LACKING = (100, 300, 1_000), (5, 10, 20, 50)


def losses(name: str, positive: Any) -> tuple[float, ...]:
    """Return what each goal loses, and the hits that recall, precision and rate miss.

    F1 and cost are relative to hindsight, the rate to what was asked for; recall and precision are
    off by points. Hits are compared with those of as many rows of the largest probabilities.
    """
    rows = truth, shares = predicted(name, positive)
    best, least = hindsight(*rows)
    f1, cost, recall, precision, rate = reached(rows)
    ranked = np.cumsum(truth[np.argsort(-shares, kind="stable")])
    missed = []
    for goal in ({"recall": RECALL}, {"precision": PRECISION}, {"rate": truth.mean() / 2}):
        said = decided(rows, **goal)
        missed.append(1 - (said & truth).sum() / ranked[said.sum() - 1])
    off = abs(recall - RECALL), abs(precision - PRECISION), abs(2 * rate / truth.mean() - 1)
    return (1 - f1 / best, cost / least - 1, *off, *missed)


def threshold_sweep(*, quick: bool) -> dict[str, Any]:
    """Return mean and largest loss of the streams in %, by the two constants."""
    streams = dict([*STREAMS.items()][: 1 if quick else None])
    table = []
    for memory in progress(MEMORIES, "sweep"):
        for lacking in LACKING:
            _decision._MEMORY, _decision._LACKING = memory, float(lacking)
            lost = 100 * np.array([losses(*one) for one in streams.items()])
            pairs = zip(NAMES, lost.mean(axis=0), lost.max(axis=0), strict=True)
            cells = {name: f"{mean:.1f} / {most:.1f}" for name, mean, most in pairs}
            table.append({"labels": memory, "rows": lacking} | cells)
    return {"table": table, "notes": [markdown(table)]}
