"""Why a model predicts what it does: what each feature adds to a prediction's log-odds.

>>> from drift.explain import Explainer
>>> from drift.models import Tracker
>>> model = Tracker(budget=50)
>>> explainer = Explainer(model)
>>> for i in range(200):
...     x = {"sum": float(i % 9), "hour": float(i % 5)}
...     explainer.baseline.learn_one(x)
...     model.learn_one(x, i % 9 > 5)
>>> why = explainer.explain_one({"sum": 8.0, "hour": 1.0})
>>> why.label, list(why.contributions)
(True, ['sum', 'hour'])
"""

from __future__ import annotations

import math
from itertools import chain, permutations
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from drift._checks import check_instance, check_integer, check_number, check_seed, suggest
from drift._late import asking_only, ticket_for
from drift._values import is_missing, number
from drift.errors import ParameterError
from drift.models import _batch
from drift.models._base.examples import as_dict
from drift.models._template.probabilities import check_probabilities
from drift.models.threshold import Threshold

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from drift.types import Features, Label

    Array = NDArray[np.float64]

__all__ = ["Baseline", "Explainer", "Explanation", "Importances"]

#: Least probability: else the certainty of a tree's leaf would hide all other contributions.
_LEAST = 1e-6
#: Share of the largest log-odds by which two contributions may differ that are the same but for
#: rounding: drift's models store float32.
_ROUNDING = 1e-5
#: Features of which all orders are taken: no more than three pairs have.
_FEW = 3
#: Names whose means are kept, before rare ones are dropped.
_NAMES = 4_096
#: Weight of an example at which all weights are scaled down.
_HEAVY = 1e9


class Baseline:
    """Running means of the features: the example that predictions are compared with.

    A feature that at least half of the recent examples have is at its mean over these. All others
    are absent: the words of a text, rare categories, and values that are texts.

    Parameters
    ----------
    memory
        Number of examples that a mean is of: one that is so many examples old counts 1 / e of the
        last.

    Raises
    ------
    ParameterError
        If `memory` is not above 1.

    Examples
    --------
    >>> baseline = Baseline()
    >>> for x in ({"sum": 10.0, "card=visa": 1}, {"sum": 20.0}, {"sum": 30.0, "note": "new"}):
    ...     baseline.learn_one(x)
    >>> baseline.features
    {'sum': 20.0...}
    """

    def __init__(self, memory: float = 1_000) -> None:
        check_number("memory", memory, least=1, above=True)
        self.memory = memory
        self._total = 0.0
        self._sums: dict[Hashable, list[float]] = {}  # weight and weighted sum
        self._step = 1.0  # weight of the next example: it grows, which spares fading all
        self._most = _NAMES

    def learn_one(self, x: Features) -> None:
        """Learn an example's features; what is no finite number is passed over."""
        step, sums = self._step, self._sums
        for name, value in x.items():
            try:
                v = number(value)
            except (TypeError, ValueError, OverflowError):
                continue
            if not math.isfinite(v):
                continue
            known = sums.setdefault(name, [0.0, 0.0])
            known[0] += step
            known[1] += step * v
        self._total += step
        self._step *= self.memory / (self.memory - 1)
        if self._step > _HEAVY:
            self._rescale()
        if len(sums) > self._most:
            self._sums = {name: one for name, one in sums.items() if 4 * one[0] > self._total}
            self._most = max(_NAMES, 2 * len(self._sums))

    def _rescale(self) -> None:
        self._total /= self._step
        for known in self._sums.values():
            known[:] = [one / self._step for one in known]
        self._step = 1.0

    @property
    def features(self) -> dict[Hashable, float]:
        """The means by name."""
        half = 0.5 * self._total
        return {
            name: total / weight for name, (weight, total) in self._sums.items() if weight >= half
        }

    def means(self) -> dict[Hashable, float]:
        """Return the means of all features over all examples, 0 where an example lacks one."""
        return {name: total / self._total for name, (_, total) in self._sums.items()}

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: JSON types, names as texts or integers."""
        sums = [
            [name if isinstance(name, (str, int)) else str(name), *known]
            for name, known in self._sums.items()
        ]
        return {"total": self._total, "step": self._step, "sums": sums}

    @classmethod
    def restore(cls, state: Mapping[str, Any], memory: float = 1_000) -> Self:
        """Return the baseline of a `state`; ParameterError if it is none."""
        try:
            sums = {name: [float(weight), float(total)] for name, weight, total in state["sums"]}
            numbers = [float(state["total"]), float(state["step"]), *chain(*sums.values())]
        except (KeyError, OverflowError, TypeError, ValueError) as problem:
            raise ParameterError(f"no state of a baseline: {problem!r:.80}") from None
        total, step, *_ = numbers
        weights = [weight for weight, _ in sums.values()]
        is_good = min([step, *weights]) > 0 and total >= max([0.0, *weights])
        if not is_good or not all(map(math.isfinite, numbers)):
            raise ParameterError("no state of a baseline: a weight out of its range")
        baseline = cls(memory)
        baseline._total, baseline._step = total, step
        baseline._sums, baseline._most = sums, max(_NAMES, 2 * len(sums))
        return baseline


class Explanation:
    """What each feature adds to the log-odds of a prediction.

    Attributes
    ----------
    label
        The class that `contributions` are of: the one that was predicted, or asked for.
    labels : list
        All classes.
    score, baseline : float
        Log-odds of the class, of the example and of the baseline, within 13.8 of 0. The sum of all
        contributions is ``score - baseline``.
    contributions : dict
        Contribution by feature, the largest first, whatever its sign.
    errors : dict
        Their standard errors, in the same order; 0 where they are exact.
    is_exact : bool
        Whether they are exact but for rounding.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what it is
        self,
        label: Label,
        labels: Sequence[Label],
        names: Sequence[Hashable],
        scores: Array,
        contributions: Array,
        errors: Array,
    ) -> None:
        self.labels = list(labels)
        if label not in self.labels:
            problem = f"the model knows no class {label!r}"
            raise ParameterError(f"{problem}: {suggest(str(label), list(map(str, labels)))}")
        self._all = names, scores, contributions, errors
        k = self.labels.index(label)
        self.label = self.labels[k]  # 1 is True
        self.baseline, self.score = scores[:, k].tolist()
        order = np.argsort(-np.abs(contributions[:, k]), kind="stable").tolist()
        self.contributions = {names[i]: float(contributions[i, k]) for i in order}
        self.errors = {names[i]: float(errors[i, k]) for i in order}
        self.is_exact = not errors.any()

    def of(self, label: Label) -> Explanation:
        """Return the explanation of another class.

        Raises
        ------
        ParameterError
            If the model does not know it.
        """
        return Explanation(label, self.labels, *self._all)

    def largest(self, n: int) -> dict[Hashable, float]:
        """Return the `n` largest contributions that are not 0."""
        named = [(name, value) for name, value in self.contributions.items() if value]
        return dict(named[:n])

    def __repr__(self) -> str:
        lines = [
            f"log-odds of {self.label!r}: {self.score:.3f}, of the baseline {self.baseline:.3f}"
        ]
        width = max((len(str(name)) for name in self.contributions), default=0)
        for name, value in self.contributions.items():
            error = self.errors[name]
            lines.append(f"{name!s:{width}} {value:+8.3f}" + (f" ± {error:.3f}" if error else ""))
        return "\n".join(lines)


