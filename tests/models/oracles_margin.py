"""Naive twins of the learners with a margin: caches, ROMMA, passive-aggressive on a budget."""

import math

import numpy as np

from tests.models.oracles import Carried, PassiveAggressive

TIE = 2.0**-40  # share of the sum of its terms' sizes within which a sum is rounding error


class Cache(Carried):
    """Crammer, Kandola and Singer: all margins anew, each time."""

    def __init__(self, gram, margin):
        super().__init__(gram)
        self.margin = margin

    def step(self, t, y):
        score = self.f(t)
        if abs(score) <= TIE * self.size(t):
            score = 0.0
        self.mistakes += y * score <= 0
        if y * score <= self.margin + TIE * self.size(t):
            self.update(t, y)
        return score

    def most_redundant(self, least):
        """Number of the support to drop: the oldest of those that tie for the largest margin."""
        margins, errors = [np.sign(self.alpha), np.full(len(self.alpha), TIE)] * self.rest
        counted = margins + errors >= least
        if not counted.any():
            return None
        largest = (margins - errors)[counted].max()
        return int(np.flatnonzero(counted & (margins + errors >= largest))[0])


class CKS(Cache):
    """Figure 3."""

    def __init__(self, gram, budget, margin):
        super().__init__(gram, margin)
        self.budget = budget

    def update(self, t, y):
        if len(self.supports) == self.budget:
            self.drop(self.most_redundant(-math.inf))
        self.add(t, self.w * y)


class VariableCachePerceptron(Cache):
    """Figures 1 and 2."""

    def __init__(self, gram, margin, threshold):
        super().__init__(gram, margin)
        self.threshold = threshold

    def update(self, t, y):
        self.add(t, self.w * y)
        while (i := self.most_redundant(self.threshold)) is not None:
            self.drop(i)


class ROMMA(Carried):
    """Li and Long: the smallest f with y f(x) = 1 and <f, f_old> = ||f_old||^2, solved directly.

    The noise control adds delta to k(x, x) in learning only, for an example with itself, whenever
    it comes; with weights, delta / sqrt(v w) where it comes with the weights v and w.
    """

    def __init__(self, gram, aggressive, delta=0.0):
        super().__init__(gram)
        self.aggressive = aggressive
        self.delta = delta
        self.same = np.arange(len(gram))
        self.weights = []  # of the supports

    def recognise(self, examples):
        contents = [frozenset((k, v) for k, v in x.items() if v == v != 0) for x, _ in examples]
        first = {content: t for t, content in reversed([*enumerate(contents)])}
        self.same = np.array([first[content] for content in contents])

    def squared_norm(self):
        alone = np.zeros(0)
        if self.delta:
            alone = np.bincount(self.same[self.supports], self.alpha / np.sqrt(self.weights))
        return super().squared_norm() + self.delta * float(alone @ alone)

    def step(self, t, y):
        score = self.f(t)
        error = TIE * self.size(t)
        if abs(score) <= error:
            score = 0.0
        self.mistakes += y * score <= 0
        extra = 0.0
        if self.delta:
            again = np.array(self.alpha)[self.same[self.supports] == self.same[t]]
            weights = np.array(self.weights)[self.same[self.supports] == self.same[t]]
            extra = self.delta * math.fsum(again / np.sqrt(weights * self.w))
        f, error = score + extra, error + TIE * abs(extra)
        if abs(f) <= error:
            f = 0.0
        self_kernel = self.K[t][t] + self.delta / self.w
        if self_kernel and (y * f < 1 - error if self.aggressive else y * f <= 0):
            self.solve(t, y, f, error, self_kernel)
        return score

    def solve(self, t, y, f, error, self_kernel):
        squared_norm = self.squared_norm()
        # With both constraints tight, f = c f_old + d k(x, .) solves two linear equations.
        within = 2 * error * abs(f) + TIE * self_kernel * squared_norm
        if (
            squared_norm * self_kernel - f * f <= within
            or y * f >= self_kernel * squared_norm - within
        ):
            self.restart(t, y / self_kernel)
            return
        c, d = np.linalg.solve([[squared_norm, f], [f, self_kernel]], [squared_norm, y])
        if abs(c) * error + abs(d) * self_kernel * TIE > 2.0**-10:
            self.restart(t, y / self_kernel)
            return
        self.scale(float(c))
        self.add(t, float(d))
        self.weights.append(self.w)

    def restart(self, t, alpha):
        self.supports, self.alpha, self.rest = [], [], np.zeros((2, 0))
        self.add(t, alpha)
        self.weights = [self.w]


def merging(gram, supports, sizes):
    """What goes over a budget: its number, and the number and share of what takes it over.

    It is the smallest one but the newest, and what takes it over is the one that it has the largest
    projection on. First come, first served.
    """
    gone = int(np.flatnonzero(sizes[:-1] <= min(sizes[:-1]) * (1 + TIE))[0])
    row = gram[supports[gone], supports]
    diagonal = gram[supports, supports]
    others = (np.arange(len(diagonal)) != gone) & (diagonal > 0)
    lengths = np.where(others, row * row / np.where(others, diagonal, 1), 0.0)
    if not lengths.any():
        return gone, gone, 0.0
    heir = int(np.flatnonzero(lengths >= max(lengths) * (1 - TIE))[0])
    return gone, heir, row[heir] / diagonal[heir]


def added(a, b):
    return 0.0 if abs(a + b) <= TIE * (abs(a) + abs(b)) else a + b


class BudgetedPassiveAggressive(PassiveAggressive):
    """PA-I whose smallest coefficient goes over the budget, projected onto the nearest support."""

    def __init__(self, gram, C, budget):
        super().__init__(gram, C)
        self.budget = budget

    def add(self, t, alpha):
        super().add(t, alpha)
        if len(self.supports) > self.budget:
            gone, heir, share = merging(self.K, self.supports, np.abs(self.alpha))
            self.alpha[heir] = added(self.alpha[heir], share * self.alpha[gone])
            self.drop(gone)
