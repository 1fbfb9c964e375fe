"""Kernels: functions of an inner product and two squared norms, with no state of their own.

A kernel is any picklable object that is called as ``kernel(dot, sq_a, sq_b)`` with
``dot = <a, b>``, ``sq_a = |a|^2`` and ``sq_b = |b|^2`` (floats, or numpy arrays elementwise) and
returns ``k(a, b)``. A frozen dataclass of one's own will do:

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Cosine:
...     def __call__(self, dot, sq_a, sq_b):
...         return dot / (sq_a * sq_b) ** 0.5

It may carry an attribute ``bound``, the largest value of ``k(x, x)``, for the algorithms whose
analysis scales the kernel to ``k(x, x) <= 1`` (the Forgetron); without it they use the largest
value met so far. The three kernels below are the ones that the store computes in compiled code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from drift._checks import check_integer, check_number

__all__ = ["DEFAULT_KERNEL", "RBF", "Kernel", "Linear", "Polynomial"]


@runtime_checkable
class Kernel(Protocol):
    """What the models ask of a kernel: a call with an inner product and two squared norms."""

    def __call__(self, dot: Any, sq_a: Any, sq_b: Any) -> Any:
        """Return ``k(a, b)`` from ``<a, b>``, ``|a|^2`` and ``|b|^2``, elementwise on arrays."""


def _cosine(dot: Any, sq_a: Any, sq_b: Any) -> Any:
    """Inner product of the instances scaled to unit norm; a zero instance stays zero."""
    norms = sq_a**0.5 * sq_b**0.5
    return dot / (norms + (norms == 0))


def _unit(squared_norm: Any) -> Any:
    """Squared norm of an instance scaled to unit norm: 1, or 0 for the zero instance."""
    return (squared_norm > 0) * 1.0


@dataclass(frozen=True)
class Linear:
    """Inner product, ``k(a, b) = <a, b>``.

    Parameters
    ----------
    normalize
        Divide each instance by its Euclidean norm first; a zero instance stays zero.

    Examples
    --------
    >>> Linear()(6.0, 4.0, 9.0)
    6.0
    >>> Linear(normalize=True)(6.0, 4.0, 9.0)
    1.0
    """

    normalize: bool = False

    def __call__(self, dot: Any, sq_a: Any, sq_b: Any) -> Any:
        """Return ``k(a, b)`` from ``<a, b>``, ``|a|^2`` and ``|b|^2``."""
        return _cosine(dot, sq_a, sq_b) if self.normalize else dot

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
        Divide each instance by its Euclidean norm first; a zero instance stays zero.

    Raises
    ------
    ParameterError
        If `degree` is not an integer of at least 1, or `coef0` is negative or not finite.

    Examples
    --------
    >>> Polynomial(degree=2)(3.0, 9.0, 1.0)
    16.0
    >>> Polynomial(normalize=True).bound
    16.0
    """

    degree: int = 4
    coef0: float = 1.0
    normalize: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check_integer("degree", self.degree))
        check_number("coef0", self.coef0)

    def __call__(self, dot: Any, sq_a: Any, sq_b: Any) -> Any:
        """Return ``k(a, b)`` from ``<a, b>``, ``|a|^2`` and ``|b|^2``."""
        if self.normalize:
            dot = _cosine(dot, sq_a, sq_b)
        return (dot + self.coef0) ** self.degree

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
        Divide each instance by its Euclidean norm first; a zero instance stays zero.

    Raises
    ------
    ParameterError
        If `gamma` is not a positive finite number.

    Examples
    --------
    >>> RBF(gamma=0.5)(1.0, 1.0, 1.0)
    1.0
    >>> RBF(gamma=0.5)(0.0, 1.0, 1.0)
    0.3678
    """

    gamma: float = 1.0
    normalize: bool = False

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, above=True)

    def __call__(self, dot: Any, sq_a: Any, sq_b: Any) -> Any:
        """Return ``k(a, b)`` from ``<a, b>``, ``|a|^2`` and ``|b|^2``."""
        if self.normalize:
            dot, sq_a, sq_b = _cosine(dot, sq_a, sq_b), _unit(sq_a), _unit(sq_b)
        distance = sq_a + sq_b - 2.0 * dot  # rounding may leave it a hair below zero
        distance = (distance + abs(distance)) / 2.0
        return math.e ** (-self.gamma * distance)

    @property
    def bound(self) -> float:
        """Largest ``k(x, x)``: 1 for every instance."""
        return 1.0


#: What ``kernel=None`` means: the kernel of the tracking paper's experiments.
DEFAULT_KERNEL = Polynomial(degree=4, coef0=1.0, normalize=True)
