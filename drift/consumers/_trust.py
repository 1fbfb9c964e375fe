"""What a checkpoint may hold: the classes that are built from one, and models that fit together.

The column store checks its own state. What is not checked can make a forged model fail with an
exception or predict nonsense, no more.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module
from typing import Any, TypeVar

from drift.errors import CheckpointError

__all__ = [
    "ARRAYS",
    "DTYPES",
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

#: Module of each class that models are made of, beside those of the registry.
_PARTS = {
    "Averaged": "drift.models.averaged",
    "ClassProjector": "drift.models._linalg.span",
    "GramFactor": "drift.models._linalg.gram",
    "InverseGram": "drift.models._linalg.gram",
    "Linear": "drift.kernels",
    "OneVsRest": "drift.models.one_vs_rest",
    "Polynomial": "drift.kernels",
    "Projector": "drift.models._linalg.span",
    "Prototypes": "drift.models._template.prototypes",
    "RBF": "drift.kernels",
    "RestScores": "drift.models._linalg.leave_one_out",
    "SharedStore": "drift.models._store.shared_supports",
    "SharedSupports": "drift.models._store.shared_supports",
    "SupportSet": "drift.models._store.supports",
    "Tracker": "drift.models.tracker",
}
#: Types of array.array and of numpy's arrays; numpy's scalars may be dates and texts as well.
ARRAYS = frozenset("bBhHiIqQfd")
DTYPES = frozenset(
    {"|b1", "|i1", "|u1", "<f2", "<f4", "<f8"} | {f"<{k}{n}" for k in "iu" for n in "248"}
)
SCALAR_KINDS = frozenset("biufUSMm")

_registered: dict[str, type] = {}

_MOST = 2**31 - 1


def register(kind: _Class) -> _Class:
    """Let a class of one's own into checkpoints: a kernel, or an algorithm on drift's template.

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
    """Return the class of drift with this name, if there is one."""
    module = _PARTS.get(name)
    if module is not None:
        found: type = getattr(import_module(module), name)
        return found
    from drift.models.registry import MODELS  # noqa: PLC0415  (imports river)

    return MODELS.get(name)


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


def _check(holds: Any, problem: str) -> None:
    if not holds:
        raise refusal(problem)


def check_model(model: Any, objects: list[Any]) -> None:
    """Refuse what is no model, and shared supports that do not add up to their store's."""
    from drift.models._template.river import OnlineClassifier  # noqa: PLC0415  (imports river)

    _check(isinstance(model, OnlineClassifier), f"{type(model).__name__} is no model")
    for part in objects:
        if isinstance(part, OnlineClassifier):
            missing = [name for name in vars(part.clone()) if not hasattr(part, name)]
            _check(not missing, f"a {type(part).__name__} without {', '.join(missing)}")
    from drift.models._store.check import check_budget  # noqa: PLC0415  (imports numpy)

    users: dict[int, tuple[Any, list[Any]]] = {}
    for part in objects:
        if type(part).__name__ == "SharedStore":
            users.setdefault(id(part), (part, []))
        elif type(part).__name__ == "SharedSupports":
            check_budget(part.budget)
            _check(type(part._shared).__name__ == "SharedStore", "no shared store")  # noqa: SLF001
            users.setdefault(id(part._shared), (part._shared, []))[1].append(part)  # noqa: SLF001
    for store, parts in users.values():
        _check_shared(store, parts)


def _check_shared(store: Any, parts: list[Any]) -> None:
    """Refuse slots whose number of users is not that of the hypotheses that hold them."""
    import numpy as np  # noqa: PLC0415

    from drift.models._store.check import distinct  # noqa: PLC0415

    state = store.store.state()
    room, used = store.store.capacity, len(state["sizes"])
    shape = (len(parts), room)
    _check(store.matrix.dtype == np.float64 and store.matrix.shape == shape, "the coefficients")
    _check(store.users.dtype == np.int64 and store.users.shape == (room,), "the users")
    counted = np.zeros(room, dtype=np.int64)
    distinct([part._number for part in parts], len(parts))  # noqa: SLF001
    orders = {id(part._order) for part in parts}  # noqa: SLF001
    _check(len(orders) == len(parts), "supports of two classes in one list")
    for part in parts:
        _check(type(part._factor) is float, "a factor")  # noqa: SLF001
        counted[list(distinct(part._order, used))] += 1  # noqa: SLF001
    live = np.ones(used, dtype=bool)
    live[state["free_slots"]] = False
    _check((counted == store.users).all(), "the users")
    _check(((counted[:used] > 0) == live).all(), "supports that no class holds")
