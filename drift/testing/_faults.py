"""Faults between two steps of a worker, at the points that `drift.consumers` names."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from drift.consumers import crash_points
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Abort", "Aborted", "Pause"]


class Aborted(BaseException):
    """What `Abort` raises; no ``except Exception`` holds it up, as none holds up a kill."""


class _AtPoint:
    """Act when a point is reached for the `count`-th time since the block was entered."""

    def __init__(self, point: str, count: int = 1) -> None:
        if count < 1:
            raise ParameterError(f"count = {count}, but the first time is 1")
        self.point = point
        self.count = count
        self.times = 0

    def __enter__(self) -> Self:
        crash_points.install(self.point, self._reached)
        return self

    def __exit__(self, *exception: object) -> None:
        crash_points.remove(self.point)

    def _reached(self) -> None:
        self.times += 1
        if self.times == self.count:
            self._act()

    _act: Callable[[], None]


class Abort(_AtPoint):
    """End a worker in this process between two of its steps, as a kill would.

    Nothing of what the worker would do next is done but its ``finally`` blocks; throw it away and
    start another. A worker in its own process is killed for good by the environment variable
    ``DRIFT_ABORT_AT=point:count``.

    Parameters
    ----------
    point
        Name of the point, such as ``"checkpoint.written"``.
    count
        At which time that the point is reached, from 1.

    Attributes
    ----------
    times : int
        How often the point was reached.

    Raises
    ------
    ParameterError
        `count` is below 1.
    Aborted
        Inside the block, where the point is reached.

    Examples
    --------
    >>> from drift.consumers.crash_points import reached
    >>> from drift.testing import Abort, Aborted
    >>> with Abort("example.learnt", count=2) as abort:
    ...     try:
    ...         for example in range(10):
    ...             reached("example.learnt")
    ...     except Aborted:
    ...         print("after", abort.times, "examples")
    after 2 examples
    """

    def _act(self) -> None:
        raise Aborted(f"{self.point}, time {self.times}")


class Pause(_AtPoint):
    """Hold a worker in another thread between two of its steps, as a frozen machine would.

    It resumes at `release`, at the latest when the block ends.

    Parameters
    ----------
    point
        Name of the point, such as ``"checkpoint.written"``.
    count
        At which time that the point is reached, from 1.

    Attributes
    ----------
    times : int
        How often the point was reached.

    Raises
    ------
    ParameterError
        `count` is below 1.

    Examples
    --------
    ::

        with Pause("checkpoint.written") as pause:
            worker = threading.Thread(target=run)
            worker.start()
            pause.wait()  # the worker stands still: take its partition away
            pause.release()
    """

    def __init__(self, point: str, count: int = 1) -> None:
        super().__init__(point, count)
        self._held = threading.Event()
        self._released = threading.Event()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self.release()

    def wait(self, timeout: float = 10) -> bool:
        """Wait until a thread is held; False if none is after `timeout` seconds."""
        return self._held.wait(timeout)

    def release(self) -> None:
        """Resume the held thread."""
        self._released.set()

    def _act(self) -> None:
        self._held.set()
        self._released.wait()
