"""What a value of a message is, in the words of JSON; and what is sent of an example."""

from __future__ import annotations

import math
from types import NoneType
from typing import TYPE_CHECKING, Any

from drift.consumers._json import plain
from drift.errors import MessageError

if TYPE_CHECKING:
    from drift.types import Features

__all__ = [
    "LONGEST",
    "check_kind",
    "found_at",
    "is_long",
    "is_plain",
    "kind_of",
    "made_plain",
    "put_at",
    "shortened",
    "stated",
]

#: Characters of a label, id or timestamp, and bits of one that is a number.
LONGEST = 1000
_KINDS = {
    NoneType: "null",
    bool: "a bool",
    str: "a string",
    dict: "an object",
    list: "an array",
}


def kind_of(value: Any) -> str:
    """Say what a value is without repeating it: it may be long, and nobody else's business.

    >>> kind_of([1, 2]), kind_of(0.5), kind_of("secret"), kind_of(None)
    ('an array', 'the number 0.5', 'a string', 'null')
    """
    if type(value) in {int, float}:
        return f"the number {value!r:.40}"
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def found_at(tree: Any, path: str | None) -> Any:
    """Return what is at a path of names between dots; None where there is nothing, or no path.

    >>> found_at({"a": {"b": 1}, "a.c": 2}, "a.b"), found_at({"a": {"b": 1}, "a.c": 2}, "a.c")
    (1, 2)
    """
    if path is None or path in tree:
        return tree.get(path)
    name, _, rest = path.partition(".")
    inner = tree.get(name)
    return found_at(inner, rest) if rest and type(inner) is dict else None


def put_at(tree: dict[str, Any], path: str | None, value: Any) -> None:
    """Set what is at a path of names between dots."""
    *names, last = (path or "").split(".")
    for name in names:
        tree = tree.setdefault(name, {})
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


def shortened(value: Any) -> str:
    """Quote a value, and of a long text the beginning."""
    return repr(value if not isinstance(value, str) or len(value) <= 60 else value[:57] + "...")


def is_unsayable(value: Any) -> bool:
    return type(value) is float and not math.isfinite(value)


def check_kind(value: Any, field: str | None, types: tuple[type, ...], what: str) -> None:
    """Refuse a value that is of none of some types, or too long."""
    if type(value) not in types or is_unsayable(value):
        raise MessageError(str(field), f"is {kind_of(value)}: send {what}, or leave it out")
    if is_long(value):
        raise MessageError(str(field), f"is longer than {LONGEST}: send {what} that is shorter")


def is_long(value: Any) -> bool:
    """Whether a text or a number is too long to go into every prediction and dead letter."""
    return (type(value) is str and len(value) > LONGEST) or (
        type(value) is int and value.bit_length() > LONGEST
    )


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
                f"features[{shortened(name)}]",
                f"has the name of {shortened(names[text])}: rename one",
            )
        number = plain(value)
        if is_unsayable(number):
            if number != number:
                continue
            raise MessageError(
                f"features[{shortened(name)}]", f"is {number}: send a finite number, or none"
            )
        made[text] = number
    return made
