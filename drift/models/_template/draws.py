"""Random draws that are undone with an update that fails."""

from __future__ import annotations

import copy
import random
from array import array
from itertools import repeat
from typing import Any

from drift.models._template.state import Stored

__all__ = ["Drawing"]

#: Draws in a block. Copying a generator takes as long as a few hundred draws.
_AHEAD = 512


class _Block:
    """Results of ``rng.randrange(bound)``, drawn ahead, and the generator after them.

    A block never changes. The model counts the draws, because a count is undone in no time, whereas
    copying a generator takes longer than most updates.
    """

    def __init__(self, rng: random.Random, bound: int = 0) -> None:
        self.start, self.bound, self.results, self.stop = rng, bound, array("q"), copy.copy(rng)
        if bound:
            bits = map(self.stop.getrandbits, repeat(bound.bit_length(), _AHEAD))
            # This is what `randrange` does, in half the time. It draws the last result itself, so
            # that `stop` comes after a result, and not after bits that it would reject.
            self.results.extend([result for result in bits if result < bound])
            self.results.append(self.stop.randrange(bound))

    def after(self, n_drawn: int) -> random.Random:
        """Return the generator as it is after the first `n_drawn` draws of the block."""
        if n_drawn == len(self.results):
            return self.stop
        rng = copy.copy(self.start)
        for _ in range(n_drawn):
            rng.randrange(self.bound)
        return rng


class Drawing(Stored):
    """Model that draws random integers. It is stored with a `random.Random` as ``_rng``.

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
        """Set the generator, or make one from a seed; None for a random one."""
        self._rng = _Block(seed if isinstance(seed, random.Random) else random.Random(seed))
        self._n_drawn = 0

    def _draw(self, bound: int) -> int:
        """Draw an integer from 0 to ``bound - 1``, within an update.

        Each new `bound` draws a block of `_AHEAD` numbers, so keep it constant, as `RBP` does with
        its budget.
        """
        block, n_drawn = self._rng, self._n_drawn
        if n_drawn == len(block.results) or bound != block.bound:
            block = self._rng = _Block(block.after(n_drawn), bound)
            n_drawn = 0
        self._n_drawn = n_drawn + 1
        return block.results[n_drawn]

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state["_rng"] = self._rng.after(self._n_drawn)
        del state["_n_drawn"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._start_draws(state["_rng"])
