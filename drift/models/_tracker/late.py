"""A tracker whose labels come late: members are weighed by the forecasts that were really made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._store.features import in_order
from drift.models._tracker.check import late_weights
from drift.models._tracker.rows import RowByRow
from drift.models._tracker.scaling import values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from drift.models._store.supports import Guard
    from drift.types import Features, Label

__all__ = ["LateCore"]

#: Types of values that never change.
_NUMBERS = frozenset({float, int, bool})


class LateCore(RowByRow):
    """Two cores, one of them `delay` examples behind: the contract of one.

    When an example is learnt, the core behind is what the other one was when it predicted that
    example. What its members say of it is what they said then, and tells how far each is to be
    trusted.

    An update is one call of `learn`, which is atomic. What else changes is numbered by the examples
    learnt: what an interrupt leaves of it `_settle` makes good.

    Parameters
    ----------
    new
        Returns a core that has learnt nothing.
    delay
        Number of examples that are predicted before the label of one comes.
    """

    def __init__(self, new: Callable[[], Any], delay: int) -> None:
        self.core, self.behind, self.delay = new(), new(), delay
        core = self.core
        self.guard: Guard = core.guard
        # What is predicted and shown is of the first one alone.
        self.read, self.score, self.predict = core.read, core.score, core.predict
        self.supports, self.record = core.supports, core.record
        n = core.plan.n_members + 1
        core.late = np.full((2, n), 1.0 / n)
        #: Examples that the core behind has not learnt, by number, with labels and weights.
        self.pending: dict[int, tuple[Features, Label, float]] = {}

    @property
    def classes(self) -> list[Label]:
        """Labels met, in their order."""
        classes: list[Label] = self.core.classes
        return classes

    # --- one example ---------------------------------------------------------------------------

    def learn(self, x: Features, y: Label, w: float) -> int:
        """Learn an example; return the number of the class that was predicted before."""
        number: int = self.guard.run(self._learn, x, y, w)
        return number

    def _learn(self, x: Features, y: Label, w: float) -> int:
        plain = type(x) is dict and _NUMBERS.issuperset(map(type, x.values()))
        self.pending[self._settle()] = dict(x) if plain else values_of(x), y, w
        number: int = self.core.learn(x, y, w, self.behind)
        return number

    def _settle(self) -> int:
        """Have the core behind where it belongs; return the number of the next example."""
        n: int = self.core.n_learnt
        last = n - self.delay - 1
        if self.behind.n_learnt == last:
            self.behind.learn(*self.pending[last])
        self.pending.pop(last, None)
        return n

    # --- what there is -------------------------------------------------------------------------

    @property
    def n_supports(self) -> int:
        """Number of supports held."""
        n: int = self.core.n_supports
        return n

    def state(self) -> dict[str, Any]:
        """Return all that both are, as plain values and arrays."""
        state: dict[str, Any] = self.guard.run(self._state)
        return state

    def _state(self) -> dict[str, Any]:
        n = self._settle()
        votes, weights = self.core.late.tolist()
        pending = [self.pending[k] for k in range(self.behind.n_learnt, n)]
        return {
            "core": self.core.state(),
            "behind": self.behind.state(),
            "pending": [(_in_order(values_of(x)), y, w) for x, y, w in pending],
            "votes": votes,
            "weights": weights,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Be the one that gave `state`."""
        self.core.restore(state["core"])
        self.behind.restore(state["behind"])
        self.core.late = late_weights(self.core.plan, self.delay, state)
        self.pending = dict(enumerate(map(tuple, state["pending"]), self.behind.n_learnt))


def _in_order(values: dict[Hashable, float]) -> dict[Hashable, float]:
    return {name: values[name] for name in in_order(list(values))}
