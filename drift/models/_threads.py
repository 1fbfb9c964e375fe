"""One thread at a time in a model: another is told so, and nothing is corrupted."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from drift.models._names import IN_USE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Guard", "Guarded", "Held", "alone", "holding"]

_Method = TypeVar("_Method", bound="Callable[..., Any]")


class Held(Protocol):
    """What a thread takes before it works on a model: a column store, or a `Guard`."""

    def hold(self) -> int:
        """Keep other threads out until `release`; RuntimeError where one of them is in."""

    def release(self) -> None:
        """Let other threads in again; as often as `hold` was called."""


class Guard:
    """Keeps other threads out of what has no compiled store to do so."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def hold(self) -> int:
        """Keep other threads out until `release`; RuntimeError where one of them has done so."""
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(IN_USE)
        return 0

    def release(self) -> None:
        """Let other threads in again."""
        self._lock.release()

    def __deepcopy__(self, memo: dict[int, Any]) -> Guard:
        return Guard()  # River's clone copies attribute by attribute


class Guarded:
    """A model with a guard of its own, which is no part of its state: copies get another."""

    def __init__(self) -> None:
        self._own_guard = Guard()

    @property
    def _guard(self) -> Held:
        return self._own_guard

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_own_guard"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._own_guard = Guard()


@contextmanager
def holding(store: Held | None) -> Iterator[None]:
    """Keep other threads out of a store, if there is one."""
    if store is None:
        yield
        return
    store.hold()
    try:
        yield
    finally:
        store.release()


def alone(method: _Method) -> _Method:
    """Keep other threads out of a model, by its `_guard`, while a method runs."""

    @wraps(method)
    def held(self: Any, *args: Any, **kwargs: Any) -> Any:
        guard: Held = self._guard
        guard.hold()
        try:
            return method(self, *args, **kwargs)
        finally:
            guard.release()

    return cast("_Method", held)
