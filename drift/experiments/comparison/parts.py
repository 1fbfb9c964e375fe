"""What a model is made of: its parameters, and the models among them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from river.base import Base
from river.compose import Pipeline

__all__ = ["names_of", "parameters_of", "parts"]


def names_of(part: Base) -> set[str]:
    """Names of a model's parameters."""
    return set(inspect.signature(type(part).__init__).parameters)


def parameters_of(part: Base) -> dict[str, Any]:
    """Parameters by name; of a pipeline, its steps."""
    if isinstance(part, Pipeline):
        return dict(part.steps)
    return {name: getattr(part, name, None) for name in sorted(names_of(part) - {"self"})}


def parts(model: Any) -> Iterator[Base]:
    """A model, and models among its parameters, in lists and dicts, too."""
    if isinstance(model, Base):
        yield model
        model = parameters_of(model)
    if isinstance(model, Mapping):
        model = list(model.values())
    if isinstance(model, Sequence) and not isinstance(model, str | bytes):
        for one in model:
            yield from parts(one)
