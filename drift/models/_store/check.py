"""Checks of a stored column store, for compiled code to stay within its memory.

The store reads and writes memory at the slots and columns that its state names, so every one of
them is checked before a store is built: a damaged pickle or checkpoint is an error, never a crash.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._base.examples import LARGEST
from drift.models._store.constants import MAX_FLOAT32_ZERO, SPARSE

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_budget", "check_shared", "check_store", "distinct"]

#: Slots and columns are 32-bit numbers.
_MAX_NUMBER = 2**31 - 1
#: A capacity may exceed twice the slots in use by this, because it is rounded up to the lanes.
_SLACK = 64
#: Far above all stored values, which are 1 or less, and within float32's range.
_MAX_VALUE = 2.0**127
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
        raise ValueError(f"the state of a column store is inconsistent: {problem}")


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


def check_budget(budget: Any) -> None:
    """Raise ValueError unless it is a budget or None."""
    _check(
        budget is None or (type(budget) is int and 1 <= budget <= _MAX_NUMBER),
        "`budget` is out of range",
    )


def check_store(state: dict[str, Any], *, exact: bool = False) -> None:
    """Raise ValueError if a store cannot be built from a state.

    Parameters
    ----------
    state
        What `ColumnStore.state` returns; `columns.pyi` explains its keys.
    exact
        Whether the store keeps float64 values even if its columns are not `wide`.
    """
    _check(state.keys() >= _KEYS, f"without {sorted(_KEYS - state.keys())}")
    for name, code in _ARRAYS.items():
        given = state[name]
        _check(type(given) is array and given.typecode == code, f"`{name}` has another type")
    used, columns = len(state["sizes"]), len(state["names"])
    capacity, largest = state["capacity"], state["most"]
    _check(type(state["wide"]) is bool, "`wide` is not a bool")
    _check(type(state["factor"]) is float, "`factor` is not a float")
    _check_calibration(state["calibration"])
    _check(type(largest) is float and 0.0 < largest <= LARGEST, "`most` is out of range")
    for name in ("weight", "scale", "squared", "serials"):
        _check(len(state[name]) == used, f"`{name}` has another length")
    # Capacity doubles, so less than half of it is unused.
    _check(
        type(capacity) is int and used <= capacity <= 2 * used + _SLACK,
        "`capacity` does not fit the slots",
    )
    sizes, ids, values = (np.asarray(state[name]) for name in ("sizes", "ids", "values"))
    total = int(sizes.view(np.uint32).sum())  # which is too large if one is below 0
    _check(total == len(ids) == len(values), "`sizes` does not add up to the values")
    _check(not total or ids.view(np.uint32).max() < columns, "a column is out of range")
    magnitudes, least = abs(values), 0.0 if exact or state["wide"] else MAX_FLOAT32_ZERO
    _check(magnitudes.min(initial=1.0) > least, "a value vanishes")
    _check(magnitudes.max(initial=1.0) < _MAX_VALUE, "a value is too large")
    cells = (columns * np.arange(used)).repeat(sizes) + ids
    cells.sort()
    _check((cells[1:] != cells[:-1]).all(), "a support has a feature twice")
    _check_columns(state, np.bincount(ids, minlength=columns).tolist())
    free = distinct(state["free_slots"], used)
    _check(not any(state["sizes"][slot] for slot in free), "a free slot has features")
    for slot, (divisor, norm2) in enumerate(zip(state["scale"], state["squared"], strict=True)):
        _check(slot in free or 0.0 < divisor < math.inf, "`scale` of a support is out of range")
        _check(0.0 <= norm2 <= LARGEST, "`squared` is out of range")
    _check_order(state, free)


def _check_calibration(arguments: Any) -> None:
    """Check the arguments of a `Calibration`."""
    _check(
        type(arguments) is list
        and len(arguments) == 3
        and all(type(number) is float and 0.0 <= number < math.inf for number in arguments)
        and arguments[0] > 0.0,
        "`calibration` is out of range",
    )


def _check_order(state: dict[str, Any], free: set[int]) -> None:
    """Check the serial numbers against the slots in use."""
    serials, n_added = state["serials"], state["n_added"]
    _check(min(serials, default=0) >= 0, "a serial number is negative")
    _check(
        len({*serials} - {0}) == len(serials) - len(free),
        "a support has no serial number of its own",
    )
    _check(not any(serials[slot] for slot in free), "a free slot has a serial number")
    _check(type(n_added) is int and 0 <= n_added < 2**63, "`n_added` is out of range")


def _check_columns(state: dict[str, Any], counts: list[int]) -> None:
    """Check free columns, names and dense columns against the number of values in each column."""
    names, columns = state["names"], len(counts)
    free = distinct(state["free_columns"], columns)
    _check(type(names) is list and all(names[j] is None for j in free), "a free column has a name")
    _check(
        counts.count(0) == len(free) and not any(counts[j] for j in free),
        "a column without values is not free",
    )
    taken = [name for j, name in enumerate(names) if j not in free] if free else names
    _check(len({*taken}) == len(taken), "a name is there twice")
    # A dense column needs enough values, or a forged state could exhaust the memory.
    dense, least = distinct(state["dense"], columns), state["capacity"] // SPARSE
    _check(all(counts[j] >= least for j in dense), "a dense column has too few values")


def check_shared(shared: Any, parts: list[Any]) -> None:
    """Raise ValueError if a `SharedStore` contradicts its `SharedSupports`.

    `users` of a slot must count the hypotheses that have it as a support.
    """
    state = shared.store.state()
    room, used = shared.store.capacity, len(state["sizes"])
    shape = (len(parts), room)
    matrix = shared.coefficients.matrix
    _check(
        matrix.dtype == np.float64 and matrix.shape == shape, "`matrix` has another type or shape"
    )
    _check(
        shared.users.dtype == np.int64 and shared.users.shape == (room,),
        "`users` has another type or shape",
    )
    counted = np.zeros(room, dtype=np.int64)
    distinct([part.index for part in parts], len(parts))
    for part in parts:
        check_budget(part.budget)
        _check(type(part.coefficient_factor) is float, "`factor` is not a float")
        counted[list(distinct(part.slots_in_store.tolist(), used))] += 1
    live = np.ones(used, dtype=bool)
    live[state["free_slots"]] = False
    _check((counted == shared.users).all(), "`users` does not count the hypotheses")
    _check(((counted[:used] > 0) == live).all(), "a support has no hypothesis")
