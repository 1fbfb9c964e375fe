"""The template of the multiclass algorithms."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

from drift.errors import LabelError
from drift.models._store.class_labels import check_class, check_classes
from drift.models._store.guard import alone
from drift.models._store.rows import BEST, Rule
from drift.models._template.binary import KernelClassifier
from drift.models._template.river import OnlineClassifier

if TYPE_CHECKING:
    from array import array
    from collections.abc import Hashable, Sequence

    from drift.kernels import Kernel
    from drift.models._store.rows import Rows
    from drift.models._template.prototypes import Array, Prototypes
    from drift.types import Features, Label

__all__ = ["MulticlassKernelClassifier", "softmax"]


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
    import numpy as np  # noqa: PLC0415

    powers = np.exp(scores - scores.max())
    return dict(zip(labels, (powers / powers.sum()).tolist(), strict=True))


class MulticlassKernelClassifier(KernelClassifier):
    """Classifier with one hypothesis, a prototype, for each class, over supports that all share.

    Labels are whatever has a hash; classes may appear at any time, with a prototype of zero. The
    prediction is the class with the highest score, the first met among equals; None before
    anything is learnt. While a single class is known, an unnamed one with the score 0 is its rival.

    Parameters
    ----------
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    budget
        Largest number of supports, None for no limit. Subclasses without a budget leave it out.

    Attributes
    ----------
    n_mistakes : int
        Number of examples learnt whose own class did not score above all others before the update.
    n_updates : int
        Number of examples that changed the hypothesis.
    """

    #: Margin above which an example of one of several classes surely is no update: batches of rows
    #: pass over those in compiled code. None where every example has to be seen, as in a class that
    #: overrides one of the hooks below and does not say otherwise.
    _class_margin: float | None = 0.0

    #: Whether there are binary hooks, too. They learn labels of bool, 0/1 and -1/+1 as long as no
    #: others come; then the two classes get half of the hypothesis each, with opposite signs.
    _learns_signs: ClassVar[bool] = False

    #: As long as there are no prototypes.
    _sums_up = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        decides = {"_learn", "_score", "_should_update_class"} & cls.__dict__.keys()
        if decides and "_class_margin" not in cls.__dict__:
            cls._class_margin = None

    def __init__(self, kernel: Kernel | None = None, budget: int | None = None) -> None:
        super().__init__(kernel, budget)
        #: None as long as the labels are those of a binary model.
        self._prototypes: Prototypes | None = None
        #: Share of that model's hypothesis that a class then took over, by the class's number.
        self._halves: dict[int, float] = {}
        if not self._learns_signs:
            self._name_classes()

    @property
    def _multiclass(self) -> bool:
        return True

    # --- hooks ---------------------------------------------------------------------------------

    def _should_update_class(self, k: int, rival: int, margin: float, rounding: float) -> bool:
        """Whether an example of class number `k` changes the prototypes.

        `rival` is the best other class, -1 if there is none, and `margin` the score above its;
        `rounding` bounds the margin's error. By default whether it was a mistake.
        """
        return margin <= 0.0

    def _update_class(self, x: Features, k: int, rival: int, scores: Array) -> None:
        """Change the prototypes because of an example; `scores` are those of all classes."""
        raise NotImplementedError

    def _add(self, x: Features, coefficients: dict[int, float]) -> int:
        """Make the example read last a support, with coefficients by number of class."""
        assert self._prototypes is not None  # noqa: S101
        slot = self._supports.add(x, 0.0)
        self._prototypes.put(slot, self._supports, coefficients)
        return slot

    def _evict(self, i: int) -> int:
        """Evict support number `i`; return the slot that it leaves."""
        assert self._prototypes is not None  # noqa: S101
        slot = self._supports.remove(i)
        self._prototypes.drop(slot, self._supports)
        return slot

    # --- one example ---------------------------------------------------------------------------

    def _learn(self, x: Features, y: Label) -> Label:
        if self._prototypes is None and self._is_binary(y):
            return super()._learn(x, y)
        check_class(y)
        predicted: Label = self._guard.update(self, self._learn_class, x, y)
        return predicted

    def _learn_class(self, x: Features, y: Label) -> Label:
        self._supports.read(x)
        scores = self._score()
        predicted = self._label_of(scores)
        if self._prototypes is None or y not in self._prototypes:
            self._meet(y)
            scores = self._score()
        prototypes = self._prototypes
        assert prototypes is not None  # noqa: S101
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

    def _pass_over(
        self, rows: Rows, predictions: list[Label], labels: list[Label] | None, checked: Any
    ) -> None:
        if self._prototypes is None:
            super()._pass_over(rows, predictions, labels, checked)
        elif self._class_margin is not None:
            rule = BEST if labels is None else Rule(self._class_margin, rivals=True)
            classes = self._prototypes.classes(self._calibration)
            self._supports.scan_classes(rows, predictions, labels, classes, rule)

    def _is_binary(self, y: Label) -> bool:
        try:
            self._sign(y)
        except LabelError:
            return False
        return True

    def _meet(self, y: Label) -> None:
        """Let a new class join, and go over to prototypes if that was not done yet."""
        if self._prototypes is None:
            self._name_classes()
        assert self._prototypes is not None  # noqa: S101
        self._prototypes.add(y)

    def _name_classes(self) -> None:
        """Go over to prototypes: half of the hypothesis for each class learnt so far."""
        from drift.models._template.prototypes import Prototypes  # noqa: PLC0415

        self._prototypes = prototypes = Prototypes()
        self._update_margin = None
        if not self.n_updates:
            return
        known = self._labels if self._kind != "any" else self._labels[1:]
        for label in known:
            prototypes.add(label)
        self._halves = {len(known) - 1: 0.5} | ({0: -0.5} if len(known) > 1 else {})
        for i, slot in enumerate(self._supports.slots):
            coefficient = self._supports.coefficient(i)
            shares = {k: share * coefficient for k, share in self._halves.items()}
            prototypes.put(slot, self._supports, shares)

    def _expansion(self) -> Array:
        """Coefficients of the hypotheses by class; one row for a binary one."""
        if self._prototypes is None:
            return super()._expansion()
        weights: Array = self._prototypes.matrix[: len(self._prototypes), self._supports.slots]
        return weights

    def _score(self) -> Any:
        if self._prototypes is None:
            return super()._score()
        return self._prototypes.scores(self._supports)

    @alone
    def decision_function_one(self, x: Features) -> Any:
        """Scores of an example in the kernel's own scale.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        dict
            Score by label. A float, as of a binary model, where that is what it still is.
        """
        self._supports.read(x)
        scores = self._score()
        return scores if self._prototypes is None else self._prototypes.by_label(scores)

    def predict_one(self, x: Features, **kwargs: Any) -> Label:
        """Predict the label of one example; before anything is learnt None, or False."""
        return OnlineClassifier.predict_one(self, x)

    # --- what labels and scores mean -----------------------------------------------------------

    def _check_labels(self, labels: Sequence[Label]) -> array[int] | None:
        if self._prototypes is None:
            with contextlib.suppress(LabelError):
                return super()._check_labels(labels)
        check_classes(labels)
        return None

    def _label_of(self, score: Any) -> Label:
        if self._prototypes is None:
            return super()._label_of(score)
        return self._prototypes.labels[int(score.argmax())] if len(score) else None

    def _probabilities(self, score: Any) -> dict[Label, float]:
        if self._prototypes is None:
            return super()._probabilities(score)
        return softmax(self._prototypes.labels, score * self._calibration.scale)

    @property
    @alone
    def supports(self) -> list[tuple[dict[Hashable, float], Any]]:
        """The supports and their coefficients by label, the oldest first.

        Values are those held: of unit norm where the kernel looks at an example's direction alone,
        as with ``normalize="rows"``.
        """
        if self._prototypes is None:
            return super().supports
        pairs = zip(self._supports, self._supports.slots, strict=True)
        return [(x, self._prototypes.of(slot)) for (x, _), slot in pairs]
