"""Random draws that a failed update can roll back."""

from __future__ import annotations

import copy
import random
from array import array
from typing import Any

from drift.models._store.undo import Part

__all__ = ["Drawing", "Draws"]

#: Draws made ahead: to copy a generator takes as long as some hundred of them.
_AHEAD = 512


class Draws(Part):
    """Whole numbers below a bound, as ``random.Random(seed).randrange(bound)`` gives them.

    No generator ever changes here, only how many draws were taken of those made ahead: that is
    undone in no time, where to note a generator's state takes longer than most updates.

    Parameters
    ----------
    seed
        Seed of the draws, or a generator to go on with.

    Examples
    --------
    >>> draws, rng = Draws(7), random.Random(7)
    >>> [draws.randrange(5) for _ in range(2000)] == [rng.randrange(5) for _ in range(2000)]
    True
    """

    _kept = frozenset({"_ahead"})

    def __init__(self, seed: int | random.Random | None) -> None:
        rng = seed if isinstance(seed, random.Random) else random.Random(seed)
        self._start = self._stop = rng  # before the draws made ahead, and after them
        self._ahead = array("q")
        self._bound = 0
        self._taken = 0

    def randrange(self, bound: int) -> int:
        """Draw a number of at least 0 and below `bound`."""
        if self._taken == len(self._ahead) or bound != self._bound:
            start = self.generator()
            stop = copy.copy(start)
            ahead = array("q", [stop.randrange(bound) for _ in range(_AHEAD)])
            new = {"_start": start, "_stop": stop, "_ahead": ahead, "_bound": bound, "_taken": 0}
            self.__dict__.update(new)
        self._taken += 1
        return self._ahead[self._taken - 1]

    def generator(self) -> random.Random:
        """Generator of the draws that are still to come."""
        if self._taken == len(self._ahead):
            return self._stop
        rng = copy.copy(self._start)
        for _ in range(self._taken):
            rng.randrange(self._bound)
        return rng


class Drawing:
    """Model with `Draws` as its `_rng`; its state has a `random.Random`, as it always had."""

    _rng: Draws

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_rng": self._rng.generator()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]  # the model's
        self._rng = Draws(state["_rng"])
