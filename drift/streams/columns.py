"""What a column is: numbers, times or categories, decided once, from all of its cells.

A `Tally` counts what the cells are. `decided` makes of it a `Decision`: the kind of the column, how
a cell is read, and notes that quote what was read otherwise than it stands or counts as missing.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift._checks import counted
from drift._values import is_missing, number, seconds_since_1970
from drift.errors import ParameterError
from drift.streams import texts
from drift.streams.sources import EXACT, Seconds
from drift.streams.stream import are_categories

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "Decision",
    "Tally",
    "decided",
    "left_out",
    "many_texts",
    "named",
    "quoted",
    "twins",
    "value_of",
]

#: Beyond it models take no value: its square, times a few, is finite.
_LARGEST = 1e150
#: So many categories or fewer are no surprise, nor are more with so many rows each.
_MANY = 50
_ROWS_EACH = 10
#: What texts that are no numbers and no times may be, and what to do then. Each has a number, of
#: which there must be several, and a unit, of which there are few.
_LIKELY = (
    # 5 kg, <0.1, 1.5K
    (
        re.compile(
            r"(?:[<>=\u2264\u2265~\u2248'\"]*)\s*(?P<number>[+-]?\d+(?:,\d{3})*(?:[.,]\d+)?)"
            r"\s*(?P<unit>(?:[^\W\d_]|[\u00b0%\"'])[^\W_]{0,11}(?:/[^\W_]{1,5})?)?"
        ).fullmatch,
        "are numbers with a unit or a sign",
        "make numbers of them if they are amounts",
    ),
    # 2:30, 0:05:12.5, 9:30 pm, 3 days 04:05:06
    (
        re.compile(
            r"(?P<number>[+-]?(?:\d+ days?,? )?[+-]?\d{1,3}:\d\d(?::\d\d(?:[.,]\d+)?)?)"
            r"(?P<unit>\s*[AaPp]\.?[Mm]\.?)?"
        ).fullmatch,
        "look like times of a day or spans of time",
        "make numbers of them, of seconds say, if they are",
    ),
    # 01-02-26, 2026-01, 2026-W05, 2026Q1, 01/2026, Jan 5 10:00:00
    (
        re.compile(
            r"(?P<number>\d\d?-\d\d?-\d\d(?:[ T].*)?|(?:19|20)\d\d[-/ ]?(?:\d\d|W\d\d|Q[1-4])"
            r"|\d\d?/(?:19|20)\d\d|[A-Za-z]{3} +\d\d? \d\d:\d\d:\d\d)(?P<unit>)"
        ).fullmatch,
        "look like times, of a form that is not read",
        "write them as 2026-01-31 13:45 if they are",
    ),
)
#: Fewer different numbers are likelier kinds of something.
_FEW = 5
_DIGITS = re.compile(r"[\d.,]+").sub
#: Texts that are looked at for numbers, before all are.
_TRIED = 100
#: Cells that a note quotes, and columns that it names.
_QUOTED = 3
_NAMED = 8


def value_of(cell: Any) -> float | None:
    """Return a cell that is no text as a number, a span of time in seconds; None: it is none."""
    if isinstance(cell, dt.timedelta):
        return cell.total_seconds()
    try:
        return number(cell)
    except (TypeError, ValueError):
        return None
    except OverflowError:
        return math.inf


def _is_usable(value: float | None) -> bool:
    return value is not None and abs(value) <= _LARGEST


def _is_number(text: str) -> bool:
    """Whether a text is a number by itself, of points or of commas."""
    points, commas = texts.Numbers("."), texts.Numbers(",")
    return points.read(text) is not None or ("," in text and commas.read(text) is not None)


@dataclass
class Tally:
    """What the cells of a column are."""

    #: Numbers and bools of a library, and texts that are plain numbers.
    numbers: int = 0
    #: Spans of time among the numbers, each its seconds.
    spans: int = 0
    bools: int = 0
    spelled: int = 0
    #: Times of a library, and how many of them that stand beside texts have a zone.
    seconds: int = 0
    zoned: int = 0
    #: A zone other than UTC, or a time of one.
    offset: str = ""
    #: Values of several parts.
    parts: int = 0
    #: Plain numbers with a decimal point, and those whose point may stand between thousands.
    points: int = 0
    grouped: int = 0
    group: str = ""
    #: Plain numbers with zeros in front, and the first of them.
    padded: int = 0
    code: str = ""
    #: Whole numbers that are another as a float, and the first of them.
    rounded: int = 0
    digits: str = ""
    #: All other cells, as texts without blanks around; blank ones are not counted.
    texts: Counter[str] = field(default_factory=Counter)
    #: Whether all cells so far came as arrays.
    ready: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether no cell has a value."""
        return not (self.plain or self.seconds or self.parts or self.texts)

    def votes(self) -> dict[str, int]:
        """Count the numbers that can have one decimal separator alone, by it.

        A column of texts has none but those that are numbers as they stand.
        """
        votes = {".": self.points}
        if not any(map(_is_number, islice(self.texts, _TRIED))):
            return votes
        numbers = sum(n for text, n in self.texts.items() if _is_number(text))
        if 2 * numbers <= sum(self.texts.values()) - self.plain:
            return votes
        return Counter(votes) + Counter(texts.votes_of(self.texts))

    @property
    def has_both_marks(self) -> bool:
        """Whether a point stands, or may stand, between thousands where commas are decimal."""
        return self.grouped > 0 or any(
            "." in text and texts.votes_of({text: 1})[","] for text in self.texts if "," in text
        )

    @property
    def plain(self) -> int:
        """Number of cells that are numbers as they stand."""
        return self.numbers + self.bools + self.spelled

    def add(self, cells: Any) -> Any:
        """Count cells; return them as numbers or seconds if they came as such, else NaN.

        Parameters
        ----------
        cells
            As a block of a `drift.streams.sources.Source` has them.
        """
        if isinstance(cells, Seconds):
            self.seconds += int(np.isfinite(cells.values).sum())
            self.offset = "" if cells.zone in {None, "UTC"} else str(cells.zone)
            return cells.values
        if isinstance(cells, np.ndarray):
            usable = np.abs(cells) <= _LARGEST
            self.numbers += int(usable.sum())
            self.points += int((np.floor(cells) != cells)[usable].sum())
            self.texts.update(f"{v:g}" for v in cells[~usable & ~np.isnan(cells)].tolist())
            return np.where(usable, cells, np.nan)
        self.ready = False
        if set(map(type, cells)) <= {str, NoneType}:
            for text, times in Counter(cells).items():
                if text is not None:
                    self._count(text, times)
        else:
            for cell in cells:
                self._see(cell)
        return np.nan

    def _count(self, text: str, times: int = 1) -> None:
        text = text.strip()
        value = texts.plain_number(text)
        if value is not None and _is_usable(value):
            self.spelled += times
            if abs(value) >= EXACT and text.lstrip("+-").isdecimal():
                self._check_digits(int(text), value, times)
            if texts.is_padded(text):
                self.padded += times
                self.code = self.code or text
            if "." in text and not texts.is_grouped(text):
                self.points += times
            elif "." in text:
                self.grouped += times
                self.group = self.group or text
        elif text:
            self.texts[text] += times

    def _see(self, cell: Any) -> None:
        if is_missing(cell):
            return
        if isinstance(cell, str):
            self._count(cell)
        elif isinstance(cell, bool | np.bool_):
            self.bools += 1
        elif isinstance(cell, dt.date):
            self.seconds += 1
            self.zoned += getattr(cell, "tzinfo", None) is not None
            if isinstance(cell, dt.datetime) and cell.utcoffset():
                self.offset = self.offset or str(cell)
        elif hasattr(cell, "__len__") and not isinstance(cell, bytes):
            self.parts += 1
        elif (value := value_of(cell)) is None:
            self._count(texts.text_of(cell))
        elif _is_usable(value):
            self.numbers += 1
            self.spans += isinstance(cell, dt.timedelta)
            if abs(value) >= EXACT and isinstance(cell, int | np.integer):
                self._check_digits(int(cell), value)
        else:
            self.texts[f"{value:g}"] += 1

    def _check_digits(self, whole: int, value: float, times: int = 1) -> None:
        if whole != int(value):
            self.rounded += times
            self.digits = self.digits or str(whole)


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
    >>> from drift.streams.columns import Tally, decided
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
    odd = {text: n for text, n in tally.texts.items() if not texts.is_missing_number(text)}
    n_odd = sum(odd.values())
    if declared:
        return _categories(name, tally, declared=True)
    if tally.seconds + n_odd > tally.plain and (times := _times(name, tally, odd, clock=clock)):
        return times
    numbers = texts.numbers_of(odd, points=tally.points, commas=point != ".")
    dressed = {text: n for text, n in odd.items() if _is_usable(numbers.read(text))}
    n_numbers = tally.plain + sum(dressed.values())
    # True and false are 1 and 0 by themselves and beside numbers, but no numbers beside texts.
    n_bools = tally.bools + sum(n for text, n in dressed.items() if text in texts.BOOLS)
    only_bools = n_bools == tally.plain + n_odd
    most = n_numbers if n_numbers == tally.plain + n_odd else n_numbers - n_bools
    if 2 * most > tally.plain + tally.seconds + n_odd or not odd:
        # One column has one decimal separator: beside 12,5 the text 1.500 is no 1.5.
        alone = point != "." and tally.grouped > 0 and not tally.points and not dressed
        commas = numbers.point == "," and (bool(dressed) or (alone and point == ","))
        otherwise = {} if only_bools else dressed
        notes = _dressed_note(name, otherwise, numbers, n_numbers, tally.group if commas else "")
        if alone:
            what = f"{tally.grouped:,} of {n_numbers:,} numbers of {name!r} may have a point"
            value = numbers.read(tally.group) if commas else texts.plain_number(tally.group)
            notes += (f"{what} between thousands: {tally.group!r} is {value:.15g}",)
        notes += _missing_note(name, tally, dressed, n_numbers)
        if tally.padded:
            what = f"{tally.padded:,} of {n_numbers:,} numbers of {name!r} have zeros in front"
            value = texts.plain_number(tally.code)
            notes += (f"{what}: {tally.code!r} is {value:.15g}",)
        if tally.rounded:
            what = f"{tally.rounded:,} of {n_numbers:,} numbers of {name!r} have too many digits"
            notes += (f"{what}: {tally.digits!r} is {float(tally.digits):.0f}",)
        first = numbers.read if commas else texts.plain_number
        return Decision("number", _of_texts(first, numbers.read), notes=notes)
    return _categories(name, tally, declared=False)


