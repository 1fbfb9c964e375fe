"""Parameters that are refused by name."""

from __future__ import annotations

import math
import operator
from difflib import get_close_matches
from numbers import Real
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from drift._durations import seconds_of
from drift._values import number
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "check_address",
    "check_choice",
    "check_duration",
    "check_instance",
    "check_integer",
    "check_names",
    "check_number",
    "check_numbers",
    "check_seed",
    "counted",
    "in_order",
    "is_text",
    "listed",
    "suggest",
    "weight_of",
]


def counted(n: int, what: str) -> str:
    """Say how many there are of something: its name in the singular, which takes an s.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {what}{'s' if n != 1 else ''}"


def listed(words: Iterable[str]) -> str:
    """Join words as a sentence lists them.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def suggest(name: object, known: Iterable[str]) -> str:
    """Say which known name looks like this one, whatever its case; else which there are.

    Examples
    --------
    >>> suggest("Budgt", ["budget", "kernel"])
    "did you mean 'budget'?"
    >>> suggest("x", ["budget", "kernel"])
    'choose among budget, kernel'
    >>> suggest("x", ["", "p, q"])
    'choose among "", "p, q"'
    """
    known = list(known)
    by_case = {one.lower(): one for one in known}
    near = get_close_matches(str(name).lower(), by_case, n=1)
    if near:
        return f"did you mean {by_case[near[0]]!r}?"
    shown = (one if one and "," not in one else f'"{one}"' for one in known[:20])
    more = [*shown, *(["..."] if len(known) > 20 else [])]
    return f"choose among {', '.join(more)}"


def check_address(name: str, address: str, more: str = "") -> None:
    """Refuse what is no address of a server; `more` is what else to say.

    Examples
    --------
    >>> check_address("registry", "localhost:8081")
    Traceback (most recent call last):
    drift.errors.ParameterError: registry must be http://host:port or https://host:port
    """
    try:
        parts = urlsplit(address)
        good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or "@" in parts.netloc:
        raise ParameterError(f"{name} must be http://host:port or https://host:port{more}")


def check_instance(name: str, value: object) -> None:
    """Refuse a class where an instance of it is meant.

    Examples
    --------
    >>> check_instance("kernel", dict)
    Traceback (most recent call last):
    drift.errors.ParameterError: kernel must be an instance, such as dict(), not the class
    """
    if isinstance(value, type):
        raise ParameterError(
            f"{name} must be an instance, such as {value.__name__}(), not the class"
        )


def check_names(what: str, names: Iterable[Any], known: Iterable[str]) -> None:
    """Refuse a name that there is not, with the one that looks like it.

    Examples
    --------
    >>> check_names("[worker] has no", ["topci"], ["topic", "group"])
    Traceback (most recent call last):
    drift.errors.ParameterError: [worker] has no 'topci': did you mean 'topic'?
    """
    known = list(known)
    for name in names:
        if name not in known:
            raise ParameterError(f"{what} {name!r}: {suggest(name, known)}")


def in_order(what: str, names: Iterable[str] | str, known: Iterable[str]) -> list[str]:
    """Return the known names among `names`, or the one, in their order and whatever their case.

    Refuses a name that there is not, and no names at all.

    Examples
    --------
    >>> in_order("model", ["lbsop", "SPA"], ["SPA", "LBP", "LBSOP"])
    ['SPA', 'LBSOP']
    """
    by_case = {one.lower(): one for one in known}
    asked = [names] if isinstance(names, str) else list(names)
    for name in asked:
        if not isinstance(name, str) or name.lower() not in by_case:
            raise ParameterError(f"no {what} {name!r}: {suggest(name, by_case.values())}")
    if not asked:
        raise ParameterError(f"{what}s is empty: choose among {', '.join(by_case.values())}")
    wanted = {name.lower() for name in asked}
    return [name for lower, name in by_case.items() if lower in wanted]


def check_number(
    name: str, value: Any, *, least: float = 0.0, above: bool = False, most: float = math.inf
) -> None:
    """Refuse a parameter that is not a finite number from `least`, or above it, up to `most`.

    Examples
    --------
    >>> check_number("decay", 0.0, above=True)
    Traceback (most recent call last):
    drift.errors.ParameterError: decay must be a number above 0, not 0.0
    >>> check_number("alpha", "0.9", above=True, most=1.0)
    Traceback (most recent call last):
    drift.errors.ParameterError: alpha must be a number above 0 and up to 1, not '0.9'
    """
    try:
        good = math.isfinite(value) and (value > least if above else value >= least)
        good = good and value <= most
    except (TypeError, ValueError, OverflowError):  # of a signaling NaN, of 10**400
        good = False
    if not good:
        bound = f"above {least:g}" if above else f"of at least {least:g}"
        bound += f" and up to {most:g}" if most < math.inf else ""
        raise ParameterError(f"{name} must be a number {bound}, not {value!r:.80}")


