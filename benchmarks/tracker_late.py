"""What the Tracker gains from being told how late labels come: the table of docs/tracker.md.

    export DRIFT_DATA=...
    python -m benchmarks.tracker_late                       # some ten minutes
    python -m benchmarks.tracker_late electricity outdoor

Real streams beyond Electricity and generated ones have 20,000 rows at most. Those behind the first
1,000 and the delay count.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from typing import Any

from benchmarks.streams import stream
from drift.models import Tracker

ROWS = {"electricity": None}
NAMES = ("electricity", "outdoor", "weather", "insects", "a9a", "moving-rbf", "sea-noise")


def late(model: Any, rows: Any, delay: int) -> tuple[float, float]:
    """Error and log loss where each label comes so many rows late."""
    waiting: deque[Any] = deque()
    wrong, loss, counted = 0, 0.0, 0
    for t, (x, y) in enumerate(rows):
        if t >= 1_000 + delay:
            wrong += model.predict_one(x) != y
            loss -= math.log(max(model.predict_proba_one(x).get(y, 0.0), 1e-3))
            counted += 1
        waiting.append((x, y))
        if len(waiting) > delay:
            model.learn_one(*waiting.popleft())
    return wrong / counted, loss / counted


def main() -> None:
    """Print the table."""
    print("| stream | rows late | error in % | told | log loss | told |\n|---|---|---|---|---|---|")
    for name in sys.argv[1:] or NAMES:
        rows = list(stream(name, ROWS.get(name, 20_000)))
        for delay in (100, 1_000):
            (error, loss), (told, own) = (
                late(Tracker(delay=known), rows, delay) for known in (0, delay)
            )
            cells = f"{100 * error:.1f} | {100 * told:.1f} | {loss:.3f} | {own:.3f}"
            print(f"| {name} | {delay:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
