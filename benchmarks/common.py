"""What the benchmarks share: real stories as dicts, and what the figures depend on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.models import compiled
from drift.streams import load, tracking_groups

if TYPE_CHECKING:
    from collections.abc import Iterable

Examples = list[tuple[dict[Any, float], bool]]


def stream() -> tuple[str, Examples]:
    """Stories as dicts from words to weights, with seven shifts of the target."""
    name = "rcv1" if os.environ.get("DRIFT_DATA") else "newswire"
    documents, targets = load(name, n=20_000)
    shifting = tracking_groups(documents, targets, shifts=(7,), n_streams=1)[7][0]
    words: dict[Any, str] = {}
    return name, [
        ({words.setdefault(j, f"word{j}"): v for j, v in x.items()}, y) for x, y in shifting
    ]


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    packages = ("drift", "river", "numpy", "scipy", "Cython")
    return dict(
        python=platform.python_version(),
        platform=platform.platform(),
        processor=processor(),
        cores=os.cpu_count(),
        compiled=compiled,
        versions={package: importlib.metadata.version(package) for package in packages},
    )


def processor() -> str:
    """Name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines: Iterable[str] = cpuinfo.read_text().splitlines() if cpuinfo.exists() else ()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
