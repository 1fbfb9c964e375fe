"""One example after the other, as dicts: the one way that all of River's models can be run."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.experiments.memory import memory
from drift.experiments.runner import updates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from drift.experiments.folder import Record

__all__ = ["learn_one_by_one"]


def learn_one_by_one(
    model: Any,
    X: csr_array,
    y: NDArray[Any],
    names: Sequence[Any] | None = None,
    windows: int = 50,
) -> Record:
    """Test, then train, on every example in turn, by `predict_one` and `learn_one`.

    Parameters
    ----------
    model
        It learns: any classifier of River or of drift.
    X
        Examples, shape (n_samples, n_features).
    y
        Labels, shape (n_samples,).
    names
        Of the features; None: ints from 0.
    windows
        Number of equal parts of the stream that errors and memory are recorded in.

    Returns
    -------
    dict
        ``n_samples``; ``mistakes``, the wrong predictions; ``seconds`` of processor time in both
        calls; ``window_errors``, the share of mistakes in each part of the stream;
        ``window_bytes``, the model's memory at the end of each, and ``bytes``, the largest of
        them; of drift's models also ``supports`` and ``updates``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from drift.experiments.papers.progressive import learn_one_by_one
    >>> from drift.models import Perceptron
    >>> X = csr_array(np.array([[1.0, 0], [0, 1.0], [1, 1]]))
    >>> result = learn_one_by_one(Perceptron(), X, np.array([True, False, False]))
    >>> result["mistakes"], result["supports"], result["window_errors"]
    (2, 3, [1.0, 1.0, 0.0])
    """
    edges = np.linspace(0, len(y), min(windows, len(y)) + 1).round().astype(int).tolist()
    predict, learn, clock = model.predict_one, model.learn_one, time.process_time
    mistakes, sizes = [], []
    seconds = 0.0
    for start, stop in pairwise(edges):
        examples = list(zip(_dicts(X, start, stop, names), y[start:stop].tolist(), strict=True))
        wrong = 0
        started = clock()
        for x, label in examples:
            wrong += predict(x) != label
            learn(x, label)
        seconds += clock() - started
        mistakes.append(wrong)
        sizes.append(memory(model))
    lengths = np.diff(edges).tolist()
    return {
        "n_samples": len(y),
        "mistakes": sum(mistakes),
        "seconds": round(seconds, 6),
        "window_errors": [
            round(wrong / length, 6) for wrong, length in zip(mistakes, lengths, strict=True)
        ],
        "window_bytes": sizes,
        "bytes": max(sizes),
    } | _counts(model)


def _counts(model: Any) -> Record:
    """What drift's models count; nothing of River's, and nothing that a reset has begun afresh."""
    if not hasattr(model, "n_supports"):
        return {}
    return {"supports": model.n_supports, "updates": updates(model)}


def _dicts(
    X: csr_array, start: int, stop: int, names: Sequence[Any] | None
) -> list[dict[Any, float]]:
    """Rows as dicts of Python numbers."""
    rows = []
    for i in range(start, stop):
        part = slice(X.indptr[i], X.indptr[i + 1])
        columns = X.indices[part].tolist()
        keys = columns if names is None else [names[j] for j in columns]
        rows.append(dict(zip(keys, X.data[part].tolist(), strict=True)))
    return rows
