"""What a guard rolls back when an update fails: the parts of a model, by their type.

A guard saves the content of a model and of its parts before an update, and restores it if the
update raises.
"""

from __future__ import annotations

import copy
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Kind", "Part", "copied", "kind_of", "store_class"]


class Part:
    """Part of a model whose attributes an update may change.

    Lists, dicts, sets and arrays are copied before an update, so that they may be changed in place,
    unless `_kept` names their attributes.
    """

    #: Attributes whose content an update never changes in place, or only after `Guard.keep`.
    _kept: ClassVar[frozenset[str]] = frozenset()

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make one with a dict of its own from the beginning.

        Guards ask for it, and after that CPython before 3.13 finds attributes slowly in one that
        shares its keys with the class's other instances.
        """
        self = super().__new__(cls)
        self.__dict__ = {}
        return self

    def __copy__(self) -> Self:
        """Copy all of it: a model that shared another's supports would learn into that, too."""
        return copy.deepcopy(self)


class Kind(IntEnum):
    """What a guard does about an attribute's value."""

    VALUE = 0  # it never changes, or is none of the model's state
    PART = 1
    CONTAINER = 2  # of values, or a list of parts
    STORE = 3  # a column store, or what is no more than one; it keeps a log of its own


_stores: set[type[Any]] = set()

_Class = TypeVar("_Class", bound=type)


def store_class(kind: _Class) -> _Class:
    """Decorate a column store, or a class that is no more than one around it."""
    _stores.add(kind)
    return kind


@cache
def kind_of(kind: type[Any]) -> Kind:
    """Return what a guard does about values of a type."""
    if issubclass(kind, Part):
        return Kind.PART
    if kind in _stores:
        return Kind.STORE
    name = f"{kind.__module__}.{kind.__qualname__}"
    arrays = {"array.array", "numpy.ndarray"}  # by name: nothing is imported for it
    return Kind.CONTAINER if kind in {list, dict, set} or name in arrays else Kind.VALUE


def copied(value: Any) -> Any:
    """Copy a container, an array with the order of its memory."""
    return value.copy() if type(value) in {list, dict, set} else value.__copy__()
