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

__all__ = ["allocated", "arrays_in", "check_room", "no_room", "places"]

#: Bytes of a cache line, of what begins on one, and to which all others are aligned.
LINE, LARGE, WORD = 64, 512, 8


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


def places(room: dict[str, int]) -> list[int]:
    """Return where each array of `tables.py` begins in a block, and at last the block's size.

    Large ones begin on a cache line.
    """
    found, end = [], 0
    for array in ARRAYS.values():
        size = math.prod(array.sized(room)) * np.dtype(array.type).itemsize
        step = LINE if size >= LARGE else WORD
        start = -(-end // step) * step
        found.append(start)
        end = start + size
    return [*found, end]


def arrays_in(block: NDArray[Any], room: dict[str, int]) -> dict[str, NDArray[Any]]:
    """Return the arrays that are in a block, by name."""
    return {
        name: np.ndarray(array.sized(room), array.type, block.data, start)
        for (name, array), start in zip(ARRAYS.items(), places(room), strict=False)
    }


def allocated(
    room: dict[str, int], before: NDArray[Any] | None, room_before: dict[str, int]
) -> NDArray[Any]:
    """Return a block for all arrays: one object, as each would take as much as a small array.

    Parameters
    ----------
    room
        Size of each dimension.
    before, room_before
        The block so far, whose arrays are taken over, with zeros behind; None where there is none.

    Raises
    ------
    MemoryError
        If there is no memory for it beside the present one.
    """
    size = places(room)[-1]
    check_room(size + (0 if before is None else before.nbytes))
    padded = np.zeros(size + LINE, np.uint8)
    start = -padded.ctypes.data % LINE
    block = padded[start : start + size]
    if before is not None:
        arrays = arrays_in(block, room)
        for name, array in arrays_in(before, room_before).items():
            arrays[name][tuple(map(slice, array.shape))] = array
    return block


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
