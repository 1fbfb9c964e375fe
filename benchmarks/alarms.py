"""Alarms of a worker: how many are false, and how long a rise goes unseen.

    python -m benchmarks.alarms                # some minutes
    python -m benchmarks.alarms --streams 20   # to look at

A model that errs in so many percent of the examples, with calibrated probabilities; from an example
on, right answers turn wrong so that the error rises by so many points, and the probabilities know
nothing of it. Each stream ends 20,000 examples after the rise. Of streams without a rise there
are as many as requested, of the others a fiftieth.
"""

from __future__ import annotations

import argparse
from itertools import product
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from drift.consumers.alarms import CUT, MEASURES, Detector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LEVEL = 0.01
ERRORS = (2, 10, 30)
POINTS = (1, 2, 5, 10)
BEFORE = (10_000, 100_000)
BEHIND = 20_000
#: Examples of a stream without a rise.
WITHOUT = 10_000


def groups(
    measure: str, error: float, points: float, rows: tuple[int, int], seed: int
) -> Iterator[tuple[float, float]]:
    """Yield sum and squares of eight mistakes or log losses each; `rows`: before and after."""
    rng = np.random.default_rng(seed)
    before, n = rows[0], sum(rows)
    doubt = np.clip(rng.beta(1, 50 / error - 1, n) / 2, 1e-9, 0.5)  # its mean is the error
    wrong = rng.random(n) < doubt
    turned = rng.random(n) < points / (100 - error)
    wrong[before:] |= turned[before:]
    loss = -np.log(np.where(wrong, doubt, 1 - doubt))
    result = (wrong * 1.0 if measure == "error" else np.minimum(1, loss / CUT)).reshape(-1, 8)
    return zip(result.sum(1).tolist(), (result**2).sum(1).tolist(), strict=True)


def first_alarm(stream: Iterable[tuple[float, float]]) -> int | None:
    """Return the number of examples up to the first alarm."""
    detector = Detector(LEVEL)
    result = (i for i, group in enumerate(stream, 1) if detector.add(8, *group))
    return next((8 * i for i in result), None)


def delays(error: float, points: float, before: int, seeds: Sequence[int]) -> Iterator[str]:
    """Yield the median delay of each measure, and the share of streams with an alarm."""
    for name in MEASURES:
        given = [groups(name, error, points, (before, BEHIND), seed) for seed in seeds]
        late = [at - before for at in map(first_alarm, given) if at is not None and at > before]
        yield f"{median(late):,.0f} ({len(late) / len(seeds):.0%})" if late else "none"


def main() -> None:
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--errors", type=int, nargs="+", default=ERRORS, help="in percent")
    given = parser.parse_args()
    count = given.streams
    print(f"Level {LEVEL:.0%}, {count:,} streams of {WITHOUT:,} examples without a rise:\n")
    print("| error | streams with an alarm of the error | of the log loss |\n|---|---|---|")
    for error in given.errors:
        shares = [
            sum(
                first_alarm(groups(name, error, 0, (WITHOUT, 0), seed)) is not None
                for seed in range(count)
            )
            / count
            for name in MEASURES
        ]
        print(f"| {error} % | " + " | ".join(f"{share:.1%}" for share in shares) + " |", flush=True)
    print("\nExamples from the rise to the alarm, median of streams, and the share that has one:\n")
    print("| error | points more | examples before | by the error | by the log loss |")
    print("|---|---|---|---|---|")
    seeds = range(count, count + max(1, count // 50))
    for error, points, before in product(given.errors, POINTS, BEFORE):
        cells = " | ".join(delays(error, points, before, seeds))
        print(f"| {error} % | {points} | {before:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
