"""What a process takes of the machine; imports nothing that would count in its memory."""

from __future__ import annotations

import psutil


def resident(pid: int | None = None) -> float:
    """Megabytes of memory that a process holds; None: this one."""
    return float(psutil.Process(pid).memory_info().rss / 1e6)


def cpu_seconds(pid: int | None = None) -> float:
    """Seconds of the processor that a process has had; None: this one."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)
