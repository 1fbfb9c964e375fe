"""Random draws that an update may take back."""

from __future__ import annotations

import copy
import random
from typing import Any

from drift.models._undo import Part

__all__ = ["Drawing", "Draws"]

#: Draws made ahead: to copy the generator takes as long as some ten of them.
_AHEAD = 64


class Draws(Part):
    """Whole numbers below a bound, as ``random.Random(seed).randrange(bound)`` gives them.

    The generator itself never changes, only how many draws were taken of those made ahead: that is
    undone in no time, where to note a generator's state takes longer than most updates.

    Parameters
    ----------
    seed
        Seed of the draws, or a generator to go on with.

    Examples
    --------
    >>> draws, rng = Draws(7), random.Random(7)
    >>> [draws.randrange(5) for _ in range(200)] == [rng.randrange(5) for _ in range(200)]
    True
    """

    def __init__(self, seed: int | random.Random | None) -> None:
        self._start = seed if isinstance(seed, random.Random) else random.Random(seed)
        self._ahead: tuple[int, ...] = ()
        self._bound = 0
        self._taken = 0

    def randrange(self, bound: int) -> int:
        """Draw a number of at least 0 and below `bound`."""
        if self._taken == len(self._ahead) or bound != self._bound:
            start = self.generator()
            rng = copy.copy(start)
            ahead = tuple(rng.randrange(bound) for _ in range(_AHEAD))
            self.__dict__.update(_start=start, _ahead=ahead, _bound=bound, _taken=0)
        self._taken += 1
        return self._ahead[self._taken - 1]

    def generator(self) -> random.Random:
        """Generator of the draws that are still to come."""
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
        for name, value in state.items():
            setattr(self, name, value)  # interns the name, as unpickling does by itself
        self._rng = Draws(state["_rng"])
