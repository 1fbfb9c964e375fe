"""How a column of plain numbers is written, told from the bytes of its texts.

It is what `drift.streams.texts` tells of one text, for millions: regular expressions of pyarrow
would take a third of the time of reading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.streams.source import Written

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["written"]

_ZERO, _NINE, _POINT, _PLUS, _MINUS = b"09.+-"


def written(column: Any, values: NDArray[np.float64]) -> Written | None:
    """Return numbers and how they are written; None: some have to be looked at one by one.

    These have a plus or zeros in front, or an exponent where no number has a point.

    Parameters
    ----------
    column
        Texts of pyarrow, all of them plain numbers without blanks, or null.
    values
        The numbers.

    Examples
    --------
    >>> import numpy, pyarrow
    >>> written(pyarrow.array(["1.5", "1.234", None, "2"]), numpy.array([1.5, 1.234, numpy.nan, 2]))
    ... # doctest: +NORMALIZE_WHITESPACE
    Written(values=array([1.5 , 1.234, nan, 2. ]), points=array([ True, False, False, False]),
            grouped=array([False,  True, False, False]))
    >>> written(pyarrow.array(["007", "2"]), numpy.array([7, 2])) is None
    True
    """
    points, grouped = np.zeros((2, len(column)), dtype=np.bool_)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset :][: len(column) + 1]
    rows = np.flatnonzero(np.diff(ends))
    if not len(rows):
        return Written(values, points, grouped)
    letters = np.frombuffer(data, np.uint8)[: ends[-1]]
    starts, ends = ends[:-1][rows], ends[1:][rows]
    if (letters[starts] == _PLUS).any():
        return None
    starts = starts + (letters[starts] == _MINUS)
    first, second = letters[starts], letters.take(starts + 1, mode="clip")
    if ((first == _ZERO) & (ends - starts > 1) & _are_digits(second)).any():
        return None
    used = letters[starts[0] :]
    there = np.flatnonzero(used == _POINT)
    if not len(there):
        has_exponent = used.max() > _NINE
        return None if has_exponent else Written(values, points, grouped)
    all_have = len(there) == len(rows)  # as none has two
    points[rows if all_have else rows[ends.searchsorted(there + starts[0], side="right")]] = True
    # 1.234 has the point before its last three digits, and no exponent.
    at = np.flatnonzero((ends - starts > 4) & (ends - starts < 8) & _are_digits(first))
    at = at[(letters[ends[at] - 4] == _POINT) & (first[at] != _ZERO)]
    at = at[_are_digits(letters[ends[at] - 3]) & _are_digits(letters[ends[at] - 2])]
    grouped[rows[at]] = True
    return Written(values, points & ~grouped, grouped)


def _are_digits(letters: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return (letters >= _ZERO) & (letters <= _NINE)
