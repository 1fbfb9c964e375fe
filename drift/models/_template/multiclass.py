"""The template of multiclass algorithms, which override its hooks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from drift.models._base.labels import check_class, check_classes
from drift.models._template.kernel_model import KernelModel
from drift.models._template.probabilities import softmax
from drift.models._template.prototypes import Prototypes

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from drift.kernels import Kernel
    from drift.models._base.rows import Rows
    from drift.types import Array, Features, Label

__all__ = ["MulticlassKernelClassifier"]


class MulticlassKernelClassifier(KernelModel):
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

    _multiclass = True
    _prototypes: Prototypes

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        overridden = cls.__dict__.keys()
        margin = "_class_margin" in overridden
        if {"_score", "_should_update_class"} & overridden and not margin:
            cls._class_margin = math.inf

    def __init__(self, kernel: Kernel | None = None, budget: int | None = None) -> None:
        super().__init__(kernel, budget)
        self._prototypes = Prototypes()

    # --- hooks ---------------------------------------------------------------------------------

    def _should_update_class(self, k: int, rival: int, margin: float, rounding: float) -> bool:
        """Whether an example of class number `k` changes the prototypes.

        `rival` is the best other class, or -1; `margin` is the score minus the rival's, and
        `rounding` bounds its error. By default mistakes do.
        """
        return margin <= 0.0

    def _update_class(self, x: Features, k: int, rival: int, scores: Array) -> None:
        """Change the prototypes by an example; `scores` has a score for each class."""
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
        slot = super()._evict(i)
        self._prototypes.clear(self._supports.store, slot)
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
        k = prototypes.index_of(y)
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
    ) -> bool:
        if self._class_margin == math.inf:
            return False
        classes = self._prototypes.classes(self._calibration, self._class_margin)
        self._supports.scan_classes(rows, predictions, labels, classes)
        return True

    def _score(self) -> Any:
        return self._prototypes.scores(self._supports)

    # --- labels and scores ---------------------------------------------------------------------

    def _decision(self, scores: Any) -> Any:
        """Value of `decision_function_one` for scores."""
        return self._prototypes.by_label(scores)

    def _check_labels(self, labels: Sequence[Label]) -> Any:
        check_classes(labels)

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
        return [(x, self._prototypes.at(slot)) for (x, _), slot in pairs]
