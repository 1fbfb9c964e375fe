"""What a stored model is built of: drift's classes by name, and parts that fit together.

Column stores check their own state. What is not checked can make a forged model fail with an
exception or predict nonsense, no more.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from drift.models.registry import ENTRIES

if TYPE_CHECKING:
    from drift.models._store.shared_supports import SharedSupports

__all__ = ["check_model", "known"]

#: Module of each class, imported when a model has it.
_HOMES = {entry.name: f"drift.models.{entry.home}" for entry in ENTRIES} | {
    "Averaged": "drift.models.averaged",
    "ClassProjector": "drift.models._linalg.span",
    "GramFactor": "drift.models._linalg.gram",
    "InverseGram": "drift.models._linalg.gram",
    "LeaveOneOutScores": "drift.models._linalg.leave_one_out",
    "Linear": "drift.kernels",
    "OneVsRest": "drift.models.one_vs_rest",
    "Polynomial": "drift.kernels",
    "Projector": "drift.models._linalg.span",
    "Prototypes": "drift.models._template.prototypes",
    "RBF": "drift.kernels",
    "SharedStore": "drift.models._store.shared_supports",
    "SharedSupports": "drift.models._store.shared_supports",
    "SupportSet": "drift.models._store.supports",
    "Tracker": "drift.models.tracker",
}


def known(name: str) -> type | None:
    """Return the class of drift with this name, if models may have one."""
    home = _HOMES.get(name)
    found: type | None = getattr(import_module(home), name) if home else None
    return found


def check_model(model: Any, parts: list[Any]) -> None:
    """Refuse, with ValueError, what is no whole model.

    Parameters
    ----------
    model
        What was built.
    parts
        All objects in it.
    """
    from drift.models._store.check import check_shared  # noqa: PLC0415  (imports numpy)
    from drift.models._template.river import OnlineClassifier  # noqa: PLC0415  (imports river)

    if not isinstance(model, OnlineClassifier):
        raise ValueError(f"{type(model).__name__} is no model")  # noqa: TRY004
    for part in parts:
        if isinstance(part, OnlineClassifier):
            missing = [name for name in vars(part.clone()) if not hasattr(part, name)]
            if missing:
                raise ValueError(f"a {type(part).__name__} without {', '.join(missing)}")
    shared = [part for part in parts if type(part).__name__ == "SharedStore"]
    users: list[SharedSupports] = [p for p in parts if type(p).__name__ == "SharedSupports"]
    if not all(any(part._shared is store for store in shared) for part in users):  # noqa: SLF001
        raise ValueError("shared supports without a store")
    for store in shared:
        check_shared(store, [part for part in users if part._shared is store])  # noqa: SLF001
