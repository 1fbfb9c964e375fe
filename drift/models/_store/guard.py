"""The guard in plain Python: one thread at a time in a model, and atomic updates."""

from __future__ import annotations

import threading
from collections import deque
from functools import partial, wraps
from operator import call
from typing import TYPE_CHECKING, Any, TypeVar, cast

from drift.models._store.undo import Kind, Part, copied, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["IN_USE", "Guard", "alone"]

#: The error of a thread that finds another at work in a model.
IN_USE = (
    "the model is in use elsewhere: share it between threads under a lock, or give each its own"
)

_Method = TypeVar("_Method", bound="Callable[..., Any]")


class Guard:
    """The contract of the compiled store's guard in plain Python."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._log: list[partial[None]] | None = None  # what takes the update under way back
        self._contents: dict[int, Any] = {}  # by id, what there is in it
        self._deferred: list[Callable[[], Any]] = []

    def hold(self) -> int:
        """Keep other threads out until `release`; RuntimeError where one of them has done so."""
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(IN_USE)
        return 0

    def release(self) -> None:
        """Let other threads in again; as often as `hold` was called."""
        self._lock.release()

    def run(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method while other threads are kept out."""
        self.hold()
        try:
            return method(*args, **kwargs)
        finally:
            self.release()

    def update(self, part: Part, change: Callable[..., Any], *args: Any) -> Any:
        """Call what changes a part, other threads kept out; all is as before if that raises.

        Within another update it is a piece of that one.
        """
        return self.run(self._piece if self._log is not None else self._update, part, change, *args)

    def _piece(self, part: Part, change: Callable[..., Any], *args: Any) -> Any:
        self.join(part)
        return change(*args)

    def _update(self, part: Part, change: Callable[..., Any], *args: Any) -> Any:
        log: list[partial[None]] = []
        # One call, before which the interpreter runs no signal handler: an interrupt that comes
        # while an exception is handled finds all undone.
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
            self._contents.clear()
        return result

    def join(self, part: Part) -> int:
        """Let the update under way change another part, and what that consists of."""
        assert self._log is not None  # noqa: S101
        if id(part) in self._contents:
            return 0
        before = self._contents[id(part)] = dict(part.__dict__)
        self._log.append(partial(setattr, part, "__dict__", before))
        for name, value in part.__dict__.items():
            kind = kind_of(type(value))  # type: ignore[arg-type]  # which has a hash
            if kind == Kind.PART:
                self.join(value)
            elif kind == Kind.CONTAINER:
                if name not in part._kept:  # noqa: SLF001
                    before[name] = copied(value)
                if type(value) is list and value and isinstance(value[0], Part):
                    for one in value:
                        self.join(one)
            elif kind == Kind.STORE:
                store = getattr(value, "store", value)
                if id(store) not in self._contents:
                    content = self._contents[id(store)] = store.content()
                    self._log.append(partial(setattr, store, "__dict__", content))
        return 0

    def keep(self, array: Any, slot: int = -1) -> None:
        """Have an array, or its last axis at a slot, as it is if the update is undone."""
        if self._log is not None:
            place: Any = ... if slot < 0 else (..., slot)
            back = partial(array.__setitem__, place, array[place].copy())
            self._log.insert(0, back)  # what was first comes last

    def defer(self, call: Callable[[], Any]) -> None:
        """Call what is compiled and cannot fail at the end of the update; now, if there is none."""
        if self._log is None:
            call()
        else:
            self._deferred.append(call)

    def __reduce__(self) -> Any:
        return Guard, ()  # a copy of a model is nobody's yet


def alone(method: _Method) -> _Method:
    """Keep other threads out of a model, by its `_guard`, while a method runs."""

    @wraps(method)
    def held(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._guard.run(method, self, *args, **kwargs)

    return cast("_Method", held)
