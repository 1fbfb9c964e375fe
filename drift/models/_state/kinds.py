"""What a stored model is built of: numbers of some types, drift's and registered classes.

Column stores check their own state. What is not checked can make a forged model fail with an
exception or predict nonsense, no more.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import lru_cache
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.models._store.shared_supports import SharedSupports

__all__ = [
    "ARRAYS",
    "DTYPES",
    "HOMES",
    "SCALAR_KINDS",
    "check_model",
    "class_of",
    "is_value",
    "known",
    "name_of",
    "refusal",
    "register",
    "whole",
]

_Class = TypeVar("_Class", bound=type)

#: Types of array.array and of numpy's arrays; numpy's scalars may be dates and texts as well.
ARRAYS = frozenset("bBhHiIqQfd")
DTYPES = frozenset(
    {"|b1", "|i1", "|u1", "<f2", "<f4", "<f8"} | {f"<{k}{n}" for k in "iu" for n in "248"}
)
SCALAR_KINDS = frozenset("biufUSMm")

#: Module of each class of drift's, imported when a model has it. These are parts of models;
#: `drift.models`, without which none can be imported, adds the models.
HOMES = {
    "ClassProjector": "drift.models._linalg.span",
    "GramFactor": "drift.models._linalg.gram",
    "InverseGram": "drift.models._linalg.gram",
    "LeaveOneOutScores": "drift.models._linalg.leave_one_out",
    "Linear": "drift.kernels",
    "Polynomial": "drift.kernels",
    "Projector": "drift.models._linalg.span",
    "RBF": "drift.kernels",
    "SharedStore": "drift.models._store.shared_supports",
    "SharedSupports": "drift.models._store.shared_supports",
    "SupportSet": "drift.models._store.supports",
}

_registered: dict[str, type] = {}

_MOST = 2**31 - 1
#: Types of parameters that are no more than their value.
_PLAIN = {bool, int, float, str}


def register(kind: _Class) -> _Class:
    """Let a class of one's own into checkpoints and `to_bytes`: a kernel, or an algorithm.

    A frozen dataclass is stored by its fields and built from them, another class by its attributes.
    It has to be registered before a checkpoint with it is read, too.

    Parameters
    ----------
    kind
        The class, defined at the top of an importable module.

    Returns
    -------
    type
        The class: this is a decorator.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @register
    ... @dataclass(frozen=True)
    ... class Cosine:
    ...     def __call__(self, dot, sq_a, sq_b):
    ...         return dot / (sq_a * sq_b) ** 0.5
    """
    _registered[f"{kind.__module__}.{kind.__qualname__}"] = kind
    return kind


def name_of(kind: type) -> str:
    """Return the name by which a class is stored."""
    name = kind.__qualname__
    if known(name) is kind:
        return name
    name = f"{kind.__module__}.{name}"
    if _registered.get(name) is kind:
        return name
    raise CheckpointError(
        f"{name} is no class of drift's models: register it with drift.consumers.register, or "
        "allow pickle in checkpoints (--allow-pickle)"
    )


def class_of(name: str) -> type:
    """Return the class that is stored by a name."""
    kind = _registered.get(name) or known(name)
    if kind is None:
        raise CheckpointError(
            f"the model has a part of class {name!r:.100}, which drift does not know: register it "
            "with drift.consumers.register"
        )
    return kind


def known(name: str) -> type | None:
    """Return the class of drift with this name, if models may have one."""
    home = HOMES.get(name)
    found: type | None = getattr(import_module(home), name) if home else None
    return found


def is_value(kind: type) -> bool:
    """Whether objects of a class are no more than their fields: a frozen dataclass."""
    return is_dataclass(kind) and bool(kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def whole(number: Any, most: int = _MOST) -> int:
    """Return a number that is an int from 0 on, or refuse it."""
    if type(number) is not int or not 0 <= number <= most:
        raise refusal("a number out of its range")
    return number


def refusal(problem: str) -> CheckpointError:
    """Error for a state that `encode` did not give."""
    return CheckpointError(f"the model's state does not hold together: {problem}")


def _attributes(model: Any) -> Iterable[str]:
    """Return what a new model with the same parameters has; it refuses those that cannot be."""
    kind: Any = type(model)
    parameters = tuple((name, getattr(model, name)) for name in _parameters(kind))
    if all(_is_plain(value) for _, value in parameters):
        return _attributes_of(kind, parameters, tuple(type(value) for _, value in parameters))
    return [*vars(model.clone())]


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return value is None or type(value) in _PLAIN


@lru_cache
def _parameters(kind: type) -> tuple[str, ...]:
    return tuple(signature(kind).parameters)


@lru_cache(maxsize=1000)
def _attributes_of(
    kind: type, parameters: tuple[tuple[str, Any], ...], _types: tuple[type, ...]
) -> tuple[str, ...]:
    """Return the attributes of a new model; one is made once, as thousands may be restored."""
    return tuple(vars(kind(**dict(parameters))))


def check_model(model: Any, parts: list[Any]) -> None:
    """Refuse, with ValueError, what is no whole model.

    Parameters
    ----------
    model
        What was built.
    parts
        All objects in it.
    """
    from river.base import Classifier  # noqa: PLC0415  (heavy, as is what follows)

    from drift.models._store.check import check_shared  # noqa: PLC0415

    if not isinstance(model, Classifier):
        raise ValueError(f"{type(model).__name__} is no model")  # noqa: TRY004
    for part in parts:
        if isinstance(part, Classifier):
            missing = [name for name in _attributes(part) if not hasattr(part, name)]
            if missing:
                raise ValueError(f"a {type(part).__name__} without {', '.join(missing)}")
    shared = [part for part in parts if type(part).__name__ == "SharedStore"]
    users: list[SharedSupports] = [p for p in parts if type(p).__name__ == "SharedSupports"]
    if not all(any(part._shared is store for store in shared) for part in users):  # noqa: SLF001
        raise ValueError("shared supports without a store")
    for store in shared:
        check_shared(store, [part for part in users if part._shared is store])  # noqa: SLF001
