"""Examples: their names and values, and the errors of those that cannot be learnt."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from drift._values import is_missing, number
from drift.errors import FeatureError, FeatureTypeError, one_line

if TYPE_CHECKING:
    from drift.types import Features

__all__ = [
    "LARGEST",
    "Content",
    "as_dict",
    "content_of",
    "in_order",
    "index_of",
    "refusal_of",
]

#: The largest squared norm, and the largest value of a kernel that grows with it.
LARGEST = 1e300

#: The non-zero features and values of an example.
Content = frozenset[tuple[Hashable, float]]


def in_order(names: list[Hashable]) -> list[Hashable]:
    """Sort new names, so that their order in the example does not matter.

    Columns are created in this order, and summed in the order of their creation.

    >>> in_order(["b", 2, "a", 10])
    [10, 2, 'a', 'b']
    """
    if set(map(type, names)) in ({str}, {int}):
        return sorted(names)  # type: ignore[type-var]
    return sorted(names, key=lambda name: (type(name).__name__, str(name)))


def index_of(name: Hashable) -> int:
    """Return the column of an array that is the same dict key as a name, or -1.

    >>> [index_of(name) for name in (7, 7.0, True, "7", (7,), float("inf"))]
    [7, 7, 1, -1, -1, -1]
    """
    index = hash(name)  # an int is its own hash
    return index if index >= 0 and name == index else -1


def content_of(x: Mapping[Hashable, Any]) -> Content:
    """Return the non-zero features and values. Examples with the same content are the same.

    >>> content_of({"a": 2, "b": 0.0}) == content_of({"a": 2.0, "c": float("nan")})
    True
    """
    values = ((name, number(value)) for name, value in x.items())
    return frozenset((name, v) for name, v in values if v == v != 0.0)


def as_dict(x: Features) -> dict[Hashable, Any]:
    """Return the features as a dict."""
    batch = len(getattr(x, "shape", ())) > 1
    if hasattr(x, "items") and not batch:
        return dict(x.items())
    kind, remedy = type(x).__name__, ""
    if hasattr(x, "shape"):
        kind = f"{type(x).__module__.partition('.')[0]} {kind}"
        remedy = "; rows of an array or a data frame are for learn_many and predict_many"
    elif isinstance(x, str):
        remedy = "; for text put River's feature_extraction.TFIDF() in front of the model"
    raise FeatureTypeError(
        f"features must come in a dict from names to numbers, not in a {kind}: "
        f"{one_line(repr(x), 80)}{remedy}"
    )


def refusal_of(
    x: Mapping[Hashable, Any],
    problem: BaseException | None = None,
    *,
    largest_self_kernel: float = LARGEST,
) -> Exception:
    """Return the error for an example that is refused: it names the feature and the remedy.

    `problem` is the error of its conversion, returned if every value is a usable number.
    `largest_self_kernel` is the largest k(x, x) that the model allows.
    """
    largest: tuple[float, Hashable, Any] = (0.0, None, None)
    for name, value in x.items():
        try:
            size = abs(number(value))
        except OverflowError:
            size = math.inf
        except (TypeError, ValueError):
            return FeatureTypeError(
                f"feature {name!r} is {value!r:.80}, a {type(value).__name__}, not a number: "
                + _remedy(name, value)
            )
        if size == math.inf:
            return FeatureError(
                f"feature {name!r} is {value!r:.80}: only finite values can be learnt; "
                "drop it, clip it or scale it"
            )
        if size > largest[0]:
            largest = (size, name, value)
    if isinstance(problem, Exception):
        return problem
    fault, remedy = "overflows", ""
    if largest_self_kernel < LARGEST:
        fault = f"exceeds {largest_self_kernel:.3g} and would be rounded"
        remedy = ", or use a larger ridge"
    return FeatureError(
        f"feature {largest[1]!r} is {largest[2]!r:.80}: too large, its kernel value {fault}; "
        f"scale it, for example with river.preprocessing.StandardScaler(){remedy}"
    )


def _remedy(name: Hashable, value: Any) -> str:
    if is_missing(value):
        return (
            "leave absent features out, or give None and fill it before this model, as with "
            f"river.preprocessing.StatImputer(({name!r}, river.stats.Mean()))"
        )
    if not isinstance(value, (str, bytes)):
        return "make a number of it, or leave it out"
    return (
        "encode it before this model, as River's (compose.SelectType(str) | preprocessing."
        "OneHotEncoder()) + compose.SelectType(numbers.Number) does"
    )
