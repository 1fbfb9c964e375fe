"""Where the arrays of a tracker's state lie in those of their groups."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.models._tracker.tables import ARRAYS, GROUP_OF, GROUPS, sizes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from drift.models._tracker.plan import Plan

__all__ = ["Layout", "Shape", "arrays_of", "dtype_of", "layout_of"]


class Shape(NamedTuple):
    """What the sizes of a tracker's arrays follow from.

    Parameters
    ----------
    members, experts
        Numbers of members and of kernel experts.
    classes
        Number of classes met.
    slots
        Number of slots of supports.
    names
        Number of features that are standardised.
    pairs
        Whether pairs have surfaces.
    sparse
        Whether rows are sparse.
    """

    members: int
    experts: int
    classes: int
    slots: int
    names: int
    pairs: bool
    sparse: bool

    @classmethod
    def of(cls, plan: Plan, state: Mapping[str, Any]) -> Shape:
        """Return that of a state whose names, classes and supports are checked."""
        sparse, slots = state["sparse"], len(state["supports"]["sizes"])
        names = np.size(state["arrays"]["int32"]) if sparse else len(state["names"])
        classes, pairs = len(state["classes"]), bool(state["pairs"])
        return cls(plan.n_members, plan.n_experts, classes, slots, names, pairs, sparse)


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
        Shape by group.
    """

    sizes: dict[str, int]
    shapes: dict[str, tuple[int, ...]]
    places: dict[str, slice]
    groups: dict[str, tuple[int, ...]]

    def empty(self) -> dict[str, NDArray[Any]]:
        """Return groups to be filled."""
        return {name: np.empty(shape, dtype_of(name)) for name, shape in self.groups.items()}

    def array(self, groups: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
        """Return an array in its group."""
        return groups[GROUP_OF[name]].ravel()[self.places[name]].reshape(self.shapes[name])

    def arrays(self, groups: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays in groups, by name."""
        return {name: self.array(groups, name) for name in self.places}

    def name_at(self, group: str, i: int) -> str:
        """Return the name of the array that number `i` of a group belongs to."""
        return next(n for n in GROUPS[group] if self.places[n].start <= i < self.places[n].stop)

    def grouped(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the groups of arrays."""
        groups = self.empty()
        for name, array in self.arrays(groups).items():
            array[...] = arrays[name]
        return groups


def dtype_of(group: str) -> str:
    """Return the type of a group's numbers."""
    return ARRAYS[GROUPS[group][0]].type


def arrays_of(plan: Plan, state: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a state, by name."""
    return layout_of(Shape.of(plan, state)).arrays(state["arrays"])


@lru_cache(maxsize=64)
def layout_of(shape: Shape) -> Layout:
    """Return the layout of states; that of many small trackers is one."""
    rows = shape.classes + 1 if shape.classes > 2 else 1
    sizes = {
        "members": shape.members,
        "experts": shape.experts,
        "rows": rows,
        "slots": shape.slots,
        **sizes_of(shape.names, pairs=shape.pairs, sparse=shape.sparse),
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
