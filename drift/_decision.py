"""When to say yes to a class: a threshold of its probability, learnt row by row.

It knows no models, so that wrappers, comparisons and workers decide by the same rule.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from drift._checks import check_number, listed
from drift._values import is_missing
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from drift.types import Label

    Array = NDArray[np.float64]

__all__ = ["Awaited", "Decision", "Goal", "check_positive", "goal_of"]

#: Bins of the log-odds, from -40 to 40: 0.02 of a log-odds each, in which two scores are one.
_BINS = 4_096
_LARGEST = 40.0
#: Times that the best F1 has to be that of saying yes to each row, or the threshold stays where it
#: starts. A model that knows nothing of the class has its best F1 where it always says yes, and all
#: rows that it gets wrong so would count to the end.
_BETTER = 1.5 * (1 - 1e-9)  # less what rounding may take
#: Labels after which the threshold is chosen again: at first each, then 1 more in so many.
_PART = 64
#: Largest power of e of these odds.
_MOST = 5.0
#: Labels without one of the class, after which somebody is warned; and classes that this names.
_AWAITED, _NAMED = 1_000, 10
#: Weight of a label at which all weights are scaled down.
_HEAVY = 1e9


class Goal(NamedTuple):
    """What a threshold is good at.

    `name` is ``f1``, ``cost``, ``recall``, ``precision`` or ``rate``; `value` the share asked for,
    or that of a false alarm in the sum of both costs.
    """

    name: str = "f1"
    value: float = 0.5


def goal_of(cost: Any = None, recall: Any = None, precision: Any = None, rate: Any = None) -> Goal:
    """Return what is asked for: one of these, or F1.

    Raises
    ------
    ParameterError
        Two are asked for, or a number cannot be.

    Examples
    --------
    >>> goal_of(cost=(1, 9)), goal_of()
    (Goal(name='cost', value=0.1), Goal(name='f1', value=0.5))
    """
    given = {"cost": cost, "recall": recall, "precision": precision, "rate": rate}
    asked = [name for name, value in given.items() if value is not None]
    if len(asked) > 1:
        raise ParameterError(f"{' and '.join(asked)} are two goals: give one of them")
    if not asked:
        return Goal()
    if cost is None:
        [name] = asked
        check_number(name, given[name], above=True, most=1.0)
        return Goal(name, float(given[name]))
    try:
        alarm, miss = cost
    except (TypeError, ValueError):
        raise ParameterError(
            f"cost must be two numbers, of a false alarm and of a miss, not {cost!r:.80}"
        ) from None
    for what, value in (("a false alarm", alarm), ("a miss", miss)):  # whose sum is finite
        check_number(f"cost of {what}", value, above=True, most=1e300)
    return Goal("cost", alarm / (alarm + miss))


def check_positive(positive: Any) -> None:
    """Refuse what is no label of a class.

    Examples
    --------
    >>> check_positive(None)
    Traceback (most recent call last):
    drift.errors.ParameterError: positive must be the label of a class, not None
    """
    try:
        hash(positive)
        good = not is_missing(positive)
    except TypeError:
        good = False
    if not good:
        raise ParameterError(f"positive must be the label of a class, not {positive!r:.80}")


class Decision:
    """The threshold that was best on the rows whose labels have come, the recent ones above all.

    Parameters
    ----------
    name, value
        Those of a `Goal`.

    Notes
    -----
    Labels fade by rows of the class; with a rate by rows that are said to be of it. Of the rows
    whose labels have come, by their weights,

    - ``f1`` takes the threshold of the highest F1; 0.5 while that is not 1.5 times the F1 of saying
      yes to each row;
    - ``cost`` that of the least cost; before the first row of the class, the share of the false
      alarm's cost, which is best where probabilities are right;
    - ``recall`` the highest one that reaches it, ``precision`` the lowest, ``rate`` the nearest.
      What these three aim at is raised as long as less has come true, and lowered where more has;
      recall and precision begin with 0.5.

    It lies in the middle between the scores that it parts, of log-odds. It is chosen again after
    each of the first 64 labels, then whenever they are 1/64 more than it remembers. It follows
    ranks alone, so probabilities need not be right; where they are, that of F1 comes to half the
    best F1 [1]_.

    References
    ----------
    .. [1] Z. C. Lipton, C. Elkan, B. Naryanaswamy, "Optimal thresholding of classifiers to maximize
       F1 measure", ECML (2014).

    Examples
    --------
    >>> decision = Decision()
    >>> for share in (0.1, 0.1, 0.3, 0.1):
    ...     decision.learn(share, share > 0.2)
    >>> round(decision.threshold, 2), decision.says(0.2), decision.says(0.15)
    (0.18, True, False)
    """

    # Both were chosen by `python -m benchmarks threshold_sweep`, on development streams alone.
    #: Rows of the class, or with a rate rows that are said to be of it, after which a label counts
    #: 1 / e of the last.
    memory: ClassVar[int] = 300
    #: Rows that a share may lack, before the odds of what is aimed at are e times as high. With
    #: fewer it is met more closely, by worse thresholds.
    lacking: ClassVar[float] = 20.0

    def __init__(self, name: str = "f1", value: float = 0.5) -> None:
        self.name = name
        self.value = value
        self._lowest = self._start  # bin from which on rows are said to be of the class
        self._seen = array("d", bytes(8 * (_BINS + 1)))  # the last one stays 0: nobody says yes
        self._hits = array("d", bytes(8 * (_BINS + 1)))
        self._step = 1.0  # weight of the next label: it grows, which spares fading all
        self._total = 0.0
        self._due = 1  # labels until it is chosen again
        self._lack = 0.0  # of a share that is asked for: rows that have not come true

    @property
    def _start(self) -> int:
        return _bin(self.value if self.name == "cost" else 0.5)

    @property
    def threshold(self) -> float:
        """Probability from which on a row is said to be of the class."""
        odds = (self._lowest / _BINS - 0.5) * 2 * _LARGEST
        return 1 / (1 + math.exp(-odds))

    def says(self, share: float) -> bool:
        """Whether a row of this probability is said to be of the class."""
        return _bin(share) >= self._lowest

    def choose(self, positive: Label, chances: Mapping[Label, float]) -> Label:
        """Return the class where its probability reaches the threshold, else the likeliest other.

        Parameters
        ----------
        positive
            The class; it is returned as `chances` have it.
        chances
            Probability by label, of one label or more.
        """
        if self.says(chances.get(positive, 0.0)):
            return next((label for label in chances if label == positive), positive)
        others = [label for label in chances if label != positive]
        return max(others or chances, key=chances.__getitem__)

    def learn(self, share: float, positive: bool) -> None:  # noqa: FBT001
        """Learn a label.

        Parameters
        ----------
        share
            The probability that was predicted.
        positive
            Whether the row is of the class.
        """
        place = _bin(share)
        said = place >= self._lowest
        self._seen[place] += self._step
        self._total += self._step
        if positive:
            self._hits[place] += self._step
        if self.name in {"recall", "precision", "rate"}:
            self._count(positive, said)
        if said if self.name == "rate" else positive:
            self._step *= self.memory / (self.memory - 1)
            if self._step > _HEAVY:
                self._rescale()
        self._due -= 1
        if self._due <= 0:
            self._due = max(1, int(self._total / self._step) // _PART)
            self._choose()

    def _count(self, positive: bool, said: bool) -> None:  # noqa: FBT001
        """Count what lacks of the share that is asked for."""
        of = {"recall": positive, "precision": said, "rate": True}[self.name]
        if of:
            came = positive if self.name == "precision" else said
            most = _MOST * self.lacking
            self._lack = min(most, max(-most, self._lack + self.value - came))

    def _rescale(self) -> None:
        for weights in (self._seen, self._hits):
            np.frombuffer(weights)[:] /= self._step
        self._total /= self._step
        self._step = 1.0

    def _choose(self) -> None:
        found, claimed = (
            np.cumsum(np.frombuffer(weights)[::-1])[::-1] for weights in (self._hits, self._seen)
        )
        if not found[0] and self.name != "rate":
            return
        first = self._best(found, claimed)
        if first is None:
            self._lowest = self._start
            return
        # All bins that claim the same rows are as good: the middle one is as far from both scores.
        same = np.flatnonzero(claimed == claimed[first])
        self._lowest = int(same[(len(same) - 1) // 2])

    def _best(self, found: Array, claimed: Array) -> int | None:
        """Return the lowest bin, by the weights of hits and rows from each bin on."""
        if self.name == "f1":
            f1 = found / (claimed + found[0])  # half of it
            best = int(f1.argmax())
            return best if f1[best] >= _BETTER * f1[0] else None
        if self.name == "cost":
            costs = self.value * (claimed - found) + (1 - self.value) * (found[0] - found)
            return int(costs.argmin())
        odds = self.value * math.exp(self._lack / self.lacking)
        aim = odds / (odds + 1 - self.value) * (1 - 1e-9)
        if self.name == "recall":
            return int(np.flatnonzero(found >= aim * found[0])[-1])
        if self.name == "precision":
            return int((found >= aim * claimed).argmax())
        return int(np.abs(claimed - aim * claimed[0]).argmin())

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: JSON types."""
        places = np.flatnonzero(np.frombuffer(self._seen)).tolist()
        return {
            "goal": [self.name, self.value],
            "bins": [[i, self._seen[i], self._hits[i]] for i in places],
            "numbers": [self._lowest, self._step, self._total, self._due, self._lack],
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any], goal: tuple[str, float]) -> Self:
        """Return the decision of a `state`; one that starts anew where that had another goal.

        Raises
        ------
        ParameterError
            It is no `state`.
        """
        decision = cls(*goal)
        try:
            if state["goal"] != [*goal]:
                return decision
            lowest, *numbers, due, lack = state["numbers"]
            step, total, lack = map(float, (*numbers, lack))
            bins = [(place, float(seen), float(hits)) for place, seen, hits in state["bins"]]
        except (KeyError, OverflowError, TypeError, ValueError) as problem:
            raise ParameterError(f"no state of a threshold: {problem!r:.80}") from None
        places = range(_BINS)
        if not (
            {type(lowest), type(due), *(type(place) for place, *_ in bins)} == {int}
            and 0 <= lowest <= _BINS
            and 0 < step < math.inf
            and 0 <= total < math.inf
            and math.isfinite(lack)
            and all(at in places and 0 <= hits <= seen < math.inf for at, seen, hits in bins)
        ):
            raise ParameterError("no state of a threshold: a number out of its range")
        for place, seen, hits in bins:
            decision._seen[place], decision._hits[place] = seen, hits
        decision._lowest, decision._due = lowest, due
        decision._step, decision._total, decision._lack = step, total, lack
        return decision


