"""What a column is: numbers, times or categories, decided once, from all of its cells.

`decided` makes a `Decision` of a `drift.streams.tally.Tally`: the kind of the column, how a cell is
read, and notes that quote what was read otherwise than it stands or counts as missing.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from drift._checks import counted
from drift._values import is_missing, seconds_since_1970
from drift.errors import ParameterError
from drift.streams import texts
from drift.streams.likely import likely_of
from drift.streams.notes import QUOTED, quoted, twins
from drift.streams.stream import are_categories
from drift.streams.tally import is_usable, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from drift.streams.tally import Found, Tally

__all__ = ["Decision", "decided", "left_out", "many_texts"]

#: So many categories or fewer are no surprise, nor are more with so many rows each.
_MANY = 50
_ROWS_EACH = 10
_DIGITS = re.compile(r"[\d.,]+").sub


class Decision(NamedTuple):
    """What a column is.

    Attributes
    ----------
    kind
        ``"number"``, ``"time"``, ``"category"``, or empty if it is left out.
    read
        Returns a cell as a number, in seconds or as that of its category; NaN: it is missing.
    categories
        Their numbers, filled as cells are read.
    notes
        What was read otherwise than it stands, counts as missing or is left out.
    """

    kind: str
    read: Callable[[Any], float]
    categories: dict[str, int] | None = None
    notes: tuple[str, ...] = ()


def decided(
    name: str,
    tally: Tally,
    *,
    declared: bool = False,
    point: str = ".",
    clock: bool = False,
) -> Decision:
    """Decide what a column is.

    It is what most of its cells are, except for those that say that there is no value.

    Parameters
    ----------
    name
        Of the column.
    tally
        Of all its cells.
    declared
        Whether its source declares that it has categories; then no text of it is missing.
    point
        The decimal separator of other columns; empty: it may be the comma, but none tells.
    clock
        Whether it is asked for as a time.

    Raises
    ------
    ParameterError
        It is asked for as a time, and day and month cannot be told apart.

    Examples
    --------
    >>> from drift.streams.columns import decided
    >>> from drift.streams.tally import Tally
    >>> tally = Tally()
    >>> _ = tally.add(["1.5", "2", "-", None])
    >>> decision = decided("x", tally)
    >>> decision.kind, decision.read("1.5"), decision.notes
    ('number', 1.5, ("2 of 3 values of 'x' are numbers; '-' (1) counts as missing",))
    """
    if tally.parts:
        return left_out(name, "has values of several parts: make a column of each part")
    if tally.is_empty and not clock:
        return Decision("", lambda _: math.nan)
    column = _Column(name, tally, point)
    if declared:
        return column.categories(declared=True)
    return column.times(clock=clock) or column.numbers() or column.categories()


def left_out(name: str, why: str) -> Decision:
    """Return the decision that a column is no feature."""
    return Decision("", lambda _: math.nan, notes=(f"left out: {name!r} {why}",))


class _Column:
    """A column that is to be decided: what it is, if most of its cells are that."""

    def __init__(self, name: str, tally: Tally, point: str) -> None:
        self.name, self.tally, self.point = name, tally, point
        #: Texts that are no plain numbers, and do not say that there is none.
        self.odd = {text: n for text, n in tally.texts.items() if not texts.is_missing_number(text)}
        self.n_odd = sum(self.odd.values())
        #: Cells with a value, if the column is one of numbers or times.
        self.total = tally.plain + tally.seconds + self.n_odd

    # --- times -----------------------------------------------------------------------------------

    def times(self, *, clock: bool) -> Decision | None:
        """Return how times are read; None: most cells are none."""
        name, tally = self.name, self.tally
        if tally.seconds + self.n_odd <= tally.plain:
            return None
        read = texts.times_of(self.odd)
        if isinstance(read, str):
            if clock:
                raise ParameterError(f"{name}: {read}")
            return left_out(name, f"has times, and {read}")
        times = {text: n for text, n in self.odd.items() if read(text) is not None}
        n_times = tally.seconds + sum(times.values())
        if 2 * n_times <= self.total:
            return None

        def cell(value: Any) -> float:
            if is_missing(value):
                return math.nan
            if isinstance(value, dt.date):
                return seconds_since_1970(value)
            seconds = read(texts.text_of(value))
            return math.nan if seconds is None else seconds

        notes = self._missing(times, n_times, "times", {"numbers": tally.plain})
        zoned = tally.zoned + sum(n for text, n in times.items() if texts.has_zone(text))
        if 0 < zoned < n_times:
            rest = n_times - zoned
            notes += [f"{rest:,} of {n_times:,} times of {name!r} have no zone: they are in UTC"]
        return Decision("time", cell, notes=tuple(notes))

    # --- numbers ---------------------------------------------------------------------------------

    def numbers(self) -> Decision | None:
        """Return how numbers are read; None: most cells are none.

        True and false are 1 and 0 by themselves and beside numbers, but no numbers beside texts.
        """
        tally = self.tally
        style = texts.numbers_of(self.odd, points=tally.points, commas=self.point != ".")
        dressed = {text: n for text, n in self.odd.items() if is_usable(style.read(text))}
        n_read = tally.plain + sum(dressed.values())
        n_bools = tally.bools + sum(n for text, n in dressed.items() if text in texts.BOOLS)
        n_cells = tally.plain + self.n_odd
        sure = n_read if n_read == n_cells else n_read - n_bools
        if self.odd and 2 * sure <= self.total:
            return None
        # One column has one decimal separator: beside 12,5 the text 1.500 is no 1.5.
        alone = self.point != "." and tally.grouped.times and not tally.points and not dressed
        commas = style.point == "," and (bool(dressed) or (alone and self.point == ","))
        read = _of_texts(*([style.read] if commas else [texts.plain_number, style.read]))
        notes = []
        if dressed and n_bools < n_cells:
            shown = f"written otherwise: {_each_form(dressed, read)}"
            if commas and tally.grouped.times:
                shown += f"; so {tally.grouped.first!r} is {read(tally.grouped.first):.15g}"
            notes.append(self._numbers(sum(dressed.values()), n_read, f"are {shown}"))
        if alone:
            notes += self._spelled(
                tally.grouped, n_read, "may have a point between thousands", read
            )
        notes += self._missing(dressed, n_read, "numbers", {"times": tally.seconds})
        notes += self._spelled(tally.padded, n_read, "have zeros in front", read)
        notes += self._spelled(tally.rounded, n_read, "have too many digits", read, ".0f")
        notes += self._spelled(tally.codes, n_read, "have an exponent, as codes may", read)
        return Decision("number", read, notes=tuple(notes))

    def _numbers(self, n: int, total: int, what: str) -> str:
        return f"{n:,} of {total:,} numbers of {self.name!r} {what}"

    def _spelled(
        self, found: Found, total: int, what: str, read: Callable[[Any], float], form: str = ".15g"
    ) -> list[str]:
        """Say how numbers are written, and quote one beside the number that it is."""
        if not found.times:
            return []
        shown = f"{what}: {found.first!r} is {read(found.first):{form}}"
        return [self._numbers(found.times, total, shown)]

    # --- categories ------------------------------------------------------------------------------

    def categories(self, *, declared: bool = False) -> Decision:
        """Return how categories are read; one that is declared is one, be it called NA."""
        name, tally = self.name, self.tally
        present = {
            text: n
            for text, n in tally.texts.items()
            if declared or not texts.is_missing_text(text)
        }
        gone = {text: n for text, n in tally.texts.items() if text not in present}
        total = sum(present.values()) + tally.plain + tally.seconds
        likely = None if declared else likely_of(present, total)
        if not declared and not are_categories(len(present), total):
            what = f"{_different(len(present), total)}, no categories: {quoted(present)}"
            return left_out(name, f"{what}: {likely.remedy}" if likely else what)
        known: dict[str, int] = {}

        def cell(value: Any) -> float:
            if is_missing(value):
                return math.nan
            text = texts.text_of(value).strip()
            if not text or (not declared and texts.is_missing_text(text)):
                return math.nan
            return float(known.setdefault(text, len(known)))

        notes = [f"{quoted(gone)} {_count(gone)} as missing in {name!r}"] if gone else []
        if not declared and (n_numbers := tally.plain - tally.bools):
            found = f"{n_numbers:,} of {total:,} values of {name!r}"
            notes.append(
                f"{found} are numbers, and count as categories, as the others do: {quoted(present)}"
            )
        if not declared:
            notes += twins(list(present), texts.likeness, f"categories of {name!r}")
        if likely:
            such = f"{sum(likely.texts.values()):,} of {total:,} values of {name!r} {likely.what}"
            notes.append(
                f"{such}, and count as categories: {quoted(likely.texts)}: {likely.remedy}"
            )
        return Decision("category", cell, known, tuple(notes))

    def _missing(
        self, read: Mapping[str, int], n_read: int, what: str, others: Mapping[str, int]
    ) -> list[str]:
        """Say which cells count as missing: texts that are not `read`, and `others`."""
        gone = {text: n for text, n in self.tally.texts.items() if text not in read}
        gone |= {kind: n for kind, n in others.items() if n}
        if not gone:
            return []
        found = f"{n_read:,} of {n_read + sum(gone.values()):,} values of {self.name!r} are {what}"
        return [f"{found}; {quoted(gone)} {_count(gone)} as missing"]


def _of_texts(*reads: Callable[[str], float | None]) -> Callable[[Any], float]:
    """Return what reads any cell of a column of numbers, texts by the first that can."""

    def cell(value: Any) -> float:
        if is_missing(value):
            return math.nan
        found = None if isinstance(value, str) else value_of(value)
        if found is None:
            text = texts.text_of(value)
            found = next((v for read in reads if (v := read(text)) is not None), None)
        return found if found is not None and is_usable(found) else math.nan

    return cell


def many_texts(name: str, categories: Sequence[str], total: int) -> tuple[str, ...]:
    """Return a note on a column of categories that are so many that it may name rows.

    Parameters
    ----------
    name
        Of the column.
    categories
        All of them.
    total
        Number of rows with one.

    Examples
    --------
    >>> from drift.streams.columns import many_texts
    >>> users = [f"user {i}" for i in range(400)]
    >>> print(*many_texts("user", users, 3000))  # doctest: +NORMALIZE_WHITESPACE
    'user' has 400 different texts in 3,000 rows, 'user 0', 'user 1', 'user 2', ...:
    drop it (drop=, --drop) if it names rows, not kinds of them
    >>> many_texts("user", users[:40], 300)
    ()
    """
    if len(categories) <= max(_MANY, total / _ROWS_EACH):
        return ()
    shown = ", ".join(f"{text[:40]!r}" for text in categories[:QUOTED])
    found = f"{name!r} {_different(len(categories), total)}, {shown}, ..."
    return (f"{found}: drop it (drop=, --drop) if it names rows, not kinds of them",)


def _different(texts_: int, rows: int) -> str:
    return f"has {texts_:,} different texts in {counted(rows, 'row')}"


def _count(texts_: Mapping[str, int]) -> str:
    return "counts" if len(texts_) == 1 else "count"


def _each_form(dressed: Mapping[str, int], read: Callable[[Any], float]) -> str:
    """Quote texts with the numbers that they are, first one of each form: dollars, euros."""
    ranked = sorted(dressed, key=dressed.__getitem__, reverse=True)
    forms = {_DIGITS("", text): text for text in reversed(ranked)}
    first = [*sorted(forms.values(), key=ranked.index), *ranked]
    quotes = list(dict.fromkeys(first))[:QUOTED]
    return ", ".join(f"{text[:40]!r} as {read(text):.15g}" for text in quotes)
