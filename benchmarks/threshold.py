"""Thresholds learnt online against the best ones in hindsight, on streams with a rare class.

    DRIFT_DATA=... python -m benchmarks.threshold            # half a minute
    DRIFT_DATA=... python -m benchmarks.threshold --sweep    # of the constants; two minutes

`Tracker(budget=100)` predicts and learns each row; the rule of `Threshold` decides by its
probabilities. Hindsight has one threshold for the whole stream, chosen when all labels and
probabilities are known. The sweep has these streams and `MORE`. None of them is held out by the
arena: on those no constant may be chosen.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.streams import stream
from drift import _decision
from drift.models import Tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Rows = tuple[NDArray[np.bool_], NDArray[np.float64]]

#: Streams, and the class that is rare; True where there are only two.
STREAMS = {"ijcnn1": True, "letter": "A", "rialto": 9, "usps": 8, "reuters money-fx": True}
#: More of them for the sweep. Rows that several targets take turns in, and commoner classes.
MORE = {"outdoor": 7, "mnist": 5, "reuters shifts": True, "a9a one-hot": True, "spam": True}
ROWS = 20_000
#: What a false alarm and a miss cost.
COST = (1, 10)
RECALL, PRECISION = 0.9, 0.8
#: Constants of the sweep: labels that are remembered, and rows that a share may lack.
MEMORIES, LACKING = (100, 300, 1_000), (5, 10, 20, 50)


@cache
def predicted(name: str) -> Rows:
    """Return which rows are of the class, and their probabilities."""
    positive = (STREAMS | MORE)[name]
    model = Tracker(budget=100)
    truth, shares = [], []
    for x, y in stream(name).head(ROWS):
        truth.append(y == positive)
        shares.append((model.predict_proba_one(x) or {}).get(True, 0.0))
        model.learn_one(x, truth[-1])
    return np.array(truth), np.array(shares)


def decided(rows: Rows, **goal: Any) -> NDArray[np.bool_]:
    """Return which rows are said to be of the class."""
    decision = _decision.Decision(*_decision.goal_of(**goal))
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


def reached(rows: Rows) -> tuple[float, ...]:
    """Return F1, cost, recall, precision, and the rate, each with a threshold learnt for it."""
    truth, _ = rows
    f1 = f1_of(truth, decided(rows))
    cost = cost_of(truth, decided(rows, cost=COST))
    said = decided(rows, recall=RECALL)
    recall = (said & truth).sum() / truth.sum()
    said = decided(rows, precision=PRECISION)
    precision = (said & truth).sum() / said.sum()
    return f1, cost, recall, precision, decided(rows, rate=truth.mean() / 2).mean()


def cells(name: str) -> Iterator[str]:
    """Yield the cells of a stream's row."""
    rows = truth, shares = predicted(name)
    share, (best, least) = truth.mean(), hindsight(*rows)
    f1, cost, recall, precision, rate = reached(rows)
    yield from (name, f"{len(truth):,}", f"{100 * share:.1f}")
    yield from (f"{f1_of(truth, shares > 0.5):.3f}", f"{f1:.3f}", f"{best:.3f}")
    fixed = (cost_of(truth, shares > bound) for bound in (0.5, COST[0] / sum(COST)))
    yield from (f"{one:,.0f}" for one in (*fixed, cost, least))
    yield from (f"{100 * recall:.1f}", f"{100 * precision:.1f}")
    yield f"{100 * rate:.2f} of {50 * share:.2f}"


def losses(name: str) -> tuple[float, ...]:
    """Return what each goal loses, and the hits that recall, precision and rate miss.

    F1 and cost are relative to hindsight, the rate to what was asked for; recall and precision are
    off by points. Hits are compared with those of as many rows of the largest probabilities.
    """
    rows = truth, shares = predicted(name)
    best, least = hindsight(*rows)
    f1, cost, recall, precision, rate = reached(rows)
    ranked = np.cumsum(truth[np.argsort(-shares, kind="stable")])
    missed = []
    for goal in ({"recall": RECALL}, {"precision": PRECISION}, {"rate": truth.mean() / 2}):
        said = decided(rows, **goal)
        missed.append(1 - (said & truth).sum() / ranked[said.sum() - 1])
    off = abs(recall - RECALL), abs(precision - PRECISION), abs(2 * rate / truth.mean() - 1)
    return (1 - f1 / best, cost / least - 1, *off, *missed)


def sweep() -> Iterator[list[str]]:
    """Yield the cells of each row: constants, then mean and largest loss of the streams in %."""
    for memory in MEMORIES:
        for lacking in LACKING:
            _decision._MEMORY, _decision._LACKING = memory, float(lacking)
            table = 100 * np.array([losses(name) for name in STREAMS | MORE])
            pairs = zip(table.mean(axis=0), table.max(axis=0), strict=True)
            yield [str(memory), str(lacking), *(f"{mean:.1f} / {most:.1f}" for mean, most in pairs)]


def main() -> None:
    """Print the table."""
    heads: tuple[str, ...] = (
        *("stream", "rows", "class, %", "F1 at 0.5", "F1", "best F1"),
        *("cost at 0.5", f"cost at {COST[0]}/{sum(COST)}", "cost", "least cost"),
        *(f"recall of {100 * RECALL:g} %", f"precision of {100 * PRECISION:g} %", "rate, %"),
    )
    table: Iterator[Any] = map(cells, STREAMS)
    if "--sweep" in sys.argv:
        goals = ("recall", "precision", "rate")
        heads = ("labels", "rows", "F1", "cost", *goals, *(f"{goal}: hits" for goal in goals))
        table = sweep()
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in table:
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
