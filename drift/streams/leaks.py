"""Leaks: columns that count the rows or equal the label, and rows that come again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.streams.labels import FEW
from drift.streams.table import forget

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Leaks"]


class Leaks:
    """What the rows show once they are read: what counts them, repeats and equals the label."""

    _BLOCK = 1 << 14

    def __init__(self, values: NDArray[np.float64], codes: NDArray[np.int32]) -> None:
        n, width = values.shape
        self.n = n
        hashes, told = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
        telling = self._telling(values)
        rising, falling = np.ones(width, dtype=np.bool_), np.ones(width, dtype=np.bool_)
        #: The label of each value, of columns that may equal it.
        self.pairs: dict[int, dict[float, int]] = {at: {} for at in range(width)}
        #: How many rows have a value of each.
        self.present = np.zeros(width, dtype=np.int64)
        last: Any = None
        for start in range(0, n, self._BLOCK):
            block = np.array(values[start : start + self._BLOCK])
            labels = codes[start : start + self._BLOCK]
            whole = (block == np.floor(block)).all(axis=0)
            steps = np.diff(block if last is None else np.vstack([last, block]), axis=0)
            rising &= whole & (steps > 0).all(axis=0)
            falling &= whole & (steps < 0).all(axis=0)
            last = block[-1:]
            self._pair(block, labels)
            if telling is not None:
                told[start : start + self._BLOCK] = ~np.isnan(block[:, telling])
            block[np.isnan(block)] = np.nan  # of several NaNs one
            rows = np.column_stack([block + 0.0, labels])  # minus zero is zero
            hashes[start : start + self._BLOCK] = [hash(row.tobytes()) for row in rows]
            forget(values)
        self.counting = set(np.flatnonzero(rising | falling).tolist()) if n > 1 else set()
        self.repeated = int(told.sum()) - len(np.unique(hashes[told]))

    def _telling(self, values: NDArray[np.float64]) -> int | None:
        """Return the column that tells rows apart best; None: too few combinations for all rows.

        Rows that repeat by chance, or without a value there, are no rows that an export has twice.
        """
        first = np.array(values[: self._BLOCK])
        different = [len(np.unique(column)) for column in first.T]
        return int(np.argmax(different)) if math.prod(different) >= len(first) else None

    def _pair(self, block: NDArray[np.float64], labels: NDArray[np.int32]) -> None:
        present = ~np.isnan(block)
        self.present += present.sum(axis=0)
        for at, known in list(self.pairs.items()):
            values, which = block[present[:, at], at].tolist(), labels[present[:, at]].tolist()
            for value, label in set(zip(values, which, strict=True)):
                if known.setdefault(value, label) != label:
                    del self.pairs[at]
                    break

    def leak(self, at: int, classes: int, *, numbered: bool) -> str:
        """How a column leaks the label or the row number; empty: it does not, or too few rows.

        Categories are `numbered` as they come, so those that count up are all different.
        """
        if self.n < FEW:
            return ""
        if at in self.counting:
            how = "has another text in each row" if numbered else "counts up or down"
            return f"{how}, as an id does"
        if len(self.pairs.get(at, ())) == classes > 1 and self.present[at] >= FEW:
            where = "" if self.present[at] == self.n else " wherever it has a value"
            return f"equals the label, value by value{where}"
        return ""
