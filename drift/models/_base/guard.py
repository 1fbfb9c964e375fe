"""The guard of a model: one thread at a time, and rollback of an update that fails.

A guard saves the attributes of a model, and of the parts that it contains, before an update, and
restores them if the update raises. `kind_of` says how it saves a value of each type: containers
are copied one level deep, so a rollback does not reach what is changed inside their items (`Part`).
This guard is in plain Python; the compiled one is `guard.pxi`.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from enum import IntEnum
from functools import cache, partial, wraps
from operator import call
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

__all__ = [
    "IN_USE",
    "Guard",
    "Kind",
    "Part",
    "alone",
    "check_saved",
    "copied",
    "kind_of",
    "undoes_itself",
]

#: The error of a thread that finds a model locked.
IN_USE = (
    "the model is in use elsewhere: share it between threads under a lock, or give each its own"
)

_Method = TypeVar("_Method", bound="Callable[..., Any]")


class Part:
    """Part of a model whose attributes an update may change.

    Lists, dicts, sets and arrays are copied before an update, one level deep: it may add, replace
    and delete their items. It may change an item in place only if that is a part, in a list of
    parts or passed to `Guard.update` or `Guard.join`. `_not_copied` names containers that are not
    copied. `kind_of` refuses other types of container.
    """

    #: Attributes not copied before an update, which replaces them or calls `Guard.save` first.
    _not_copied: ClassVar[frozenset[str]] = frozenset()

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

    def _set_attributes(
        self, state: Mapping[str, Any], names: Mapping[str, str] | None = None
    ) -> None:
        """Set attributes from a stored state; `names` has those that are named otherwise in it."""
        for name, value in state.items():
            # Interns the name, as unpickling does by itself.
            setattr(self, names.get(name, name) if names else name, value)


class Kind(IntEnum):
    """How a guard saves an attribute's value."""

    VALUE = 0  # immutable, or not changed by an update
    PART = 1
    CONTAINER = 2  # of values, or a list of parts; copied one level deep
    SELF_UNDOING = 3  # undoes its own changes


_self_undoing: set[type[Any]] = set()

_Class = TypeVar("_Class", bound=type)


def undoes_itself(cls: _Class) -> _Class:
    """Mark a class whose objects undo their own changes, or have a `store` that does.

    A compiled object has `start`, `undo` and `finish`. The compiled guard calls these before an
    update, if it fails, and if it succeeds; it raises an exception that `finish` returns.
    The plain guard calls `rollback_copy` of a plain object before an update, and makes the result
    its `__dict__` if the update fails.
    """
    _self_undoing.add(cls)
    return cls


@cache
def kind_of(cls: type[Any]) -> Kind:
    """Return how a guard saves values of a type.

    Raises
    ------
    TypeError
        It is another kind of container, in which the guard could not undo changes.
    """
    if issubclass(cls, Part):
        return Kind.PART
    if cls in _self_undoing:
        return Kind.SELF_UNDOING
    containers = {"builtins.list", "builtins.dict", "builtins.set", "array.array", "numpy.ndarray"}
    others = {"builtins.bytearray", "collections.deque"}
    # By name, to import neither numpy nor array.
    own, *bases = [f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__]
    if own in containers:
        return Kind.CONTAINER
    if own in others or not (containers | others).isdisjoint(bases):
        raise TypeError(
            f"a model has an attribute of type {cls.__qualname__}, and no failed update could undo "
            "a change in it: use a list, dict, set, array or numpy array"
        )
    return Kind.VALUE


def copied(value: Any) -> Any:
    """Copy a container; an array keeps its memory order."""
    return value.copy() if type(value) in {list, dict, set} else value.__copy__()


def check_saved(array: Any, slot: int) -> None:
    """Check what `Guard.save` is given.

    Raises
    ------
    TypeError
        The array does not have one or two dimensions, or contains Python objects.
    IndexError
        The array does not have the slot.
    """
    if array.ndim not in {1, 2} or array.dtype.hasobject:
        raise TypeError(
            f"a guard cannot save an array of {array.ndim} dimensions and type {array.dtype}: "
            "it needs one or two dimensions, and no Python objects"
        )
    if slot >= array.shape[-1]:
        raise IndexError(f"the array has {array.shape[-1]} slots, so none has number {slot}")


