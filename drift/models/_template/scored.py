"""Models that predict by scores, and the flags that an algorithm may set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.errors import naming_row
from drift.models._base.guard import alone
from drift.models._template.contract import OnlineClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.models._base.rows import Rows
    from drift.models._store.built import Calibration
    from drift.types import Features

__all__ = ["Scored", "overrides_without"]


def overrides_without(algorithm: type, hook: str, flag: str) -> bool:
    """Whether an algorithm overrides a hook, but not the flag that says what the hook does.

    A template then sets the flag to the value that is safe for any hook. Hook and flag may come
    from a base, such as a mixin: what counts is the first class in the order of inheritance that
    has either.
    """
    first = next(base for base in algorithm.__mro__ if hook in vars(base) or flag in vars(base))
    return flag not in vars(first)


class Scored(OnlineClassifier):
    """A model that predicts by the sign of a score, or by the largest of several.

    An algorithm may set these flags, as attributes or properties. They depend on parameters alone,
    not on what was learnt, because a batch reads them once:

    ========================  ======================================================================
    ``_update_margin``        With two classes, an example causes no update if ``sign * score`` is
                              above this. 0 by default, so that only mistakes update: `LBP`.
                              Infinite where `_should_update` is overridden without it. 1 in
                              `PassiveAggressive`.
    ``_new_example_margin``   `_update_margin` for an example that equals no support: by default the
                              same, lower in a `ROMMA` with `noise`.
    ``_class_update_margin``  With several classes, an example causes no update if the score of its
                              class exceeds the best other score by more than this. 0 by default:
                              `MRBP`. Infinite where `_should_update_class` is overridden without
                              it. 1 in `PassiveAggressive`.
    ``_wide``                 The columns are float64 whatever `column_type` is. `Forgetron` sets
                              this, because rounding errors would accumulate.
    ``_shares_supports``      The hooks use no more of ``self._supports`` than a `Hypothesis` has,
                              so that `OneVsRest` can use one store for all classes. `LBP` sets
                              this.
    ========================  ======================================================================

    The templates set the others:

    ==========================  ====================================================================
    ``_multiclass``             The model learns more than two classes. It is River's.
    ``_has_binary_hooks``       The model has the hooks of `KernelClassifier`, so that `OneVsRest`
                                accepts it.
    ``_score_is_sum``           With two classes, the score is ``sum_i coefficient_i k(x_i, x)``, so
                                that compiled code can compute it and take the whole step. False
                                where `_score` is overridden. `TwoOrMore` makes it False at the
                                third class; no other flag changes.
    ``_class_scores_are_sums``  With several classes, each score is such a sum over the class's
                                coefficients. False where `_score` is overridden.
    ==========================  ====================================================================

    `OnlineClassifier` has the flags of wrappers and of models without a store.
    """

    _update_margin: float = 0.0
    _class_update_margin: float = 0.0
    _wide: bool = False
    _shares_supports: bool = False
    _has_binary_hooks: bool = False
    _score_is_sum: bool = False
    _class_scores_are_sums: bool = False

    @property
    def _new_example_margin(self) -> float:
        return self._update_margin

    #: The calibration maps scores to probabilities. It learns from the score before each update.
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
            ``f(x) = sum_i coefficient_i k(x_i, x)``; the prediction is positive if and only if this
            is above 0. With several classes, the score by label.
        """
        self._read(x)
        return self._decision(self._score())

    def _decide_rows(self, rows: Rows | list[Features], decisions: list[Any]) -> None:
        """Append a row of `decision_function_many` for each row of the batch.

        A hook that a model may have, if the decision is not the score.
        """
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
            Values of `decision_function_one`. Classes are in the order of their first examples.
        """
        rows, decisions = self._batch_to_predict(X).rows, list[Any]()
        with naming_row(decisions.__len__):
            self._decide_rows(rows or [{}], decisions)  # an example, for the number of classes
        return np.array(decisions, dtype=np.float64)[: len(rows)]
