"""Naive twins of the structured Projectron++, from section 5 of its paper; no code of drift's.

Both are told the true output and ask an argmax, called as the model calls it, for the best other.
"""

import functools
import itertools
import math
import random

import numpy as np

from tests.models.oracles import naive_kernel, near

LABELS = "abc"
SIZE = 2 * len(LABELS) + len(LABELS) ** 2


def taggings(x):
    """All outputs for a sequence."""
    return list(itertools.product(LABELS, repeat=len(x)))


@functools.cache
def features(x, y):
    """Sums, by label, of the two numbers at each position, and counts of neighbouring labels."""
    phi = np.zeros(SIZE)  # never changed: it is cached
    for values, label in zip(x, y, strict=True):
        k = LABELS.index(label)
        phi[2 * k : 2 * k + 2] += values
    for a, b in itertools.pairwise(y):
        phi[2 * len(LABELS) + LABELS.index(a) * len(LABELS) + LABELS.index(b)] += 1.0
    return phi


def best_of(outputs, score, exclude):
    """The first of the best, where what differs by rounding is equal."""
    return max((y for y in outputs if y != exclude), key=lambda y: round(score(y), 9))


def tagging_argmax(x, score, exclude=None):
    return best_of(taggings(x), score, exclude)


@functools.cache
def tagging_kernel(pair, other):
    return float(features(*pair) @ features(*other))


class Rules:
    """When to do what; `project`, `absorb` and `insert` are the twin's own."""

    w = 1.0  # weight of the examples learnt next

    def __init__(self, argmax, eta, *, squared=False):
        self.argmax = argmax
        self.eta = eta
        self.error = float if squared else math.sqrt
        self.limit = eta if squared else eta**2  # of the squared error
        self.mistakes = self.updates = 0
        self.branches = dict.fromkeys(["projected", "added", "small margin", "left alone"], 0)

    def step(self, x, y):
        rival = self.argmax(x, lambda r: self.f(x, r), exclude=y)
        margin = self.f(x, y) - self.f(x, rival)
        rounding = 1e-12 * (self.size(x, y) + self.size(x, rival))
        if abs(margin) <= rounding:
            margin = 0.0
        loss = 1.0 - margin
        if loss <= rounding:
            return
        left, squared_norm = self.project(x, y, rival)
        if margin > 0:
            share = 0.0
            if left:
                share = self.error(left) / self.eta if self.eta else math.inf
            if loss - share <= rounding:
                self.branches["left alone"] += 1
                return
            self.branches["small margin"] += 1
            self.absorb(
                x, y, rival, min(loss / squared_norm, 2 * (loss - share) / squared_norm, self.w)
            )
        else:
            self.mistakes += 1
            projected = left <= self.limit + 1e-12 * (left + squared_norm)
            self.branches["projected" if projected else "added"] += 1
            (self.absorb if projected else self.insert)(x, y, rival, self.w)
        self.updates += 1


class Tagger(Rules):
    """In the space of explicit features, with least squares for the projection."""

    def __init__(self, argmax, eta, *, squared=False):
        super().__init__(argmax, eta, squared=squared)
        self.rows = np.zeros((0, SIZE))  # features of the supports
        self.alpha = np.zeros(0)

    def f(self, x, y):
        return float(self.alpha @ (self.rows @ features(x, y)))

    def size(self, x, y):
        return float(abs(self.alpha) @ abs(self.rows @ features(x, y)))

    @property
    def supports(self):
        return len(self.rows)

    def coefficients(self, a):
        if not len(self.rows):
            return np.zeros(0)
        return np.linalg.lstsq(self.rows.T, a, rcond=None)[0]

    def project(self, x, y, rival):
        a = features(x, y) - features(x, rival)
        projected = self.coefficients(a) @ self.rows
        left = float((a - projected) @ (a - projected))
        return (left if left > 1e-12 * float(a @ a) else 0.0), float(projected @ projected)

    def add(self, d):
        before = self.alpha
        self.alpha = before + d
        self.alpha[abs(self.alpha) <= 1e-12 * (abs(before) + abs(d))] = 0.0

    def absorb(self, x, y, rival, tau):
        self.add(tau * self.coefficients(features(x, y) - features(x, rival)))

    def insert(self, x, y, rival, tau):
        for r, sign in ((y, tau), (rival, -tau)):
            phi = features(x, r)
            d = self.coefficients(phi)
            left = phi - d @ self.rows
            if left @ left <= 1e-12 * (phi @ phi):
                self.add(sign * d)
            else:
                self.rows = np.vstack([self.rows, phi])
                self.alpha = np.append(self.alpha, sign)


