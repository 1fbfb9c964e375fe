"""The template of algorithms with hooks for two classes and for more."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from drift.errors import LabelError
from drift.models._base.labels import check_class, check_classes
from drift.models._template.binary import KernelClassifier
from drift.models._template.multiclass import MulticlassKernelClassifier
from drift.models._template.prototypes import Prototypes

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from drift.kernels import Kernel
    from drift.models._base.rows import Rows
    from drift.types import Array, Features, Label

__all__ = ["TwoOrMore"]


class TwoOrMore(KernelClassifier, MulticlassKernelClassifier):
    """Classifier with hooks for two classes and for more.

    It is a binary model, without prototypes, as long as labels are bool, 0/1 or -1/+1. When another
    label comes, each class learnt so far, one or two, gets half of the hypothesis, the negative
    class with the opposite sign. The classes are in the order of their first examples.

    Raises
    ------
    TypeError
        If an algorithm overrides a method that this class takes from one template or the other.
    """

    # The templates would set this and `_score_is_sum` to False, because `_score` is overridden; but
    # it calls theirs.
    _class_scores_are_sums = True
    #: Whether the model is binary: False from the third class on. It is not stored, as it follows
    #: from the prototypes. It is not a property, as an attribute is read faster.
    _score_is_sum = True
    #: None while the model is binary.
    _prototypes: Any = None
    #: Whether the positive label came before the negative one. It is stored only if it did.
    _positive_first: bool = False

    #: By class index, the share of the binary hypothesis that a class started with.
    _halves: dict[int, float]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in vars(TwoOrMore).items():
            hook = callable(method) and name.startswith("_") and not name.startswith("__")
            both = hasattr(KernelClassifier, name) and hasattr(MulticlassKernelClassifier, name)
            if hook and both and getattr(cls, name) is not method:
                raise TypeError(
                    f"{cls.__name__} overrides {name}, which TwoOrMore takes from one of its two "
                    "templates: override the hooks of both instead"
                )

    def __init__(self, kernel: Kernel | None = None, budget: int | None = None) -> None:
        super().__init__(kernel, budget)
        del self._prototypes  # until a third class comes

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_score_is_sum", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._prototypes is not None:
            self._score_is_sum = False

    @property
    def _template(self) -> type[KernelClassifier | MulticlassKernelClassifier]:
        """The template that the model follows now."""
        return KernelClassifier if self._prototypes is None else MulticlassKernelClassifier

    # --- methods of one template or the other --------------------------------------------------

    def _score(self) -> Any:
        return self._template._score(self)

    def _decision(self, score: Any) -> Any:
        return self._template._decision(self, score)

    def _label_of(self, score: Any) -> Label:
        return self._template._label_of(self, score)

    def _probabilities(self, score: Any) -> dict[Label, float]:
        return self._template._probabilities(self, score)

    def _expansion(self) -> Array:
        return self._template._expansion(self)

    def _pairs(self) -> list[tuple[dict[Hashable, float], Any]]:
        return self._template._pairs(self)

    def _evict_support(self, i: int) -> int:
        return self._template._evict_support(self, i)

    def _rows_compiled(
        self,
        rows: Rows | list[Features],
        predictions: list[Label],
        labels: list[Label] | None,
        checked: Any,
    ) -> bool:
        return self._template._rows_compiled(self, rows, predictions, labels, checked)

    def _check_labels(self, labels: Sequence[Label]) -> NDArray[np.int8] | None:
        """Return the labels' signs; None if the batch has more than two classes.

        None keeps the batch out of the compiled code for two classes.
        """
        with contextlib.suppress(LabelError):
            signs: NDArray[np.int8] | None = self._template._check_labels(self, labels)
            return signs
        check_classes(labels)
        return None

    def _predict_learn(self, x: Features, y: Label) -> Label:
        if self._prototypes is not None or self._has_sign(y):
            return self._template._predict_learn(self, x, y)
        check_class(y)
        return self._guard.update(self, self._learn_third_class, x, y)

    def _would_adopt(self, y: Label) -> bool:
        return self._only_sign not in {None, self._sign(y)} or super()._would_adopt(y)

    def _adopt(self, y: Label) -> None:
        sign, is_first = self._sign(y), self._kind == "any" and self._only_sign is None
        super()._adopt(y)
        if is_first:
            self._only_sign = sign
        elif self._only_sign not in {None, sign}:
            if sign < 0.0:
                self._positive_first = True
            del self._only_sign

    def _has_sign(self, y: Label) -> bool:
        """Whether a binary model can learn the label."""
        try:
            self._sign(y)
        except LabelError:
            return False
        return True

    # --- from two classes to more --------------------------------------------------------------

    def _learn_third_class(self, x: Features, y: Label) -> Label:
        """Learn the first example whose label the binary model cannot learn."""
        predicted = self._predict(x)
        self._split_into_classes()
        self._step_class(x, y)
        return predicted

    def _split_into_classes(self) -> None:
        """Replace the hypothesis by prototypes: each class learnt so far gets half of it."""
        self._prototypes, self._halves, self._score_is_sum = Prototypes(), {}, False
        if not self.n_updates:
            return
        signs = (1.0, -1.0) if self._positive_first else (-1.0, 1.0)
        for sign in signs if self._only_sign is None else (self._only_sign,):
            self._halves[len(self._prototypes)] = 0.5 * sign
            self._prototypes.add_class(self._labels[sign > 0.0])
        for i, slot in enumerate(self._supports.slots_by_age):
            coefficient = self._supports.coefficient(i)
            shares = {k: share * coefficient for k, share in self._halves.items()}
            self._prototypes.set_support(slot, self._supports, shares)
