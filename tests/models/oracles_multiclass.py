"""Naive twins of the multiclass models; they share no code with drift.

A twin keeps, for each support, a dict of coefficients by label. ``step(t, y)`` returns the scores
of example `t` by label, before it learns that the label is `y`.
"""

import math
import random

import numpy as np

BINARY = [{False, True}, {-1, 1}]  # 0 and 1 are False and True


class MulticlassTwin:
    """A multiclass Perceptron; the others differ from it in `update`."""

    threshold = 0.0
    strict = False

    def __init__(self, gram):
        self.K = np.array(gram)
        self.classes = []  # in the order met
        self.supports, self.labels, self.tau = [], [], []
        self.mistakes = 0

    def coefficients(self, r):
        return np.array([c.get(r, 0.0) for c in self.tau])

    def f(self, r, t):
        """Score of class `r` at example `t`, or at several."""
        return self.coefficients(r) @ self.K[self.supports][:, t]

    def size(self, t):
        largest = np.array([max(map(abs, c.values())) for c in self.tau])
        return largest @ np.abs(self.K[self.supports][:, t])

    def margin(self, y, scores, tie):
        """Score of y above its best rival, and that rival: the first met among equals."""
        rival = None
        for r in self.classes:
            if r != y and (rival is None or scores[r] > scores[rival] + tie):
                rival = r
        margin = scores[y] - (scores[rival] if rival is not None else 0.0)
        return (0.0 if abs(margin) <= tie else margin), rival

    def step(self, t, y):
        before = {r: self.f(r, t) for r in self.classes}
        tie = 1e-12 * self.size(t)
        if y not in self.classes:
            self.classes.append(y)
        scores = before | ({} if y in before else {y: 0.0})
        margin, rival = self.margin(y, scores, tie)
        self.mistakes += margin <= 0
        if self.due(margin, tie, t):
            self.update(t, y, rival, scores)
        return before

    def due(self, margin, tie, t):
        return margin <= 0

    def update(self, t, y, rival, scores):
        self.add(t, y, {y: 1.0, rival: -1.0})

    def add(self, t, y, tau):
        tau.pop(None, None)
        self.supports.append(t)
        self.labels.append(y)
        self.tau.append(tau)

    def drop(self, i):
        del self.supports[i], self.labels[i], self.tau[i]


class MRBP(MulticlassTwin):
    """Orabona et al., section 7."""

    def __init__(self, gram, budget, seed):
        super().__init__(gram)
        self.budget = budget
        self.rng = random.Random(seed)

    def update(self, t, y, rival, scores):
        if len(self.supports) == self.budget:
            self.drop(self.rng.randrange(self.budget))
        super().update(t, y, rival, scores)


class PassiveAggressive(MulticlassTwin):
    """Crammer et al.; for labels that are binary so far, the difference of two halves."""

    def __init__(self, gram, C):
        super().__init__(gram)
        self.C = C
        self.seen = set()

    def step(self, t, y):
        self.seen.add(y)
        self.binary = any(self.seen <= kind for kind in BINARY)
        if not self.binary:
            return super().step(t, y)
        return self.binary_step(t, y)

    def binary_step(self, t, y):
        positive = True if y != -1 and -1 not in self.seen else 1
        negative = -1 if -1 in self.seen else False
        f = {r: self.f(r, t) for r in (positive, negative)}
        score = f[positive] - f[negative]
        tie = 1e-12 * 2 * self.size(t)
        if abs(score) <= tie:
            score = 0.0
        sign = 1 if y == positive else -1
        self.mistakes += sign * score <= 0
        loss = max(0.0, 1 - sign * score)
        if loss > tie:
            own = self.K[t][t]
            tau = sign * (min(self.C, loss / own) if own else self.C)
            self.add(t, y, {positive: tau / 2, negative: -tau / 2})
        self.classes = [positive] if self.seen == {1} else [negative, positive]
        return score

    def due(self, margin, tie, t):
        return 1 - margin > tie

    def update(self, t, y, rival, scores):
        loss = 1 - scores[y] + (scores[rival] if rival is not None else 0.0)
        own = 2 * self.K[t][t]
        tau = min(self.C, loss / own) if own else self.C
        self.add(t, y, {y: tau, rival: -tau})


class MIRA(MulticlassTwin):
    """Crammer and Singer; tau by bisection, held margins from scratch."""

    def __init__(self, gram, beta, cache="unbounded", budget=None, distill=None):
        super().__init__(gram)
        self.beta, self.cache, self.budget = beta, cache, budget
        self.distill = beta if distill is None else distill

    def due(self, margin, tie, t):
        return (margin < self.beta - tie or not self.supports) and self.K[t][t] > 0

    def update(self, t, y, rival, scores):
        scores = dict(scores)
        if rival is None:
            scores["nobody"] = 0.0
        own = self.K[t][t]
        tau = self.solve(y, scores, own)
        tau.pop("nobody", None)
        if self.cache == "fixed" and len(self.supports) == self.budget:
            self.drop(self.most_redundant()[0])
        self.add(t, y, tau)
        while self.cache == "variable" and self.supports:
            i, margin, tie = self.most_redundant()
            if margin < self.distill - tie:
                break
            self.drop(i)

    def solve(self, y, scores, own):
        """tau_r = min([r = y], theta - D_r) with the theta for which they sum up to 0."""
        D = {r: (s - self.beta * (r == y)) / own for r, s in scores.items()}
        low, high = min(D.values()) - 1, max(D.values()) + 1 + 1 / len(D)

        def tau(theta):
            return {r: min(float(r == y), theta - d) for r, d in D.items()}

        for _ in range(200):
            middle = (low + high) / 2
            total = math.fsum(tau(middle).values())
            low, high = (middle, high) if total < 0 else (low, middle)
        found = tau(high)
        found = {
            r: 0.0 if abs(v) < 1e-13 * max(1, *map(abs, D.values())) else v
            for r, v in found.items()
        }
        if not any(found.values()) and not self.supports:
            return {r: 1.0 if r == y else -1 / (len(scores) - 1) for r in scores}
        return found

    def most_redundant(self):
        own = self.K[self.supports, self.supports]
        rest = {r: self.f(r, self.supports) - self.coefficients(r) * own for r in self.classes}
        values = []
        for i, y in enumerate(self.labels):
            others = [v[i] for r, v in rest.items() if r != y]
            values.append(rest[y][i] - max(others, default=0.0))
        tie = 1e-12 * self.size(self.supports).max()
        best = max(values)
        i = next(i for i, v in enumerate(values) if v >= best - tie)
        return i, values[i], tie
