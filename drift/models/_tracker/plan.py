"""The parameters of a tracker."""

from __future__ import annotations

from typing import NamedTuple

from drift.models._tracker.tables import FAMILIES, OPTIONAL

__all__ = ["Plan"]

_WITHOUT_TREES = {name: own for name, own in FAMILIES.items() if name not in OPTIONAL}


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
    trees
        Whether there are members of trees.
    """

    budget: int
    kernels: tuple[float, ...]
    rates: tuple[float, ...]
    forgetting: tuple[float, ...]
    late: bool = False
    trees: bool = False

    @property
    def n_kernel_members(self) -> int:
        """Number of kernel members."""
        return len(self.kernels) * len(self.rates)

    @property
    def n_members(self) -> int:
        """Number of all members."""
        return self.n_kernel_members + sum(map(len, self.families.values()))

    @property
    def families(self) -> dict[str, tuple[str, ...]]:
        """Families of members in order, with their names."""
        return FAMILIES if self.trees else _WITHOUT_TREES
