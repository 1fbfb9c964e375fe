"""A tracker whose labels come late: members are weighed by the forecasts that were really made."""

from __future__ import annotations

import math
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.models._store.class_labels import check_class
from drift.models._store.features import in_order
from drift.models._tracker.mixture import TIE
from drift.models._tracker.plan import LATE_RATE, LATE_SHARE, LATE_VOTE
from drift.models._tracker.rows import RowByRow
from drift.models._tracker.scaling import values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from drift.models._store.guard import Held
    from drift.types import Features, Label

__all__ = ["LateCore"]


class Trust(NamedTuple):
    """Weights of the members, and last of the core as a whole.

    Parameters
    ----------
    votes
        By mistakes, for the prediction.
    weights
        By log loss, for the probabilities.
    """

    votes: list[float]
    weights: list[float]


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
        self.guard: Held = self.core.guard
        #: Examples that the core behind has not learnt, by number, with labels and weights.
        self.pending: dict[int, tuple[Features, Label, float]] = {}
        n = self.core.plan.n_members + 1
        #: By the number of examples learnt.
        self.trust = {0: Trust([1.0 / n] * n, [1.0 / n] * n)}

    @property
    def classes(self) -> list[Label]:
        """Labels met, in their order."""
        classes: list[Label] = self.core.classes
        return classes

    # --- one example ---------------------------------------------------------------------------

    def read(self, x: Features) -> None:
        """Take an example as the one that `score` is about; FeatureError changes nothing."""
        self.core.read(x)

    def score(self) -> tuple[int, list[float]]:
        """Number of the class that is predicted, -1 before any was met, and all probabilities."""
        core = self.core
        votes, weights = self.trust[core.n_learnt]
        sums = [sum(map(mul, weights, core.chances(k))) for k in range(len(core.classes))]
        total = sum(sums)
        chances = [one / total for one in sums]
        return self._most(votes) if core.plan.vote else _first(chances), chances

    def _most(self, votes: list[float]) -> int:
        """Class for which members have the most votes."""
        sums = [0.0] * len(self.core.classes)
        for k, vote in zip(self.core.choices() if sums else (), votes, strict=False):
            sums[k] += vote
        return _first(sums)

    def predict(self, x: Features) -> int:
        """Return the number of the class that is predicted; -1 before anything was learnt."""
        number: int = self.guard.run(self._predict, x)
        return number

    def _predict(self, x: Features) -> int:
        self.core.read(x)
        if self.core.plan.vote:
            return self._most(self.trust[self.core.n_learnt].votes)
        return self.score()[0]

    def learn(self, x: Features, y: Label, w: float) -> int:
        """Learn an example; return the number of the class that was predicted before."""
        number: int = self.guard.run(self._learn, x, y, w)
        return number

    def _learn(self, x: Features, y: Label, w: float) -> int:
        prediction = self._predict(x)
        if w == 0.0:
            return prediction
        check_class(y)
        self._settle()
        n, behind = self.core.n_learnt, self.behind
        trust = self.trust[n]
        if y in behind.classes:
            behind.read(x)
            number = behind.classes.index(y)
            slip = math.exp(-LATE_VOTE * min(w, 1000.0))
            right = [1.0 if choice == number else slip for choice in behind.choices()]
            chances = behind.chances(number)
            most = max(chances)
            likely = [(chance / most) ** (LATE_RATE * w) for chance in chances]
            trust = Trust(_reweighed(trust.votes, right), _reweighed(trust.weights, likely))
        values = values_of(x)
        self.pending[n] = {name: values[name] for name in in_order(list(values))}, y, w
        self.trust[n + 1] = trust
        self.core.learn(x, y, w)
        return prediction

    def _settle(self) -> None:
        """Have the core behind where it belongs, and drop what is of no use any more."""
        n, behind = self.core.n_learnt, self.behind
        while behind.n_learnt < n - self.delay:
            behind.learn(*self.pending[behind.n_learnt])
        for old in [k for k in self.trust if k != n]:
            del self.trust[old]
        self.pending.pop(n, None)
        while (old := next(iter(self.pending), n)) < behind.n_learnt:
            del self.pending[old]

    # --- what there is -------------------------------------------------------------------------

    @property
    def n_supports(self) -> int:
        """Number of supports held."""
        n: int = self.core.n_supports
        return n

    def supports(self) -> list[dict[Hashable, float]]:
        """Return the supports, the oldest first."""
        supports: list[dict[Hashable, float]] = self.core.supports()
        return supports

    def record(self) -> dict[str, Any]:
        """Return what every member did so far with all labels before it, and the mixture."""
        record: dict[str, Any] = self.core.record()
        return record

    def state(self) -> dict[str, Any]:
        """Return all that both are, as plain values and arrays."""
        state: dict[str, Any] = self.guard.run(self._state)
        return state

    def _state(self) -> dict[str, Any]:
        self._settle()
        votes, weights = self.trust[self.core.n_learnt]
        return {
            "core": self.core.state(),
            "behind": self.behind.state(),
            "pending": [(dict(x), y, w) for x, y, w in self.pending.values()],
            "votes": list(votes),
            "weights": list(weights),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Be the one that gave `state`."""
        n_weights = len(self.trust[0].votes)
        self.core.restore(state["core"])
        self.behind.restore(state["behind"])
        n = self.core.n_learnt
        self.pending = dict(
            zip(range(self.behind.n_learnt, n), map(tuple, state["pending"]), strict=True)
        )
        self.trust = {n: Trust(list(state["votes"]), list(state["weights"]))}
        if any(len(weights) != n_weights or sum(weights) <= 0.0 for weights in self.trust[n]):
            raise ValueError("the state of a tracker is inconsistent: its trust")


def _first(values: list[float]) -> int:
    """Return the place of the first that is the largest; -1 if there is none."""
    most = max(values, default=0.0) - TIE
    return next((k for k, value in enumerate(values) if value >= most), -1)


def _reweighed(weights: list[float], factors: list[float]) -> list[float]:
    """Multiply weights, and spread a share of them over all."""
    products = list(map(mul, weights, factors))
    kept, spread = (1.0 - LATE_SHARE) / sum(products), LATE_SHARE / len(products)
    return [kept * product + spread for product in products]
