"""ROMMA: the relaxed online maximum margin algorithm, and its aggressive variant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from drift._checks import check_number
from drift.models._base.examples import in_order
from drift.models._template.binary import KernelClassifier

if TYPE_CHECKING:
    from drift.kernels import Kernel
    from drift.models._base.examples import Content
    from drift.types import Features

__all__ = ["ROMMA"]

#: Smallest squared norm of an example that is learnt. The squared norm of a hypothesis is at most
#: its inverse. So their products and quotients stay finite.
_MIN_SELF_KERNEL = 1e-150
#: Largest rounding error with which an update may leave the example's margin of 1.
_MAX_BLUR = 2.0**-10


class ROMMA(KernelClassifier):
    r"""Relaxed Online Maximum Margin Algorithm.

    On a mistake the hypothesis becomes the smallest one that gives the example the margin 1 and
    lies in the half-space ``<f_new, f> >= ||f||^2``, which stands for all earlier constraints. It
    is ``c f + d k(x, .)`` with ``D = k(x, x) ||f||^2 - f(x)^2``,
    ``c = (k(x, x) ||f||^2 - y f(x)) / D`` and ``d = ||f||^2 (y - f(x)) / D``. The first hypothesis
    is ``y k(x, .) / k(x, x)``.

    Parameters
    ----------
    aggressive
        Update on every margin below 1, not on mistakes alone. If ``y f(x)`` is at least
        ``k(x, x) ||f||^2``, the half-space does not bind. The hypothesis then starts afresh from
        the example, and all older supports are evicted.
    noise
        The paper's ``delta``, at least 0. It is added to the kernel between an example and itself
        or an equal example (of the same features and values), as in a second epoch. The kernel
        between different examples stays. It bounds what one example can demand: use it if labels
        are noisy.
    kernel
        Kernel between examples; None for ``Polynomial(degree=4, coef0=1, normalize=True)``.
    bias
        Start from ``k(0, .)``, a zero instance with coefficient 1, as the paper's experiments do,
        instead of from 0.

    Attributes
    ----------
    n_mistakes : int
        Number of mistakes made while learning, a zero score included.
    n_updates : int
        Number of examples that changed the hypothesis.

    Raises
    ------
    ParameterError
        If `noise` is not a number of at least 0.

    Notes
    -----
    `noise` affects learning alone. Scores and predictions are those of ``f``, and `n_mistakes`
    counts their mistakes. An example with ``k(x, x) + noise`` below 1e-150 carries no information,
    and causes no update.

    On separable data ``||f||`` never exceeds the inverse of the best margin. On inseparable data it
    grows without bound, as the constraints contradict each other more and more. Before rounding
    errors hide the constraints, the hypothesis starts afresh from the example. It does so if ``D``
    is within its rounding error of 0 (the example and the hypothesis lie on one line), or if the
    example's new margin of 1 would have a rounding error above ``2^-10``. A restart forgets all
    that was learnt; `noise` makes restarts rare.

    The weight ``w`` of an example divides `noise`: ``noise / w`` is added to its ``k(x, x)``, and
    ``noise / sqrt(v w)`` to its kernel with an equal example that had the weight ``v``. Without
    `noise` an example's constraint holds exactly, whatever its weight.

    An update takes O(1) time on top of the score; columns are float64 whatever `column_type` is.

    References
    ----------
    .. [1] Y. Li, P. M. Long, "The relaxed online maximum margin algorithm", NIPS 12 (1999); also
       Machine Learning 46 (2002). Sections 2.1 and 3; noise control and bias: section 4.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from drift.models import ROMMA
    >>> model = ROMMA(aggressive=True, noise=1.0)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 87.04%
    """

    _wide = True
    _shares_supports = True
    _stored_names: ClassVar = {
        "_squared_norm": "_norm2",
        "_ranks_by_content": "_numbers",
        "_weight_by_rank": "_weights",
    }

    def __init__(
        self,
        aggressive: bool = False,  # noqa: FBT001, FBT002 - River passes parameters by name
        noise: float = 0.0,
        kernel: Kernel | None = None,
        bias: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        check_number("noise", noise)
        super().__init__(kernel)
        self.aggressive = aggressive
        self.noise = noise
        self.bias = bias
        self._squared_norm = self._start_from_zero_instance() if bias else 0.0  # ||f||^2
        # With `noise` alone.
        self._ranks_by_content: dict[
            Content, tuple[int, ...]
        ] = {}  # age ranks by content of a support
        self._weight_by_rank: dict[int, float] = {}  # weight by age rank, if it is not 1

    @property
    def _update_margin(self) -> float:  # type: ignore[override]
        return math.inf if self.noise else self._new_example_margin

    @property
    def _new_example_margin(self) -> float:
        return float(self.aggressive)  # `noise` changes scores of examples equal to supports alone

    def __getstate__(self) -> dict[str, Any]:
        # Sets are unordered; equal models must have equal states.
        examples = []
        for content, ranks in self._ranks_by_content.items():
            values = dict(content)
            examples.append(([(name, values[name]) for name in in_order([*values])], [*ranks]))
        return super().__getstate__() | {"_numbers": examples}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._ranks_by_content = {
            frozenset(values): tuple(ranks) for values, ranks in state["_numbers"]
        }

    def _score_with_noise(self, x: Features, score: float) -> tuple[float, float]:
        """Score with `noise` in the kernel of equal examples, and a bound on its rounding error."""
        error_bound = self._supports.error_bound()
        if not self._ranks_by_content:
            return score, error_bound
        ranks = self._ranks_by_content.get(self._supports.content(x), ())
        extra = self.noise * sum(
            self._supports.coefficient(i)
            / math.sqrt(self._weight_by_rank.get(i, 1.0) * self._weight)
            for i in ranks
        )
        error_bound += self._supports.relative_tolerance * abs(extra)
        score += extra
        return (score if abs(score) > error_bound else 0.0), error_bound

    def _should_update(self, x: Features, sign: float, score: float) -> bool:
        if self._supports.self_kernel() + self.noise / self._weight < _MIN_SELF_KERNEL:
            return False
        score, error_bound = self._score_with_noise(x, score)
        return sign * score < 1.0 - error_bound if self.aggressive else sign * score <= 0.0

    def _update(self, x: Features, sign: float, score: float) -> None:
        supports = self._supports
        self_kernel = supports.self_kernel() + self.noise / self._weight
        score, error_bound = self._score_with_noise(x, score)
        c, d, squared_norm = self._solve(self_kernel, sign, score, error_bound)
        blur = c * error_bound + supports.relative_tolerance * abs(d) * self_kernel
        if c == 0.0 or not blur <= _MAX_BLUR or not squared_norm <= 1.0 / _MIN_SELF_KERNEL:
            while len(supports):
                supports.evict(-1)
            self._ranks_by_content.clear()
            self._weight_by_rank.clear()
            c, d, squared_norm = 1.0, sign / self_kernel, 1.0 / self_kernel
        supports.scale_coefficients(c)
        supports.add(x, d)
        self._squared_norm = squared_norm
        if self.noise:
            content, rank = supports.content(x), len(supports) - 1
            self._ranks_by_content[content] = (*self._ranks_by_content.get(content, ()), rank)
            if self._weight != 1.0:
                self._weight_by_rank[rank] = self._weight

    def _solve(
        self, self_kernel: float, sign: float, score: float, error_bound: float
    ) -> tuple[float, float, float]:
        """Return c, d and the new ||f||^2; c = 0 if the half-space does not bind."""
        relative_tolerance = self._supports.relative_tolerance
        cauchy_schwarz_bound = self_kernel * self._squared_norm
        determinant = cauchy_schwarz_bound - score * score
        rounding = 2.0 * error_bound * abs(score) + relative_tolerance * cauchy_schwarz_bound
        if not determinant > rounding or sign * score >= cauchy_schwarz_bound - rounding:
            return 0.0, sign / self_kernel, 1.0 / self_kernel
        c = (cauchy_schwarz_bound - sign * score) / determinant
        d = self._squared_norm * (sign - score) / determinant
        # Both constraints hold with equality, <f_new, f> = ||f||^2 and f_new(x) = y: so ||f_new||^2
        # is a sum in which nothing cancels.
        return c, d, c * self._squared_norm + d * sign
