"""Where the arrays of a tracker's state lie in those of their groups."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.models._tracker.tables import ARRAYS, GROUP_OF, GROUPS, sizes_of, trees_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from drift.models._tracker.plan import Plan

__all__ = ["Layout", "Shape", "arrays_of", "dtype_of", "layout_of"]


class Shape(NamedTuple):
    """What the sizes of a tracker's arrays follow from.

    Parameters
    ----------
    members, kernel_members
        Numbers of members and of kernel members among them.
    classes
        Number of classes met.
    slots
        Number of slots of supports.
    names
        Number of features that are standardised.
    sparse
        Whether rows are sparse.
    trees
        Whether there are trees.
    windows
        Number of rows in the window of each member of trees.
    """

    members: int
    kernel_members: int
    classes: int
    slots: int
    names: int
    sparse: bool
    trees: bool
    windows: tuple[int, int]

    @classmethod
    def of(cls, plan: Plan, state: Mapping[str, Any]) -> Shape:
        """Return that of a state whose names, classes and numbers of supports are checked."""
        sparse, slots, names = state["sparse"], state["slots"], len(state["names"])
        trees, windows = plan.trees and not sparse, tuple(state["windows"])
        if sparse:
            names = max(np.size(state["arrays"]["int32"]) - slots - state["values"], 0)
        classes = len(state["classes"])
        members = plan.n_members, plan.n_kernel_members
        return cls(*members, classes, slots, names, sparse, trees, windows)


class Layout(NamedTuple):
    """Sizes of dimensions and of arrays.

    Attributes
    ----------
    sizes
        Size by dimension.
    shapes
        Shape by array.
    places
        Place in its group, by array.
    groups
        Shape by group, without the supports.
    """

    sizes: dict[str, int]
    shapes: dict[str, tuple[int, ...]]
    places: dict[str, slice]
    groups: dict[str, tuple[int, ...]]

    def whole(self, values: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of groups with supports of so many values."""
        [floats], [ints] = self.groups["float32"], self.groups["int32"]
        ints += self.sizes["slots"] + values
        return self.groups | {"float32": (floats + values,), "int32": (ints,)}

    def empty(self, values: int) -> dict[str, NDArray[Any]]:
        """Return groups to be filled."""
        return {name: np.empty(shape, dtype_of(name)) for name, shape in self.whole(values).items()}

    def supports(self, groups: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the supports' sizes by slot, their features, and their values."""
        [floats], [ints] = self.groups["float32"], self.groups["int32"]
        middle = ints + self.sizes["slots"]
        numbers = groups["int32"]
        return [numbers[ints:middle], numbers[middle:], groups["float32"][floats:]]

    def array(self, groups: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
        """Return an array in its group."""
        return groups[GROUP_OF[name]].ravel()[self.places[name]].reshape(self.shapes[name])

    def arrays(self, groups: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays in groups, by name."""
        return {name: self.array(groups, name) for name in self.places}

    def name_at(self, group: str, i: int) -> str:
        """Return the name of the array that number `i` of a group belongs to."""
        places = [(name, self.places[name]) for name in GROUPS[group]]
        return next((n for n, one in places if one.start <= i < one.stop), "values of the supports")

    def grouped(
        self, arrays: Mapping[str, NDArray[Any]], supports: Sequence[Any]
    ) -> dict[str, NDArray[Any]]:
        """Return the groups of arrays and of what `supports` returns."""
        groups = self.empty(len(supports[-1]))
        for name, array in self.arrays(groups).items():
            array[...] = arrays[name]
        for array, given in zip(self.supports(groups), supports, strict=True):
            array[...] = given
        return groups


@cache
def dtype_of(group: str) -> Any:
    """Return the type of a group's numbers."""
    return np.dtype(ARRAYS[GROUPS[group][0]].type)


def arrays_of(plan: Plan, state: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a state, by name."""
    return layout_of(Shape.of(plan, state)).arrays(state["arrays"])


@lru_cache(maxsize=64)
def layout_of(shape: Shape) -> Layout:
    """Return the layout of states; that of many small trackers is one."""
    rows = shape.classes + 1 if shape.classes > 2 else 1
    sizes = {
        "members": shape.members,
        "kernel_members": shape.kernel_members,
        "rows": rows,
        "slots": shape.slots,
        "window": shape.windows[0],
        "context_window": shape.windows[1],
        **sizes_of(shape.names, sparse=shape.sparse, trees=shape.trees * trees_of(shape.classes)),
    }
    shapes: dict[str, tuple[int, ...]] = {}
    places: dict[str, slice] = {}
    groups: dict[str, tuple[int, ...]] = {}
    for group, names in GROUPS.items():
        own = {name: ARRAYS[name].sized(sizes) for name in names}
        ends = [*accumulate((math.prod(one) for one in own.values()), initial=0)]
        shapes |= own
        places |= {name: slice(*ends) for name, ends in zip(names, pairwise(ends), strict=True)}
        groups[group] = own[group] if group in own else (ends[-1],)
    return Layout(sizes, shapes, places, groups)
