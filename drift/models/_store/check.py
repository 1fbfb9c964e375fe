"""Checks of a stored column store, for compiled code to stay within its memory.

The store reads and writes memory at the slots and columns that its state names, so every one of
them is checked before a store is built: a damaged pickle or checkpoint is an error, never a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._store.features import LARGEST, SPARSE

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_budget", "check_shared", "check_store", "distinct"]

#: Slots and columns are 32-bit numbers; lanes round capacities up.
_MOST = 2**31 - 1
_LANES = 64


def _check(holds: Any, problem: str) -> None:
    if not holds:
        raise ValueError(f"the state of a column store is inconsistent: {problem}")


def distinct(numbers: Sequence[Any], below: int) -> set[int]:
    """Return distinct integers below a bound as a set.

    Raises
    ------
    ValueError
        A number is out of range, no integer, or repeated.
    """
    _check(type(numbers) is list, "not a list of numbers")
    _check(all(type(n) is int and 0 <= n < below for n in numbers), "a number out of range")
    unique = set(numbers)
    _check(len(unique) == len(numbers), "a duplicate number")
    return unique


def check_budget(budget: Any) -> None:
    """Raise ValueError unless it is a budget or None."""
    _check(budget is None or (type(budget) is int and 1 <= budget <= _MOST), "the budget")


def check_store(
    state: dict[str, Any], order: tuple[list[int], list[int], int] | None, *, exact: bool = False
) -> None:
    """Raise ValueError if a store cannot be built from a state.

    Parameters
    ----------
    state
        What `ColumnStore.state` returns.
    order
        The supports' slots and serial numbers, and the number of supports ever added; None for a
        store without an order.
    exact
        Whether the store keeps float64 values even if its columns are not `wide`.
    """
    used, columns = len(state["sizes"]), len(state["names"])
    sizes, ids = np.asarray(state["sizes"]), np.asarray(state["ids"])
    values = np.asarray(state["values"])
    _check(type(state["wide"]) is bool and type(state["factor"]) is float, "the type of columns")
    most = state["most"]
    _check(type(most) is float and 0.0 < most <= LARGEST, "the largest value")
    _check(sizes.dtype == np.int32 and ids.dtype == np.int32, "the type of its numbers")
    for name in ("values", "weight", "scale", "squared"):
        _check(np.asarray(state[name]).dtype == np.float64, "the type of its numbers")
        _check(name == "values" or len(state[name]) == used, "an array of another length")
    # Capacity doubles, so less than half of it is unused.
    capacity = state["capacity"]
    _check(type(capacity) is int and used <= capacity <= 2 * used + _LANES, "the capacity")
    _check((sizes >= 0).all() and sizes.sum() == len(ids) == len(values), "the sizes of supports")
    _check(((ids >= 0) & (ids < columns)).all(), "columns out of range")
    with np.errstate(over="ignore", under="ignore"):
        narrow = values.astype(np.float64 if exact or state["wide"] else np.float32)
    _check((np.isfinite(narrow) & (narrow != 0)).all(), "values that vanish")
    cells = np.repeat(np.arange(used), sizes) * columns + ids
    cells.sort()
    _check((cells[1:] != cells[:-1]).all(), "a duplicate feature of a support")
    _check_columns(state, np.bincount(ids, minlength=columns))
    free = distinct(state["free_slots"], used)
    _check(not sizes[list(free)].any(), "features in free slots")
    if order is not None:
        slots, serials, n_added = order
        live = set(range(used)) - free
        _check(distinct(slots, _MOST) == live, "supports that are not in the store")
        _check(len(distinct(serials, 2**63)) == len(live), "the serial numbers")
        _check(type(n_added) is int and 0 <= n_added < 2**63, "the number of supports")


def _check_columns(state: dict[str, Any], counts: Any) -> None:
    """Check free columns, names and dense columns against the number of values in each column."""
    names, columns = state["names"], len(counts)
    free = distinct(state["free_columns"], columns)
    _check(type(names) is list and all(names[j] is None for j in free), "names of free columns")
    _check(all(bool(n) != (j in free) for j, n in enumerate(counts.tolist())), "empty columns")
    _check(len({name for j, name in enumerate(names) if j not in free}) == columns - len(free),
           "a duplicate name")  # fmt: skip
    # A dense column needs enough values, or a forged state could exhaust the memory.
    dense = sorted(distinct(state["dense"], columns))
    _check((counts[dense] >= state["capacity"] // SPARSE).all(), "a dense column of few values")


def check_shared(shared: Any, parts: list[Any]) -> None:
    """Raise ValueError if a `SharedStore` contradicts its `SharedSupports`.

    `users` of a slot must count the hypotheses that have it as a support.
    """
    state = shared.store.state()
    room, used = shared.store.capacity, len(state["sizes"])
    shape = (len(parts), room)
    _check(shared.matrix.dtype == np.float64 and shared.matrix.shape == shape, "the coefficients")
    _check(shared.users.dtype == np.int64 and shared.users.shape == (room,), "the users")
    counted = np.zeros(room, dtype=np.int64)
    distinct([part._number for part in parts], len(parts))  # noqa: SLF001
    for part in parts:
        check_budget(part.budget)
        _check(type(part._factor) is float, "a factor")  # noqa: SLF001
        counted[list(distinct(part._order.tolist(), used))] += 1  # noqa: SLF001
    live = np.ones(used, dtype=bool)
    live[state["free_slots"]] = False
    _check((counted == shared.users).all(), "the users")
    _check(((counted[:used] > 0) == live).all(), "supports without a class")
