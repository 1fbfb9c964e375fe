"""The Forgetron: evicts the oldest support after fading it enough to be missed little."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from drift._checks import check_choice, check_integer
from drift.models._template.binary import KernelClassifier

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.types import Features

__all__ = ["Forgetron"]

_SHRINKING = ("self-tuned", "basic")


class Forgetron(KernelClassifier):
    r"""Forgetron: on a full budget, shrinks all coefficients and evicts the oldest support.

    Parameters
    ----------
    budget
        Largest number of supports, at least 1.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    shrinking
        What multiplies all coefficients. ``"self-tuned"`` takes the largest factor ``phi`` in
        (0, 1] for which the damage of all evictions so far stays within 15/32 of the number of
        mistakes. ``"basic"`` takes the smaller of ``(B + 1) ** (-1 / (2 (B + 1)))`` and
        ``U / ||f'||``, where ``B`` is the budget and ``U = sqrt((B + 1) / ln(B + 1)) / 4``.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis; here, the mistakes.

    Raises
    ------
    ParameterError
        If `budget` is not an integer of at least 1, or `shrinking` is neither of the two.

    Notes
    -----
    Let ``f'`` be the hypothesis with the new support, ``r`` the oldest support,
    ``sigma = |alpha_r|`` and ``mu = y_r f'(x_r)``. The damage of an eviction is
    ``Psi(phi) = (phi sigma)^2 + 2 phi sigma (1 - phi mu)``.

    The analysis needs ``k(x, x) <= 1``. With larger kernels ``phi`` would always be 1, and the
    Forgetron would be `LBP`. To compute ``phi``, it therefore divides the kernel by its largest
    ``k(x, x)``: by `kernel.bound` if the kernel has it, else by the largest among the mistakes so
    far. Scores keep the kernel's scale. Columns are float64 whatever `column_type` is, because the
    factors, and so all later mistakes, depend on every digit of a score.

    A mistake of weight ``w`` counts ``w`` times, and has the coefficient ``w y``. For weights of at
    most 1, the paper's bound on the number of mistakes then bounds the sum of their weights.

    References
    ----------
    .. [1] O. Dekel, S. Shalev-Shwartz, Y. Singer, "The Forgetron: a kernel-based Perceptron on a
       budget", SIAM Journal on Computing 37 (2008).
    .. [2] G. Cavallanti, N. Cesa-Bianchi, C. Gentile, "Tracking the best hyperplane with a simple
       budget Perceptron", Machine Learning 69 (2007), section 4 (FA).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import Forgetron
    >>> evaluate.progressive_val_score(
    ...     datasets.Phishing(), Forgetron(budget=50), metrics.Accuracy()
    ... )
    Accuracy: 81.12%
    """

    _shares_supports = True
    _wide = True
    _stored_names: ClassVar = {"_squared_norm": "_norm2", "_largest_self_kernel": "_scale"}

    _excess = 0.0  # sum of the weights of the mistakes minus the number of mistakes

    def __init__(
        self, budget: int = 100, kernel: Kernel | None = None, shrinking: str = "self-tuned"
    ) -> None:
        budget = check_integer("budget", budget)
        check_choice("shrinking", shrinking, _SHRINKING)
        super().__init__(kernel, budget)
        self.budget = budget
        self.shrinking = shrinking
        # The largest k(x, x): the kernel's bound, or the largest among the mistakes so far.
        self._largest_self_kernel = getattr(self._supports.kernel, "bound", None) or 0.0
        self._damage = 0.0  # the paper's Q
        self._squared_norm = 0.0  # ||f||^2, for the basic shrinking only

    def _update(self, x: Features, sign: float, score: float) -> None:
        supports = self._supports
        supports.add(x, self._weight * sign)
        self_kernel = supports.self_kernel()
        self._largest_self_kernel = max(self._largest_self_kernel, self_kernel)
        self._excess += self._weight - 1.0
        if self.shrinking == "basic":
            self._squared_norm += self._weight * (2.0 * sign * score + self._weight * self_kernel)
        if supports.n_supports() > self.budget:
            self._shrink_and_evict()

    def _shrink_and_evict(self) -> None:
        supports = self._supports
        largest = self._largest_self_kernel or 1.0
        alpha = supports.coefficient(0)
        supports.read_support(0)
        score = supports.score()
        if self.shrinking == "basic":
            phi = self._basic_factor(self._squared_norm / largest)
            without = self._squared_norm - 2.0 * alpha * score + alpha**2 * supports.self_kernel()
            self._squared_norm = phi**2 * without
        else:
            phi = self._self_tuned_factor(abs(alpha), math.copysign(score, alpha * score) / largest)
        supports.scale_coefficients(phi)
        supports.evict(0)

    def _basic_factor(self, squared_norm: float) -> float:
        size = self.budget + 1
        norm = math.sqrt(max(squared_norm, 0.0))
        largest_norm = math.sqrt(size / math.log(size)) / 4.0
        phi = float(size ** (-1.0 / (2.0 * size)))
        return min(phi, largest_norm / norm) if norm > 0.0 else phi

    def _self_tuned_factor(self, sigma: float, mu: float) -> float:
        """Return the largest phi in (0, 1] with Q + Psi(phi) <= 15/32 M, and add Psi(phi) to Q."""
        # Q + Psi(phi) - 15/32 M = a phi^2 + b phi + c
        a = sigma * sigma - 2.0 * sigma * mu
        b = 2.0 * sigma
        c = self._damage - 15.0 / 32.0 * (self.n_mistakes + self._excess)
        phi = 1.0
        if a + b + c > 0.0:
            root = math.sqrt(max(b * b - 4.0 * a * c, 0.0))
            phi = 2.0 * -c / (b + root)  # the smaller positive root, without cancellation
        self._damage += (a * phi + b) * phi
        return phi
