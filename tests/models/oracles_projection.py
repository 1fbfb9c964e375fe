"""Naive twins of the models that project, by solving with the plain Gram matrix each time."""

import math

import numpy as np
from oracles import Twin


class Projecting(Twin):
    """A twin that can project, and remembers how much was ever added to each support.

    Coefficients that cancel leave rounding errors in proportion to that `mass`.
    """

    def __init__(self, gram):
        super().__init__(gram)
        self.gram = np.asarray(gram, dtype=float)
        self.mass = []

    def size(self, t):
        return math.fsum(
            m * abs(self.sizes[s][t]) for s, m in zip(self.supports, self.mass, strict=True)
        )

    def rounding(self, t):
        return 1e-12 * super().size(t)

    def add(self, t, alpha):
        super().add(t, alpha)
        self.mass.append(abs(alpha))

    def add_projection(self, c, d):
        self.mass = [m + abs(c * w) for m, w in zip(self.mass, d, strict=True)]
        sums = [a + c * w for a, w in zip(self.alpha, d, strict=True)]
        self.alpha = [
            0.0 if abs(a) <= 1e-13 * m else a for a, m in zip(sums, self.mass, strict=True)
        ]

    def project(self, t):
        """Coefficients of the projection (7), and the squared norm of what is left over (8)."""
        own = self.gram[t, t]
        if not self.supports:
            return [], own
        row = self.gram[self.supports, t]
        gram = self.gram[np.ix_(self.supports, self.supports)]
        # Solved over supports of unit length, which keeps 1e37 beside 1 in order.
        length = np.sqrt(np.diag(gram))
        d = np.linalg.solve(gram / np.outer(length, length), row / length) / length
        left = float(own - row @ d)
        d[np.abs(d) * length <= 1.5e-11 * math.sqrt(own)] = 0.0  # no part of the projection
        return list(d), left if left > 1e-12 * own else 0.0

    def step(self, t, y):
        score = self.f(t)
        if abs(score) <= self.rounding(t):
            score = 0.0
        self.mistakes += y * score <= 0
        self.learn(t, y, score)
        return score


class Projectron(Projecting):
    """Orabona et al., figures 2 and 5; `error` is what eta bounds, of the squared norm of delta."""

    def __init__(self, gram, eta, *, squared=False, plus=False):
        super().__init__(gram)
        self.eta = eta
        self.error = float if squared else math.sqrt
        self.plus = plus
        self.branches = {"projected": 0, "added": 0, "small margin": 0, "left alone": 0}

    def learn(self, t, y, score):
        if y * score > 0:
            if self.plus:
                self.margin_error(t, y, 1 - y * score)
            return
        d, left = self.project(t)
        if self.error(left) <= self.eta:
            self.branches["projected"] += 1
            self.add_projection(y, d)
        else:
            self.branches["added"] += 1
            self.add(t, y)

    def margin_error(self, t, y, loss):
        rounding = self.rounding(t)
        if loss <= rounding:
            return
        d, left = self.project(t)
        share = 0.0
        if left:
            share = self.error(left) / self.eta if self.eta else math.inf
        if loss - share <= rounding:
            self.branches["left alone"] += 1
            return
        self.branches["small margin"] += 1
        norm2 = float(self.gram[self.supports, t] @ d)
        self.add_projection(y * min(loss / norm2, 2 * (loss - share) / norm2, 1.0), d)


class ALMA2(Projecting):
    """Gentile 2001, p = 2, on k(x, .) / sqrt(k(x, x)); ||f|| from the Gram matrix each time."""

    def __init__(self, gram, alpha, B, C, eta=None):
        super().__init__(gram)
        self.constants = alpha, B, C
        self.eta = eta
        self.k = 1
        self.branches = {"projected": 0, "added": 0}

    def learn(self, t, y, score):
        alpha, B, C = self.constants
        length = math.sqrt(self.K[t][t])
        gamma, rate = B / math.sqrt(self.k), C / math.sqrt(self.k)
        if y * score > (1 - alpha) * gamma * length + self.rounding(t):
            return
        self.k += 1
        if not length:
            return
        if self.eta is None:
            self.add(t, y * rate / length)
        else:
            d, left = self.project(t)
            if rate * math.sqrt(left) / length <= self.eta:
                self.branches["projected"] += 1
                self.add_projection(y * rate / length, d)
            else:
                self.branches["added"] += 1
                self.add(t, y * rate / length)
        a = np.array(self.alpha)
        norm = math.sqrt(max(0.0, a @ self.gram[np.ix_(self.supports, self.supports)] @ a))
        self.alpha = [c / max(1.0, norm) for c in self.alpha]
        self.mass = [m / max(1.0, norm) for m in self.mass]
