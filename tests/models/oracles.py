"""Naive twins of the models, written from the papers; they share no code with drift.

A twin knows the stream as a Gram matrix, `K[i][j]`, and its supports as numbers of examples.
``step(t, y)`` returns the score of example `t` before it learns the label `y` (-1 or +1), with the
weight `w`. Sums run in numpy, so that a twin lasts for thousands of real examples.
"""

import math
import random
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg.blas import dtrsv


def naive_kernel(name, a, b, *, degree=4, coef0=1.0, gamma=1.0, normalize=False):
    """Kernel of two dicts, straight from its definition."""
    if normalize == "rows":
        a, b = unit(a), unit(b)
    elif normalize:
        k = partial(naive_kernel, name, degree=degree, coef0=coef0)
        size = math.sqrt(k(a, a)) * math.sqrt(k(b, b))
        u = {"u": 1.0}
        return k(u, u) * k(a, b) / size if size else 0.0
    if name == "rbf":
        return math.exp(-gamma * math.fsum((a.get(k, 0.0) - b.get(k, 0.0)) ** 2 for k in a | b))
    dot = math.fsum(v * b[k] for k, v in a.items() if k in b)
    return dot if name == "linear" else (dot + coef0) ** degree


def unit(x):
    norm = math.sqrt(math.fsum(v * v for v in x.values()))
    return {k: v / norm for k, v in x.items()} if norm else x


def naive_gram(examples, name, *, degree=4, coef0=1.0, gamma=1.0, normalize=False):
    """`naive_kernel` of each pair, equal pairs with equal bits: no BLAS adds in another order."""
    if normalize == "rows":
        examples = [unit(x) for x in examples]
    names = list(dict.fromkeys(k for x in examples for k in x))
    X = np.array([[x.get(k, 0.0) for k in names] for x in examples], dtype=float)
    X = X.reshape(len(examples), len(names))
    if name == "rbf":
        squares = [((X - x) ** 2).sum(axis=1, dtype=np.longdouble).tolist() for x in X]
        return np.array([[math.exp(-gamma * s) for s in row] for row in squares])
    dots = [(X * x).sum(axis=1, dtype=np.longdouble).astype(float).tolist() for x in X]
    if name == "polynomial":
        dots = [[(dot + coef0) ** degree for dot in row] for row in dots]
    if normalize is True:
        free = 1.0 if name == "linear" else (1.0 + coef0) ** degree
        lengths = [math.sqrt(row[i]) for i, row in enumerate(dots)]
        dots = [
            [free * k / (a * b) if a * b else 0.0 for k, b in zip(row, lengths, strict=True)]
            for row, a in zip(dots, lengths, strict=True)
        ]
    return np.array(dots)


def near(found, expected, most):
    """Whether a score, or each of the scores of the same classes, is off by at most so much.

    For the tests that ask at each example: `pytest.approx` takes hundreds of times as long.
    """
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            abs(found[r] - score) <= most for r, score in expected.items()
        )
    return abs(found - expected) <= most


@dataclass(frozen=True)
class Case:
    """A model and its twin: functions of drift's kernel (of the Gram matrix too) and a budget.

    `feeds_back` marks the models whose coefficients depend on scores, so that the rounding of
    float32 columns grows from update to update: tenfold in a thousand real examples.
    """

    model: object
    twin: object
    feeds_back: bool = False


class Twin:
    """A Perceptron; the others differ from it in `mistake`."""

    w = 1.0  # weight of the examples learnt next

    def __init__(self, gram):
        self.K = self.sizes = gram
        self.supports = []  # numbers of examples, the oldest first
        self.alpha = []
        self.mistakes = 0

    def recognise(self, examples):
        """Hear what the examples hold, where it matters whether two are the same one."""

    def refuses(self, t):
        """Whether example `t` is refused because of its size."""
        return False

    def f(self, t):
        return float((self.alpha * self.K[t, self.supports]).sum()) if self.supports else 0.0

    def pairs(self):
        return zip(self.supports, self.alpha, strict=True)

    def size(self, t):
        """Scale of rounding errors in f(t): sum of |alpha_i k(x_i, x)|."""
        if not self.supports:
            return 0.0
        return float(np.abs(self.alpha * self.sizes[t, self.supports]).sum())

    def step(self, t, y):
        score = self.f(t)
        if abs(score) <= 1e-12 * self.size(t):  # a tie except for the rounding of the Gram matrix
            score = 0.0
        if y * score <= 0:
            self.mistakes += 1
            self.mistake(t, y)
        return score

    def mistake(self, t, y):
        self.add(t, self.w * y)

    def add(self, t, alpha):
        self.supports.append(t)
        self.alpha.append(alpha)

    def drop(self, i):
        del self.supports[i], self.alpha[i]


