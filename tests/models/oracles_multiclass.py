"""Naive twins of the multiclass models; they share no code with drift.

A twin keeps, for each support, a dict of coefficients by label. ``step(t, y)`` returns the scores
of example `t` by label, before it learns that the label is `y`, with the weight `w`.
"""

import math
import random

import numpy as np

from tests.models.oracles_margin import added, merging
from tests.models.oracles_projection import Span

BINARY = [{False, True}, {-1, 1}]  # 0 and 1 are False and True


class MulticlassTwin:
    """A multiclass Perceptron; the others differ from it in `update`."""

    w = 1.0  # weight of the examples learnt next

    def __init__(self, gram):
        self.K = np.array(gram)
        self.classes = []  # in order of appearance
        self.supports, self.labels, self.tau = [], [], []
        self.mistakes = 0
        self.columns = {}  # coefficients by class, until one changes

    def coefficients(self, r):
        if r not in self.columns:
            self.columns[r] = np.array([c.get(r, 0.0) for c in self.tau])
        return self.columns[r]

    def f(self, r, t):
        """Score of class `r` at example `t`, or at several."""
        return self.coefficients(r) @ self.row(t)

    def row(self, t):
        """Kernel between the supports and example `t`, or several."""
        return self.K[t, self.supports] if np.ndim(t) == 0 else self.K[np.ix_(self.supports, t)]

    def size(self, t):
        if not self.supports:
            return np.zeros(np.shape(t))
        largest = np.max([np.abs(self.coefficients(r)) for r in self.classes], axis=0)
        return largest @ np.abs(self.row(t))

    def margin(self, y, scores, tie):
        """Score of y above its best rival, and that rival: the first among equals."""
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
        self.add(t, y, {y: self.w, rival: -self.w})

    def add(self, t, y, tau):
        tau.pop(None, None)
        self.supports.append(t)
        self.labels.append(y)
        self.tau.append(tau)
        self.columns.clear()

    def drop(self, i):
        del self.supports[i], self.labels[i], self.tau[i]
        self.columns.clear()


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
        self.two = positive, negative
        f = {r: self.f(r, t) for r in (positive, negative)}
        score = f[positive] - f[negative]
        tie = 1e-12 * 2 * self.size(t)
        if abs(score) <= tie:
            score = 0.0
        sign = 1 if y == positive else -1
        self.mistakes += sign * score <= 0
        self.binary_update(t, y, score, sign, tie)
        self.classes = [positive] if self.seen == {1} else [negative, positive]
        return score

    def binary_update(self, t, y, score, sign, tie):
        loss = max(0.0, 1 - sign * score)
        if loss > tie:
            self_kernel = self.K[t][t]
            C = self.w * self.C
            tau = sign * (min(C, loss / self_kernel) if self_kernel else C)
            self.add(t, y, dict(zip(self.two, (tau / 2, -tau / 2), strict=True)))

    def due(self, margin, tie, t):
        return 1 - margin > tie

    def update(self, t, y, rival, scores):
        loss = 1 - scores[y] + (scores[rival] if rival is not None else 0.0)
        self_kernel = 2 * self.K[t][t]
        C = self.w * self.C
        tau = min(C, loss / self_kernel) if self_kernel else C
        self.add(t, y, {y: tau, rival: -tau})


class BudgetedPassiveAggressive(PassiveAggressive):
    """The same, where the smallest column goes over the budget, projected onto the nearest."""

    def __init__(self, gram, C, budget):
        super().__init__(gram, C)
        self.budget = budget

    def add(self, t, y, tau):
        super().add(t, y, tau)
        if len(self.supports) > self.budget:
            sizes = np.array([math.hypot(*c.values()) for c in self.tau])
            gone, heir, share = merging(self.K, self.supports, sizes)
            for r, c in self.tau[gone].items():
                self.tau[heir][r] = added(self.tau[heir].get(r, 0.0), share * c)
            self.drop(gone)


