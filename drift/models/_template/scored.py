"""Models that predict by scores, and the flags that their classes may set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from drift.models._base.guard import alone
from drift.models._template.contract import OnlineClassifier, named_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.models._base.rows import Rows
    from drift.models._store.built import Calibration
    from drift.types import Features

__all__ = ["Scored"]


class Scored(OnlineClassifier):
    """A model that predicts by the sign of a score, or by the largest of several.

    A class may set these flags, as attributes or properties:

    ========================  =====================================================================
    ``_update_margin``        With two classes, an example whose ``sign * score`` is above this
                              updates nothing. 0 by default: only mistakes update. Infinite in a
                              class that overrides `_should_update` without setting this.
    ``_class_margin``         With more classes, an example updates nothing if the score of its
                              class exceeds the best other score by more than this. 0 by default.
                              Infinite in a class that overrides `_should_update_class` or `_score`
                              without setting this.
    ``_wide``                 Columns are always float64, because rounding would accumulate.
    ``_shares_supports``      The hooks use only the part of ``self._supports`` that
                              `SharedSupports` has, so that `OneVsRest` can use one store for all
                              classes.
    ``_supports_may_update``  An example that equals a support may update even above the margin.
    ========================  =====================================================================

    The others follow from the hooks:

    ========================  =====================================================================
    ``_multiclass``           The model learns more than two classes.
    ``_learns_signs``         The model has hooks for two classes, and so `_learn_sign`.
    ``_sums_up``              `_score` is the supports' sum, which compiled code computes.
    ``_skip_margin``          `OneVsRest` over a shared store need not let a class learn an example
                              above this margin. Compiled code skips a row that no class needs to
                              learn.
    ========================  =====================================================================
    """

    _update_margin: float = 0.0
    _class_margin: float = 0.0
    _wide: ClassVar[bool] = False
    _shares_supports: ClassVar[bool] = False
    _supports_may_update: bool = False
    _learns_signs: bool = False
    _sums_up: bool = False
    _skip_margin: float = math.inf

    #: Maps scores to probabilities; it learns from the score before each update.
    _calibration: Calibration

    @alone
    def decision_function_one(self, x: Features) -> Any:
        """Score of an example, in the kernel's scale.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        float or dict
            ``f(x) = sum_i coefficient_i k(x_i, x)``; the prediction is positive iff it is above 0.
            With several classes, the score by label.
        """
        self._read(x)
        return self._decision(self._score())

    def _decide_rows(self, rows: Rows | list[Features], decisions: list[Any]) -> None:
        """Append the value of `decision_function_one` for each row, classes in order."""
        self._score_rows(rows, decisions)

    @alone
    def decision_function_many(self, X: Any) -> NDArray[Any]:
        """Score of each row.

        Parameters
        ----------
        X
            As for `learn_many`.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Values of `decision_function_one`; classes in the order of their first examples.
        """
        rows, decisions = self._table(X).rows, list[Any]()
        with named_row(decisions):
            self._decide_rows(rows, decisions)
        return np.array(decisions, dtype=np.float64)
