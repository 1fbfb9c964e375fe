"""One list of members: their weights, the gates among them, the vote, and what each has cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.models._store.undo import Part
from drift.models._tracker.plan import (
    CLIP,
    EVEN,
    FLOORS,
    GATES,
    INSERTION,
    LATE_RATE,
    LATE_SHARE,
    LATE_VOTE,
    MAP_SHARE,
    MAPS,
    MEMORY,
    N_GATES,
    N_LINEAR,
    SECOND_ORDER,
    SLOPES,
    VOTE,
)
from drift.models._tracker.scores import (
    LARGEST,
    TIE,
    VOTE_TIE,
    clipped,
    first,
    gradients,
    reweighed,
    seen_of,
    shared,
    softmax_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.models._tracker.plan import Plan

    Array = NDArray[Any]

__all__ = ["Mixture", "Said"]


class Said(NamedTuple):
    """What the members say of an example.

    Parameters
    ----------
    scores
        Score by member and row.
    softmax
        Probability by member and class, before it is clipped.
    p
        Probability by member and class.
    mixture
        Probability by class.
    choices
        Class that each member would predict.
    ballots
        The class of the largest probability, and that of the majority.
    own
        Number of the class that the whole chooses; -1 if there is none.
    prediction
        Number of the class that is predicted: that one, unless labels come late.
    known
        Number of the classes met.
    """

    scores: Array
    softmax: Array
    p: Array
    mixture: Array
    choices: Array
    ballots: Array
    own: int
    prediction: int
    known: int

    @property
    def mapped(self) -> Array:
        """Probability by map and class that was met."""
        top = self.mixture[self.ballots[0]]
        slopes = np.array([*SLOPES, max(math.log(top / (1.0 - top)), 1.0) / EVEN])
        powers = self.mixture[: self.known] ** slopes[:, np.newaxis]
        powers /= powers.sum(axis=1, keepdims=True)
        floors = np.array(FLOORS)[:, np.newaxis]
        maps = (1.0 - floors) * powers[:-1, np.newaxis] + floors / self.known
        return np.vstack([maps.reshape(-1, self.known), powers[-1]])


class Mixture(Part):
    """Exponential weights with fixed share over the members, and the vote beside them.

    Parameters
    ----------
    plan
        The tracker's parameters.
    """

    _kept = frozenset(
        {
            "weights",
            "majority",
            "trust",
            "gates",
            "covariance",
            "maps",
            "late",
            "errors",
            "losses",
            "path",
            "switches",
        }
    )

    def __init__(self, plan: Plan) -> None:
        n, n_scored = plan.n_members, plan.n_members - N_GATES
        self.plan = plan
        self.weights = np.full(n, 1.0 / n)  # by log loss
        self.majority = np.full(n, 1.0 / n)  # by mistakes
        self.trust = np.full(2, 0.5)  # in the largest probability, and in that majority
        self.gates = np.full((N_GATES, n_scored), 1.0 / n_scored)
        self.covariance = SECOND_ORDER[0] * np.eye(n_scored)  # of the last gate's weights
        self.maps = np.array(MAPS)
        #: For late labels, weights of the members and, last, of the whole: in votes, by log loss.
        self.late: Array | None = None
        self.errors, self.losses = np.zeros(n), np.zeros(n)
        #: Cost of the cheapest sequence of members that ends with each one, and its switches.
        self.path, self.switches = np.full(n, math.log(n)), np.zeros(n)
        self.total = self.log_loss = self.mistakes = 0.0
        self.n_learnt = 0
        #: The running mean loss is `mean_loss` / `mean_of`.
        self.mean_loss, self.mean_of = 0.7, 1.0

    def leave_out_splines(self) -> None:
        """Put the splines aside, as sparse rows have none.

        They keep what the share gives any member. No sequence of members goes on from their weight
        until then.
        """
        n, plan = self.plan.n_members, self.plan
        aside = np.zeros(n, bool)
        aside[plan.n_experts + N_LINEAR : n - N_GATES] = True
        # New arrays: those before are what an update that fails goes back to.
        self.weights = np.where(aside, plan.share / n, self.weights)
        self.majority = np.where(aside, 0.0, self.majority)
        self.path = np.where(aside, math.inf, self.path)

    def say(self, scores: Array, known: int) -> Said:
        """Mix the experts' scores, by member and row, where so many classes were met."""
        scores = np.vstack([scores, self.gates @ seen_of(scores)])
        softmax = softmax_of(scores)
        p = clipped(softmax)
        mixture = self.weights @ p
        n = max(known, 1)
        if scores.shape[1] == 1:
            choices = (scores[:, 0] > TIE).astype(int) * (n > 1)
        else:
            choices = first(scores[:, :n], TIE)
        votes = np.bincount(choices, weights=self.majority, minlength=n)
        ballots = np.array([first(mixture[:n], TIE), first(votes, VOTE_TIE)])
        majority = self.plan.vote and self.trust[1] > self.trust[0] + VOTE_TIE
        own = int(ballots[int(majority)]) if known else -1
        said = Said(scores, softmax, p, mixture, choices, ballots, own, own, known)
        late = self.late is not None and known
        return said._replace(prediction=self._decide_late(said)) if late else said

    def chances(self, said: Said) -> Array:
        """Probability of each class that was met, as it is shown."""
        if not said.known:
            return np.zeros(0)
        chances: Array = self.maps @ said.mapped
        if self.late is not None:
            chances = self.late[1] @ np.vstack([said.p[:, : said.known], chances])
            chances /= chances.sum()
        return chances

    def _decide_late(self, said: Said) -> int:
        """Decide anew, once the members and the whole said what they think."""
        sums = self.chances(said)
        if self.plan.vote and self.late is not None:
            choices = np.append(said.choices, said.own)
            sums = np.bincount(choices, weights=self.late[0], minlength=said.known)
        return int(first(sums, TIE))

    def weigh_late(self, behind: Mixture, said: Said, number: int, w: float) -> None:
        """Weigh by what the members said of an example when they were those `behind`."""
        if self.late is None or not 0 <= number < said.known:
            return
        wrong = np.append(said.choices, said.own) != number
        slip = math.exp(-LATE_VOTE * min(w, 1000.0))
        votes = shared(self.late[0] * np.where(wrong, slip, 1.0), LATE_SHARE)
        own = np.append(said.p[:, number], behind.chances(said)[number])
        self.late = np.array([votes, reweighed(self.late[1], own, LATE_RATE * w, LATE_SHARE)])

    def learn(self, said: Said, number: int, w: float) -> bool:
        """Weigh the members by what they said; return whether the example is worth a support."""
        share, n = self.plan.share, self.plan.n_members
        if number < said.p.shape[1]:
            own = said.p[:, number]
            loss, losses = -math.log(said.mixture[number]), -np.log(own)
            if self.n_learnt:
                self._follow(share)
            self._learn_gates(said, number, w)
            self.weights = reweighed(self.weights, own, w, share)
        else:  # a third class, which no score stood for
            loss, losses = -math.log(CLIP), np.full(n, -math.log(CLIP))
        if number < said.known > 1:
            self.maps = reweighed(self.maps, said.mapped[:, number], w, MAP_SHARE)
        self.path = self.path + w * losses
        wrong, lost = said.choices != number, said.ballots != number
        slip = math.exp(-VOTE * min(w, 1000.0))
        self.majority = shared(self.majority * np.where(wrong, slip, 1.0), share)
        self.trust = shared(self.trust * np.where(lost, slip, 1.0), share)
        self.errors, self.losses = self.errors + w * wrong, self.losses + w * losses
        self.total, self.log_loss = self.total + w, self.log_loss + w * loss
        self.mistakes += w * (said.own != number)
        self.n_learnt += 1
        self.mean_loss = MEMORY * self.mean_loss + w * loss
        self.mean_of = MEMORY * self.mean_of + 1.0
        return w * loss > INSERTION * self.mean_loss / self.mean_of

    def _follow(self, share: float) -> None:
        """Let the cheapest sequence of members switch to any of them, at the price of the share."""
        part = share / len(self.path)
        least = int(self.path.argmin())
        stay = self.path - math.log(1.0 - share + part)
        go = self.path[least] - math.log(part) if part else math.inf
        self.switches = np.where(go < stay, self.switches[least] + 1.0, self.switches)
        self.path = np.minimum(stay, go)

    def _learn_gates(self, said: Said, number: int, w: float) -> None:
        """One step on the log loss in the weights that gates give the others' scores."""
        n, first_order = self.gates.shape[1], len(GATES)
        seen = seen_of(said.scores[:n])
        rates = w / n * np.array(GATES)[:, np.newaxis]
        steps = rates * gradients(said.softmax[n : n + first_order], number)
        gates = self.gates.copy()
        gates[:first_order] += steps[:, -seen.shape[1] :] @ seen.T
        if seen.shape[1] == 1:
            z = seen[:, 0] if number else -seen[:, 0]
        else:
            rivals = said.scores[-1, :-1].copy()  # the spare row is none
            rivals[number : number + 1] = -np.inf
            z = seen[:, number] - seen[:, rivals.argmax()]
        gates[-1] += self._filter(z, float(gates[-1] @ z), w)
        self.gates = gates

    def _filter(self, z: Array, margin: float, w: float) -> Array:
        """Step of a Kalman filter at an example with these scores above those of its rival."""
        _, walk, most = SECOND_ORDER
        u = 1.0 / (1.0 + math.exp(min(max(margin, -LARGEST), LARGEST)))
        covariance = self.covariance + walk * np.eye(len(z))
        a = covariance @ z
        known = w * u * (1.0 - u)
        gain = a / (1.0 + known * (a @ z))
        covariance -= known * np.outer(a, gain)
        for e in np.flatnonzero(covariance.diagonal() > most):
            share = math.sqrt(most / covariance[e, e])
            covariance[e] *= share
            covariance[:, e] *= share
        self.covariance = covariance
        step: Array = w * u * gain
        return step
