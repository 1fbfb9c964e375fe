"""The module names of drift 0.1.0, which its pickles ask for, and where the modules are now."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["HOMES", "OldNames"]

#: Today's module by the old one, both below `drift.models`.
HOMES = {
    "_gram": "_linalg.gram",
    "_projector": "_linalg.span",
    "_prototypes": "_template.prototypes",
    "_rest": "_linalg.leave_one_out",
    "_shared": "_store.shared_supports",
    "_support": "_store.supports",
    "base": "_template.binary",
    "cache": "cks",
    "multiclass": "budget",
    "projection": "projectron",
}


class OldNames:
    """Finds modules by their old names, for ``sys.meta_path``; imports nothing before that."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Answer the import of an old name."""
        package, _, old = name.rpartition(".")
        known = package == "drift.models" and old in HOMES
        return ModuleSpec(name, self) if known else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Let the module take its names from today's."""
        package, _, old = module.__name__.rpartition(".")
        home = import_module(f"{package}.{HOMES[old]}")
        module.__getattr__ = partial(getattr, home)  # type: ignore[method-assign]
