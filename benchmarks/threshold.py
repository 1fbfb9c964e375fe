"""Thresholds learnt online against the best ones in hindsight, on streams with a rare class.

    DRIFT_DATA=... python -m benchmarks.threshold    # five minutes

Each row is decided, then learnt, by `Threshold(Tracker(budget=100))`. Hindsight has one threshold
for the whole stream, chosen when all labels and probabilities are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.streams import stream
from drift.models import Threshold, Tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

#: Streams, and the class that is rare; None where there are only two.
STREAMS = {"ijcnn1": None, "letter": 0, "rialto": 9, "usps": 8, "reuters-money-fx": None}
ROWS = 20_000
#: What a false alarm and a miss cost.
COST = (1, 10)
RECALL, PRECISION = 0.9, 0.8


def learnt(name: str, **goal: Any) -> tuple[NDArray[np.bool_], ...]:
    """Return which rows are said to be of the class, which are, and their probabilities."""
    positive = STREAMS[name]
    model = Threshold(Tracker(budget=100), **goal)
    said, truth, shares = [], [], []
    for x, y in stream(name, ROWS):
        label = bool(y) if positive is None else bool(y == positive)
        said.append(model.predict_one(x) is True)
        shares.append((model.predict_proba_one(x) or {}).get(True, 0.0))
        truth.append(label)
        model.learn_one(x, label)
    return np.array(said), np.array(truth), np.array(shares)


def hindsight(truth: NDArray[np.bool_], shares: NDArray[np.float64]) -> tuple[float, float]:
    """Return the highest F1 and the least cost of one threshold."""
    order = np.argsort(-shares, kind="stable")
    last = np.append(np.diff(shares[order]) != 0, [True])  # of equal probabilities
    found, claimed = np.cumsum(truth[order])[last], np.arange(1, len(truth) + 1)[last]
    there = truth.sum()
    costs = COST[0] * (claimed - found) + COST[1] * (there - found)
    return float((2 * found / (claimed + there)).max()), float(costs.min())


def cells(name: str) -> Iterator[str]:
    """Yield the cells of a stream's row."""
    said, truth, shares = learnt(name)
    best, least = hindsight(truth, shares)
    yield from (name, f"{len(truth):,}", f"{100 * truth.mean():.1f}")
    yield from (f"{2 * (said & truth).sum() / (said.sum() + truth.sum()):.3f}", f"{best:.3f}")
    said, truth, _ = learnt(name, cost=COST)
    cost = COST[0] * (said & ~truth).sum() + COST[1] * (~said & truth).sum()
    yield from (f"{cost:,.0f}", f"{least:,.0f}")
    said, truth, _ = learnt(name, recall=RECALL)
    yield f"{100 * (said & truth).sum() / truth.sum():.1f}"
    said, truth, _ = learnt(name, precision=PRECISION)
    yield f"{100 * (said & truth).sum() / said.sum():.1f}"
    rate = truth.mean() / 2
    said, *_ = learnt(name, rate=rate)
    yield f"{100 * said.mean():.2f} of {100 * rate:.2f}"


def main() -> None:
    """Print the table."""
    heads = (
        *("stream", "rows", "class, %", "F1", "best F1", "cost", "least cost"),
        *(f"recall of {100 * RECALL:g} %", f"precision of {100 * PRECISION:g} %", "rate, %"),
    )
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name in STREAMS:
        print(f"| {' | '.join(cells(name))} |", flush=True)


if __name__ == "__main__":
    main()
