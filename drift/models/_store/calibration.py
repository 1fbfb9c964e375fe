"""Probabilities from scores: one slope, learnt online beside a model, in plain Python.

A probability is the logistic function of ``slope * score / rms``, ``rms`` the running root mean
square of the scores; of several classes the softmax, and ``rms`` that of the difference between two
classes' scores. The slope is positive and nothing is added, so that no decision changes. It takes a
gradient step on the log loss at each example learnt, with the score from before the update.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from drift.models._store.undo import store_class

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Calibration"]

#: Step on the slope's logarithm; a fifth of it or twice as much changes the log loss by 1 % or 2 %.
_RATE = 0.05
#: Weight that older squares keep at each example: the mean is over some thousand of them.
_MEMORY = 0.999
#: Bounds on the slope, and on the mean square, which has to stay finite.
_LEAST, _MOST, _LARGEST = 1e-3, 1e3, 1e300


@store_class
class Calibration:
    """The contract of the compiled calibration.

    Parameters
    ----------
    slope
        Of the logistic function, in units of the scores' root mean square.
    square
        Mean square of the scores, 0 before there are any but 0.
    total
        Weight of the examples behind it.
    """

    def __init__(self, slope: float = 1.0, square: float = 0.0, total: float = 0.0) -> None:
        self.slope = slope
        self.square = square
        self.total = total

    @property
    def scale(self) -> float:
        """What a score is multiplied by before the logistic function or softmax."""
        return self._scale(self.square)

    def _scale(self, square: float) -> float:
        return self.slope / math.sqrt(square) if square else 1.0

    def learn(self, score: float, sign: float, w: float) -> None:
        """Learn from the score of an example, its label's sign and weight."""
        total, square = self._mean(score * score, w)
        margin = sign * self._scale(square) * score
        self._step(total, square, margin / (1.0 + math.exp(min(margin, 700.0))), w)

    def learn_classes(self, scores: Any, k: int, w: float) -> None:
        """Learn from the scores of all classes, the number of an example's own, and its weight."""
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
        """Weight of all examples with another one, and the mean square of their scores."""
        total = _MEMORY * self.total + w
        return total, self.square + (min(square, _LARGEST) - self.square) * (w / total)

    def _step(self, total: float, square: float, gain: float, w: float) -> None:
        """Make a step of the slope's logarithm up to that of 2, along minus the loss's gradient."""
        step = 1.0 + min(_RATE * w * abs(gain), 1.0)
        slope = self.slope * step if gain > 0.0 else self.slope / step
        slope = min(max(slope, _LEAST), _MOST)
        vars(self).update(slope=slope, square=square, total=total)  # or an interrupt parts them

    def numbers(self) -> list[float]:
        """Return what it is made from."""
        return [self.slope, self.square, self.total]

    def begin(self) -> None:
        """Begin an update, which the guard takes back if it fails; there is nothing to be done."""

    undo = finish = begin

    def content(self) -> dict[str, Any]:
        """Return all attributes, for the guard to go back to."""
        return dict(vars(self))


def _sum(values: Iterable[float]) -> float:
    """Sum in the order given, as compiled code does."""
    total = 0.0
    for value in values:
        total += value
    return total
