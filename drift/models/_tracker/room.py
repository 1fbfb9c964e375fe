"""Checks of memory before arrays grow, and the error of a class without any."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from drift.errors import LabelError

if TYPE_CHECKING:
    from drift.types import Label

__all__ = ["check_room", "no_room"]


@cache
def memory() -> float:
    """Bytes of memory that this process may use; infinite if unknown."""
    limits = [math.inf]
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # a container's; "max" where it has no limit
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(limits)


def check_room(size: float) -> None:
    """Raise MemoryError if this process cannot have so many bytes.

    Allocating instead would be unsafe: a system that overcommits memory kills the process.
    """
    if size > memory():
        raise MemoryError(f"no room for arrays of {size} bytes")


def no_room(y: Label, n_classes: int, size: int) -> LabelError:
    """Return the error of a label without memory for its class.

    Examples
    --------
    >>> raise no_room("order 4711", 20_000, 412_000)
    Traceback (most recent call last):
    drift.errors.LabelError: label 'order 4711' would be class 20,000, and there is no memory for
    it: each takes 0.41 MB. Leave out labels that name no classes, as numbers of orders do, or
    classify into fewer
    """
    return LabelError(
        f"label {y!r:.80} would be class {n_classes:,}, and there is no memory for it: each takes "
        f"{size / 1e6:.2f} MB. Leave out labels that name no classes, as numbers of orders do, or "
        "classify into fewer"
    )
