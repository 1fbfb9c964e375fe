"""A second model beside the first: it learns and predicts the same examples, and sends nothing.

Which of the two errs less is tested as examples come, by a bet on each that one of them has right
and the other wrong. The bettor starts with 1. Before such an example it stakes a fraction of its
capital on the second model, and wins or loses the stake. While the second is no better, so that

    P(second right, first wrong | all before) <= P(first right, second wrong | all before)

for each example, no bet is worth more than its stake: the capital is a supermartingale, and by
Ville's inequality it reaches 100 with a probability of at most 1 %, whenever one looks. That is why
it is called an e-value. Nothing is supposed of the examples: they may depend on each other and
shift, and mistakes of the two may go together. A large capital says that the second model was
better for a while, on what came; not that it is better on everything.

The capital is split over ten fractions, as the best one is not known (Waudby-Smith & Ramdas 2024),
and over several starting points: a model errs more at first, which must not have to be won back.

References
----------
J. Ville, Étude critique de la notion de collectif, Gauthier-Villars, 1939.

I. Waudby-Smith, A. Ramdas, Estimating means of bounded random variables by betting, Journal of the
Royal Statistical Society B 86(1), 2024.
"""

from __future__ import annotations

import math
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

from drift.consumers.answers import Answer
from drift.consumers.checkpoints.agreement import part
from drift.consumers.metrics import Metrics
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drift.consumers.records import TopicPartition
    from drift.types import Label

__all__ = ["PairedTest", "Shadow", "promotion"]

#: Logarithms of what a won and a lost bet leave, by the fraction of the capital that is staked.
_BETS = [(math.log1p(2.0**-k), math.log1p(-(2.0**-k))) for k in range(1, 11)]
#: Pairs that differ before the second start; twice as many before each further one.
_FIRST = 64
#: Exponents beyond this are cut, so that a capital stays finite.
_MOST = 690.0
#: Promotions that a checkpoint remembers.
_KEPT = 10


