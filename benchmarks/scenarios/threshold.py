"""Thresholds learnt online against the best ones in hindsight, on streams with a rare class.

`Tracker(budget=100)` predicts and learns each row; the rule of `Threshold` decides by its
probabilities. Hindsight has one threshold for the whole stream, chosen when all labels and
probabilities are known. `threshold_sweep` tries other constants.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.report import markdown
from benchmarks.streams import stream
from benchmarks.timing import probabilities
from drift._decision import Decision, goal_of
from drift.models import Tracker

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = tuple[NDArray[np.bool_], NDArray[np.float64]]

#: Streams, and the class that is rare; True where there are only two.
STREAMS = {"ijcnn1": True, "letter": "A", "rialto": 9, "usps": 8, "reuters money-fx": True}
ROWS = 20_000
#: What a false alarm and a miss cost.
COST = (1, 10)
RECALL, PRECISION = 0.9, 0.8


@cache
def predicted(name: str, positive: Any = None) -> Rows:
    """Return which rows are of the class, and their probabilities."""
    positive = STREAMS.get(name, positive)
    examples = ((x, y == positive) for x, y in stream(name).head(ROWS))
    learnt = probabilities(Tracker(budget=100), examples)
    truth, shares = zip(*((y, chances.get(True, 0.0)) for y, _, chances in learnt), strict=True)
    return np.array(truth), np.array(shares)


def decided(rows: Rows, kind: type[Decision] = Decision, **goal: Any) -> NDArray[np.bool_]:
    """Return which rows are said to be of the class."""
    decision = kind(*goal_of(**goal))
    said = []
    for label, share in zip(*(column.tolist() for column in rows), strict=True):
        said.append(decision.says(share))
        decision.learn(share, label)
    return np.array(said)


def hindsight(truth: NDArray[np.bool_], shares: NDArray[np.float64]) -> tuple[float, float]:
    """Return the highest F1 and the least cost of one threshold."""
    order = np.argsort(-shares, kind="stable")
    last = np.append(np.diff(shares[order]) != 0, [True])  # of equal probabilities
    found, claimed = np.cumsum(truth[order])[last], np.arange(1, len(truth) + 1)[last]
    there = truth.sum()
    costs = COST[0] * (claimed - found) + COST[1] * (there - found)
    return float((2 * found / (claimed + there)).max()), float(costs.min())


def f1_of(truth: NDArray[np.bool_], said: NDArray[np.bool_]) -> float:
    """Return the F1 of what was said."""
    return float(2 * (said & truth).sum() / (said.sum() + truth.sum()))


def cost_of(truth: NDArray[np.bool_], said: NDArray[np.bool_]) -> float:
    """Return what its mistakes cost."""
    return float(COST[0] * (said & ~truth).sum() + COST[1] * (~said & truth).sum())


class Reached(NamedTuple):
    """What thresholds reach that are learnt for it, and the rows that each of three says."""

    f1: float
    cost: float
    recall: float
    precision: float
    rate: float
    #: For the recall, the precision, and the rate.
    said: tuple[NDArray[np.bool_], ...]


def reached(rows: Rows, kind: type[Decision] = Decision) -> Reached:
    """Return F1, cost, recall, precision, and the rate, each with a threshold learnt for it."""
    truth, _ = rows
    recalled = decided(rows, kind, recall=RECALL)
    precise = decided(rows, kind, precision=PRECISION)
    rated = decided(rows, kind, rate=truth.mean() / 2)
    return Reached(
        f1_of(truth, decided(rows, kind)),
        cost_of(truth, decided(rows, kind, cost=COST)),
        (recalled & truth).sum() / truth.sum(),
        (precise & truth).sum() / precise.sum(),
        rated.mean(),
        (recalled, precise, rated),
    )


def threshold(*, quick: bool) -> dict[str, Any]:
    """What is reached on each stream."""
    table = [_row(name) for name in [*STREAMS][: 1 if quick else None]]
    return {"table": table, "notes": [markdown(table)]}


def _row(name: str) -> dict[str, str]:
    rows = truth, shares = predicted(name)
    share, (best, least) = truth.mean(), hindsight(*rows)
    f1, cost, recall, precision, rate, _ = reached(rows)
    right = COST[0] / sum(COST)
    return {
        "stream": name,
        "rows": f"{len(truth):,}",
        "class, %": f"{100 * share:.1f}",
        "F1 at 0.5": f"{f1_of(truth, shares > 0.5):.3f}",
        "F1": f"{f1:.3f}",
        "best F1": f"{best:.3f}",
        "cost at 0.5": f"{cost_of(truth, shares > 0.5):,.0f}",
        f"cost at {COST[0]}/{sum(COST)}": f"{cost_of(truth, shares > right):,.0f}",
        "cost": f"{cost:,.0f}",
        "least cost": f"{least:,.0f}",
        f"recall of {100 * RECALL:g} %": f"{100 * recall:.1f}",
        f"precision of {100 * PRECISION:g} %": f"{100 * precision:.1f}",
        "rate, %": f"{100 * rate:.2f} of {50 * share:.2f}",
    }
