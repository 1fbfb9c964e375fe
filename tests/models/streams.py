"""Streams to compare models on: (features, label); where nothing else is said labels are bool."""

import lzma
import random
from functools import cache, wraps

import numpy as np
from scipy import sparse


def drawn_once(stream):
    """Draw the examples once, and give each test copies: there are thousands of tests."""
    drawn = cache(lambda *given, **more: list(stream(*given, **more)))

    @wraps(stream)
    def copies(*given, **more):
        return ((x.copy(), y) for x, y in drawn(*given, **more))

    return copies


@drawn_once
def random_stream(n=120, seed=0, *, signed=False):
    """Sparse rows over twelve features, labelled by a noisy linear rule."""
    rng = random.Random(seed)
    w = {f"f{j}": rng.gauss(0, 1) for j in range(12)}
    for _ in range(n):
        x = {k: rng.gauss(0, 1) if signed else rng.random() for k in w if rng.random() < 0.5}
        yield x, sum(w[k] * v for k, v in x.items()) + rng.gauss(0, 0.2) > 0


@drawn_once
def drifting_stream(n=150, seed=1):
    """Two topics' words, and a target that changes from one to the other and back."""
    rng = random.Random(seed)
    for t in range(n):
        topic = rng.random() < 0.5
        words = [f"w{min(int(rng.expovariate(0.15)), 39) + 20 * topic}" for _ in range(15)]
        x = dict.fromkeys(words, 0.0)
        for word in words:
            x[word] += 1.0
        yield x, topic == ((t // 50) % 2 == 0)


@drawn_once
def degenerate_stream(seed=2):
    """Duplicates with either label, empty dicts, one feature, zeros, NaN and tiny values."""
    rng = random.Random(seed)
    pool = [
        {},
        {"a": 0.0},
        {"a": 1.0},
        {"a": -0.3},
        {"a": 0.7, "b": float("nan")},
        {"b": 1},
        {"b": True, "c": 2},
        {"c": 0.3, "a": 0.1},
        {"tiny": 1e-30, "too": 1e-30},
        {"tiny": 2e-30},
        {"tiny": 1e-12, "a": 1.0},
        {("n", "gram"): 0.5, 7: 0.25, 7.5: 1.0},
        {7: 3.0, "7": 1.0, True: 2.0},
    ]
    for _ in range(150):
        yield rng.choice(pool), rng.random() < 0.5


@drawn_once
def huge_stream(seed=3):
    """Values whose products are far beyond float32, beside ordinary ones."""
    rng = random.Random(seed)
    pool = [
        {"huge": 3e18, "big": -1e18},
        {"huge": 2e18, "big": 1e18},
        {"huge": 1e18},
        {"a": 1.0, "b": 0.5},
        {"a": -0.3, "c": 2.0},
    ]
    for _ in range(80):
        yield rng.choice(pool), rng.random() < 0.5


def as_arrays(stream):
    """Return an example list as a dense matrix with a column per feature, and the labels."""
    examples = list(stream)
    names = sorted({name for x, _ in examples for name in x}, key=str)
    X = np.array([[x.get(name, 0.0) for name in names] for x, _ in examples], dtype=float)
    return X, [y for _, y in examples]


def clusters(labels, n=105, seed=0, *, drift=False):
    """Noisy points around a centre for each label; with `drift` the labels change centres."""
    rng = random.Random(seed)
    centres = [{f"f{j}": rng.random() for j in range(10) if rng.random() < 0.6} for _ in labels]
    for t in range(n):
        k = rng.randrange(min(len(labels), 1 + t // 8))  # classes appear one after the other
        centre = centres[(k + (t // 50 if drift else 0)) % len(labels)]
        x = {f: v * rng.uniform(0.3, 1.7) for f, v in centre.items()}
        x[f"f{rng.randrange(10)}"] = rng.random()
        yield x, labels[k]


def separable(seed, gap, n=150, size=4):
    """Unit vectors at least `gap` away from a hyperplane; and how far the nearest one is."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, size))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    u = rng.normal(size=size)
    distances = points @ u / np.linalg.norm(u)
    kept = np.abs(distances) >= gap
    examples = [dict(enumerate(x)) for x in points[kept].tolist()]
    return list(zip(examples, (distances[kept] > 0).tolist(), strict=True)), np.abs(
        distances[kept]
    ).min(initial=1.0)


def first_rows(path, rows):
    """Labels and features of the first rows of a LIBSVM file."""
    with lzma.open(path, "rt") as file:
        for _, line in zip(range(rows), file, strict=False):
            labels, *pairs = line.split()
            x = {int(k): float(v) for k, v in (pair.split(":") for pair in pairs)}
            yield x, labels.split(",")


def matrix_of(examples):
    rows, columns, values = zip(
        *((t, k, v) for t, (x, _) in enumerate(examples) for k, v in x.items()), strict=True
    )
    return sparse.csr_array((values, (rows, columns)))


STREAMS = {
    "random": random_stream,
    "signed": lambda: random_stream(signed=True),
    "drifting": drifting_stream,
    "degenerate": degenerate_stream,
    "huge": huge_stream,
}
