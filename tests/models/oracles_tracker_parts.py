"""Parts of the Tracker's naive twin: names' hashes, kernels, linear members, hats, a gate."""

import math
from itertools import combinations

import numpy as np

GOLDEN = 0x9E3779B97F4A7C15
BIAS = object()  # a name that no feature has


def mix(z):
    """Finaliser of SplitMix64."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def hashed(name):
    if isinstance(name, tuple):
        return chained([hashed(item) for item in name], len(name))
    if isinstance(name, (int, float)):
        return mix((hash(name) + GOLDEN) % 2**64)
    text = name if isinstance(name, bytes) else str(name).encode("utf-8", "surrogatepass")
    words = [int.from_bytes(text[i : i + 8], "little") for i in range(0, len(text), 8)]
    return chained(words, len(text))


def chained(words, length):
    state = mix((length + GOLDEN) % 2**64)
    for word in words:
        state = mix(state ^ word)
    return state


def dot(a, b):
    return math.fsum(a[name] * b[name] for name in a.keys() & b.keys())  # in any order


def kernel(width, dots, distances):
    return dots if width == 0 else np.exp(-width * distances)


def first(values, tolerance):
    """Number of the first value that is not below the largest by more than that."""
    return int(np.argmax(np.asarray(values) >= max(values) - tolerance))


def hats(v, n):
    """Hat functions of a value that are not 0, by their number: so many, evenly from -2 to 2."""
    place = (min(max(v, -2.0), 2.0) + 2.0) * (n - 1) / 4.0
    return {k: 1.0 - abs(place - k) for k in range(n) if abs(place - k) < 1.0}


def splined(z, present, paired):
    """What splines are linear in, and the same before it is divided: hats, products of two."""
    first = [name for name in list(z)[:paired] if name in present]
    z = {name: v for name, v in z.items() if name in present}
    curves = {(name, k): hat for name, v in z.items() for k, hat in hats(v, 9).items()}
    coarse = [(name, hats(z[name], 5).items()) for name in first]
    surfaces = {
        (a, b, k, m): f * g
        for (a, fs), (b, gs) in combinations(coarse, 2)
        for k, f in fs
        for m, g in gs
    }
    divided = {key: hat / math.sqrt(len(z)) for key, hat in curves.items()}
    d = len(coarse)
    divided |= {key: hat / math.sqrt(d * (d - 1) / 2) for key, hat in surfaces.items()}
    return divided, curves | surfaces


class Linear:
    """A linear model over the features, or over the slots that they are hashed to.

    `rows` are its weights by feature, a row for each score, and `known` is what each weight's rule
    keeps: AdaGrad's sum of squares, or by how much a Kalman filter's variance is below `PRIOR`. The
    `rate` of a filter is what an example adds to that variance, times what `near` has of a feature.
    That of gradient descent is another one where rows are `sparse`, and the bias is a fifth there.
    """

    PRIOR = 10.0

    def __init__(self, rule, rate, n_rows, *, sparse):
        self.rule, self.rate, self.sparse = rule, rate[sparse] if rule == "sgd" else rate, sparse
        self.rows, self.known = ([{} for _ in range(n_rows)] for _ in range(2))

    def scores(self, x):
        return [dot(x | {BIAS: 1.0}, row) for row in self.rows]

    def sizes(self, x):
        """Sum of the sizes of each score's terms."""
        return [
            sum(abs(v * row.get(n, 0.0)) for n, v in (x | {BIAS: 1.0}).items()) for row in self.rows
        ]

    def learn(self, x, w, residuals, chances, mean_square, *, near):
        """One step for each row, of which `chances` are the probabilities."""
        x = x | {BIAS: 1.0}
        for row, known, u, s in zip(self.rows, self.known, w * residuals, chances, strict=True):
            if self.rule == "sgd":
                seen = x | {BIAS: 0.04} if self.sparse else x
                steps = {name: u * v / mean_square for name, v in seen.items()}
            elif self.rule == "adagrad":
                for name, v in x.items():
                    known[name] = known.get(name, 0.0) + (u * v) ** 2
                steps = {n: u * v / (math.sqrt(known[n]) + 1e-6) for n, v in x.items()}
            else:
                gains = {name: (self.PRIOR - known.get(name, 0.0)) * v for name, v in x.items()}
                spread = w * s * (1 - s)
                total = 1 + spread * dot(gains, x)
                for name, gain in gains.items():
                    told = known.get(name, 0.0) + spread * gain**2 / total
                    known[name] = max(0.0, told - self.rate * near.get(name, 1.0))
                steps = {name: gain * u / total for name, gain in gains.items()}
            for name, step in steps.items():
                rate = self.rate if self.rule in {"sgd", "adagrad"} else 1.0
                row[name] = row.get(name, 0.0) + rate * step

    def split(self):
        [row], [known] = self.rows, self.known
        self.rows = [{k: half * v for k, v in row.items()} for half in (-0.5, 0.5)] + [{}]
        self.known = [known, dict(known), {}]

    def meet(self):
        self.rows.append(dict(self.rows[-1]))
        self.known.append(dict(self.known[-1]))


class SecondOrderGate:
    """The weights of a gate by a Kalman filter, as they walk at random."""

    PRIOR, WALK, CAP = 0.01, 1e-5, 0.1

    def __init__(self, n):
        self.covariance = self.PRIOR * np.eye(n)

    def step(self, weights, w, z):
        """Change of the weights where scores `z` speak for the label against its rival."""
        u = 1 / (1 + math.exp(min(max(float(weights @ z), -30.0), 30.0)))
        s = w * u * (1 - u)
        self.covariance += self.WALK * np.eye(len(z))
        a = self.covariance @ z
        total = 1 + s * (a @ z)
        self.covariance -= s * np.outer(a, a) / total
        for e in range(len(z)):
            if self.covariance[e, e] > self.CAP:
                root = math.sqrt(self.CAP / self.covariance[e, e])
                self.covariance[e] *= root
                self.covariance[:, e] *= root
        return w * u * a / total
