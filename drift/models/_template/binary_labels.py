"""Labels of binary models: bool, 0/1 or -1/+1, as the first labels decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drift.errors import LabelError, naming_row
from drift.models._base.labels import NO_LABEL, check_class
from drift.models._batch.distinct import once_per_distinct
from drift.models._template.probabilities import logistic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from drift.models._store.built import Calibration
    from drift.types import Label

__all__ = ["SIGNS", "BinaryLabels"]

#: Sign by label, for each kind of labels. The kind is "any" until a label decides it. False == 0
#: and True == 1, numpy's too.
SIGNS: dict[str, dict[Label, float]] = {
    "any": {0: -1.0, 1: 1.0, -1: -1.0},
    "0/1": {0: -1.0, 1: 1.0},
    "-1/+1": {-1: -1.0, 1: 1.0},
}


def _sign_of(y: Label, kind: str, labels: tuple[Label, Label]) -> float:
    """Sign of a label, or LabelError if it does not go with the labels learnt before."""
    try:
        return SIGNS[kind][y]
    except (KeyError, TypeError):
        pass
    check_class(y)
    if y not in SIGNS["any"]:
        raise LabelError(
            f"label {y!r:.80} is none of bool, 0/1 and -1/+1: for other labels or more than "
            "two, wrap this model in drift.models.OneVsRest"
        )
    raise LabelError(
        f"label {y!r:.80} does not match the labels learnt so far, {labels[0]!r} and "
        f"{labels[1]!r}: keep to one kind, or wrap this model in drift.models.OneVsRest"
    )


def _after_learning(
    y: Label, kind: str, labels: tuple[Label, Label]
) -> tuple[str, tuple[Label, Label]]:
    """Return the kind of labels, and the two labels that are predicted, after `y` is learnt.

    =========================  ===================================  =============
    ``y``                      kind                                 labels
    =========================  ===================================  =============
    bool, the kind is "any"    0/1                                  (False, True)
    bool, any other kind       as before                            as before
    -1                         -1/+1                                (-1, 1)
    0                          0/1                                  (0, 1)
    1, the kind is -1/+1       -1/+1                                (-1, 1)
    1, any other kind          as before; "any" may still become    (0, 1)
                               0/1 or -1/+1
    =========================  ===================================  =============
    """
    truth = type(y).__name__ in {"bool", "bool_"}  # NumPy's, too
    if kind != "any" and truth:
        return kind, labels
    if y == -1:
        return "-1/+1", (-1, 1)
    if y == 0 or truth:
        return "0/1", (False, True) if truth else (0, 1)
    return kind, labels if kind == "-1/+1" else (0, 1)


class BinaryLabels:
    """Labels of the kind learnt: bool, 0/1 or -1/+1; bool before anything is learnt."""

    #: A key of `SIGNS`: the labels that can be learnt.
    _kind: str
    #: The negative and the positive label, as they are predicted.
    _labels: tuple[Label, Label]
    #: The sign of all labels learnt, while the model must know in which order its two labels come
    #: (`TwoOrMore`); else None. It is an attribute of the object only while it is not None.
    _only_sign: float | None = None
    _calibration: Calibration

    def _sign(self, y: Label) -> float:
        """Sign of a label, or LabelError. This changes nothing."""
        return _sign_of(y, self._kind, self._labels)

    def _adopt(self, y: Label) -> None:
        """Record that a label is learnt. Later predictions are of its kind."""
        if self._kind == "any" or type(y) is not type(self._labels[0]):
            self._kind, self._labels = _after_learning(y, self._kind, self._labels)

    def _would_adopt(self, y: Label) -> bool:
        """Whether learning a label changes the labels that are predicted or can be learnt."""
        kind, labels = _after_learning(y, self._kind, self._labels)
        return kind != self._kind or labels is not self._labels  # (0, 1) equals (False, True)

    def _check_labels(self, labels: Sequence[Label]) -> NDArray[np.int8] | None:
        """Return the labels' signs."""
        kind, pair = self._kind, self._labels

        def signs_of(distinct: Sequence[Label]) -> NDArray[np.int8]:
            nonlocal kind, pair
            signs = np.zeros(len(distinct), dtype=np.int8)
            k = 0
            with naming_row(lambda: next(i for i, y in enumerate(labels) if y is distinct[k])):
                for k, label in enumerate(distinct):
                    if label is NO_LABEL:
                        continue
                    signs[k] = _sign_of(label, kind, pair)
                    kind, pair = _after_learning(label, kind, pair)
            return signs

        return once_per_distinct(labels, signs_of)

    def _label_of(self, score: float) -> Label:
        return self._labels[score > 0.0]

    def _probabilities(self, score: float) -> dict[Label, float]:
        return logistic(self._labels, score * self._calibration.score_factor)