class Multiclass(Rules):
    """Over the kernel [y = y'] k(x, x'): each class has supports and a Gram matrix of its own."""

    def __init__(self, argmax, eta, classes, kernel, parameters, *, squared=False):
        super().__init__(argmax, eta, squared=squared)
        self.inputs = {r: [] for r in classes}
        self.alpha = {r: np.zeros(0) for r in classes}
        self.kernel = lambda a, b: naive_kernel(kernel, a, b, **parameters)

    def row(self, r, x):
        return np.array([self.kernel(z, x) for z in self.inputs[r]])

    def f(self, x, r):
        return float(self.alpha[r] @ self.row(r, x))

    def size(self, x, r):
        return float(abs(self.alpha[r]) @ abs(self.row(r, x)))

    @property
    def supports(self):
        return sum(map(len, self.inputs.values()))

    def solve(self, r, x):
        """Coefficients, squared norm of the projection, and of what is left over."""
        row, self_kernel = self.row(r, x), self.kernel(x, x)
        if not len(row):
            return row, 0.0, self_kernel
        gram = np.array([self.row(r, z) for z in self.inputs[r]])
        length = np.sqrt(np.diag(gram))
        d = np.linalg.solve(gram / np.outer(length, length), row / length) / length
        d[abs(d) * length <= 2.0**-36 * math.sqrt(max(row @ d, 0.0))] = 0.0
        left = self_kernel - row @ d
        return d, float(row @ d), left if left > 1e-12 * self_kernel else 0.0

    def project(self, x, y, rival):
        (_, norm, left), (_, rivals_norm, rivals_left) = self.solve(y, x), self.solve(rival, x)
        return left + rivals_left, norm + rivals_norm

    def add(self, r, d):
        before = self.alpha[r]
        self.alpha[r] = before + d
        self.alpha[r][abs(self.alpha[r]) <= 1e-12 * (abs(before) + abs(d))] = 0.0

    def absorb(self, x, y, rival, tau):
        self.add(y, tau * self.solve(y, x)[0])
        self.add(rival, -tau * self.solve(rival, x)[0])

    def insert(self, x, y, rival, tau):
        for r, sign in ((y, tau), (rival, -tau)):
            d, _, left = self.solve(r, x)
            if left:
                self.inputs[r].append(x)
                self.alpha[r] = np.append(self.alpha[r], sign)
            else:
                self.add(r, sign * d)


def tagged(n=50, seed=0):
    """Sequences of up to four positions whose labels depend on each other."""
    rng = random.Random(seed)
    for _ in range(n):
        y = [rng.choice(LABELS)]
        while len(y) < 4 and rng.random() < 0.8:
            y.append(LABELS[(LABELS.index(y[-1]) + (rng.random() < 0.8)) % 3])
        centres = {"a": (1.0, 0.2), "b": (0.1, 1.0), "c": (0.6, 0.6)}
        x = tuple(tuple(v + rng.gauss(0, 0.3) for v in centres[label]) for label in y)
        yield x, tuple(y)


def check(model, twin, examples, outputs, weights=None):
    for t, (x, y) in enumerate(examples):
        for r in outputs(x):
            size = 1.0 + twin.size(x, r)
            assert near(model.decision_function_one(x, r), twin.f(x, r), 1e-8 * size)
        twin.w = 1.0 if weights is None else weights[t]
        model.learn_one(x, y, twin.w)
        if twin.w:
            twin.step(x, y)
        counts = model.n_mistakes, model.n_updates, model.n_supports
        assert counts == (twin.mistakes, twin.updates, twin.supports)
