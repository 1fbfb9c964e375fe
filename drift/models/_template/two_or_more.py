"""The template of algorithms with hooks for two classes and for more."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from drift.errors import LabelError
from drift.models._base.labels import check_class, check_classes
from drift.models._template.binary import KernelClassifier
from drift.models._template.binary_labels import SIGNS
from drift.models._template.contract import ONE, OnlineClassifier
from drift.models._template.multiclass import MulticlassKernelClassifier
from drift.models._template.prototypes import Prototypes

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from drift.types import Features, Label

__all__ = ["TwoOrMore"]


def _by_mode(name: str) -> Any:
    """Return a method that is the binary template's until a third class comes, then the other's."""
    two, more = getattr(KernelClassifier, name), getattr(MulticlassKernelClassifier, name)

    def method(self: TwoOrMore, *args: Any) -> Any:
        return (two if self._prototypes is None else more)(self, *args)

    return method


class TwoOrMore(KernelClassifier, MulticlassKernelClassifier):
    """Classifier with hooks for two classes and for more.

    It is a binary model, without prototypes, while labels are bool, 0/1 or -1/+1. When another
    label comes, each class so far gets half of the hypothesis, the negative class with the opposite
    sign.
    """

    _prototypes: Any = None

    #: Share of the binary hypothesis that a class started with, by the class's number.
    _halves: dict[int, float]

    _run_rows = _by_mode("_run_rows")
    _score = _by_mode("_score")
    _decision = _by_mode("_decision")
    _label_of = _by_mode("_label_of")
    _probabilities = _by_mode("_probabilities")
    _expansion = _by_mode("_expansion")
    _pairs = _by_mode("_pairs")
    _evict = _by_mode("_evict")
    _learn_by_mode = _by_mode("_learn")
    _check_by_mode = _by_mode("_check_labels")

    def _start_classes(self) -> None:
        """Have no prototypes until a third class comes."""

    @property
    def _sums_up(self) -> bool:  # type: ignore[override]
        return self._prototypes is None

    def learn_one(self, x: Features, y: Label, w: float = ONE) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name.
        y
            Label: two classes as long as it is bool, 0/1 or -1/+1.
        w
            Weight: it multiplies the example's coefficient unless the class documents another use.
            0 changes nothing, and `y` is not checked.

        Raises
        ------
        LabelError, FeatureError, FeatureTypeError, ParameterError
            As by the models for two classes, and those for more.
        """
        try:
            sign = SIGNS[self._kind][y] if self._prototypes is None and w is ONE else None
        except (KeyError, TypeError):  # a label of another kind
            sign = None
        if sign is None:
            OnlineClassifier.learn_one(self, x, y, w)
        else:
            self._supports.learn(x, y, sign, self)

    def _check_labels(self, labels: Sequence[Label]) -> array[int] | None:
        """Return the labels' signs, or None, which keeps the batch out of compiled code."""
        with contextlib.suppress(LabelError):
            signs: array[int] | None = self._check_by_mode(labels)
            return signs
        check_classes(labels)  # the batch brings more classes
        return None

    def _learn(self, x: Features, y: Label) -> Label:
        if self._prototypes is not None or self._is_binary(y):
            return self._learn_by_mode(x, y)
        check_class(y)
        return self._guard.update(self, self._go_over, x, y)

    def _is_binary(self, y: Label) -> bool:
        try:
            self._sign(y)
        except LabelError:
            return False
        return True

    def _go_over(self, x: Features, y: Label) -> Label:
        """Learn the first example of a model of more than two classes."""
        predicted = self._predict(x)
        self._name_classes()
        self._step_class(x, y)
        return predicted

    def _name_classes(self) -> None:
        """Go over to prototypes: half of the hypothesis for each class learnt so far."""
        self._prototypes, self._halves = Prototypes(), {}
        if not self.n_updates:
            return
        learnt = self._labels if self._kind != "any" else self._labels[1:]
        for label in learnt:
            self._prototypes.add(label)
        self._halves = {len(learnt) - 1: 0.5} | ({0: -0.5} if len(learnt) > 1 else {})
        for i, slot in enumerate(self._supports.slots):
            coefficient = self._supports.coefficient(i)
            shares = {k: share * coefficient for k, share in self._halves.items()}
            self._prototypes.put(slot, self._supports, shares)
