"""How a model that wraps another is printed."""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["ModelWrapper"]


class ModelWrapper:
    """A model that wraps another, and shows it in its repr, as River's wrappers do."""

    model: Any

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.model})"

    def __repr__(self) -> str:
        names = inspect.signature(type(self)).parameters
        shown = [f"{name}={getattr(self, name)!r}" for name in names]
        lines = "\n".join([f"{type(self).__name__} (", *shown]).replace("\n", "\n  ")
        return f"{lines}\n)"
