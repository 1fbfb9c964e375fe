"""The tracker's constants and parameters, and the order of its members."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "ADAGRAD",
    "BIAS",
    "CLIP",
    "DESCENT",
    "DRAWS",
    "EVEN",
    "FLOORS",
    "GATES",
    "INSERTION",
    "KALMAN",
    "KNOTS",
    "LATE_RATE",
    "LATE_SHARE",
    "LATE_VOTE",
    "MAPS",
    "MAP_SHARE",
    "MEMORY",
    "MOST",
    "N_GATES",
    "N_LINEAR",
    "N_SPLINES",
    "PAIRED",
    "PAIR_KNOTS",
    "PATIENCE",
    "PATIENCE_BY_WEIGHT",
    "SECOND_ORDER",
    "SLOPES",
    "SLOWLY",
    "SOON",
    "SPLINED",
    "SPLINES",
    "VOTE",
    "Plan",
]

#: Largest weight of an example, learning rate and `gamma` of a kernel: with what is far above,
#: float32 coefficients and kernel values would overflow.
MOST = 1e6
#: Insertion where an example's loss is above this share of the running mean loss, which forgets
#: at this rate.
INSERTION, MEMORY = 0.25, 0.999
#: Share of the coefficients that an insertion takes: times the budget, of experts that forget
#: slowly; times the learning rate and the budget's root, of the others: large steps write over what
#: is wrong, so that fast experts need to forget less.
SLOWLY, SOON = 0.05, 0.75
#: Least probability that a member gives a class.
CLIP = 1e-3
#: What a mistake takes from a member's logarithmic weight in the vote.
VOTE = 0.2
#: Where labels come late: what a mistake takes there, the rate of the weights by log loss, and the
#: share that goes round. As the last labels were unknown to the forecasts, who was right then says
#: little of who is right now, and more of who is in the long run.
LATE_VOTE, LATE_RATE, LATE_SHARE = 0.02, 0.05, 1e-4
#: Supports that are drawn, of which the cheapest is evicted.
DRAWS = 16
#: Rates of the gates that go by gradients.
GATES = (0.1,)
#: Of the gate of second order, a Kalman filter of weights that walk: variance at first, what an
#: example adds to it, and the most there is of it.
SECOND_ORDER = (0.01, 1e-5, 0.1)
#: Rates of the linear experts: two by stochastic gradient descent, over dense rows and over sparse
#: ones, and one by diagonal AdaGrad.
DESCENT, ADAGRAD = ((0.3, 3.0), (0.8, 8.0)), 0.25
#: What the bias counts as a feature in gradient descent over either. It is in every example, and
#: the words of a text in few: at a rate that suits them it would swing from class to class.
BIAS = (1.0, 0.2)
#: Over sparse rows, log loss in nats by which the slower of these may fall behind the faster one,
#: whose weights it takes over then, and that one behind the last gate, when it begins anew; and the
#: same for each weight, where that is more: so to write them all costs little beside the examples
#: in between.
PATIENCE, PATIENCE_BY_WEIGHT = 15.0, 1e-3
#: Of the linear expert by a diagonal Kalman filter: variance at first, what an example adds.
KALMAN = (10.0, 0.003)
#: What an example adds to the variance of a weight in each spline, a diagonal Kalman filter, too.
SPLINES = (1e-4, 0.01)
#: Knots of a dense feature, half a deviation apart, and number of the features that have them.
KNOTS, SPLINED = 9, 256
#: Knots of a surface along each of its two features, a deviation apart; number of the features
#: whose pairs have surfaces; and of the knots of all of these.
PAIR_KNOTS, PAIRED = 5, 16
SURFACES = PAIR_KNOTS * PAIR_KNOTS * (PAIRED * (PAIRED - 1) // 2)
#: Numbers of linear experts, of splines and of gates.
N_LINEAR, N_SPLINES, N_GATES = len(DESCENT[0]) + 2, len(SPLINES), len(GATES) + 1
#: Maps from the mixture to the probabilities that are shown, one for each slope and floor: slope
#: times the log-odds, mixed with equal chances by the share that is the floor. One more has as its
#: slope the log-odds of the likeliest class, at least 1, divided by those that it leaves as they
#: are. Of the weights a share goes round. At first half is with the identity, the first map.
SLOPES, FLOORS, EVEN, MAP_SHARE = (1, 2, 4), (0.0, 0.1, 0.2, 0.4), 2.5, 3e-4
MAPS = (0.5, *[0.5 / (len(SLOPES) * len(FLOORS))] * (len(SLOPES) * len(FLOORS)))


class Plan(NamedTuple):
    """Parameters of a tracker.

    Members are numbered in one order everywhere: the experts, for each of `kernels` one of each of
    `rates`; the linear experts; the splines; the gates.

    Parameters
    ----------
    budget
        Largest number of supports.
    kernels
        0 for the linear kernel, else the width `gamma` of ``exp(-gamma |a - b|^2)``.
    rates
        Learning rates of a kernel's experts.
    lost
        Share of the coefficients of each that an insertion takes.
    share
        Share of the weights that is spread over all members at each example.
    vote
        Predict by the vote; else the class of the largest probability.
    splines
        Have splines at all.
    pairs
        Have surfaces in them, unless examples have too many features.
    """

    budget: int
    kernels: tuple[float, ...]
    rates: tuple[float, ...]
    lost: tuple[float, ...]
    share: float
    vote: bool
    splines: bool
    pairs: bool

    @property
    def n_experts(self) -> int:
        """Number of experts over the supports."""
        return len(self.kernels) * len(self.rates)

    @property
    def n_splines(self) -> int:
        """Number of splines."""
        return N_SPLINES if self.splines else 0

    def n_knots(self, n_names: int, *, pairs: bool) -> int:
        """Number of the weights of a spline but its bias, over so many dense names.

        Where there are surfaces they are behind room for the curves of the names that have them,
        and before the other curves: so nothing moves as names join.
        """
        if not self.splines:
            return 0
        if not pairs or not n_names:
            return KNOTS * min(n_names, SPLINED)
        curves, paired = max(min(n_names, SPLINED), PAIRED), min(n_names, PAIRED)
        return KNOTS * curves + PAIR_KNOTS * PAIR_KNOTS * (paired * (paired - 1) // 2)

    def has_surfaces(self, n_names: int, n_cells: int) -> bool:
        """Whether so many cells of a spline, over so many names, have surfaces among them."""
        return self.pairs and (not n_names or n_cells != 1 + self.n_knots(n_names, pairs=False))

    @property
    def n_members(self) -> int:
        """Number of all members of the list."""
        return self.n_experts + N_LINEAR + self.n_splines + N_GATES
