"""Both cores of a Tracker, example by example."""

import numpy as np

from drift.models import Tracker
from drift.models._tracker.layout import arrays_of
from drift.models._tracker.reference_core import TrackerCore
from tests.models.oracles import near


def both(budget, scale="auto", **parameters):
    """The two cores of a Tracker."""
    core = Tracker(budget, scale=scale, seed=9, **parameters)._core
    return core, TrackerCore(core.plan, scale, 9)


def same_slots(cores):
    """Whether the supports have the same features, slot by slot."""
    found, other = ([[*support] for support in core.supports()] for core in cores)
    return found == other


def same_values(found, expected, rel, most):
    """What `approx` says of two arrays; for large ones it takes hundreds of times as long."""
    if found.shape != expected.shape:
        return False
    gaps = np.abs(found.astype(float) - expected)
    return bool((gaps <= np.maximum(rel * np.abs(expected), most)).all())


def compare(cores, stream, *, weights=(1.0,), unmet=(), most=1e-6):
    """Learn a stream with both, and compare before each example; return the number of examples.

    `unmet` are features that examples, in turn, are predicted with and learnt without.
    Probabilities may differ by `most`: kernel values, and their sums, are float32 in the compiled
    core, and large scores of many classes leave few of their digits.
    """
    stream = list(stream)
    for t, (x, y) in enumerate(stream):
        more = [unmet[t % len(unmet)]] if unmet else []
        shown = [[outputs(core, x | names) for core in cores] for names in more]
        shown.append([outputs(cores[0], x)])
        for core in cores:
            core.learn(x, y, weights[t % len(weights)])
        shown[-1].append(cores[1].score())  # as it was predicted to be learnt
        for (prediction, chances), (expected, theirs) in shown:
            assert near(dict(enumerate(chances)), dict(enumerate(theirs)), most), f"example {t}"
            if len(chances) < 2 or np.subtract(*sorted(theirs)[:-3:-1]) > 2 * most:
                assert prediction == expected, f"example {t}"
        if not same_slots(cores):
            assert t >= 0.9 * len(stream), f"they part at example {t} of {len(stream)}"
            return t
    same_state(cores)
    return len(stream)


def outputs(core, x):
    core.read(x)
    return core.score()


def same_state(cores):
    """Equal within float32, except for tickets."""
    one, other = (core.state() for core in cores)
    assert one.keys() == other.keys()
    for name in one.keys() - {"arrays", "tickets"}:
        assert one[name] == other[name], name
        assert type(one[name]) is type(other[name]), name
    for name, array in one["arrays"].items():
        theirs = other["arrays"][name]
        assert (array.dtype, array.shape) == (theirs.dtype, theirs.shape)
    found, expected = (core.arrays() for core in cores)
    for name in ("gates", "maps", "errors", "losses", "sums"):
        most = 4.0 if name == "errors" else 1e-5  # a member's best two classes may be equal
        assert same_values(found[name], expected[name], 1e-4, most), name
    shown, others = (core.record() for core in cores)
    assert shown.keys() == others.keys()
    for name, value in shown.items():
        most = 4.0 if name == "errors" else 1e-5
        assert same_values(np.asarray(value), np.asarray(others[name]), 1e-4, most), name


#: Weight of an example that scales features, and teaches the members next to nothing.
NOTHING = 1e-9


def arrays(model):
    return model._core.arrays()


def changed(model, **values):
    """The model with other values in its arrays, which are changed in place by functions."""
    state = model.__getstate__()
    found = arrays_of(model._core.plan, state["_core"])
    for name, change in values.items():
        change(found[name])
    model.__setstate__(state)
    return model
