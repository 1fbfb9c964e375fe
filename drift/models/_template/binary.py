"""The template of binary algorithms, which override its hooks.

`_step` learns every example: by `learn_one` or in a batch, with or without a weight, or for one
class of several. If `_score_is_sum`, the store takes the same step itself (`step` in
`drift/models/_store/columns_steps.pxi`), and calls no hook for an example above `_update_margin`;
`SteppedModel` in `stepped_model.py` beside it is what it needs of the model. `Scored` says what
flags a class may set.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._template.binary_labels import SIGNS, BinaryLabels
from drift.models._template.kernel_model import KernelModel
from drift.models._template.scored import overrides_without

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.kernels import Kernel
    from drift.models._base.rows import Rows
    from drift.types import Features, Label

__all__ = ["KernelClassifier"]


class KernelClassifier(BinaryLabels, KernelModel):
    """Binary classifier whose hypothesis is a kernel expansion over supports.

    Labels may be bool, 0/1 or -1/+1 (numpy's too). Predictions are of the kind of label that was
    learnt, and bool before that. An example's features are numbers by name; NaN means absent.

    Parameters
    ----------
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    budget
        Largest number of supports, None for no limit. Algorithms without a budget leave this out.

    Attributes
    ----------
    n_mistakes : int
        Number of examples learnt whose margin ``sign * score`` before the update was 0 or negative.
    n_updates : int
        Number of examples that changed the hypothesis.

    Raises
    ------
    ParameterError
        If the kernel cannot be called.
    """

    _has_binary_hooks = True
    # It is set again here, because `overrides_without` looks for it beside its hook.
    _update_margin: float = 0.0
    _score_is_sum = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls._step is not KernelClassifier._step:
            raise TypeError(
                f"{cls.__name__} overrides _step, which compiled code takes by itself: override "
                "_should_update or _update instead"
            )
        if overrides_without(cls, "_should_update", "_update_margin"):
            cls._update_margin = math.inf
        if overrides_without(cls, "_score", "_score_is_sum"):
            cls._score_is_sum = False

    def __init__(self, kernel: Kernel | None = None, budget: int | None = None) -> None:
        super().__init__(kernel, budget)
        self._kind, self._labels = "any", (False, True)

    # --- hooks that an algorithm overrides -----------------------------------------------------

    def _score(self) -> float:
        """Score the point; 0 is a mistake for both labels."""
        return self._supports.score()

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        """Whether the point, of this sign and score, changes the hypothesis.

        If ``sign * score`` is above `_update_margin` it must not: compiled code does not ask then.
        `n_mistakes` already counts the example.
        """
        return sign * score <= self._update_margin

    def _update(self, x: Features, sign: float, score: float) -> None:
        """Learn the point, of weight `_weight`, and stay within the budget.

        `n_updates` already counts the example. A support that is added or evicted ends the point:
        what needs it then raises RuntimeError, until ``self._supports.read(x)`` makes `x` the point
        again. `add` reads `x` by itself.
        """
        self._supports.add(x, self._weight * sign)

    # --- what hooks and wrappers use -----------------------------------------------------------

    def _expansion(self) -> NDArray[np.float64]:
        """Coefficients of the hypothesis as an array of one row, the oldest support first."""
        by_slot = np.zeros(self._supports.capacity)
        self._supports.write_coefficients(by_slot)
        return by_slot[np.newaxis, self._supports.slots_by_age]

    def _start_from_zero_instance(self) -> float:
        """Start with f = k(0, .), so that the bias is learnt faster. Return its squared norm."""
        self._supports.read({})
        self._supports.add({}, 1.0)
        return self._supports.self_kernel()

    # --- one example ---------------------------------------------------------------------------

    def _step(self, x: Features, y: Label, sign: float, score: float) -> None:
        """Learn the point, within one update.

        `y` is None if `OneVsRest` trains the model for one class and keeps labels and calibration.
        """
        if sign * score <= 0.0:  # a score of zero is a mistake
            self.n_mistakes += 1
        if self._should_update(x, sign, score):
            self.n_updates += 1
            self._update(x, sign, score)
        if y is not None:
            self._calibration.learn(score, sign, self._weight)
            self._adopt(y)

    def _learn_sign(self, x: Features, sign: float, y: Label = None) -> float:
        """Learn an example by its sign, and its label if there is one. Return the score before.

        `BinaryModel` says what `OneVsRest` needs this for.
        """
        self._supports.read(x)
        score = self._score()
        if y is not None or sign * score <= self._update_margin:
            self._guard.update(self, self._step, x, y, sign, score)
        return score

    def learn_one(self, x: Features, y: Label, w: float = 1.0) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name: numbers, NaN for an absent one.
        y
            Label: bool, 0/1 or -1/+1.
        w
            Weight: it multiplies the example's coefficient unless the class documents another use.
            0 changes nothing, and `y` is not checked.

        Raises
        ------
        LabelError
            If `y` is not such a label, or of another kind than the labels before.
        FeatureError
            If a value is infinite or too large for the kernel.
        FeatureTypeError
            If a value is not a number, or `x` not a mapping.
        ParameterError
            If `w` is neither 0 nor a number from 1e-100 to 1e100.
        """
        # The usual case is one call of the store, which takes the guard itself: no `_guard.run` is
        # needed. `w.__class__` is faster than `type(w)`.
        if w.__class__ is float and w == 1.0 and self._score_is_sum:
            try:
                sign = SIGNS[self._kind][y]
            except (KeyError, TypeError):
                pass  # a label that is refused, or a third class
            else:
                self._supports.learn_with(x, y, sign, self)
                return
        super().learn_one(x, y, w)

    def _predict_learn(self, x: Features, y: Label) -> Label:
        labels, sign = self._labels, self._sign(y)
        if self._score_is_sum:
            score = self._supports.learn_with(x, y, sign, self)
        else:
            score = self._learn_sign(x, sign, y)
        return labels[score > 0.0]

    def _decision(self, score: Any) -> Any:
        """Value of `decision_function_one`, from a score. Its sign decides, as the score's does."""
        return score

    def predict_one(self, x: Features, **kwargs: Any) -> Label:
        """Predict the label of one example. It is of the kind learnt, and False before that."""
        if self._score_is_sum:
            return self._labels[1] if self._supports.score_of(x) > 0.0 else self._labels[0]
        return super().predict_one(x)

    # --- many examples -------------------------------------------------------------------------

    def _rows_compiled(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        labels: list[Label] | None,
        checked: Any,
    ) -> bool:
        if not self._score_is_sum:
            return False
        # Labels without signs are of more than two classes (`TwoOrMore`). Then Python learns the
        # rows up to the third class. From there on this method is the multiclass template's.
        if labels is None or checked is not None:
            self._supports.learn_rows_with(rows, predictions, labels, checked, self)
        return True

    def _score_rows(self, rows: Rows | list[Features], scores: list[Any]) -> None:
        if self._score_is_sum:
            self._supports.score_rows(rows, scores)
        else:
            super()._score_rows(rows, scores)
