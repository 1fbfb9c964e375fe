"""The threshold of the best F1 so far: what a rare class is predicted by."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["decided"]

#: Bins of the log-odds, from -40 to 40: 0.02 of a log-odds each, in which two scores are one.
_BINS = 4_096
_LARGEST = 40.0
#: Times that the best F1 has to be that of saying yes to each row, or the threshold stays where it
#: starts. A model that knows nothing of the class has its best F1 where it always says yes, and all
#: rows that it gets wrong so would count to the end.
_BETTER = 1.5 * (1 - 1e-9)  # but for rounding
#: Labels after which the threshold is chosen again: at first each, then 1 more in so many.
_PART = 64


def decided(
    scores: NDArray[np.float64], positive: NDArray[np.bool_], order: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], float | None]:
    """Decide row by row whether it is of a class, by the threshold that was best up to then.

    The threshold is that of the highest F1 over all rows whose labels have come. It is chosen again
    as labels come: after each of the first 64, then whenever they are 1/64 more. It lies in the
    middle between the scores that it parts, of log-odds. It is 0.5 as long as the best F1 is not
    1.5 times that of saying yes to each row.

    Parameters
    ----------
    scores
        The probability of the class for each row, NaN where there is none.
    positive
        Whether each row is of the class.
    order
        i where row i is predicted, -1 - i where its label comes.

    Returns
    -------
    decisions : array of bool
        One a row; False where there is no score.
    threshold : float or None
        The last one; None where no row has a score.

    Notes
    -----
    The threshold follows ranks alone, so probabilities need not be calibrated. Where they are, it
    comes to half the best F1 [1]_.

    References
    ----------
    .. [1] Z. C. Lipton, C. Elkan, B. Naryanaswamy, "Optimal thresholding of classifiers to maximize
       F1 measure", ECML (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from drift.experiments.comparison.threshold import decided
    >>> scores, positive = np.array([0.1, 0.1, 0.3, 0.3]), np.array([False, False, True, True])
    >>> decisions, threshold = decided(scores, positive, np.array([0, -1, 1, -2, 2, -3, 3, -4]))
    >>> decisions.tolist(), round(threshold, 2)
    ([False, False, False, True], 0.18)
    """
    known = np.isfinite(scores)
    if not known.any():
        return np.zeros(len(scores), dtype=bool), None
    bins = np.zeros(len(scores), dtype=np.int64)
    bins[known] = _bins(scores[known])

    is_label = order < 0
    labelled = ~order[is_label]
    counts = np.zeros(len(order), dtype=np.int64)
    counts[is_label] = known[labelled]
    labelled = labelled[known[labelled]]
    levels = _levels(len(labelled))
    thresholds = _thresholds(bins[labelled], positive[labelled], levels)

    before = np.zeros(len(scores), dtype=np.int64)
    before[order[~is_label]] = np.cumsum(counts)[~is_label]  # labels that came before each row
    chosen = thresholds[np.searchsorted(levels, before, side="right") - 1]
    edge = (thresholds[-1] / _BINS - 0.5) * 2 * _LARGEST
    return known & (bins >= chosen), float(expit(edge))


def _bins(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    with np.errstate(divide="ignore"):
        share = np.clip(scores, 0.0, 1.0)
        odds = np.clip(np.log(share) - np.log1p(-share), -_LARGEST, _LARGEST)
    places: Any = np.floor((odds / (2 * _LARGEST) + 0.5) * _BINS)
    bins: NDArray[np.int64] = np.minimum(places.astype(np.int64), _BINS - 1)
    return bins


def _levels(n: int) -> NDArray[np.int64]:
    """Numbers of labels after which a threshold is chosen, from 0, where it is given."""
    levels = [0]
    while (level := levels[-1] + max(1, levels[-1] // _PART)) <= n:
        levels.append(level)
    return np.array(levels)


def _thresholds(
    bins: NDArray[np.int64], positive: NDArray[np.bool_], levels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the lowest bin that is predicted positive, after so many labels each."""
    thresholds = [_BINS // 2]
    seen, hits = (np.zeros(_BINS, dtype=np.int64) for _ in range(2))
    for start, stop in pairwise(levels.tolist()):
        part = bins[start:stop]
        np.add.at(seen, part, 1)
        np.add.at(hits, part[positive[start:stop]], 1)
        best = _best(seen, hits) if hits.any() else None
        thresholds.append(thresholds[0] if best is None else best)
    return np.array(thresholds)


def _best(seen: NDArray[np.int64], hits: NDArray[np.int64]) -> int | None:
    found = np.cumsum(hits[::-1])[::-1]
    claimed = np.cumsum(seen[::-1])[::-1]
    f1 = found / (claimed + found[0])  # half of it
    first = int(f1.argmax())
    if f1[first] < _BETTER * f1[0]:
        return None
    # Above the last score that is left out bins are empty: the middle is as far from either side.
    empty = int(np.count_nonzero(claimed[first:] == claimed[first])) - 1
    return first + empty // 2
