"""What a number is, a time in seconds, and what is missing: the one answer of all of drift."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

__all__ = ["is_missing", "number", "seconds_since_1970"]

#: What numpy holds under a dtype of these kinds. It makes floats of them: of a moment, the count of
#: its unit.
_NO_NUMBERS = {
    "S": "text",
    "U": "text",
    "M": "a moment",
    "m": "a span of time",
    "c": "a complex number",
}


def number(value: Any) -> float:
    """Return a value as a float: of Python, numpy, `decimal` or `fractions`; bools are 0 and 1.

    Raises
    ------
    TypeError, ValueError
        It is no number; text is none, nor is a moment or a span of time.
    OverflowError
        It is an integer beyond the range of floats.

    Examples
    --------
    >>> from decimal import Decimal
    >>> number(True), number(Decimal("2.50"))
    (1.0, 2.5)
    >>> number("2.5")
    Traceback (most recent call last):
    TypeError: text is not a number
    """
    if isinstance(value, (str, bytes)):
        raise TypeError("text is not a number")
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    if kind in _NO_NUMBERS:
        raise TypeError(f"{_NO_NUMBERS[kind]} is not a number")
    # As compiled code converts. Unlike `float`, it parses no text in a buffer, and it calls no
    # `__float__` of a float.
    return math.ldexp(value, 0)


def is_missing(value: Any) -> bool:
    """Whether a value is missing: None, NaN or any value unequal to itself, pandas' NA.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), 0.0, "", [1])]
    [True, True, False, False, False]
    """
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError, ArithmeticError):
        # NA and arrays have no truth value; comparing a signaling NaN raises.
        return type(value).__name__ == "NAType"


def seconds_since_1970(time: dt.date) -> float:
    """Return a day or a time in seconds; it is of UTC where it does not say otherwise.

    Examples
    --------
    >>> from datetime import date, datetime
    >>> (
    ...     seconds_since_1970(date(1970, 1, 2)),
    ...     seconds_since_1970(datetime(1970, 1, 1, 1, 0, 0, 500_000)),
    ... )
    (86400.0, 3600.5)
    """
    if not isinstance(time, dt.datetime):
        time = dt.datetime(time.year, time.month, time.day, tzinfo=dt.UTC)
    return float((time if time.tzinfo else time.replace(tzinfo=dt.UTC)).timestamp())
