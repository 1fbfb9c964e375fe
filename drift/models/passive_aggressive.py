"""Passive-aggressive learning: the smallest change that satisfies the example, up to a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift._checks import check_number
from drift.models._template.multiclass import MulticlassKernelClassifier

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.models._template.prototypes import Array
    from drift.types import Features

__all__ = ["PassiveAggressive"]


class PassiveAggressive(MulticlassKernelClassifier):
    """Passive-aggressive classifier PA-I, for two classes or more.

    An example with the loss ``max(0, 1 - y f(x)) > 0`` becomes a support with the coefficient
    ``y min(C, loss / k(x, x))``. With a label other than bool, 0/1 or -1/+1 each class gets a
    hypothesis, the loss is ``max(0, 1 - f_y(x) + max_{r != y} f_r(x))``, and ``min(C, loss / (2
    k(x, x)))`` is added to the example's own class and taken from the best other.

    Parameters
    ----------
    aggressiveness
        The paper's ``C``, positive: the largest coefficient.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis: those with a loss.

    Raises
    ------
    ParameterError
        If `aggressiveness` is not a number above 0.

    Notes
    -----
    The weight of an example multiplies `aggressiveness`, the largest coefficient, alone.

    A loss within rounding of 0, as an example has that has just been learnt, is none.

    What was learnt of two classes before a label of another kind comes is kept: each gets half of
    the hypothesis, one with the opposite sign.

    References
    ----------
    .. [1] K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, "Online passive-aggressive
       algorithms", Journal of Machine Learning Research 7 (2006).
    .. [2] F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", Journal of
       Machine Learning Research 10 (2009), section 7, where it is a baseline.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import PassiveAggressive
    >>> model = PassiveAggressive()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 85.84%
    """

    _update_margin = 1.0
    _class_margin = 1.0
    _wide = True  # each coefficient comes from a score, and a small loss is not to be lost
    _learns_signs = True
    _shares_supports = True

    def __init__(self, aggressiveness: float = 1.0, kernel: Kernel | None = None) -> None:
        check_number("aggressiveness", aggressiveness, above=True)
        super().__init__(kernel)
        self.aggressiveness = aggressiveness

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        return sign * score < 1.0 - self._supports.rounding()

    def _update(self, x: Features, sign: float, score: float) -> None:
        loss, own = 1.0 - sign * score, self._supports.self_kernel()
        tau = self._weight * self.aggressiveness
        if loss < tau * own:
            tau = loss / own
        self._supports.add(x, sign * tau)

    def _should_update_class(self, k: int, rival: int, margin: float, rounding: float) -> bool:
        return margin < 1.0 - rounding

    def _update_class(self, x: Features, k: int, rival: int, scores: Array) -> None:
        loss, own = 1.0 - float(scores[k]), 2.0 * self._supports.self_kernel()
        if rival >= 0:
            loss += float(scores[rival])
        tau = self._weight * self.aggressiveness
        if loss < tau * own:
            tau = loss / own
        self._add(x, {k: tau, rival: -tau})
