"""Probabilities from scores: one slope, learnt online beside a model, in plain Python.

This is *temperature scaling*, which is Platt's scaling without an intercept. A probability is the
logistic function of ``slope * score / rms``, ``rms`` the running root mean square of the scores.
With several classes it is the softmax, and ``rms`` is the root mean square of the difference
between two classes' scores. The slope is positive and there is no intercept, so that no decision
changes. Each learnt example makes a gradient step on the log loss, with the score before the
update.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from drift.models._base.guard import undoes_itself

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DECAY", "MAX_SLOPE", "MAX_SQUARE", "MIN_SLOPE", "RATE", "Calibration"]

#: Learning rate of the slope's logarithm. The choice matters little: 0.01 changes the log loss by
#: 1 %, 0.1 by 2 %.
RATE = 0.05
#: Decay of the running mean of squares at each example: a horizon of about a thousand examples.
DECAY = 0.999
#: Bounds of the slope, and of the mean square, which must stay finite.
MIN_SLOPE, MAX_SLOPE, MAX_SQUARE = 1e-3, 1e3, 1e300


@undoes_itself
class Calibration:
    """One slope from scores to probabilities, learnt online beside a model.

    Parameters
    ----------
    slope
        Slope of the logistic function, in units of the scores' root mean square.
    mean_square
        Mean square of the scores; 0 until a score is not 0.
    total_weight
        Decayed weight of the examples in that mean.
    """

    def __init__(
        self, slope: float = 1.0, mean_square: float = 0.0, total_weight: float = 0.0
    ) -> None:
        self.slope = slope
        self.mean_square = mean_square
        self.total_weight = total_weight

    @property
    def score_factor(self) -> float:
        """Factor of a score in the logistic function or softmax."""
        return self._score_factor_of(self.mean_square)

    def _score_factor_of(self, mean_square: float) -> float:
        return self.slope / math.sqrt(mean_square) if mean_square else 1.0

    def learn(self, score: float, sign: float, w: float) -> None:
        """Learn from the score of an example, its label's sign and weight."""
        total_weight, mean_square = self._with_square(score * score, w)
        margin = sign * self._score_factor_of(mean_square) * score
        self._step(total_weight, mean_square, margin / (1.0 + math.exp(min(margin, 700.0))), w)

    def learn_classes(self, scores: Any, k: int, w: float) -> None:
        """Learn from the scores of all classes, the index `k` of the label, and the weight `w`."""
        values = [float(score) for score in scores]
        n = len(values)
        if n < 2:
            return
        mean = _sum(values) / n
        square = 2.0 * _sum((v - mean) ** 2 for v in values) / (n - 1)
        total_weight, mean_square = self._with_square(square, w)
        factor, best = self._score_factor_of(mean_square), max(values)
        powers = [math.exp(factor * (value - best)) for value in values]
        terms = (p * (value - best) for p, value in zip(powers, values, strict=True))
        gain = factor * (values[k] - best - _sum(terms) / _sum(powers))
        self._step(total_weight, mean_square, gain, w)

    def _with_square(self, square: float, w: float) -> tuple[float, float]:
        """Return weight and mean of the squares, with one more square."""
        total_weight, mean = DECAY * self.total_weight + w, self.mean_square
        return total_weight, mean + (min(square, MAX_SQUARE) - mean) * (w / total_weight)

    def _step(self, total_weight: float, mean_square: float, gain: float, w: float) -> None:
        """Make a gradient step on the slope's logarithm. The slope at most doubles or halves."""
        step = 1.0 + min(RATE * w * abs(gain), 1.0)
        slope = self.slope * step if gain > 0.0 else self.slope / step
        slope = min(max(slope, MIN_SLOPE), MAX_SLOPE)
        # One call, for interrupts.
        vars(self).update(slope=slope, mean_square=mean_square, total_weight=total_weight)

    def state(self) -> list[float]:
        """Return the constructor's arguments."""
        return [self.slope, self.mean_square, self.total_weight]

    def rollback_copy(self) -> dict[str, Any]:
        """Return what `__dict__` is now; the guard restores it if an update fails."""
        return dict(vars(self))


def _sum(values: Iterable[float]) -> float:
    """Sum in the given order, as the compiled code does."""
    total = 0.0
    for value in values:
        total += value
    return total
