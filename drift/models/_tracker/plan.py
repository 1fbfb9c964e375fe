"""The parameters of a tracker."""

from __future__ import annotations

from typing import NamedTuple

from drift.models._tracker.tables import FAMILIES

__all__ = ["Plan"]

_OTHERS = sum(map(len, FAMILIES.values()))


class Plan(NamedTuple):
    """Parameters of a tracker.

    Kernel members are numbered by kernel, then in the order of `rates`.

    Parameters
    ----------
    budget
        Largest number of supports.
    kernels
        0 for the linear kernel, else `gamma` of ``exp(-gamma |a - b|^2)``.
    rates
        Learning rates of a kernel's members.
    forgetting
        Share of their coefficients that an insertion removes.
    late
        Whether labels come late, so that predictions leave tickets.
    """

    budget: int
    kernels: tuple[float, ...]
    rates: tuple[float, ...]
    forgetting: tuple[float, ...]
    late: bool = False

    @property
    def n_kernel_members(self) -> int:
        """Number of kernel members."""
        return len(self.kernels) * len(self.rates)

    @property
    def n_members(self) -> int:
        """Number of all members."""
        return self.n_kernel_members + _OTHERS
