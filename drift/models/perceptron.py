"""The kernel Perceptron and its shifting variant: no budget."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from drift.errors import ParameterError
from drift.models.base import KernelClassifier

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.types import Features

__all__ = ["SPA", "Perceptron"]


class Perceptron(KernelClassifier):
    """Kernel Perceptron: every mistake becomes a support.

    Memory and time grow with the number of mistakes; see `RBP`, `LBP` and `Forgetron` for the same
    on a budget.

    Parameters
    ----------
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis; here, of mistakes.

    See Also
    --------
    SPA : Forgets older supports gradually, for targets that shift.

    References
    ----------
    .. [1] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget Perceptron", Machine Learning 69 (2007), section 4 (PERC).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import Perceptron
    >>> model = Perceptron()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 82.24%
    >>> model.n_mistakes == model.n_supports
    True
    """

    def __init__(self, kernel: Kernel | None = None) -> None:
        super().__init__(kernel)


class SPA(KernelClassifier):
    """Shifting Perceptron: a Perceptron whose older supports fade.

    At its ``k``-th mistake (from 0) the hypothesis is multiplied by ``1 - lambda_k`` before the new
    support comes in with coefficient ``y``, where ``lambda_0 = 1`` and
    ``lambda_k = lambda / (lambda + k)``. Supports are never evicted: combine it with a reset, or
    take a budgeted model, where memory is short.

    Parameters
    ----------
    decay
        The paper's ``lambda``, positive: the larger, the faster older supports fade.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis; here, of mistakes.

    Raises
    ------
    ParameterError
        If `decay` is not a positive finite number.

    References
    ----------
    .. [1] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget Perceptron", Machine Learning 69 (2007), section 2, figure 1.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import SPA
    >>> evaluate.progressive_val_score(datasets.Phishing(), SPA(decay=1.0), metrics.Accuracy())
    Accuracy: 78.48%
    """

    def __init__(self, decay: float = 1.0, kernel: Kernel | None = None) -> None:
        if not (decay > 0 and math.isfinite(decay)):
            raise ParameterError(f"decay must be a positive number, not {decay!r}")
        super().__init__(kernel)
        self.decay = decay

    def _update(self, x: Features, sign: float, score: float) -> None:
        mistakes_before = self.n_mistakes - 1
        self._supports.scale(1.0 - self.decay / (self.decay + mistakes_before))
        self._supports.add(x, sign)
