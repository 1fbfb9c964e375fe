"""Naive twins of the models, written from the papers; they share no code with drift.

A twin knows the stream as a Gram matrix of Python floats, `K[i][j]`, and its supports as numbers of
examples. ``step(t, y)`` returns the score of example `t` before it learns the label `y` (-1 or +1).
"""

import math
import random

import numpy as np


def naive_kernel(name, a, b, *, degree=4, coef0=1.0, gamma=1.0, normalize=False):
    """Kernel of two dicts, straight from its definition."""
    if normalize:
        a, b = unit(a), unit(b)
    if name == "rbf":
        return math.exp(-gamma * math.fsum((a.get(k, 0.0) - b.get(k, 0.0)) ** 2 for k in a | b))
    dot = math.fsum(v * b[k] for k, v in a.items() if k in b)
    return dot if name == "linear" else (dot + coef0) ** degree


def unit(x):
    norm = math.sqrt(math.fsum(v * v for v in x.values()))
    return {k: v / norm for k, v in x.items()} if norm else x


def naive_gram(examples, name, **parameters):
    return [[naive_kernel(name, a, b, **parameters) for b in examples] for a in examples]


class Twin:
    """A Perceptron; the others differ from it in `mistake`."""

    def __init__(self, gram):
        self.K = self.sizes = gram
        self.supports = []  # numbers of examples, the oldest first
        self.alpha = []
        self.mistakes = 0

    def recognise(self, examples):
        """Hear what the examples hold, where it matters whether two are the same one."""

    def f(self, t):
        return math.fsum(a * self.K[s][t] for s, a in self.pairs())

    def pairs(self):
        return zip(self.supports, self.alpha, strict=True)

    def size(self, t):
        """Scale of rounding errors in f(t): sum of |alpha_i k(x_i, x)|."""
        return math.fsum(abs(a * self.sizes[s][t]) for s, a in self.pairs())

    def step(self, t, y):
        score = self.f(t)
        if abs(score) <= 1e-12 * self.size(t):  # a tie, but for the rounding of the Gram matrix
            score = 0.0
        if y * score <= 0:
            self.mistakes += 1
            self.mistake(t, y)
        return score

    def mistake(self, t, y):
        self.add(t, y)

    def add(self, t, alpha):
        self.supports.append(t)
        self.alpha.append(alpha)

    def drop(self, i):
        del self.supports[i], self.alpha[i]


class Perceptron(Twin):
    pass


class VotedPerceptron(Perceptron):
    """Freund and Schapire, figure 1, kernel form: all hypotheses kept, each with its votes."""

    def __init__(self, gram, averaged):
        super().__init__(gram)
        self.averaged = averaged
        self.votes = [0]  # of the hypothesis over the first j supports

    def value(self, j, t):
        terms = [a * self.K[s][t] for s, a in list(self.pairs())[:j]]
        total = math.fsum(terms)
        return 0.0 if abs(total) <= 1e-12 * math.fsum(map(abs, terms)) else total

    def ballots(self, t):
        for j, c in enumerate(self.votes):
            v = self.value(j, t)
            yield c * (v if self.averaged else (v > 0) - (v < 0))

    def size(self, t):
        return math.fsum(map(abs, self.ballots(t)))

    def step(self, t, y):
        score = math.fsum(self.ballots(t))
        self.mistakes += y * score <= 0
        if y * self.value(len(self.supports), t) <= 0:
            self.add(t, y)
            self.votes.append(1)
        else:
            self.votes[-1] += 1
        return score


class PassiveAggressive(Twin):
    """Crammer et al., PA-I."""

    def __init__(self, gram, C):
        super().__init__(gram)
        self.C = C

    def step(self, t, y):
        score = self.f(t)
        if abs(score) <= 1e-12 * self.size(t):
            score = 0.0
        self.mistakes += y * score <= 0
        loss = max(0.0, 1.0 - y * score)
        if loss > 1e-12 * self.size(t):
            self.add(t, y * (min(self.C, loss / self.K[t][t]) if self.K[t][t] else self.C))
        return score


class SOP(Twin):
    """Cesa-Bianchi et al., dual form, by solving the whole system for each score."""

    def __init__(self, gram, ridge, budget=None, victim=None):
        super().__init__(gram)
        self.ridge = ridge
        self.budget = budget
        self.victim = victim

    def dual(self, t):
        seen = [*self.supports, t]
        gram = np.array([[self.K[r][s] for s in seen] for r in seen])
        return np.linalg.solve(self.ridge * np.eye(len(seen)) + gram, gram[:, -1])[:-1]

    def f(self, t):
        return math.fsum(a * w for a, w in zip(self.alpha, self.dual(t), strict=True))

    def size(self, t):
        return math.fsum(abs(w) for w in self.dual(t))

    def mistake(self, t, y):
        if self.budget and len(self.supports) == self.budget:
            self.drop(self.victim())
        self.add(t, y)


class SPA(Twin):
    """Cavallanti et al., figure 1; k counts mistakes from 0 and lambda_0 = 1."""

    def __init__(self, gram, decay):
        super().__init__(gram)
        self.decay = decay

    def mistake(self, t, y):
        k = self.mistakes - 1
        lam = 1.0 if k == 0 else self.decay / (self.decay + k)
        self.alpha = [(1 - lam) * a for a in self.alpha]
        self.add(t, y)


class RBP(Twin):
    """Cavallanti et al., section 3: the victim is drawn among the B supports held."""

    def __init__(self, gram, budget, seed):
        super().__init__(gram)
        self.budget = budget
        self.rng = random.Random(seed)

    def mistake(self, t, y):
        if len(self.supports) == self.budget:
            self.drop(self.rng.randrange(self.budget))
        self.add(t, y)


class LBP(Twin):
    def __init__(self, gram, budget):
        super().__init__(gram)
        self.budget = budget

    def mistake(self, t, y):
        if len(self.supports) == self.budget:
            self.drop(0)
        self.add(t, y)


class Forgetron(Twin):
    """Dekel et al.; `bound` is the closed form of max k(x, x), None for a running maximum."""

    def __init__(self, gram, budget, shrinking, bound):
        super().__init__(gram)
        self.budget = budget
        self.shrinking = shrinking
        self.bound = bound
        self.running = 0.0
        self.Q = 0.0

    def mistake(self, t, y):
        self.add(t, y)
        self.running = max(self.running, self.K[t][t])
        if len(self.supports) <= self.budget:
            return
        scale = self.bound or self.running or 1.0
        r, alpha_r = self.supports[0], self.alpha[0]
        if self.shrinking == "basic":
            B1 = self.budget + 1
            U = 0.25 * math.sqrt(B1 / math.log(B1))
            norm = math.sqrt(max(0.0, math.fsum(a * self.f(s) for s, a in self.pairs())) / scale)
            phi = min(B1 ** (-0.5 / B1), U / norm if norm else math.inf)
        else:
            sigma = abs(alpha_r)
            mu = (1 if alpha_r > 0 else -1) * self.f(r) / scale

            def psi(phi):
                return (phi * sigma) ** 2 + 2 * phi * sigma * (1 - phi * mu)

            allowed = 15 / 32 * self.mistakes
            if self.Q + psi(1.0) <= allowed:
                phi = 1.0
            else:
                roots = np.roots([sigma**2 - 2 * sigma * mu, 2 * sigma, self.Q - allowed])
                phi = max(float(z.real) for z in roots if abs(z.imag) < 1e-9 and 0 < z.real <= 1)
            self.Q += psi(phi)
        self.alpha = [phi * a for a in self.alpha]
        self.drop(0)
