"""The kernel Perceptron, its vote and its shifting variant: no budget."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from drift._checks import check_number
from drift.models._store import built
from drift.models._template.binary import KernelClassifier

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.types import Features

__all__ = ["SPA", "Perceptron", "VotedPerceptron"]


class Perceptron(KernelClassifier):
    """Kernel Perceptron: every mistake becomes a support.

    Memory and time grow with the number of mistakes; see `RBP`, `LBP` and `Forgetron` for the same
    on a budget.

    Parameters
    ----------
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    bias
        Start from ``k(0, .)``, a zero instance with coefficient 1, instead of from 0.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis; here, the mistakes.

    See Also
    --------
    VotedPerceptron : The vote of all hypotheses instead of the last one.
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
    Accuracy: 85.36%
    >>> model.n_mistakes == model.n_supports
    True
    """

    _shares_supports = True

    def __init__(
        self,
        kernel: Kernel | None = None,
        bias: bool = False,  # noqa: FBT001, FBT002 - River passes parameters by name
    ) -> None:
        super().__init__(kernel)
        self.bias = bias
        if bias:
            self._start_from_zero_instance()


class VotedPerceptron(KernelClassifier):
    """Voted Perceptron: every hypothesis votes, with the number of examples that it survived.

    The hypotheses ``v_j`` and the updates are those of the `Perceptron`. The score is
    ``sum_j c_j sign(v_j(x))``, the current hypothesis included. The votes ``c_j`` start at 1 when
    ``v_j`` is made, and grow by 1 with each example that it classifies correctly. An example of
    weight ``w`` counts ``w`` times. The ``v_j`` are prefixes of one expansion, so that a score
    takes one kernel row and one running sum.

    Parameters
    ----------
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    bias
        Start from ``k(0, .)``, a zero instance with coefficient 1, instead of from 0.
    averaged
        Score ``sum_j c_j v_j(x)`` instead: the averaged Perceptron.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes of the vote while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis: mistakes of the latest hypothesis.

    Notes
    -----
    ``sign(0) = 0``, and the hypothesis before the first update has ``c = 0``.

    References
    ----------
    .. [1] Y. Freund, R. E. Schapire, "Large margin classification using the Perceptron algorithm",
       Machine Learning 37 (1999).
    .. [2] Y. Li, P. M. Long, "The relaxed online maximum margin algorithm", Machine Learning 46
       (2002), section 5, where it is a baseline.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import VotedPerceptron
    >>> evaluate.progressive_val_score(datasets.Phishing(), VotedPerceptron(), metrics.Accuracy())
    Accuracy: 89.12%
    """

    _shares_supports = True
    _wide = True  # a hypothesis that is off by a rounding error casts all its votes wrongly
    _vote = 0.0  # score of the example that `_counted` identifies
    _counted: tuple[int, int, float] | None = None

    def __init__(
        self,
        kernel: Kernel | None = None,
        bias: bool = False,  # noqa: FBT001, FBT002 - River passes parameters by name
        averaged: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        super().__init__(kernel)
        self.bias = bias
        self.averaged = averaged
        self._signs = array("d")  # coefficients of the supports, the oldest first
        self._survived = array("d", [0.0])  # votes c_j of the hypothesis of the first j supports
        self._last_score = 0.0  # of the current hypothesis
        if bias:
            self._start_from_zero_instance()
            self._signs.append(1.0)
            self._survived.append(0.0)

    def __getstate__(self) -> dict[str, Any]:
        # What was counted for one example has no meaning beyond it.
        state = super().__getstate__() | {"_last_score": 0.0}
        return {name: value for name, value in state.items() if name not in {"_vote", "_counted"}}

    def _score(self) -> float:
        if not self._signs:
            return 0.0
        # Often an example is predicted and then learnt: its votes are counted once.
        store, survived = self._supports.store, self._survived
        count = store.n_read, len(survived), survived[-1]
        if count != self._counted:
            self._vote, self._last_score = built.prefix_votes(
                store, self._supports.own_slots_by_age, self._signs, survived, self.averaged
            )
            self._counted = count
        return self._vote

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        survives = sign * self._last_score > 0.0
        if survives:
            self._survived[-1] += self._weight
        return not survives

    def _update(self, x: Features, sign: float, score: float) -> None:
        self._supports.add(x, self._weight * sign)
        self._signs.append(self._weight * sign)
        self._survived.append(self._weight)


class SPA(KernelClassifier):
    """Shifting Perceptron: a Perceptron whose older supports fade.

    At mistake ``k``, counted from 0, the hypothesis is multiplied by ``1 - lambda_k``, where
    ``lambda_k = lambda / (lambda + k)``. Then the example becomes a support with the coefficient
    ``y``. Supports are never evicted: combine it with a reset, or use a model with a budget if
    memory is short.

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
        Number of examples that changed the hypothesis; here, the mistakes.

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
    Accuracy: 82.64%
    """

    _shares_supports = True

    def __init__(self, decay: float = 1.0, kernel: Kernel | None = None) -> None:
        check_number("decay", decay, above=True)
        super().__init__(kernel)
        self.decay = decay

    def _update(self, x: Features, sign: float, score: float) -> None:
        mistakes_before = self.n_mistakes - 1
        self._supports.scale_coefficients(1.0 - self.decay / (self.decay + mistakes_before))
        self._supports.add(x, self._weight * sign)
