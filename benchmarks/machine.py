"""What the figures depend on: processor, versions, and the code that was measured."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.models import compiled

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[1]
_PACKAGES = (
    "drift-learn",
    "river",
    "numpy",
    "scipy",
    "Cython",
    "scikit-learn",
    "vowpalwabbit",
)


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    return dict(
        python=platform.python_version(),
        platform=platform.platform(),
        processor=processor(),
        cores=os.cpu_count(),
        compiled=compiled,
        versions={package: version(package) for package in _PACKAGES},
    )


def version(package: str) -> str | None:
    """Version of a package, None where it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def processor() -> str:
    """Name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines: Iterable[str] = cpuinfo.read_text().splitlines() if cpuinfo.exists() else ()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def load_average() -> list[float]:
    """Processes that wanted a core in the last 1, 5 and 15 minutes, where the system says."""
    return [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else []


def write_json(path: Path, content: Any) -> None:
    """Replace a file by one that is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def resident() -> float:
    """Megabytes of memory that this process holds; NaN where the system does not say."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return float("nan")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
