"""drift's models by name, of a size."""

from __future__ import annotations

import inspect
from typing import Any

from drift.models import MODELS


def made(name: str, size: int) -> Any:
    """Make a model of drift's, of that budget if it has one."""
    known = inspect.signature(MODELS[name]).parameters
    wanted = {"budget": size, "seed": 0, "cache": "fixed"}
    return MODELS[name](**{key: value for key, value in wanted.items() if key in known})
