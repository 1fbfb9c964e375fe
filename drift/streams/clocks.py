"""When rows and their labels come: columns of times, or of numbers that stand for times.

Numbers are taken for seconds since 1970, or for milliseconds and finer units where all are of that
size. What looks like another way to write a time is refused or noted.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from drift.errors import ParameterError
from drift.streams.labels import row_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Clocks"]

#: Units of numbers since 1970 other than seconds, by how many are a second.
_UNITS = {1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}
#: Seconds of the years 1973 and 5138. Between them no number of one unit is one of another; beyond
#: the last one a moment is likelier in milliseconds.
_EARLIEST, _LATEST = 1e8, 1e11
#: Seconds beyond which a delay is likelier a time since 1970: 31 years.
_LONGEST = 1e9
_YEAR, _MONTH, _DAY = r"((?:19|20)\d\d)", r"(0[1-9]|1[0-2])", r"(0[1-9]|[12]\d|3[01])"
#: Such as 2026013113, with minutes and seconds or without; hardly any times since 1970 all read so.
_STAMP = re.compile(rf"{_YEAR}{_MONTH}{_DAY}(?:[01]\d|2[0-3])(?:[0-5]\d){{0,2}}").fullmatch
#: What numbers look like that are written as a time is, and what they are then.
_WRITTEN = (
    ("a time of", _STAMP),
    ("the day", re.compile(_YEAR + _MONTH + _DAY).fullmatch),
    ("the month", re.compile(_YEAR + _MONTH).fullmatch),
    ("the year", re.compile(_YEAR).fullmatch),
)
#: Day and month, or month and day, then the year: numbers that do not sort as days do.
_YEAR_LAST = re.compile(r"(0?[1-9]|[12]\d|3[01])(0[1-9]|[12]\d|3[01])(19|20)\d\d").fullmatch
#: Numbers that are looked at for such days.
_LOOKED_AT = 1000
#: What a spreadsheet calls the days of 1982 to 2064: their number, from this one.
_SERIALS, _FIRST_SERIAL = (30_000, 60_000), np.datetime64("1899-12-30")


class Clocks:
    """Columns of times, or of numbers that stand for times.

    Parameters
    ----------
    where
        Name of the source, for errors.
    kept
        Which rows of each of its blocks are read.
    notes
        Gets what is said of the columns.
    """

    def __init__(self, where: str, kept: list[NDArray[np.bool_]], notes: list[str]) -> None:
        self._where, self._kept, self._notes = where, kept, notes

    def _refuse(self, problem: str) -> NoReturn:
        raise ParameterError(f"{self._where}: {problem}")

    def complete(
        self, name: str, values: NDArray[np.float64], said: Sequence[str], *, sorts: bool = True
    ) -> NDArray[np.float64]:
        """Return values of a column if there is one in each row.

        Parameters
        ----------
        name
            Of the column.
        values
            In seconds, or as they stand.
        said
            What is said of the column: perhaps why one is missing.
        sorts
            Whether rows are ordered by it: numbers such as 31012026 are refused then, which look
            like days and do not sort as these do.
        """
        gone = np.flatnonzero(np.isnan(values))
        if len(gone):
            row, why = row_number(self._kept, gone[0]), f" ({'; '.join(said)})" if said else ""
            self._refuse(f"{name} is missing in row {row}{why}: mend the row, or delete it")
        some = [f"{one:.15g}" for one in np.unique(values[:_LOOKED_AT])] if sorts else []
        if len(some) > 1 and all(map(_YEAR_LAST, some)):
            self._refuse(
                f"numbers of {name} such as {some[0]} look like days, and do not sort as these do: "
                "write days such as 2026-01-31"
            )
        return values

    def seconds(self, name: str, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers since 1970 in seconds, and say which time one is; refuse other numbers."""
        scale, first = _scale_of(numbers), _ends(numbers)[0]
        if scale == 1 and (like := _looks(numbers)):
            self._refuse(
                f"numbers of {name} are seconds since 1970, and {first:.15g} looks like {like}: "
                "write times such as 2026-01-31 13:45"
            )
        time = str(np.datetime64(math.floor(first / scale), "s")).replace("T", " ")
        shown = f"{first:.0f}" if first.is_integer() else f"{first:.15g}"
        unit = _UNITS.get(scale, "seconds")
        note = f"numbers of {name!r} are {unit} since 1970: {shown} is {time}"
        if note not in self._notes:
            self._notes.append(note)
        return numbers / scale

    def moments(self, name: str, moments: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return when rows come in seconds, which may count from anywhere."""
        if _scale_of(moments) > 1:
            return self.seconds(name, moments)
        if like := _looks(moments):
            self._notes.append(
                f"moments of {name!r} are seconds: {moments[0]:.15g} looks like {like}"
            )
        return moments

    def delays(
        self,
        name: str,
        delays: NDArray[np.float64],
        moments: NDArray[np.float64] | None,
        *,
        are_times: bool,
        are_spans: bool,
    ) -> NDArray[np.float64]:
        """Return how long after its row each label comes.

        Parameters
        ----------
        name
            Of the column.
        delays
            Its values: times, spans of time in seconds, or numbers.
        moments
            When rows come; None: delays are counted in rows.
        are_times, are_spans
            Whether the values came as such.
        """
        if moments is None and (are_times or are_spans):
            what = "times at which labels come" if are_times else "spans of time"
            self._refuse(
                f"{name} has {what}: name the column of the rows' own times, too (moment=, "
                "--moment)"
            )
        if moments is not None:
            if not are_times and min(delays.min(), moments.min()) > _LONGEST:
                delays, are_times = self.seconds(name, delays), True
            if are_times:
                delays = delays - moments
        if delays.min() > _LONGEST:
            self._notes.append(
                f"delays of {name!r} are {'rows' if moments is None else 'seconds'}: "
                f"{delays[0]:.15g} looks like a time since 1970: write times such as "
                "2026-01-31 13:45 if it is one"
            )
        wrong = np.flatnonzero(delays < 0)
        if len(wrong):
            row = row_number(self._kept, wrong[0])
            self._refuse(f"{name} of row {row} has the label come before the row")
        return delays


def _ends(numbers: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the first, the least and the greatest of the numbers that are there."""
    there = numbers[~np.isnan(numbers)]
    return float(there[0]), float(there.min()), float(there.max())


def _scale_of(numbers: NDArray[np.float64]) -> float:
    """Return how many of the unit that numbers since 1970 have are a second."""
    ends = _ends(numbers)
    if all(_STAMP(f"{one:.15g}") for one in ends):
        return 1.0
    _, least, most = ends
    return next((n for n in _UNITS if _EARLIEST * n <= least and most < _LATEST * n), 1.0)


def _looks(numbers: NDArray[np.float64]) -> str:
    """What numbers look like rather than seconds since 1970; empty: they may be these."""
    first, least, most = ends = _ends(numbers)
    for what, written in _WRITTEN:
        found = [written(f"{one:.15g}") for one in ends]
        if found[0] and all(found):
            return f"{what} {'-'.join(found[0].groups())}"
    if abs(first) > _LATEST:
        return "milliseconds since 1970"
    if _SERIALS[0] <= least and most <= _SERIALS[1]:
        return f"the day {_FIRST_SERIAL + int(first)}, as spreadsheets count them"
    return ""
