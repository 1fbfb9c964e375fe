"""JSON, read and written the same whether orjson is installed or not.

orjson is the stricter one, and Python's library is brought to its rules: no NaN, no Infinity, no
float that overflows, no half of a surrogate pair, and integers beyond 64 bits become floats.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["diagnosis", "is_deeper", "library", "plain"]

_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_SURROGATES = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F])|\\.", re.DOTALL)


def library() -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    """Return what reads and what writes JSON."""
    try:
        import orjson  # noqa: PLC0415
    except ImportError:
        return _loads, _dumps
    return orjson.loads, orjson.dumps


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large for a float")
    return value


def _int(text: str) -> float:
    # Python would read any number of digits, in quadratic time, and give up beyond 4300.
    value = int(text) if len(text) <= 20 else 2**64
    return value if -(2**63) <= value < 2**64 else _float(text)


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON's")


_DECODER = json.JSONDecoder(parse_float=_float, parse_int=_int, parse_constant=_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _loads(value: bytes) -> Any:
    """Read JSON with Python's library as strictly as orjson does."""
    text = value.decode()
    tree = _DECODER.decode(text)
    if "\\u" in text and any(match[1] for match in _SURROGATES.finditer(text)):
        raise ValueError("half of a surrogate pair")
    return tree


def _dumps(tree: Any) -> bytes:
    return _ENCODER.encode(tree).encode()


def diagnosis(value: bytes, problem: ValueError) -> str:
    """Say why a value is no JSON, in the words of Python's library whichever read it."""
    try:
        _loads(value)
    except ValueError as same:
        return str(same)
    return str(problem)


def is_deeper(value: bytes, limit: int) -> bool:
    """Say whether brackets are nested deeper than a limit of at least 2, without recursion.

    >>> is_deeper(b'{"[[[[": [1, {}]}', limit=3), is_deeper(b"[[[[", limit=3)
    (False, True)
    """
    if b"[" not in value and len(value.split(b"{", 3)) <= 3:
        return False  # nearly every message ends here, at a tenth of what counting costs
    if value.count(b"[") + value.count(b"{") <= limit:
        return False
    level = 0
    for match in _TOKENS.finditer(value):
        token = match[0]
        if token in b"[{":
            level += 1
            if level > limit:
                return True
        elif token in b"]}":
            level -= 1
    return False


def plain(value: Any) -> Any:
    """Return numpy's scalars as Python's, and integers as they will be read.

    >>> plain(2**64), plain(3), plain("3")
    (1.8446744073709552e+19, 3, '3')
    """
    if hasattr(value, "dtype") and not getattr(value, "ndim", 0):
        value = value.item()
    if type(value) is int and not -(2**63) <= value < 2**64:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return value
