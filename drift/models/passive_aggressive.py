"""Passive-aggressive learning: the smallest change that satisfies the example, up to a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift._checks import check_integer, check_number
from drift.models._template.two_or_more import TwoOrMore

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.types import Array, Features

__all__ = ["PassiveAggressive"]


class PassiveAggressive(TwoOrMore):
    """Passive-aggressive classifier PA-I, for two classes or more, on a budget or without one.

    An example with a loss ``max(0, 1 - y f(x))`` above 0 becomes a support with the coefficient
    ``y min(C, loss / k(x, x))``.

    From the first label on that is not bool, 0/1 or -1/+1, each class has a hypothesis. The loss is
    then ``max(0, 1 - f_y(x) + max_{r != y} f_r(x))``. The support has the coefficient
    ``min(C, loss / (2 k(x, x)))`` for its class, and the opposite for the best other class.

    On a full budget, the support with the smallest coefficient is merged into the nearest one.

    Parameters
    ----------
    aggressiveness
        The paper's ``C``, positive: the largest coefficient.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    budget
        Largest number of supports, at least 1; None for no limit.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis: examples with a loss.

    Raises
    ------
    ParameterError
        If `aggressiveness` is not a number above 0, or `budget` not an integer of at least 1.

    Notes
    -----
    The weight of an example multiplies `aggressiveness`, and with it the largest coefficient. It
    changes nothing else.

    A loss within rounding of 0 counts as 0, for example if the same example comes again.

    When a third class comes, each of the two classes keeps half of the hypothesis, the negative
    class with the opposite sign.

    On a full budget the support ``i`` with the smallest ``|alpha_i|`` is evicted; with several
    classes, the one whose coefficients have the smallest norm. It is never the new support. If
    several are equal, it is the oldest. The evicted support is projected onto the support ``j``
    for which that loses least: ``alpha_i k(x_i, x_j) / k(x_j, x_j)`` is added to ``alpha_j``. That
    takes a second kernel row per update. It pays, because later supports were made to correct the
    evicted one, and would be wrong without it.

    References
    ----------
    .. [1] K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, "Online passive-aggressive
       algorithms", Journal of Machine Learning Research 7 (2006).
    .. [2] F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", Journal of
       Machine Learning Research 10 (2009), section 7, where it is a baseline.
    .. [3] Z. Wang, S. Vucetic, "Online passive-aggressive algorithms on a budget", AISTATS 2010,
       whose budget is a constraint of the same optimization problem: related, and not what is done
       here.
    .. [4] Z. Wang, K. Crammer, S. Vucetic, "Breaking the curse of kernelization: budgeted
       stochastic gradient descent for large-scale SVM training", Journal of Machine Learning
       Research 13 (2012), which compares removal, projection and merging of the smallest support.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import PassiveAggressive
    >>> model = PassiveAggressive()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 85.84%
    >>> model = PassiveAggressive(budget=50)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 85.20%
    """

    _update_margin = 1.0
    _class_update_margin = 1.0
    _wide = True  # coefficients follow from scores, and rounding must not hide a small loss
    _shares_supports = True

    #: For models stored by versions without a budget.
    budget: int | None = None

    def __init__(
        self,
        aggressiveness: float = 1.0,
        kernel: Kernel | None = None,
        budget: int | None = None,
    ) -> None:
        check_number("aggressiveness", aggressiveness, above=True)
        if budget is not None:
            budget = check_integer("budget", budget)
        super().__init__(kernel, budget)
        self.aggressiveness = aggressiveness
        self.budget = budget

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        return sign * score < 1.0 - self._supports.error_bound()

    def _update(self, x: Features, sign: float, score: float) -> None:
        coefficient = self._coefficient(1.0 - sign * score, self._supports.self_kernel())
        self._supports.add(x, sign * coefficient)
        if self._over_budget():
            slot = self._supports.slot_of_smallest()
            self._supports.merge(slot, *self._supports.nearest(slot))

    def _should_update_class(self, k: int, rival: int, margin: float, error_bound: float) -> bool:
        return margin < 1.0 - error_bound

    def _update_class(self, x: Features, k: int, rival: int, scores: Array) -> None:
        loss = 1.0 - float(scores[k])
        if rival >= 0:
            loss += float(scores[rival])
        coefficient = self._coefficient(loss, 2.0 * self._supports.self_kernel())
        self._add_support(x, {k: coefficient, rival: -coefficient})
        if self._over_budget():
            slot = self._supports.slot_of_smallest(self._prototypes.squared_norms())
            self._merge_support(slot, *self._supports.nearest(slot))

    def _coefficient(self, loss: float, squared_norm: float) -> float:
        """The smallest coefficient that makes the loss 0, up to the largest one allowed."""
        largest = self._weight * self.aggressiveness
        return loss / squared_norm if loss < largest * squared_norm else largest
