"""What a run takes: processor time of the model's calls, memory, and the limit of its time."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from drift.experiments.memory import memory

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Meter", "TimeUpError"]

#: Share of a run's time, at most, that looking at the model's memory takes.
_LOOKING = 0.1


class TimeUpError(Exception):
    """A run has taken longer than it may."""


class Meter:
    """Time and memory of a model, window by window.

    Its calls are timed without a system call for each of them: the clock that costs nothing says
    which share of a window they take, and the processor's clock, read at both ends of the window,
    what that comes to. So others on the machine do not count.

    Parameters
    ----------
    windows
        How many there are.
    limit
        Seconds of the processor, from now on, that the run may take; None: any.

    Attributes
    ----------
    seconds : list of float
        What the calls took of the processor in each window.
    bytes : list of int or None
        The model's size at the end of each window; None where looking would have taken long.
    busy : float
        Seconds on the clock of the calls in this window: whoever calls the model adds them.
    deadline : float
        When, on the clock, `check` is due.
    """

    def __init__(self, windows: int, limit: float | None = None) -> None:
        self.seconds = [0.0] * windows
        self.bytes: list[int | None] = [None] * windows
        self.busy = 0.0
        self._looked = 0.0
        self._limit = float("inf") if limit is None else limit
        self._began = time.process_time()
        self.deadline = time.perf_counter() + self._limit

    def check(self, now: float) -> None:
        """Look at the processor's clock, and put the deadline off by the time that is left.

        Parameters
        ----------
        now
            On the clock.

        Raises
        ------
        TimeUpError
            None is left.
        """
        left = self._limit - (time.process_time() - self._began)
        if left <= 0:
            raise TimeUpError(f"more than {self._limit:g} s")
        self.deadline = now + left

    @contextmanager
    def window(self, number: int) -> Iterator[None]:
        """Time a window, also one that ends by an error."""
        self.busy = 0.0
        began, began_cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            took, of_cpu = time.perf_counter() - began, time.process_time() - began_cpu
            self.seconds[number] = self.busy * of_cpu / took

    def weigh(self, number: int, model: Any) -> None:
        """Keep the size of the model at the end of a window, unless that would take long."""
        is_last = number == len(self.bytes) - 1
        if is_last or self._looked <= _LOOKING * sum(self.seconds):
            before = time.perf_counter()
            self.bytes[number] = memory(model)
            self._looked += time.perf_counter() - before

    def largest(self, model: Any) -> int:
        """Return the largest size that is known, or else that of now."""
        return max((size for size in self.bytes if size is not None), default=0) or memory(model)
