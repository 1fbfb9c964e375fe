"""Functions of scores, probabilities and weights, by member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._tracker.plan import CLIP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = [
    "LARGEST",
    "TIE",
    "VOTE_TIE",
    "clipped",
    "first",
    "gradients",
    "reweighed",
    "seen_of",
    "shared",
    "softmax_of",
]

#: Scores, probabilities and votes are equal within these: rounding decides nothing.
TIE, VOTE_TIE = 1e-6, 1e-9
#: Of a score that a gate sees, what is above the first counts the second: some experts' are huge,
#: and still in order. Scores that become probabilities are clipped.
SEEN, BEYOND, LARGEST = 5.0, 0.25, 30.0


def first(values: Array, tie: float) -> Any:
    """Return the first place, along the last axis, of the largest value."""
    return (values >= values.max(axis=-1, keepdims=True) - tie).argmax(axis=-1)


def shared(weights: Array, share: float) -> Array:
    """Spread a share of weights over all of them; their sum is 1."""
    spread: Array = (1.0 - share) / weights.sum() * weights + share / len(weights)
    return spread


def reweighed(weights: Array, own: Array, w: float, share: float) -> Array:
    """Multiply weights by the probabilities that were given to what came, to the power `w`."""
    most = own[weights > 0.0].max()  # beside which they are taken, as all could underflow
    return shared(weights * np.minimum(own / most, 1.0) ** w, share)


def softmax_of(scores: Array) -> Array:
    """Probability by class; of a single score it is that of the second class."""
    if scores.shape[1] == 1:
        one = 1.0 / (1.0 + np.exp(-np.clip(scores, -LARGEST, LARGEST)))
        return np.hstack([1.0 - one, one])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: Array = powers / powers.sum(axis=1, keepdims=True)
    return probabilities


def clipped(probabilities: Array) -> Array:
    """Probabilities of which none is 0."""
    n_classes = probabilities.shape[1]
    least = min(CLIP, 0.5 / n_classes)
    lifted: Array = least + (1.0 - n_classes * least) * probabilities
    return lifted


def seen_of(scores: Array) -> Array:
    """Scores as the gates see them."""
    most = np.clip(scores, -SEEN, SEEN)
    result: Array = most + BEYOND * (scores - most)
    return result


def gradients(softmax: Array, number: int) -> Array:
    """Minus the gradient of the log loss in the score of each class."""
    result = -softmax
    result[:, number] += 1.0
    return result