class Perceptron(Twin):
    pass


class Carried(Twin):
    """A twin that knows what f is at each support without it, by sums while supports are few.

    With more than `FEW` it carries them on from change to change, at a row of that matrix each, as
    the sums would take cubic time. At every hundredth they check what is carried and replace it.
    """

    FEW = 200

    def __init__(self, gram):
        super().__init__(gram)
        self.rest = np.zeros((2, 0))  # these sums, and those of their terms' sizes
        self.changes = 0

    def terms(self, t, alpha, at):
        row = alpha * self.K[t, at]
        return np.array([row, np.abs(row)])

    def add(self, t, alpha):
        others = self.rest + self.terms(t, alpha, self.supports)
        self.rest = np.column_stack([others, [self.f(t), Twin.size(self, t)]])
        super().add(t, alpha)
        self.check()

    def drop(self, i):
        terms = self.terms(self.supports[i], self.alpha[i], self.supports)
        self.rest = np.delete(self.rest - terms, i, axis=1)
        super().drop(i)
        self.check()

    def scale(self, c):
        self.alpha = [c * a for a in self.alpha]
        self.rest = [[c], [abs(c)]] * self.rest

    def squared_norm(self):
        """||f||^2."""
        diagonal = self.K[self.supports, self.supports]
        return float(self.alpha @ (self.rest[0] + self.alpha * diagonal))

    def check(self):
        self.changes += 1
        many = len(self.supports) > self.FEW
        if not self.supports or (many and self.changes % 100):
            return
        gram = self.K[np.ix_(self.supports, self.supports)]
        np.fill_diagonal(gram, 0.0)
        sums = np.array([gram @ self.alpha, np.abs(gram) @ np.abs(self.alpha)])
        assert not many or np.abs(self.rest[0] - sums[0]).max() <= 1e-10 * sums[1].max()
        self.rest = sums


class VotedPerceptron(Perceptron):
    """Freund and Schapire, figure 1, kernel form: all hypotheses kept, each with its votes."""

    def __init__(self, gram, averaged):
        super().__init__(gram)
        self.averaged = averaged
        self.votes = [0]  # of the hypothesis over the first j supports

    def terms(self, t):
        return self.alpha * self.K[t, self.supports] if self.supports else np.zeros(0)

    def values(self, t):
        """Value of each hypothesis; that of the empty one is 0."""
        terms = self.terms(t)
        values = np.cumsum(terms)
        values[np.abs(values) <= 1e-12 * np.cumsum(np.abs(terms))] = 0.0
        return np.array([0.0, *values])

    def ballots(self, t):
        values = self.values(t)
        return np.array(self.votes) * (values if self.averaged else np.sign(values))

    def size(self, t):
        return float(np.abs(self.ballots(t)).sum())

    def step(self, t, y):
        score = float(np.sum(self.ballots(t)))
        most = np.dot(self.votes[1:], np.cumsum(np.abs(self.terms(t))))
        if self.averaged and abs(score) <= 1e-12 * most:
            score = 0.0
        self.mistakes += y * score <= 0
        if y * self.values(t)[-1] <= 0:
            self.add(t, self.w * y)
            self.votes.append(self.w)
        else:
            self.votes[-1] += self.w
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
            C = self.w * self.C
            self.add(t, y * (min(C, loss / self.K[t][t]) if self.K[t][t] else C))
        return score


