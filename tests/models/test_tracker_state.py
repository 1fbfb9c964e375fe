"""A Tracker's state: either core goes on from the other's, and neither from one that is forged."""

import math
import pickle
import random
from itertools import islice

import numpy as np
import pytest
from test_tracker_twin import ALL

from drift.models import Tracker, compiled
from drift.models._tracker.plain import TrackerCore


def tiny(n=120, seed=3):
    """Values that are 0 in float32 beside the others."""
    rng = random.Random(seed)
    for _ in range(n):
        x = {f"f{j}": rng.choice([-1, 1]) * 10.0 ** -rng.randrange(200) for j in range(8)}
        x["f0"] = rng.gauss(0.0, 1.0)
        yield x, x["f0"] > 0


STREAMS = {name: ALL[name] for name in ("text", "wide table", "late classes", "growing")}
STREAMS["tiny"] = tiny


@pytest.mark.skipif(not compiled, reason="there is one core")
@pytest.mark.parametrize("delay", [0, 4])
@pytest.mark.parametrize("scale", ["auto", "sparse"])
@pytest.mark.parametrize("stream", STREAMS)
def test_either_core_goes_on_from_the_state_of_the_other(stream, scale, delay, on_plain_store):
    """It predicts what the one predicts that gave the state, on the rest of the stream."""
    examples = list(islice(STREAMS[stream](), 120))

    def learnt():
        model = Tracker(6, scale=scale, seed=9, delay=delay)
        for x, y in examples[:80]:
            model.learn_one(x, y)
        return model, model.__getstate__()

    def built(state):
        model = Tracker.__new__(Tracker)
        model.__setstate__(state)
        return model

    with on_plain_store():
        plain, of_plain = learnt()
    fast, of_fast = learnt()
    from_plain = built(of_plain)
    with on_plain_store():
        from_fast = built(of_fast)
    for one, core in ((plain, "plain"), (from_fast, "plain"), (fast, ""), (from_plain, "")):
        inner = one._core.core if delay else one._core
        assert isinstance(inner, TrackerCore) == (core == "plain")
    for t, (x, y) in enumerate(examples[80:]):
        for one, other in ((plain, from_plain), (fast, from_fast)):
            expected = pytest.approx(one.predict_proba_one(x), abs=1e-4)
            assert other.predict_proba_one(x) == expected, f"example {t}"
            one.learn_one(x, y)
            other.learn_one(x, y)


def changed(name, change):
    def forge(core):
        core[name] = change(core[name].copy())

    return forge


def first(value):
    def change(numbers):
        numbers[0] = value
        return numbers

    return change


FORGED = {
    "huge maps": changed("maps", first(1e308)),
    "maps that sum to 2": changed("maps", lambda maps: 2.0 * maps),
    "huge weights": changed("weights", first(1e308)),
    "weights above 1": changed("weights", first(1.5)),
    "huge votes": changed("majority", first(1e308)),
    "a path to nowhere": changed("path", first(-math.inf)),
    "a path that is none": changed("path", first(math.nan)),
    "nothing can be read": lambda core: core["store"].update(most=-1.0),
    "a largest value of nan": lambda core: core["store"].update(most=math.nan),
    "a largest value too large": lambda core: core["store"].update(most=1e307),
}
PENDING = {
    "no examples": 3,
    "no example": [None] * 3,
    "no features": [(None, "a", 1.0)] * 3,
    "a text as a value": [({"x": "much"}, "a", 1.0)] * 3,
    "an infinite value": [({"x": math.inf}, "a", 1.0)] * 3,
    "a zero": [({"x": 0.0}, "a", 1.0)] * 3,
    "a list as a label": [({"x": 1.0}, ["a"], 1.0)] * 3,
    "no label": [({"x": 1.0}, None, 1.0)] * 3,
    "a weight of 0": [({"x": 1.0}, "a", 0.0)] * 3,
    "a weight of nan": [({"x": 1.0}, "a", math.nan)] * 3,
    "a huge weight": [({"x": 1.0}, "a", 1e99)] * 3,
}


def state_of_some(delay=0):
    model = Tracker(5, delay=delay)
    for t in range(10):
        model.learn_one({"x": math.sin(t), "y": math.cos(t)}, "ab"[t % 2])
    return pickle.loads(pickle.dumps(model.__getstate__()))


def refuse(state):
    model = Tracker.__new__(Tracker)
    with pytest.raises(ValueError, match="inconsistent"), np.errstate(all="raise"):
        model.__setstate__(state)


@pytest.mark.usefixtures("tolerance")
@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("delay", [0, 3])
def test_a_forged_state_is_refused(forge, delay):
    state = state_of_some(delay)
    forge(state["_core"]["behind"] if delay else state["_core"])
    refuse(state)


@pytest.mark.usefixtures("tolerance")
@pytest.mark.parametrize("pending", PENDING.values(), ids=PENDING)
def test_forged_examples_that_wait_are_refused(pending):
    state = state_of_some(delay=3)
    Tracker.__new__(Tracker).__setstate__(state)
    state["_core"]["pending"] = pending
    refuse(state)