class _Player(NamedTuple):
    """A feature, or the indicators of a category: what it is in the example and the baseline."""

    name: Hashable
    inside: dict[Hashable, Any]
    outside: dict[Hashable, Any]


class Explainer:
    """Explains predictions of any River classifier that gives probabilities.

    A contribution is a Shapley value: the change of the log-odds as the feature goes from the
    baseline to its value, averaged over all orders in which features may do so. So contributions
    add up to the log-odds of the example minus those of the baseline. The model stays as it is.

    Parameters
    ----------
    model
        A classifier or a pipeline; drift's predict the changed rows in batches.
    baseline
        What predictions are compared with; None for one that has learnt nothing, in which all
        features are absent. Its ``learn_one(x)`` is yours to call.
    pairs
        Pairs of a random order of the features and its reverse. Each pair takes two predictions for
        each feature.
    seed
        Seed of the orders; each explanation draws the same again.
    seconds
        Time after which no further pair is begun; None for all. Then contributions depend on the
        machine.

    Raises
    ------
    ParameterError
        If the model gives no probabilities, or a parameter is out of its range.

    Notes
    -----
    Where the model is additive in the features, as with a linear kernel, logistic regression or
    naive Bayes of two classes, each order gives the same contributions, and the second pair is the
    last. They are exact, and so are those of models of up to three features, for which all orders
    are taken. Otherwise the standard error over the pairs is beside them. A pair is exact for
    interactions of two features [1]_.

    Features that have the baseline's value contribute nothing. Indicators of a category, named
    ``"card=visa"``, ``"card=amex"``, count together, as ``"card"``.

    The log-odds are of a class against all others, of probabilities of at least 1e-6. A
    `drift.models.Tracker` with ``late=True`` keeps no ticket of the predictions that are made here.

    References
    ----------
    .. [1] R. Mitchell, J. Cooper, E. Frank, G. Holmes, "Sampling permutations for Shapley value
       estimation", JMLR 23 (2022).

    Examples
    --------
    >>> from river.linear_model import LogisticRegression
    >>> from drift.explain import Explainer
    >>> model = LogisticRegression()
    >>> model._weights.update({"sum": 2.0, "hour": -0.5})
    >>> Explainer(model).explain_one({"sum": 1.5, "hour": 2.0})
    log-odds of True: 2.000, of the baseline 0.000
    sum    +3.000
    hour   -1.000
    """

    def __init__(
        self,
        model: Any,
        baseline: Baseline | None = None,
        *,
        pairs: int = 8,
        seed: int = 0,
        seconds: float | None = None,
    ) -> None:
        check_instance("model", model)
        check_probabilities(model)
        if seconds is not None:
            check_number("seconds", seconds, above=True)
        self.model = model
        self.baseline = Baseline() if baseline is None else baseline
        self.pairs = check_integer("pairs", pairs, least=2)
        self.seed = check_seed(seed)
        self.seconds = seconds

    def explain_one(self, x: Features, label: Label = None) -> Explanation:
        """Explain the prediction of an example.

        Parameters
        ----------
        x
            Features by name.
        label
            The class whose log-odds are explained; None for the predicted one.

        Raises
        ------
        FeatureTypeError
            If `x` is no dict, nor anything else with names and values.
        ParameterError
            If the model does not know the class, has learnt nothing yet, or `seconds` does not
            suffice for a pair.
        """
        with asking_only():
            return self._explained(as_dict(x), label)

    def _explained(self, x: Features, label: Label) -> Explanation:
        """Return what `explain_one` does."""
        began = perf_counter()
        predicted, labels = self._predicted(x)
        players = _players(x, self.baseline.features)
        changed = {name for one in players for name in one.inside}
        start = {name: value for name, value in x.items() if name not in changed}
        for one in players:
            start |= one.outside
        scores = self._log_odds([start, x], labels)
        names = [one.name for one in players]
        values, errors = self._averaged(start, players, scores, labels, began)
        wanted = predicted if label is None else label
        return Explanation(wanted, labels, names, scores, values, errors)

    def explain_many(self, X: Any) -> list[Explanation]:
        """Explain the prediction of each row of a batch.

        Parameters
        ----------
        X
            DataFrame, list of dicts, 2-d numpy array or scipy sparse matrix.
        """
        rows = _batch.batches.Batch(X).rows
        return [self.explain_one(dict(rows[i])) for i in range(len(rows))]

    def _predicted(self, x: Features) -> tuple[Label, list[Label]]:
        """Return the predicted label, and all."""
        if hasattr(self.model, "answer_one"):  # by which a late Tracker keeps no ticket
            label, _, chances = self.model.answer_one(x, ticket=False)
        else:
            more = ticket_for(self.model, ticket=False)
            label = self.model.predict_one(x, **more)
            chances = self.model.predict_proba_one(x, **more)
        if not chances:
            kind = type(self.model).__name__
            raise ParameterError(f"{kind} gives no probabilities yet: let it learn a label first")
        return label, list(chances)

    def _log_odds(self, rows: Sequence[Features], labels: Sequence[Label]) -> Array:
        """Log-odds of each class against all others, a row each."""
        model = self.model
        while type(model).predict_proba_one is Threshold.predict_proba_one:
            model = model.model  # whose probabilities these are, and which may know batches
        if hasattr(model, "answer_one"):
            if hasattr(model, "predict_proba_many") and not getattr(model, "late", False):
                return _log_odds(model.predict_proba_many(list(rows)))
            given = [model.answer_one(x, ticket=False)[2] for x in rows]
        else:
            more = ticket_for(model, ticket=False)
            given = [model.predict_proba_one(x, **more) for x in rows]
        return _log_odds(np.array([[one.get(label, 0.0) for label in labels] for one in given]))

    def _averaged(
        self,
        start: dict[Hashable, Any],
        players: Sequence[_Player],
        ends: Array,
        labels: Sequence[Label],
        began: float,
    ) -> tuple[Array, Array]:
        """Return contributions and their standard errors, a row a player and a column a class."""
        n = len(players)
        if n <= _FEW:
            paths = self._along(list(permutations(range(n))), start, players, ends, labels)
            return paths.mean(axis=0), np.zeros_like(paths[0])
        rng = np.random.default_rng(self.seed)
        pairs: list[Array] = []
        rounding = _ROUNDING * max(1.0, float(np.abs(ends).max()))
        while len(pairs) < self.pairs:
            order = rng.permutation(n).tolist()
            pairs.append(self._along([order, order[::-1]], start, players, ends, labels))
            if len(pairs) == 2 and np.ptp(np.concatenate(pairs), axis=0).max() <= rounding:
                return np.mean(pairs, axis=(0, 1)), np.zeros_like(pairs[0][0])
            took = perf_counter() - began
            if self.seconds is not None and took * (1 + 1 / len(pairs)) > self.seconds:
                break
        if len(pairs) == 1:
            raise ParameterError(
                f"seconds={self.seconds:g} is too small: it takes two pairs of orders, and the "
                f"first one, of {n} features, took {took:.2g}"
            )
        means = np.mean(pairs, axis=1)
        return means.mean(axis=0), means.std(axis=0, ddof=1) / math.sqrt(len(pairs))

    def _along(
        self,
        orders: Sequence[Sequence[int]],
        start: dict[Hashable, Any],
        players: Sequence[_Player],
        ends: Array,
        labels: Sequence[Label],
    ) -> Array:
        """Return what each player adds to the scores, by order, player and class."""
        n = len(players)
        rows = []
        for order in orders:
            row = start
            for i in order[:-1]:
                _, inside, outside = players[i]
                row = row | inside
                for name in outside.keys() - inside.keys():
                    del row[name]
                rows.append(row)
        scores = np.empty((len(orders), n + 1, ends.shape[1]))
        scores[:, 0], scores[:, n] = ends
        if rows:
            scores[:, 1:n] = self._log_odds(rows, labels).reshape(len(orders), n - 1, -1)
        steps, added = np.diff(scores, axis=1), np.empty_like(scores[:, 1:])
        for k, order in enumerate(orders):
            added[k, list(order)] = steps[k]
        return added


