"""A batch's arguments to the store: rows of an array, and hypotheses over its slots."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["INDEXED_WIDTH", "Classes", "Row", "Rows"]

#: Arrays with at most this many columns get a table from their columns to the store's, 4 bytes a
#: column; wider ones, such as hashes to 2^31, are looked up by name.
INDEXED_WIDTH = 1 << 20


class Rows(NamedTuple):
    """A CSR matrix whose column `j` is the feature `j`, or ``names[j]`` if there are names."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float64]
    width: int
    names: Sequence[Hashable] | None = None

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def row(self, i: int) -> dict[Hashable, float]:
        """Return one row as a dict."""
        part = slice(self.indptr[i], self.indptr[i + 1])
        columns: Sequence[Hashable] = self.indices[part].tolist()
        if self.names is not None:
            columns = [self.names[j] for j in columns]  # type: ignore[call-overload]
        return dict(zip(columns, self.data[part].tolist(), strict=True))


class Row(Mapping[Hashable, float]):
    """A row of an array as an example, which the compiled store reads without a copy.

    Parameters
    ----------
    rows
        The array's rows.
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


class Classes(NamedTuple):
    """Hypotheses over the slots of one store.

    Parameters
    ----------
    numbers
        Number of each class by its label, in their order.
    weights
        A row for each, as for `ColumnStore.class_scores`.
    factors
        Factor of each one's scores; doubles.
    calibration
        Calibration of these scores.
    margin
        At least 0. An example causes no update if its class has more than this, beyond rounding.
    rivals
        True: more than each other class by the margin. False: a score above the margin, and those
        of all other classes below minus the margin.
    supports_may_update
        Whether an example that equals a support may cause an update in any case.
    """

    numbers: dict[Any, int]
    weights: Any
    factors: Any
    calibration: Any
    margin: float
    rivals: bool = False
    supports_may_update: bool = False
