"""Measures of predictions: over a window, and exponentially weighted.

All compare the prediction made before learning, for late labels the one that was sent, with the
label. They are counted here: River's metrics and SciPy's ranks would take 70 MB and a second of
each worker, and River has no AUC with ties, no calibration error and no exponential mean without
bias.

========================  ==========================================================================
measure                   of the examples in the window
========================  ==========================================================================
error                     share whose prediction was wrong; one of nothing is wrong, and is left out
                          of all others
recall, precision, f1     of the positive label; else means over the classes, each of one weight
log_loss                  mean of -log of the label's probability, of at least 1e-15
roc_auc                   share of pairs of a positive and a negative whose probabilities are in
                          this order, ties half; with more classes of a right and a wrong one, by
                          the probability of what was predicted
calibration_error         mean distance, over tenths of the same probability, between it and how
                          often it was true
base_rate                 share of the positive label; else of the commonest
label_latency_seconds     mean time from the features to the label, where labels come later
========================  ==========================================================================

The positive label is that of `positive`, or True, where there are only True and False, or 1 and 0.
Faded are those that are means or quotients of means, and not over classes: all but AUC and
calibration. A measure that has nothing to be measured by, as the recall without a positive, is
absent.
"""

from __future__ import annotations

import math
import struct
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from drift.consumers._json import plain
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drift.consumers.answers import Answer
    from drift.types import Label

__all__ = ["FADED", "FADING", "Measures"]

#: The measures that are faded, too.
FADED = (
    *("error", "log_loss", "recall", "precision", "f1", "base_rate"),
    "label_latency_seconds",
)

#: Share of a faded mean that is the last example's.
FADING = 1e-4
#: Least probability of a log loss.
_LEAST = 1e-15
_BINS = 10
#: No state has counts of so many.
_MOST = 2**53
#: What is raised by states that are none.
_REFUSED = (
    *(AttributeError, KeyError, OverflowError, TypeError, ValueError),
    struct.error,
)
#: The means that they are made of; recall, precision and F1 are quotients.
_MEANS = ("error", "log_loss", "positive", "claimed", "hit", "delay")
#: Those that are of other numbers of examples than the others.
_SEEN = ("error", "log_loss", "positive", "delay")


class _Row(NamedTuple):
    """An example: probabilities and seconds are NaN where there are none."""

    label: Label
    predicted: Label
    chance: float  # of the label
    confidence: float  # the probability of what was predicted
    delay: float


def _whole(n: int) -> float:
    """Return the sum of the weights of so many values in a faded mean, which starts at 0."""
    return -math.expm1(n * math.log1p(-FADING))


