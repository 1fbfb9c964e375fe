"""How notes quote: texts with their numbers, names of columns, and values that are likely one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drift._checks import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["QUOTED", "named", "quoted", "twins"]

#: Cells that a note quotes, and columns that it names.
QUOTED = 3
_NAMED = 8


def quoted(counts: Mapping[str, int]) -> str:
    """Quote texts, the most frequent first, each with its number.

    Examples
    --------
    >>> from drift.streams.notes import quoted
    >>> quoted({"?": 2, "-": 4})
    "'-' (4), '?' (2)"
    """
    ranked = sorted(counts.items(), key=lambda one: -one[1])
    parts = [f"{text[:40]!r} ({n:,})" for text, n in ranked[:QUOTED]]
    if rest := ranked[QUOTED:]:
        parts.append(f"{counted(len(rest), 'other text')} ({sum(n for _, n in rest):,})")
    return ", ".join(parts)


def named(names: Sequence[Any]) -> str:
    """Name columns, the first of them if they are many.

    Examples
    --------
    >>> from drift.streams.notes import named
    >>> named(["x", "y"]), named("abcdefghij")[-16:]
    ("'x', 'y'", "'h' and 2 others")
    """
    shown = ", ".join(map(repr, names[:_NAMED]))
    rest = len(names) - _NAMED
    return f"{shown} and {counted(rest, 'other')}" if rest > 0 else shown


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
    >>> from drift.streams.notes import twins
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
