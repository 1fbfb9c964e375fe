"""Rows of an array against many supports, a block of rows at a time, decided where that is sure.

Where supports have most features of a row, the one loop waits for memory: each row has to see every
support. Here a block of rows sees a tile of supports while that lies in a fast cache. The inner
products are rougher than those of the one loop, and known by how much: they decide the rows that
they decide beyond any rounding. The others are scored by the one loop, and so is what is learnt.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from drift.models._store.rows import INDEXED_WIDTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.models._store.rows import Classes, Rows, Rule
    from drift.models._store.supports import ColumnStore

__all__ = ["Batch"]

#: Fewer supports than this, rows in a batch, or nonzeros in a row of so many columns are better off
#: in the one loop.
LEAST_SUPPORTS = 64
LEAST_ROWS = 64
LEAST_DENSITY = 1 / 16
#: Rows in a block: more show a tile to more rows, and have more to make up for after an update.
BLOCK = 64
#: Rows after which it is tried again where it did not pay.
RESUME = 2048
#: The tiles take at most this many bytes.
LARGEST = 1 << 28


class Supports(Protocol):
    """What the classes have in common."""

    @property
    def store(self) -> ColumnStore:
        """What holds them."""

    @property
    def newest(self) -> int:
        """Slot of the support that the row learnt last became; below 0 if it became none."""

    def __len__(self) -> int:
        """Return the number of supports."""


def _aligned(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Zeros that begin on a cache line."""
    size = math.prod(shape)
    block = np.zeros(size + 16, dtype=np.float32)
    start = -block.ctypes.data // 4 % 16
    return block[start : start + size].reshape(shape)


class Ahead:
    """Rows of a batch, a block of them with the inner products with all supports.

    Parameters
    ----------
    rows
        A batch of finite numbers.
    store
        The supports. Of those that come while rows are looked at, `renew` has to be told.
    """

    def __init__(self, rows: Rows, store: ColumnStore) -> None:
        self.rows = rows
        self.store = store
        self._first = self._stop = 0  # the block
        self._capacity = -1  # of the tiles

    def _make_tiles(self) -> None:
        self._capacity = self.store.capacity
        n_tiles = -(-self._capacity // self.store.tile)
        self._tiles = _aligned((n_tiles, self.rows.width, self.store.tile))
        self.store.fill_tiles(self._tiles, self.rows.width)
        self._dots = _aligned((BLOCK, n_tiles * self.store.tile))
        self._first = self._stop = 0

    def _make_block(self, first: int) -> None:
        """Scale rows as the store does, fill them up to a multiple of 8, and take the products."""
        self._first, self._stop = first, min(first + BLOCK, len(self.rows))
        indptr = self.rows.indptr[first : self._stop + 1]
        part = slice(indptr[0], indptr[-1])
        data, sizes = self.rows.data[part], np.diff(indptr)
        number = np.repeat(np.arange(len(sizes)), sizes)
        self._squares = np.bincount(number, data * data, minlength=len(sizes))
        norms = np.sqrt(self._squares)
        if not self.store.normalizes:
            norms = np.ldexp(1.0, np.frexp(norms)[1])
        norms[norms == 0.0] = 1.0
        starts = np.concatenate([[0], np.cumsum(-(-sizes // 8) * 8)])
        places = np.arange(len(data)) + (starts[:-1] - (indptr[:-1] - indptr[0]))[number]
        ids, values = np.zeros(starts[-1], np.int32), np.zeros(starts[-1], np.float32)
        ids[places] = self.rows.indices[part]
        values[places] = data / norms[number]
        self._scaled = (starts, ids, values)
        # Roundings one after the other: here a value of each side, a product, three pairs and a sum
        # for each eight features; in the one loop at most a sum for each feature.
        longest = int(sizes.max(initial=0))
        here, there = longest / 8 + 8, 0 if self.store.wide else longest + 4
        self._error = 1.01 * 2.0**-24 * (here + there)
        self._take_products(0, 0, len(self._tiles))

    def _take_products(self, start: int, first: int, stop: int) -> None:
        width = self.rows.width
        self.store.tile_dots(self._tiles, width, self._scaled, self._dots, start, first, stop)

    def renew(self, slot: int, i: int) -> None:
        """Take note that row `i` has brought a new support, in a slot."""
        if self.store.capacity != self._capacity:
            return  # the tiles will be made again
        self.store.refill_tile(self._tiles, self.rows.width, slot)
        if i + 1 < self._stop:
            tile = slot // self.store.tile
            self._take_products(i + 1 - self._first, tile, tile + 1)

    def scan(self, start: int, targets: NDArray[np.int32], classes: Classes, rule: Rule) -> int:
        """Pass over rows that surely are no update; return the number of the first other one.

        Parameters
        ----------
        start
            Number of the first row, no lower than it was before.
        targets
            Number of each row's own class; below 0 for the best, whose number is filled in.
        classes, rule
            As for `ColumnStore.scan_classes`.
        """
        if self.store.capacity != self._capacity:
            self._make_tiles()
        while start < len(self.rows):
            if not self._first <= start < self._stop:
                self._make_block(start)
            part = targets[self._first : self._stop]
            here = start - self._first
            here = self.store.screen_classes(
                self._dots, self._squares, here, part, classes, rule, self._error
            )
            start = self._first + here
            if start < self._stop:
                break
        return start


class Batch:
    """Rows of an array under several classes, decided in the way that pays.

    Parameters
    ----------
    rows
        A batch that nothing refuses.

    Notes
    -----
    Other threads have to be kept out: it knows of no change but its own.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._suits = (
            len(rows) >= LEAST_ROWS
            and 0 < rows.width <= INDEXED_WIDTH
            and len(rows.data) >= LEAST_DENSITY * len(rows) * rows.width
            and bool(np.isfinite(rows.data).all())
        )
        self._ahead: Ahead | None = None
        self._n_classes = 0
        self._passed = self._stopped = 0  # rows lately decided ahead, and those that were not
        self._resume = 0  # row before which the one loop serves better

    def pays(self, store: ColumnStore, n_supports: int) -> bool:
        """Whether blocks of rows are worth it."""
        return (
            self._suits
            and store.tile > 0
            and n_supports >= LEAST_SUPPORTS
            and 4 * self.rows.width * (store.capacity + store.tile) <= LARGEST
        )

    def scan(
        self,
        supports: Supports,
        start: int,
        targets: NDArray[np.int32],
        classes: Classes,
        rule: Rule,
    ) -> int:
        """Pass over rows that surely are no update; return the number of the first other one.

        Parameters
        ----------
        start
            Number of the first row: 0, or the one behind that which was learnt last.
        targets, classes, rule
            As for `ColumnStore.scan_classes`.
        """
        store = supports.store
        if start < self._resume or not self.pays(store, len(supports)):
            self._ahead = None
            return store.scan_classes(self.rows, start, targets, classes, rule)
        slot = supports.newest
        if self._ahead is None or len(classes.factors) != self._n_classes:
            self._ahead, self._n_classes = Ahead(self.rows, store), len(classes.factors)
        elif slot >= 0:
            self._ahead.renew(slot, start - 1)
        stop = self._ahead.scan(start, targets, classes, rule)
        self._count(stop - start, stop)
        return stop

    def _count(self, passed: int, stop: int) -> None:
        """Leave rows to the one loop, whose windows look ahead, where it gets a quarter of them."""
        self._passed += passed
        self._stopped += 1
        if self._passed + self._stopped >= 2 * BLOCK:
            if 3 * self._stopped > self._passed:
                self._resume = stop + RESUME
            self._passed = self._stopped = 0
