"""What the tracking paper says of its figures, each statement decided by the records of a run.

"Above", "below" and "no worse" mean: by more, or not by more, than the noise of the difference over
the streams (`drift.experiments.reproduction.curves.difference`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from drift.experiments.reproduction.curves import best, difference, error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from drift.experiments.jobs import Record
    from drift.experiments.reproduction.curves import Curves, Difference

__all__ = ["Claim", "claims"]

#: Records of a model by its budget or decay, None where it has neither, and those of all models.
_Curve: TypeAlias = "Mapping[Any, list[Record]]"
_Curves: TypeAlias = "Mapping[str, _Curve]"

#: Models without budget, and their versions on a budget.
_FAMILIES = {"Perceptron": ("RBP", "LBP", "Forgetron"), "SOP": ("RBSOP", "LBSOP")}
_OLDEST_FIRST = ("LBP", "Forgetron", "LBSOP")
#: Random and oldest-first eviction of each family.
_EVICTIONS = (("RBP", "LBP"), ("RBSOP", "LBSOP"))
#: Second-order models, and the one of first order that evicts as they do.
_FIRST_ORDER_OF = {"RBSOP": "RBP", "LBSOP": "LBP"}


class Claim(NamedTuple):
    """One statement about one model in one group of streams.

    Attributes
    ----------
    claim
        Letter of the claim.
    shifts
        The group.
    model
        The model concerned.
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
        As from `drift.experiments.reproduction.curves.curves`; one of a single stream decides
        nothing, and nothing is claimed of the Tracker.
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
    decided: list[Claim] = []
    groups = {
        shifts: {model: by_shifts for model, by_shifts in curves.items() if model != "Tracker"}
        for shifts, curves in groups.items()
        if len(
            {
                r["index"]
                for by_shifts in curves.values()
                for runs in by_shifts.values()
                for r in runs
            }
        )
        > 1
    }
    for shifts, curves in groups.items():
        for baseline, models in _FAMILIES.items():
            if baseline in curves:
                kin = {model: curves[model] for model in models if model in curves}
                decided += _against(shifts, kin, curves[baseline][None], chunks)
        if "SPA" in curves and "Perceptron" in curves and shifts in {0, 7}:
            decided.append(_spa(shifts, curves["SPA"], curves["Perceptron"][None]))
        if shifts == 0 and "CKS" in curves and "Perceptron" in curves:
            decided += _degrades(curves)
        if shifts == 7:
            decided += [*_smooth(curves), *_second_order(curves, chunks)]
    if all({"SOP", "Perceptron"} <= set(groups.get(shifts, {})) for shifts in (0, 7)):
        decided.append(_shifts_cost(groups[0], groups[7]))
    return sorted(decided, key=lambda claim: claim.claim)


def _against(
    shifts: int, curves: _Curves, baseline: list[Record], chunks: Sequence[Record]
) -> Iterator[Claim]:
    """Decide what is claimed of models on a budget beside the one without."""
    for model, curve in curves.items():
        if shifts == 0:
            yield _reaches(model, curve, baseline)
        if shifts in {3, 7} and model in _OLDEST_FIRST:
            yield _beats(shifts, model, curve, baseline)
            yield _near_chunk(shifts, model, curve, baseline, chunks)
            if shifts == 7:
                yield from _bump(model, curve, baseline)


def _reaches(model: str, curve: _Curve, baseline: list[Record]) -> Claim:
    rises = [
        f"{a} to {b}: {step}"
        for a, b in pairwise(curve)
        if (step := difference(curve[b], curve[a])).above
    ]
    gaps = {budget: difference(records, baseline) for budget, records in curve.items()}
    too_good = [f"{budget}: {gap}" for budget, gap in gaps.items() if gap.below]
    last = [*gaps][-1]
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


def _beats(shifts: int, model: str, curve: _Curve, baseline: list[Record]) -> Claim:
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
    shifts: int, model: str, curve: _Curve, baseline: list[Record], chunks: Sequence[Record]
) -> Claim:
    budgets = list(curve)
    size, supports = _chunk_supports(chunks, _name(baseline), shifts)
    nearest = _nearest(budgets, supports)
    lowest = budgets.index(best(curve))
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


def _bump(model: str, curve: _Curve, baseline: list[Record]) -> Iterator[Claim]:
    budgets = list(curve)
    half = float(np.mean([_half(record) for record in baseline]))
    nearest = _nearest(budgets, half)
    around = range(len(budgets))[max(1, nearest - 1) : nearest + 2]  # nothing is below the smallest
    if not around:
        return
    at = max(around, key=lambda i: error(curve[budgets[i]])[0])
    bump, smaller = budgets[at], best({budget: curve[budget] for budget in budgets[:at]})
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


