"""How a cell of text is read: as a number, as a time, as missing, or as it stands.

A column is read one way. So the functions here look at all of its texts that are no plain numbers,
with how often each occurs, and choose the reading for the column.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from drift._durations import moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = [
    "BOOLS",
    "MONTHS",
    "Numbers",
    "has_offset",
    "has_zone",
    "is_code",
    "is_grouped",
    "is_missing_number",
    "is_missing_text",
    "is_padded",
    "likeness",
    "numbers_of",
    "plain_number",
    "text_of",
    "times_of",
    "votes_of",
]

_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII).fullmatch
_PADDED = re.compile(r"[+-]?0\d", re.ASCII).match
_CODE = re.compile(r"(?:0|\d\d+)[eE]\d+", re.ASCII).fullmatch
#: As R, spreadsheets, Python and JSON write them.
BOOLS = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
#: Texts that say, in any column, that there is no value: those of pandas, ARFF's question mark, and
#: MySQL's and PostgreSQL's \N. In other letters, such as none, they may be categories.
_MISSING = frozenset(
    {
        *("", "?", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "NAN"),
        *("-NaN", "-nan", "NULL", "null", "(null)", "None", "\\N", "#NULL!"),
        *("1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND"),
    }
)
#: Those that say so beside numbers, in lower case; elsewhere they may be categories.
_MISSING_NUMBERS = {text.lower() for text in _MISSING} | {
    *("na", "none", "nil"),
    *("-", "--", "---", ".", "..", "...", "\u2013", "\u2014", "*", "n.d.", "nd", "n.a.", "k.a."),
    *("s.d.", "missing", "unknown", "error", "#div/0!", "#value!", "#ref!", "#name?", "#num!"),
    *("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "1.#inf", "-1.#inf"),
}


def text_of(cell: Any) -> str:
    """Return a cell of any kind as a text."""
    return cell.decode("utf-8", "backslashreplace") if isinstance(cell, bytes) else str(cell)


def likeness(text: str) -> str:
    r"""Return what a text has in common with other spellings of it.

    Examples
    --------
    >>> likeness("New  York") == likeness("new\u00a0york")
    True
    """
    if not text.isascii():
        seen = unicodedata.normalize("NFKC", text)
        text = "".join(c for c in seen if unicodedata.category(c) != "Cf")
    return " ".join(text.split()).casefold()


def plain_number(text: str) -> float | None:
    """Return a number as programs write it; None: it is none. One beyond floats is infinite.

    Examples
    --------
    >>> plain_number(" +1.5e3 "), plain_number("1e400"), plain_number("1,5")
    (1500.0, inf, None)
    """
    text = text.strip()
    return float(text) if _PLAIN(text) else None


def is_padded(text: str) -> bool:
    """Whether a plain number has zeros in front, as codes have.

    Examples
    --------
    >>> is_padded("007"), is_padded("0.5"), is_padded("0")
    (True, False, False)
    """
    return _PADDED(text) is not None


def is_code(text: str) -> bool:
    """Whether a plain number has an exponent as ids may, and hardly a number: it is 1.2e6 or 1e+06.

    Examples
    --------
    >>> [is_code(text) for text in ("12e5", "0E17", "1.2e6", "12e+05", "1e6")]
    [True, True, False, False, False]
    """
    return _CODE(text) is not None


def is_missing_text(text: str) -> bool:
    """Whether a text says, in any column, that there is no value.

    Examples
    --------
    >>> [is_missing_text(text) for text in (" ", "NA", "?", "-", "none")]
    [True, True, True, False, False]
    """
    return text.strip() in _MISSING


def is_missing_number(text: str) -> bool:
    """Whether a text says, in a column of numbers, that there is no number, or no finite one.

    Examples
    --------
    >>> [is_missing_number(text) for text in ("-", "n.d.", "Infinity", "many")]
    [True, True, True, False]
    """
    return text.strip().lower() in _MISSING_NUMBERS


# --- numbers with separators, currencies and percent signs ---------------------------------------

#: Signs of currencies, and their names where they stand apart.
_SIGNS = r"(?:US|AU?|CA?|HK|NZ|MX|R|S)?\$|[€£¥₹₽₩₺₴₪฿₫₱₦¢]"
_NAMES = r"USD|EUR|GBP|CHF|JPY|CNY|INR|BRL|SEK|NOK|DKK|PLN|CZK|kr\.?|zł|Fr\.|Rs\.|Kč"
#: Names, too, that codes begin with: CAD101.
_LETTERS = r"AUD|CAD|NZD|HKD|SGD|MXN|ZAR|RUB|TRY|HUF|Rs"
_CURRENCY = rf"(?:{_SIGNS}|(?:{_NAMES}|{_LETTERS})(?![A-Za-z]))"
_HAS_CURRENCY = re.compile(_CURRENCY).search
_LETTERED = re.compile(rf"(?:{_LETTERS})\d+").fullmatch
#: Besides the blank: no-break space, narrow no-break space, thin space.
_BLANKS = " \u00a0\u202f\u2009"
#: A typographic apostrophe, and a minus that is no hyphen.
_APOSTROPHES, _MINUS = "'\u2019", "\u2212-"
_POWER = r"(?:[eE][+-]?\d+)?"
_CORE = rf"\d[\d.,{_APOSTROPHES}{_BLANKS}]*{_POWER}|[.,]\d+{_POWER}"
_DRESSED = re.compile(
    rf"(?:{_CURRENCY}\s*(?=\())?(?P<open>\()?\s*"
    rf"(?P<sign>[+{_MINUS}])?\s*{_CURRENCY}?\s*(?P<sign2>[+{_MINUS}])?\s*"
    rf"(?P<core>{_CORE})\s*(?:{_CURRENCY}|%)?\s*(?P<sign3>[{_MINUS}])?\s*(?P<close>\))?"
).fullmatch
#: Groups of three digits, in India of two before the last: which separator, and the decimal one.
_GROUPED = re.compile(
    rf"[1-9]\d{{0,2}}(?P<group>[,.{_APOSTROPHES}{_BLANKS}])(?:\d{{2,3}}(?P=group))*\d{{3}}"
    r"(?:(?P<point>[.,])\d*)?"
).fullmatch
_SIMPLE = re.compile(rf"\d*(?P<point>[.,])?\d*{_POWER}").fullmatch


class Numbers(NamedTuple):
    """How a column writes its numbers.

    Attributes
    ----------
    point
        The decimal separator. A text that cannot have it may have the other one.
    letters
        Whether texts such as CAD101 are amounts, and no codes.
    """

    point: str = "."
    letters: bool = False

    def read(self, text: str) -> float | None:
        """Return the number that a text is; None: it is none.

        Examples
        --------
        >>> Numbers().read("$962,498.36 "), Numbers().read("12.5%"), Numbers().read("(3)")
        (962498.36, 12.5, -3.0)
        >>> Numbers(",").read("1.234,5"), Numbers(",").read("1,234"), Numbers().read("1,234")
        (1234.5, 1.234, 1234.0)
        >>> Numbers().read("12,5"), Numbers().read("0,125"), Numbers().read("1.2.3")
        (12.5, 0.125, None)
        >>> Numbers().read("TRUE"), Numbers().read("false")
        (1.0, 0.0)
        >>> Numbers().read("CAD101"), Numbers(letters=True).read("CAD101"), Numbers().read("CAD 1")
        (None, 101.0, 1.0)
        """
        if (truth := BOOLS.get(text.strip())) is not None:
            return float(truth)
        found = _DRESSED(text.strip())
        if found is None or bool(found["open"]) != bool(found["close"]):
            return None
        if not self.letters and _LETTERED(text.strip()):
            return None
        signs = [found[one] for one in ("sign", "sign2", "sign3") if found[one]]
        if len(signs) + bool(found["open"]) > 1:
            return None
        core = found["core"].strip()
        grouped = _GROUPED(core)
        if grouped and grouped["group"] != self.point and grouped["point"] in {None, self.point}:
            core = core.replace(grouped["group"], "")
        elif not _SIMPLE(core):
            return None
        value = float(core.replace(",", "."))
        negative = found["open"] or (signs and signs[0] != "+")
        return -value if negative else value


def is_grouped(text: str) -> bool:
    """Whether a plain number may have its point between thousands.

    Examples
    --------
    >>> is_grouped("1.234"), is_grouped("0.125"), is_grouped("12.5")
    (True, False, False)
    """
    return _GROUPED(text.strip().lstrip("+-")) is not None


def numbers_of(texts: Mapping[str, int], *, points: int = 0, commas: bool = False) -> Numbers:
    """Choose how a column writes its numbers.

    Parameters
    ----------
    texts
        Its texts that may be numbers, with how often each occurs.
    points
        How many of its other cells are numbers with a decimal point.
    commas
        Whether a lone ``1,234`` is likelier 1.234 than 1234, as in files of semicolons.

    Examples
    --------
    >>> numbers_of({"1,234": 9, "12,5": 1}).point, numbers_of({"1,234": 9, "1,234.5": 1}).point
    (',', '.')
    >>> numbers_of({"Rs101": 9}).letters, numbers_of({"Rs101": 9, "Rs1,200": 1}).letters
    (False, True)
    >>> numbers_of({"1,234": 9}).point, numbers_of({"1,234": 9}, commas=True).point
    ('.', ',')
    """
    votes = votes_of(texts)
    votes["."] += points
    lone = "," if commas else "."
    point = lone if votes["."] == votes[","] else max(votes, key=votes.__getitem__)
    style = Numbers(point)
    has_letters = any(_LETTERED(text.strip()) for text in texts)
    amounts = (text for text in texts if _HAS_CURRENCY(text) and style.read(text) is not None)
    return Numbers(point, letters=has_letters and any(amounts))


def votes_of(texts: Mapping[str, int]) -> dict[str, int]:
    """Count the texts that can have one decimal separator alone, by it.

    Examples
    --------
    >>> votes_of({"1,234": 9, "12,5": 2, "1,234.5": 1})
    {'.': 1, ',': 2}
    """
    votes = {".": 0, ",": 0}
    for text, times in texts.items():
        found = _DRESSED(text.strip())
        if found is None:
            continue
        core = found["core"].strip()
        grouped, simple = _GROUPED(core), _SIMPLE(core)
        if grouped and grouped["point"] and grouped["point"] != grouped["group"]:
            votes[grouped["point"]] += times
        elif grouped and grouped["group"] in votes:
            if core.count(grouped["group"]) > 1:  # 1,234,567
                votes["," if grouped["group"] == "." else "."] += times
        elif simple and simple["point"]:
            votes[simple["point"]] += times
    return votes


# --- times ---------------------------------------------------------------------------------------

_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:$|[T ])|\d{8}[T ]\d").match
_CLOCK = (
    r"(?:[ T,:]+(?P<clock>\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
    r"\s*(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?)?"
)
_YEAR_FIRST = re.compile(rf"(?P<y>\d{{4}})[/.-](?P<a>\d\d?)[/.-](?P<b>\d\d?){_CLOCK}").fullmatch
#: Years of two digits stand behind slashes, or in dates such as 31.12.25.
_YEAR_LAST = re.compile(
    r"(?P<a>\d\d?)(?P<mark>[/.-])(?P<b>\d\d?)(?P=mark)"
    rf"(?P<y>\d{{4}}|(?<=/)\d\d|(?<=\d\d\.\d\d\.)\d\d){_CLOCK}"
).fullmatch
_WEEKDAY = r"(?:[A-Za-z]{3,9},?\s+)?"
_NAMED = re.compile(
    rf"{_WEEKDAY}(?P<d>\d\d?)[ /-]?(?P<m>[A-Za-z]{{3}})[a-z]*\.?[ /-]?(?P<y>\d{{4}}|\d\d){_CLOCK}"
).fullmatch
_NAME_FIRST = re.compile(
    rf"{_WEEKDAY}(?P<m>[A-Za-z]{{3}})[a-z]*\.? (?P<d>\d\d?),? (?P<y>\d{{4}}){_CLOCK}"
).fullmatch
#: As C, Unix, Twitter and Apache's log of errors write it.
_YEAR_BEHIND = re.compile(
    rf"{_WEEKDAY}(?P<m>[A-Za-z]{{3}})\s+(?P<d>\d\d?)\s+(?P<clock>\d\d?:\d\d:\d\d(?:\.\d{{1,9}})?)"
    r"(?P<half>)(?:\s+(?P<zone>UTC|GMT|[+-]\d\d:?\d\d))?\s+(?P<y>\d{4})"
).fullmatch
_ZONE = re.compile(r"(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)(?:\s+\d{4})?\s*$").search
#: Some write a blank before the zone.
_BEFORE_ZONE = re.compile(r"\s+(?=(?:Z|[+-]\d\d:?\d\d)$)").sub
#: The name of a zone, in brackets, behind its hours.
_REGION = re.compile(r"(?:(?<=Z)|(?<=[+-]\d\d:\d\d))\[[A-Za-z][\w/+-]*\]$").sub
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def times_of(texts: Iterable[str]) -> Callable[[str], float | None] | str:
    """Choose how a column writes its times.

    Parameters
    ----------
    texts
        Its texts that may be times.

    Returns
    -------
    callable or str
        What reads a text as seconds since 1970 in UTC, or as None where it is no time; a time
        without a zone is in UTC. Or why that cannot be told: day and month may be swapped.

    Examples
    --------
    >>> times_of(["1970-01-01"])("1970-01-02T01:00:00+01:00")
    86400.0
    >>> times_of([])("Fri, 02 Jan 1970 01:00:00 +0100"), times_of([])("Jan 2, 1970")
    (86400.0, 86400.0)
    >>> times_of(["02/01/1970", "13/01/1970"])("02/01/1970")
    86400.0
    >>> times_of(["02/01/1970"])
    "'02/01/1970' may be of two days: write 1970-01-02"
    """
    found = (_YEAR_LAST(_bare(text)) for text in texts)
    dates = Counter(_Date.of(one) for one in found if one)
    firsts = sum(n for one, n in dates.items() if one.mark == "." or int(one.a) > 12)
    seconds = sum(
        n for one, n in dates.items() if one.mark != "." and int(one.a) <= 12 < int(one.b)
    )
    if not seconds and (doubt := _doubt(list(dates), days_first=firsts > 0)):
        return doubt
    day_first = firsts >= seconds

    def read(text: str) -> float | None:
        try:
            return _seconds(_bare(text), day_first=day_first)
        except (ValueError, OverflowError):
            return None

    return read


class _Date(NamedTuple):
    """Two numbers and a year, as they are written, and whether a time of the day is behind them."""

    a: str
    mark: str
    b: str
    y: str
    is_timed: bool

    @classmethod
    def of(cls, found: re.Match[str]) -> _Date:
        """Return what was found; 00:00 behind it is no time of the day."""
        is_timed = bool(found["clock"] and found["clock"].strip("0:.,"))
        return cls(found["a"], found["mark"], found["b"], found["y"], is_timed)

    def __repr__(self) -> str:
        return repr(f"{self.a}{self.mark}{self.b}{self.mark}{self.y}")


def _doubt(dates: Sequence[_Date], *, days_first: bool) -> str:
    """Why dates of two numbers and a year may be others; empty: they may not, or none is there."""
    if doubt := _year_first([one for one in dates if one.mark == "/" and len(one.y) == 2]):
        return doubt
    unclear = [one for one in dates if one.mark != "." and int(one.a) != int(one.b)]
    if days_first or not unclear:
        return ""
    last = unclear[-1]
    return f"{last!r} may be of two days: write {_day(last.y, last.b, last.a)}"


def _year_first(dates: Sequence[_Date]) -> str:
    """Why dates such as 26/01/31, in the order of their rows, may begin with the year.

    Empty: they hardly do. If they do, they rise or fall, and do not if the year is last. Or they
    would all be one day of the year, with a time of the day, as of a log that is of one month.
    """
    years, days = {one.a for one in dates}, {one.y for one in dates}
    if len(years) >= len(days) or min(map(len, years)) < 2:  # days differ more than years
        return ""
    first = [_day(one.a, one.b, one.y) for one in dates]
    last = [_day(one.y, one.b, one.a) for one in dates]
    if not (_is_sorted(first) and all(map(_is_day, first))):
        return ""
    is_one_day = len({(one.a, one.b) for one in dates}) == 1
    if _is_sorted(last) and not (is_one_day and any(one.is_timed for one in dates)):
        return ""
    return (
        f"{dates[0]!r} may be {first[0]}, by which rows are in order, or {last[0]}: "
        "write the day that it is"
    )


def _day(y: str, month: str, day: str) -> str:
    return f"{_year(y)}-{int(month):02}-{int(day):02}"


def _is_day(written: str) -> bool:
    with suppress(ValueError):
        return bool(date.fromisoformat(written))
    return False


def _is_sorted(days: list[str]) -> bool:
    """Whether days rise or fall."""
    ordered = sorted(days)
    return days in (ordered, ordered[::-1])


def has_zone(text: str) -> bool:
    """Whether a time says what zone it is of.

    Examples
    --------
    >>> has_zone("2026-01-01 12:00+02:00"), has_zone("2026-01-01")
    (True, False)
    """
    return _ZONE(_bare(text)[10:]) is not None


def has_offset(text: str) -> bool:
    """Whether a time is of another zone than UTC.

    Examples
    --------
    >>> has_offset("2026-01-01 12:00+02:00"), has_offset("2026-01-01 12:00+00:00")
    (True, False)
    """
    found = _ZONE(_bare(text)[10:])
    return found is not None and found["zone"].strip("+-0:") not in {"", "Z", "UTC", "GMT"}


def _bare(text: str) -> str:
    """Return a time without brackets; of those of a web server's log one may be in another cell."""
    text = text.strip().removeprefix("[")
    return _REGION("", text).removesuffix("]") if text.endswith("]") else text


