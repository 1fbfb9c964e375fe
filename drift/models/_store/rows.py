"""What a store is given of a batch: rows of an array, and the hypotheses over its slots."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["INDEXED_WIDTH", "Classes", "Row", "Rows"]

#: Arrays with at most this many columns get a table from column to place in the store (4 bytes a
#: column); wider ones, hashed to 2^31 say, are looked up by name.
INDEXED_WIDTH = 1 << 20


class Rows(NamedTuple):
    """A CSR matrix whose column `j` is the feature `j`, or ``names[j]`` where there are names."""

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
    """A row of an array as an example, which the compiled store reads where it lies.

    Parameters
    ----------
    rows
        The array's rows.
    i
        Number of this one.
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
        """Names and values, from one dict."""
        return self._dict().items()


class Classes(NamedTuple):
    """Hypotheses over the slots of one store.

    Parameters
    ----------
    numbers
        Number of each class by its label, in their order.
    weights
        A row for each, as `ColumnStore.class_scores` takes them.
    factors
        What each one's scores are to be multiplied by; doubles.
    calibration
        What turns these scores into probabilities.
    margin
        At least 0: an example whose class scores more than that, beyond rounding, is no update,
    rivals
        if it is that much above each other class; else if the others score less than its opposite.
    supports_may_update
        An example that may be a support is looked at in any case.
    """

    numbers: dict[Any, int]
    weights: Any
    factors: Any
    calibration: Any
    margin: float
    rivals: bool = False
    supports_may_update: bool = False
