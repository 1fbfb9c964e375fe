"""The tracking paper on second-order models and on CKS, decided by the records of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drift.experiments.tracking.claim import Claim, chunk_supports
from drift.experiments.tracking.report import best, difference, error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from drift.experiments.folder import Record
    from drift.experiments.tracking.report import Curves

    Curve = Mapping[str, Mapping[float | None, list[Record]]]

__all__ = ["order_claims"]

_COUNTERPARTS = {"RBSOP": "RBP", "LBSOP": "LBP"}
_FIRST_ORDER = ("RBP", "LBP", "Forgetron")


def order_claims(groups: Curves, chunks: Sequence[Record]) -> Iterator[Claim]:
    """Decide the claims (g) to (k) of `drift.experiments.tracking.claims.claims`."""
    for shifts, curve in groups.items():
        if shifts == 7 and "LBSOP" in curve and len(curve) > 1:
            yield _lowest(curve)
            yield from _smallest(curve)
        if shifts == 7 and any(record["model"] == "SOP" for record in chunks):
            yield from _small_budgets(curve, chunks)
        if shifts == 0 and "CKS" in curve and "Perceptron" in curve:
            yield from _degrades(curve)
    if all({"SOP", "Perceptron"} <= set(groups.get(shifts, {})) for shifts in (0, 7)):
        yield _shifts_cost(groups[0], groups[7])


def _lowest(curve: Curve) -> Claim:
    lowest = {model: curve[model][best(curve[model])] for model in curve}
    own = lowest.pop("LBSOP")
    gaps = {model: difference(own, records) for model, records in lowest.items()}
    return Claim(
        "g",
        7,
        "LBSOP",
        all(gap.below for gap in gaps.values()),
        "its best budget is below every other model at its best",
        f"{error(own)[0]:.2f}; " + ", ".join(f"{gap} of {model}" for model, gap in gaps.items()),
    )


def _smallest(curve: Curve) -> Iterator[Claim]:
    budgets = {model: best(curve[model]) for model in curve if _has_budget(curve[model])}
    own = budgets.pop("LBSOP")
    if own is not None and budgets:
        yield Claim(
            "h",
            7,
            "LBSOP",
            all(budget > own for budget in budgets.values() if budget is not None),
            "its best budget is smaller than every other model's",
            f"{own}; " + ", ".join(f"{model} {budget}" for model, budget in budgets.items()),
        )


def _small_budgets(curve: Curve, chunks: Sequence[Record]) -> Iterator[Claim]:
    _, supports = chunk_supports(chunks, "SOP", 7)
    for model, first_order in _COUNTERPARTS.items():
        if model in curve and first_order in curve:
            gaps = {
                budget: difference(records, curve[first_order][budget])
                for budget, records in curve[model].items()
                if budget is not None and budget <= supports and budget in curve[first_order]
            }
            yield Claim(
                "i",
                7,
                model,
                bool(gaps) and all(gap.below for gap in gaps.values()),
                "at every budget up to what a chunk needs it is below its first-order counterpart",
                f"a chunk needs {supports:.0f}; {_listed(gaps)} of {first_order}",
            )


def _shifts_cost(without: Curve, shifting: Curve) -> Claim:
    gaps = [
        difference(curve["SOP"][None], curve["Perceptron"][None]) for curve in (without, shifting)
    ]
    noise = float(np.hypot(gaps[0].noise, gaps[1].noise))
    return Claim(
        "j",
        7,
        "SOP",
        gaps[1].mean - gaps[0].mean > noise,
        "from no shift to 7 its error rises more than the Perceptron's",
        f"of the Perceptron {gaps[0]} without shifts, {gaps[1]} with 7",
    )


def _degrades(curve: Curve) -> Iterator[Claim]:
    """Decide it where budgets bind: from the Perceptron's supports on, all are the Perceptron."""
    needed = float(np.mean([record["supports"] for record in curve["Perceptron"][None]]))
    for model in _FIRST_ORDER:
        if model in curve:
            gaps = {
                budget: difference(records, curve[model][budget])
                for budget, records in curve["CKS"].items()
                if budget is not None and budget < needed and budget in curve[model]
            }
            yield Claim(
                "k",
                0,
                "CKS",
                bool(gaps) and all(gap.above for gap in gaps.values()),
                "at every budget below the Perceptron's supports it is above the other models",
                f"the Perceptron needs {needed:.0f}; {_listed(gaps)} of {model}",
            )


def _has_budget(curve: Mapping[float | None, list[Record]]) -> bool:
    records = next(iter(curve.values()))
    return "budget" in records[0]["parameters"]


def _listed(gaps: Mapping[float, object]) -> str:
    return ", ".join(f"{budget}: {gap}" for budget, gap in gaps.items())
