"""How many alarms of a worker are false, and how late the others are.

A model errs in so many percent of the examples, with calibrated probabilities; from an example on,
right answers turn wrong so that the error rises by so many points, and the probabilities know
nothing of it. Each stream ends 20,000 examples after the rise. There are fifty times as many
streams without a rise.
"""

from __future__ import annotations

from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.timing import progress
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


def delays(name: str, error: float, points: float, before: int, seeds: Sequence[int]) -> str:
    """Return the median delay of a measure, and the share of streams with an alarm."""
    given = (groups(name, error, points, (before, BEHIND), seed) for seed in seeds)
    late = [at - before for at in map(first_alarm, given) if at is not None and at > before]
    return f"{median(late):,.0f} ({len(late) / len(seeds):.0%})" if late else "none"


def alarms(*, quick: bool) -> dict[str, Any]:
    """Streams without a rise, and streams with one."""
    count = 50 if quick else 1000
    false = []
    for error in progress(ERRORS, "without a rise"):
        row: dict[str, Any] = {"error, %": error}
        for name in MEASURES:
            streams = (groups(name, error, 0, (WITHOUT, 0), seed) for seed in range(count))
            alarmed = sum(first_alarm(stream) is not None for stream in streams)
            row[f"{name}: alarms, %"] = 100 * alarmed / count
        false.append(row)
    seeds = range(count, count + count // 50)
    late = [
        {"error, %": error, "points more": points}
        | {
            f"{before:,} before, {name}": delays(name, error, points, before, seeds)
            for before in BEFORE
            for name in MEASURES
        }
        for error, points in progress([*product(ERRORS, POINTS)], "with a rise")
    ]
    title = f"{count:,} streams of {WITHOUT:,} examples without a rise, level {100 * LEVEL:g} %"
    return {"tables": {title: false, "examples from the rise to the alarm": late}}
