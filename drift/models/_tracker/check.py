"""Checks of a stored state, so that compiled code stays within its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.errors import LabelError
from drift.models._store.class_labels import check_class
from drift.models._tracker.names import NUMBER_BITS
from drift.models._tracker.tables import ARRAYS, DENSE_NAMES, sizes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.models._tracker.plan import Plan

__all__ = ["check_state"]

#: Keys of a state, and types of the arrays of supports and tickets.
_PARTS = (
    "arrays",
    "supports",
    "free",
    "classes",
    "names",
    "pairs",
    "auto",
    "sparse",
    "draws",
    "tickets",
)
_SUPPORTS = {"sizes": np.int32, "numbers": np.int32, "values": np.float32}
_TICKETS = {"keys": np.uint64, "numbers": np.int64, "sizes": np.int64, "tickets": np.uint8}
_COUNTS: dict[str, type] = {"n_predicted": int, "stride": int, "longest_delay": float}
#: Bytes of a ticket's head: the numbers of rows of scores, and of deviations.
_HEAD = 8
#: Arrays without a number below 0.
_AT_LEAST_0 = ("squared", "regrets", "maps", "sums", "errors", "losses")
#: Tolerance of sums of weights, and of a covariance's symmetry.
_ROUNDING = 1e-6


def _check(holds: Any, problem: str) -> None:
    if not holds:
        raise ValueError(f"the state of a tracker is inconsistent: {problem}")


def check_state(plan: Plan, state: Any) -> None:
    """Refuse, with ValueError, a state that no tracker has.

    Parameters
    ----------
    plan
        Its parameters.
    state
        What `TrackerCore.state` returns.
    """
    _check(type(state) is dict, "no dict")
    _check(set(state) == set(_PARTS), "its parts")
    for name in ("auto", "sparse"):
        _check(type(state[name]) is bool, name)
    _check(type(state["draws"]) is int and 0 <= state["draws"] < 2**64, "draws")
    _check_classes(state["classes"])
    _check_names(state)
    _check_supports(plan, state)
    _check_arrays(plan, state)
    _check((state["tickets"] is not None) == plan.late, "tickets")
    if plan.late:
        _check_tickets(plan, state["tickets"])


def _check_classes(classes: Any) -> None:
    _check(type(classes) is list, "classes")
    try:
        for label in classes:
            check_class(label)
    except LabelError as problem:
        raise ValueError(f"the state of a tracker is inconsistent: {problem}") from None
    _check(len(set(classes)) == len(classes), "two classes are equal")


def _check_names(state: dict[str, Any]) -> None:
    names, pairs = state["names"], state["pairs"]
    _check(type(names) is list, "names")
    try:
        n = len(set(names))
    except TypeError:
        n = -1
    _check(n == len(names) <= DENSE_NAMES, "names that are no different ones")
    _check(not (state["sparse"] and names), "names of sparse rows")
    _check(pairs is None or (type(pairs) is bool and not state["sparse"]), "pairs")
    _check(pairs is not None or not names, "names without pairs")


def _check_supports(plan: Plan, state: dict[str, Any]) -> None:
    supports, free = state["supports"], state["free"]
    _check(type(supports) is dict and set(supports) == set(_SUPPORTS), "supports")
    for name, kind in _SUPPORTS.items():
        array = supports[name]
        good = type(array) is np.ndarray and array.dtype == kind and array.ndim == 1
        _check(good and np.isfinite(array).all(), f"{name} of the supports")
    sizes, numbers = supports["sizes"].astype(np.int64), supports["numbers"].astype(np.int64)
    whole = (sizes >= 0).all() and sizes.sum() == len(numbers) == len(supports["values"])
    _check(whole, "sizes of the supports")
    _check(type(free) is int and -1 <= free < len(sizes), "the free slot")
    _check(free < 0 or sizes[free] == 0, "a support in the free slot")
    _check(len(sizes) - (free >= 0) <= plan.budget, "more supports than the budget")
    most = 2**NUMBER_BITS if state["sparse"] else len(state["names"])
    _check(((numbers >= 0) & (numbers < most)).all(), "a support's feature that there is not")
    slots = np.repeat(np.arange(len(sizes)), sizes)
    _check((np.diff(slots * 2**32 + numbers) > 0).all(), "a support's features out of order")


def _check_tickets(plan: Plan, state: Any) -> None:
    _check(type(state) is dict and set(state) == {*_TICKETS, *_COUNTS}, "tickets")
    for name, kind in _TICKETS.items():
        array = state[name]
        good = type(array) is np.ndarray and array.dtype == kind and array.ndim == 1
        _check(good, f"{name} of the tickets")
    for name, whole in _COUNTS.items():
        _check(type(state[name]) is whole and 0 <= state[name] < 2**63, f"{name} of the tickets")
    numbers, sizes, data = state["numbers"], state["sizes"], state["tickets"]
    n = len(numbers)
    _check(len(state["keys"]) == len(sizes) and 0 <= len(sizes) - n <= 1, "their number")
    _check(state["stride"] > 0, "stride of the tickets")
    order = np.diff(numbers, prepend=0) > 0
    _check(order.all() and (not n or numbers[-1] <= state["n_predicted"]), "numbers of the tickets")
    _check((sizes >= _HEAD).all() and sizes.sum() == len(data), "sizes of the tickets")
    starts = np.cumsum(sizes) - sizes
    heads = data[starts[:, np.newaxis] + np.arange(_HEAD)].copy().view(np.int32)
    rows, n_deviations = heads.T.astype(np.int64) if len(sizes) else np.zeros((2, 0), np.int64)
    _check((rows > 0).all() and (n_deviations >= 0).all(), "sizes in the tickets")
    expected = _HEAD + 4 * (rows * plan.n_members + n_deviations)
    _check((expected == sizes).all(), "sizes in the tickets")
    for start, size, n in zip(starts.tolist(), sizes.tolist(), n_deviations.tolist(), strict=True):
        numbers = np.frombuffer(data[start + _HEAD : start + size].tobytes(), np.float32)
        _check(np.isfinite(numbers[: len(numbers) - n]).all(), "scores in the tickets")


def _check_arrays(plan: Plan, state: dict[str, Any]) -> None:
    arrays, names, sparse = state["arrays"], state["names"], state["sparse"]
    stored = {name: array for name, array in ARRAYS.items() if array.stored}
    _check(type(arrays) is dict and set(arrays) == set(stored), "its arrays")
    n_classes = len(state["classes"])
    sizes = {
        "members": plan.n_members,
        "experts": plan.n_experts,
        "rows": n_classes + 1 if n_classes > 2 else 1,
        "slots": len(state["supports"]["sizes"]),
    }
    n = np.size(arrays["common"]) if sparse else len(names)
    sizes |= sizes_of(n, pairs=bool(state["pairs"]), sparse=sparse)
    for name, table in stored.items():
        array, shape = arrays[name], table.sized(sizes)
        good = type(array) is np.ndarray and array.dtype == table.type and array.shape == shape
        _check(good, f"the type or the shape of {name}")
        _check(np.isfinite(array).all(), f"{name} that are not finite")
    for name in _AT_LEAST_0:
        _check((arrays[name] >= 0.0).all(), f"{name} below 0")
    _check_values(arrays, sparse=sparse)
    if state["free"] >= 0:
        empty = not arrays["coefficients"][:, :, state["free"]].any()
        _check(empty and not arrays["squared"][state["free"]], "coefficients of the free slot")


def _check_values(arrays: dict[str, NDArray[Any]], *, sparse: bool) -> None:
    factors, covariances = arrays["factors"], arrays["covariances"]
    _check(((factors > 0.0) & (factors <= 1.0)).all(), "factors")
    for name in ("features", "deviation_statistics"):  # all but mean and last
        _check((np.delete(arrays[name], [0, 5], axis=-1) >= 0.0).all(), name)
    weights = arrays["means"][..., 1]
    _check(((weights >= 0.0) & (weights <= 1.0)).all(), "means")
    mirrored, diagonal = covariances.swapaxes(1, 2), np.diagonal(covariances, axis1=1, axis2=2)
    asymmetry = abs(covariances - mirrored).max(initial=0.0)
    _check((diagonal >= 0.0).all() and asymmetry <= _ROUNDING * diagonal.max(), "covariances")
    _check(abs(arrays["maps"].sum() - 1.0) <= _ROUNDING, "maps that do not sum to 1")
    common = arrays["common"]
    _check(not common.any() if not sparse else (np.diff(common, prepend=-1) > 0).all(), "common")
