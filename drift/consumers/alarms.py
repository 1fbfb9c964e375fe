"""Alarms on rises of the error and of the log loss, with bounded false alarms.

What is watched is between 0 and 1: whether a prediction was wrong, and its log loss, cut at that of
a probability of 1 % and divided by it. An alarm says that its mean is above a bound on what it was
in the reference, which is all since the last alarm. Where the mean never rises above what it is in
the reference, whatever else happens, there is ever an alarm with a probability of at most `level`:

1. Blocks of the reference, each twice as long as the one before, bound the mean by an empirical
   Bernstein inequality [1]_; so does, at the end of each, all of the reference but the first block.
   The least of these bounds counts, each failing with its share of half the level. So the bound
   follows a model that improves, and no rise raises it.
2. Means of eight examples are bet against the bound: a bettor with the fraction f multiplies its
   wealth by 1 + f (mean / bound - 1), which is a supermartingale while the bound holds [2]_. One
   starts at every eighth group with its share of the capital, as a rise may start at any time: this
   is the e-detector of Shiryaev and Roberts with weights that add up to 1 [3]_. Half the level is
   the probability that the wealth, 1 in all, ever reaches 2 / level.

An alarm names the features whose mean or deviation moved most between the reference and the
examples since a rise was first suspected: since bettors that restart after each loss, as in CUSUM,
have had eight times their first capital. Where answers are explained, it names those whose mean
absolute contribution to the log-odds changed most: these have one unit, and a feature of no account
stays near 0 however far it moves by its own measure.

References
----------
.. [1] Maurer, Pontil 2009: Empirical Bernstein bounds; in the form of Waudby-Smith, Ramdas 2024:
   Estimating means of bounded random variables by betting, section 3.2.
.. [2] The same, section 4.
.. [3] Shin, Ramdas, Rinaldo 2024: E-detectors.
"""

from __future__ import annotations

import math
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drift.types import Features

__all__ = ["CUT", "MEASURES", "Alarm", "Alarms", "Detector", "Movement"]

#: What is watched.
MEASURES = ("error", "log_loss")
#: The log loss of a probability of 1 %; a greater one counts as this.
CUT = math.log(100)
#: Examples of a mean that is bet against the bound, and of the first block.
_GROUP, _FIRST = 8, 256
#: Fractions of the bettors: near 8 times the rise, each grows fastest.
_BETS = (7 / 8, 1 / 2, 1 / 4, 1 / 8, 1 / 16)
#: Gain from which on there may be a rise, of bettors that restart after each loss.
_RISING = 8.0
#: Most features that are followed, and the bound of their values.
_NAMES, _MOST = 256, 1e100
#: Bound of a number in a state: its quotients are finite.
_HUGE = 2.0**1000
#: Features that an alarm names.
_NAMED = 3


class Alarm(NamedTuple):
    """A measure that has risen, in its own units, by the mean `before` and in the last `examples`.

    `features` has the names of those that moved most and how far, the most first: from 0 to 1, or
    of contributions in log-odds.
    """

    measure: str
    before: float
    now: float
    examples: int
    features: tuple[tuple[str, float], ...] = ()


def _share(number: int) -> float:
    """Return a weight of each number from 1 on; all add up to 1."""
    return 1 / math.log2(number + 1) - 1 / math.log2(number + 2)


def _bound(n: float, total: float, deviations: float, variance: float, odds: float) -> float:
    """Return an upper bound on the mean of numbers from 0 to 1, which fails with exp(-odds).

    `deviations` is the sum of their squared distances from guesses made before each, `variance` a
    guess of the mean of these.
    """
    step = min(0.5, math.sqrt(2 * odds / (n * variance)))
    return (total + (odds - (math.log1p(-step) + step) * deviations) / step) / n


