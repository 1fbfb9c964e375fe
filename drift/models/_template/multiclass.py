"""The template of multiclass algorithms, which override its hooks."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from drift.models._base.labels import check_class, check_classes
from drift.models._store.check import check_prototypes
from drift.models._template.kernel_model import KernelModel
from drift.models._template.probabilities import softmax
from drift.models._template.prototypes import Prototypes
from drift.models._template.scored import overrides_without

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from drift.kernels import Kernel
    from drift.models._base.rows import Rows
    from drift.types import Array, Features, Label

__all__ = ["MulticlassKernelClassifier"]


class MulticlassKernelClassifier(KernelModel):
    """Classifier that has a hypothesis for each class, its prototype, over shared supports.

    Labels are hashable. A class may appear at any time, and its prototype starts at zero. The
    prediction is the class with the highest score, None before anything is learnt. Ties go to the
    class that was seen first. A single class competes with the score 0.

    Parameters
    ----------
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    budget
        Largest number of supports, None for no limit. Algorithms without a budget leave this out.

    Attributes
    ----------
    n_mistakes : int
        Number of examples learnt whose label did not score above all others before the update.
    n_updates : int
        Number of examples that changed the hypothesis.
    """

    _multiclass = True
    # It is set again here, because `overrides_without` looks for it beside its hook.
    _class_update_margin: float = 0.0
    _class_scores_are_sums = True
    _prototypes: Prototypes

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls._step_class is not MulticlassKernelClassifier._step_class:
            raise TypeError(
                f"{cls.__name__} overrides _step_class, which compiled code takes by itself: "
                "override _should_update_class or _update_class instead"
            )
        if overrides_without(cls, "_should_update_class", "_class_update_margin"):
            cls._class_update_margin = math.inf
        if overrides_without(cls, "_score", "_class_scores_are_sums"):
            cls._class_scores_are_sums = False

    def __init__(self, kernel: Kernel | None = None, budget: int | None = None) -> None:
        super().__init__(kernel, budget)
        self._prototypes = Prototypes()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._prototypes is not None:  # None: `TwoOrMore` is binary as yet
            check_prototypes(self._prototypes, self._supports)

    # --- hooks that an algorithm overrides -----------------------------------------------------

    def _should_update_class(self, k: int, rival: int, margin: float, error_bound: float) -> bool:
        """Whether the point, an example of class `k`, changes the prototypes.

        `k` is a class index, and so is `rival`, the best other class, -1 without one. `margin` is
        the score of class `k` minus the rival's, and `error_bound` bounds its error. If `margin` is
        above `_class_update_margin` the example must not: a batch does not ask then. `n_mistakes`
        already counts the example.
        """
        return margin <= self._class_update_margin

    @abstractmethod
    def _update_class(self, x: Features, k: int, rival: int, scores: Array) -> None:
        """Learn the point, of class `k` and weight `_weight`, and stay within the budget.

        `scores` has the score of each class by index. `n_updates` already counts the example. A
        support that is added or evicted ends the point: what needs it then raises RuntimeError,
        until ``self._supports.read(x)`` makes `x` the point again.
        """

    def _add_class(self, y: Label) -> None:
        """Add the class of an example that is its first. The example is then scored again.

        It need not cause an update, so `n_updates` need not change.
        """
        self._prototypes.add_class(y)

    # --- what hooks call -----------------------------------------------------------------------

    def _add_support(self, x: Features, coefficients: dict[int, float]) -> int:
        """Make `x` the newest support, with coefficients by class index. Return its slot."""
        slot = self._supports.add(x, 0.0)
        self._prototypes.set_support(slot, self._supports, coefficients)
        return slot

    def _evict_support(self, i: int) -> int:
        slot = super()._evict_support(i)
        self._prototypes.clear(self._supports.store, slot)
        return slot

    def _merge_support(self, slot: int, target: int, ratio: float) -> None:
        """Evict a support and add its coefficients times a ratio to another's."""
        self._supports.merge(slot, target, ratio)
        self._prototypes.merge(self._supports.store, slot, target, ratio)
        self._prototypes.clear(self._supports.store, slot)

    # --- one example ---------------------------------------------------------------------------

    def _predict_learn(self, x: Features, y: Label) -> Label:
        check_class(y)
        predicted: Label = self._guard.update(self, self._step_class, x, y)
        return predicted

    def _step_class(self, x: Features, y: Label) -> Label:
        """Read and learn an example, within one update. Return the prediction before it."""
        self._supports.read(x)
        scores, prototypes = self._score(), self._prototypes
        predicted = self._label_of(scores)
        if y not in prototypes:
            self._add_class(y)
            scores = self._score()
        k = prototypes.index_of(y)
        rival = prototypes.rival(scores, k)
        margin, error_bound = prototypes.margin(scores, k, rival)
        if margin <= 0.0:
            self.n_mistakes += 1
        if self._should_update_class(k, rival, margin, error_bound):
            self.n_updates += 1
            self._update_class(x, k, rival, scores)
        self._calibration.learn_classes(scores, k, self._weight)
        return predicted

    def _rows_compiled(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        labels: list[Label] | None,
        checked: Any,
    ) -> bool:
        if not self._class_scores_are_sums or self._class_update_margin == math.inf:
            return False
        classes = self._prototypes.class_hypotheses(self._calibration, self._class_update_margin)
        self._supports.learn_class_rows_until_update(rows, predictions, labels, classes)
        return True

    def _score(self) -> Any:
        return self._prototypes.score_point(self._supports)

    # --- labels and scores ---------------------------------------------------------------------

    def _decision(self, score: Any) -> Any:
        return self._prototypes.scores_by_label(score)

    def _check_labels(self, labels: Sequence[Label]) -> Any:
        check_classes(labels)

    def _label_of(self, score: Any) -> Label:
        return self._prototypes.labels[int(score.argmax())] if len(score) else None

    def _probabilities(self, score: Any) -> dict[Label, float]:
        return softmax(self._prototypes.labels, score * self._calibration.score_factor)

    def _expansion(self) -> Array:
        """Coefficients by class index and support, the oldest support first."""
        n, slots = len(self._prototypes), self._supports.slots_by_age
        coefficients: Array = self._prototypes.matrix[:n, slots]
        return coefficients

    def _pairs(self) -> list[tuple[dict[Hashable, float], Any]]:
        pairs = zip(self._supports, self._supports.slots_by_age, strict=True)
        return [(x, self._prototypes.coefficients_of(slot)) for (x, _), slot in pairs]
