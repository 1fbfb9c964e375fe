"""Streams for the Tracker's tests, beside those for every model: (features, label)."""

import random
from functools import partial
from itertools import islice

from tests.models.streams import STREAMS, clusters


def checkerboard(n=160, seed=5):
    rng = random.Random(seed)
    for _ in range(n):
        x = {"a": 3 * rng.random(), "b": 3 * rng.random()}
        yield x, (int(x["a"]) + int(x["b"])) % 2


def constant(n=100, seed=6):
    """Features that say nothing, with zeros and missing ones."""
    rng = random.Random(seed)
    for _ in range(n):
        nothing = rng.choice([{}, {"c": 0.0}, {"c": float("nan"), "d": 0}])
        yield {"a": 3.0, "b": -0.1} | nothing, rng.random() < 0.7


def one_class(n=60):
    for x, _ in islice(STREAMS["random"](), n):
        yield x, "only"


def late_classes(n=150, seed=7):
    """Five classes, of which the third comes after 60 examples and the last after 110."""
    for t, (x, y) in enumerate(clusters(list("abcde"), n, seed)):
        yield x, min(y, "b" if t < 60 else "c" if t < 90 else "d" if t < 110 else "e")


def table(n=150, seed=10):
    """Two numbers, at times a million times as large, and a category of twelve."""
    rng = random.Random(seed)
    for _ in range(n):
        x = {"a": rng.gauss(2.0, 1.0), "b": rng.expovariate(1.0)}
        y = x["a"] * x["b"] > 2.0
        x["a"] *= 1e6 ** (rng.random() < 0.04)
        yield x | {f"c={rng.randrange(12)}": 1.0}, y


def wide_table(n=150, seed=11):
    """A large number, one that is absent at times, a constant and eight categories of many."""
    rng = random.Random(seed)
    for _ in range(n):
        x = {"amount": 1e3 * rng.lognormvariate(0.0, 1.0), "year": 2026.0}
        y = x["amount"] > 1e3
        if rng.random() < 0.6:
            x["age"] = rng.gauss(40.0, 10.0)
            y ^= x["age"] > 45.0
        yield x | {f"{c}={int(rng.expovariate(0.03))}": 1.0 for c in "bcdefghi"}, y


def logs(n=150, seed=12):
    """Two numbers and thirty categories: too many names within some ten examples."""
    rng = random.Random(seed)
    for _ in range(n):
        x = {"bytes": rng.lognormvariate(8.0, 2.0), "status": 200.0 + 100.0 * rng.randrange(4)}
        y = x["bytes"] > 3e3 * (1.0 + (x["status"] > 350.0))
        yield x | {f"{c}={rng.randrange(60)}": 1.0 for c in range(30)}, y


def text(n=150, seed=8):
    """Words, most of them rare: too many names for dense scaling, after a while."""
    rng = random.Random(seed)
    for t in range(n):
        topic = rng.random() < 0.5
        words = [f"w{int(rng.paretovariate(0.4)) % 500 + 250 * topic}" for _ in range(25)]
        yield {w: float(words.count(w)) for w in words}, topic == (t < 90)


def permuted(n=150, seed=13):
    """The same values under other names: many supports are equally near except for rounding."""
    rng = random.Random(seed)
    for _ in range(n):
        values = rng.sample([0.1, 0.3, 0.5, 0.7], 4)
        yield dict(zip("abcd", values, strict=True)), rng.random() < 0.5


def paired(first, most, third=None, *, n=120, share=0.9):
    """Pairs' products tell. Names join one by one from `first` to `most`, a third class late.

    A row has a `share` of them.
    """
    rng = random.Random(10)
    for t in range(n):
        names = range(min(first + t // 4, most))
        x = {f"f{j}": rng.gauss(0.0, 1.0) for j in names if rng.random() < share}
        late = third is not None and t >= third and rng.random() < 0.3
        yield x, 2 if late else int(x.get("f0", 0.5) * x.get("f1", 1.0) > 0.0)


def gaps(n=150, seed=14):
    """Numbers far from 0 that are absent, None or NaN at times, and one that is 0 at times."""
    rng = random.Random(seed)
    for _ in range(n):
        x = {"a": rng.gauss(50.0, 3.0), "b": rng.gauss(-9.0, 1.0), "c": float(rng.random() < 0.5)}
        y = x["a"] - 3.0 * x["b"] > 77.0
        for name in "abc":
            missing = rng.randrange(8)
            if missing == 0:
                del x[name]
            elif missing < 3:
                x[name] = (None, float("nan"))[missing - 1]
        yield x, y


def jumps(n=150, seed=18):
    """A number that jumps to another level, and one whose steps shrink for good."""
    rng = random.Random(seed)
    for t in range(n):
        a, b = rng.gauss(0.0, 1.0), rng.gauss(0.0, 1.0)
        yield {"a": a + 100.0 * (t > 60), "b": b * 1e-3 ** (t > 60)}, a + b > 0.0


def outliers(n=115, seed=1):
    """Values whose deviations float32 has not, before outliers are clipped and after."""
    rng = random.Random(seed)
    for t in range(n):
        y = rng.random() < 0.5
        x = {"a": rng.gauss(4.0 * y, 1.0), "b": 1e-100 * rng.gauss(4.0 * y, 1.0)}
        if t in {5, 60}:
            x = {"a": 1e39, "b": -1e149} if t == 5 else {"a": -1e149, "b": 1e39}
        yield x, y


def tiny(n=120, seed=3):
    """Values that are 0 in float32 beside the others."""
    rng = random.Random(seed)
    for _ in range(n):
        x = {f"f{j}": rng.choice([-1, 1]) * 10.0 ** -rng.randrange(200) for j in range(8)}
        x["f0"] = rng.gauss(0.0, 1.0)
        yield x, x["f0"] > 0


LATE = {"late classes": late_classes, "classes": partial(clusters, list(range(6)), 120, seed=6)}
OWN = {
    "checkerboard": checkerboard,
    "constant": constant,
    "one class": one_class,
    "table": table,
    "text": text,
    "wide table": wide_table,
    "logs": logs,
    "growing": partial(paired, 1, 18, 50),
    "permuted": permuted,
    "gaps": gaps,
    "jumps": jumps,
    "outliers": outliers,
    "tiny": tiny,
}
#: Streams of few names: of so many, and with more later, in rows that have all of them or half.
FEW = {
    **{f"{n} names": partial(paired, n, n) for n in (1, 3, 17)},
    "3 names, classes": partial(paired, 3, 3, 0),
    "16 names, late class": partial(paired, 16, 16, 40),
    "growing": partial(paired, 1, 18, share=1.0),
    "growing, classes": partial(paired, 1, 18, 0, share=1.0),
    "growing, late class": partial(paired, 1, 18, 70, share=1.0),
    "growing, halves, classes": partial(paired, 4, 27, 0, share=0.5),
    "growing, halves, late class": partial(paired, 4, 27, 70, share=0.5),
}
ALL = STREAMS | LATE | OWN
