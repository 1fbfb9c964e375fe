"""How a model that wraps another is printed."""

from __future__ import annotations

from typing import Any

__all__ = ["ModelWrapper"]


class ModelWrapper:
    """A model that wraps another, and shows it in its repr, as River's wrappers do."""

    model: Any

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.model})"

    def __repr__(self) -> str:
        inner = repr(self.model).replace("\n", "\n  ")
        return f"{type(self).__name__} (\n  model={inner}\n)"
