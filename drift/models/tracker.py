"""The tracker: kernel members, linear models and splines, mixed online."""

from __future__ import annotations

import math
import secrets
from typing import TYPE_CHECKING, Any

from drift._checks import check_choice, check_integer, check_numbers, check_seed, weight_of
from drift.models._base.examples import LARGEST
from drift.models._base.guard import alone
from drift.models._base.labels import check_classes
from drift.models._template.contract import OnlineClassifier
from drift.models._tracker.built import TrackerCore
from drift.models._tracker.members import members_of
from drift.models._tracker.plan import Plan
from drift.models._tracker.tables import (
    FAST_FORGETTING,
    KERNELS,
    LARGEST_PARAMETER,
    RATES,
    SLOW_FORGETTING,
    TREES_FROM,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from drift.models._base.rows import Rows
    from drift.models._store.built import Guard
    from drift.models._tracker.members import Members
    from drift.types import Features, Label

__all__ = ["Tracker"]


class Tracker(OnlineClassifier):
    """Classifier for streams that drift, without anything to tune.

    It stacks 25 members by an online Bayesian logistic regression. 16 kernel logistic regressions
    share one list of supports: four kernels, two learning rates, slow and fast forgetting. Three
    linear models and a spline read the features. A spline is a sum of curves, one for each dense
    feature. Another two linear models and a spline read up to 64 dense features and their context:
    the deviations from the means of the last 8, 32 and 128 values. Two members are boosted trees,
    without and with the context, over a window of kept examples. Three gates mix the members'
    scores, and a calibration mixes the gates. The most probable class is predicted.

    Labels are hashable, and classes may appear at any time. The prediction is None before the first
    example; in a data frame it is a missing value.

    Parameters
    ----------
    budget
        Largest number of supports, at least 1. Memory and time are linear in it.
    kernels
        Kernels of the members: 0 for the linear one, else `gamma` of ``exp(-gamma |a - b|^2)``, up
        to 1e6.
    rates
        Learning rates of the kernel members, up to 1e6.
    forgetting
        The share of all coefficients that each new support removes, times the budget. There is a
        member for each value. None for 0.05 and ``0.75 * sqrt(budget) / rate``: large steps correct
        errors themselves, so that fast members need less forgetting.
    scale
        ``"dense"`` standardises each feature by its running mean and deviation, up to 4,096 names;
        the first 256 have curves. ``"sparse"`` divides each example by its norm. ``"auto"`` starts
        dense and switches to sparse for good. It does so at 4,096 names, or above 256 names if
        examples have less than a quarter of them on average. (Up to 1,024 names, a name must
        also have had fewer than three values on average.) The switch drops supports and weights of
        features. Text switches within some five examples. After 8 or more examples, features that
        half of them have stay standardised.
    seed
        Seed of the draws among supports to evict; None for random ones.
    late
        Whether labels come later than the next example. A prediction then leaves a ticket: the
        members' scores and the example's context. The label finds its ticket in any order, by the
        example's content, or by the name that `predict_one` and `learn_one` got as `ticket`: behind
        a transformer that learns, only by name. So gates learn from the scores of the prediction,
        and by a share from current ones. Tickets take up to 64 MiB; see Notes. None means False,
        except where the caller sets it: a worker with a topic of labels, a comparison with a delay.
    trees
        Whether two members are trees, over dense rows. They find sharp rules on few features. With
        trees an update takes half as long again on average, and some 0.1 ms if it fits a tree. With
        a budget of 300 they take some 0.5 MB more memory. None means True from a budget of 100 on.

    Raises
    ------
    ParameterError
        If a parameter has another type or value than these.

    Notes
    -----
    NaN and None are missing values; 0 is a value, in arrays and data frames too. A sparse matrix
    has only the values that it stores. A name that an example lacks is a missing value if 0 was
    ever given for it, or if most examples have it and 0 is far from its values. Otherwise it is 0,
    as in texts. A feature whose values jump, grow or shrink for good is standardised anew within
    some fifty examples.

    With ``late=True`` a prediction changes the model, except by `answer_one` with ``ticket=False``;
    otherwise predictions change nothing. An example that is predicted several times in a row has
    one ticket; predicted again later, it gets another. Of several a label uses the one whose age is
    nearest to the longest recent delay, and older ones go: their labels are lost. All tickets go at
    about twice that delay. At the bound of memory every second ticket is dropped, and only every
    second new one is kept. An example without a ticket trains the members but not the gates, unless
    no ticket waits: then the label counts as immediate.

    The weight `w` of `learn_one` multiplies the loss, and so the members' steps and the
    coefficients of a new support. The weight 0 changes nothing. Weights above 1e6 count as 1e6.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import Tracker
    >>> segments = datasets.ImageSegments().take(500)
    >>> evaluate.progressive_val_score(segments, Tracker(budget=50), metrics.Accuracy())
    Accuracy: 83.77%
    """

    _multiclass = True
    _safe_norm2 = 0.999 * LARGEST

    def __init__(  # noqa: PLR0913, PLR0917 - none of them needs to be given
        self,
        budget: int = 300,
        kernels: Sequence[float] = KERNELS,
        rates: Sequence[float] = RATES,
        forgetting: Sequence[float] | None = None,
        scale: str = "auto",
        seed: int | None = 0,
        late: bool | None = None,  # noqa: FBT001 - River passes parameters by name
        trees: bool | None = None,  # noqa: FBT001
    ) -> None:
        self.budget = check_integer("budget", budget)
        self.kernels = kernels
        self.rates = rates
        self.forgetting = forgetting
        self.scale = scale
        self.seed = check_seed(seed)
        self.late = late
        self.trees = trees
        self._core = self._new_core(secrets.randbits(64) if self.seed is None else self.seed)

    def _new_core(self, seed: int, state: Any = None) -> Any:
        check_choice("scale", self.scale, ("auto", "dense", "sparse"))
        return TrackerCore(self._plan(), self.scale, seed, state)

    def _plan(self) -> Plan:
        """Check the parameters."""
        kernels = check_numbers("kernels", self.kernels, most=LARGEST_PARAMETER)
        rates = check_numbers("rates", self.rates, above=True, most=LARGEST_PARAMETER)
        kernel_members = [(rate, share) for rate in rates for share in self._forgetting(rate)]
        by_rate, by_forgetting = zip(*kernel_members, strict=True)
        trees = self.budget >= TREES_FROM if self.trees is None else bool(self.trees)
        return Plan(self.budget, kernels, by_rate, by_forgetting, bool(self.late), trees)

    def _forgetting(self, rate: float) -> list[float]:
        """Shares of the coefficients that an insertion removes from the members of a rate."""
        if self.forgetting is None:
            forgotten = [
                SLOW_FORGETTING / self.budget,
                FAST_FORGETTING / (rate * math.sqrt(self.budget)),
            ]
        else:
            forgotten = [f / self.budget for f in check_numbers("forgetting", self.forgetting)]
        return [min(share, 0.9) for share in forgotten]

    def _unit_test_skips(self) -> set[str]:
        # A prediction moves the context, and a second one of the same rows finds another.
        many = {f"check_{name}_many_matches_{name}_one" for name in ("predict", "predict_proba")}
        skips: set[str] = super()._unit_test_skips()
        return skips | many if self.late else skips

    @property
    def _counts_predictions(self) -> bool:  # type: ignore[override]
        return bool(self.late)

    def _with_late_labels(self) -> Tracker:
        return self.clone({"late": True}) if self.late is None else self

    @property
    def _guard(self) -> Guard:  # type: ignore[override]
        guard: Guard = self._core.guard
        return guard

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_core": self._core.state()}

    def _snapshot(self) -> Tracker:
        """Return a copy to be stored on any thread, while this one learns on."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self) | {"_core": self._core.snapshot()})
        return copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "_core"})
        self.budget = check_integer("budget", self.budget)
        self._core = self._new_core(0, state["_core"] or {})  # None would be a new one's

    # --- one example ---------------------------------------------------------------------------

    def learn_one(self, x: Features, y: Label, w: float = 1.0, ticket: Hashable = True) -> None:  # noqa: FBT002
        """Learn one example.

        Parameters
        ----------
        x
            Features by name.
        y
            Label, hashable.
        w
            Weight of the example. 0 changes nothing, and `y` is not checked.
        ticket
            With ``late=True`` the name of the ticket that its prediction left; True to find it by
            `x`, False for none.

        Raises
        ------
        LabelError, FeatureError, FeatureTypeError, ParameterError
            If the label, a value or the weight cannot be learnt.
        """
        if w.__class__ is float and w == 1.0:
            self._core.learn(x, y, 1.0, ticket)
        else:
            self._guard.run(self._predict_learn_weighted, x, y, weight_of(w), ticket)

    def predict_learn_one(self, x: Features, y: Label, w: float = 1.0) -> Label:
        """Learn one example, and return the prediction before that.

        It costs no more than learning, and leaves no ticket. With ``late=True`` it is the current
        model's prediction, in the context of the ticket.

        Parameters
        ----------
        x, y, w
            As for `learn_one`.

        Returns
        -------
        label
            What `predict_one` would have returned; None before the first example.

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
        label: Label = self._guard.run(self._predict_learn_weighted, x, y, weight_of(w))
        return label

    def predict_one(self, x: Features, ticket: Hashable = True, **kwargs: Any) -> Label:  # noqa: FBT002
        """Predict the label of one example; None before the first example is learnt.

        Parameters
        ----------
        x
            Features by name.
        ticket
            With ``late=True`` a name for the ticket of this prediction, such as a number or a text,
            for `learn_one` to find it by; True to have it found by `x`, False for no ticket.
        **kwargs
            Ignored; River passes them on.
        """
        number = self._core.predict(x, ticket)
        return None if number < 0 else self._core.classes[number]

    @alone
    def predict_proba_one(
        self,
        x: Features,
        ticket: Hashable = True,  # noqa: FBT002
        **kwargs: Any,
    ) -> dict[Label, float]:
        """Return the probability of each label; `predict_one` explains `ticket`."""
        return self._probabilities(self._score_of(x, ticket))

    @alone
    def answer_one(
        self,
        x: Features,
        ticket: Hashable = True,  # noqa: FBT002
        **kwargs: Any,
    ) -> tuple[Label, Any, dict[Label, float]]:
        """Return label, score and probabilities of an example at the cost of one of them.

        Parameters
        ----------
        x
            Features by name.
        ticket
            With ``late=True`` whether a ticket of the prediction is kept, or the ticket's name, as
            for `predict_one`. Without a ticket the prediction changes nothing.
        **kwargs
            Ignored, as by `predict_one`.
        """
        return self._answer_of(self._score_of(x, ticket))

    def _predict_learn(self, x: Features, y: Label) -> Label:
        return self._predict_learn_weighted(x, y, 1.0)

    def _predict_learn_weighted(
        self,
        x: Features,
        y: Label,
        w: float,
        ticket: Hashable = True,  # noqa: FBT002
    ) -> Label:
        core = self._core
        if w:
            number = core.learn(x, y, min(w, LARGEST_PARAMETER), ticket)
        else:
            number = core.predict(x, ticket=False)
        return None if number < 0 else self._core.classes[number]

    def _read(self, x: Features) -> None:
        self._core.read(x)

    def _score(self) -> tuple[int, list[float]]:
        score: tuple[int, list[float]] = self._core.score()
        return score

    def _score_of(self, x: Features, ticket: Hashable) -> tuple[int, list[float]]:
        """Score an example. A ticket is kept unless `ticket` is False; see `predict_one`."""
        if ticket is False:
            score: tuple[int, list[float]] = self._core.peek(x)
            return score
        self._core.read(x, ticket)
        return self._score()

    def _rows_compiled(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        labels: list[Label] | None,
        checked: Any,
    ) -> bool:
        self._core.learn_rows(rows, predictions, labels)
        return True

    def _check_labels(self, labels: Sequence[Label]) -> None:
        check_classes(labels)

    def _label_of(self, score: tuple[int, list[float]]) -> Label:
        return None if score[0] < 0 else self._core.classes[score[0]]

    def _probabilities(self, score: tuple[int, list[float]]) -> dict[Label, float]:
        classes, chances = self._core.classes, score[1]
        # Of one class, the maps' weights sum to 1 up to rounding.
        return dict(zip(classes, [1.0] if len(classes) == 1 else chances, strict=True))

    # --- members -------------------------------------------------------------------------------

    @property
    @alone
    def members(self) -> Members:
        """The members, with their weights, errors and log losses.

        Returns
        -------
        Members
            Named tuples that print as a table, in notebooks too; ``pandas.DataFrame`` accepts them.

        Examples
        --------
        >>> model = Tracker(kernels=(0, 2), rates=(1,), forgetting=(0,))
        >>> for a in range(9):
        ...     model.learn_one({"a": a}, a % 3 == 0)
        >>> model.members
        kernel                    rate  forgetting   weight  error in %  log loss
        linear                       1           -    0.096        33.3     0.766
        RBF(2)                       1           -    0.105        33.3     0.714
        slow SGD                     -           -    0.103        33.3     0.687
        fast SGD                     -           -    0.021        55.6     1.121
        Kalman                       -           -   -0.054        55.6     1.136
        splines                      -           -   -0.062        55.6     1.025
        context, AdaGrad             -           -    0.116        33.3     0.708
        context, Kalman              -           -   -0.049        55.6     2.494
        context, splines             -           -   -0.032        55.6     1.159
        trees                        -           -    0.091        66.7     0.693
        context, trees               -           -    0.091        66.7     0.693
        """
        return members_of(self._plan(), self._core.record())

    # --- the supports --------------------------------------------------------------------------

    @property
    def n_supports(self) -> int:
        """Number of supports."""
        n: int = self._core.n_supports
        return n

    @property
    @alone
    def supports(self) -> list[dict[Hashable, float]]:
        """The supports, unordered, as they were scaled when they were added.

        Sparse ones have hashes below 2^31 instead of names.
        """
        supports: list[dict[Hashable, float]] = self._core.supports()
        return supports
