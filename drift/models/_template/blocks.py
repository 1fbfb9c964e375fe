"""Blocks of dense rows against all supports at once, through BLAS.

Where rows have hardly a zero, the one loop that computes scores waits for memory: each row has to
see every support. A matrix product of rows shows each support to many of them at a time, but its
rounding depends on the shapes, and a flipped bit may flip a decision. So its scores only decide
rows that they decide beyond any rounding; the others are scored by the one loop, and so are those
whose score the update needs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import blas

from drift.models._store.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from drift.models._store.supports import SupportSet
    from drift.models._template.batches import Table

__all__ = ["pays", "scan"]

#: With fewer products of features in a row's score than this, fewer rows in a batch, or fewer
#: nonzeros in a row of so many columns, the one loop is faster.
LEAST_PRODUCTS = 400_000
LEAST_ROWS = 32
LEAST_DENSITY = 1 / 4
#: Rows in a block: a matrix of the supports is made for each, and kept up within it.
BLOCK = 1024
#: Rows in a chunk of a block: what supports that came in before it change is made up for at once.
CHUNK = 128
#: Features in one matrix product: a short chain of roundings leaves fewer rows undecided.
CHAIN = 112
#: A matrix of the supports takes at most this many bytes.
LARGEST = 1 << 28


def pays(table: Table, supports: Any) -> bool:
    """Whether a batch is of the kind that blocks are for."""
    X, rows = table.dense, table.array
    store = getattr(supports, "store", None)
    return (
        X is not None
        and rows is not None
        and store is not None
        and store.screens
        and len(rows) >= LEAST_ROWS
        and len(rows.data) * len(supports) >= LEAST_PRODUCTS * len(rows)
        and len(rows.data) >= LEAST_DENSITY * X.size
        and 4 * rows.width * store.capacity <= LARGEST
        and not np.isnan(rows.data).any()
    )


class _Block:
    """Rows scaled as the store scales them, and their inner products with all supports."""

    def __init__(self, X: NDArray[Any], supports: SupportSet) -> None:
        store, width = supports.store, X.shape[1]
        X = X.astype(np.float64)
        self.squares = np.einsum("ij,ij->i", X, X)
        norms = np.sqrt(self.squares)
        if not store.normalizes:
            norms = np.ldexp(1.0, np.frexp(norms)[1])
        norms[norms == 0.0] = 1.0
        self.rows = np.divide(X, norms[:, np.newaxis], dtype=np.float32, casting="same_kind")
        self.capacity = store.capacity
        matrix = np.empty((width, self.capacity), dtype=np.float32)
        n_sparse = store.matrix(matrix, width)
        self.dots = np.empty((len(X), self.capacity), dtype=np.float32)
        for first in range(0, width, CHAIN):  # transposed, as BLAS has matrices
            part = slice(first, first + CHAIN)
            left, right = matrix[part].T, np.ascontiguousarray(self.rows[:, part]).T
            beta = 1.0 if first else 0.0
            blas.sgemm(1.0, left, right, beta=beta, c=self.dots.T, overwrite_c=1)
        # Roundings one after the other: here, in whatever order a chain is added up; in the one
        # loop, which adds the products of sixteen dense columns at a time, but singly those of
        # fewer than 64 (DRIFT_MANY) and of sparse ones.
        here = CHAIN + -(-width // CHAIN)
        chunks = -(-width // 1024)  # DRIFT_CHUNK
        there = max(width / 16 + 6 * chunks, 64) + 64 * (chunks - 1) + n_sparse + 16
        self.error = 1.01 * 2.0**-24 * (here + there)
        self._newest: dict[int, int] = {}  # the row in each slot that was replaced
        self._stop = 0  # of the chunk

    def ready(self, i: int) -> int:
        """Bring the inner products of row `i` up to date; return up to which row they are."""
        if i == self._stop:
            self._stop = min(i + CHUNK, len(self.rows))
            if self._newest:
                self._put(i, list(self._newest), list(self._newest.values()))
        return self._stop

    def replace(self, slot: int, i: int) -> None:
        """Let row `i` be the support in a slot from the next row on."""
        self._newest[slot] = i
        self._put(i + 1, [slot], [i])

    def _put(self, first: int, slots: list[int], supports: list[int]) -> None:
        """Set inner products between rows of the chunk, and rows that are supports."""
        rows, columns = self.rows[first : self._stop], self.rows[supports]
        chains = (slice(k, k + CHAIN) for k in range(0, rows.shape[1], CHAIN))
        self.dots[first : self._stop, slots] = sum(rows[:, k] @ columns[:, k].T for k in chains)


def scan(
    table: Table,
    supports: SupportSet,
    signs: Sequence[float] | None,
    threshold: float,
    learn: Callable[[Row, int, float | None], None],
) -> NDArray[np.float64]:
    """Decide rows, and let those be learnt that may be updates.

    Other threads have to be kept out, as every batch does: a block knows of no change but its own.

    Parameters
    ----------
    table
        A batch for which it `pays`.
    supports
        Supports of the model.
    signs
        Sign of each label; None to learn nothing.
    threshold
        Margin at or below which a row is an update.
    learn
        Called with such a row, its number and its score; None for a score that has to be computed.

    Returns
    -------
    ndarray of shape (n_rows,)
        Scores, exact in their signs only.
    """
    X, rows = table.dense, table.array
    assert X is not None and rows is not None  # noqa: S101, PT018
    scores = np.empty(len(rows))
    marks = None if signs is None else np.array(signs, dtype=np.int8)
    first = 0
    while first < len(rows):
        block = _Block(X[first : first + BLOCK], supports)
        part = slice(first, first + len(block.rows))
        mine = None if marks is None else marks[part]
        i, out = 0, scores[part]
        while i < len(out) and supports.store.capacity == block.capacity:
            stop = block.ready(i)
            i = supports.store.screen(
                block.dots, block.squares, mine, out, i, stop, threshold, block.error
            )
            if i == stop:
                continue
            row, rough = Row(rows, first + i), float(out[i])
            if signs is None or math.isnan(rough):
                out[i] = supports.score_of(row)
            if signs is not None:
                before = len(supports.serials) and supports.serials[-1]
                table.learnt = first + i
                score = None if math.isnan(rough) else rough
                learn(row, first + i, score)
                if supports.serials[-1] != before and supports.store.capacity == block.capacity:
                    block.replace(supports.slots[-1], i)
            i += 1
        first += i
    return scores