class Guard:
    """A lock for a model, with rollback of a failed update."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._log: list[partial[None]] | None = None  # calls that roll back the current update
        self._joined: set[int] = set()  # ids of what has joined the update
        self._deferred: list[Callable[[], Any]] = []

    def acquire(self) -> None:
        """Lock the model for this thread; RuntimeError if another thread has it. Reentrant."""
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(IN_USE)

    def release(self) -> None:
        """Unlock, once for each `acquire`."""
        self._lock.release()

    def run(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method under the lock."""
        self.acquire()
        try:
            return method(*args, **kwargs)
        finally:
            self.release()

    def update(self, part: Part, change: Callable[..., Any], *args: Any) -> Any:
        """Call a function that changes a part, under the lock; roll back if it raises.

        `Part` says what a change may be, to be rolled back. A nested update is part of the
        outermost one.
        """
        return self.run(self._update, part, change, *args)

    def _update(self, part: Part, change: Callable[..., Any], *args: Any) -> Any:
        if self._log is None:
            return self._outermost(part, change, *args)
        self.join(part)
        return change(*args)

    def _outermost(self, part: Part, change: Callable[..., Any], *args: Any) -> Any:
        log: list[partial[None]] = []
        # The whole rollback is one call, and no signal handler runs before it. So an interrupt in
        # the exception handler comes after the rollback.
        undo: Callable[[], Any] = partial(deque, map(call, log), 0)
        self._deferred = []
        finish: Callable[[], Any] = partial(deque, map(call, self._deferred), 0)
        try:
            self._log = log
            self.join(part)
            result = change(*args)
            self._log = None
            finish()
        except BaseException:
            if self._log is None:
                raise
            undo()
            raise
        finally:
            self._log = None
            self._joined.clear()
        return result

    def join(self, part: Part) -> None:
        """Add a part, and the parts that it contains, to the current update.

        The plain store adds itself, to be changed outside of a model's update.
        """
        assert self._log is not None  # noqa: S101
        if kind_of(type(part)) == Kind.SELF_UNDOING:  # type: ignore[arg-type]  # which has a hash
            self._join_undoing(part)
            return
        if id(part) in self._joined:
            return
        self._joined.add(id(part))
        before = dict(part.__dict__)
        self._log.append(partial(setattr, part, "__dict__", before))
        for name, value in part.__dict__.items():
            kind = kind_of(type(value))  # type: ignore[arg-type]  # which has a hash
            if kind == Kind.PART:
                self.join(value)
            elif kind == Kind.CONTAINER:
                if name not in part._not_copied:  # noqa: SLF001
                    before[name] = copied(value)
                if type(value) is list and value and isinstance(value[0], Part):
                    for item in value:
                        self.join(item)
            elif kind == Kind.SELF_UNDOING:
                self._join_undoing(getattr(value, "store", value))

    def _join_undoing(self, owner: Any) -> None:
        """Add an object that undoes its own changes to the current update."""
        if self._log is not None and id(owner) not in self._joined:
            self._joined.add(id(owner))
            self._log.append(partial(setattr, owner, "__dict__", owner.rollback_copy()))

    def save(self, array: Any, slot: int = -1) -> None:
        """Save an array, or one slot of its last axis, for a rollback; `check_saved` says which."""
        if self._log is not None:
            check_saved(array, slot)
            region: Any = ... if slot < 0 else (..., slot)
            restore = partial(array.__setitem__, region, array[region].copy())
            self._log.insert(0, restore)  # the first saved value is restored last

    def defer(self, call: Callable[[], Any]) -> None:
        """Call a function at the end of the current update, or now without one.

        It must be compiled code that cannot fail, because nothing undoes it.
        """
        if self._log is None:
            call()
        else:
            self._deferred.append(call)

    def __reduce__(self) -> Any:
        return Guard, ()  # a copy of a model is unlocked


def alone(method: _Method) -> _Method:
    """Have a method run under the lock of its object's `_guard`."""

    @wraps(method)
    def locked(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._guard.run(method, self, *args, **kwargs)

    return cast("_Method", locked)
