"""Passive-aggressive learning: the smallest change that satisfies the example, up to a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.models.base import KernelClassifier, check_number

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.types import Features

__all__ = ["PassiveAggressive"]


class PassiveAggressive(KernelClassifier):
    """Passive-aggressive classifier PA-I.

    An example with the loss ``max(0, 1 - y f(x)) > 0`` becomes a support with the coefficient
    ``y min(C, loss / k(x, x))``.

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
    A loss within rounding of 0, as an example has that has just been learnt, is none.

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
    Accuracy: 82.72%
    """

    _update_margin = 1.0

    def __init__(self, aggressiveness: float = 1.0, kernel: Kernel | None = None) -> None:
        check_number("aggressiveness", aggressiveness, above=True)
        super().__init__(kernel)
        self.aggressiveness = aggressiveness

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        return sign * score < 1.0 - self._supports.rounding()

    def _update(self, x: Features, sign: float, score: float) -> None:
        loss, own = 1.0 - sign * score, self._supports.self_kernel()
        tau = self.aggressiveness
        if loss < tau * own:
            tau = loss / own
        self._supports.add(x, sign * tau)