class SOP(Twin):
    """Cesa-Bianchi et al., dual form: each score solves the whole system, by Cholesky's factor.

    The factor L of aI + G over the supports is kept, as each score's afresh would take cubic time:
    a support adds a row to it, an eviction has it computed anew. A test holds `dual` to the
    system's direct solution. With weights the system is that of weighted least squares: a support
    of weight w has a / w for a.
    """

    def __init__(self, gram, ridge, budget=None, victim=None):
        super().__init__(gram)
        self.ridge = ridge
        self.budget = budget
        self.victim = victim
        self.L = np.zeros((0, 0))
        self.weights = []  # of the supports

    def refuses(self, t):
        """Beyond that, the rounding of kernel values leaves nothing of a score."""
        return self.K[t, t] > 1e10 * self.ridge

    def row(self, t, w=1.0):
        """Add the row of example `t` to the factor: what is left of it and of its diagonal."""
        if not self.supports:
            return np.zeros(0), self.ridge / w + self.K[t, t]
        left = dtrsv(self.L, self.K[t, self.supports], lower=1)
        return left, self.ridge / w + self.K[t, t] - left @ left

    def dual(self, t):
        """First entries of u = (aI + G)^{-1} g, where g = (aI + G) e - a e is the last column of G.

        So u = e - a (L L')^{-1} e, and (L L')^{-1} e is the factor's last row over its diagonal,
        solved back.
        """
        left, diagonal2 = self.row(t)
        if not self.supports:
            return left
        back = dtrsv(self.L, left, lower=1, trans=1)
        return self.ridge / diagonal2 * back

    def f(self, t):
        return float(np.dot(self.alpha, self.dual(t)))

    def size(self, t):
        return float(np.abs(self.dual(t)).sum())

    def mistake(self, t, y):
        if self.budget and len(self.supports) == self.budget:
            self.drop(self.victim())
            supports = self.K[np.ix_(self.supports, self.supports)]
            self.L = np.linalg.cholesky(
                self.ridge * np.diag(1.0 / np.array(self.weights)) + supports
            )
        left, diagonal2 = self.row(t, self.w)
        self.L = np.pad(self.L, (0, 1))
        self.L[-1] = [*left, math.sqrt(diagonal2)]
        self.add(t, y)
        self.weights.append(self.w)

    def drop(self, i):
        super().drop(i)
        del self.weights[i]


class SPA(Twin):
    """Cavallanti et al., figure 1; k counts mistakes from 0 and lambda_0 = 1."""

    def __init__(self, gram, decay):
        super().__init__(gram)
        self.decay = decay

    def mistake(self, t, y):
        k = self.mistakes - 1
        lam = 1.0 if k == 0 else self.decay / (self.decay + k)
        self.alpha = [(1 - lam) * a for a in self.alpha]
        super().mistake(t, y)


class RBP(Twin):
    """Cavallanti et al., section 3: the victim is drawn among the B supports."""

    def __init__(self, gram, budget, seed):
        super().__init__(gram)
        self.budget = budget
        self.rng = random.Random(seed)

    def mistake(self, t, y):
        if len(self.supports) == self.budget:
            self.drop(self.rng.randrange(self.budget))
        super().mistake(t, y)


class LBP(Twin):
    def __init__(self, gram, budget):
        super().__init__(gram)
        self.budget = budget

    def mistake(self, t, y):
        if len(self.supports) == self.budget:
            self.drop(0)
        super().mistake(t, y)


class Forgetron(Twin):
    """Dekel et al.; `bound` is the closed form of max k(x, x), None for a running maximum."""

    def __init__(self, gram, budget, shrinking, bound):
        super().__init__(gram)
        self.budget = budget
        self.shrinking = shrinking
        self.bound = bound
        self.running = 0.0
        self.Q = 0.0
        self.M = 0.0  # weight of all mistakes

    def mistake(self, t, y):
        super().mistake(t, y)
        self.M += self.w
        self.running = max(self.running, self.K[t][t])
        if len(self.supports) <= self.budget:
            return
        scale = self.bound or self.running or 1.0
        r, alpha_r = self.supports[0], self.alpha[0]
        if self.shrinking == "basic":
            B1 = self.budget + 1
            U = 0.25 * math.sqrt(B1 / math.log(B1))
            squared_norm = self.alpha @ self.K[np.ix_(self.supports, self.supports)] @ self.alpha
            norm = math.sqrt(max(0.0, squared_norm) / scale)
            phi = min(B1 ** (-0.5 / B1), U / norm if norm else math.inf)
        else:
            sigma = abs(alpha_r)
            mu = (1 if alpha_r > 0 else -1) * self.f(r) / scale

            def psi(phi):
                return (phi * sigma) ** 2 + 2 * phi * sigma * (1 - phi * mu)

            allowed = 15 / 32 * self.M
            if self.Q + psi(1.0) <= allowed:
                phi = 1.0
            else:
                roots = np.roots([sigma**2 - 2 * sigma * mu, 2 * sigma, self.Q - allowed])
                phi = max(float(z.real) for z in roots if abs(z.imag) < 1e-9 and 0 < z.real <= 1)
            self.Q += psi(phi)
        self.alpha = [phi * a for a in self.alpha]
        self.drop(0)
