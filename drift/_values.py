"""What a number is, and what is missing: the one answer of models, readers, codec and features."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["is_missing", "number"]

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