class Measures:
    """The measures of a model.

    Parameters
    ----------
    positive
        The label that recall, precision, F1 and base rate are of; None for True where there are
        only True and False, or 1 and 0, and else means over the classes.
    window
        Number of examples in the window; faded ones are over some 10,000.

    Raises
    ------
    ParameterError
        If `window` is not at least 1.

    Examples
    --------
    >>> from drift.consumers.answers import Answer
    >>> measures = Measures()
    >>> for label, chance in (True, 0.75), (True, 0.25), (False, 0.25):
    ...     answer = Answer(chance > 0.5, {True: chance, False: 1 - chance})
    ...     loss = measures.learnt(label, answer)
    >>> loss
    0.2876820724517809
    >>> windowed = measures.windowed()
    >>> windowed["recall"], windowed["precision"], windowed["roc_auc"]
    (0.5, 1.0, 0.75)
    """

    def __init__(self, positive: Label = None, *, window: int = 1000) -> None:
        if window < 1:
            raise ParameterError(f"window must be at least 1, not {window!r}")
        self.positive = positive
        self.window = window
        self._rows: deque[_Row] = deque(maxlen=self.window)
        self._means = dict.fromkeys(_MEANS, 0.0)
        self._seen = dict.fromkeys(_SEEN, 0)
        self._learnt = 0
        self._measured: tuple[int, dict[str, float]] = -1, {}  # for so many that were learnt

    @property
    def singled_out(self) -> Label:
        """The label that recall and precision are of."""
        return True if self.positive is None else self.positive

    # --- examples ------------------------------------------------------------------------------

    def learnt(self, label: Label, answer: Answer, delay: float | None = None) -> float:
        """Add an example; return its log loss, NaN without a probability.

        Parameters
        ----------
        label
            Its label.
        answer
            What was predicted before it was learnt.
        delay
            Seconds from the features to the label; None where they came together.
        """
        predicted, chances = answer.predicted, answer.chances
        loss = chance = confidence = math.nan
        # River's EWMean starts at its first value, which would weigh as much as all others.
        means, counts, kept = self._means, self._seen, 1.0 - FADING
        counts["error"] += 1
        means["error"] = FADING * (predicted != label) + kept * means["error"]
        if predicted is not None:
            positive = self.singled_out
            is_so, said_so = label == positive, predicted == positive
            counts["positive"] += 1
            means["positive"] = FADING * is_so + kept * means["positive"]
            means["claimed"] = FADING * said_so + kept * means["claimed"]
            means["hit"] = FADING * (is_so and said_so) + kept * means["hit"]
            if chances:
                chance, confidence = chances.get(label, 0.0), chances.get(predicted, 0.0)
                loss = _log_loss(chance)
                counts["log_loss"] += 1
                means["log_loss"] = FADING * loss + kept * means["log_loss"]
        if delay is None:
            delay = math.nan
        else:
            counts["delay"] += 1
            means["delay"] = FADING * delay + kept * means["delay"]
        self._rows.append(_Row(label, predicted, chance, confidence, delay))
        self._learnt += 1
        return loss

    # --- measures ------------------------------------------------------------------------------

    @property
    def error(self) -> float:
        """Share of mistakes in the window, NaN before the first example."""
        rows = list(self._rows)  # at once: others ask while examples are learnt
        return sum(row.label != row.predicted for row in rows) / len(rows) if rows else math.nan

    def windowed(self) -> dict[str, float]:
        """Return the measures over the window, by their names; the error is always there."""
        learnt, measured = self._measured
        if learnt != self._learnt:
            learnt = self._learnt
            measured = {"error": self.error, **self._of_labels(), **self._of_probabilities()}
            measured["label_latency_seconds"] = _mean(
                [row.delay for row in list(self._rows) if not math.isnan(row.delay)]
            )
            self._measured = learnt, measured
        return {
            name: value for name, value in measured.items() if name == "error" or value == value
        }

    def faded(self) -> dict[str, float]:
        """Return the faded measures."""
        means = dict(self._means)
        shares = {name: _share(means[name], _whole(n)) for name, n in self._seen.items()}
        measured = {"error": shares["error"], "log_loss": shares["log_loss"]}
        if self._positive(self._labels()) is not None:
            hit, positive, claimed = means["hit"], means["positive"], means["claimed"]
            measured |= _rates(hit, positive, claimed) | {"base_rate": shares["positive"]}
        measured["label_latency_seconds"] = shares["delay"]
        return {name: value for name, value in measured.items() if value == value}

    def _known(self) -> list[_Row]:
        return [row for row in list(self._rows) if row.predicted is not None]

    def _labels(self) -> set[Label]:
        rows = self._known()
        return {row.label for row in rows} | {row.predicted for row in rows}

    def _positive(self, seen: set[Label]) -> Label:
        """Return the positive label among these, or None."""
        if self.positive is not None:
            return self.positive
        return True if seen <= {True, False} else None

    def _of_labels(self) -> dict[str, float]:
        rows = self._known()
        true = Counter(row.label for row in rows)
        claimed = Counter(row.predicted for row in rows)
        hits = Counter(row.label for row in rows if row.label == row.predicted)
        if (positive := self._positive({*true, *claimed})) is None:
            # A label that did not come, or was not predicted, has rates of 0.
            every = [
                _rates(hits[label], max(true[label], 1), max(claimed[label], 1))
                for label in true | claimed
            ]
            rates = {name: _mean([of_class[name] for of_class in every]) for name in every[0]}
            base = max(true.values())
        else:
            rates = _rates(hits[positive], true[positive], claimed[positive])
            base = true[positive]
        return rates | {"base_rate": _share(base, len(rows))}

    def _of_probabilities(self) -> dict[str, float]:
        rows = [row for row in self._known() if not math.isnan(row.chance)]
        if not rows:
            return {}
        labels = self._labels()
        positive = self._positive(labels)
        if positive is None or len(labels | {positive}) > 2:
            true = [row.label == row.predicted for row in rows]
            chances = [row.confidence for row in rows]
        else:
            true = [row.label == positive for row in rows]
            chances = [  # rounded, as 1 - (1 - p) need not be p, and ties count
                round(row.chance if is_so else 1.0 - row.chance, 12)
                for row, is_so in zip(rows, true, strict=True)
            ]
        of_true = [chance for chance, is_so in zip(chances, true, strict=True) if is_so]
        others = sorted(chance for chance, is_so in zip(chances, true, strict=True) if not is_so)
        # The Mann-Whitney statistic: a tie is half below.
        below = (
            sum(bisect_left(others, chance) + bisect_right(others, chance) for chance in of_true)
            / 2
        )
        return {
            "log_loss": _mean([_log_loss(row.chance) for row in rows]),
            "roc_auc": _share(below, len(of_true) * len(others)),
            "calibration_error": _calibration_error(true, chances),
        }

    # --- checkpoints ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: JSON types."""
        rows = list(self._rows)
        labels = [*{label: None for row in rows for label in row[:2]}]
        number = {label: i for i, label in enumerate(labels)}
        return {
            "positive": self.singled_out,
            "labels": [_stored(label) for label in labels],
            "of": [number[row.label] for row in rows],
            "predicted": [number[row.predicted] for row in rows],
            "chances": _packed([row.chance for row in rows]),
            "confidences": _packed([row.confidence for row in rows]),
            "delays": _packed([row.delay for row in rows]),
            "means": dict(self._means),
            "seen": dict(self._seen),
        }

    @classmethod
    def restore(cls, state: Any, positive: Label = None, *, window: int = 1000) -> Self:
        """Return the measures of a `state`; a smaller window keeps its last examples.

        Faded measures that were of another positive label start anew.

        Raises
        ------
        ParameterError
            It is no `state`.
        """
        measures = cls(positive, window=window)
        try:
            labels = dict(enumerate(state["labels"]))  # of which -1 is none
            Counter(labels.values())  # which refuses a list
            columns = (
                [labels[i] for i in state["of"]],
                [labels[i] for i in state["predicted"]],
                *(_unpacked(state[name]) for name in ("chances", "confidences", "delays")),
            )
            rows = [_Row(*row) for row in zip(*columns, strict=True)]
            means = {name: float(state["means"][name]) for name in _MEANS}
            counts = {name: int(state["seen"][name]) for name in _SEEN}
            known = state.get("positive", measures.singled_out)
        except _REFUSED as problem:
            raise ParameterError(f"no state of measures: {problem!r:.80}") from None
        if not all(0 <= n < _MOST for n in counts.values()):
            raise ParameterError("no state of measures: a count out of its range")
        if known != measures.singled_out:
            means |= dict.fromkeys(("positive", "claimed", "hit"), 0.0)
            counts["positive"] = 0
        measures._rows, measures._means, measures._seen = deque(rows, window), means, counts
        measures._learnt = 1
        return measures


