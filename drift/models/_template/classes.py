"""Rows of an array under several classes: compiled code passes over those that change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from drift.models._store.rows import Row, Rule
from drift.models._template.ahead import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from drift.models._store.rows import Classes, Rows
    from drift.models._template.ahead import Supports
    from drift.models._template.batches import Table
    from drift.types import Features, Label

__all__ = ["decide_rows", "learn_rows"]

#: A class is sure to be the one predicted if it scores above all others.
_BEST = Rule(0.0, rivals=True)


class Learner(Protocol):
    """What learns rows of several classes."""

    def _pass_over(self, batch: Batch, start: int, targets: Any) -> int:
        """Return the number of the first row, from `start` on, that has to be learnt.

        Those before it are predicted right and change nothing. `targets` are the numbers of the
        rows' classes; those not known yet have higher ones, in the order in which they come.
        """

    def _learn(self, x: Features, y: Label) -> Label:
        """Learn a row and return what was predicted before."""


def learn_rows(
    learner: Learner,
    known: Iterable[Label],
    table: Table,
    labels: Sequence[Label],
    first: Sequence[Label] = (),
) -> list[Label]:
    """Learn rows; return what was predicted before each.

    Parameters
    ----------
    learner
        What learns them.
    known
        The classes, in the order in which they were first met.
    table, labels
        A batch that nothing refuses, of an array.
    first
        What was predicted of the first rows, which are learnt already.
    """
    rows = table.array
    assert rows is not None  # noqa: S101
    numbers: dict[Label, int] = {label: k for k, label in enumerate(known)}
    targets = np.array([numbers.setdefault(y, len(numbers)) for y in labels], dtype=np.int32)
    names = list(numbers)
    predictions = list(first)
    start = len(first)
    batch = Batch(rows)
    while start < len(rows):
        stop = learner._pass_over(batch, start, targets)  # noqa: SLF001
        predictions += [names[k] for k in targets[start:stop].tolist()]
        if stop < len(rows):
            x, table.learnt = Row(rows, stop), stop
            predictions.append(learner._learn(x, labels[stop]))  # noqa: SLF001
        start = stop + 1
    return predictions


def decide_rows(
    rows: Rows, supports: Supports, classes: Classes, score: Callable[[Features], Any]
) -> list[Any] | None:
    """For each row an array that is largest where its scores are; None where that is not worth it.

    Parameters
    ----------
    rows
        A batch that nothing refuses.
    supports, classes
        The hypotheses.
    score
        Scores of a row under all classes.
    """
    best, start = np.full(len(rows), -1, dtype=np.int32), 0
    batch = Batch(rows)
    if not batch.pays(supports.store, len(supports)):
        return None
    while start < len(rows):
        stop = batch.scan(supports, start, best, classes, _BEST)
        if stop < len(rows):
            best[stop] = score(Row(rows, stop)).argmax()
        start = stop + 1
    return list(np.eye(len(classes.factors))[best])
