"""Memory of a process; imports nothing that would count in it."""

from __future__ import annotations

import psutil


def resident(pid: int | None = None) -> float:
    """Megabytes of memory that a process holds; None: this one."""
    return float(psutil.Process(pid).memory_info().rss / 1e6)
