"""Rows, block by block, as `drift.streams.reading` asks a source for them.

| what | source |
|---|---|
| CSV, TSV and other separated text | `drift.streams.separated` |
| Parquet, data frames | `drift.streams.frames` |
| JSON lines, JSON | `drift.streams.json_rows` |
| ARFF | `drift.streams.arff` |
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["EXACT", "ROWS", "Seconds", "Source", "Written", "is_beyond", "pyarrow"]

#: Rows of a block.
ROWS = 1 << 14
#: Beyond it floats lose digits of whole numbers.
EXACT = 1 << 53


class Seconds(NamedTuple):
    """Times as a library reads them, in seconds since 1970, and the zone that they are of."""

    values: NDArray[np.float64]
    zone: str | None = None


class Written(NamedTuple):
    """Numbers that are texts, NaN where none is, and how these are written.

    Attributes
    ----------
    points
        Which have a decimal point.
    grouped
        Which have a point that may stand between thousands, such as 1.234, and no sign but a minus.
    """

    values: NDArray[np.float64]
    points: NDArray[np.bool_]
    grouped: NDArray[np.bool_]

    def chosen(self, which: NDArray[np.bool_]) -> Written:
        """Return those of some rows."""
        return Written(self.values[which], self.points[which], self.grouped[which])


class Source:
    """Rows that can be read more than once.

    Parameters
    ----------
    name
        In results and errors.

    Attributes
    ----------
    names
        Of the columns.
    categories
        Columns that the source declares to be categories.
    commas
        Whether decimal commas are likely.
    voters
        How many columns of decimal commas tell that points of the other columns may stand between
        thousands. Where commas may have separated cells, one column may be of pairs such as "1,75".
    hint
        What to say, too, where a column is not there.
    notes
        On the source itself.
    """

    commas = False
    voters = 2
    hint = ""

    def __init__(self, name: str) -> None:
        self.name = name
        self.names: list[str] = []
        self.categories: Collection[str] = ()
        self.notes: list[str] = []

    def blocks(self, names: Sequence[str], spelled: Collection[str]) -> Iterator[list[Any]]:
        """Yield the cells of these columns, block by block.

        Parameters
        ----------
        names
            Of the columns.
        spelled
            Those whose texts are wanted as they are written, even if all are numbers.

        Yields
        ------
        list
            Of each column an array of numbers, with NaN for what is missing, `Written`, `Seconds`,
            or a list of anything.
        """
        raise NotImplementedError


def pyarrow(module: str) -> Any:
    """Return a module of pyarrow, an extra."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError("pyarrow", "compare") from None


def is_beyond(values: NDArray[np.float64]) -> bool:
    """Whether there are numbers so large that whole ones may have lost digits."""
    return bool((np.abs(values) >= EXACT).any())
