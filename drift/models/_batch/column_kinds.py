"""The columns of a batch, which must be of the same kind as those of the batch before."""

from __future__ import annotations

from collections.abc import Hashable

from drift.errors import ParameterError
from drift.models._base.examples import index_of

__all__ = ["Columns", "refuse_other_columns"]

#: The columns of an array, which are numbers, or the names of a data frame's columns.
Columns = range | frozenset[Hashable]


def refuse_other_columns(now: Columns, before: Columns) -> None:
    """Refuse an array after a data frame with names, and a data frame after an array.

    No feature of it was ever learnt, so that each row would be predicted as an empty example. Data
    frames may have different columns, as single examples may have different features.
    """
    if not (now and before) or isinstance(now, range) is isinstance(before, range):
        return
    if not _in_common(now, before):
        raise ParameterError(
            f"X has the features {_some(now)}, and the last batch learnt had {_some(before)}: "
            "the features of an array are the numbers of its columns; pass data frames or arrays, "
            "not both"
        )


def _in_common(a: Columns, b: Columns) -> bool:
    """Whether the number of some column of an array is among the names of a data frame.

    >>> _in_common(range(3), frozenset(["a", 2])), _in_common(range(3), frozenset(["0"]))
    (True, False)
    """
    numbers, names = (a, b) if isinstance(a, range) else (b, a)
    return any(index_of(name) in numbers for name in names)


def _some(columns: Columns) -> str:
    """Name a few of the columns, for an error message."""
    if isinstance(columns, range):
        return f"0 to {len(columns) - 1}" if len(columns) > 1 else "0"
    few = sorted(map(repr, columns))[:3]
    return ", ".join([*few, "..."] if len(columns) > len(few) else few)
