"""The template that every algorithm fills in: River's contract, batches, labels, classes."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drift.models._template import batches as batches
    from drift.models._template import frames as frames

__all__ = ["batches", "frames"]


def __getattr__(name: str) -> Any:
    """Import these on first use: scipy and narwhals take longer than everything else."""
    if name not in __all__:
        problem = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(problem, name=name, obj=sys.modules[__name__])
    return import_module(f"{__name__}.{name}")
