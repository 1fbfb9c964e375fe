"""The protocol: what is asked and when its label comes, and who learns it and who is tested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift._checks import check_names, counted
from drift.errors import ParameterError
from drift.experiments.comparison.clock import delays_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.streams.stream import Stream

__all__ = ["FORKS", "CountedRows", "Fork", "counted_rows", "forks_of", "order_of"]

#: Ways of prequential cross-validation, and what one of `folds` models does with an example.
FORKS = {
    "cross": "tested on 1 in `folds`, learns the others",
    "split": "learns 1 in `folds`, is tested on the others",
    "bootstrap": "learns it as often as a Poisson number says, is tested where that is 0",
}


class Fork(NamedTuple):
    """What one of several models of prequential cross-validation does with each example."""

    #: Whether it is tested on it.
    tested: NDArray[np.bool_]
    #: How often it learns it.
    learnt: NDArray[np.int64]


def order_of(stream: Stream, delay: Any = None) -> NDArray[np.int64]:
    """Return the order of questions and answers, which River's `simulate_qa` gives.

    A label that is due at the moment of a question comes before it. Of labels that are due at once
    that of the earlier example comes first.

    Parameters
    ----------
    stream
        The examples, in the order of their moments, as `timed` returns them. Without moments they
        come at 0, 1, 2, ....
    delay
        How long after an example its label comes, as of `drift.experiments.compare`; None: the
        stream's delays, or at once where it has none.

    Returns
    -------
    array of int
        i where the example i is predicted, -1 - i where it is learnt.

    Raises
    ------
    ParameterError
        As of `delays_of`.

    Examples
    --------
    >>> from drift.experiments.comparison.protocol import order_of
    >>> from drift.streams import Stream
    >>> stream = Stream([({}, 0), ({}, 1), ({}, 1)])
    >>> order_of(stream).tolist(), order_of(stream, 2).tolist()
    ([0, -1, 1, -2, 2, -3], [0, 1, -1, 2, -2, -3])
    """
    rows = np.arange(len(stream))
    delays = delays_of(stream, delay)
    if delays is None:
        return np.stack([rows, ~rows], axis=1).ravel()
    moments = rows.astype(np.float64) if stream.moments is None else stream.moments
    due = moments + delays
    # Before which question: the first one that comes no earlier, and whose example is a later one.
    # Seconds since 1970 and their sums are rounded, so the last bits do not part them.
    before = np.searchsorted(moments, due - 2 * np.spacing(np.abs(due)))
    before = np.maximum(before, rows + 1)
    answers = np.lexsort((due, before))
    order = np.empty(2 * len(rows), dtype=np.int64)
    order[rows + np.searchsorted(before[answers], rows, side="right")] = rows
    order[np.arange(len(rows)) + before[answers]] = ~answers
    return order


class CountedRows(NamedTuple):
    """Which rows count, the same for every delay.

    The first row tells nothing: nobody can know its label. Of the next ones those that are
    predicted before any label was learnt are mistakes of every model, whatever it says there.
    """

    #: The first row that counts.
    first: int
    #: The first row that is predicted after a label was learnt.
    known: int


def counted_rows(order: NDArray[np.int64], fork: Fork | None) -> CountedRows:
    """Return from which rows on predictions count, and are known.

    Parameters
    ----------
    order
        As from `order_of`.
    fork
        As from `forks_of`.

    Examples
    --------
    >>> import numpy as np
    >>> from drift.experiments.comparison.protocol import counted_rows
    >>> counted_rows(np.array([0, 1, -1, 2, -2, -3]), None)
    CountedRows(first=1, known=2)
    """
    n, learnt = len(order) // 2, order < 0
    first = 1
    if fork is not None:
        learnt[learnt] = fork.learnt[~order[learnt]] > 0
        first += int(np.argmax(fork.learnt > 0)) if fork.learnt.any() else n
    later = order[int(np.argmax(learnt)) :] if learnt.any() else order[:0]
    rows = later[later >= 0]
    return CountedRows(min(first, n), int(rows[0]) if len(rows) else n)


def forks_of(n: int, folds: int, forks: str) -> list[Fork | None]:
    """Return what each of `folds` models does; with one, None: it is tested on all and learns all.

    Parameters
    ----------
    n
        Number of examples.
    folds
        Number of models.
    forks
        A name in `FORKS`.

    Raises
    ------
    ParameterError
        No such name, or a model that is tested on no example or learns none.

    References
    ----------
    .. [1] A. Bifet, G. De Francisci Morales, J. Read, G. Holmes, B. Pfahringer, "Efficient online
       evaluation of big data stream classifiers", KDD (2015), section 3.1.
    """
    check_names("no forks", [forks], FORKS)
    if folds == 1:
        return [None]
    rng = np.random.default_rng(0)
    if forks == "bootstrap":
        times = rng.poisson(1.0, (folds, n))
        made = [Fork(draw == 0, draw) for draw in times]
    else:
        chosen = rng.integers(folds, size=n) == np.arange(folds)[:, np.newaxis]
        tested = chosen if forks == "cross" else ~chosen
        made = [Fork(draw, (~draw).astype(np.int64)) for draw in tested]
    empty = sum(not (fork.tested.any() and fork.learnt.any()) for fork in made)
    if empty:
        raise ParameterError(
            f"{empty} of {folds} folds of {counted(n, 'row')} are tested on no row, or learn none: "
            "ask for fewer (folds=, --folds)"
        )
    return list(made)
