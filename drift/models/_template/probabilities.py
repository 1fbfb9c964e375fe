"""Probabilities of labels, and which models give them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base

from drift._late import final_step
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drift.types import Array, Label

__all__ = ["check_probabilities", "logistic", "softmax"]


def logistic(labels: tuple[Label, Label], score: float) -> dict[Label, float]:
    """Probability of the negative and the positive label, both to full precision.

    Examples
    --------
    >>> logistic((False, True), 0.0)
    {False: 0.5, True: 0.5}
    """
    odds = math.exp(-abs(score)) if abs(score) < 700 else 0.0
    less, more = odds / (1.0 + odds), 1.0 / (1.0 + odds)
    if score < 0:
        less, more = more, less
    return {labels[0]: less, labels[1]: more}


def softmax(labels: Sequence[Label], scores: Array) -> dict[Label, float]:
    """Probability by label, from a score for each.

    Examples
    --------
    >>> import numpy as np
    >>> softmax(["a", "b"], np.array([1000.0, 1000.0]))
    {'a': 0.5, 'b': 0.5}
    """
    if not len(scores):
        return {}
    powers = np.exp(scores - scores.max())
    return dict(zip(labels, (powers / powers.sum()).tolist(), strict=True))


def check_probabilities(model: Any) -> None:
    """Refuse a model, or a pipeline that ends in one, that gives no probabilities."""
    model = final_step(model)
    given = getattr(type(model), "predict_proba_one", None)
    if given is None or given is base.Classifier.predict_proba_one:
        raise ParameterError(
            f"{type(model).__name__} gives no probabilities: take a classifier with "
            "predict_proba_one, as all of drift.models have it"
        )
