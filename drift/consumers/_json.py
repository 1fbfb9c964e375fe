"""JSON, as orjson reads and writes it, and words for its values.

orjson is strict: no NaN, no Infinity, no float that overflows, no half of a surrogate pair; and
integers beyond 64 bits become floats.

Paths are names between dots, and a name may contain dots itself: in jmespath and glom a user would
have to quote those.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from decimal import Decimal
from functools import cache
from itertools import accumulate
from numbers import Real
from types import NoneType
from typing import TYPE_CHECKING, Any

from drift._values import number
from drift.errors import MessageError, needing

if TYPE_CHECKING:
    from collections.abc import Callable

    from drift.types import Features

__all__ = [
    "LONGEST",
    "as_json",
    "check_kind",
    "diagnosis",
    "found_at",
    "is_deeper",
    "is_long",
    "is_plain",
    "kind_of",
    "library",
    "made_plain",
    "plain",
    "put_at",
    "quoted",
    "refuse_repeated",
    "stated",
    "text_of",
]

_NO_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[^"\[\]{}]+', re.DOTALL)

#: Characters of a label, id or timestamp, and bits of one that is a number.
LONGEST = 1000
#: Of these `plain` changes nothing.
_PLAIN = {bool, float, str, NoneType}
_KINDS = {
    NoneType: "null",
    bool: "a bool",
    str: "a string",
    dict: "an object",
    list: "an array",
    bytes: "bytes",
}


@cache
def library() -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    """Return what reads and what writes JSON: orjson's, several times as fast as Python's."""
    with needing("orjson", "kafka"):
        import orjson  # noqa: PLC0415 - help and refusals need no extra
    return orjson.loads, orjson.dumps


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON's")


#: Python would read any number of digits, in quadratic time, and give up beyond 4300.
_DECODER = json.JSONDecoder(parse_int=float, parse_constant=_constant)


def as_json(body: dict[str, Any]) -> bytes:
    """Return an answer as JSON, whatever it holds.

    numpy's values become Python's, NaN and Infinity null, what else JSON does not know its text.

    >>> import numpy as np
    >>> as_json({"predicted": np.bool_(True), "score": {np.int64(3): np.float32(0.5)}})
    b'{"predicted":true,"score":{"3":0.5}}'
    """
    try:
        return library()[1](body)
    except (TypeError, ValueError):
        return json.dumps(_known(body), separators=(",", ":")).encode()


def _known(value: Any) -> Any:
    """Return a value in the types that JSON has."""
    if isinstance(value, dict):
        return {text_of(name): _known(part) for name, part in value.items()}
    if getattr(value, "ndim", 0):  # an array
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_known(part) for part in value]
    value = plain(value)
    if is_not_finite(value):
        return None
    return value if type(value) in _PLAIN or type(value) is int else str(value)


def diagnosis(value: bytes, problem: ValueError) -> str:
    """Say why a value is no JSON, in the words of Python's library where that finds it, too."""
    try:
        _DECODER.decode(value.decode())
    except ValueError as same:
        return str(same)
    return str(problem)


def is_deeper(value: bytes, limit: int) -> bool:
    """Say whether brackets are nested deeper than a limit of at least 2, without recursion.

    >>> is_deeper(b'{"[[[[": [1, {}]}', limit=3), is_deeper(b"[[[[", limit=3)
    (False, True)
    >>> is_deeper(b"{{{", limit=2)
    True
    """
    second = value.find(b"{", value.find(b"{") + 1)
    if value.find(b"{", second + 1) < 0 and b"[" not in value:
        return False  # nearly every message ends here, at a tenth of what counting costs
    if value.count(b"[") + value.count(b"{") <= limit:
        return False
    brackets = _NO_BRACKETS.sub(b"", value)
    return max(accumulate(1 if bracket in b"[{" else -1 for bracket in brackets), default=0) > limit


def refuse_repeated(value: bytes, tree: Any) -> None:
    """Refuse valid JSON with a key that comes twice in one object, which a dict cannot show.

    The colons of a tree are those after its keys and those in its texts: JSON has more of them
    where a key has replaced another one.

    >>> refuse_repeated(b'{"a": {"b": 3, "c": "7:30"}}', {"a": {"b": 3, "c": "7:30"}})
    >>> refuse_repeated(b'{"a": {"b": 1, "c": 2, "b": 3}}', {"a": {"b": 3, "c": 2}})
    Traceback (most recent call last):
    drift.errors.MessageError: value has 'b' twice in an object: send it once
    """
    colons = value.count(b":")
    if b"\\" not in value or b"\\u003" not in value:  # as a colon may be written
        if type(tree) is dict:
            # Nearly every message ends here, which takes less than to walk through it all.
            count = len(tree)
            if count < colons:
                for part in tree.values():
                    kind = type(part)
                    if kind is dict:
                        count += len(part)
                    elif kind is str:
                        count += part.count(":")
            if count == colons:
                return
        if _colons(tree) == colons:
            return
    if (name := _repeated(value)) is not None:
        raise MessageError("value", f"has {quoted(name)} twice in an object: send it once")


def _colons(tree: Any) -> int:
    """Count the colons of a tree as JSON.

    >>> _colons({"time": "7:30", "more": [{"a:": "a:b:c"}]})
    7
    """
    count, left = 0, [tree]
    while left:
        part = left.pop()
        if type(part) is str:
            count += part.count(":")
        elif type(part) is dict:
            count += len(part) + "".join(part).count(":")
            left += part.values()
        elif type(part) is list:
            left += part
    return count


