"""Checks of stored states: a state is refused, or what is built from it is consistent.

Consistent means that it does what its contract says, that both stores give the same results, and
that its copies continue as it does. So a damaged pickle or checkpoint is an error, and never a
crash: the compiled store reads and writes memory at the slots and columns that a state names. A
number that a sound model could have as well, such as another coefficient, is not noticed.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._base.examples import LARGEST
from drift.models._store.calibration import MAX_SLOPE, MAX_SQUARE, MIN_SLOPE
from drift.models._store.constants import (
    MAX_COEFFICIENT_FACTOR,
    MAX_FLOAT32_ZERO,
    MIN_COEFFICIENT_FACTOR,
    SPARSE,
)
from drift.models._store.precision import power_of_two

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "check_array",
    "check_budget",
    "check_calibration",
    "check_coefficients",
    "check_keys",
    "check_prototypes",
    "check_shared",
    "check_slots",
    "check_store",
    "distinct",
]

#: Slots and columns are 32-bit numbers.
_MAX_NUMBER = 2**31 - 1
#: A capacity may exceed twice the slots in use by this, because it is rounded up to the lanes.
_SLACK = 64
#: Far above all stored values, which are 1 or less, and within float32's range.
_MAX_VALUE = 2.0**127
#: Serial numbers are 64-bit numbers, and no model lives to see this one.
_MAX_SERIAL = 2**62
#: Types of the arrays of a store's state.
_ARRAYS = {
    **dict.fromkeys(("sizes", "ids"), "i"),
    **dict.fromkeys(("values", "weight", "scale", "squared"), "d"),
    "serials": "q",
}
_KEYS = {
    *_ARRAYS,
    *("wide", "most", "calibration", "factor", "capacity", "names", "n_added"),
    *("free_columns", "free_slots", "dense"),
}


def _check(holds: Any, problem: str) -> None:
    if not holds:
        raise ValueError(f"a stored state is inconsistent: {problem}")


def distinct(numbers: Sequence[Any], below: int) -> set[int]:
    """Return distinct integers below a bound as a set.

    Raises
    ------
    ValueError
        A number is out of range, not an integer, or repeated.
    """
    _check(type(numbers) is list, "numbers are not in a list")
    _check(all(type(n) is int and 0 <= n < below for n in numbers), "a number is out of range")
    unique = set(numbers)
    _check(len(unique) == len(numbers), "a number is there twice")
    return unique


def check_keys(what: str, keys: Any) -> None:
    """Raise ValueError unless these are a list of distinct keys of a dict."""
    _check(type(keys) is list, f"there is no list of {what}s")
    try:
        n_distinct = len({*keys})
    except TypeError as problem:
        raise ValueError(f"a stored state is inconsistent: a {what}: {problem}") from None
    _check(n_distinct == len(keys), f"a {what} is there twice")


def check_budget(budget: Any, n_supports: int = 0) -> None:
    """Raise ValueError unless it is None, or a budget for this number of supports."""
    if budget is not None:
        _check(type(budget) is int and 1 <= budget <= _MAX_NUMBER, "`budget` is out of range")
        _check(n_supports <= budget, "there are more supports than `budget`")


def check_store(state: dict[str, Any], *, keeps_float64: bool = False) -> None:
    """Raise ValueError if a store cannot be built from a state.

    Parameters
    ----------
    state
        What `ColumnStore.state` returns; `columns.pyi` explains its keys.
    keeps_float64
        Whether the store keeps float64 values even if its columns are not `wide`.
    """
    _check(type(state) is dict, "it is not a dict")
    _check(state.keys() >= _KEYS, f"without {sorted(_KEYS - state.keys())}")
    for name, code in _ARRAYS.items():
        given = state[name]
        _check(type(given) is array and given.typecode == code, f"`{name}` has another type")
    _check(type(state["names"]) is list, "`names` is not a list")
    n_slots, n_columns = len(state["sizes"]), len(state["names"])
    capacity, largest = state["capacity"], state["most"]
    _check(type(state["wide"]) is bool, "`wide` is not a bool")
    check_calibration(state["calibration"])
    _check(type(largest) is float and 0.0 < largest <= LARGEST, "`most` is out of range")
    for name in ("weight", "scale", "squared", "serials"):
        _check(len(state[name]) == n_slots, f"`{name}` has another length")
    # Capacity doubles, so less than half of it is unused.
    _check(
        type(capacity) is int and n_slots <= capacity <= 2 * n_slots + _SLACK,
        "`capacity` does not fit the slots",
    )
    sizes, ids, values = (np.asarray(state[name]) for name in ("sizes", "ids", "values"))
    total = int(sizes.view(np.uint32).sum())  # which is too large if one is below 0
    _check(total == len(ids) == len(values), "`sizes` does not add up to the values")
    _check(not total or ids.view(np.uint32).max() < n_columns, "a column is out of range")
    magnitudes, least = abs(values), 0.0 if keeps_float64 or state["wide"] else MAX_FLOAT32_ZERO
    _check(magnitudes.min(initial=1.0) > least, "a value vanishes")
    _check(magnitudes.max(initial=1.0) < _MAX_VALUE, "a value is too large")
    cells = (n_columns * np.arange(n_slots)).repeat(sizes) + ids
    cells.sort()
    _check((cells[1:] != cells[:-1]).all(), "a support has a feature twice")
    _check_columns(state, np.bincount(ids, minlength=n_columns).tolist())
    free = distinct(state["free_slots"], n_slots)
    for name in ("sizes", "weight", "squared", "serials"):
        _check(not any(state[name][slot] for slot in free), f"`{name}` of a free slot is not 0")
    pairs = zip(state["scale"], state["squared"], strict=True)
    for slot, (divisor, squared_norm) in enumerate(pairs):
        _check(0.0 <= squared_norm <= LARGEST, "`squared` is out of range")
        # It is 1 if the kernel normalises examples.
        fits = slot in free or divisor in {1.0, power_of_two(squared_norm)}
        _check(fits, "`scale` does not fit `squared`")
    check_coefficients(state["weight"], state["factor"])
    _check_order(state, free)


def check_coefficients(unscaled: Any, factor: Any) -> None:
    """Raise ValueError if coefficients, or the factor of them all, are out of range."""
    _check(
        type(factor) is float and MIN_COEFFICIENT_FACTOR < abs(factor) < MAX_COEFFICIENT_FACTOR,
        "`factor` is out of range",
    )
    largest = float(np.abs(unscaled).max(initial=0.0))  # NaN if one is
    _check(max(abs(factor), 1.0) * largest < math.inf, "a coefficient is not finite")


def check_calibration(arguments: Any) -> None:
    """Raise ValueError unless these are the arguments of a `Calibration`."""
    _check(
        type(arguments) is list
        and len(arguments) == 3
        and all(type(number) is float for number in arguments)
        and MIN_SLOPE <= arguments[0] <= MAX_SLOPE
        and 0.0 <= arguments[1] <= MAX_SQUARE
        and 0.0 <= arguments[2] < math.inf,
        "`calibration` is out of range",
    )


def _check_order(state: dict[str, Any], free: set[int]) -> None:
    """Check the serial numbers against the slots in use."""
    serials, n_added = state["serials"], state["n_added"]
    _check(type(n_added) is int and 0 <= n_added < _MAX_SERIAL, "`n_added` is out of range")
    _check(
        0 <= min(serials, default=0) <= max(serials, default=0) <= n_added,
        "a serial number is out of range",
    )
    _check(
        len({*serials} - {0}) == len(serials) - len(free),
        "a support has no serial number of its own",
    )


def _check_columns(state: dict[str, Any], counts: list[int]) -> None:
    """Check free columns, names and dense columns against the number of values in each column."""
    names, n_columns = state["names"], len(counts)
    free = distinct(state["free_columns"], n_columns)
    _check(all(names[j] is None for j in free), "a free column has a name")
    _check(
        counts.count(0) == len(free) and not any(counts[j] for j in free),
        "a column without values is not free",
    )
    taken = [name for j, name in enumerate(names) if j not in free] if free else names
    check_keys("name", taken)
    # A dense column needs enough values, or a forged state could exhaust the memory.
    dense, least = distinct(state["dense"], n_columns), state["capacity"] // SPARSE
    _check(all(counts[j] >= least for j in dense), "a dense column has too few values")


def check_shared(shared: Any, parts: list[Any]) -> None:
    """Raise ValueError if a `SharedStore` contradicts its `SharedSupports`.

    `users` of a slot must count the hypotheses that have it as a support, and no other hypothesis
    may have a coefficient there.
    """
    state = shared.store.state()
    room, n_slots = shared.store.capacity, len(state["sizes"])
    shape = (len(parts), room)
    matrix = shared.coefficients.matrix
    _check(
        matrix.dtype == np.float64 and matrix.shape == shape, "`matrix` has another type or shape"
    )
    _check(
        shared.users.dtype == np.int64 and shared.users.shape == (room,),
        "`users` has another type or shape",
    )
    has = np.zeros(shape, dtype=bool)
    distinct([part.index for part in parts], len(parts))
    for part in parts:
        check_budget(part.budget, len(part))
        check_coefficients(matrix[part.index], part.coefficient_factor)
        has[part.index, list(distinct(part.own_slots_by_age.tolist(), n_slots))] = True
    _check(not matrix[~has].any(), "a hypothesis has a coefficient without its support")
    counted = has.sum(axis=0)
    live = np.ones(n_slots, dtype=bool)
    live[state["free_slots"]] = False
    _check((counted == shared.users).all(), "`users` does not count the hypotheses")
    _check(((counted[:n_slots] > 0) == live).all(), "a support has no hypothesis")


def check_prototypes(prototypes: Any, supports: Any) -> None:
    """Raise ValueError if `Prototypes` contradict the `SupportSet` under them."""
    matrix, n_classes, slots = prototypes.matrix, len(prototypes), supports.slots_by_age
    _check(
        type(matrix) is np.ndarray
        and matrix.dtype == np.float64
        and matrix.ndim == 2
        and matrix.flags.c_contiguous
        and len(matrix) >= n_classes
        and (not slots or matrix.shape[1] >= supports.capacity),
        "`matrix` has another type or shape",
    )
    check_coefficients(matrix, 1.0)
    has = np.zeros(matrix.shape, dtype=bool)
    has[:n_classes, slots] = True
    _check(not matrix[~has].any(), "a class has a coefficient without a support")


def check_array(name: str, array: Any, shape: tuple[int, ...], *, fortran: bool = False) -> None:
    """Raise ValueError unless an array has finite doubles and this shape (and order)."""
    _check(
        type(array) is np.ndarray
        and array.dtype == np.float64
        and array.shape == shape
        and (array.flags.f_contiguous or not fortran),
        f"`{name}` has another type or shape",
    )
    _check(np.isfinite(array).all(), f"`{name}` is not finite")


def check_slots(name: str, slots: Any, supports: Any) -> None:
    """Raise ValueError unless something is kept of the slots of all supports, and no others."""
    _check(sorted(slots) == sorted(supports.slots_by_age), f"`{name}` is not that of the supports")
