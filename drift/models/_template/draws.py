"""Random draws that a failed update can roll back."""

from __future__ import annotations

import copy
import random
from array import array
from itertools import repeat
from typing import Any

__all__ = ["Drawing"]

#: Numbers in a block; copying a generator takes as long as some hundred draws.
_AHEAD = 512


class _Block:
    """Numbers of ``rng.randrange(bound)``, drawn ahead, and the generator after them.

    It never changes. The model counts the numbers drawn: undoing a count is cheap, whereas copying
    a generator's state takes longer than most updates.
    """

    def __init__(self, rng: random.Random, bound: int = 0) -> None:
        self.start, self.bound, self.numbers, self.stop = rng, bound, array("q"), copy.copy(rng)
        if bound:
            bits = map(self.stop.getrandbits, repeat(bound.bit_length(), _AHEAD))
            # As `randrange` does it, in half the time. `randrange` itself draws the last number, so
            # that `stop` stands behind a number, not behind bits that were rejected.
            self.numbers.extend([number for number in bits if number < bound])
            self.numbers.append(self.stop.randrange(bound))

    def after(self, n_drawn: int) -> random.Random:
        """Return the generator after so many of the numbers."""
        if n_drawn == len(self.numbers):
            return self.stop
        rng = copy.copy(self.start)
        for _ in range(n_drawn):
            rng.randrange(self.bound)
        return rng


class Drawing:
    """Model that draws numbers; its state has a `random.Random` as ``_rng``.

    Examples
    --------
    >>> model, rng = Drawing(), random.Random(7)
    >>> model._start_draws(7)
    >>> [model._draw(5) for _ in range(2000)] == [rng.randrange(5) for _ in range(2000)]
    True
    """

    _rng: _Block
    _n_drawn: int

    def _start_draws(self, seed: int | random.Random | None) -> None:
        """Draw from a generator, or one with this seed, from now on."""
        self._rng = _Block(seed if isinstance(seed, random.Random) else random.Random(seed))
        self._n_drawn = 0

    def _draw(self, bound: int) -> int:
        """Draw a number of at least 0 and below `bound`, within an update."""
        block, n_drawn = self._rng, self._n_drawn
        if n_drawn == len(block.numbers) or bound != block.bound:
            block = self._rng = _Block(block.after(n_drawn), bound)
            n_drawn = 0
        self._n_drawn = n_drawn + 1
        return block.numbers[n_drawn]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]  # the model's
        state["_rng"] = self._rng.after(self._n_drawn)
        del state["_n_drawn"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]  # the model's
        self._start_draws(state["_rng"])
