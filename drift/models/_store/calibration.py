"""Probabilities from scores: one slope, learnt online beside a model, in plain Python.

A probability is the logistic function of ``slope * score / rms``, ``rms`` the running root mean
square of the scores. With several classes it is the softmax, and ``rms`` is the root mean square of
the difference between two classes' scores. The slope is positive and there is no intercept, so that
no decision changes. Each learnt example makes a gradient step on the log loss, with the score
before the update.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from drift.models._base.guard import undoes_itself

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LARGEST_SQUARE", "LEAST_SLOPE", "MEMORY", "MOST_SLOPE", "RATE", "Calibration"]

#: Learning rate of the slope's logarithm. The choice matters little: 0.01 changes the log loss by
#: 1 %, 0.1 by 2 %.
RATE = 0.05
#: Decay of the running mean of squares at each example: a horizon of about a thousand examples.
MEMORY = 0.999
#: Bounds of the slope, and of the mean square, which must stay finite.
LEAST_SLOPE, MOST_SLOPE, LARGEST_SQUARE = 1e-3, 1e3, 1e300


@undoes_itself
class Calibration:
    """One slope from scores to probabilities, learnt online beside a model.

    Parameters
    ----------
    slope
        Slope of the logistic function, in units of the scores' root mean square.
    square
        Mean square of the scores; 0 until a score is not 0.
    total
        Decayed weight of the examples in that mean.
    """

    def __init__(self, slope: float = 1.0, square: float = 0.0, total: float = 0.0) -> None:
        self.slope = slope
        self.square = square
        self.total = total

    @property
    def scale(self) -> float:
        """Factor of a score in the logistic function or softmax."""
        return self._scale(self.square)

    def _scale(self, square: float) -> float:
        return self.slope / math.sqrt(square) if square else 1.0

    def learn(self, score: float, sign: float, w: float) -> None:
        """Learn from the score of an example, its label's sign and weight."""
        total, square = self._mean(score * score, w)
        margin = sign * self._scale(square) * score
        self._step(total, square, margin / (1.0 + math.exp(min(margin, 700.0))), w)

    def learn_classes(self, scores: Any, k: int, w: float) -> None:
        """Learn from the scores of all classes, the index `k` of the label, and the weight `w`."""
        values = [float(score) for score in scores]
        n = len(values)
        if n < 2:
            return
        mean = _sum(values) / n
        total, square = self._mean(2.0 * _sum((v - mean) ** 2 for v in values) / (n - 1), w)
        scale, best = self._scale(square), max(values)
        powers = [math.exp(scale * (value - best)) for value in values]
        terms = (p * (value - best) for p, value in zip(powers, values, strict=True))
        gain = scale * (values[k] - best - _sum(terms) / _sum(powers))
        self._step(total, square, gain, w)

    def _mean(self, square: float, w: float) -> tuple[float, float]:
        """Weight and mean square of the scores, with one more."""
        total = MEMORY * self.total + w
        return total, self.square + (min(square, LARGEST_SQUARE) - self.square) * (w / total)

    def _step(self, total: float, square: float, gain: float, w: float) -> None:
        """Make a gradient step on the slope's logarithm. The slope at most doubles or halves."""
        step = 1.0 + min(RATE * w * abs(gain), 1.0)
        slope = self.slope * step if gain > 0.0 else self.slope / step
        slope = min(max(slope, LEAST_SLOPE), MOST_SLOPE)
        vars(self).update(slope=slope, square=square, total=total)  # one call, for interrupts

    def state(self) -> list[float]:
        """Return the constructor's arguments."""
        return [self.slope, self.square, self.total]

    def content(self) -> dict[str, Any]:
        """Return a copy of all attributes, for the guard."""
        return dict(vars(self))


def _sum(values: Iterable[float]) -> float:
    """Sum in the given order, as the compiled code does."""
    total = 0.0
    for value in values:
        total += value
    return total
