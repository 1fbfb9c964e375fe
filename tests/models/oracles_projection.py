"""Naive twins of the models that project, each time by solving with the whole Gram matrix."""

import math

import numpy as np
from scipy.linalg.blas import dtpsv

from tests.models.oracles import Carried, Twin


class Span:
    """What is spanned by some examples, for projections onto it.

    Holds Cholesky's factor of their Gram matrix, its rows one after the other, since each
    projection's afresh would take cubic time; a test holds `project` to the plain solution.
    Examples count at unit length, which keeps 1e37 beside 1 in order.
    """

    def __init__(self, gram):
        self.gram = gram
        self.basis = []
        self.lengths = np.sqrt(np.diag(gram))
        self.factor = np.zeros(0)

    def whiten(self, t):
        """L^{-1} g for the column g that example `t` would add to the Gram matrix."""
        row = self.gram[t, self.basis] / self.lengths[self.basis]
        return dtpsv(len(self.basis), self.factor, row / self.lengths[t], trans=1)

    def project(self, t):
        """Coefficients of the projection (7), and the squared norm of what is left over (8)."""
        self_kernel = self.gram[t, t]
        if not self.basis or not self_kernel:
            return np.zeros(len(self.basis)), self_kernel
        white = self.whiten(t)
        d = dtpsv(len(self.basis), self.factor, white)  # for a unit vector
        d[np.abs(d) <= 2.0**-36 * np.linalg.norm(white)] = 0.0  # no part of the projection
        left = 1.0 - white @ white
        return d * self.lengths[t] / self.lengths[
            self.basis
        ], self_kernel * left if left > 1e-12 else 0.0

    def add(self, t):
        white = self.whiten(t) if self.basis else np.zeros(0)
        self.factor = np.concatenate([self.factor, white, [math.sqrt(1.0 - white @ white)]])
        self.basis.append(t)


class Projecting(Twin):
    """A twin that can project, and remembers how much was ever added to each support.

    Coefficients that cancel leave rounding errors in proportion to that `mass`.
    """

    def __init__(self, gram):
        super().__init__(gram)
        self.span = Span(self.K)
        self.mass = []

    def size(self, t):
        return float(np.abs(self.sizes[t, self.supports]) @ self.mass) if self.supports else 0.0

    def rounding(self, t):
        return 1e-12 * super().size(t)

    def add(self, t, alpha):
        super().add(t, alpha)
        self.mass.append(abs(alpha))

    def add_projection(self, c, d):
        mass, alpha = self.mass + np.abs(c * d), self.alpha + c * d
        alpha[np.abs(alpha) <= 1e-13 * mass] = 0.0
        self.mass, self.alpha = list(mass), list(alpha)

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
        self.limit = eta if squared else eta**2  # of the squared error
        self.plus = plus
        self.branches = {"projected": 0, "added": 0, "small margin": 0, "left alone": 0}

    def learn(self, t, y, score):
        if y * score > 0:
            if self.plus:
                self.margin_error(t, y, 1 - y * score)
            return
        d, left = self.span.project(t)
        if left <= self.limit + 1e-12 * self.K[t, t]:
            self.branches["projected"] += 1
            self.add_projection(self.w * y, d)
        else:
            self.branches["added"] += 1
            self.span.add(t)
            self.add(t, self.w * y)

    def margin_error(self, t, y, loss):
        rounding = self.rounding(t)
        if loss <= rounding:
            return
        d, left = self.span.project(t)
        share = 0.0
        if left:
            share = self.error(left) / self.eta if self.eta else math.inf
        if loss - share <= rounding:
            self.branches["left alone"] += 1
            return
        self.branches["small margin"] += 1
        squared_norm = float(self.K[t, self.supports] @ d)
        self.add_projection(
            y * min(loss / squared_norm, 2 * (loss - share) / squared_norm, self.w), d
        )


class ALMA2(Projecting, Carried):
    """Gentile 2001, p = 2, on k(x, .) / sqrt(k(x, x)); ||f|| as a sum over all supports."""

    def __init__(self, gram, alpha, B, C, eta=None):
        super().__init__(gram)
        self.constants = alpha, B, C
        self.eta = eta
        self.k = 1
        self.branches = {"projected": 0, "added": 0}

    def learn(self, t, y, score):
        alpha, B, C = self.constants
        length = math.sqrt(self.K[t][t])
        gamma, rate = B / math.sqrt(self.k), self.w * C / math.sqrt(self.k)
        if y * score > (1 - alpha) * gamma * length + self.rounding(t):
            return
        self.k += 1
        if not length:
            return
        if self.eta is None:
            self.add(t, y * rate / length)
        else:
            d, left = self.span.project(t)
            if left <= (self.eta * length / rate) ** 2 + 1e-12 * length**2:
                self.branches["projected"] += 1
                before = np.array(self.alpha)
                self.add_projection(y * rate / length, d)
                diagonal = (self.alpha - before) * self.K[self.supports, self.supports]
                self.rest[0] += (
                    y * rate / length * self.K[t, self.supports] - diagonal
                )  # P k is k there
            else:
                self.branches["added"] += 1
                self.span.add(t)
                self.add(t, y * rate / length)
        norm = math.sqrt(max(0.0, self.squared_norm()))
        self.scale(1.0 / max(1.0, norm))
        self.mass = [m / max(1.0, norm) for m in self.mass]
