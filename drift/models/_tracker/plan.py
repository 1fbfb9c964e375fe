"""The tracker's constants and parameters, and the order of its members."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "CLIP",
    "DRAWS",
    "GATES",
    "INSERTION",
    "KALMAN",
    "LINEAR",
    "MEMORY",
    "N_GATES",
    "N_LINEAR",
    "SECOND_ORDER",
    "VOTE",
    "Plan",
]

#: Insertion where an example's loss is above this share of the running mean loss, which forgets
#: at this rate.
INSERTION, MEMORY = 0.25, 0.999
#: Least probability that a member gives a class.
CLIP = 1e-3
#: What a mistake takes from a member's logarithmic weight in the vote.
VOTE = 0.2
#: Supports that are drawn, of which the cheapest is evicted.
DRAWS = 16
#: Rates of the gates that go by gradients.
GATES = (0.1,)
#: Of the gate of second order, a Kalman filter of weights that walk: variance at first, what an
#: example adds to it, and the most there is of it.
SECOND_ORDER = (0.01, 1e-5, 0.1)
#: Rates of the linear experts: two by stochastic gradient descent, one by diagonal AdaGrad.
LINEAR = (0.3, 3.0, 0.25)
#: Of the linear expert by a diagonal Kalman filter: variance at first, what an example adds.
KALMAN = (10.0, 0.003)
#: Numbers of linear experts and of gates.
N_LINEAR, N_GATES = len(LINEAR) + 1, len(GATES) + 1


class Plan(NamedTuple):
    """Parameters of a tracker.

    Members are numbered in one order everywhere: the experts, one for each of `kernels` x `rates` x
    `forgetting`, the last of them first; the linear experts; the gates.

    Parameters
    ----------
    budget
        Largest number of supports.
    kernels
        0 for the linear kernel, else the width `gamma` of ``exp(-gamma |a - b|^2)``.
    rates
        Learning rates.
    forgetting
        Share of the coefficients that an insertion takes from them, times the budget.
    share
        Share of the weights that is spread over all members at each example.
    vote
        Predict by the vote; else the class of the largest probability.
    """

    budget: int
    kernels: tuple[float, ...]
    rates: tuple[float, ...]
    forgetting: tuple[float, ...]
    share: float
    vote: bool

    @property
    def n_experts(self) -> int:
        """Number of experts over the supports."""
        return len(self.kernels) * len(self.rates) * len(self.forgetting)

    @property
    def n_members(self) -> int:
        """Number of all members of the list."""
        return self.n_experts + N_LINEAR + N_GATES