def _log_odds(chances: Array) -> Array:
    total = chances.sum(axis=1, keepdims=True)
    if not np.isfinite(total).all() or (total <= 0).any():
        raise ParameterError("the model gives probabilities that are none, for a changed example")
    own = chances / total
    others = own[:, ::-1] if own.shape[1] == 2 else 1.0 - own  # of two classes to full precision
    odds: Array = np.log(np.maximum(own, _LEAST)) - np.log(np.maximum(others, _LEAST))
    return odds


def _players(x: Features, baseline: Mapping[Hashable, float]) -> list[_Player]:
    """Return what differs between an example and the baseline."""
    players: dict[Hashable, _Player] = {}
    for name in {**x, **baseline}:
        inside = {name: x[name]} if name in x else {}
        outside = {name: baseline[name]} if name in baseline else {}
        if inside == outside or (not outside and is_missing(x[name])):
            continue
        known = feature_of(name)
        player = players.setdefault(known, _Player(known, {}, {}))
        player.inside.update(inside)
        player.outside.update(outside)
    return list(players.values())


def feature_of(name: Hashable) -> Hashable:
    """Return the feature that a name is of: of ``"card=visa"``, an indicator, ``"card"``."""
    if isinstance(name, str) and "=" in name[1:]:
        return name[0] + name[1:].partition("=")[0]
    return name


