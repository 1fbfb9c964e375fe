"""A class that is decided by a threshold of its own, around any classifier."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

from river import base

from drift._checks import check_instance, weight_of
from drift._decision import Awaited, Decision, check_positive, goal_of
from drift._late import asking_only, keeps_tickets, takes_weights, ticket_for, with_late_labels
from drift.models._template.parameters import Cloned, fix_parameters
from drift.models._template.probabilities import check_probabilities
from drift.models._template.state import Portable
from drift.models._template.wrapper import ModelWrapper

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from drift.types import Features, Label

__all__ = ["Threshold"]


class Threshold(Portable, ModelWrapper, Cloned, base.Classifier):
    """Predicts a class if its probability reaches a threshold, which is learnt online.

    Decisions on frauds and failures depend on costs, and 0.5 is rarely the best threshold. This one
    was the best on the examples whose labels are known. Recent examples count most, so that the
    threshold follows a drift. Labels may come late, in any order.

    Parameters
    ----------
    model
        Any River classifier or pipeline that gives probabilities.
    positive
        Label of the class.
    cost
        Costs of a false alarm and of a miss, such as ``(1, 50)``: the threshold with the lowest
        total cost.
    recall
        Share of the examples of the class that must be predicted as such: the highest threshold
        that does this.
    precision
        Share of the predictions of the class that must be right: the lowest threshold that does
        this.
    rate
        Share of all examples that are predicted to be of the class, such as the 1 % that people can
        look at. It needs no labels of the class.

    Attributes
    ----------
    threshold : float
        The smallest probability at which the class is predicted.

    Raises
    ------
    ParameterError
        If the model gives no probabilities, `positive` is no label, more than one of `cost`,
        `recall`, `precision` and `rate` is given, or the value of one is impossible.

    Notes
    -----
    Without any of the four, the threshold is the one with the highest F1. It stays 0.5 until the
    highest F1 is 1.5 times the F1 of always predicting the class.

    Before the first example of the class the threshold is 0.5. With `cost` it is the false alarm's
    share of the two costs, which is best if the probabilities are right. A `rate` is followed from
    the first label on.

    If none of the first 1,000 labels is of the class, one RuntimeWarning names the labels that
    came.

    With several classes, the class is predicted if it reaches the threshold, even if another is
    more probable. Otherwise the most probable of the others is. Probabilities are the model's.

    An example is scored again just before it is learnt. If its label came late, that is by a newer
    model than the one that predicted it. The weight of labels fades over 300 examples of the class,
    and with `rate` over 300 predictions of the class.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import Threshold, Tracker
    >>> model = Threshold(Tracker(budget=50), recall=0.95)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Recall())
    Recall: 9...%
    >>> 0.0 < model.threshold < 0.5
    True
    """

    def __init__(  # noqa: PLR0913, PLR0917 - River passes parameters by name
        self,
        model: Any,
        positive: Label = True,  # noqa: FBT002
        cost: tuple[float, float] | None = None,
        recall: float | None = None,
        precision: float | None = None,
        rate: float | None = None,
    ) -> None:
        check_instance("model", model)
        check_probabilities(model)
        check_positive(positive)
        self.model = model
        self.positive = positive
        self.cost = cost
        self.recall = recall
        self.precision = precision
        self.rate = rate
        self._decision = Decision(*goal_of(cost, recall, precision, rate))
        self._awaited = Awaited(positive)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from drift.models.budget import LBP  # noqa: PLC0415 - of tests alone

        yield {"model": LBP(budget=10)}

    @property
    def _multiclass(self) -> bool:
        return bool(self.model._multiclass)  # noqa: SLF001 - River's

    @property
    def _counts_predictions(self) -> bool:
        return keeps_tickets(self.model)

    @property
    def _takes_weights(self) -> bool:
        return takes_weights(self.model)

    def _with_late_labels(self) -> Self:
        late = with_late_labels(self.model)
        return self if late is self.model else self.clone({"model": late})

    @property
    def threshold(self) -> float:
        """The smallest probability at which the class is predicted."""
        return self._decision.threshold

    def learn_one(self, x: Features, y: Label, w: float = 1.0, **kwargs: Any) -> None:
        """Learn one example. The threshold learns from the probability before that.

        Parameters
        ----------
        x
            Features by name.
        y
            Label.
        w
            Weight, for a model that takes one. 0 changes nothing, and `y` is not checked; whatever
            else it is, the threshold counts the example once.
        **kwargs
            What the model takes, such as a Tracker's `ticket`.

        Raises
        ------
        ParameterError
            If `w` is neither 0 nor a number from 1e-100 to 1e100.
        """
        weight = w if w.__class__ is float and w == 1.0 else weight_of(w)  # which takes longer
        with asking_only():
            *_, chances = self.answer_one(x, ticket=False)  # which refuses `x` whatever the weight
        if not weight:
            return
        if weight != 1.0:  # not every model of River's has weights
            kwargs["w"] = w
        self.model.learn_one(x, y, **kwargs)
        if chances:
            self._decision.learn(chances.get(self.positive, 0.0), bool(y == self.positive))
        if absent := self._awaited.learn(y):
            warnings.warn(absent, RuntimeWarning, stacklevel=2)

    def predict_one(self, x: Features, ticket: Hashable = True, **kwargs: Any) -> Label:  # noqa: FBT002
        """Predict the label of one example; what the model does as long as it knows none."""
        return self.answer_one(x, ticket)[0]

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Label, float]:
        """Return the model's probability of each label."""
        chances: dict[Label, float] = self.model.predict_proba_one(x, **kwargs)
        return chances

    def answer_one(
        self,
        x: Features,
        ticket: Hashable = True,  # noqa: FBT002 - as of drift's models
    ) -> tuple[Label, Any, dict[Label, float]]:
        """Return label, score and probabilities; see `OnlineClassifier.answer_one`."""
        if hasattr(self.model, "answer_one"):
            label, score, chances = self.model.answer_one(x, ticket=ticket)
        else:
            more = ticket_for(self.model, ticket)
            chances, score = self.model.predict_proba_one(x, **more), None
            with asking_only():
                label = None if chances else self.model.predict_one(x, **more)
        if chances:
            label = self._decision.choose(self.positive, chances)
        return label, score, chances


fix_parameters(Threshold)
