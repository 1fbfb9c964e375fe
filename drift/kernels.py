"""Kernels: functions of an inner product and two squared norms, with no state of their own.

A kernel is any picklable object that is called as ``kernel(dot, squared_norm_a, squared_norm_b)``
with ``<a, b>``, ``|a|^2`` and ``|b|^2`` (floats, or numpy arrays elementwise) and returns
``k(a, b)``. A frozen dataclass of one's own will do:

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Cosine:
...     def __call__(self, dot, squared_norm_a, squared_norm_b):
...         return dot / (squared_norm_a * squared_norm_b) ** 0.5

It may carry an attribute ``bound``, the largest value of ``k(x, x)``, for the algorithms whose
analysis scales the kernel to ``k(x, x) <= 1`` (the Forgetron); without it they use the largest
value so far. The three kernels below are computed in compiled code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from drift._checks import check_integer, check_number
from drift.errors import ParameterError

__all__ = ["DEFAULT_KERNEL", "RBF", "Kernel", "Linear", "Polynomial"]


@runtime_checkable
class Kernel(Protocol):
    """What the models ask of a kernel: a call with an inner product and two squared norms."""

    def __call__(self, dot: Any, squared_norm_a: Any, squared_norm_b: Any) -> Any:
        """Return ``k(a, b)`` from ``<a, b>``, ``|a|^2`` and ``|b|^2``, elementwise on arrays."""


def _cosine(dot: Any, squared_norm_a: Any, squared_norm_b: Any) -> Any:
    """Inner product of the instances scaled to unit norm; a zero instance stays zero."""
    norms = squared_norm_a**0.5 * squared_norm_b**0.5
    return dot / (norms + (norms == 0))


def _unit(squared_norm: Any) -> Any:
    """Squared norm of an instance scaled to unit norm: 1, or 0 for the zero instance."""
    return (squared_norm > 0) * 1.0


def _check_normalize(normalize: Any) -> None:
    if not any(normalize == one for one in (False, True, "rows")):
        raise ParameterError(f"normalize must be True, False or 'rows', not {normalize!r:.80}")


@dataclass(frozen=True)
class Linear:
    """Inner product, ``k(a, b) = <a, b>``.

    Parameters
    ----------
    normalize
        True for the cosine, ``<a, b> / (|a| |b|)``, 0 for a zero instance; ``"rows"`` is the same.

    Raises
    ------
    ParameterError
        If `normalize` is none of True, False and ``"rows"``.

    Examples
    --------
    >>> Linear()(6.0, 4.0, 9.0)
    6.0
    >>> Linear(normalize=True)(6.0, 4.0, 9.0)
    1.0
    """

    normalize: Literal["rows"] | bool = False

    def __post_init__(self) -> None:
        _check_normalize(self.normalize)

    def __call__(self, dot: Any, squared_norm_a: Any, squared_norm_b: Any) -> Any:
        """Return ``k(a, b)`` from ``<a, b>``, ``|a|^2`` and ``|b|^2``."""
        return _cosine(dot, squared_norm_a, squared_norm_b) if self.normalize else dot

    @property
    def scales_rows(self) -> bool:
        """Whether only the direction of an example counts: rows are stored with unit norm."""
        return bool(self.normalize)

    @property
    def bound(self) -> float | None:
        """Largest ``k(x, x)``; None where there is no such bound."""
        return 1.0 if self.normalize else None


@dataclass(frozen=True)
class Polynomial:
    """Inhomogeneous polynomial, ``k(a, b) = (<a, b> + coef0) ** degree``.

    Parameters
    ----------
    degree
        Degree, an integer of at least 1.
    coef0
        Constant term, not negative (a negative one gives no positive semidefinite kernel).
    normalize
        True for the normalised kernel, ``K k(a, b) / sqrt(k(a, a) k(b, b))`` with ``K`` the value
        that ``k(u, u)`` has where ``|u| = 1``, ``(1 + coef0) ** degree``: so ``k(a, a)`` is `K` for
        every instance, and instances of unit norm have the values that they have without. How long
        an instance is still counts, beside the constant term; without one, a zero instance has 0.
        ``"rows"`` divides each instance by its Euclidean norm first, so that its length is lost; a
        zero instance stays zero.

    Raises
    ------
    ParameterError
        If `degree` is not an integer of at least 1, `coef0` is negative or not finite, or
        `normalize` is none of True, False and ``"rows"``.

    Examples
    --------
    >>> Polynomial(degree=2)(3.0, 9.0, 1.0)
    16.0
    >>> Polynomial(degree=2, normalize=True)(3.0, 9.0, 1.0)
    3.2
    >>> Polynomial(degree=2, normalize="rows")(3.0, 9.0, 1.0)
    4.0
    >>> Polynomial(normalize=True).bound
    16.0
    """

    degree: int = 4
    coef0: float = 1.0
    normalize: Literal["rows"] | bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check_integer("degree", self.degree))
        check_number("coef0", self.coef0)
        _check_normalize(self.normalize)

    def __call__(self, dot: Any, squared_norm_a: Any, squared_norm_b: Any) -> Any:
        """Return ``k(a, b)`` from ``<a, b>``, ``|a|^2`` and ``|b|^2``."""
        if self.scales_rows:
            return (_cosine(dot, squared_norm_a, squared_norm_b) + self.coef0) ** self.degree
        base = dot + self.coef0
        if self.normalize:
            unit = (1.0 + self.coef0) ** 0.5  # the root of a unit instance's own base
            base = base * (unit / (squared_norm_a + self.coef0) ** 0.5)
            base = base * (unit / (squared_norm_b + self.coef0) ** 0.5)
        return base**self.degree

    @property
    def scales_rows(self) -> bool:
        """Whether of an instance the direction is all that counts, as without a constant term."""
        return self.normalize == "rows" or bool(self.normalize and not self.coef0)

    @property
    def bound(self) -> float | None:
        """Largest ``k(x, x)``; None where there is no such bound."""
        return float((1.0 + self.coef0) ** self.degree) if self.normalize else None


@dataclass(frozen=True)
class RBF:
    """Gaussian radial basis function, ``k(a, b) = exp(-gamma |a - b|^2)``.

    Parameters
    ----------
    gamma
        Inverse squared width, positive.
    normalize
        ``"rows"`` to divide each instance by its Euclidean norm first; a zero instance stays zero.
        There is no True: ``k(x, x) = 1`` as it is.

    Raises
    ------
    ParameterError
        If `gamma` is not a positive finite number, or `normalize` is neither False nor ``"rows"``.

    Examples
    --------
    >>> RBF(gamma=0.5)(1.0, 1.0, 1.0)
    1.0
    >>> RBF(gamma=0.5)(0.0, 1.0, 1.0)
    0.3678
    """

    gamma: float = 1.0
    normalize: Literal["rows", False] = False

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, above=True)
        _check_normalize(self.normalize)
        if self.normalize and self.normalize != "rows":
            raise ParameterError(
                "RBF is normalised as it is, k(x, x) = 1: normalize='rows' also scales each "
                "example to unit norm"
            )

    def __call__(self, dot: Any, squared_norm_a: Any, squared_norm_b: Any) -> Any:
        """Return ``k(a, b)`` from ``<a, b>``, ``|a|^2`` and ``|b|^2``."""
        if self.normalize:
            dot = _cosine(dot, squared_norm_a, squared_norm_b)
            squared_norm_a, squared_norm_b = _unit(squared_norm_a), _unit(squared_norm_b)
        # Rounding may leave it a hair below zero.
        distance = squared_norm_a + squared_norm_b - 2.0 * dot
        distance = (distance + abs(distance)) / 2.0
        return math.e ** (-self.gamma * distance)  # of arrays, too, without importing numpy

    @property
    def scales_rows(self) -> bool:
        """Whether only the direction of an example counts: rows are stored with unit norm."""
        return bool(self.normalize)

    @property
    def bound(self) -> float:
        """Largest ``k(x, x)``: 1 for every instance."""
        return 1.0


#: What ``kernel=None`` means: the kernel of the tracking paper's experiments.
DEFAULT_KERNEL = Polynomial(degree=4, coef0=1.0, normalize=True)
