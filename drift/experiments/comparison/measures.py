"""What is measured of predictions: by River's metrics where it has them."""

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

__all__ = ["COSTS", "MEASURES", "RECOVERY", "Measure", "Outcome", "measure", "recoveries"]

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


#: Measures of the predictions of a run and of a window, by name.
MEASURES = {
    "error": Measure("error %", "error (%)", 100, 2),
    "kappa": Measure("kappa", "Cohen's kappa", falling=False),
    "kappa_temporal": Measure("temporal", "kappa against no change", falling=False),
    "kappa_m": Measure("kappa M", "kappa against the majority", falling=False),
    "balanced_accuracy": Measure("balanced %", "balanced accuracy (%)", 100, 2, falling=False),
    "f1": Measure("F1", "F1, mean over classes", falling=False),
    "auc": Measure("AUC", "area under the ROC curve", falling=False),
    "log_loss": Measure("log loss", "log loss (nats)"),
    "calibration_error": Measure("ECE %", "expected calibration error (%)", 100, 2),
}
#: What they are set against.
COSTS = {
    "microseconds": Measure("µs/row", "time an example (µs)", digits=1),
    "memory": Measure("MB", "memory (MB)", 1e-6, 2),
}
RECOVERY = Measure("recovery", "rows until a model is as good again as before a drift", digits=0)
#: Bins of equal width in which confidence is held against the share of right predictions.
_BINS = 10


class Outcome(NamedTuple):
    """What was predicted of some examples, and what was true."""

    truth: Sequence[Any]
    predicted: Sequence[Any]
    #: By label; None where the model gives no probabilities.
    probabilities: Sequence[Mapping[Any, float] | None]


def measure(outcome: Outcome) -> dict[str, float | None]:
    """Measures of predictions, None where there is nothing to measure, or no finite number.

    Parameters
    ----------
    outcome
        Without rows that the model gave no prediction for.

    Returns
    -------
    dict
        ``error``, ``kappa``, ``balanced_accuracy`` and ``f1`` (the mean over the classes), as
        River's `Accuracy`, `CohenKappa`, `BalancedAccuracy` and `MacroF1` say; ``auc``, the area
        under the ROC curve, of more than two classes the mean of each against the rest;
        ``log_loss``, in nats: River's `CrossEntropy`, which clips probabilities to
        [1e-15, 1 - 1e-15], but a label that the model does not know counts as 1e-15, not as no
        loss; ``calibration_error``: the mean difference between the probability of the
        most probable label and how often it was right, in ten bins of that probability.

    Examples
    --------
    >>> from drift.experiments.comparison.measures import Outcome, measure
    >>> sure = [{"a": 0.9, "b": 0.1}, {"a": 0.8, "b": 0.2}]
    >>> found = measure(Outcome(["a", "b"], ["a", "a"], sure))
    >>> found["error"], found["auc"]
    (0.5, 1.0)
    """
    values: dict[str, float | None] = dict.fromkeys(MEASURES)
    truth, predicted, probabilities = outcome
    if not truth:
        return values
    # River adds up over a set of the labels: of strings, that is in another order in each process.
    number = {label: i for i, label in enumerate(sorted({*truth, *predicted}, key=repr))}
    matrix = metrics.ConfusionMatrix()
    for label, prediction in zip(truth, predicted, strict=True):
        matrix.update(number[label], number[prediction])
    for name, metric in (
        ("kappa", metrics.CohenKappa(matrix)),
        ("balanced_accuracy", metrics.BalancedAccuracy(matrix)),
        ("f1", metrics.MacroF1(matrix)),
    ):
        values[name] = _number(metric.get())
    values["error"] = 1.0 - metrics.Accuracy(matrix).get()
    shares = [one for one in probabilities if one]
    if len(shares) == len(truth):
        entropy = metrics.CrossEntropy()
        for label, row in zip(truth, shares, strict=True):
            entropy.update(label, row if label in row else {**row, label: 0.0})
        values["log_loss"] = _number(entropy.get())
        values["auc"] = _auc(truth, shares)
        values["calibration_error"] = _calibration_error(truth, shares)
    return values


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _auc(truth: Sequence[Any], probabilities: Sequence[Mapping[Any, float]]) -> float | None:
    """Mean over the classes of the area under the curve of each against the rest."""
    classes = sorted(set(truth), key=repr)
    if len(classes) < 2:
        return None
    areas = []
    for positive in classes[1:] if len(classes) == 2 else classes:
        # River's RollingROCAUC counts a tie as lost, and so constant scores as worse than chance.
        ranks = rankdata([shares.get(positive, 0.0) for shares in probabilities])
        hits = np.array([label == positive for label in truth])
        n = int(hits.sum())
        above = ranks[hits].sum() - n * (n + 1) / 2
        areas.append(above / (n * (len(truth) - n)))
    return _number(np.mean(areas))


def _calibration_error(
    truth: Sequence[Any], probabilities: Sequence[Mapping[Any, float]]
) -> float | None:
    most = [max(shares, key=shares.__getitem__) for shares in probabilities]
    confidence = np.array(
        [shares[label] for shares, label in zip(probabilities, most, strict=True)]
    )
    right = np.array([label == true for label, true in zip(most, truth, strict=True)], dtype=float)
    if not np.isfinite(confidence).all():
        return None
    bins = np.clip((confidence * _BINS).astype(int), 0, _BINS - 1)
    gaps = np.bincount(bins, weights=right - confidence, minlength=_BINS)
    return float(np.abs(gaps).sum() / len(truth))


def recoveries(
    wrong: NDArray[np.float64], drifts: Sequence[Drift], width: int
) -> list[dict[str, Any]]:
    """How soon a model is as good as it was before each drift.

    Before is the error over the `width` rows up to the drift. It has recovered at the end of the
    first `width` rows after the drift's first whose error is no larger than that except for its
    standard error; nowhere beyond the next drift.

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
        For each drift ``row``; ``before``, the error; ``rows`` that it took, None where it did not
        recover; and ``excess``, mistakes until the next drift beyond those at the error of before.
    """
    recoveries: list[dict[str, Any]] = []
    for drift, after in zip_longest(drifts, drifts[1:]):
        end = len(wrong) if after is None else after.row
        former = wrong[max(0, drift.row - width) : drift.row]
        if not np.isfinite(former).any():
            recoveries.append({"row": drift.row, "before": None, "rows": None, "excess": None})
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
                "rows": int(good[0]) + width if len(good) else None,
                "excess": float(total[-1] - before * count[-1]),
            }
        )
    return recoveries
