"""What a model predicted, row by row, in arrays: a dict for each row would take gigabytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift._decision import Decision
from drift.experiments.comparison.measures import Outcome, Positive

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from drift.types import Label

__all__ = ["MOST_SCORES", "Predictions", "decided", "sampled", "sorted_classes"]

#: Beyond it a number is no probability, whatever rounding has made of 1.
_MOST = 1 + 1e-6
#: Probabilities that are kept of more than two classes: 128 MB.
MOST_SCORES = 1 << 24
_NOT_ASKED, _NOTHING = -2, -1


class _Views(NamedTuple):
    truth: Any
    predicted: Any
    likeliest: Any
    confidence: Any
    chance: Any


def sorted_classes(labels: Iterable[Label]) -> list[Label]:
    """Different labels in their order; that of their texts where they have none.

    Examples
    --------
    >>> from drift.experiments.comparison.predictions import sorted_classes
    >>> sorted_classes([10, 9, 10]), sorted_classes(["b", 1])
    ([9, 10], ['b', 1])
    """
    different: Any = set(labels)
    try:
        return sorted(different)
    except TypeError:
        return sorted(different, key=repr)


def sampled(rows: int, classes: int) -> int:
    """Return k where AUC and average precision are of every k-th row, 1 where they are of all.

    Examples
    --------
    >>> from drift.experiments.comparison.predictions import sampled
    >>> sampled(2_000_000, 2), sampled(2_000_000, 23)
    (1, 3)
    """
    return 1 if classes <= 2 else -(-rows * classes // MOST_SCORES)


def decided(
    scores: NDArray[np.float64], positive: NDArray[np.bool_], order: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], float | None]:
    """Decide row by row whether it is of a class, by the threshold of the best F1 up to then.

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
        The last one, as `Decision` learns it; None where no row has a score.

    Examples
    --------
    >>> import numpy as np
    >>> from drift.experiments.comparison.predictions import decided
    >>> scores, positive = np.array([0.1, 0.1, 0.3, 0.3]), np.array([False, False, True, False])
    >>> decisions, threshold = decided(scores, positive, np.array([0, -1, 1, -2, 2, -3, 3, -4]))
    >>> decisions.tolist(), round(threshold, 2)
    ([False, False, False, True], 0.18)
    """
    known, decision = np.isfinite(scores), Decision()
    decisions = np.zeros(len(scores), dtype=bool)
    if not known.any():
        return decisions, None
    shares, is_known, is_positive = scores.tolist(), known.tolist(), positive.tolist()
    said = decisions.data
    for event in order.tolist():
        row = event if event >= 0 else ~event
        if not is_known[row]:
            continue
        if event >= 0:
            said[row] = decision.says(shares[row])
        else:
            decision.learn(shares[row], is_positive[row])
    return decisions, decision.threshold


class Predictions:
    """Predictions of a stream's rows, put in one by one and taken out as an `Outcome`.

    A row takes 28 bytes, and 8 more for each class whose probabilities are ranked: of two classes
    one, of more all, up to `MOST_SCORES` numbers. Beyond these they are those of every k-th row,
    for which `sampled` has k.

    Parameters
    ----------
    truth
        The label of each row.
    positive
        The class that measures single out; None: none.

    Examples
    --------
    >>> from drift.experiments.comparison.measures import measure
    >>> from drift.experiments.comparison.predictions import Predictions
    >>> made = Predictions(["a", "b"])
    >>> made.put(0, "a", {"a": 0.9, "b": 0.1})
    >>> made.put(1, "a", {"a": 0.8, "b": 0.2})
    >>> found = measure(made.outcome(0, 2))
    >>> found["error"], found["auc"]
    (0.5, 1.0)
    """

    def __init__(self, truth: Sequence[Label], positive: Label | None = None) -> None:
        n = len(truth)
        classes = sorted_classes(truth)
        #: By label; behind the stream's classes come those that the model alone knows.
        self.numbers: dict[Label, int] = {label: k for k, label in enumerate(classes)}
        self.truth = np.fromiter(map(self.numbers.__getitem__, truth), np.int32, n)
        self.predicted = np.full(n, _NOT_ASKED, dtype=np.int32)
        self._likeliest = np.full(n, _NOTHING, dtype=np.int32)
        self._confidence, self._chance = np.zeros(n), np.zeros(n)
        self._classes, self._positive_label = classes, positive
        self._positive = None if positive is None else self.numbers[positive]
        # Of two classes one is ranked: the probabilities of the other say the same.
        one = len(classes) - 1 if self._positive is None else self._positive
        ranked = range(len(classes)) if len(classes) > 2 else range(one, one + 1)
        self._ranked, self._ranked_classes = ranked, [classes[k] for k in ranked]
        self._every = sampled(n, len(classes))
        self._scores = np.zeros((-(-n // self._every), len(self._ranked)))
        # Items of a view are set in half the time that those of an array take.
        self._views = _Views(
            self.truth.data,
            self.predicted.data,
            self._likeliest.data,
            self._confidence.data,
            self._chance.data,
        )
        #: The probability of the positive class for each row, and which rows are said to be of it.
        self._positive_shares = None if positive is None else np.full(n, np.nan)
        self._said: NDArray[np.bool_] | None = None

    def put(self, row: int, label: Label | None, shares: Mapping[Any, float] | None) -> None:
        """Keep a prediction.

        Parameters
        ----------
        row
            Its number.
        label
            What was predicted; None, or NaN: nothing.
        shares
            Probabilities by label; None: the model has none.

        Raises
        ------
        ValueError
            The greatest of the probabilities is none.
        """
        views = self._views
        if label is None or label != label:
            views.predicted[row] = _NOTHING
            return
        views.predicted[row] = self._number(label)
        if shares:
            most = max(shares, key=shares.__getitem__)
            views.likeliest[row] = self._number(most)
            views.confidence[row] = highest = shares[most]
            if highest < 0 or highest > _MOST:
                raise ValueError(f"the probability of {most!r} is {highest:g}, not 0 to 1")
            views.chance[row] = shares.get(self._classes[views.truth[row]], 0.0)
            if row % self._every == 0:
                self._scores[row // self._every] = [
                    shares.get(label, 0.0) for label in self._ranked_classes
                ]
            if self._positive_shares is not None:
                self._positive_shares[row] = shares.get(self._positive_label, 0.0)

    def _number(self, label: Label) -> int:
        return self.numbers.setdefault(label, len(self.numbers))

    def foreign(self, known: int) -> str:
        """Say which predictions that count are labels of no row; empty: none is.

        Parameters
        ----------
        known
            The first row that counts: before it no model knows a label.
        """
        predicted = self.predicted[known:]
        strange = predicted[predicted >= len(self._classes)]
        if not len(strange):
            return ""
        first = list(self.numbers)[strange[0]]
        total = int((predicted >= 0).sum())
        return f"{len(strange):,} of {total:,} predictions are no label of a row, such as {first!r}"

    @property
    def asked(self) -> NDArray[np.bool_]:
        """Whether a row was predicted, by nothing, too."""
        asked: NDArray[np.bool_] = self.predicted != _NOT_ASKED
        return asked

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Whether a row has a prediction."""
        labelled: NDArray[np.bool_] = self.predicted >= 0
        return labelled

    def decide(self, order: NDArray[np.int64], first: int, *, own: bool = False) -> float | None:
        """Say which rows are of the positive class, once all are put in.

        Where the model gives probabilities, by the threshold of the best F1 so far; where it gives
        none, or has a threshold of its own, by its own predictions.

        Parameters
        ----------
        order
            As from `order_of`.
        first
            The first row that the threshold is learnt from.
        own
            The model decides.

        Returns
        -------
        float or None
            The last threshold; None where there is none.
        """
        if self._positive_shares is None:
            return None
        self._positive_shares[:first] = np.nan
        if own:
            self._said = self.predicted == self._positive
            return None
        self._said, threshold = decided(self._positive_shares, self.truth == self._positive, order)
        if threshold is None:
            self._said = self.predicted == self._positive
        return threshold

    def outcome(self, start: int, stop: int) -> Outcome:
        """Return what was predicted of these rows; those without a prediction are left out."""
        rows = np.flatnonzero(self.labelled[start:stop]) + start
        scored = rows[rows % self._every == 0]
        positive = None
        if self._positive_shares is not None and self._said is not None:
            true = self.truth[rows] == self._positive
            positive = Positive(true, self._said[rows], self._positive_shares[rows])
        return Outcome(
            self.truth[rows],
            self.predicted[rows],
            self._likeliest[rows],
            self._confidence[rows],
            self._chance[rows],
            self._scores[scored // self._every],
            self._ranked,
            self.truth[scored],
            positive,
        )
