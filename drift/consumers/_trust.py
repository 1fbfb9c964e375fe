"""What a checkpoint may hold: the classes that are built from one, and numbers that fit together.

The column store reads and writes memory at the slots and columns that its state names, so every one
of them is checked here, before the store is built or used. What is not checked can make a forged
model fail with an exception or predict nonsense, no more.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ARRAYS",
    "DTYPES",
    "SCALAR_KINDS",
    "check_model",
    "check_state",
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
    "ClassProjector": "drift.models._projector",
    "GramFactor": "drift.models._gram",
    "InverseGram": "drift.models._gram",
    "Linear": "drift.kernels",
    "OneVsRest": "drift.models.one_vs_rest",
    "Polynomial": "drift.kernels",
    "Projector": "drift.models._projector",
    "Prototypes": "drift.models._prototypes",
    "RBF": "drift.kernels",
    "RestScores": "drift.models._rest",
    "SharedStore": "drift.models._shared",
    "SharedSupports": "drift.models._shared",
    "SupportSet": "drift.models._support",
}
#: Types of array.array and of numpy's arrays; numpy's scalars may be dates and texts as well.
ARRAYS = frozenset("bBhHiIqQfd")
DTYPES = frozenset(
    {"|b1", "|i1", "|u1", "<f2", "<f4", "<f8"} | {f"<{k}{n}" for k in "iu" for n in "248"}
)
SCALAR_KINDS = frozenset("biufUSMm")

_registered: dict[str, type] = {}

#: Slots and columns are 32-bit numbers; lanes round capacities up.
_MOST = 2**31 - 1
_LANES = 64


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


def _distinct(numbers: Sequence[Any], below: int) -> set[int]:
    """Return distinct whole numbers below a bound as a set, or refuse them."""
    _check(type(numbers) is list, "no list of numbers")
    found = {whole(number, below - 1) for number in numbers}
    _check(len(found) == len(numbers), "a number that comes twice")
    return found


def check_state(kind: type, state: dict[str, Any]) -> None:
    """Refuse the state of an object that would have compiled code reach beyond its memory."""
    if kind.__name__ == "SupportSet":
        _check_budget(state["budget"])
        live = _check_store(state["store"])
        _check(_distinct(state["order"], _MOST) == live, "supports that are not in the store")
        _check(len(_distinct(state["serials"], 2**63)) == len(live), "supports without number")
    elif kind.__name__ == "SharedStore":
        _check_store(state["store"])


def _check_budget(budget: Any) -> None:
    _check(budget is None or whole(budget) >= 1, "the budget")


def _check_store(state: dict[str, Any]) -> set[int]:
    """Refuse what `ColumnStore.restore` cannot build; return the slots in use."""
    import numpy as np  # noqa: PLC0415

    used, columns = len(state["sizes"]), len(state["names"])
    sizes, ids = np.asarray(state["sizes"]), np.asarray(state["ids"])
    values = np.asarray(state["values"])
    real = np.float64 if state["wide"] else np.float32
    _check(type(state["wide"]) is bool and type(state["factor"]) is float, "the type of columns")
    _check(type(state.get("most", 1.0)) is float, "the largest value")
    _check(sizes.dtype == np.int32 and ids.dtype == np.int32, "the type of its numbers")
    for name in ("values", "weight", "scale", "squared"):
        _check(np.asarray(state[name]).dtype == np.float64, "the type of its numbers")
        _check(name == "values" or len(state[name]) == used, "slots without number")
    # Doubling leaves less than as much again unused.
    _check(used <= whole(state["capacity"]) <= 2 * used + _LANES, "room for its supports")
    _check((sizes >= 0).all() and sizes.sum() == len(ids) == len(values), "the sizes of supports")
    _check(((ids >= 0) & (ids < columns)).all(), "columns out of range")
    with np.errstate(over="ignore", under="ignore"):
        narrow = values.astype(real)
    _check((np.isfinite(narrow) & (narrow != 0)).all(), "values that vanish")
    cells = np.repeat(np.arange(used), sizes) * columns + ids
    cells.sort()
    _check((cells[1:] != cells[:-1]).all(), "a feature that a support has twice")
    _check_columns(state, np.bincount(ids, minlength=columns))
    free = _distinct(state["free_slots"], used)
    _check(not sizes[list(free)].any(), "features of no support")
    return set(range(used)) - free


def _check_columns(state: dict[str, Any], held: Any) -> None:
    """Refuse columns that are not those of the features held, each with a name of its own."""
    names, columns = state["names"], len(held)
    free = _distinct(state["free_columns"], columns)
    _check(type(names) is list and all(names[j] is None for j in free), "names of free columns")
    _check(all(bool(n) != (j in free) for j, n in enumerate(held.tolist())), "empty columns")
    _check(len({name for j, name in enumerate(names) if j not in free}) == columns - len(free),
           "a name that comes twice")  # fmt: skip
    # A column stays dense down to a sixteenth of the slots: what is asked for bounds the memory.
    dense = sorted(_distinct(state["dense"], columns))
    _check((held[dense] >= state["capacity"] // 16).all(), "a dense column of few values")


def check_model(model: Any, objects: list[Any]) -> None:
    """Refuse what is no model, and shared supports that do not add up to their store's."""
    from drift.models._contract import OnlineClassifier  # noqa: PLC0415  (imports river)

    _check(isinstance(model, OnlineClassifier), f"{type(model).__name__} is no model")
    users: dict[int, tuple[Any, list[Any]]] = {}
    for part in objects:
        if type(part).__name__ == "SharedStore":
            users.setdefault(id(part), (part, []))
        elif type(part).__name__ == "SharedSupports":
            _check_budget(part.budget)
            _check(type(part._shared).__name__ == "SharedStore", "no shared store")  # noqa: SLF001
            users.setdefault(id(part._shared), (part._shared, []))[1].append(part)  # noqa: SLF001
    for store, parts in users.values():
        _check_shared(store, parts)


def _check_shared(store: Any, parts: list[Any]) -> None:
    """Refuse slots whose number of users is not that of the hypotheses that hold them."""
    import numpy as np  # noqa: PLC0415

    state = store.store.state()
    room, used = store.store.capacity, len(state["sizes"])
    shape = (len(parts), room)
    _check(store.matrix.dtype == np.float64 and store.matrix.shape == shape, "the coefficients")
    _check(store.users.dtype == np.int64 and store.users.shape == (room,), "the users")
    counted = np.zeros(room, dtype=np.int64)
    _distinct([part._number for part in parts], len(parts))  # noqa: SLF001
    orders = {id(part._order) for part in parts}  # noqa: SLF001
    _check(len(orders) == len(parts), "supports of two classes in one list")
    for part in parts:
        _check(type(part._factor) is float, "a factor")  # noqa: SLF001
        counted[list(_distinct(part._order, used))] += 1  # noqa: SLF001
    live = np.ones(used, dtype=bool)
    live[state["free_slots"]] = False
    _check((counted == store.users).all(), "the users")
    _check(((counted[:used] > 0) == live).all(), "supports that no class holds")