class PairedTest:
    """Tests, whenever one looks, whether one of two models errs less; see the module.

    Half of the capital bets from the start. Of the other half ``1 / (j * (j + 1))`` starts at
    the j-th of the numbers 64, 128, 256, ... of pairs that differ.

    Attributes
    ----------
    wins, losses : int
        Examples that only the second model had right, and only the first.
    starts : list of tuple
        Both numbers at each start.

    Examples
    --------
    >>> test = PairedTest()
    >>> for _ in range(30):
    ...     test.add(True, False)
    >>> round(test.second_is_better), round(test.first_is_better, 2)
    (9631, 0.74)
    """

    def __init__(self) -> None:
        self.wins = self.losses = 0
        self.starts = [(0, 0)]

    def add(self, first: bool, second: bool) -> None:  # noqa: FBT001
        """Count an example, by whether each of the two models had it wrong."""
        if first is second:
            return
        self.wins += first
        self.losses += second
        if self.wins + self.losses == _FIRST << len(self.starts) - 1:
            self.starts.append((self.wins, self.losses))

    @property
    def second_is_better(self) -> float:
        """The e-value of the second model's erring less: large where it does, 1 at first."""
        won = [(self.wins - wins, self.losses - losses) for wins, losses in self.starts]
        return _capital(won)

    @property
    def first_is_better(self) -> float:
        """The e-value of the first model's erring less."""
        won = [(self.losses - losses, self.wins - wins) for wins, losses in self.starts]
        return _capital(won)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: JSON types."""
        return {"wins": self.wins, "losses": self.losses, "starts": [*map(list, self.starts)]}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        """Return the test of a `state`; ParameterError for anything else.

        Examples
        --------
        >>> test = PairedTest()
        >>> test.add(True, False)
        >>> PairedTest.restore(test.state()).wins
        1
        """
        test = cls()
        numbers = [*state["starts"], [state["wins"], state["losses"]]]
        if any([*map(type, pair)] != [int, int] for pair in numbers):
            raise ParameterError("the counts of the test are no pairs of numbers")
        sums = [sum(pair) for pair in numbers[:-1]]
        due = [0, *(_FIRST << j for j in range(len(sums) - 1))]
        ascend = all(
            a <= b for this, other in pairwise(numbers) for a, b in zip(this, other, strict=True)
        )
        if numbers[0] != [0, 0] or sums != due or not ascend:
            raise ParameterError("the counts of the test do not follow each other")
        if not sum(numbers[-1]) < _FIRST << len(sums) - 1:
            raise ParameterError("the counts of the test lack a start")
        test.wins, test.losses = numbers[-1]
        test.starts = [(wins, losses) for wins, losses in state["starts"]]
        return test


def _capital(won: list[tuple[int, int]]) -> float:
    """Return what has become of 1, by the bets won and lost since each start."""
    capital = 0.5 / len(won)  # what has not started
    for j, (wins, losses) in enumerate(won):
        share = 0.5 / (j * (j + 1) or 1) / len(_BETS)
        capital += share * sum(
            math.exp(min(_MOST, wins * win + losses * loss)) for win, loss in _BETS
        )
    return capital


class Shadow:
    """A second model and how it has done beside the first.

    Parameters
    ----------
    model
        The model.
    since
        Offset by topic and partition from which on it has predicted.

    Attributes
    ----------
    test : PairedTest
        Of the first model and this one.
    metrics : Metrics
        The examples that it was compared on, and its mistakes.
    errors : int
        Predictions and updates that raised.

    Examples
    --------
    >>> from drift.consumers.answers import Answer
    >>> from drift.models import LBP
    >>> shadow = Shadow(LBP(budget=9))
    >>> for _ in range(9):
    ...     wins = shadow.compare("rain", Answer("sun", shadowed="rain"))
    >>> shadow.values()["shadow_mistakes"], shadow.values()["shadow_model_mistakes"]
    (0, 9)
    """

    def __init__(self, model: Any, since: Mapping[TopicPartition, int] | None = None) -> None:
        self.model = model
        self.since = dict(since or {})
        self.test = PairedTest()
        self.metrics = Metrics("shadow")
        self.errors = 0

    def has_predicted(self, place: TopicPartition, offset: int) -> bool:
        """Whether it predicted the features at an offset when they came."""
        return offset >= self.since.get(place, 0)

    def compare(self, label: Label, answer: Answer) -> bool:
        """Count an example; say whether this model had it right, and the first one had not."""
        first, second = bool(answer.predicted != label), bool(answer.shadowed != label)
        self.test.add(first, second)
        self.metrics.learnt(label, Answer(answer.shadowed))
        return first and not second

    def values(self) -> dict[str, float]:
        """Return the values shown in the log, by name."""
        mine, test = self.metrics, self.test
        return {
            "shadow_examples": mine.examples,
            "shadow_mistakes": mine.mistakes,
            "shadow_model_mistakes": mine.mistakes + test.wins - test.losses,
            "shadow_windowed_error": mine.windowed_error,
            "shadow_errors": self.errors,
            "shadow_e_value": test.second_is_better,
            "shadow_model_e_value": test.first_is_better,
        }

    def state(self) -> dict[str, Any]:
        """Return the state beside the model for a checkpoint: JSON types."""
        return {
            "since": [[*place, offset] for place, offset in sorted(self.since.items())],
            "test": self.test.state(),
            "metrics": self.metrics.state(),
            "errors": self.errors,
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any], model: Any) -> Self:
        """Return the shadow of a `state`, with this model.

        Raises
        ------
        AttributeError, KeyError, TypeError, ValueError
            If it is no `state`; a ParameterError is a ValueError.
        """
        shadow = cls(model, {(topic, number): n for topic, number, n in state["since"]})
        shadow.test = PairedTest.restore(state["test"])
        shadow.metrics.restore(dict(state["metrics"]))
        shadow.errors = int(state["errors"])
        return shadow


def promotion(
    before: Sequence[dict[str, Any]],
    *,
    configuration: Mapping[str, Any],
    shadow: Mapping[str, Any],
    counts: Mapping[str, Any],
    by: str,
) -> list[dict[str, Any]]:
    """Return the promotions of a checkpoint, with one more, of now.

    Parameters
    ----------
    before
        Those before it.
    configuration
        That of the model and its shadow, before they change places.
    shadow
        `Shadow.state`.
    counts
        `Metrics.state` of the model.
    by
        What promoted it.
    """
    test = PairedTest.restore(shadow["test"])
    made = {
        "number": 1 + (before[-1]["number"] if before else 0),
        "time": time.time(),
        "by": by,
        "e_value": test.second_is_better,
        "examples": counts.get("examples", 0),
        "compared": shadow["metrics"]["examples"],
        "promoted": part(configuration, "shadow"),
        "replaced": part(configuration, "model"),
    }
    return [*before, made][-_KEPT:]
