"""What the tracking paper says of its figures, each statement decided by the records of a run.

"Above", "below" and "no worse" mean: by more, or not by more, than two standard errors of the
difference over the streams (`drift.experiments.report.difference`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from drift.experiments.report import best, difference, error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from drift.experiments.records import Record
    from drift.experiments.report import Curves

__all__ = ["Claim", "claims"]

_BUDGETED = ("RBP", "LBP", "Forgetron")
_OLDEST_FIRST = ("LBP", "Forgetron")


class Claim(NamedTuple):
    """One statement about one model in one group of streams.

    Attributes
    ----------
    claim
        Letter of the claim.
    shifts
        The group.
    model
        Whom it is about.
    holds
        Whether it is true of these records.
    statement
        What is claimed, with the rule that decides it.
    figures
        The numbers that decide it; errors and their differences are in percent.
    """

    claim: str
    shifts: int
    model: str
    holds: bool
    statement: str
    figures: str


def claims(groups: Curves, chunks: Sequence[Record]) -> list[Claim]:
    """Decide every claim whose models and groups were run.

    Parameters
    ----------
    groups
        As from `drift.experiments.report.curves`.
    chunks
        Records of the Perceptron started afresh on each chunk.

    Returns
    -------
    list of Claim
        (a) without shifts the error falls to the Perceptron's as the budget grows; (b) with 3 and
        with 7 shifts a budget beats the Perceptron; (c) the best is near the supports that one
        chunk needs; (d) with 7 shifts there is a bump at the supports that half of the stream
        needs; (e) RBP's error is smooth in the budget; (f) SPA beats the Perceptron with 7 shifts
        only.

    References
    ----------
    .. [1] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget Perceptron", Machine Learning 69 (2007), section 4, "Results".
    """
    found: list[Claim] = []
    for shifts, curve in groups.items():
        perceptron = curve.get("Perceptron", {}).get(None)
        if perceptron is not None:
            found += _against_perceptron(shifts, curve, perceptron, chunks)
        if shifts == 7 and "RBP" in curve and "LBP" in curve:
            found += _smooth(curve)
    return sorted(found, key=lambda claim: claim.claim)


def _against_perceptron(
    shifts: int,
    curve: Mapping[str, Mapping[float | None, list[Record]]],
    perceptron: list[Record],
    chunks: Sequence[Record],
) -> Iterator[Claim]:
    for model in _BUDGETED:
        if model in curve and shifts == 0:
            yield _reaches(model, curve[model], perceptron)
        if model in curve and shifts in {3, 7} and model in _OLDEST_FIRST:
            yield _beats(shifts, model, curve[model], perceptron)
            yield _near_chunk(shifts, model, curve[model], chunks)
            if shifts == 7:
                yield from _bump(model, curve[model], perceptron)
    if "SPA" in curve and shifts in {0, 7}:
        yield _spa(shifts, curve["SPA"], perceptron)


def _reaches(
    model: str, curve: Mapping[float | None, list[Record]], perceptron: list[Record]
) -> Claim:
    budgets = list(curve)
    rises = [
        f"{a} to {b}: {step}"
        for a, b in pairwise(budgets)
        if (step := difference(curve[b], curve[a])).above
    ]
    gaps = {budget: difference(curve[budget], perceptron) for budget in budgets}
    too_good = [f"{budget}: {gap}" for budget, gap in gaps.items() if gap.below]
    last = budgets[-1]
    figures = [f"at budget {last} {gaps[last]} of the Perceptron"]
    figures += [f"rises {'; '.join(rises)}"] if rises else []
    figures += [f"below at {'; '.join(too_good)}"] if too_good else []
    return Claim(
        "a",
        0,
        model,
        not rises and not too_good and not gaps[last].above,
        "error falls with the budget and reaches the Perceptron's from above: no step up, no "
        "budget below it, the largest not above it",
        ", ".join(figures),
    )


def _beats(
    shifts: int,
    model: str,
    curve: Mapping[float | None, list[Record]],
    perceptron: list[Record],
) -> Claim:
    budget = best(curve)
    gap = difference(curve[budget], perceptron)
    return Claim(
        "b",
        shifts,
        model,
        gap.below,
        "the best budget is below the Perceptron",
        f"budget {budget}: {error(curve[budget])[0]:.2f}, Perceptron {error(perceptron)[0]:.2f}, "
        f"difference {gap}",
    )


def _near_chunk(
    shifts: int,
    model: str,
    curve: Mapping[float | None, list[Record]],
    chunks: Sequence[Record],
) -> Claim:
    budgets = [budget for budget in curve if budget is not None]
    group = [record for record in chunks if record["shifts"] == shifts]
    supports = float(np.mean([record["supports"] for record in group]))
    nearest = _nearest(budgets, supports)
    lowest = budgets.index(best(curve) or 0)
    around = budgets[max(0, nearest - 1) : nearest + 2]
    return Claim(
        "c",
        shifts,
        model,
        abs(lowest - nearest) <= 1,
        "the best budget is the one nearest to the mean supports of a chunk, or next to it",
        f"best {budgets[lowest]}, a chunk of {group[0]['n_samples']} needs {supports:.0f}: "
        f"nearest {budgets[nearest]}, so among {around[0]} to {around[-1]}",
    )


def _bump(
    model: str, curve: Mapping[float | None, list[Record]], perceptron: list[Record]
) -> Iterator[Claim]:
    budgets = [budget for budget in curve if budget is not None]
    half = float(np.mean([_first_half(record) for record in perceptron]))
    nearest = _nearest(budgets, half)
    around = budgets[max(1, nearest - 1) : nearest + 2]  # the smallest has nothing to rise from
    if not around:
        return
    bump = max(around, key=lambda budget: error(curve[budget])[0])
    smaller = best({budget: curve[budget] for budget in budgets if budget < bump})
    over_smaller = difference(curve[bump], curve[smaller])
    over_perceptron = difference(curve[bump], perceptron)
    yield Claim(
        "d",
        7,
        model,
        over_smaller.above and over_perceptron.above,
        "near the supports of half the stream (the nearest budget, or one next to it) the error is "
        "above that of the best smaller budget and above the Perceptron",
        f"half the stream needs {half:.0f}: nearest {budgets[nearest]}; budget {bump}: "
        f"{error(curve[bump])[0]:.2f}, over budget {smaller} {over_smaller}, "
        f"over the Perceptron {over_perceptron}",
    )


def _smooth(curve: Mapping[str, Mapping[float | None, list[Record]]]) -> Iterator[Claim]:
    steps = {model: _largest_rise(curve[model]) for model in ("RBP", "LBP")}
    yield Claim(
        "e",
        7,
        "RBP",
        steps["RBP"] < steps["LBP"],
        "the largest rise from one budget to the next is smaller than LBP's",
        f"RBP {steps['RBP']:.2f}, LBP {steps['LBP']:.2f}",
    )


def _spa(
    shifts: int, curve: Mapping[float | None, list[Record]], perceptron: list[Record]
) -> Claim:
    decay = best(curve)
    gap = difference(curve[decay], perceptron)
    return Claim(
        "f",
        shifts,
        "SPA",
        gap.below if shifts else not gap.below,
        "the best decay is below the Perceptron with 7 shifts, and not below it with none",
        f"decay {decay}: {error(curve[decay])[0]:.2f}, Perceptron {error(perceptron)[0]:.2f}, "
        f"difference {gap}",
    )


def _largest_rise(curve: Mapping[float | None, list[Record]]) -> float:
    errors = [error(records)[0] for records in curve.values()]
    return max((b - a for a, b in pairwise(errors) if b > a), default=0.0)


def _first_half(record: Record) -> float:
    """Mistakes, and so the Perceptron's supports, in the first half of the stream."""
    windows = record["window_errors"]
    return float(np.mean(windows[: len(windows) // 2])) * float(record["n_samples"]) / 2


def _nearest(budgets: Sequence[float], wanted: float) -> int:
    return min(range(len(budgets)), key=lambda i: abs(budgets[i] - wanted))
