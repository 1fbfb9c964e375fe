"""How often detectors are wrong, and how late they are: alarms of a worker, promotion of a shadow.

    python -m benchmarks.detection alarms
    python -m benchmarks.detection promotion

Alarms: a model errs in so many percent of the examples, with calibrated probabilities; from an
example on, right answers turn wrong so that the error rises by so many points, and the
probabilities know nothing of it. Each stream ends 20,000 examples after the rise. Of streams
without a rise there are as many as requested, of the others a fiftieth.

Promotion: streams of mistakes of two models with given error rates. So much of the smaller error
rate as `together` says, beyond what chance has, are examples that both have wrong; in streams of
`bursts` both rates go up and down by half, 1,000 examples each. A shadow that starts `cold` errs 20
points more at first, which fade with a mean of 2,000 examples. Promoted are those whose e-value
has ever reached 100; `median` is of the examples until then, `begun once` that of a bettor who has
all of his capital at the beginning.
"""

from __future__ import annotations

import argparse
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.report import show_table
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
#: The e-value that promotes.
AT = 100.0


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


def alarms(count: int) -> None:
    """Print the two tables on alarms."""
    print(f"Level {LEVEL:.0%}, {count:,} streams of {WITHOUT:,} examples without a rise:\n")
    print("| error | streams with an alarm of the error | of the log loss |\n|---|---|---|")
    for error in ERRORS:
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
    for error, points, before in product(ERRORS, POINTS, BEFORE):
        cells = " | ".join(delays(error, points, before, seeds))
        print(f"| {error} % | {points} | {before:,} | {cells} |", flush=True)


def mistakes(  # noqa: PLR0913
    rng: np.random.Generator,
    count: int,
    error: float,
    gain: float,
    *,
    together: float = 0.0,
    bursts: bool = False,
    cold: bool = False,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return where only one of two models is wrong, and whether it is the first.

    Examples
    --------
    >>> where, first = mistakes(np.random.default_rng(0), 1_000_000, 0.2, 0.1)
    >>> round(len(where) / 1_000_000, 2), round(float(first.mean()), 2)  # 0.18 + 0.08, 0.18 of it
    (0.26, 0.69)
    """
    t = np.arange(count)
    first = error * (1 + 0.5 * bursts * np.where(t // 1000 % 2, 1.0, -1.0))
    second = first - gain + 0.2 * cold * np.exp(-t / 2000)
    both = first * second
    both = both + together * (np.minimum(first, second) - both)
    drawn = rng.random(count)
    won = drawn < first - both
    where = np.flatnonzero(drawn < first + second - 2 * both)
    return where, won[where]


def capitals(won: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the e-value after each pair that differs, and that of a bettor who starts once.

    Examples
    --------
    >>> from drift.consumers.shadow import PairedTest
    >>> won = np.random.default_rng(0).random(300) < 0.6
    >>> test = PairedTest()
    >>> for one in won.tolist():
    ...     test.add(one, not one)
    >>> bool(np.isclose(capitals(won)[0][-1], test.second_is_better))
    True
    """
    wins, seen = np.cumsum(won), np.arange(1, len(won) + 1)
    fractions = 2.0 ** -np.arange(1, 11)
    gains = np.log1p(fractions), np.log1p(-fractions)
    starts = [0, *(64 << j for j in range(40) if 64 << j <= len(won))]
    result = once = np.zeros(len(won))
    for j, start in enumerate(starts):
        share = 0.5 / (j * (j + 1) or 1)
        before = wins[start - 1] if start else 0
        w = wins[start:] - before
        bets = np.outer(w, gains[0]) + np.outer(seen[start:] - start - w, gains[1])
        capital = np.exp(np.minimum(bets, 690)).mean(axis=1)
        once = once if start else capital
        result[start:] += share * capital
        result[:start] += share  # it waits
    return result + 0.5 / len(starts), once


def measure(streams: int, count: int, seed: int, **given: Any) -> dict[str, Any]:
    """Return how many streams are promoted, and the median of the examples until then."""
    rng = np.random.default_rng(seed)
    ends: tuple[list[float], list[float]] = [], []
    for _ in range(streams):
        where, won = mistakes(rng, count, **given)
        for end, capital in zip(ends, capitals(won), strict=True):
            reached = np.flatnonzero(capital >= AT)
            end.append(where[reached[0]] + 1 if len(reached) else np.inf)
    return {
        "error, %": round(100 * given["error"], 1),
        "gain, points": round(100 * given["gain"], 1),
        "together": given.get("together", 0.0),
        "bursts": given.get("bursts", False),
        "cold": given.get("cold", False),
        "streams": streams,
        "examples": count,
        "promoted, %": round(100 * float(np.mean(np.isfinite(ends[0]))), 2),
        "median": float(np.median(ends[0])),
        "begun once": float(np.median(ends[1])),
    }


def promotion(count: int) -> None:
    """Print the two tables on promotion."""
    equal, better = [], []
    cells: list[dict[str, Any]] = [
        {"error": error, "together": together}
        for error in (0.1, 0.3)
        for together in (0.0, 0.5, 0.9)
    ]
    for seed, cell in enumerate([*cells, {"error": 0.2, "together": 0.5, "bursts": True}]):
        equal.append(measure(count, 100_000, seed, gain=0.0, **cell))
    for seed, cell in enumerate([*cells, *({**cell, "cold": True} for cell in cells[::3])], 100):
        better.append(measure(max(1, count // 5), 400_000, seed, gain=0.01, **cell))
    show_table("two models that are equal", equal)
    show_table("a shadow that is a point better", better)


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("detector", choices=("alarms", "promotion"))
    parser.add_argument("--streams", type=int, default=1000, help="1000 take some minutes")
    given = parser.parse_args()
    {"alarms": alarms, "promotion": promotion}[given.detector](given.streams)


if __name__ == "__main__":
    main()
