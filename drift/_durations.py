"""Times as people write and read them: spans of options, files and delays, and moments."""

from __future__ import annotations

import re
from datetime import UTC, datetime

__all__ = ["END", "moment", "seconds_of", "shown", "shown_moment"]

#: Seconds since 1970 at the end of what a calendar has.
END = 253_402_300_800

#: Seconds of each unit, by its letter.
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_WORDS = {
    "s": "s|secs?|seconds?",
    "m": "m|mins?|minutes?",
    "h": "h|hrs?|hours?",
    "d": "d|days?",
    "w": "w|weeks?",
}
_UNIT = "|".join(f"(?P<{letter}>{words})" for letter, words in _WORDS.items())
_DURATION = re.compile(rf"\s*(?P<number>\d+(?:\.\d+)?)\s*(?:{_UNIT})\s*")


def seconds_of(text: str) -> float | None:
    """Return the seconds of a number with a unit, from seconds to weeks; None for other texts.

    Examples
    --------
    >>> from drift._durations import seconds_of
    >>> [seconds_of(text) for text in ("90 min", "36h", "2 days", "1.5 s", "2", "late")]
    [5400.0, 129600.0, 172800.0, 1.5, None, None]
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    (unit,) = (letter for letter in _UNITS if match[letter])
    return float(match["number"]) * _UNITS[unit]


def shown(seconds: float) -> str:
    """Return a span in the largest unit that fits, weeks as days.

    Examples
    --------
    >>> from drift._durations import shown
    >>> shown(5400), shown(604_800), shown(0.5)
    ('90m', '7d', '0.5s')
    """
    for letter in "dhm":
        if seconds and seconds % _UNITS[letter] == 0:
            return f"{seconds / _UNITS[letter]:g}{letter}"
    return f"{seconds:g}s"


def moment(text: str) -> datetime:
    """Return the time that a text names in ISO's form, of UTC where it does not say otherwise.

    Raises
    ------
    ValueError
        If it names none.

    Examples
    --------
    >>> from drift._durations import moment
    >>> moment("2026-11-20T08:00").isoformat()
    '2026-11-20T08:00:00+00:00'
    """
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def shown_moment(milliseconds: int, sep: str = "T") -> str:
    """Return milliseconds since 1970 as a time to the second; as they are where there is none.

    Examples
    --------
    >>> from drift._durations import shown_moment
    >>> shown_moment(1_790_000_000_999), shown_moment(-1)
    ('2026-09-21T14:13:20+00:00', '-1 ms')
    """
    if not 0 <= milliseconds < 1000 * END:
        return f"{milliseconds} ms"
    return datetime.fromtimestamp(milliseconds // 1000, UTC).isoformat(sep)