def left_out(name: str, why: str) -> Decision:
    """Return the decision that a column is no feature."""
    return Decision("", lambda _: math.nan, notes=(f"left out: {name!r} {why}",))


def _of_texts(*reads: Callable[[str], float | None]) -> Callable[[Any], float]:
    """Return what reads any cell of a column of numbers, texts by the first that can."""

    def cell(value: Any) -> float:
        if is_missing(value):
            return math.nan
        found = None if isinstance(value, str) else value_of(value)
        if found is None:
            text = texts.text_of(value)
            found = next((v for read in reads if (v := read(text)) is not None), None)
        return found if found is not None and _is_usable(found) else math.nan

    return cell


def _times(name: str, tally: Tally, odd: Mapping[str, int], *, clock: bool) -> Decision | None:
    read = texts.times_of(odd)
    if isinstance(read, str):
        if clock:
            raise ParameterError(f"{name}: {read}")
        return left_out(name, f"has times, and {read}")
    times = {text: n for text, n in odd.items() if read(text) is not None}
    n_times = tally.seconds + sum(times.values())
    if 2 * n_times <= tally.seconds + tally.plain + sum(odd.values()):
        return None

    def cell(value: Any) -> float:
        if is_missing(value):
            return math.nan
        if isinstance(value, dt.date):
            return seconds_since_1970(value)
        seconds = read(texts.text_of(value))
        return math.nan if seconds is None else seconds

    notes = _missing_note(name, tally, times, n_times, "times")
    zoned = tally.zoned + sum(n for text, n in times.items() if texts.has_zone(text))
    if 0 < zoned < n_times:
        rest = n_times - zoned
        notes += (f"{rest:,} of {n_times:,} times of {name!r} have no zone: they are in UTC",)
    return Decision("time", cell, notes=notes)


