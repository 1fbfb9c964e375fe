"""Alarms of a worker: how many are false, and how long a rise goes unseen.

    python -m benchmarks.alarms                # ten minutes
    python -m benchmarks.alarms --streams 20   # to look at

A model that errs in so many percent of the examples, with calibrated probabilities; from an example
on, right answers turn wrong so that the error rises by so many points, and the probabilities know
nothing of it. Each stream ends 100,000 examples behind the rise. Of streams without a rise there
are as many as asked for, of the others a fifth.
"""

from __future__ import annotations

import argparse
import math
from itertools import product
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from drift.consumers.alarms import MEASURES, Alarms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LEVEL = 0.01
ERRORS = (2, 10, 30)
POINTS = (1, 2, 5, 10)
BEFORE = (10_000, 100_000)
BEHIND = 100_000


def examples(error: float, points: float, before: int, seed: int) -> Iterator[tuple[bool, float]]:
    """Yield whether each prediction is wrong, and its log loss."""
    rng = np.random.default_rng(seed)
    n = before + BEHIND
    doubt = np.clip(rng.beta(1, 50 / error - 1, n) / 2, 1e-9, 0.5)  # its mean is the error
    wrong = rng.random(n) < doubt
    turned = rng.random(n) < points / (100 - error)
    wrong[before:] |= turned[before:]
    loss = -np.log(np.where(wrong, doubt, 1 - doubt))
    return zip(wrong.tolist(), loss.tolist(), strict=True)


def first_alarms(
    error: float, points: float, before: int, seed: int, measures: Iterable[str] = MEASURES
) -> dict[str, int]:
    """Return the example of the first alarm of each of these measures that has one."""
    found: dict[str, int] = {}
    alarms = Alarms(LEVEL)
    is_error, is_loss = (name in measures for name in MEASURES)
    for i, (wrong, loss) in enumerate(examples(error, points, before, seed)):
        for alarm in alarms.learnt(wrong and is_error, loss if is_loss else math.nan, {}):
            found.setdefault(alarm.measure, i)
            if len(found) == is_error + is_loss:
                return found
    return found


def delays(error: float, points: float, before: int, seeds: Sequence[int]) -> Iterator[str]:
    """Yield the median delay of each measure by itself, and the share of streams with an alarm."""
    for name in MEASURES:
        found = [first_alarms(error, points, before, seed, [name]).get(name, -1) for seed in seeds]
        late = [at - before for at in found if at >= before]
        yield f"{median(late):,.0f} ({len(late) / len(seeds):.0%})" if late else "none"


def main() -> None:
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--streams", type=int, default=1000)
    count = parser.parse_args().streams
    examples_each = BEFORE[0] + BEHIND
    print(f"Level {LEVEL:.0%}, {count:,} streams of {examples_each:,} examples without a rise:\n")
    print("| error | streams with an alarm of the error | of the log loss |\n|---|---|---|")
    for error in ERRORS:
        found = [first_alarms(error, 0, BEFORE[0], seed) for seed in range(count)]
        shares = [sum(name in one for one in found) / count for name in MEASURES]
        print(f"| {error} % | " + " | ".join(f"{share:.1%}" for share in shares) + " |", flush=True)
    print("\nExamples from the rise to the alarm, median of streams, and the share that has one:\n")
    print("| error | points more | examples before | by the error | by the log loss |")
    print("|---|---|---|---|---|")
    seeds = range(count, count + max(1, count // 20))
    for error, points, before in product(ERRORS, POINTS, BEFORE):
        cells = " | ".join(delays(error, points, before, seeds))
        print(f"| {error} % | {points} | {before:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
