"""What a stored model is built of: numbers of some types, drift's and registered classes.

Column stores check their own state. What is not checked can make a forged model fail with an
exception or predict nonsense, no more.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeVar

from drift.errors import CheckpointError

__all__ = [
    "ARRAYS",
    "DTYPES",
    "HOMES",
    "SCALAR_KINDS",
    "class_of",
    "drift_class",
    "is_value",
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
    "Awaited": "drift._decision",
    "Decision": "drift._decision",
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
    ...     def __call__(self, dot, squared_norm_a, squared_norm_b):
    ...         return dot / (squared_norm_a * squared_norm_b) ** 0.5
    """
    _registered[f"{kind.__module__}.{kind.__qualname__}"] = kind
    return kind


def name_of(kind: type) -> str:
    """Return the name by which a class is stored."""
    name = kind.__qualname__
    if drift_class(name) is kind:
        return name
    name = f"{kind.__module__}.{name}"
    if _registered.get(name) is kind:
        return name
    raise CheckpointError(
        f"{name} is no class of drift's models: register it with drift.consumers.register, or "
        "allow pickle: CheckpointFolder(..., allow_pickle=True), or --allow-pickle"
    )


def class_of(name: str) -> type:
    """Return the class that is stored by a name."""
    kind = _registered.get(name) or drift_class(name)
    if kind is None:
        raise CheckpointError(
            f"the model has a part of class {name!r:.100}, which drift does not know: register it "
            "with drift.consumers.register"
        )
    return kind


@lru_cache(maxsize=1000)
def drift_class(name: str) -> type | None:
    """Return the class of drift with this name, if models may have one."""
    home = HOMES.get(name)
    found: type | None = getattr(import_module(home), name) if home else None
    return found


@lru_cache(maxsize=1000)
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