def _categories(name: str, tally: Tally, *, declared: bool) -> Decision:
    # What a source declares to be a category is one, be it called NA.
    present = {
        text: n for text, n in tally.texts.items() if declared or not texts.is_missing_text(text)
    }
    gone = {text: n for text, n in tally.texts.items() if text not in present}
    total = sum(present.values()) + tally.plain + tally.seconds
    likely = None if declared else _likely(present, total)
    if not declared and not are_categories(len(present), total):
        what = f"{_different(len(present), total)}, no categories: {quoted(present)}"
        return left_out(name, f"{what}: {likely[2]}" if likely else what)
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
        texts_, what, remedy = likely
        found = f"{sum(texts_.values()):,} of {total:,} values of {name!r} {what}"
        notes.append(f"{found}, and count as categories: {quoted(texts_)}: {remedy}")
    return Decision("category", cell, known, tuple(notes))


# --- notes ---------------------------------------------------------------------------------------


def twins(values: Sequence[Any], likeness: Callable[[Any], Any], what: str) -> list[str]:
    """Say which values are likely one, written otherwise.

    Parameters
    ----------
    values
        Different ones.
    likeness
        Returns what a value has in common with other spellings of it.
    what
        They are.

    Examples
    --------
    >>> from drift.streams.columns import twins
    >>> twins(["Red", "red", "blue"], str.casefold, "classes")
    ["'Red' and 'red' are different classes: write them alike if they are one"]
    """
    alike: dict[Any, list[Any]] = {}
    for value in values:
        alike.setdefault(likeness(value), []).append(value)
    several = [one for one in alike.values() if len(one) > 1]
    if not several:
        return []
    others = sum(map(len, several[1:]))
    more = f", as are {others:,} others" if others else ""
    shown = " and ".join(map(repr, several[0]))
    return [f"{shown} are different {what}{more}: write them alike if they are one"]


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
    shown = ", ".join(f"{text[:40]!r}" for text in categories[:_QUOTED])
    found = f"{name!r} {_different(len(categories), total)}, {shown}, ..."
    return (f"{found}: drop it (drop=, --drop) if it names rows, not kinds of them",)


