"""Rows of an array, a sparse matrix or a numeric data frame, each of them an example."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["INDEXED_WIDTH", "MAX_DISTINCT", "Row", "Rows", "numbered_objects", "rows_to_check"]

#: For arrays of at most this many columns, the store has a table from the array's columns to its
#: own, of 4 bytes each. Columns of wider arrays, such as hashes to 2^31, are looked up by name.
INDEXED_WIDTH = 1 << 20

#: `numbered_objects` gives up if there are more distinct objects than this.
MAX_DISTINCT = 16


class Rows:
    """The rows of a matrix. Compiled code reads them where they are; a NaN is an absent value.

    Parameters
    ----------
    values
        A 2-d array of float64 or float32 with any strides. Of a sparse matrix, a 1-d array of
        float64: the values of the first row, then those of the second, and so on.
    width
        Number of columns.
    indptr, indices
        Of a sparse matrix: where each row starts in `values`, and the column of each value. A
        column stands in a row at most once.
    names
        Features of the columns, all different; None for their numbers.
    """

    __slots__ = ("indices", "indptr", "names", "values", "view", "width")

    def __init__(
        self,
        values: NDArray[np.floating[Any]],
        width: int,
        indptr: NDArray[np.int64] | None = None,
        indices: NDArray[np.int32] | None = None,
        names: Sequence[Hashable] | None = None,
    ) -> None:
        self.values = values
        self.width = width
        self.indptr = indptr
        self.indices = indices
        self.names = names
        self.view: Any = None  # of compiled code, which keeps its pointers here

    def __len__(self) -> int:
        return len(self.values) if self.indptr is None else len(self.indptr) - 1

    def __getitem__(self, i: int) -> Row:
        if not 0 <= i < len(self):
            raise IndexError(f"row {i} of {len(self)}")
        return Row(self, i)

    def row(self, i: int) -> dict[Hashable, float]:
        """Return one row as a dict."""
        columns: Sequence[Hashable]
        if self.indptr is None or self.indices is None:
            values, columns = self.values[i], range(self.width)
        else:
            part = slice(self.indptr[i], self.indptr[i + 1])
            values, columns = self.values[part], self.indices[part].tolist()
        if self.names is not None:
            columns = [self.names[j] for j in columns]  # type: ignore[call-overload]
        return dict(zip(columns, values.tolist(), strict=True))


class Row(Mapping[Hashable, float]):
    """A row as an example, which compiled code reads without a dict.

    Parameters
    ----------
    rows
        The rows.
    i
        Number of the row.
    """

    __slots__ = ("i", "rows")

    def __init__(self, rows: Rows, i: int) -> None:
        self.rows = rows
        self.i = i

    def _dict(self) -> dict[Any, float]:
        return self.rows.row(self.i)

    def __getitem__(self, name: Hashable) -> float:
        return self._dict()[name]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._dict())

    def __len__(self) -> int:
        return len(self._dict())

    def items(self) -> Any:
        """Names and values."""
        return self._dict().items()


def rows_to_check(rows: Rows | list[Any], largest: float) -> list[int]:
    """Return the indices of the rows that a model might refuse. Some of these rows may be fine.

    A row is left out if the squares of its values, without NaN, have a sum of at most `largest`.
    This function leaves out only dicts of floats. The compiled one also leaves out rows of arrays,
    and dicts of floats, ints and bools whose names are strings or ints.
    """
    found = []
    for i in range(len(rows)):
        x = rows.row(i) if isinstance(rows, Rows) else rows[i]
        plain = type(x) is dict and {*map(type, x.values())} <= {float}
        if not (plain and sum(v * v for v in x.values() if v == v) <= largest):
            found.append(i)
    return found


def numbered_objects(values: list[Any]) -> tuple[list[Any], bytearray] | None:
    """Return the distinct objects among values, in order, and the number of each value's object.

    Objects are compared by identity, so equal ones may have several numbers. None if there are more
    than `MAX_DISTINCT`.

    Examples
    --------
    >>> distinct, numbers = numbered_objects([True, False, True])
    >>> distinct, list(numbers)
    ([True, False], [0, 1, 0])
    """
    distinct = {id(value): value for value in values}
    if len(distinct) > MAX_DISTINCT:
        return None
    numbers = {key: number for number, key in enumerate(distinct)}
    return list(distinct.values()), bytearray(numbers[id(value)] for value in values)
