"""The tracker: many kernel classifiers over one budget of supports, mixed online."""

from __future__ import annotations

import math
import secrets
from typing import TYPE_CHECKING, Any

from drift._checks import check_choice, check_integer, check_numbers, check_seed, weight_of
from drift.models._store.class_labels import check_classes
from drift.models._store.guard import alone
from drift.models._template.river import ONE, OnlineClassifier
from drift.models._tracker.built import TrackerCore
from drift.models._tracker.experts import experts_of
from drift.models._tracker.plan import Plan
from drift.models._tracker.tables import MOST, SLOWLY, SOON

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from drift.models._store.rows import Rows
    from drift.models._store.supports import Guard
    from drift.models._tracker.experts import Experts
    from drift.types import Features, Label

__all__ = ["Tracker"]


class Tracker(OnlineClassifier):
    """Classifier for streams that drift, without anything to tune.

    Many learners on several views of an example, stacked by an online Bayesian logistic regression.
    One list of supports carries 16 kernel logistic regressions: four kernels, two learning rates,
    each forgetting slowly and soon. Beside them stand four linear models over the features and two
    sums of curves, one of each dense feature, and of surfaces, one of each pair where the first
    example has at most 16. Four more see up to 64 dense features beside their context: how far a
    value is from the mean of the last 8, 32 and 128. Two gates weigh the scores of these 26 members
    and are calibrated online; the likeliest class is predicted.

    Labels are whatever has a hash; classes may appear at any time. Before anything is learnt the
    prediction is None; in a data frame's Series it is what the library has for it, so that `isna`
    of pandas finds it among texts, too.

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
        each. None for 0.05 and ``0.75 * sqrt(budget) / rate``: large steps overwrite what is wrong,
        so that fast experts need to forget less.
    scale
        ``"dense"`` standardises every feature by its running mean and deviation. It leaves out what
        comes after 4,096 names; the first 256 have curves. ``"sparse"`` divides each example by its
        norm. ``"auto"`` begins as dense and goes over to sparse, once and for good, as soon as more
        than 256 names were met of which examples have less than a quarter on average, and a name,
        up to 1,024 of them, fewer than three values; or 4,096. Supports and weights of features are
        then dropped, for they are on another scale. Text does so within some five examples. After 8
        or more, what half of them had is still standardised.
    seed
        Seed of the draws among supports to be evicted; None for another sequence each time.
    late
        Labels come later than the next example. A prediction then leaves a ticket: what the members
        said, and the context that the example was in. The label finds it by the example's content,
        whenever it comes and in whatever order, so that gates learn from what was really predicted,
        and by a share from what the members say now. Tickets take up to 64 MiB; see Notes. None:
        what runs the model says so, where it knows: a worker whose labels have a topic of their
        own, a comparison with a delay; else they do not.

    Raises
    ------
    ParameterError
        If a parameter is none of these.

    Notes
    -----
    NaN and None are missing values, and 0 is a value, in arrays and data frames, too; what a sparse
    matrix does not store, it does not have. A name that an example does not have is missing, too,
    once 0 was given for it, or where most examples have it and 0 is far from all of its values;
    else it is 0, as in texts. A feature whose values jump, or grow or shrink for good, is
    standardised anew within some fifty examples.

    With ``late=True`` predictions are noted, and so change the model, but for those that
    `answer_one` is asked for with ``notes=False``; without, they never do. An
    example that is asked for several times in a row has one ticket, the same example later another,
    and the first is taken first. Where tickets reach their bound, every second one goes, and every
    second new one is kept from then on; an example without one teaches the members, and not the
    gates. As long as no ticket waits, labels count as coming at once.

    `learn_one` takes a weight `w` of the example: it multiplies the loss, and with that the steps
    of all members and the coefficients of a new support. 0 changes nothing; above 1e6 it counts as
    1e6.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import Tracker
    >>> segments = datasets.ImageSegments().take(500)
    >>> evaluate.progressive_val_score(segments, Tracker(budget=50), metrics.Accuracy())
    Accuracy: 82.97%
    """

    _multiclass = True

    def __init__(  # noqa: PLR0913, PLR0917 - none of them needs to be given
        self,
        budget: int = 300,
        kernels: Sequence[float] = (0.0, 0.25, 2.0, 16.0),
        rates: Sequence[float] = (0.5, 6.0),
        forgetting: Sequence[float] | None = None,
        scale: str = "auto",
        seed: int | None = 0,
        late: bool | None = None,  # noqa: FBT001 - River passes parameters by name
    ) -> None:
        self.budget = check_integer("budget", budget)
        self.kernels = kernels
        self.rates = rates
        self.forgetting = forgetting
        self.scale = scale
        self.seed = check_seed(seed)
        self.late = late
        self._core = self._new_core(secrets.randbits(64) if self.seed is None else self.seed)

    def _new_core(self, seed: int) -> Any:
        check_choice("scale", self.scale, ("auto", "dense", "sparse"))
        return TrackerCore(self._plan(), self.scale, seed)

    def _plan(self) -> Plan:
        """Check the parameters."""
        kernels = check_numbers("kernels", self.kernels, most=MOST)
        rates = check_numbers("rates", self.rates, above=True, most=MOST)
        experts = [(rate, lost) for rate in rates for lost in self._lost(rate)]
        by_rate, by_lost = zip(*experts, strict=True)
        return Plan(self.budget, kernels, by_rate, by_lost, bool(self.late))

    def _lost(self, rate: float) -> list[float]:
        """Shares of the coefficients that an insertion takes from the experts of a rate."""
        if self.forgetting is None:
            lost = [SLOWLY / self.budget, SOON / (rate * math.sqrt(self.budget))]
        else:
            lost = [f / self.budget for f in check_numbers("forgetting", self.forgetting)]
        return [min(share, 0.9) for share in lost]

    @property
    def _zeros(self) -> bool:  # type: ignore[override]
        """Of sparse rows zeros count for nothing, and there are many in the arrays they come in."""
        return not self._core.sparse

    def _unit_test_skips(self) -> set[str]:
        # A prediction moves the context, and a second one of the same rows finds another.
        many = {f"check_{name}_many_matches_{name}_one" for name in ("predict", "predict_proba")}
        skips: set[str] = super()._unit_test_skips()
        return skips | many if self.late else skips

    @property
    def _guard(self) -> Guard:  # type: ignore[override]
        guard: Guard = self._core.guard
        return guard

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_core": self._core.state()}

    def _moment(self) -> Tracker:
        """Return what is stored as this one is now, on any thread, while this one goes on."""
        taken = object.__new__(type(self))
        vars(taken).update(vars(self) | {"_core": self._core.moment()})
        return taken

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "_core"})
        self.budget = check_integer("budget", self.budget)
        self._core = self._new_core(0)
        self._core.restore(state["_core"])

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

    def predict_learn_one(self, x: Features, y: Label, w: float = ONE) -> Label:
        """Learn one example, and return what was predicted before.

        That costs no more than to learn it, and leaves no ticket. With ``late=True`` it is what the
        model says as the label comes, of the example in the context that it was predicted in.

        Parameters
        ----------
        x, y, w
            As for `learn_one`.

        Returns
        -------
        label
            What `predict_one` would have returned; None before anything was learnt.

        Raises
        ------
        LabelError, FeatureError, FeatureTypeError, ParameterError
            As `learn_one` does.

        Examples
        --------
        >>> model = Tracker()
        >>> [model.predict_learn_one({"rain": 1.0}, y) for y in ("wet", "wet", "dry")]
        [None, 'wet', 'wet']
        """
        label: Label = self._guard.run(self._learn_weighted, x, y, weight_of(w))
        return label

    def predict_one(self, x: Features, **kwargs: Any) -> Label:
        """Predict the label of one example; None before anything was learnt."""
        number = self._core.predict(x)
        return None if number < 0 else self._core.classes[number]

    def _learn(self, x: Features, y: Label) -> Label:
        return self._learn_weighted(x, y, 1.0)

    def _learn_weighted(self, x: Features, y: Label, w: float) -> Label:
        core = self._core
        number = core.learn(x, y, min(w, MOST)) if w else core.predict(x, notes=False)
        return None if number < 0 else self._core.classes[number]

    def _read(self, x: Features) -> None:
        self._core.read(x)

    def _score(self) -> tuple[int, list[float]]:
        score: tuple[int, list[float]] = self._core.score()
        return score

    def _score_of(self, x: Features, notes: bool) -> Any:  # noqa: FBT001
        return super()._score_of(x, notes) if notes else self._core.peek(x)

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
        # Weights of the maps, which are all that counts there, may sum to 1 but for a last bit.
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
        kernel                    rate  forgetting   weight  error in %  log loss
        linear                       1           -    0.090        33.3     0.766
        RBF(2)                       1           -    0.098        33.3     0.714
        slow SGD                     -           -    0.095        33.3     0.687
        fast SGD                     -           -    0.022        55.6     1.121
        AdaGrad                      -           -    0.096        33.3     0.695
        Kalman                       -           -   -0.052        55.6     1.136
        slow splines                 -           -   -0.062        55.6     1.025
        fast splines                 -           -   -0.063        55.6     1.027
        context, AdaGrad             -           -    0.108        33.3     0.708
        context, Kalman              -           -   -0.036        55.6     2.494
        context, slow splines        -           -   -0.031        55.6     1.157
        context, fast splines        -           -   -0.030        55.6     1.159
        """
        return experts_of(self._plan(), self._core.record())

    # --- the supports --------------------------------------------------------------------------

    @property
    def n_supports(self) -> int:
        """Number of supports held."""
        n: int = self._core.n_supports
        return n

    @property
    @alone
    def supports(self) -> list[dict[Hashable, float]]:
        """The supports, in no order, as they were scaled when they came.

        Features of sparse ones have no names, but hashes of them, below 2^31.
        """
        supports: list[dict[Hashable, float]] = self._core.supports()
        return supports
