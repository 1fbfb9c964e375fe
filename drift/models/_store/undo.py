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
    unless `_kept` names the attribute.
    """

    #: Attributes that an update never changes in place, or only after `Guard.keep`.
    _kept: ClassVar[frozenset[str]] = frozenset()

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Create the instance with its own `__dict__`.

        Guards read `__dict__`. In CPython before 3.13 that makes attribute access slow if the dict
        shares its keys with other instances of the class.
        """
        self = super().__new__(cls)
        self.__dict__ = {}
        return self

    def __copy__(self) -> Self:
        """Copy deeply: two models must not learn into the same supports."""
        return copy.deepcopy(self)


class Kind(IntEnum):
    """How a guard saves an attribute's value."""

    VALUE = 0  # immutable, or no state of the model
    PART = 1
    CONTAINER = 2  # of values, or a list of parts
    STORE = 3  # a column store or a wrapper of one, which logs its changes


_stores: set[type[Any]] = set()

_Class = TypeVar("_Class", bound=type)


def store_class(kind: _Class) -> _Class:
    """Mark a class as a column store or a wrapper of one."""
    _stores.add(kind)
    return kind


@cache
def kind_of(kind: type[Any]) -> Kind:
    """Return how a guard saves values of a type."""
    if issubclass(kind, Part):
        return Kind.PART
    if kind in _stores:
        return Kind.STORE
    name = f"{kind.__module__}.{kind.__qualname__}"
    arrays = {"array.array", "numpy.ndarray"}  # by name, to import neither
    return Kind.CONTAINER if kind in {list, dict, set} or name in arrays else Kind.VALUE


def copied(value: Any) -> Any:
    """Copy a container; an array keeps its memory order."""
    return value.copy() if type(value) in {list, dict, set} else value.__copy__()
