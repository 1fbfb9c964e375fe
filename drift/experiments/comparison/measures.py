"""What is measured of predictions: by River's metrics where it has them.

A further measure is a line in `MEASURES` and a value in what `measure` returns: then all tables,
the report and its curves have it. The terminal has those that `terminal.py` beside this one names.
"""

from __future__ import annotations

from importlib import import_module
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from drift.streams.stream import Drift

__all__ = [
    "COSTS",
    "MEASURES",
    "POSITIVE",
    "RECOVERY",
    "THRESHOLD",
    "Measure",
    "Outcome",
    "Positive",
    "measure",
    "recoveries",
    "with_both_errors",
]

#: River's, whose functions have no types.
metrics: Any = import_module("river.metrics")


class Measure(NamedTuple):
    """How a measure is shown."""

    heading: str
    title: str
    factor: float = 1.0
    digits: int = 3
    #: Better the smaller it is.
    falling: bool = True

    def text(self, value: float | None) -> str:
        """Return a value as tables have it; None is an empty cell, and nothing is minus zero."""
        return "" if value is None else f"{self.factor * value:z,.{self.digits}f}"


#: Measures of the predictions of a run and of a window, by name. Those against a baseline take its
#: run, too: `drift.experiments.comparison.tables` adds them.
MEASURES = {
    "error": Measure("error %", "error (%)", 100, 2),
    "kappa": Measure("kappa", "Cohen's kappa", falling=False),
    "kappa_temporal": Measure("temporal", "kappa against no change", falling=False),
    "kappa_m": Measure("kappa M", "kappa against the majority", falling=False),
    "balanced_accuracy": Measure("balanced %", "balanced accuracy (%)", 100, 2, falling=False),
    "f1": Measure("macro F1", "F1, mean over classes", falling=False),
    "auc": Measure("AUC", "area under the ROC curve", falling=False),
    "average_precision": Measure("AP", "average precision", falling=False),
    "log_loss": Measure("log loss", "log loss (nats)"),
    "calibration_error": Measure("ECE %", "expected calibration error (%)", 100, 2),
}
#: Those of the positive class alone, at the threshold learnt so far.
POSITIVE = {
    "recall": Measure("recall %", "recall of the positive class (%)", 100, 2, falling=False),
    "precision": Measure(
        "precision %", "precision of the positive class (%)", 100, 2, falling=False
    ),
    "positive_f1": Measure("F1", "F1 of the positive class", falling=False),
}
#: What they are set against.
COSTS = {
    "microseconds": Measure("µs/row", "time an example (µs)", digits=1),
    "memory": Measure("MB", "memory (MB)", 1e-6, 2),
}
#: The errors of a run whose first rows came before the first label.
_BOTH_ERRORS = {
    "error": Measure(
        "error %\nall rows", "error, rows before the first label as mistakes (%)", 100, 2
    ),
    "error_after_label": Measure(
        "error %\nafter label", "error of the rows after the first label (%)", 100, 2
    ),
}
THRESHOLD = Measure("threshold", "probability from which a row is said to be positive")
RECOVERY = Measure(
    "recovery",
    "rows until a model is as good again as before a drift, at most those up to the next",
    digits=0,
)
#: Bins of equal width in which confidence is held against the share of right predictions.
_BINS = 10
#: Least probability of a log loss.
_LEAST = 1e-15


class Positive(NamedTuple):
    """What was said of the class that is singled out: of each row three numbers."""

    #: Whether it is of the class, and is said to be.
    true: NDArray[np.bool_]
    said: NDArray[np.bool_]
    #: The class's probability, NaN where the model gave none.
    scores: NDArray[np.float64]


class Outcome(NamedTuple):
    """What was predicted of some rows, and what was true: numbers of classes, and probabilities.

    `Predictions.outcome` makes one, without the rows that the model gave no prediction for.
    """

    truth: NDArray[np.int32]
    predicted: NDArray[np.int32]
    #: The most probable class, -1 where the model gave no probabilities.
    likeliest: NDArray[np.int32]
    #: Its probability, and that of the true class.
    confidence: NDArray[np.float64]
    chance: NDArray[np.float64]
    #: Probabilities of the classes `scored`, a column each, of rows that are these true classes.
    scores: NDArray[np.float64]
    scored: Sequence[int]
    scored_truth: NDArray[np.int32]
    #: None where no class is singled out.
    positive: Positive | None = None


def measure(outcome: Outcome) -> dict[str, float | None]:
    """Measures of predictions, None where there is nothing to measure, or no finite number.

    Parameters
    ----------
    outcome
        What was predicted.

    Returns
    -------
    dict
        ``error``, ``kappa``, ``balanced_accuracy`` and ``f1`` (the mean over the classes), as
        River's `Accuracy`, `CohenKappa`, `BalancedAccuracy` and `MacroF1` say; ``auc``, the area
        under the ROC curve, and ``average_precision``, as scikit-learn's `roc_auc_score` and
        `average_precision_score` say of all rows at once: of two classes those of the second, or of
        the positive one, of more the mean of each class against the rest;
        ``log_loss``, in nats: River's `CrossEntropy`, which clips probabilities to
        [1e-15, 1 - 1e-15], but a label that the model does not know counts as 1e-15, not as no
        loss; ``calibration_error``: the mean difference between the probability of the
        most probable label and how often it was right, in ten bins of that probability;
        ``recall``, ``precision`` and ``positive_f1`` of the positive class, if one is singled out,
        and then ``average_precision`` of that class alone.
    """
    values: dict[str, float | None] = dict.fromkeys([*MEASURES, *POSITIVE])
    if not len(outcome.truth):
        return values
    # Pairs of classes in their order: River adds up over them, and another order is another sum.
    matrix = metrics.ConfusionMatrix()
    width = int(outcome.predicted.max()) + 1
    pairs, times = np.unique(
        outcome.truth.astype(np.int64) * width + outcome.predicted, return_counts=True
    )
    for pair, n in zip(pairs.tolist(), times.tolist(), strict=True):
        matrix.update(*divmod(pair, width), n)
    for name, metric in (
        ("kappa", metrics.CohenKappa(matrix)),
        ("balanced_accuracy", metrics.BalancedAccuracy(matrix)),
        ("f1", metrics.MacroF1(matrix)),
    ):
        values[name] = _number(metric.get())
    values["error"] = float(np.mean(outcome.truth != outcome.predicted))
    if (outcome.likeliest >= 0).all():
        chance = np.clip(outcome.chance, _LEAST, 1 - _LEAST)
        values["log_loss"] = _number(-np.log(chance).mean())
        values["calibration_error"] = _calibration_error(outcome)
        values |= _ranking(outcome)
    if outcome.positive is not None:
        values |= _of_positive(outcome.positive)
    return values


