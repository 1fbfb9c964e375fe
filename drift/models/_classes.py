"""Rows of an array under several classes: compiled code passes over those that change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._names import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from drift.models._frames import Rows
    from drift.types import Features, Label

__all__ = ["learn_rows"]


def learn_rows(
    rows: Rows,
    labels: Sequence[Label],
    known: Iterable[Label],
    scan: Callable[[Rows, int, Any], int],
    learn: Callable[[Features, Label], Label],
) -> list[Label]:
    """Learn rows; return what was predicted before each.

    Parameters
    ----------
    rows, labels
        A batch that nothing refuses.
    known
        The classes, in the order in which they were first met.
    scan
        Called with the rows, a first one and the number of each row's class; returns the first row
        from there on that has to be learnt. Those before it are predicted right and change nothing.
        Classes not known yet have numbers from there on, in the order in which they come.
    learn
        Learns one row and returns what was predicted before.
    """
    numbers: dict[Label, int] = {label: k for k, label in enumerate(known)}
    targets = np.array([numbers.setdefault(y, len(numbers)) for y in labels], dtype=np.int32)
    names = list(numbers)
    predictions: list[Label] = []
    while len(predictions) < len(rows):
        start = len(predictions)
        stop = scan(rows, start, targets)
        predictions += [names[k] for k in targets[start:stop].tolist()]
        if stop < len(rows):
            predictions.append(learn(Row(rows, stop), labels[stop]))
    return predictions
