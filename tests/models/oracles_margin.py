"""Naive twins of the learners with a margin: caches."""

import math

from oracles import Twin

TIE = 2.0**-40  # share of the sum of its terms' sizes within which a sum is rounding error


class Cache(Twin):
    """Crammer, Kandola and Singer: all margins from the Gram matrix, each time."""

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

    def without(self, i):
        """Margin of support `i` without its own share, and the scale of its rounding errors."""
        terms = [a * self.K[s][self.supports[i]] for j, (s, a) in enumerate(self.pairs()) if j != i]
        return self.alpha[i] * math.fsum(terms), TIE * math.fsum(map(abs, terms))

    def most_redundant(self, least):
        """Number of the support to drop: the oldest of those that tie for the largest margin."""
        margins = {i: self.without(i) for i in range(len(self.supports))}
        counted = {i: (m, e) for i, (m, e) in margins.items() if m + e >= least}
        if not counted:
            return None
        largest = max(m - e for m, e in counted.values())
        return min(i for i, (m, e) in counted.items() if m + e >= largest)


class CKS(Cache):
    """Figure 3."""

    def __init__(self, gram, budget, margin):
        super().__init__(gram, margin)
        self.budget = budget

    def update(self, t, y):
        if len(self.supports) == self.budget:
            self.drop(self.most_redundant(-math.inf))
        self.add(t, y)


class VariableCachePerceptron(Cache):
    """Figures 1 and 2."""

    def __init__(self, gram, margin, threshold):
        super().__init__(gram, margin)
        self.threshold = threshold

    def update(self, t, y):
        self.add(t, y)
        while (i := self.most_redundant(self.threshold)) is not None:
            self.drop(i)