def _repeated(value: bytes) -> str | None:
    """Return a key that comes twice in an object of valid JSON; None without.

    >>> _repeated(b'{"a": {"b": 1, "c": 2, "b": 3}}'), _repeated(b'[{"a": 1}, {"a": "a:a"}]')
    ('b', None)
    """
    duplicates: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names = Counter(name for name, _ in pairs)
        if len(names) < len(pairs):
            duplicates.append(names.most_common(1)[0][0])

    json.loads(value, object_pairs_hook=note, parse_int=len)
    return duplicates[0] if duplicates else None


def plain(value: Any) -> Any:
    """Return numbers of other types as Python's, and integers as they will be read.

    >>> from decimal import Decimal
    >>> plain(2**64), plain(3), plain("3"), plain(Decimal("2.5"))
    (1.8446744073709552e+19, 3, '3', 2.5)
    """
    if type(value) in _PLAIN:
        return value
    if type(value) is not int:
        if hasattr(value, "dtype") and not getattr(value, "ndim", 0):
            # The item of a moment or a span in nanoseconds is an integer.
            value = value if getattr(value.dtype, "kind", None) in {"m", "M"} else value.item()
        elif isinstance(value, Decimal | Real):
            value = number(value)
    if type(value) is int and not -(2**63) <= value < 2**64:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return value


def text_of(label: Any) -> str:
    """Return a label as a prediction names it in its probabilities.

    >>> text_of(True), text_of(1), text_of("spam")
    ('true', '1', 'spam')
    """
    label = plain(label)
    return "true" if label is True else "false" if label is False else str(label)


# --- values, in the words of JSON -----------------------------------------------------------------


def kind_of(value: Any) -> str:
    """Say what a value is without repeating it: it may be long or secret.

    >>> kind_of([1, 2]), kind_of(0.5), kind_of("secret"), kind_of(None)
    ('an array', 'the number 0.5', 'a string', 'null')
    """
    if type(value) in {int, float}:
        return f"the number {value!r:.40}"
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def found_at(tree: Any, path: str | None) -> Any:
    """Return what is at a path of names between dots; None where there is nothing, or no path.

    >>> tree = {"a": {"b": 1}, "a.c": 2, "a.d": {"e": 3}}
    >>> [found_at(tree, path) for path in ("a.b", "a.c", "a.d.e", "a.e")]
    [1, 2, 3, None]
    """
    if path is None or path in tree:
        return tree.get(path)
    dot = path.find(".")
    while dot >= 0:
        inner = tree.get(path[:dot])
        if type(inner) is dict and (found := found_at(inner, path[dot + 1 :])) is not None:
            return found
        dot = path.find(".", dot + 1)
    return None


def put_at(tree: dict[str, Any], path: str | None, value: Any) -> None:
    """Set what is at a path of names between dots; refuse it within what is no object."""
    *names, last = (path or "").split(".")
    for name in names:
        tree = tree.setdefault(name, {})
        if type(tree) is not dict:
            raise MessageError(
                f"features[{quoted(name)}]", f"is where {path} is: rename or drop it"
            )
    if path is None:
        tree |= value
    elif type(value) is dict:
        tree[last] = {**value, **tree.get(last, {})}
    else:
        tree[last] = value


def stated(tree: dict[str, Any], path: str | None) -> str:
    """Say what is at a path."""
    value = found_at(tree, path)
    return "is absent" if value is None and path not in tree else f"is {kind_of(value)}"


def quoted(value: Any) -> str:
    """Quote a value, and of a long text the beginning."""
    return repr(value if not isinstance(value, str) or len(value) <= 60 else value[:57] + "...")


def is_not_finite(value: Any) -> bool:
    return type(value) is float and not math.isfinite(value)


def check_kind(value: Any, field: str | None, types: tuple[type, ...], what: str) -> None:
    """Refuse a value that is of none of some types, or too long."""
    kind = type(value)
    if kind not in types or (kind is float and is_not_finite(value)):
        raise MessageError(str(field), f"is {kind_of(value)}: send {what}, or leave it out")
    if is_long(value):
        raise MessageError(str(field), f"is longer than {LONGEST}: send {what} that is shorter")


def is_long(value: Any) -> bool:
    """Whether a text or a number is too long to go into every prediction and dead letter."""
    kind = type(value)
    return (kind is str and len(value) > LONGEST) or (kind is int and value.bit_length() > LONGEST)


def is_plain(features: Features) -> bool:
    """Say whether features need no conversion: a dict by str of finite floats and bools."""
    return (
        type(features) is dict
        and {str}.issuperset(map(type, features))
        and {float, bool}.issuperset(map(type, features.values()))
        and math.isfinite(sum(features.values()))
    )


def made_plain(features: Features) -> dict[str, Any]:
    """Convert names and values to what JSON has, and leave out NaN."""
    names: dict[str, Any] = {}
    made = {}
    for name, value in features.items():
        text = str(name)
        if names.setdefault(text, name) is not name:
            raise MessageError(
                f"features[{quoted(name)}]",
                f"has the name of {quoted(names[text])}: rename one",
            )
        value = plain(value)  # noqa: PLW2901
        if is_not_finite(value):
            if value != value:
                continue
            raise MessageError(
                f"features[{quoted(name)}]", f"is {value}: send a finite number, or none"
            )
        made[text] = value
    return made
