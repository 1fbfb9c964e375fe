"""How soon a shadow is promoted that errs less, and how often one that does not.

Streams of mistakes of two models with given error rates. So much of the smaller error rate as
`together` says, beyond what chance has, are examples that both have wrong; in streams of `bursts`
both rates go up and down by half, 1,000 examples each. A shadow that starts `cold` errs 20 points
more at first, which fade with a mean of 2,000 examples. Promoted are those whose e-value has ever
reached 100; `median` is of the examples until then, `begun once` that of a bettor who has all of
his capital at the beginning.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.timing import progress

#: The e-value that promotes.
AT = 100.0


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


def promotion(*, quick: bool) -> dict[str, Any]:
    """Two models that are equal, and a shadow that is a point better."""
    count = 5 if quick else 1000
    cells: list[dict[str, Any]] = [
        {"error": error, "together": together}
        for error in (0.1, 0.3)
        for together in (0.0, 0.5, 0.9)
    ]
    bursts = {"error": 0.2, "together": 0.5, "bursts": True}
    equal = [
        measure(count, 100_000, seed, gain=0.0, **cell)
        for seed, cell in progress([*enumerate([*cells, bursts])], "equal")
    ]
    cold = [{**cell, "cold": True} for cell in cells[::3]]
    better = [
        measure(count // 5, 400_000, seed, gain=0.01, **cell)
        for seed, cell in progress([*enumerate([*cells, *cold], 100)], "better")
    ]
    return {"tables": {"two models that are equal": equal, "a shadow, a point better": better}}