def _year(written: str) -> int:
    """Return a year; of two digits it is one from 1970 to 2069, as in spreadsheets and Oracle."""
    year = int(written)
    return year if len(written) > 2 else year + (2000 if year < 70 else 1900)


def _seconds(text: str, *, day_first: bool) -> float | None:
    if _ISO(text) and text[-1] not in "Mm.":  # of AM and PM
        with suppress(ValueError):  # it may be one of the looser forms below
            return moment(_BEFORE_ZONE("", text.removesuffix(" UTC"))).timestamp()
    if found := _YEAR_FIRST(text):
        month, day = int(found["a"]), int(found["b"])
    elif found := _YEAR_LAST(text):
        month, day = int(found["a"]), int(found["b"])
        if found["mark"] == "." or day_first:
            month, day = day, month
    elif found := _NAMED(text) or _NAME_FIRST(text) or _YEAR_BEHIND(text):
        month, day = MONTHS.index(found["m"].lower()) + 1, int(found["d"])
    else:
        return None
    hour, minute, second = 0, 0, 0.0
    if found["clock"]:
        parts = found["clock"].replace(",", ".").split(":")
        hour, minute, second = int(parts[0]), int(parts[1]), float(parts[2] if parts[2:] else 0)
        if found["half"]:
            hour = hour % 12 + (12 if found["half"].lower().startswith("p") else 0)
    fraction, whole = math.modf(second)
    time = datetime(_year(found["y"]), month, day, hour, minute, int(whole), tzinfo=UTC)
    return time.timestamp() + fraction - _offset(found["zone"])


def _offset(zone: str | None) -> int:
    """Return the seconds by which a zone is before UTC."""
    if zone is None or zone[0] not in "+-":
        return 0
    minutes = 60 * int(zone[1:3]) + int(zone[-2:])
    return 60 * minutes * (-1 if zone[0] == "-" else 1)