def _different(texts_: int, rows: int) -> str:
    return f"has {texts_:,} different texts in {counted(rows, 'row')}"


def quoted(counts: Mapping[str, int]) -> str:
    """Quote texts, the most frequent first, each with its number.

    Examples
    --------
    >>> from drift.streams.columns import quoted
    >>> quoted({"?": 2, "-": 4})
    "'-' (4), '?' (2)"
    """
    ranked = sorted(counts.items(), key=lambda one: -one[1])
    parts = [f"{text[:40]!r} ({n:,})" for text, n in ranked[:_QUOTED]]
    if rest := ranked[_QUOTED:]:
        parts.append(f"{counted(len(rest), 'other text')} ({sum(n for _, n in rest):,})")
    return ", ".join(parts)


def named(names: Sequence[Any]) -> str:
    """Name columns, the first of them if they are many.

    Examples
    --------
    >>> from drift.streams.columns import named
    >>> named(["x", "y"]), named("abcdefghij")[-16:]
    ("'x', 'y'", "'h' and 2 others")
    """
    shown = ", ".join(map(repr, names[:_NAMED]))
    rest = len(names) - _NAMED
    return f"{shown} and {counted(rest, 'other')}" if rest > 0 else shown


def _count(texts_: Mapping[str, int]) -> str:
    return "counts" if len(texts_) == 1 else "count"


def _likely(present: Mapping[str, int], total: int) -> tuple[dict[str, int], str, str] | None:
    """Return texts that are most of a column's, what they may be, and what to do then."""
    for is_such, what, remedy in _LIKELY:
        found = {text: one for text in present if (one := is_such(text))}
        numbers = {one["number"] for one in found.values()}
        units = {one["unit"] for one in found.values()}
        n = sum(present[text] for text in found)
        if 2 * n > total and len(numbers) >= _FEW and 2 * len(units) <= len(found):
            return {text: present[text] for text in found}, what, remedy
    return None


def _missing_note(
    name: str, tally: Tally, read: Mapping[str, int], n_read: int, what: str = "numbers"
) -> tuple[str, ...]:
    gone = {text: n for text, n in tally.texts.items() if text not in read}
    if what == "times" and tally.plain:
        gone["numbers"] = tally.plain
    if what == "numbers" and tally.seconds:
        gone["times"] = tally.seconds
    if not gone:
        return ()
    total = n_read + sum(gone.values())
    found = f"{n_read:,} of {total:,} values of {name!r} are {what}"
    return (f"{found}; {quoted(gone)} {_count(gone)} as missing",)


def _dressed_note(
    name: str, dressed: Mapping[str, int], numbers: texts.Numbers, total: int, grouped: str
) -> tuple[str, ...]:
    if not dressed:
        return ()
    ranked = sorted(dressed, key=dressed.__getitem__, reverse=True)
    # First one of each form: dollars, euros, percent.
    forms = {_DIGITS("", text): text for text in reversed(ranked)}
    first = [*sorted(forms.values(), key=ranked.index), *ranked]
    quotes = list(dict.fromkeys(first))[:_QUOTED]
    shown = ", ".join(f"{text[:40]!r} as {numbers.read(text):.15g}" for text in quotes)
    n, more = sum(dressed.values()), ""
    if grouped:
        more = f"; so {grouped!r} is {numbers.read(grouped):.15g}"
    return (f"{n:,} of {total:,} numbers of {name!r} are written otherwise: {shown}{more}",)
