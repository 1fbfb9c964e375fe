"""Labels of a binary model: three kinds of pairs, of which the first labels learnt decide one."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING

from drift.errors import LabelError
from drift.models._contract import OnlineClassifier
from drift.models._names import is_missing, refuse_real

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drift.types import Label

__all__ = ["SIGNS", "BinaryLabels"]

#: Sign by label, for the kinds of label that may still come. False == 0 and True == 1, numpy's too.
SIGNS: dict[str, dict[Label, float]] = {
    "any": {0: -1.0, 1: 1.0, -1: -1.0},
    "0/1": {0: -1.0, 1: 1.0},
    "-1/+1": {-1: -1.0, 1: 1.0},
}


def _probability(score: float) -> float:
    """Logistic function, to full precision on both sides."""
    if score >= 0:
        return 1.0 / (1.0 + math.exp(-score))
    odds = math.exp(score) if score > -700 else 0.0
    return odds / (1.0 + odds)


class BinaryLabels(OnlineClassifier):
    """Predicts in the kind of label that was learnt: bool, 0/1 or -1/+1; bool before that."""

    def __init__(self) -> None:
        self._kind = "any"
        self._labels: tuple[Label, Label] = (False, True)

    def _sign(self, y: Label) -> float:
        """Sign of a label; changes nothing."""
        try:
            return SIGNS[self._kind][y]
        except (KeyError, TypeError):
            pass
        if is_missing(y):
            raise LabelError(f"label {y!r} tells nothing: leave out examples without a label")
        refuse_real(y)
        if not isinstance(y, Hashable) or y not in SIGNS["any"]:
            raise LabelError(
                f"label {y!r:.80} is none of bool, 0/1 and -1/+1: for other labels or more than "
                "two, wrap this model in drift.models.OneVsRest"
            )
        raise LabelError(
            f"label {y!r:.80} does not go with the labels learnt so far, "
            f"{self._labels[0]!r} and {self._labels[1]!r}"
        )

    def _check_labels(self, labels: Sequence[Label]) -> list[float] | None:
        """Return the labels' signs; None keeps the batch out of compiled code."""
        before = self._kind, self._labels
        if set(map(type, labels)) == {bool} and self._kind != "-1/+1":
            return [1.0 if label else -1.0 for label in labels]
        i = 0
        try:
            for i, label in enumerate(labels):  # noqa: B007 - told where one is refused
                if self._kind == "any" or type(label) is not bool:
                    self._sign(label)
                    self._adopt(label)
            return [self._sign(label) for label in labels]
        except LabelError as error:
            raise LabelError(f"row {i}: {error}") from None
        finally:
            self._kind, self._labels = before

    def _label_of(self, score: float) -> Label:
        return self._labels[score > 0.0]

    def _probabilities(self, score: float) -> dict[Label, float]:
        return {self._labels[0]: _probability(-score), self._labels[1]: _probability(score)}

    def _adopt(self, y: Label) -> None:
        """Predict from now on in the kind of label that `y` is."""
        truth = type(y).__name__ in {"bool", "bool_"}
        if y == -1:
            self._kind, self._labels = "-1/+1", (-1, 1)
        elif y == 0 or truth:
            self._kind, self._labels = "0/1", (False, True) if truth else (0, 1)
        elif self._kind != "-1/+1":  # 1 may turn out to go with 0 or with -1
            self._labels = (0, 1)
