"""Leaks: columns that count the rows, equal the label or tell it alone, and rows that repeat.

And numbers that may say that there is no value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.streams.labels import FEW
from drift.streams.table import forget

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Leaks"]

#: A column of more different values is no code of the label.
_CODES = 10_000
#: So many rows of each value, or class, are no chance.
_ROWS_EACH, _ROWS_OF_CLASS = 10, 3
#: Numbers that stand for a missing one, if they are far from all others.
_FILLS = (
    *(-200, 2**15 - 1, -(2**15), 2**16 - 1, 2**31 - 1, -(2**31)),
    *(sign * (10**k - 1) for k in range(2, 7) for sign in (1, -1)),
)
#: Where numbers repeat so often by chance, and none does, they are ids.
_BY_CHANCE = 10
#: So many steps in one direction, and none in the other, are no chance.
_STEPS = 10
#: Of more classes no bounds are kept.
_CLASSES = 100


class Leaks:
    """What the rows show once they are read: what counts them, repeats and tells the label."""

    _BLOCK = 1 << 14

    def __init__(self, values: NDArray[np.float64], codes: NDArray[np.int32]) -> None:
        n, width = values.shape
        self._table, self.n = values, n
        self._of_class = np.bincount(codes) if len(codes) else np.zeros(1, dtype=np.int64)
        bounded = len(self._of_class) if len(self._of_class) <= _CLASSES else 0
        #: Least and greatest value of each class, and how many it has; by column.
        self._least = np.full((bounded, width), np.inf)
        self._most = np.full((bounded, width), -np.inf)
        self._values = np.zeros((bounded, width), dtype=np.int64)
        #: How often each of the fills occurs, and the least and greatest of all other values.
        self._fills = np.zeros((len(_FILLS), width), dtype=np.int64)
        self._low, self._high = np.full(width, np.nan), np.full(width, np.nan)
        hashes, told = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
        first = np.array(values[: self._BLOCK])
        different = [len(np.unique(column)) for column in first.T]
        # Rows without a value in the column that tells rows apart best are not one row twice.
        telling = int(np.argmax(different))
        whole = np.ones(width, dtype=np.bool_)
        #: How often each column rises and falls from one row to the next.
        self._rises, self._falls = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64)
        #: The label of each value, of columns that may equal it.
        self.pairs: dict[int, dict[float, int]] = {at: {} for at in range(width)}
        #: How many rows have a value of each.
        self.present = np.zeros(width, dtype=np.int64)
        last: Any = None
        for start in range(0, n, self._BLOCK):
            block = np.array(values[start : start + self._BLOCK])
            labels = codes[start : start + self._BLOCK]
            whole &= (block == np.floor(block)).all(axis=0)
            steps = np.diff(block if last is None else np.vstack([last, block]), axis=0)
            self._rises += (steps > 0).sum(axis=0)
            self._falls += (steps < 0).sum(axis=0)
            last = block[-1:]
            self._pair(block, labels)
            self._look_for_fills(block)
            told[start : start + self._BLOCK] = ~np.isnan(block[:, telling])
            block[np.isnan(block)] = np.nan  # of several NaNs one
            rows = np.column_stack([block + 0.0, labels])  # minus zero is zero
            hashes[start : start + self._BLOCK] = [hash(row.tobytes()) for row in rows]
            forget(values)
        self._whole = whole
        always = np.maximum(self._rises, self._falls) == n - 1
        self.counting = set(np.flatnonzero(whole & always).tolist()) if n > 1 else set()
        repeated = int(told.sum()) - len(np.unique(hashes[told]))
        #: Rows that repeat an earlier one; 0: not more than do by chance.
        self.repeated = repeated if 2 * repeated * math.prod(different) > n * n else 0

    def _pair(self, block: NDArray[np.float64], labels: NDArray[np.int32]) -> None:
        present = ~np.isnan(block)
        self.present += present.sum(axis=0)
        if len(self._least):
            self._bound(block, present, labels)
        for at, known in list(self.pairs.items()):
            values, which = block[present[:, at], at].tolist(), labels[present[:, at]].tolist()
            for value, label in set(zip(values, which, strict=True)):
                if known.setdefault(value, label) != label or len(known) > _CODES:
                    del self.pairs[at]
                    break

    def _look_for_fills(self, block: NDArray[np.float64]) -> None:
        others = block.copy()
        low, high = np.fmin.reduce(block, axis=0), np.fmax.reduce(block, axis=0)
        for k, fill in enumerate(_FILLS):
            if not ((low <= fill) & (fill <= high)).any():
                continue
            found = block == fill
            self._fills[k] += found.sum(axis=0)
            others[found] = np.nan
        self._low = np.fmin(self._low, np.fmin.reduce(others, axis=0))
        self._high = np.fmax(self._high, np.fmax.reduce(others, axis=0))

    def fills(self, at: int, name: str) -> list[str]:
        """Say which numbers of a column may stand for missing ones.

        They occur more than once, or are below -200. They are further from all others than these
        are from each other, or negative where no other is.
        """
        low, high, total = self._low[at], self._high[at], self.present[at]
        return [
            f"{times:,} of {total:,} numbers of {name!r} are {fill}, far from the others "
            f"({low:.15g} to {high:.15g}): empty these cells if it says that there is no value"
            for fill, times in zip(_FILLS, self._fills[:, at].tolist(), strict=True)
            if (times > 1 or (times and fill < -200))
            and low < high
            and (fill > 2 * high - low or fill < 2 * low - high or fill < 0 <= low)
        ]

    def _bound(
        self, block: NDArray[np.float64], present: NDArray[np.bool_], labels: NDArray[np.int32]
    ) -> None:
        order = np.argsort(labels, kind="stable")
        classes, starts = np.unique(labels[order], return_index=True)
        block, present = block[order], present[order]
        least = np.minimum.reduceat(np.where(present, block, np.inf), starts, axis=0)
        most = np.maximum.reduceat(np.where(present, block, -np.inf), starts, axis=0)
        self._least[classes] = np.minimum(self._least[classes], least)
        self._most[classes] = np.maximum(self._most[classes], most)
        self._values[classes] += np.add.reduceat(present, starts, axis=0, dtype=np.int64)

    def _tells(self, at: int, *, numbered: bool) -> bool:
        """Whether a column alone tells each label: by its value, its range, or by having none."""
        if len(self._least) < 2 or self._of_class.min() < _ROWS_OF_CLASS:
            return False
        without = np.flatnonzero(self._values[:, at] < self._of_class)
        if len(without) > 1:
            return False
        values, some = self.pairs.get(at), np.flatnonzero(self._values[:, at])
        if values is not None and len(values) <= self.present[at] / _ROWS_EACH:
            return True
        order = some[np.argsort(self._least[some, at])]
        apart = self._most[order[:-1], at] < self._least[order[1:], at]
        # The numbers of categories have no order.
        return bool(apart.all()) and (len(some) == 1 or not numbered)

    def leak(self, at: int, classes: int, *, numbered: bool) -> str:
        """How a column leaks the label or the row number; empty: it does not, or too few rows.

        Categories are `numbered` as they come, so those that count up are all different.
        """
        if self.n < FEW:
            return ""
        if at in self.counting:
            how = "has another text in each row" if numbered else "counts up or down"
            return f"{how}, as an id does"
        if not numbered and self._names_rows(at):
            return "has another whole number in each row, as an id does"
        if len(self.pairs.get(at, ())) == classes > 1 and self.present[at] >= FEW:
            where = "" if self.present[at] == self.n else " wherever it has a value"
            return f"equals the label, value by value{where}"
        return "alone tells each label" if self._tells(at, numbered=numbered) else ""

    def order(self, at: int, name: str, *, numbered: bool, ordered: bool) -> list[str]:
        """Say that a column only rises or only falls, as times do; rows may be `ordered` by others.

        Categories are `numbered` as they come, so those that only rise do not come again.
        """
        rises, falls = int(self._rises[at]), int(self._falls[at])
        one_way = min(rises, falls) == 0 and max(rises, falls) >= _STEPS
        if not one_way or at in self.counting or self.n < FEW or self.present[at] < self.n:
            return []
        if numbered:
            return [f"{name!r} has texts that do not come again: drop it if it names times"]
        how = "rises" if falls else "falls"
        remedy = "drop it" if ordered else "order by it (time=, --time), or drop it"
        return [f"{name!r} never {how}: {remedy}, if it is a time"]

    def _names_rows(self, at: int) -> bool:
        """Whether whole numbers are all different, although so many of their range would repeat."""
        if not self._whole[at]:
            return False
        column = np.array(self._table[:, at])
        size = column.max() - column.min() + 1
        if size < self.n or self.n**2 / (2 * size) < _BY_CHANCE:
            return False  # without sorting it, which takes long
        return bool(len(np.unique(column)) == self.n)

    def numbers_rows(self, at: int) -> bool:
        """Whether a column is the index of a table, perhaps shuffled, or of several, one by one."""
        if at in self.counting:
            return True
        column = np.array(self._table[:, at])
        if self.n < 2 or not (column == np.floor(column)).all():
            return False
        ones = int((np.diff(column) == 1).sum())
        return bool(len(np.unique(column)) == self.n or 2 * ones > self.n)
