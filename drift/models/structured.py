"""Projectron++ for outputs with a structure: sequences, trees, rankings."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from river import base

from drift._checks import check_number, weight_of
from drift.errors import ParameterError
from drift.models._base.guard import alone
from drift.models._base.labels import check_class
from drift.models._base.rounding import RELATIVE_TOLERANCE
from drift.models._linalg.span import ClassProjector, margin_step, within
from drift.models._template.parameters import Cloned
from drift.models._template.state import Guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from drift.models._linalg.span import Projection
    from drift.types import Array

    Pair = tuple[Any, Hashable]
    JointKernel = Callable[[Pair, Pair], float]

__all__ = ["StructuredProjectron"]

#: Largest kernel value: sums of a few squares of it are finite.
_MAX_KERNEL = 2.0**500


class Argmax(Protocol):
    """What `StructuredProjectron` asks of an argmax."""

    def __call__(self, x: Any, score: Score, exclude: Hashable | None) -> Hashable | None:
        """Return the output other than `exclude` with the highest score; None if there is none."""


def _kernel_row(joint_kernel: JointKernel, pair: Pair, others: Sequence[Pair]) -> Array:
    """Kernel between a pair and others, or ParameterError where that is not a finite number."""
    values = [joint_kernel(pair, other) for other in others]
    try:
        row = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        row = np.full(len(others), math.nan)
    if row.shape != (len(others),) or not (abs(row) <= _MAX_KERNEL).all():
        raise ParameterError(
            f"joint_kernel must return a finite number for two pairs, not {values!r:.80} for a "
            f"pair with {len(others)} others"
        )
    return row


def _weighted_sum(coefficients: Array, terms: Array, magnitudes: Array) -> tuple[float, float]:
    """Sum of coefficient * term, 0 where that is rounding error; and a bound on that error."""
    total = float(coefficients @ terms)
    error_bound = RELATIVE_TOLERANCE * float(abs(coefficients) @ magnitudes)
    return (0.0 if abs(total) <= error_bound else total), error_bound


class Score:
    """The hypothesis at one input, as `StructuredProjectron` gives it to the argmax.

    Called with a candidate output ``y``, it returns ``f(x, y)``. That takes a kernel value for each
    support, but none if the candidate comes again. A decoder that does not try candidates one by
    one computes its potentials from `supports`.

    Attributes
    ----------
    supports : list of ((x, y), coefficient)
        The supports and their coefficients, ``f = sum_i coefficient_i k((x_i, y_i), .)``.
    """

    def __init__(
        self,
        x: Any,
        joint_kernel: JointKernel,
        pairs: list[Pair],
        coefficients: Array,
    ) -> None:
        self._x = x
        self._joint_kernel = joint_kernel
        self._pairs = pairs
        self._coefficients = coefficients
        self._rows: dict[Hashable, Array] = {}

    def __call__(self, y: Hashable) -> float:
        """Score of an output."""
        row = self.row(y)
        return _weighted_sum(self._coefficients, row, abs(row))[0]

    def row(self, y: Hashable) -> Array:
        """Kernel between the input with an output and each support."""
        if y not in self._rows:
            self._rows[y] = _kernel_row(self._joint_kernel, (self._x, y), self._pairs)
        return self._rows[y]

    @property
    def supports(self) -> list[tuple[Pair, float]]:
        """The supports and their coefficients, the oldest first."""
        return list(zip(self._pairs, self._coefficients.tolist(), strict=True))


class StructuredProjectron(Guarded, Cloned, base.Estimator):
    """Projectron++ over a joint kernel of inputs and outputs, with your argmax.

    The hypothesis ``f(x, y) = sum_i alpha_i k((x_i, y_i), (x, y))`` scores an output for an input.
    The prediction is the output with the highest score. An example ``(x, y)`` is learnt against the
    best *other* output ``y'``. Its margin is ``f(x, y) - f(x, y')``, its loss ``l = 1 - margin``,
    and its update ``a = k((x, y), .) - k((x, y'), .)``. Let ``P a`` be the projection of the update
    onto the span of the supports, and ``delta`` its error.

    - On a mistake, a margin of at most 0, ``P a`` is added to the hypothesis if ``||delta||`` is at
      most the tolerance. Otherwise ``a`` itself is added, and both pairs become supports.
    - On a margin in (0, 1), if ``||delta|| / eta < l``, ``tau P a`` is added, where ``tau`` is the
      smallest of ``l / ||P a||^2``, ``2 (l - ||delta|| / eta) / ||P a||^2`` and 1. No pair becomes
      a support.

    Parameters
    ----------
    joint_kernel
        Called as ``joint_kernel((x, y), (x2, y2))``, a positive semidefinite function of two pairs
        of an input and an output, which returns a number.
    argmax
        Called as ``argmax(x, score, exclude=y)``; returns the output, other than `exclude`, with
        the highest `score`, or None if there is no other. `exclude` is None for a prediction, and
        the true output while learning. `score` is a `Score`: ``score(y)`` is the score of a
        candidate, and ``score.supports`` has the pairs for a decoder's potentials.
    tolerance
        The paper's ``eta``, at least 0, in units of ``sqrt(k)``: the largest error that the
        projection of a mistake may make. With 0 only updates that the supports span are projected.
    squared
        Use ``||delta||^2`` for ``||delta||`` throughout, as the paper's printed experiments did,
        instead of ``||delta||``, as its figures and theorems do.

    Attributes
    ----------
    n_mistakes : int
        Number of examples learnt whose output did not score above all others before the update.
    n_updates : int
        Number of examples that were added to the hypothesis, projected or not.

    Raises
    ------
    ParameterError
        If `joint_kernel` or `argmax` cannot be called or `tolerance` is not a number of at least 0;
        when learning or predicting, if the kernel returns no finite number, or the argmax the
        excluded output or one that is unhashable.

    Notes
    -----
    Inputs may be anything; a support keeps a deep copy. Outputs are compared by ``==`` and must be
    hashable: a tuple or a string, not a list. Before anything is learnt all scores are 0, and the
    prediction is what the argmax then returns.

    An argmax over few outputs is ``max((y for y in outputs if y != exclude), key=score)``. An
    argmax over sequences must find the best two, because one may be excluded: docs/structured.md
    has a Viterbi decoder that does. An argmax that is not exact costs accuracy, but breaks nothing.

    The mistake bound holds if ``||k((x, y), .)|| <= 1/2``. The loss asks for a margin of 1,
    whatever the kernel's scale. If the kernel sums over long sequences, divide it by a constant.

    For ``m`` supports, a mistake or small margin takes O(m^2) time and O(m) kernel values, and the
    factor of the supports' Gram matrix O(m^2) memory. If the error of a mistake exceeds the
    tolerance, both pairs become supports, except one that the supports span. With a kernel of ``d``
    features there are at most ``d`` supports. Errors up to 2^-40 of the squares count as 0, and so
    does an excess over the tolerance by as much.

    With ``k((x, y), (x', y')) = [y = y'] k(x, x')`` this is the multiclass `ProjectronPlusPlus`,
    which is faster. A model can be pickled if its kernel and argmax can. Functions defined by
    ``def`` in a module can, a lambda cannot.

    See Also
    --------
    ProjectronPlusPlus : The same for two classes or more.

    References
    ----------
    .. [1] F. Orabona, J. Keshet, B. Caputo, "Bounded kernel-based online learning", Journal of
       Machine Learning Research 10 (2009), section 5, lemma 5 and theorem 6; section 7.

    Examples
    --------
    Learn to sort. The output is the order of the positions, and one example is enough:

    >>> from itertools import permutations
    >>> from drift.models import StructuredProjectron
    >>> def feature(x, order):
    ...     return sum(place * x[i] for place, i in enumerate(order))
    >>> def joint_kernel(pair, other):
    ...     return feature(*pair) * feature(*other)
    >>> def argmax(x, score, exclude=None):
    ...     return max((y for y in permutations(range(len(x))) if y != exclude), key=score)
    >>> model = StructuredProjectron(joint_kernel, argmax)
    >>> model.learn_one((0.2, 0.9, 0.5), (0, 2, 1))
    >>> model.predict_one((0.7, 0.1, 0.4, 0.3))
    (1, 3, 2, 0)
    >>> model.n_supports, model.n_mistakes
    (1, 1)
    """

    _stored_names: ClassVar = {"_coefficients": "_weights"}

    def __init__(
        self,
        joint_kernel: JointKernel,
        argmax: Argmax,
        tolerance: float = 0.1,
        squared: bool = False,  # noqa: FBT001, FBT002 - River passes parameters by name
    ) -> None:
        for name, function in (("joint_kernel", joint_kernel), ("argmax", argmax)):
            if not callable(function):
                raise ParameterError(f"{name} must be a function, not {function!r:.80}")
        check_number("tolerance", tolerance)
        super().__init__()
        self.joint_kernel = joint_kernel
        self.argmax = argmax
        self.tolerance = tolerance
        self.squared = squared
        self.n_mistakes = 0
        self.n_updates = 0
        self._pairs: list[Pair] = []  # the supports, the oldest first
        self._coefficients: Array = np.zeros(0)
        self._span = ClassProjector()

    def _score(self, x: Any) -> Score:
        return Score(x, self.joint_kernel, self._pairs, self._coefficients)

    def _best(self, x: Any, score: Score, exclude: Hashable | None) -> Hashable | None:
        """Best output, or best one other than `exclude`."""
        best = self.argmax(x, score, exclude=exclude)
        try:
            hash(best)
        except TypeError:
            raise ParameterError(
                f"argmax returned {best!r:.80}, which is unhashable: return a string or a tuple"
            ) from None
        return best

    def _rival(self, x: Any, score: Score, y: Hashable) -> Hashable | None:
        """Best output other than the true one."""
        rival = self._best(x, score, y)
        if rival == y:
            raise ParameterError(f"argmax returned {rival!r:.80}, which it was told to exclude")
        return rival

    # --- one example ---------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Hashable, w: float = 1.0) -> None:
        """Learn one example. If the argmax finds no other output, this changes nothing.

        Parameters
        ----------
        x
            Input.
        y
            True output.
        w
            Weight, 0 or a positive number. It multiplies the update of a mistake, and ``tau`` is at
            most `w` instead of 1. An example of weight 0 changes nothing.

        Raises
        ------
        LabelError
            If `y` is None or unhashable.
        ParameterError
            If `w` is not a weight, or the kernel or the argmax returns what it must not; the model
            stays as it was.
        """
        if w := weight_of(w):
            check_class(y)
            self._guard.update(self, self._learn, x, y, w)

    def _learn(self, x: Any, y: Hashable, w: float) -> None:
        score = self._score(x)
        rival = self._rival(x, score, y)
        if rival is None:
            return
        true, best = score.row(y), score.row(rival)
        margin, error_bound = _weighted_sum(self._coefficients, true - best, abs(true) + abs(best))
        loss = 1.0 - margin
        if margin > 0.0 and loss <= error_bound:  # a mistake is one, however large its terms are
            return
        kernel, pair, rivals = self.joint_kernel, (x, y), (x, rival)
        self_kernel, shared = _kernel_row(kernel, pair, [pair, rivals]).tolist()
        [rival_self] = _kernel_row(kernel, rivals, [rivals]).tolist()
        projection = self._project(
            true - best, self_kernel + rival_self - 2.0 * shared, self_kernel + rival_self
        )
        if margin > 0.0:
            tau = margin_step(
                loss, [projection], self.tolerance, error_bound, w, squared=self.squared
            )
            if tau > 0.0:
                self._span.absorb(self._coefficients, projection, tau)
                self.n_updates += 1
            return
        if within(self.tolerance, [projection], squared=self.squared):
            self._span.absorb(self._coefficients, projection, w)
        else:
            additions = [(y, true, self_kernel, w), (rival, best, rival_self, -w)]
            self._insert(copy.deepcopy(x), additions, shared)
        self.n_mistakes += 1
        self.n_updates += 1

    def _project(self, row: Array, self_kernel: float, size: float) -> Projection:
        """Project the difference of two pairs, whose self-kernels add up to `size`."""
        if self_kernel <= RELATIVE_TOLERANCE * size:  # the kernel does not tell the pairs apart
            row, self_kernel = 0.0 * row, 0.0
        projection = self._span.project(row, self_kernel)
        if projection.squared_error <= RELATIVE_TOLERANCE * size:
            projection = projection._replace(squared_error=0.0)
        return projection

    def _insert(
        self, x: Any, additions: list[tuple[Hashable, Array, float, float]], shared: float
    ) -> None:
        """Add both pairs: output, kernel to the supports and to itself, and coefficient of each.

        `shared` is the kernel between the two. A pair that the supports span makes no support.
        """
        for y, row, self_kernel, coefficient in additions:
            if len(row) < len(self._pairs):  # the first has become a support
                row = np.append(row, shared)  # noqa: PLW2901
            projection = self._span.project(row, self_kernel)
            if projection.squared_error > 0.0:
                self._span.insert(len(self._pairs), projection, self._guard)
                self._pairs.append((x, y))
                self._coefficients = np.append(self._coefficients, coefficient)
            else:
                self._span.absorb(self._coefficients, projection, coefficient)

    @alone
    def predict_one(self, x: Any, **kwargs: Any) -> Hashable | None:
        """Predict the output of one input: what the argmax returns.

        Parameters
        ----------
        x
            Input.
        **kwargs
            Ignored; River passes them on.

        Returns
        -------
        output
            The best output under the hypothesis.

        Raises
        ------
        ParameterError
            If the kernel or the argmax returns what it must not.
        """
        return self._best(x, self._score(x), None)

    @alone
    def decision_function_one(self, x: Any, y: Hashable) -> float:
        """Score ``f(x, y)`` of an input with an output.

        Parameters
        ----------
        x
            Input.
        y
            Output.

        Returns
        -------
        float
            Score, in the kernel's scale.
        """
        check_class(y)
        return self._score(x)(y)

    @property
    def n_supports(self) -> int:
        """Number of supports: pairs of an input and an output."""
        return len(self._pairs)

    @property
    @alone
    def supports(self) -> list[tuple[Pair, float]]:
        """The supports ``(x, y)`` and their coefficients, the oldest first."""
        return self._score(None).supports
