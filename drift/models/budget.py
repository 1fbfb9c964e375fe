"""Perceptrons on a budget that evict one support when another comes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift._checks import check_integer, check_seed
from drift.models._template.binary import KernelClassifier
from drift.models._template.draws import Drawing
from drift.models._template.multiclass import MulticlassKernelClassifier

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.types import Array, Features

__all__ = ["LBP", "MRBP", "RBP"]


class RBP(Drawing, KernelClassifier):
    """Randomized Budget Perceptron: evicts a support drawn uniformly at random.

    Parameters
    ----------
    budget
        Largest number of supports, at least 1.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    seed
        Seed of the draws; None for random ones.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis; here, the mistakes.

    Raises
    ------
    ParameterError
        If `budget` is not an integer of at least 1.

    Notes
    -----
    The draw is among the old supports, as in figure 2 of the paper, so that the new one stays.

    References
    ----------
    .. [1] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget Perceptron", Machine Learning 69 (2007), section 3.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import RBP
    >>> model = RBP(budget=50, seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 82.40%
    >>> model.n_supports
    50
    """

    _shares_supports = True

    def __init__(
        self, budget: int = 100, kernel: Kernel | None = None, seed: int | None = None
    ) -> None:
        budget = check_integer("budget", budget)
        super().__init__(kernel, budget)
        self.budget = budget
        self.seed = check_seed(seed)
        self._start_draws(self.seed)

    def _update(self, x: Features, sign: float, score: float) -> None:
        self._supports.add(x, self._weight * sign)
        if self._supports.n_supports() > self.budget:
            self._supports.evict(self._draw(self.budget))


class LBP(KernelClassifier):
    """Least recent Budget Perceptron: evicts the oldest support.

    Parameters
    ----------
    budget
        Largest number of supports, at least 1.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis; here, the mistakes.

    Raises
    ------
    ParameterError
        If `budget` is not an integer of at least 1.

    References
    ----------
    .. [1] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget Perceptron", Machine Learning 69 (2007), section 4 (LBP).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import LBP
    >>> evaluate.progressive_val_score(datasets.Phishing(), LBP(budget=50), metrics.Accuracy())
    Accuracy: 80.88%
    """

    _shares_supports = True

    def __init__(self, budget: int = 100, kernel: Kernel | None = None) -> None:
        budget = check_integer("budget", budget)
        super().__init__(kernel, budget)
        self.budget = budget

    def _update(self, x: Features, sign: float, score: float) -> None:
        self._supports.add(x, self._weight * sign)
        if self._supports.n_supports() > self.budget:
            self._supports.evict(0)


class MRBP(Drawing, MulticlassKernelClassifier):
    """Multiclass Randomized Budget Perceptron: evicts a support drawn uniformly at random.

    A mistake becomes a support with the coefficient 1 for its class, and -1 for the best other
    class.

    Parameters
    ----------
    budget
        Largest number of supports, at least 1.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    seed
        Seed of the draws; None for random ones.

    Attributes
    ----------
    n_mistakes : int
        Number of examples learnt whose label did not score above all others before the update.
    n_updates : int
        Number of examples that changed the hypothesis; here, the mistakes.

    Raises
    ------
    ParameterError
        If `budget` is not an integer of at least 1.

    See Also
    --------
    RBP : The same for two classes.

    References
    ----------
    .. [1] F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", Journal of
       Machine Learning Research 10 (2009), section 7 (the multiclass baseline).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from drift.kernels import RBF
    >>> from drift.models import MRBP
    >>> model = preprocessing.StandardScaler() | MRBP(budget=50, kernel=RBF(0.2), seed=1)
    >>> segments = datasets.ImageSegments().take(500)
    >>> evaluate.progressive_val_score(segments, model, metrics.Accuracy())
    Accuracy: 75.75%
    """

    def __init__(
        self, budget: int = 100, kernel: Kernel | None = None, seed: int | None = None
    ) -> None:
        budget = check_integer("budget", budget)
        super().__init__(kernel, budget)
        self.budget = budget
        self.seed = check_seed(seed)
        self._start_draws(self.seed)

    def _update_class(self, x: Features, k: int, rival: int, scores: Array) -> None:
        self._add_support(x, {k: self._weight, rival: -self._weight})
        if self._supports.n_supports() > self.budget:
            self._evict_support(self._draw(self.budget))