def _smooth(curves: _Curves) -> Iterator[Claim]:
    for at_random, oldest in _EVICTIONS:
        if at_random in curves and oldest in curves:
            steps = _largest_rise(curves[at_random]), _largest_rise(curves[oldest])
            yield Claim(
                "e",
                7,
                at_random,
                steps[0] < steps[1],
                "the largest rise from one budget to the next is smaller than if the oldest goes",
                f"{at_random} {steps[0]:.2f}, {oldest} {steps[1]:.2f}",
            )


def _spa(shifts: int, curve: _Curve, perceptron: list[Record]) -> Claim:
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


def _second_order(curves: _Curves, chunks: Sequence[Record]) -> Iterator[Claim]:
    if "LBSOP" in curves and len(curves) > 1:
        yield _lowest(curves)
        yield from _smallest(curves)
    if any(record["model"] == "SOP" for record in chunks):
        _, supports = _chunk_supports(chunks, "SOP", 7)
        statement = (
            "at every budget up to what a chunk needs it is below its first-order counterpart"
        )
        for model, counterpart in _FIRST_ORDER_OF.items():
            if model in curves and counterpart in curves:
                gaps = _gaps(curves[model], curves[counterpart], supports)
                holds = bool(gaps) and all(gap.below for gap in gaps.values())
                figures = f"a chunk needs {supports:.0f}; {_by_budget(gaps)} of {counterpart}"
                yield Claim("i", 7, model, holds, statement, figures)


def _lowest(curves: _Curves) -> Claim:
    lowest = {model: curve[best(curve)] for model, curve in curves.items()}
    ours = lowest.pop("LBSOP")
    gaps = {model: difference(ours, records) for model, records in lowest.items()}
    return Claim(
        "g",
        7,
        "LBSOP",
        all(gap.below for gap in gaps.values()),
        "its best budget is below every other model at its best",
        f"{error(ours)[0]:.2f}; " + ", ".join(f"{gap} of {model}" for model, gap in gaps.items()),
    )


def _smallest(curves: _Curves) -> Iterator[Claim]:
    budgets = {
        model: best(curve) or 0
        for model, curve in curves.items()
        if "budget" in next(iter(curve.values()))[0]["parameters"]
    }
    ours = budgets.pop("LBSOP")
    if budgets:
        yield Claim(
            "h",
            7,
            "LBSOP",
            all(budget > ours for budget in budgets.values()),
            "its best budget is smaller than every other model's",
            f"{ours}; " + ", ".join(f"{model} {budget}" for model, budget in budgets.items()),
        )


def _shifts_cost(without: _Curves, shifting: _Curves) -> Claim:
    before, after = (
        difference(curves["SOP"][None], curves["Perceptron"][None])
        for curves in (without, shifting)
    )
    return Claim(
        "j",
        7,
        "SOP",
        after.mean - before.mean > float(np.hypot(before.noise, after.noise)),
        "from no shift to 7 its error rises more than the Perceptron's",
        f"of the Perceptron {before} without shifts, {after} with 7",
    )


def _degrades(curves: _Curves) -> Iterator[Claim]:
    """Decide it where budgets bind: from the Perceptron's supports on, all are the Perceptron."""
    needed = float(np.mean([record["supports"] for record in curves["Perceptron"][None]]))
    for model in _FAMILIES["Perceptron"]:
        if model in curves:
            gaps = _gaps(curves["CKS"], curves[model], np.nextafter(needed, 0.0))
            yield Claim(
                "k",
                0,
                "CKS",
                bool(gaps) and all(gap.above for gap in gaps.values()),
                "at every budget below the Perceptron's supports it is above the other models",
                f"the Perceptron needs {needed:.0f}; {_by_budget(gaps)} of {model}",
            )


def _gaps(curve: _Curve, other: _Curve, most: float) -> dict[float, Difference]:
    """Differences of two models at the budgets that both have, up to the largest."""
    return {
        budget: difference(records, other[budget])
        for budget, records in curve.items()
        if budget is not None and budget <= most and budget in other
    }


def _by_budget(gaps: Mapping[float, Difference]) -> str:
    return ", ".join(f"{budget}: {gap}" for budget, gap in gaps.items())


def _largest_rise(curve: _Curve) -> float:
    errors = [error(records)[0] for records in curve.values()]
    return max([0.0, *(b - a for a, b in pairwise(errors))])


def _name(baseline: Sequence[Record]) -> str:
    return str(baseline[0]["model"])


def _half(record: Record) -> float:
    """Mistakes, and so supports without a budget, in the first half of the stream."""
    windows = record["window_errors"]
    return float(np.mean(windows[: len(windows) // 2])) * float(record["n_samples"]) / 2


def _nearest(budgets: Sequence[float], wanted: float) -> int:
    return min(range(len(budgets)), key=lambda i: abs(budgets[i] - wanted))


def _chunk_supports(chunks: Sequence[Record], model: str, shifts: int) -> tuple[int, float]:
    """Size of a group's chunks, and the mean of the supports that a model needs for one."""
    group = [r for r in chunks if (r["model"], r["shifts"]) == (model, shifts)]
    return group[0]["n_samples"], float(np.mean([record["supports"] for record in group]))