def _stored(label: Label) -> Any:
    """Return a label as JSON has it, or the text of one that JSON does not know."""
    label = plain(label)
    return label if label is None or isinstance(label, (bool, int, float, str)) else str(label)


def _packed(values: Sequence[float]) -> str:
    if all(map(math.isnan, values)):
        return str(len(values))  # none are known
    return b64encode(struct.pack(f"<{len(values)}d", *values)).decode()


def _unpacked(text: str) -> Sequence[float]:
    if text.isdecimal():
        return [math.nan] * int(text)
    return [number for (number,) in struct.iter_unpack("<d", b64decode(text))]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else math.nan


def _log_loss(chance: float) -> float:
    return -math.log(min(1.0, max(_LEAST, chance)))  # models round


def _rates(hit: float, positive: float, claimed: float) -> dict[str, float]:
    """Return recall, precision and F1, by counts or by means."""
    return {
        "recall": _share(hit, positive),
        "precision": _share(hit, claimed),
        "f1": _share(2 * hit, positive + claimed),
    }


def _calibration_error(true: Sequence[bool], chances: Sequence[float]) -> float:
    """Return the expected calibration error, over bins of equal width."""
    apart = [0.0] * _BINS
    for is_so, chance in zip(true, chances, strict=True):
        apart[min(_BINS - 1, int(_BINS * chance))] += chance - is_so
    return sum(map(abs, apart)) / len(true)
