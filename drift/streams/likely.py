"""What texts may be that are no numbers and no times: amounts with a unit, or times of other forms.

They count as categories. A note says what they look like, and what to do then.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Likely", "likely_of"]


def _one_of(*forms: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile("|".join(forms)).fullmatch


_CLOCK = r"\d{1,3}:\d\d(?::\d\d(?:[.,]\d+)?)?"
_SPAN = r"\d+(?:[.,]\d+)?\s*(?:[wdhms]|weeks?|days?|hours?|hrs?|min(?:ute)?s?|sec(?:ond)?s?)"
_YEAR = r"(?:19|20)\d\d"
#: What texts look like, what to do then, and the forms that they have. A form may have groups: a
#: number, and a unit. Without them all of it is the number.
_LOOKS = (
    (
        "are numbers with a unit or a sign",
        "make numbers of them if they are amounts",
        _one_of(  # 5 kg, <0.1, $1.5K, 10,000+, 4.5/5
            r"[<>=\u2264\u2265~\u2248'\"$€£¥₹]*\s*(?P<number>[+-]?\d+(?:,\d{3})*(?:[.,]\d+)?)"
            r"\s*(?P<unit>(?:[^\W\d_]|[\u00b0%‰\"'])[^\W_]{0,11}(?:/[^\W_]{1,5})?|[+]|/\d{1,3})?",
        ),
    ),
    (
        "look like times of a day or spans of time",
        "make numbers of them, of seconds say, if they are",
        _one_of(
            # 2:30, 0:05:12.5, 9:30 pm, 3 days 04:05:06
            rf"[+-]?(?:\d+ days?,? )?[+-]?{_CLOCK}(?:\s*[AaPp]\.?[Mm]\.?)?",
            rf"(?:{_SPAN},?\s*)+",  # 1h 30m; 2 days, 4 hours
            r"P(?=T?\d)(?:\d+[YMWD])*(?:T(?:\d+[HM])*(?:\d+(?:[.,]\d+)?S)?)?",  # PT1H30M
        ),
    ),
    (
        "look like times, of a form that is not read",
        "write them as 2026-01-31 13:45 if they are",
        _one_of(
            r"\d\d?-\d\d?-\d\d(?:[ T].*)?",  # 01-02-26
            rf"{_YEAR}[-/ ]?(?:\d\d|W\d\d|Q[1-4])",  # 2026-01, 2026-W05, 2026Q1
            rf"\d\d?/{_YEAR}",  # 01/2026
            r"[A-Za-z]{3} +\d\d? \d\d:\d\d:\d\d",  # Jan 5 10:00:00
            rf"{_YEAR}[-/.]\d\d?[-/.]\d\d?[ T-].*",  # 2026-01-31 12:00 CET
            rf".{{0,9}}\b\d\d?[./]\d\d?[./]{_YEAR}\b.*",  # Sa, 31.01.2026
            rf"\d\d?\.? [^\W\d]{{3,9}}\.? {_YEAR}\b.*",  # 31. Januar 2026
            r"\d\d?-[A-Z]{3}-\d\d .*",  # 31-JAN-26 10.00.00.000000 AM
            rf"(?:[A-Z][a-z]{{2}} ){{2}}\d\d? {_YEAR} .*",  # Sat Jan 31 2026 12:00:00 GMT+1
        ),
    ),
)
#: Longer texts are prose.
_LONGEST = 50
#: Fewer different numbers are likelier kinds of something.
_FEW = 5


class Likely(NamedTuple):
    """Texts that are most of a column's, what they look like, and what to do then."""

    texts: dict[str, int]
    what: str
    remedy: str


def likely_of(texts: Mapping[str, int], total: int) -> Likely | None:
    """Return what most of a column's values may be; None: kinds of something, as they stand.

    Several numbers are among them, and few units; of wholes, as in 4/5, one.

    Parameters
    ----------
    texts
        With how often each occurs.
    total
        How many values the column has.

    Examples
    --------
    >>> from drift.streams.likely import likely_of
    >>> likely_of({f"{n} kg": 1 for n in range(9)}, 9).what
    'are numbers with a unit or a sign'
    >>> likely_of({f"{n}th grade": 1 for n in range(9)}, 9) is None
    True
    """
    short = [text for text in texts if len(text) <= _LONGEST]
    for what, remedy, has_form in _LOOKS:
        such: dict[str, int] = {}
        numbers, units = set(), set()
        for text in short:
            if found := has_form(text):
                parts = found.groupdict()
                such[text] = texts[text]
                numbers.add(parts.get("number", text))
                units.add(parts.get("unit"))
        wholes = [unit for unit in units if unit and unit.startswith("/")]
        is_one_unit = 2 * len(units) <= len(such) and len(wholes) <= 1
        if 2 * sum(such.values()) > total and len(numbers) >= _FEW and is_one_unit:
            return Likely(such, what, remedy)
    return None