class Detector:
    """Watches the mean of numbers from 0 to 1 for a rise; it takes them in groups of eight.

    Parameters
    ----------
    level
        Bound on the probability that there is ever an alarm without a rise.

    Attributes
    ----------
    is_rising : bool
        Whether a rise is suspected.
    bound : float or None
        On the mean of the reference; None before the first.

    Examples
    --------
    >>> detector = Detector(0.01)
    >>> any(detector.add(8, 1.0, 1.0) for _ in range(600))
    False
    >>> next(i for i in range(600) if detector.add(8, 2.0, 2.0))
    30
    """

    def __init__(self, level: float) -> None:
        self.level = level
        self.bound: float | None = None
        self.is_rising = False
        self._block = [0, 0.0, 0.0]  # count, sum and squares
        self._number = 0  # of blocks that are full
        self._guess = [0.5, 0.25]  # mean and mean square deviation of the last one
        self._spread = 0.25  # of the first one
        self._all = [0, 0.0]
        self._bounding = [0, 0.0, 0.0]  # count, sum and deviations of all blocks but the first
        self._recent = [0, 0.0]  # since it was last not rising
        self._groups = 0  # that were bet on
        self._bets = [0.0] * len(_BETS)
        self._runs = [1.0] * len(_BETS)

    @property
    def means(self) -> tuple[float, float, int]:
        """Mean before the rise, mean since, and how many numbers that are."""
        (n, total), (recent, risen) = self._all, self._recent
        before = (total - risen) / (n - recent) if n > recent else math.nan
        return before, risen / recent if recent else math.nan, int(recent)

    def add(self, count: int, total: float, squares: float) -> bool:
        """Add `count` numbers, by their sum and squares; return whether they raise an alarm."""
        # They are bet on before they are of the reference.
        alarm = self.bound is not None and self._bet(total / count, self.bound)
        self._all[0] += count
        self._all[1] += total
        if self.is_rising:
            self._recent[0] += count
            self._recent[1] += total
        elif self._recent[0]:
            self._recent = [0, 0.0]
        block = self._block
        block[0] += count
        block[1] += total
        block[2] += squares
        if block[0] >= _FIRST << self._number:
            self._end_block(*block)
        return alarm

    def _bet(self, mean: float, bound: float) -> bool:
        every, left = divmod(self._groups, _GROUP)
        more = 0.0 if left else _share(every + 1)
        self._groups += 1
        gain = mean / bound - 1.0
        self._bets = bets = [
            (wealth + more) * (1.0 + f * gain) for wealth, f in zip(self._bets, _BETS, strict=True)
        ]
        self._runs = runs = [
            max(1.0, run) * (1.0 + f * gain) for run, f in zip(self._runs, _BETS, strict=True)
        ]
        self.is_rising = sum(runs) >= _RISING * len(_BETS)
        return sum(bets) * self.level >= 2.0 * len(_BETS)

    def _end_block(self, n: float, total: float, squares: float) -> None:
        """Bound the mean by a block, and by all of them."""
        guess, variance = self._guess
        mean = total / n
        self._guess = [mean, max(squares / n - mean * mean, 1 / n)]
        if self._number:
            deviations = max(0.0, squares - 2 * guess * total + n * guess * guess)
            every = self._bounding
            every[:] = every[0] + n, every[1] + total, every[2] + deviations
            odds = -math.log(self.level / 4 * _share(self._number))
            bound = min(
                _bound(n, total, deviations, variance, odds),
                _bound(every[0], every[1], every[2], self._spread, odds),
            )
            self.bound = bound if self.bound is None else min(bound, self.bound)
        else:  # the first one is there for the guess
            _, self._spread = self._guess
        self._number += 1
        self._block = [0, 0.0, 0.0]

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: JSON types."""
        return {name: copy(getattr(self, name)) for name in _STATE}

    @classmethod
    def restore(cls, state: Mapping[str, Any], level: float) -> Self:
        """Return the detector of a `state`."""
        detector = cls(level)
        for name in _STATE:
            setattr(detector, name, copy(state[name]))
        shapes = {
            **dict.fromkeys(("_block", "_bounding"), 3),
            **dict.fromkeys(("_guess", "_all", "_recent"), 2),
            **dict.fromkeys(("_bets", "_runs"), len(_BETS)),
        }
        lists, bound = [getattr(detector, name) for name in shapes], detector.bound
        whole = (detector._number, detector._groups)
        numbers = [*whole, detector._spread, *(number for row in lists for number in row)]
        if not (
            [*map(len, lists)] == [*shapes.values()]
            and all(type(n) in {int, float} and 0 <= n < _HUGE for n in numbers)
            and {*map(type, whole)} == {int}
            and detector._number < 64
            and type(detector.is_rising) is bool
            and (bound is None or (type(bound) in {int, float} and 0 < bound < _HUGE))
        ):
            raise ValueError("no state of a detector")
        return detector


#: Attributes of a detector that a checkpoint keeps.
_STATE = (
    *("bound", "is_rising", "_block", "_number", "_guess", "_all", "_recent"),
    *("_spread", "_bounding", "_groups", "_bets", "_runs"),
)


class _Moments:
    """Number, mean and sum of squared deviations of the values of a feature."""

    def __init__(self, n: int = 0, mean: float = 0.0, squares: float = 0.0) -> None:
        self.n, self.mean, self.squares = n, mean, squares

    def add(self, x: float) -> None:
        self.n += 1
        step = x - self.mean
        self.mean += step / self.n
        self.squares += step * (x - self.mean)

    def merge(self, other: _Moments) -> None:
        n, step = self.n + other.n, other.mean - self.mean
        if n:
            self.squares += other.squares + step * step * self.n * other.n / n
            self.mean += step * other.n / n
            self.n = n

    def among(self, examples: int) -> tuple[float, float]:
        """Return mean and deviation among all examples; where it is absent it is 0."""
        share = self.n / examples
        variance = self.squares / examples + share * (1 - share) * self.mean**2
        return share * self.mean, math.sqrt(variance)

    def state(self) -> list[float]:
        return [self.n, self.mean, self.squares]


def _distance(before: tuple[float, float], since: tuple[float, float]) -> float:
    """Return how far mean or deviation have moved, from 0 to 1.

    The means' difference is compared with the deviations, the deviations' with their sum.

    >>> _distance((0.0, 1.0), (3.0, 1.0)), _distance((0.0, 1.0), (0.0, 3.0))
    (0.75, 0.5)
    """
    step = abs(since[0] - before[0])
    own = math.hypot(before[1], since[1]) / math.sqrt(2)
    spread = abs(since[1] - before[1])
    return max(step / (step + own) if step else 0.0, spread / (before[1] + since[1] or 1.0))


def _step(before: tuple[float, float], since: tuple[float, float]) -> float:
    """Return how far the mean has moved."""
    return abs(since[0] - before[0])


class Movement:
    """Means and deviations of features in the reference and since a rise, of the first 256 names.

    Strings are ignored.

    Parameters
    ----------
    contributions
        Whether what is added are contributions of features, not their values. Then their absolute
        values count, and how far one has moved is the change of their mean, in log-odds.

    Examples
    --------
    >>> movement = Movement()
    >>> for i in range(200):
    ...     movement.add({"age": i % 7, "sum": i % 5}, is_rising=False)
    >>> for i in range(50):
    ...     movement.add({"age": i % 7, "sum": 9}, is_rising=True)
    >>> [(name, round(distance, 2)) for name, distance in movement.moved()]
    [('sum', 1.0), ('age', 0.01)]
    """

    def __init__(self, *, contributions: bool = False) -> None:
        self.contributions = contributions
        self._examples = [0, 0]  # in the reference, and since the rise
        self._features: dict[Any, tuple[_Moments, _Moments]] = {}

    def add(self, features: Features, *, is_rising: bool) -> None:
        """Add an example to the reference, or to what came since a rise."""
        known = self._features
        self._examples[is_rising] += 1
        for name, x in features.items():
            if not isinstance(x, (int, float)) or not abs(x) < _MOST:
                continue  # a text, NaN, or without a square
            if name not in known:
                if len(known) >= _NAMES:
                    continue
                known[name] = _Moments(), _Moments()
            known[name][is_rising].add(abs(x) if self.contributions else x)

    def merge(self) -> None:
        """Make what came since a rise a part of the reference."""
        self._examples = [sum(self._examples), 0]
        for name, (before, since) in self._features.items():
            before.merge(since)
            self._features[name] = before, _Moments()

    def moved(self) -> list[tuple[str, float]]:
        """Return the three names that moved most and by how much, the most first."""
        if not all(self._examples):
            return []
        n_before, n_since = self._examples
        distance = _step if self.contributions else _distance
        distances = [
            (str(name), distance(before.among(n_before), since.among(n_since)))
            for name, (before, since) in self._features.items()
        ]
        return sorted(distances, key=lambda moved: (-moved[1], moved[0]))[:_NAMED]

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: JSON types."""
        rows = [[_named(name), *(m.state() for m in of)] for name, of in self._features.items()]
        return {
            "contributions": self.contributions,
            "examples": [*self._examples],
            "moments": rows,
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        """Return the movement of a `state`."""
        movement = cls(contributions=state.get("contributions") is True)
        before, since = map(int, state["examples"])
        movement._examples = [before, since]
        for name, *moments in state["moments"]:
            first, second = (_Moments(int(n), *map(float, rest)) for n, *rest in moments)
            movement._features[name] = first, second
            if not (0 <= first.n <= before and 0 <= second.n <= since):
                raise ValueError("no state of features")
            if not all(m.squares >= 0 and abs(m.mean) <= _MOST for m in (first, second)):
                raise ValueError("no state of features")
        return movement


def _named(name: Any) -> Any:
    return name if isinstance(name, (str, int)) else str(name)


class Alarms:
    """Watches error and log loss, and starts a new reference for both after an alarm.

    Parameters
    ----------
    level
        Bound on the probability of an alarm of a measure without a rise, in each reference.
    contributions
        As of `Movement`.

    Raises
    ------
    ParameterError
        If `level` is not above 0 and below 1.

    Examples
    --------
    >>> alarms = Alarms(0.01)
    >>> for i in range(5000):
    ...     for alarm in alarms.learnt(i % 10 == 0, 0.3, {"age": i % 7}):
    ...         print(alarm)
    >>> for i in range(800):
    ...     for alarm in alarms.learnt(i % 4 == 0, 0.3, {"age": 7 + i % 7}):
    ...         print(alarm.measure, i, alarm.features)
    error 207 (('age', 0.774),)
    """

    def __init__(self, level: float, *, contributions: bool = False) -> None:
        if not 0 < level < 1:
            raise ParameterError(f"level must be above 0 and below 1, not {level!r}")
        self.level = level
        self.contributions = contributions
        self._reset()

    def _reset(self) -> None:
        self._detectors = {name: Detector(self.level) for name in MEASURES}
        self._movement = Movement(contributions=self.contributions)
        self._wait = 0  # examples until the features of one are looked at
        self._is_rising = False
        self._wrong: list[bool] = []  # those of a group
        self._losses: list[float] = []

    def learnt(
        self,
        wrong: bool,  # noqa: FBT001
        loss: float,
        features: Features | None,
    ) -> Sequence[Alarm]:
        """Take an example, and return the alarms that it makes.

        Parameters
        ----------
        wrong
            Whether its prediction was.
        loss
            Its log loss; NaN where that is not known.
        features
            Its features, or their contributions; None where these are not known.
        """
        self._wait -= 1
        # So seldom that an example costs half as much as one feature.
        if self._wait < 0 and features is not None:
            self._movement.add(features, is_rising=self._is_rising)
            self._wait = len(features) // 32 if self._is_rising else max(16, 2 * len(features))
        self._wrong.append(wrong)
        self._losses.append(loss)
        return self._end_group() if len(self._wrong) == _GROUP else ()

    def _end_group(self) -> list[Alarm]:
        error, log_loss = self._detectors.values()
        wrong, losses = sum(self._wrong), [min(1.0, x / CUT) for x in self._losses if x == x]
        self._wrong, self._losses = [], []
        is_error = error.add(_GROUP, wrong, wrong)
        is_loss = (
            log_loss.add(len(losses), sum(losses), sum(x * x for x in losses)) if losses else 0
        )
        is_rising = error.is_rising or log_loss.is_rising
        if is_rising is not self._is_rising:
            self._is_rising, self._wait = is_rising, 0
            if not is_rising:
                self._movement.merge()
        if not (is_error or is_loss):
            return []
        moved = tuple((name, round(distance, 3)) for name, distance in self._movement.moved())
        alarms = []
        for measure, is_it, unit in zip(MEASURES, (is_error, is_loss), (1.0, CUT), strict=True):
            if is_it:
                before, now, n = self._detectors[measure].means
                alarms.append(Alarm(measure, before * unit, now * unit, n, moved))
        self._reset()
        return alarms

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: JSON types."""
        watched = {name: detector.state() for name, detector in self._detectors.items()}
        losses = [None if x != x else x for x in self._losses]
        group = {"wait": self._wait, "wrong": [*map(int, self._wrong)], "losses": losses}
        return {**watched, "features": self._movement.state(), "group": group}

    @classmethod
    def restore(cls, state: Any, level: float, *, contributions: bool = False) -> Self:
        """Return the alarms of a `state`; new ones where those named features by something else.

        Raises
        ------
        ParameterError
            It is no `state`.
        """
        alarms = cls(level, contributions=contributions)
        try:
            watched = {name: Detector.restore(state[name], level) for name in MEASURES}
            movement = Movement.restore(state["features"])
            wait, group = int(state["group"]["wait"]), state["group"]
            wrong = [bool(x) for x in group["wrong"]]
            losses = [math.nan if x is None else float(x) for x in group["losses"]]
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as problem:
            raise ParameterError(f"no state of alarms: {problem!r:.80}") from None
        if movement.contributions == contributions:
            alarms._detectors, alarms._movement = watched, movement
            alarms._is_rising = any(detector.is_rising for detector in watched.values())
            alarms._wait, alarms._wrong, alarms._losses = wait, wrong, losses
        return alarms