def check_duration(name: str, value: Any) -> float:
    """Return the seconds of a number, or of a text with a unit; refuse what is neither.

    Examples
    --------
    >>> check_duration("time_limit", 5), check_duration("time_limit", "10m")
    (5.0, 600.0)
    >>> check_duration("time_limit", "10")
    Traceback (most recent call last):
    drift.errors.ParameterError: time_limit must be a number of seconds, or as '30d', not '10'
    """
    seconds: Any = seconds_of(value) if isinstance(value, str) else value
    try:
        check_number(name, seconds)
    except ParameterError:
        message = f"{name} must be a number of seconds, or as '30d', not {value!r:.80}"
        raise ParameterError(message) from None
    return float(seconds)


def check_numbers(
    name: str,
    values: Any,
    *,
    least: float = 0.0,
    above: bool = False,
    most: float = math.inf,
) -> tuple[float, ...]:
    """Return a list of finite numbers from `least`, or above it, up to `most` as a tuple.

    Refuses what is none.

    Examples
    --------
    >>> check_numbers("rates", ())
    Traceback (most recent call last):
    drift.errors.ParameterError: rates must be a list of one number or more, not ()
    """
    try:
        numbers = tuple(values)
    except TypeError:
        numbers = ()
    if isinstance(values, (str, bytes)) or not numbers:
        raise ParameterError(f"{name} must be a list of one number or more, not {values!r:.80}")
    for value in numbers:
        check_number(f"each of {name}", value, least=least, above=above, most=most)
    return tuple(map(float, numbers))


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse a parameter that is none of these names.

    Examples
    --------
    >>> check_choice("decide", "both", ("vote", "probability"))
    Traceback (most recent call last):
    drift.errors.ParameterError: decide cannot be 'both': choose among vote, probability
    """
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(f"{name} cannot be {value!r:.80}: {suggest(value, choices)}")


def weight_of(w: Any) -> float:
    """Return the weight of an example as a float; refuse what cannot be one.

    Between 1e-100 and 1e100 products and quotients of weights and kernel values stay finite.

    Examples
    --------
    >>> weight_of(2)
    2.0
    >>> weight_of(-1)
    Traceback (most recent call last):
    drift.errors.ParameterError: weight -1 is out of range: give a number from 1e-100 to 1e100, or 0
        to pass the example over
    """
    try:
        weight = number(w) if isinstance(w, (float, Real)) else math.nan
    except TypeError:  # numpy's spans of time are registered as integers
        weight = math.nan
    except OverflowError:
        weight = math.inf
    if weight == 0.0 or 1e-100 <= weight <= 1e100:
        return weight
    raise ParameterError(
        f"weight {w!r:.80} is out of range: give a number from 1e-100 to 1e100, or 0 to pass the "
        "example over"
    )


def check_integer(name: str, value: Any, *, least: int = 1) -> int:
    """Return a parameter, numpy's integers too, as an int; refuse what is none or too small.

    Examples
    --------
    >>> check_integer("budget", 0)
    Traceback (most recent call last):
    drift.errors.ParameterError: budget must be an integer of at least 1, not 0
    """
    try:
        integer = operator.index(value)
    except TypeError:
        integer = None
    if integer is None or isinstance(value, bool) or integer < least:
        raise ParameterError(f"{name} must be an integer of at least {least}, not {value!r:.80}")
    return integer


def check_seed(seed: Any) -> int | None:
    """Return a seed, numpy's integers too, as an int or None; refuse anything else.

    Examples
    --------
    >>> check_seed("1")
    Traceback (most recent call last):
    drift.errors.ParameterError: seed must be an integer or None, not '1'
    """
    try:
        return None if seed is None else operator.index(seed)
    except TypeError:
        raise ParameterError(f"seed must be an integer or None, not {seed!r:.80}") from None


def is_text(value: str) -> bool:
    """Whether JSON gives a text back: two halves of surrogate pairs come back as one character."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