class Awaited:
    """Whether the class comes at all: it may be misspelt, which nothing else would tell.

    Parameters
    ----------
    positive
        The class.

    Examples
    --------
    >>> awaited = Awaited("fraud")
    >>> [said] = filter(None, (awaited.learn(label) for label in ["Fraud", "fine"] * 1000))
    >>> said
    "positive is 'fraud', but the first 1,000 labels are 'Fraud' and 'fine': ..."
    """

    def __init__(self, positive: Label) -> None:
        self.positive = positive
        self._left = _AWAITED  # labels until it is said; 0 from then on, and once the class came
        self._others: list[str] = []

    def learn(self, label: Label) -> str:
        """Learn a label; return what is to be warned of, once, else nothing."""
        if not self._left:
            return ""
        if label == self.positive:
            self._left = 0
            return ""
        if len(self._others) <= _NAMED and (shown := repr(label)) not in self._others:
            self._others.append(shown)
        self._left -= 1
        if self._left:
            return ""
        named = self._others if len(self._others) <= _NAMED else [*self._others[:-1], "others"]
        return (
            f"positive is {self.positive!r}, but the first {_AWAITED:,} labels are "
            f"{listed(named)}: give one of these as positive, unless "
            "it is so rare"
        )

    def state(self) -> list[Any]:
        """Return the state for a checkpoint: JSON types."""
        return [repr(self.positive), self._left, [*self._others]]

    @classmethod
    def restore(cls, state: Any, positive: Label) -> Self:
        """Return what a `state` was of; one that starts anew where that awaited another class.

        Raises
        ------
        ParameterError
            It is no `state`.
        """
        awaited = cls(positive)
        try:
            named, left, others = state
            wrong = type(left) is not int or left < 0 or {*map(type, others)} - {str}
        except (TypeError, ValueError) as problem:
            raise ParameterError(f"no state of an awaited class: {problem!r:.80}") from None
        if wrong:
            raise ParameterError(f"no state of an awaited class: {state!r:.80}")
        if named == repr(positive):
            awaited._left, awaited._others = left, [*others]
        return awaited


def _bin(share: float) -> int:
    if not 0 < share < 1:
        return _BINS - 1 if share >= 1 else 0
    odds = math.log(share) - math.log1p(-share)
    return max(0, min(_BINS - 1, int((odds / (2 * _LARGEST) + 0.5) * _BINS)))