class ProjectronPlusPlus(PassiveAggressive):
    """Orabona et al., section 5; each class's part is projected onto the span of its supports."""

    def __init__(self, gram, eta, *, squared=False):
        super().__init__(gram, None)
        self.eta = eta
        self.error = float if squared else math.sqrt
        self.limit = eta if squared else eta**2  # of the squared error
        self.spans = {}
        self.mass = {}
        self.branches = dict.fromkeys(["projected", "added", "small margin", "left alone"], 0)

    def size(self, t):
        return sum(np.abs(self.K[t, self.spans[r].basis]) @ m for r, m in self.mass.items())

    def know(self, r):
        if r not in self.spans:
            self.spans[r], self.mass[r] = Span(self.K), []

    def binary_update(self, t, y, score, sign, tie):
        positive, negative = self.two
        self.tie = tie
        parts = {positive: sign / 2, negative: -sign / 2}
        for r in parts:
            self.know(r)
        self.learn(t, y, sign * score, parts, [positive])

    def due(self, margin, tie, t):
        self.due_margin, self.tie = margin, tie
        return True

    def update(self, t, y, rival, scores):
        parts = {y: 1.0} | ({rival: -1.0} if rival is not None else {})
        for r in parts:
            self.know(r)
        self.learn(t, y, self.due_margin, parts, list(parts))

    def learn(self, t, y, margin, parts, measured):
        """`measured` are the classes whose projections count: one of two equal halves."""
        loss, tie = 1 - margin, self.tie
        if margin > 0 and loss <= tie:
            return
        result = {r: self.spans[r].project(t) for r in parts}
        left = sum(result[r][1] for r in measured)
        if margin <= 0 and left > self.limit + 1e-12 * len(measured) * self.K[t][t]:
            self.branches["added"] += 1
            parts = {r: self.w * c for r, c in parts.items()}
            for r in parts:
                if not result[r][1]:
                    self.add_projection(r, parts[r], result[r][0])
            self.add(t, y, {r: c for r, c in parts.items() if result[r][1]})
            for r, c in parts.items():
                if result[r][1]:
                    self.spans[r].add(t)
                    self.mass[r].append(abs(c))
            return
        tau = self.w
        if margin > 0:
            share = self.error(left) / self.eta if left else 0.0
            if loss - share <= tie:
                self.branches["left alone"] += 1
                return
            squared_norm = sum(self.K[t, self.spans[r].basis] @ result[r][0] for r in measured)
            tau = min(loss / squared_norm, 2 * (loss - share) / squared_norm, self.w)
        self.branches["small margin" if margin > 0 else "projected"] += 1
        for r, c in parts.items():
            self.add_projection(r, tau * c, result[r][0])

    def add_projection(self, r, c, d):
        place = {s: i for i, s in enumerate(self.supports)}
        self.columns.clear()
        self.mass[r] = list(self.mass[r] + np.abs(c * d))
        for s, w, mass in zip(self.spans[r].basis, d, self.mass[r], strict=True):
            tau = self.tau[place[s]]
            tau[r] += c * w
            if abs(tau[r]) <= 1e-13 * mass:
                tau[r] = 0.0


class MIRA(MulticlassTwin):
    """Crammer and Singer; tau by bisection, margins of what is held anew each time.

    With more than `FEW` supports their scores are carried on from change to change, as sums over
    the Gram matrix would take cubic time; these check them at every hundredth change.
    """

    FEW = 100

    def __init__(self, gram, beta, cache="unbounded", budget=None, distill=None):
        super().__init__(gram)
        self.scores = {}  # of all examples, by class
        self.sizes = np.zeros(len(self.K))
        self.changes = 0
        self.beta, self.cache, self.budget = beta, cache, budget
        self.distill = beta if distill is None else distill

    def due(self, margin, tie, t):
        return (margin < self.beta - tie or not self.supports) and self.K[t][t] > 0

    def update(self, t, y, rival, scores):
        scores = dict(scores)
        if rival is None:
            scores["nobody"] = 0.0
        self_kernel = self.K[t][t]
        tau = self.solve(y, scores, self_kernel)
        tau.pop("nobody", None)
        if self.cache == "fixed" and len(self.supports) == self.budget:
            self.drop(self.most_redundant()[0])
        self.add(t, y, tau)
        while self.cache == "variable" and self.supports:
            i, margin, tie = self.most_redundant()
            if margin < self.distill - tie:
                break
            self.drop(i)

    def solve(self, y, scores, self_kernel):
        """tau_r = min(w [r = y], theta - D_r) with the theta for which they sum up to 0."""
        D = {r: (s - self.beta * (r == y)) / self_kernel for r, s in scores.items()}
        low, high = min(D.values()) - self.w, max(D.values()) + 2 * self.w

        def tau(theta):
            return {r: min(self.w * (r == y), theta - d) for r, d in D.items()}

        for _ in range(200):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            total = math.fsum(tau(middle).values())
            low, high = (middle, high) if total < 0 else (low, middle)
        result = tau(high)
        result = {
            r: 0.0 if abs(v) < 1e-13 * max(1, *map(abs, D.values())) else v
            for r, v in result.items()
        }
        if not any(result.values()) and not self.supports:
            return {r: self.w * (1.0 if r == y else -1 / (len(scores) - 1)) for r in scores}
        return result

    def add(self, t, y, tau):
        super().add(t, y, tau)
        self.carry(t, tau, 1)

    def drop(self, i):
        self.carry(self.supports[i], self.tau[i], -1)
        super().drop(i)

    def carry(self, t, tau, sign):
        self.changes += 1
        for r, c in tau.items():
            self.scores[r] = self.scores.get(r, 0.0) + sign * c * self.K[t]
        self.sizes += sign * max(map(abs, tau.values())) * np.abs(self.K[t])

    def carried_scores(self):
        """Scores of the supports by class, and their sizes."""
        zeros = np.zeros(len(self.K))
        carried = {r: self.scores.get(r, zeros)[self.supports] for r in self.classes}
        if len(self.supports) > self.FEW and self.changes % 100:
            return carried, self.sizes[self.supports]
        rows, sizes = self.row(self.supports), self.size(self.supports)
        sums = {r: self.coefficients(r) @ rows for r in self.classes}
        for r in self.classes:
            assert np.abs(carried[r] - sums[r]).max() <= 1e-10 * sizes.max()
        return sums, sizes

    def most_redundant(self):
        diagonal = self.K[self.supports, self.supports]
        scores, sizes = self.carried_scores()
        rest = np.array([scores[r] - self.coefficients(r) * diagonal for r in self.classes])
        label = np.array([self.classes.index(y) for y in self.labels]), np.arange(len(diagonal))
        values = rest[label]
        rest[label] = -np.inf
        values = values - (rest.max(axis=0) if len(rest) > 1 else 0.0)
        tie = 1e-12 * sizes.max()
        i = int(np.argmax(values >= values.max() - tie))
        return i, values[i], tie
