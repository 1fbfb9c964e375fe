"""The template of multiclass algorithms, and of those for two classes or more."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from drift.errors import LabelError
from drift.models._base.labels import check_class, check_classes
from drift.models._template.binary import KernelClassifier
from drift.models._template.prototypes import Prototypes
from drift.models._template.river import OnlineClassifier

if TYPE_CHECKING:
    from array import array
    from collections.abc import Hashable, Sequence

    from drift.kernels import Kernel
    from drift.models._base.rows import Rows
    from drift.models._template.prototypes import Array
    from drift.types import Features, Label

__all__ = ["MulticlassKernelClassifier", "TwoOrMore", "softmax"]


def softmax(labels: Sequence[Label], scores: Array) -> dict[Label, float]:
    """Probability by label.

    Examples
    --------
    >>> import numpy as np
    >>> softmax(["a", "b"], np.array([1000.0, 1000.0]))
    {'a': 0.5, 'b': 0.5}
    """
    if not len(scores):
        return {}
    powers = np.exp(scores - scores.max())
    return dict(zip(labels, (powers / powers.sum()).tolist(), strict=True))


class MulticlassKernelClassifier(KernelClassifier):
    """Classifier with one hypothesis, a prototype, for each class, over shared supports.

    Labels are hashable; classes may appear at any time, with a prototype of zero. The prediction is
    the class with the highest score, among equals the earlier class; None before anything is
    learnt. The rival of a single class is an unnamed one with the score 0.

    Parameters
    ----------
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    budget
        Largest number of supports, None for no limit. Subclasses without a budget leave it out.

    Attributes
    ----------
    n_mistakes : int
        Number of examples learnt whose label did not score above all others before the update.
    n_updates : int
        Number of examples that changed the hypothesis.
    """

    _class_margin: float = 0.0  # see `drift.models._template.binary`
    _learns_signs: ClassVar[bool] = False
    _multiclass = True
    _prototypes: Prototypes

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        overridden = cls.__dict__.keys()
        margin = "_class_margin" in overridden
        if {"_score", "_should_update_class"} & overridden and not margin:
            cls._class_margin = math.inf

    learn_one = OnlineClassifier.learn_one

    def __init__(self, kernel: Kernel | None = None, budget: int | None = None) -> None:
        super().__init__(kernel, budget)
        if not self._learns_signs:
            self._name_classes()

    def _name_classes(self) -> None:
        """Start without prototypes."""
        self._prototypes = Prototypes()

    # --- hooks ---------------------------------------------------------------------------------

    def _should_update_class(self, k: int, rival: int, margin: float, rounding: float) -> bool:
        """Whether an example of class number `k` changes the prototypes.

        `rival` is the best other class, or -1; `margin` is the score minus the rival's, and
        `rounding` bounds its error. By default mistakes do.
        """
        return margin <= 0.0

    def _update_class(self, x: Features, k: int, rival: int, scores: Array) -> None:
        """Change the prototypes by an example; `scores` are those of all classes."""
        raise NotImplementedError

    def _add_class(self, y: Label) -> None:
        """Add a class."""
        self._prototypes.add(y)

    def _add(self, x: Features, coefficients: dict[int, float]) -> int:
        """Add the example read last as a support, with coefficients by number of class."""
        slot = self._supports.add(x, 0.0)
        self._prototypes.put(slot, self._supports, coefficients)
        return slot

    def _evict(self, i: int) -> int:
        """Evict support number `i`; return its slot."""
        slot = self._supports.remove(i)
        self._prototypes.drop(slot, self._supports)
        return slot

    # --- one example ---------------------------------------------------------------------------

    def _learn(self, x: Features, y: Label) -> Label:
        check_class(y)
        predicted: Label = self._guard.update(self, self._step_class, x, y)
        return predicted

    def _step_class(self, x: Features, y: Label) -> Label:
        """Learn an example, in one update; return the prediction before that."""
        self._supports.read(x)
        scores, prototypes = self._score(), self._prototypes
        predicted = self._label_of(scores)
        if y not in prototypes:
            self._add_class(y)
            scores = self._score()
        k = prototypes.number(y)
        rival = prototypes.rival(scores, k)
        margin, rounding = prototypes.margin(scores, k, rival)
        if margin <= 0.0:
            self.n_mistakes += 1
        if self._should_update_class(k, rival, margin, rounding):
            self.n_updates += 1
            self._update_class(x, k, rival, scores)
        self._calibration.learn_classes(scores, k, self._weight)
        return predicted

    def _run_rows(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        labels: list[Label] | None,
        checked: Any,
    ) -> None:
        if self._class_margin < math.inf:
            classes = self._prototypes.classes(self._calibration, self._class_margin)
            self._supports.scan_classes(rows, predictions, labels, classes)

    def _score(self) -> Any:
        return self._prototypes.scores(self._supports)

    # --- labels and scores ---------------------------------------------------------------------

    def _decision(self, scores: Any) -> Any:
        """Value of `decision_function_one` for scores."""
        return self._prototypes.by_label(scores)

    def _check_labels(self, labels: Sequence[Label]) -> array[int] | None:
        check_classes(labels)
        return None

    def _label_of(self, score: Any) -> Label:
        return self._prototypes.labels[int(score.argmax())] if len(score) else None

    def _probabilities(self, score: Any) -> dict[Label, float]:
        return softmax(self._prototypes.labels, score * self._calibration.scale)

    def _expansion(self) -> Array:
        """Coefficients of the hypotheses by class; one row for a binary one."""
        weights: Array = self._prototypes.matrix[: len(self._prototypes), self._supports.slots]
        return weights

    def _pairs(self) -> list[tuple[dict[Hashable, float], Any]]:
        pairs = zip(self._supports, self._supports.slots, strict=True)
        return [(x, self._prototypes.of(slot)) for (x, _), slot in pairs]


def _by_mode(name: str) -> Any:
    """Return a method that calls the binary or the multiclass template's, by the model's mode."""
    two, more = getattr(KernelClassifier, name), getattr(MulticlassKernelClassifier, name)

    def method(self: TwoOrMore, *args: Any) -> Any:
        return (two if self._prototypes is None else more)(self, *args)

    return method


class TwoOrMore(MulticlassKernelClassifier):
    """Classifier with hooks for two classes and for more.

    It is a binary model, without prototypes, while labels are bool, 0/1 or -1/+1. When another
    label comes, each class so far gets half of the hypothesis, one with the opposite sign.
    """

    _learns_signs = True
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
    _learn_in_mode = _by_mode("_learn")
    _check_in_mode = _by_mode("_check_labels")

    @property
    def _sums_up(self) -> bool:  # type: ignore[override]
        return self._prototypes is None

    def _check_labels(self, labels: Sequence[Label]) -> array[int] | None:
        with contextlib.suppress(LabelError):
            signs: array[int] | None = self._check_in_mode(labels)
            return signs
        return super()._check_labels(labels)  # labels of more classes come

    def _learn(self, x: Features, y: Label) -> Label:
        if self._prototypes is not None or self._is_binary(y):
            return self._learn_in_mode(x, y)
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
        super()._name_classes()
        self._halves = {}
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