class Importances:
    """Mean absolute contributions by feature, of recent explanations.

    Parameters
    ----------
    memory
        Number of explanations that a mean is of: one that is so many explanations old counts 1 / e
        of the last.

    Raises
    ------
    ParameterError
        If `memory` is not above 1.

    Examples
    --------
    >>> from river.linear_model import LogisticRegression
    >>> from drift.explain import Explainer, Importances
    >>> model = LogisticRegression()
    >>> model._weights.update({"sum": 2.0, "hour": -0.5})
    >>> explainer, importances = Explainer(model), Importances()
    >>> for hour in range(4):
    ...     importances.learn_one(explainer.explain_one({"sum": 1.0, "hour": float(hour)}))
    >>> {name: round(value, 2) for name, value in importances.get().items()}
    {'sum': 2.0, 'hour': 0.76}
    """

    def __init__(self, memory: float = 100) -> None:
        self.memory = memory
        self._means = Baseline(memory)

    def learn_one(self, explanation: Explanation) -> None:
        """Add an explanation."""
        self._means.learn_one({name: abs(v) for name, v in explanation.contributions.items()})

    def get(self) -> dict[Hashable, float]:
        """Return the means by feature, the largest first; one that an explanation lacks is 0."""
        return dict(sorted(self._means.means().items(), key=itemgetter(1), reverse=True))
