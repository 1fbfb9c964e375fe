"""One of drift's models on the rows of a matrix: test, then train, in batches."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.experiments.jobs import edges_of
from drift.models import OneVsRest, Tracker

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from drift.experiments.jobs import Record

__all__ = ["WINDOWS", "learn", "updates"]

#: Windows of equal length that a run's error is recorded in: every 500 of 20,000 examples.
WINDOWS = 40


def updates(model: Any) -> int | None:
    """Number of examples that changed a model; over all classes, that of `OneVsRest`.

    None for the Tracker, whose members change one by one.
    """
    if isinstance(model, Tracker):
        return None
    models = model.models.values() if isinstance(model, OneVsRest) else [model]
    return sum(model.n_updates for model in models)


def learn(model: Any, X: csr_array, y: NDArray[Any], windows: int = WINDOWS) -> Record:
    """Test, then train, on every example in turn.

    Parameters
    ----------
    model
        It learns: any of `drift.models`.
    X
        Examples, shape (n_samples, n_features).
    y
        Labels, shape (n_samples,).
    windows
        Number of equal parts of the stream that errors and supports are recorded in.

    Returns
    -------
    dict
        ``n_samples``; ``mistakes``, the wrong predictions; ``supports`` held at the end;
        ``updates``; ``seconds`` of processor time, for all examples; ``window_errors``, the share
        of mistakes in each part of the stream, and ``window_supports``, those held at its end.

    Examples
    --------
    >>> import numpy as np
    >>> from drift.experiments import learn
    >>> from drift.models import Perceptron
    >>> result = learn(Perceptron(), np.array([[1.0, 0], [0, 1.0], [1, 1]]), np.array([1, 0, 0]))
    >>> result["mistakes"], result["window_supports"], result["window_errors"]
    (2, [1, 2, 3], [1.0, 1.0, 0.0])
    """
    edges = edges_of(len(y), windows)
    mistakes, supports = [], []
    seconds = 0.0
    for start, stop in pairwise(edges):
        part = X[start:stop]
        started = time.process_time()
        predictions = model.predict_learn_many(part, y[start:stop])
        seconds += time.process_time() - started
        mistakes.append(int((predictions != y[start:stop]).sum()))
        supports.append(model.n_supports)
    lengths = np.diff(edges).tolist()
    return {
        "n_samples": len(y),
        "mistakes": sum(mistakes),
        "supports": model.n_supports,
        "updates": updates(model),
        "seconds": round(seconds, 6),
        "window_errors": [
            round(wrong / length, 6) for wrong, length in zip(mistakes, lengths, strict=True)
        ],
        "window_supports": supports,
    }
