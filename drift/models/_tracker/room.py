"""Memory for the arrays, and the refusal of a class for which there is none."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.errors import LabelError
from drift.models._tracker.tables import ARRAYS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.types import Label

__all__ = ["allocated", "check_room", "no_room"]

#: Bytes of a cache line.
LINE = 64


@cache
def memory() -> float:
    """Bytes of memory that this process may have; infinite where nothing tells."""
    found = [math.inf]
    with suppress(AttributeError, OSError, ValueError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # a container's; "max" where it has no limit
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(found)


def check_room(size: float) -> None:
    """Raise MemoryError where this process has no memory for so many bytes.

    To ask first is better than to try: a system that promises more memory than it has ends the
    process.
    """
    if size > memory():
        raise MemoryError(f"no room for arrays of {size} bytes")


def allocated(room: dict[str, int], before: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of `tables.py` with so much room, zeros behind what they had.

    Parameters
    ----------
    room
        Size of each dimension.
    before
        The arrays so far; those whose room does not change are taken over.

    Raises
    ------
    MemoryError
        If there is no memory for them beside the present ones.
    """
    shapes = {name: array.sized(room) for name, array in ARRAYS.items()}
    fresh = [name for name in ARRAYS if name not in before or before[name].shape != shapes[name]]
    size = sum(math.prod(shapes[name]) * np.dtype(ARRAYS[name].type).itemsize for name in fresh)
    check_room(size + sum(array.nbytes for array in before.values()))
    arrays = before.copy()
    for name in fresh:
        arrays[name] = _aligned(shapes[name], ARRAYS[name].type)
        if name in before:
            arrays[name][tuple(slice(n) for n in before[name].shape)] = before[name]
    return arrays


def _aligned(shape: tuple[int, ...], kind: str) -> NDArray[Any]:
    """Return zeros that begin on a cache line."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    block = np.zeros(size + LINE, np.uint8)
    start = -block.ctypes.data % LINE
    return block[start : start + size].view(kind).reshape(shape)


def no_room(y: Label, n_classes: int, size: int) -> LabelError:
    """Return the error of a label for which there is no room as a class.

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
