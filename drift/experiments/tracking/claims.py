"""What the tracking paper says of its figures, each statement decided by the records of a run.

"Above", "below" and "no worse" mean: by more, or not by more, than the noise of the difference over
the streams (`drift.experiments.tracking.report.difference`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from drift.experiments.tracking.claim import Claim, chunk_supports
from drift.experiments.tracking.order import order_claims
from drift.experiments.tracking.report import best, difference, error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from drift.experiments.folder import Record
    from drift.experiments.tracking.report import Curves

__all__ = ["Claim", "claims"]

#: Models without budget, and their versions on a budget.
_FAMILIES = {"Perceptron": ("RBP", "LBP", "Forgetron"), "SOP": ("RBSOP", "LBSOP")}
_OLDEST_FIRST = ("LBP", "Forgetron", "LBSOP")
#: Random and oldest-first eviction of each family.
_EVICTIONS = (("RBP", "LBP"), ("RBSOP", "LBSOP"))


def claims(groups: Curves, chunks: Sequence[Record]) -> list[Claim]:
    """Decide every claim whose models and groups were run.

    Parameters
    ----------
    groups
        As from `drift.experiments.tracking.report.curves`; one of a single stream decides nothing,
        and nothing is claimed of the Tracker.
    chunks
        Records of the models without budget, Perceptron and SOP, started afresh on each chunk.

    Returns
    -------
    list of Claim
        (a) without shifts the error falls to that of the model without budget, Perceptron or SOP,
        as the budget grows; (b) with 3 and with 7 shifts a budget beats it; (c) the best is near
        the supports that one chunk needs; (d) with 7 shifts there is a bump at the supports that
        half of the stream needs; (e) under random eviction the error is smooth in the budget;
        (f) SPA beats the Perceptron with 7 shifts only; (g) with 7 shifts LBSOP has the lowest
        error of all, (h) and at the smallest budget; (i) second order is better at budgets up to
        what a chunk needs; (j) shifts cost SOP more than the Perceptron; (k) CKS is worse than the
        others at the same budget.

    References
    ----------
    .. [1] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget Perceptron", Machine Learning 69 (2007), section 4, "Results", and section 5.
    """
    found: list[Claim] = []
    groups = {
        shifts: {model: own for model, own in curve.items() if model != "Tracker"}
        for shifts, curve in groups.items()
        if _n_streams(curve) > 1
    }
    for shifts, curve in groups.items():
        for baseline, models in _FAMILIES.items():
            if baseline in curve:
                kin = {model: curve[model] for model in models if model in curve}
                found += _against(shifts, kin, curve[baseline][None], chunks)
        if "SPA" in curve and "Perceptron" in curve and shifts in {0, 7}:
            found.append(_spa(shifts, curve["SPA"], curve["Perceptron"][None]))
        if shifts == 7:
            found += _smooth(curve)
    found += order_claims(groups, chunks)
    return sorted(found, key=lambda claim: claim.claim)


def _n_streams(curve: Mapping[str, Mapping[float | None, list[Record]]]) -> int:
    settings = (records for model in curve.values() for records in model.values())
    return len({record["index"] for records in settings for record in records})


def _against(
    shifts: int,
    curve: Mapping[str, Mapping[float | None, list[Record]]],
    baseline: list[Record],
    chunks: Sequence[Record],
) -> Iterator[Claim]:
    """Decide what is claimed of models on a budget beside the one without."""
    for model in curve:
        if shifts == 0:
            yield _reaches(model, curve[model], baseline)
        if shifts in {3, 7} and model in _OLDEST_FIRST:
            yield _beats(shifts, model, curve[model], baseline)
            yield _near_chunk(shifts, model, curve[model], baseline, chunks)
            if shifts == 7:
                yield from _bump(model, curve[model], baseline)


def _reaches(
    model: str, curve: Mapping[float | None, list[Record]], baseline: list[Record]
) -> Claim:
    budgets = list(curve)
    rises = [
        f"{a} to {b}: {step}"
        for a, b in pairwise(budgets)
        if (step := difference(curve[b], curve[a])).above
    ]
    gaps = {budget: difference(curve[budget], baseline) for budget in budgets}
    too_good = [f"{budget}: {gap}" for budget, gap in gaps.items() if gap.below]
    last = budgets[-1]
    figures = [f"at budget {last} {gaps[last]} of {_name(baseline)}"]
    figures += [f"rises {'; '.join(rises)}"] if rises else []
    figures += [f"below at {'; '.join(too_good)}"] if too_good else []
    return Claim(
        "a",
        0,
        model,
        not rises and not too_good and not gaps[last].above,
        "error falls with the budget and reaches that of the model without budget from above: no "
        "step up, no budget below it, the largest not above it",
        ", ".join(figures),
    )


def _beats(
    shifts: int,
    model: str,
    curve: Mapping[float | None, list[Record]],
    baseline: list[Record],
) -> Claim:
    budget = best(curve)
    gap = difference(curve[budget], baseline)
    return Claim(
        "b",
        shifts,
        model,
        gap.below,
        "the best budget is below the model without budget",
        f"budget {budget}: {error(curve[budget])[0]:.2f}, "
        f"{_name(baseline)} {error(baseline)[0]:.2f}, difference {gap}",
    )


def _near_chunk(
    shifts: int,
    model: str,
    curve: Mapping[float | None, list[Record]],
    baseline: list[Record],
    chunks: Sequence[Record],
) -> Claim:
    budgets = [budget for budget in curve if budget is not None]
    size, supports = chunk_supports(chunks, _name(baseline), shifts)
    nearest = _nearest(budgets, supports)
    lowest = budgets.index(best(curve) or 0)
    around = budgets[max(0, nearest - 1) : nearest + 2]
    return Claim(
        "c",
        shifts,
        model,
        abs(lowest - nearest) <= 1,
        "the best budget is the one nearest to the mean supports of a chunk, or next to it",
        f"best {budgets[lowest]}, a chunk of {size} needs {supports:.0f}: "
        f"nearest {budgets[nearest]}, so among {around[0]} to {around[-1]}",
    )


def _bump(
    model: str, curve: Mapping[float | None, list[Record]], baseline: list[Record]
) -> Iterator[Claim]:
    budgets = [budget for budget in curve if budget is not None]
    half = float(np.mean([_first_half(record) for record in baseline]))
    nearest = _nearest(budgets, half)
    around = budgets[max(1, nearest - 1) : nearest + 2]  # the smallest has nothing to rise from
    if not around:
        return
    bump = max(around, key=lambda budget: error(curve[budget])[0])
    smaller = best({budget: curve[budget] for budget in budgets if budget < bump})
    over_smaller = difference(curve[bump], curve[smaller])
    over_baseline = difference(curve[bump], baseline)
    yield Claim(
        "d",
        7,
        model,
        over_smaller.above and over_baseline.above,
        "near the supports of half the stream (the nearest budget, or one next to it) the error is "
        "above that of the best smaller budget and above the model without budget",
        f"half the stream needs {half:.0f}: nearest {budgets[nearest]}; budget {bump}: "
        f"{error(curve[bump])[0]:.2f}, over budget {smaller} {over_smaller}, "
        f"over {_name(baseline)} {over_baseline}",
    )


def _smooth(curve: Mapping[str, Mapping[float | None, list[Record]]]) -> Iterator[Claim]:
    for at_random, oldest in _EVICTIONS:
        if at_random in curve and oldest in curve:
            steps = _largest_rise(curve[at_random]), _largest_rise(curve[oldest])
            yield Claim(
                "e",
                7,
                at_random,
                steps[0] < steps[1],
                "the largest rise from one budget to the next is smaller than if the oldest goes",
                f"{at_random} {steps[0]:.2f}, {oldest} {steps[1]:.2f}",
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


def _name(baseline: Sequence[Record]) -> str:
    return str(baseline[0]["model"])


def _first_half(record: Record) -> float:
    """Mistakes, and so supports without a budget, in the first half of the stream."""
    windows = record["window_errors"]
    return float(np.mean(windows[: len(windows) // 2])) * float(record["n_samples"]) / 2


def _nearest(budgets: Sequence[float], wanted: float) -> int:
    return min(range(len(budgets)), key=lambda i: abs(budgets[i] - wanted))
