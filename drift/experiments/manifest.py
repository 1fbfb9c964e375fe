"""How results came about: what every experiment leaves beside them."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import drift
from drift.models import compiled

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["manifest"]


def manifest(
    stream: str, sha256: str, settings: Mapping[str, Any], seconds: float
) -> dict[str, Any]:
    """Versions, parameters, data, machine and wall time, as JSON can hold them."""
    return {
        "versions": {"python": platform.python_version(), "drift": drift.__version__}
        | {name: version(name) for name in ("river", "numpy", "scipy")},
        "compiled": compiled,
        "data": {"stream": stream, "sha256": sha256},
        "parameters": dict(settings),
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform()},
        "seconds": round(seconds, 2),
    }
