"""The Tracker gives the probabilities, predictions and bound of a naive twin, on either store.

No prediction hangs on a last bit: scores, probabilities and votes within a tolerance are ties,
which the first class wins in the twin as well. Where scores differ by that tolerance itself, or a
loss lies at the threshold of insertion, the comparison ends, but not before nine tenths of the
examples: the streams' seeds are such that no tie comes sooner.
"""

import random
from functools import cache, partial
from itertools import islice

import numpy as np
import pytest
from oracles_tracker import Tracker as Twin
from streams import STREAMS
from test_multiclass import clusters

from drift.models import Tracker


def checkerboard(n=160, seed=5):
    rng = random.Random(seed)
    for _ in range(n):
        x = {"a": 3 * rng.random(), "b": 3 * rng.random()}
        yield x, (int(x["a"]) + int(x["b"])) % 2


def constant(n=100, seed=6):
    """Features that say nothing, with zeros and missing ones that are the same."""
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
    """The same values under other names: many supports are equally near, but for rounding."""
    rng = random.Random(seed)
    for _ in range(n):
        values = rng.sample([0.1, 0.3, 0.5, 0.7], 4)
        yield dict(zip("abcd", values, strict=True)), rng.random() < 0.5


def paired(first, most, third=None, *, n=120, share=0.9):
    """Pairs' products tell. Names join one by one from `first` to `most`, a third class late.

    A row has a `share` of them. One that has more than 16 and brings the 17th ends surfaces.
    """
    rng = random.Random(10)
    for t in range(n):
        names = range(min(first + t // 5, most))
        x = {f"f{j}": rng.gauss(0.0, 1.0) for j in names if rng.random() < share}
        late = third is not None and t >= third and rng.random() < 0.3
        yield x, 2 if late else int(x.get("f0", 0.5) * x.get("f1", 1.0) > 0.0)


LATE = {"late classes": late_classes, "classes": partial(clusters, list(range(6)), seed=6)}
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
}
#: Streams of few names, for surfaces: of so many, and with a 17th from example 80 on, in rows that
#: have all names or half of them.
FEW = {
    **{f"{n} names": partial(paired, n, n) for n in (1, 2, 3, 16, 17)},
    "17 names in each": partial(paired, 17, 17, share=1.0),
    "3 names, classes": partial(paired, 3, 3, 0),
    "16 names, late class": partial(paired, 16, 16, 40),
    "growing": partial(paired, 1, 18, share=1.0),
    "growing, classes": partial(paired, 1, 18, 0, share=1.0),
    "growing, late class": partial(paired, 1, 18, 95, share=1.0),
    "growing, halves, classes": partial(paired, 4, 27, 0, share=0.5),
    "growing, halves, late class": partial(paired, 4, 27, 95, share=0.5),
}
ALL = STREAMS | LATE | OWN


def check_enough(compared, examples):
    """Fail where a comparison ended so soon that it says little."""
    assert compared >= 0.9 * examples, f"only {compared} of {examples} examples were compared"


@pytest.fixture(scope="module")
def traces():
    """What the twin says before each example, by stream, scale and budget; computed once."""
    cache = {}

    def compute(*key):
        if key not in cache:
            stream, scale, budget = key
            twin, steps = Twin(budget, scale=scale, seed=9), []
            examples = list(islice(ALL[stream](), 120))
            for x, y in examples:
                step = x, y, twin.predict(x), twin.proba(x)
                if twin.doubtful:
                    break
                steps.append(step)
                twin.learn(x, y)
            check_enough(len(steps), len(examples))
            cache[key] = steps, twin
        return cache[key]

    return compute


@pytest.mark.covering(2)
@pytest.mark.parametrize("budget", [1, 2, 3, 12])
@pytest.mark.parametrize("scale", ["auto", "dense", "sparse"])
@pytest.mark.parametrize("stream", ALL)
@pytest.mark.usefixtures("tolerance")
def test_agrees_with_its_twin(stream, scale, budget, traces):
    steps, twin = traces(stream, scale, budget)
    model = Tracker(budget, scale=scale, seed=9)
    for t, (x, y, prediction, chances) in enumerate(steps):
        # Coefficients are float32; a merge into neighbours that all but coincide amplifies that.
        assert model.predict_proba_one(x) == pytest.approx(chances, abs=1e-4), f"example {t}"
        assert model.predict_one(x) == prediction, f"example {t}"
        model.learn_one(x, y)
    record, experts = model.regret_bound(), model.experts
    bound, switches = twin.bound()
    assert record.log_loss == pytest.approx(twin.log_loss, rel=1e-4)
    assert record.bound == pytest.approx(bound, rel=1e-4)
    assert record.switches == switches
    assert [e.weight for e in experts] == pytest.approx(twin.weights, abs=1e-4)
    assert [e.error for e in experts] == pytest.approx(twin.errors / len(steps))


@cache
def said_of_few_names(stream, **parts):
    """What the twin says of each example, and of it with names that are never learnt."""
    twin, steps, examples = Twin(5, seed=9, **parts), [], list(FEW[stream]())
    unmet = {"unmet": 2.0}, {f"unmet{k}": 2.0 for k in range(17)}
    for t, (x, y) in enumerate(examples):
        more = x | unmet[t % 2]
        steps.append([(z, twin.predict(z), twin.proba(z)) for z in (more, x)])
        if twin.doubtful:
            steps.pop()
            break
        twin.learn(x, y)
    check_enough(len(steps), len(examples))
    return steps


@pytest.mark.parametrize(
    ("stream", "parts"),
    [
        *((stream, {}) for stream in FEW),
        *(("growing, classes", {part: False}) for part in ("splines", "pairs")),
    ],
)
@pytest.mark.usefixtures("tolerance")
def test_agrees_with_its_twin_on_few_names(stream, parts):
    """What ends surfaces when it is learnt is only without them when it is predicted."""
    steps = said_of_few_names(stream, **parts)
    model = Tracker(5, seed=9, **parts)
    for t, (said, (_, y)) in enumerate(zip(steps, FEW[stream](), strict=False)):
        for x, prediction, chances in said:
            assert model.predict_proba_one(x) == pytest.approx(chances, abs=1e-4), f"example {t}"
            assert model.predict_one(x) == prediction, f"example {t}"
        model.learn_one(x, y)


@pytest.mark.parametrize(
    "parameters",
    [
        dict(kernels=(0.5,), rates=(1.0,), forgetting=(2.0,)),
        dict(kernels=(3.0, 0.0, 24.0), rates=(0.1, 2.0, 20.0), forgetting=(0.0,), share=0.05),
        dict(kernels=(0.0,), forgetting=(0.0, 100.0), share=0.0, decide="probability"),
        dict(splines=False),
        dict(pairs=False),
    ],
)
@pytest.mark.usefixtures("tolerance")
def test_agrees_with_its_twin_under_other_parameters(parameters):
    """With weights of examples, too."""
    model, twin = Tracker(6, seed=-3, **parameters), Twin(6, seed=-3, **parameters)
    for t, (x, y) in enumerate(clusters(list("abc"), 90, seed=4)):
        assert model.predict_proba_one(x) == pytest.approx(twin.proba(x), abs=1e-4), f"example {t}"
        assert model.predict_one(x) == twin.predict(x), f"example {t}"
        w = (0.3, 1.0, 2.5, 0.0)[t % 4]
        model.learn_one(x, y, w)
        twin.learn(x, y, w)
    losses = [sum(losses[e] for _, losses in twin.losses) for e in range(len(twin.weights))]
    total = sum((0.3, 1.0, 2.5, 0.0)[t % 4] for t in range(90))
    assert [e.log_loss for e in model.experts] == pytest.approx(np.array(losses) / total, rel=1e-4)
    assert [e.error for e in model.experts] == pytest.approx(twin.errors / total)


@pytest.mark.usefixtures("tolerance")
def test_a_row_of_many_new_names_turns_it_to_sparse_rows():
    """What the splines would learn of such a row has no room, and is dropped."""
    model, twin = Tracker(3, seed=9), Twin(3, seed=9)
    wide = dict.fromkeys(range(2000), 1.0)
    for t, x in enumerate([{"a": 1.0}] * 10 + [wide] + [{"a": 1.0, 5: 2.0}, {7: 1.0}] * 5):
        assert model.predict_proba_one(x) == pytest.approx(twin.proba(x), abs=1e-4)
        model.learn_one(x, t % 2)
        twin.learn(x, t % 2)
    assert twin.sparse


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.usefixtures("tolerance")
def test_linear_experts_that_fell_behind_go_on_from_others(n_classes):
    """Words that mean another class in each hundred of examples; a tenth of the labels is wrong."""
    rng = random.Random(4)
    model, twin, compared = Tracker(4, scale="sparse"), Twin(4, scale="sparse"), 0
    for t in range(400):
        words = rng.sample(range(30), 5)
        x = dict.fromkeys(map(str, words), 1.0)
        y = rng.randrange(n_classes) if rng.random() < 0.1 else (max(words) + t // 100) % n_classes
        chances = twin.proba(x)
        if twin.doubtful:
            break
        assert model.predict_proba_one(x) == pytest.approx(chances, abs=1e-4), f"example {t}"
        model.learn_one(x, y)
        twin.learn(x, y)
        compared += 1
    check_enough(compared, 400)
    assert twin.caught_up[1] > 0
    assert twin.caught_up[0] > 0 or n_classes > 2  # with more weights there is more patience