def with_both_errors(measures: Mapping[str, Measure]) -> dict[str, Measure]:
    """Return measures with the error over all rows, and that over the rows after the first label.

    Parameters
    ----------
    measures
        By name, ``error`` among them.
    """
    both: dict[str, Measure] = {}
    for name, measure in measures.items():
        both |= _BOTH_ERRORS if name == "error" else {name: measure}
    return both


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _ranking(outcome: Outcome) -> dict[str, float | None]:
    """Area under the curve and average precision, means over the classes that there are."""
    areas, precisions = [], []
    for k, scores in zip(outcome.scored, outcome.scores.T, strict=True):
        hits = outcome.scored_truth == k
        if hits.any() and not hits.all():
            areas.append(_area(hits, scores))
            precisions.append(_average_precision(hits, scores))
    if not areas or not np.isfinite(outcome.scores).all():
        return {"auc": None, "average_precision": None}
    return {"auc": float(np.mean(areas)), "average_precision": float(np.mean(precisions))}


def _area(hits: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Share of pairs of a hit and another row whose scores are in this order; ties count half."""
    n = int(hits.sum())
    above = rankdata(scores)[hits].sum() - n * (n + 1) / 2
    return float(above / (n * (len(hits) - n)))


def _average_precision(hits: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Precision at each score that a hit has, as a mean over the hits."""
    order = np.argsort(-scores, kind="stable")
    found = np.cumsum(hits[order])
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, [True]))  # of equal scores
    return float(np.sum(np.diff(found[last], prepend=0) * found[last] / (last + 1)) / found[-1])


def _of_positive(positive: Positive) -> dict[str, float | None]:
    """Measures of a class; None where it is neither there nor said to be."""
    true, said, scores = positive
    hits, there, claimed = (int(rows.sum()) for rows in (true & said, true, said))
    ranked = 0 < there < len(true) and np.isfinite(scores).all()
    return {
        "average_precision": _average_precision(true, scores) if ranked else None,
        "recall": hits / there if there else None,
        "precision": hits / claimed if claimed else None,
        "positive_f1": 2 * hits / (there + claimed) if there + claimed else None,
    }


def _calibration_error(outcome: Outcome) -> float | None:
    confidence = outcome.confidence
    if not np.isfinite(confidence).all():
        return None
    right = (outcome.likeliest == outcome.truth).astype(float)
    bins = np.clip((confidence * _BINS).astype(int), 0, _BINS - 1)
    gaps = np.bincount(bins, weights=right - confidence, minlength=_BINS)
    return float(np.abs(gaps).sum() / len(right))


def recoveries(
    wrong: NDArray[np.float64], drifts: Sequence[Drift], width: int
) -> list[dict[str, Any]]:
    """How soon a model is as good as it was before each drift.

    Before is the error over the `width` rows up to the drift. It has recovered at the end of the
    first `width` rows after the drift's first whose error is no larger than that except for its
    standard error; nowhere beyond the next drift. One that does not recover counts all rows up to
    there, or a model that gives up would look fast.

    Parameters
    ----------
    wrong
        1 where the prediction was wrong, 0 where right, NaN where there was none.
    drifts
        In order.
    width
        Rows that an error is taken over.

    Returns
    -------
    list of dict
        For each drift ``row``; ``before``, the error; ``rows`` that it took, up to the next drift
        or the end where it did not recover; ``recovered``, whether it did; and ``excess``, mistakes
        until the next drift beyond those at the error of before. All but ``row`` are None where no
        row before the drift counts.
    """
    recoveries: list[dict[str, Any]] = []
    for drift, after in zip_longest(drifts, drifts[1:]):
        end = len(wrong) if after is None else after.row
        former = wrong[max(0, drift.row - width) : drift.row]
        if not np.isfinite(former).any():
            unknown = dict.fromkeys(("before", "rows", "recovered", "excess"))
            recoveries.append({"row": drift.row, **unknown})
            continue
        before, n = float(np.nanmean(former)), int(np.isfinite(former).sum())
        bar = before + np.sqrt(before * (1 - before) / n)
        later = wrong[drift.row : end]
        total = np.concatenate([[0.0], np.cumsum(np.nan_to_num(later))])
        count = np.concatenate([[0], np.cumsum(np.isfinite(later))])
        in_window = count[width:] - count[:-width]
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = (total[width:] - total[:-width]) / in_window
        good = np.flatnonzero(errors <= bar)
        recoveries.append(
            {
                "row": drift.row,
                "before": before,
                "rows": int(good[0]) + width if len(good) else end - drift.row,
                "recovered": bool(len(good)),
                "excess": float(total[-1] - before * count[-1]),
            }
        )
    return recoveries
