"""The tracker: many kernel classifiers over one budget of supports, mixed online."""

from __future__ import annotations

import math
import secrets
from typing import TYPE_CHECKING, Any

from drift._checks import check_choice, check_integer, check_number, check_numbers, check_seed
from drift.models._store.class_labels import check_classes
from drift.models._store.guard import alone
from drift.models._template.river import ONE, OnlineClassifier
from drift.models._tracker.cores import new_core
from drift.models._tracker.plan import MOST, SLOWLY, SOON, Plan

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from drift.models._store.rows import Rows
    from drift.models._store.supports import Guard
    from drift.models._tracker.experts import Experts, RegretBound
    from drift.types import Features, Label

__all__ = ["Tracker"]


class Tracker(OnlineClassifier):
    """Classifier for streams that drift, without anything to tune.

    Inner products with the supports are what a kernel classifier costs, and every kernel is a
    function of them: so one list of supports carries 16 kernel logistic regressions (four kernels,
    two learning rates, each forgetting slowly and soon). Beside them stand four linear models over
    the features, two sums of a curve for each dense feature and, of the first 16, a surface for
    each pair, and two gates, which weigh the scores of all these. The 24 members are one list with
    exponential weights on the log loss; a small share goes round, so that another may lead at any
    time. Their mixture, put right where too timid or too bold, is the probability; a vote decides.

    Labels are whatever has a hash; classes may appear at any time. Before anything is learnt the
    prediction is None; in a data frame's Series it is what the library has for it, so that `isna`
    of pandas finds it among texts, too. A missing feature, NaN and 0 are the same.

    Parameters
    ----------
    budget
        Largest number of supports, at least 1. Memory and time are linear in it.
    kernels
        Kernels of the experts: 0 for the linear one, else `gamma` of ``exp(-gamma |a - b|^2)``, up
        to 1e6.
    rates
        Their learning rates, up to 1e6.
    forgetting
        What an insertion takes from all coefficients, as a share of ``1 / budget``: one expert for
        each. None for 0.05 and ``0.75 * sqrt(budget) / rate``: large steps write over what is
        wrong, so that fast experts need to forget less.
    share
        Share of the weights that is spread over all members at each example: below 1.
    scale
        ``"dense"`` standardises every feature by its running mean and deviation; what an example
        lacks is 0. It leaves out what comes after 4,096 names; the first 256 have curves.
        ``"sparse"`` divides each example by its norm. ``"auto"`` begins as dense and goes over to
        sparse, once and for good, as soon as more than 256 names were met of which examples have
        less than a quarter on average, and a name, up to 1,024 of them, fewer than three values; or
        4,096. Supports and what the linear models know are then
        dropped, for they are on another scale. Text does so within some five examples. After 8 or
        more, as in a table with many categories, what half of them had is still standardised.
    decide
        ``"vote"`` predicts the weighted majority of the members, by their mistakes, where that has
        been better than the class of the largest probability; ``"probability"`` always predicts
        the latter.
    seed
        Seed of the draws among supports to be evicted; None for another sequence each time.
    delay
        Number of examples, about, that are predicted between one and its label. Members are then
        weighed by what they predicted without the labels in between. For that the model keeps so
        many examples and a second one, so many behind: twice the memory, some 2.3 times the time.
    splines, pairs
        Have curves, and with them surfaces of the first 16 features' pairs, unless the example that
        brings the 17th name has more than 16.

    Raises
    ------
    ParameterError
        If a parameter is none of these.

    Notes
    -----
    `learn_one` takes a weight `w` of the example: it multiplies the loss, and with that the steps
    of all members and the coefficients of a new support. 0 changes nothing; above 1e6 it counts as
    1e6.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import Tracker
    >>> segments = datasets.ImageSegments().take(500)
    >>> evaluate.progressive_val_score(segments, Tracker(budget=50), metrics.Accuracy())
    Accuracy: 85.17%
    """

    delay, splines, pairs = 0, False, False  # of those stored before there were any
    _multiclass = True

    def __init__(  # noqa: PLR0913, PLR0917 - none of them needs to be given
        self,
        budget: int = 300,
        kernels: Sequence[float] = (0.0, 0.25, 2.0, 16.0),
        rates: Sequence[float] = (0.5, 6.0),
        forgetting: Sequence[float] | None = None,
        share: float = 1e-3,
        scale: str = "auto",
        decide: str = "vote",
        seed: int | None = 0,
        delay: int = 0,
        splines: bool = True,  # noqa: FBT001, FBT002 - River passes parameters by name
        pairs: bool = True,  # noqa: FBT001, FBT002
    ) -> None:
        self.budget = check_integer("budget", budget)
        self.kernels = kernels
        self.rates = rates
        self.forgetting = forgetting
        self.share = share
        self.scale = scale
        self.decide = decide
        self.seed = check_seed(seed)
        self.delay = check_integer("delay", delay, least=0)
        self.splines, self.pairs = splines, pairs
        start = secrets.randbits(64) if self.seed is None else self.seed
        self._core = new_core(self._plan(), scale, start, self.delay)

    def _plan(self) -> Plan:
        """Check the parameters."""
        kernels = check_numbers("kernels", self.kernels, most=MOST)
        rates = check_numbers("rates", self.rates, above=True, most=MOST)
        experts = [(rate, lost) for rate in rates for lost in self._lost(rate)]
        by_rate, by_lost = zip(*experts, strict=True)
        check_number("share", self.share, most=0.5)
        check_choice("scale", self.scale, ("auto", "dense", "sparse"))
        check_choice("decide", self.decide, ("vote", "probability"))
        share, vote = float(self.share), self.decide == "vote"
        splines, pairs = bool(self.splines), bool(self.splines and self.pairs)
        return Plan(self.budget, kernels, by_rate, by_lost, share, vote, splines, pairs)

    def _lost(self, rate: float) -> list[float]:
        """Shares of the coefficients that an insertion takes from the experts of a rate."""
        if self.forgetting is None:
            lost = [SLOWLY / self.budget, SOON / (rate * math.sqrt(self.budget))]
        else:
            lost = [f / self.budget for f in check_numbers("forgetting", self.forgetting)]
        return [min(share, 0.9) for share in lost]

    @property
    def _guard(self) -> Guard:  # type: ignore[override]
        guard: Guard = self._core.guard
        return guard

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_core": self._core.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from drift.models._tracker.check import of_older  # noqa: PLC0415  (imports numpy)

        for name, value in state.items():
            if name != "_core":
                setattr(self, name, value)
        self.budget = check_integer("budget", self.budget)
        self.delay = check_integer("delay", self.delay, least=0)
        self._core = new_core(self._plan(), self.scale, 0, self.delay)
        self._core.restore(of_older(state["_core"]))

    # --- one example ---------------------------------------------------------------------------

    def learn_one(self, x: Features, y: Label, w: float = ONE) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name.
        y
            Label, of any type that has a hash.
        w
            Weight of the example. One of weight 0 is passed over: nothing changes, and `y` is not
            looked at.

        Raises
        ------
        LabelError, FeatureError, FeatureTypeError, ParameterError
            If the label, a value or the weight cannot be learnt.
        """
        if w is ONE:
            self._core.learn(x, y, 1.0)
        else:
            super().learn_one(x, y, w)

    def predict_one(self, x: Features, **kwargs: Any) -> Label:
        """Predict the label of one example; None before anything was learnt."""
        number = self._core.predict(x)
        return None if number < 0 else self._core.classes[number]

    def _learn(self, x: Features, y: Label) -> Label:
        return self._learn_weighted(x, y, 1.0)

    def _learn_weighted(self, x: Features, y: Label, w: float) -> Label:
        number = self._core.learn(x, y, min(w, MOST)) if w else self._core.predict(x)
        return None if number < 0 else self._core.classes[number]

    def _read(self, x: Features) -> None:
        self._core.read(x)

    def _score(self) -> tuple[int, list[float]]:
        score: tuple[int, list[float]] = self._core.score()
        return score

    def _pass_over(
        self, rows: Rows, predictions: list[Label], labels: list[Label] | None, checked: Any
    ) -> None:
        self._core.learn_rows(rows, predictions, labels)

    def _check_labels(self, labels: Sequence[Label]) -> None:
        check_classes(labels)

    def _label_of(self, score: tuple[int, list[float]]) -> Label:
        return None if score[0] < 0 else self._core.classes[score[0]]

    def _probabilities(self, score: tuple[int, list[float]]) -> dict[Label, float]:
        classes, chances = self._core.classes, score[1]
        # Members' weights, which are all that counts there, may sum to 1 but for a last bit.
        return dict(zip(classes, [1.0] if len(classes) == 1 else chances, strict=True))

    # --- what it shows -------------------------------------------------------------------------

    @property
    @alone
    def experts(self) -> Experts:
        """The members of the list, with their weights and what each would have cost alone.

        Returns
        -------
        Experts
            Named tuples, which print as a table, in notebooks too; ``pandas.DataFrame`` takes them.

        Examples
        --------
        >>> model = Tracker(kernels=(0, 2), rates=(1,), forgetting=(0,))
        >>> for a in range(9):
        ...     model.learn_one({"a": a}, a % 3 == 0)
        >>> model.experts
        kernel                rate  forgetting  weight in %  error in %  log loss
        linear                   1           -         19.4        33.3     0.712
        RBF(2)                   1           -         19.1        33.3     0.714
        features, SGD          0.3           -         22.7        33.3     0.695
        features, SGD            3           -          0.7        55.6     1.086
        features, AdaGrad     0.25           -         22.6        33.3     0.695
        features, Kalman         -           -          0.5        55.6     1.135
        splines, Kalman     0.0001           -          1.2        55.6     1.024
        splines, Kalman       0.01           -          1.2        55.6     1.026
        gate                   0.1           -          6.4        55.6     0.837
        gate, Kalman             -           -          6.2        55.6     0.841
        """
        from drift.models._tracker.experts import experts_of  # noqa: PLC0415

        return experts_of(self._plan(), self._core.record())

    @alone
    def regret_bound(self) -> RegretBound:
        """Tell what the log loss cannot exceed, beside what it is.

        Whatever the examples are, with weights of at most 1: the log loss is at most that of the
        best sequence of members with ``m`` switches from one to another, plus ``ln M + m ln(M / s)
        - (T - 1 - m) ln(1 - s + s / M)``, with ``M`` members, ``T`` examples and the share ``s``.
        The bound is the least of these, over every sequence and every ``m``. Where rows are sparse
        a sequence reaches the splines by a switch alone. The bound is about the mixture: the
        probabilities that are shown cost at most ``ln 2 + 0.0003 T`` more.

        Returns
        -------
        RegretBound
            `log_loss`, `bound` and `switches`, that ``m``: sums over all examples, in nats.
        """
        from drift.models._tracker.experts import bound_of  # noqa: PLC0415

        return bound_of(self._core.record())

    # --- the supports --------------------------------------------------------------------------

    @property
    def n_supports(self) -> int:
        """Number of supports held."""
        n: int = self._core.n_supports
        return n

    @property
    @alone
    def supports(self) -> list[dict[Hashable, float]]:
        """The supports, the oldest first, as they were scaled when they came.

        Features of sparse ones have no names, but hashes of them, below 2^31.
        """
        supports: list[dict[Hashable, float]] = self._core.supports()
        return supports
