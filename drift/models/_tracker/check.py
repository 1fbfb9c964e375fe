"""Checks of a stored state, so that compiled code stays within its memory."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.errors import LabelError
from drift.models._base.labels import check_class
from drift.models._tracker.layout import Shape, dtype_of, layout_of
from drift.models._tracker.tables import (
    BINS,
    DENSE_NAMES,
    FEATURE,
    FOREST,
    GROUPS,
    LEAF_LIMIT,
    LEAST_KEPT,
    LEAST_TREE_WEIGHT,
    LEAVES,
    MOST_TREE_WEIGHT,
    NUMBER_BITS,
    SHRINKAGE,
    window_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from drift.models._tracker.layout import Layout
    from drift.models._tracker.plan import Plan

__all__ = ["check_numbers", "check_state"]

#: Keys of a state, and types of the arrays of tickets.
_PARTS = (
    "arrays",
    "slots",
    "values",
    "free",
    "classes",
    "names",
    "sparse",
    "draws",
    "windows",
    "tickets",
)
_TICKETS = {"keys": np.uint64, "numbers": np.int64, "sizes": np.int64, "tickets": np.uint8}
_COUNTS: dict[str, type] = {"n_predicted": int, "stride": int, "longest_delay": float}
#: Bytes of a ticket's head: the numbers of rows of scores, and of deviations.
_HEAD = 8
#: Tolerance of sums of weights, and of a covariance's symmetry.
_ROUNDING = 1e-6
_MOST = sys.float_info.max
#: Arrays of trees that are checked; the largest value of a leaf.
_TREES = (
    *("n_edges", "codes", "places", "labels", "features", "leaves", "scores", "weights", "missed"),
    "forest",
)
_LARGEST_LEAF = SHRINKAGE * LEAF_LIMIT
#: Bounds of numbers of float64, and which they are along the last axis; others are finite.
_ALL, _SIZES = slice(None), [k for k, name in enumerate(FEATURE) if name not in {"mean", "last"}]
_BOUNDS: dict[str, tuple[float, float, Any]] = {
    **dict.fromkeys(("squared", "regrets", "sums", "errors", "losses"), (0.0, _MOST, _ALL)),
    **dict.fromkeys(("features", "deviation_statistics"), (0.0, _MOST, _SIZES)),
    "factors": (5e-324, 1.0, _ALL),  # the least number above 0
    "maps": (0.0, 1.0 + _ROUNDING, _ALL),
    "means": (0.0, 1.0, 1),  # the weights
}


def _inconsistent(problem: object) -> ValueError:
    return ValueError(f"the state of a tracker is inconsistent: {problem}")


def _check(holds: Any, problem: str) -> None:
    if not holds:
        raise _inconsistent(problem)


def _problem_of_supports(sizes: Any, numbers: Any, values: Any, most: int) -> str:
    """Return what is wrong with supports of features below `most`; an empty text if nothing is."""
    total = int(sizes.view(np.uint32).sum())  # which is too large if one is below 0
    if not total == len(numbers) == len(values):
        return "sizes of the supports"
    if total and numbers.view(np.uint32).max() >= most:
        return "a support's feature that there is not"
    places = (np.arange(len(sizes)) << 32).repeat(sizes) + numbers
    return "" if (places[1:] > places[:-1]).all() else "a support's features out of order"


def _outside(numbers: Any, low: Any = None, high: Any = None) -> int:
    """Return the index of the first number out of bounds or not finite; -1 if there is none."""
    good = np.isfinite(numbers) if low is None else (numbers >= low) & (numbers <= high)
    return -1 if good.all() else int(good.argmin())


def _are_covariances(matrices: Any) -> bool:
    """Whether finite matrices are symmetric up to rounding, and no variance is below 0."""
    asymmetry = abs(matrices - matrices.swapaxes(1, 2)).max()
    variances = matrices.diagonal(axis1=1, axis2=2)
    return bool(variances.min() >= 0.0 and asymmetry <= _ROUNDING * variances.max())


def check_state(plan: Plan, state: Any) -> Layout:
    """Refuse, with ValueError, a state that no tracker has; return the layout of its arrays.

    Parameters
    ----------
    plan
        Its parameters.
    state
        What `TrackerCore.state` returns.
    """
    _check(type(state) is dict, "no dict")
    _check(set(state) == set(_PARTS), "its parts")
    _check(type(state["sparse"]) is bool, "sparse")
    _check(type(state["draws"]) is int and 0 <= state["draws"] < 2**64, "draws")
    _check_classes(state["classes"])
    _check_names(state)
    layout = _check_arrays(plan, state)
    _check_supports(plan, state, layout.supports(state["arrays"]))
    _check((state["tickets"] is not None) == plan.late, "tickets")
    if plan.late:
        _check_tickets(plan, state["tickets"])
    return layout


def _check_classes(classes: Any) -> None:
    _check(type(classes) is list, "classes")
    try:
        for label in classes:
            check_class(label)
    except LabelError as problem:
        raise _inconsistent(problem) from None
    _check(len(set(classes)) == len(classes), "two classes are equal")


def _check_names(state: dict[str, Any]) -> None:
    names = state["names"]
    _check(type(names) is list, "names")
    try:
        n = len(set(names))
    except TypeError:
        n = -1
    _check(n == len(names) <= DENSE_NAMES, "names that are no different ones")
    _check(not (state["sparse"] and names), "names of sparse rows")


def _check_supports(plan: Plan, state: dict[str, Any], supports: list[Any]) -> None:
    free, (sizes, numbers, values) = state["free"], supports
    most = 2**NUMBER_BITS if state["sparse"] else len(state["names"])
    problem = _problem_of_supports(sizes, numbers, values, most)
    _check(not problem, problem)
    _check(free < 0 or sizes[free] == 0, "a support in the free slot")
    _check(len(sizes) - (free >= 0) <= plan.budget, "more supports than the budget")


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
    steps = np.zeros(len(data) // 4 + 1, np.int8)  # 1 where scores begin, -1 behind them
    first = (starts + _HEAD) // 4
    steps[first] += 1
    steps[first + rows * plan.n_members] -= 1
    scores = np.frombuffer(data.tobytes(), np.float32)[np.cumsum(steps[:-1], dtype=np.int8) > 0]
    _check(np.isfinite(scores).all(), "scores in the tickets")


def _check_arrays(plan: Plan, state: dict[str, Any]) -> Layout:
    groups = state["arrays"]
    _check(type(groups) is dict and groups.keys() == GROUPS.keys(), "its arrays")
    for name, group in groups.items():
        if not (type(group) is np.ndarray and group.dtype == dtype_of(name)):
            raise _inconsistent(f"the type of its {name} arrays")
    for name in ("slots", "values"):
        _check(type(state[name]) is int and 0 <= state[name] < 2**31, f"the supports' {name}")
    _check(type(state["free"]) is int and -1 <= state["free"] < state["slots"], "the free slot")
    windows, most = state["windows"], window_of(plan.budget) if plan.trees else 0
    good = type(windows) is list and [*map(type, windows)] == [int, int]
    _check(good and all(0 <= n <= most * (not state["sparse"]) for n in windows), "windows")
    shape = Shape.of(plan, state)
    layout = layout_of(shape)
    for name, whole in layout.whole(state["values"]).items():
        if groups[name].shape != whole:
            raise _inconsistent(f"the length of its {name} arrays")
    check_numbers(shape, state)
    return layout


def check_numbers(shape: Shape, state: Mapping[str, Any]) -> None:
    """Refuse, with ValueError, numbers that no tracker has; arrays have the lengths of a shape."""
    layout, groups = layout_of(shape), state["arrays"]
    if wrong := _out_of_bounds(shape, groups):
        raise _inconsistent(f"{wrong} out of bounds")
    _check(_are_covariances(groups["covariances"]), "covariances")
    _check_values(layout, state)
    for prefix in ("", "context_") if shape.trees else ():
        _check_trees(layout, state, prefix)


def _check_trees(layout: Layout, state: Mapping[str, Any], prefix: str) -> None:
    """Check each number that leads compiled code to another, and the ranges of what it computes."""
    names = {name: f"{prefix}tree_{name}" for name in _TREES}
    a = {name: layout.array(state["arrays"], full) for name, full in names.items()}
    columns, trees = layout.sizes[f"{prefix}columns"], layout.sizes["trees"]
    most = 2.0 * trees * _LARGEST_LEAF  # with rounding
    counts = dict(zip(FOREST, a["forest"][0].tolist(), strict=True))
    a["features"] = a["features"][: counts["n_trees"]]  # others are zeros, even without columns
    for name, low, high in (
        ("n_edges", 0, BINS - 1),
        ("codes", 0, a["n_edges"]),
        ("places", 0, LEAVES - 1),
        ("labels", 0, len(state["classes"]) - 1),
        ("features", -1, columns - 1),
        ("leaves", -_LARGEST_LEAF, _LARGEST_LEAF),
        ("scores", -most, most),
        ("weights", LEAST_TREE_WEIGHT * (1.0 - _ROUNDING), MOST_TREE_WEIGHT / LEAST_KEPT),
        ("missed", 0.0, 1.0),
    ):
        _check(((a[name] >= low) & (a[name] <= high)).all(), names[name])
    good = counts["n_trees"] <= trees and counts["next"] < trees and counts["renewing"] <= columns
    _check(good and counts["kept"] >= len(a["labels"]), names["forest"])


def _out_of_bounds(shape: Shape, groups: Mapping[str, NDArray[Any]]) -> str:
    """Return the name of an array with numbers that are not finite or out of bounds, if any."""
    for name, bounds in (("float32", ()), ("float64", _bounds(shape)), ("covariances", ())):
        if (outside := _outside(groups[name], *bounds)) >= 0:
            return layout_of(shape).name_at(name, outside)
    return ""


@lru_cache(maxsize=64)
def _bounds(shape: Shape) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and the largest of each number of float64, which nan is not between."""
    layout = layout_of(shape)
    size = layout.groups["float64"]
    low, high = np.full(size, -_MOST), np.full(size, _MOST)
    for name, (least, largest, places) in _BOUNDS.items():
        own = layout.shapes[name]
        low[layout.places[name]].reshape(own)[..., places] = least
        high[layout.places[name]].reshape(own)[..., places] = largest
    return low, high


def _check_values(layout: Layout, state: Mapping[str, Any]) -> None:
    groups, free = state["arrays"], state["free"]
    common = groups["int32"][layout.places["common"]]
    total = groups["float64"][layout.places["maps"]].sum()
    _check(abs(total - 1.0) <= _ROUNDING, "maps that do not sum to 1")
    ascend = (np.diff(common, prepend=-1) > 0).all() if state["sparse"] else not common.any()
    _check(ascend, "common")
    if free >= 0:
        coefficients = layout.array(groups, "coefficients")[:, :, free]
        empty = not coefficients.any() and not layout.array(groups, "squared")[free]
        _check(empty, "coefficients of the free slot")
