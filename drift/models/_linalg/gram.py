"""The inverse and the Cholesky factor of the Gram matrix, updated as supports come and go."""

from __future__ import annotations

import math
from functools import partial
from operator import setitem
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg

from drift.models._base.guard import Part
from drift.models._base.rounding import RELATIVE_TOLERANCE
from drift.models._store.check import check_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from drift.models._store.built import Guard

    Array = NDArray[np.float64]

__all__ = ["GramFactor", "InverseGram"]

#: After so many supports the inverse is checked, and computed afresh if it is off by more.
_CHECK_EVERY = 64
_TOLERANCE = 1e-8
#: Trace over ridge, a bound on the condition number, from which on solutions are refined: rounding
#: errors of the inverse are its square times a unit in the last place.
_ILL_CONDITIONED = 1e5

#: Share of k(x, x) below which a square may be rounding error.
_DOUBTFUL = 2.0**-16
#: Share of a projection's norm within which a term of it is rounding error. What a projection may
#: leave over as a matter of rounding, 2^-20 of the norm, is far more.
_NEGLIGIBLE = 2.0**-36
#: Rounding error of a kernel value, some units in the last place.
_UNIT = 2.0**-48


class InverseGram(Part):
    """``(ridge I + G)^{-1}`` over the supports, by their slots.

    Both matrices are kept, in their lower triangles; rows and columns of free slots are zero. A
    change is one symmetric rank-one update in place, O(m^2).

    Parameters
    ----------
    ridge
        Added to the diagonal, at least 0; divided by a support's weight.

    Attributes
    ----------
    capacity : int
        Length of the methods' rows, which are zero after the last slot.
    """

    #: Its matrices are replaced, or changed at the end of an update, by `Guard.defer`.
    _not_copied = frozenset({"_gram", "_inverse"})

    _ill_conditioned = False
    _weight = 1.0  # of the support to insert
    _heaviest = 1.0  # the largest weight so far, or 1

    def __init__(self, ridge: float) -> None:
        self.ridge = ridge
        self.capacity = 0
        self._gram = np.zeros((0, 0), order="F")
        self._inverse = np.zeros((0, 0), order="F")
        self._inserted = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set_attributes(state)
        for name in ("_gram", "_inverse"):
            check_array(name, state[name], (self.capacity, self.capacity), fortran=True)

    def slots(self) -> list[int]:
        """Return the supports' slots."""
        return np.flatnonzero(self._gram.diagonal()).tolist()

    def reserve(self, slots: int) -> bool:
        """Make room for a number of slots, before an update changes anything; whether it grew."""
        if slots <= self.capacity:
            return False
        before, self.capacity = self.capacity, max(16, slots, self.capacity * 5 // 4)
        for name in ("_gram", "_inverse"):
            wider = np.zeros((self.capacity, self.capacity), order="F")
            wider[:before, :before] = getattr(self, name)
            setattr(self, name, wider)
        return True

    def prepare(self, self_kernel: float, weight: float = 1.0) -> bool:
        """Get ready for an insertion, and an eviction before it.

        Parameters
        ----------
        self_kernel
            Kernel between the example and itself.
        weight
            Weight of the example, positive.

        Returns
        -------
        bool
            Whether the inverse was recomputed; values updated beside it should be, too.
        """
        self._weight = weight
        self._heaviest = max(self._heaviest, weight)
        # numpy 2.2 aborts the process if `trace` is out of memory.
        trace = np.add.reduce(self._gram.diagonal())
        largest = self._heaviest * (trace + self.ridge / weight + self_kernel)
        self._ill_conditioned = bool(largest > _ILL_CONDITIONED * self.ridge)
        if self._ill_conditioned:  # the update needs products with the changed matrices
            self._gram, self._inverse = self._gram.copy("F"), self._inverse.copy("F")
        return (
            self._inserted > 0 and self._inserted % _CHECK_EVERY == 0 and self._recompute_if_off()
        )

    def times(self, row: Array) -> Array:
        """Inverse times a row."""
        if not self.capacity:
            return row
        return linalg.blas.dsymv(1.0, self._inverse, row, lower=1)

    def _residual(self, row: Array, solution: Array) -> Array:
        """Residual of a solution."""
        return linalg.blas.dsymv(-1.0, self._gram, solution, beta=1.0, y=row, lower=1)

    def refine(self, solution: Array, row: Array) -> Array:
        """Improve ``times(row)`` by two steps of iterative refinement, if ill-conditioned."""
        if self._ill_conditioned:
            for _ in range(2):
                solution = solution + self.times(self._residual(row, solution))
        return solution

    def schur(self, self_kernel: float, row: Array, solution: Array, weight: float = 1.0) -> float:
        """``ridge / weight + self_kernel - row . solution``, bounded from below against rounding.

        Parameters
        ----------
        self_kernel
            Kernel between a point and itself.
        row
            Kernel between it and the supports.
        solution
            ``times(row)``, refined.
        weight
            Weight of the point, positive.
        """
        if self._ill_conditioned:
            row = row + self._residual(row, solution)  # its error counts by its square
        # Without weights it is ridge (1 + ||solution||^2) and the squared distance from the sum.
        least = self.ridge * (1.0 / weight + float(solution @ solution) / self._heaviest)
        return max(self.ridge / weight + self_kernel - float(row @ solution), least)

    def _apply_or_defer(
        self, guard: Guard, call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> None:
        """Change a matrix at the end of the update; at once if it is a copy."""
        if self._ill_conditioned:
            call(*args, **kwargs)
        else:
            guard.defer(partial(call, *args, **kwargs))

    def insert(self, slot: int, row: Array, solution: Array, schur: float, guard: Guard) -> None:
        """Add a support.

        The inverse grows by ``d d' / schur`` with ``d`` the `solution`, -1 in the slot.

        Parameters
        ----------
        slot
            Its slot, free until now.
        row
            Kernel between it and the others, and itself.
        solution
            ``times(row)`` without itself, refined.
        schur
            `schur` of it, positive.
        guard
            The guard of the model.
        """
        column = np.where(self._gram.diagonal() != 0.0, row, 0.0)
        column[slot] = self.ridge / self._weight + row[slot]
        self._apply_or_defer(guard, setitem, self._gram, (slot, slice(slot)), column[:slot])
        self._apply_or_defer(guard, setitem, self._gram, (slice(slot, None), slot), column[slot:])
        direction = solution.copy()
        direction[slot] = -1.0
        self._add_rank_one(1.0 / schur, direction, guard)
        self._inserted += 1

    def remove(self, slot: int, guard: Guard) -> Array:
        """Forget the support in a slot.

        Returns
        -------
        ndarray of shape (capacity,)
            The inverse's column of the slot, divided by the element on the diagonal, ``u``. With it
            the product with any ``v`` follows once the slot's element of ``v`` is left out: that
            before, less ``u`` times its element in the slot.
        """
        column = self._column(self._inverse, slot)
        self._add_rank_one(-1.0 / column[slot], column, guard)
        for matrix in (self._inverse, self._gram):
            self._apply_or_defer(guard, setitem, matrix, (slot, slice(slot)), 0.0)
            self._apply_or_defer(guard, setitem, matrix, (slice(slot, None), slot), 0.0)
        return column / float(column[slot])

    def _add_rank_one(self, factor: float, direction: Array, guard: Guard) -> None:
        matrix = self._inverse
        assert matrix.flags.f_contiguous  # noqa: S101  (of another BLAS would change a copy)
        self._apply_or_defer(
            guard, linalg.blas.dsyr, factor, direction, lower=1, a=matrix, overwrite_a=1
        )

    def _column(self, matrix: Array, slot: int) -> Array:
        return np.concatenate([matrix[slot, :slot], matrix[slot:, slot]])

    def _recompute_if_off(self) -> bool:
        slots = self.slots()
        # One column of K K^{-1} tells; a full check would cost m^3.
        slot = slots[self._inserted // _CHECK_EVERY % len(slots)]
        product = linalg.blas.dsymv(1.0, self._gram, self._column(self._inverse, slot), lower=1)
        product[slot] -= 1.0
        if np.abs(product).max() <= _TOLERANCE:
            return False
        square = np.ix_(slots, slots)
        # By Cholesky's factor: elimination with pivots has larger rounding errors, not symmetric.
        inverse, broke_down = linalg.lapack.dpotrf(self._gram[square], lower=1)
        if not broke_down:
            inverse, broke_down = linalg.lapack.dpotri(inverse, lower=1)
        if broke_down:  # because the "kernel" is not positive definite
            lower = self._gram[square]
            inverse = linalg.inv(np.tril(lower) + np.tril(lower, -1).T)
        self._inverse = np.zeros_like(self._gram, order="F")
        self._inverse[square] = inverse
        return True


class GramFactor(Part):
    """Cholesky factor ``L`` of the supports' Gram matrix, ``G = L L'``, in order of insertion.

    For supports that are never evicted. An insertion appends the row ``(z, distance)`` and leaves
    the others as they are, so that rounding errors do not pile up: after any number of insertions
    ``L`` is as good as one computed afresh, and never needs to be.
    """

    _not_copied = frozenset({"_lower"})

    def __init__(self) -> None:
        # Beyond the supports L is the identity, so that BLAS can solve with the whole array. In
        # Fortran order it is not copied for that.
        self._lower = np.eye(16, order="F")
        self._lengths = np.ones(16)  # sqrt(k(x_i, x_i)) of the supports
        self._size = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set_attributes(state)
        check_array("_lower", self._lower, (self.capacity, self.capacity), fortran=True)
        check_array("_lengths", self._lengths, (self.capacity,))

    @property
    def capacity(self) -> int:
        """Length of the methods' rows, which are zero after the last support."""
        return len(self._lower)

    def whiten(self, row: Array) -> Array:
        """``L^{-1} row``, written into `row`: the point in an orthonormal basis of the span.

        If `row` is the kernel between a point and the supports, the squared length of the result is
        the squared length of the point's projection onto their span.
        """
        return linalg.blas.dtrsv(self._lower, row, lower=1, overwrite_x=1)

    def coefficients(self, whitened: Array) -> Array:
        """``L'^{-1} whitened``: coefficients of the supports in the projection, ``G^{-1} row``.

        Terms that are rounding error beside the projection are 0: over supports that the point has
        nothing to do with they would, alone, decide the sign of a score.
        """
        values = linalg.blas.dtrsv(self._lower, whitened, lower=1, trans=1)
        least = _NEGLIGIBLE * float(np.linalg.norm(whitened))
        values[np.abs(values) * self._lengths <= least] = 0.0
        return values

    def residual(self, whitened: Array, self_kernel: float) -> float:
        """Squared distance of a point from the supports' span, 0 where it is rounding error.

        Parameters
        ----------
        whitened
            `whiten` of the kernel between it and the supports.
        self_kernel
            Kernel between it and itself.
        """
        distance = self_kernel - float(whitened @ whitened)
        # Written so that the result is 0 if the "kernel" gives NaN or negative squares.
        if not distance > RELATIVE_TOLERANCE * self_kernel:
            return 0.0
        if distance < _DOUBTFUL * self_kernel:
            # The error comes from k(x, x) and from each term of the projection, which may be long.
            terms = math.sqrt(self_kernel) + float(
                np.abs(self.coefficients(whitened)) @ self._lengths
            )
            if distance <= _UNIT * terms * terms:
                return 0.0
        return distance

    def append(self, whitened: Array, distance: float, guard: Guard) -> None:
        """Add a support.

        Parameters
        ----------
        whitened
            `whiten` of the kernel between it and the others.
        distance
            Its distance from their span, positive: the root of `residual`.
        guard
            The guard of the model that has the supports.
        """
        size = self._size
        if size == self.capacity:
            wider = np.eye(size * 5 // 4, order="F")
            wider[:size, :size] = self._lower
            self._lower = wider
            self._lengths = np.pad(self._lengths, (0, len(wider) - size), constant_values=1.0)
        guard.save(self._lower.T, size)
        self._lower[size, :size] = whitened[:size]
        self._lower[size, size] = distance
        self._lengths[size] = math.hypot(float(np.linalg.norm(whitened)), distance)
        self._size += 1
