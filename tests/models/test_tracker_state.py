"""A Tracker's state: each core continues from the other's, and refuses a forged one."""

import math
import pickle
from functools import cache
from itertools import islice, product

import numpy as np
import pytest

from drift.models import Tracker, compiled
from drift.models._tracker.layout import Shape, arrays_of, layout_of
from drift.models._tracker.reference_core import TrackerCore
from drift.models._tracker.tables import FEATURE, GROUPS, SUMS, n_knots
from tests.models.tracker_streams import ALL, FEW, wide_table

STREAMS = {name: ALL[name] for name in ("text", "wide table", "late classes", "growing", "tiny")}


@pytest.mark.covering(1)
@pytest.mark.skipif(not compiled, reason="there is one core")
@pytest.mark.parametrize("scale", ["auto", "sparse"])
@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize("stream", STREAMS)
def test_either_core_continues_from_the_state_of_the_other(stream, trees, scale, on_plain_store):
    """It predicts what the one predicts that gave the state, on the rest of the stream."""
    examples = list(islice(STREAMS[stream](), 95))

    def learnt():
        model = Tracker(6, scale=scale, seed=9, trees=trees)
        for x, y in examples[:70]:
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
        assert isinstance(one._core, TrackerCore) == (core == "plain")
    for t, (x, y) in enumerate(examples[70:]):
        for one, other in ((plain, from_plain), (fast, from_fast)):
            expected = pytest.approx(one.predict_proba_one(x), abs=1e-5)
            assert other.predict_proba_one(x) == expected, f"example {t}"
            one.learn_one(x, y)
            other.learn_one(x, y)


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("late", [False, True])
def test_a_moment_stays_as_it_was(late):
    """The state is a snapshot: the model may learn on."""
    model, examples = Tracker(5, late=late, trees=True), list(islice(ALL["late classes"](), 90))
    examples[20:24] = [examples[19]] * 4  # an example of several tickets
    for t, (x, _) in enumerate(examples):
        if t == 60:
            before, snapshot = pickle.dumps(model), model._snapshot()
        model.predict_one(x)
        if t >= 15:
            model.learn_one(*examples[t - 15])
    assert pickle.dumps(snapshot) == before != pickle.dumps(model)


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("scale", ["dense", "sparse"])
def test_the_arrays_of_a_group_lie_one_behind_the_other(scale):
    state = state_of_some(scale)["_core"]
    groups, named = state["arrays"], arrays_of(PLAN, state)
    sizes, numbers, values = supports_of(state)
    assert len(sizes) == state["slots"]
    assert sizes.sum() == len(numbers) == len(values) == state["values"]
    behind = {"int32": [sizes, numbers], "float32": [values]}
    for group, names in GROUPS.items():
        expected = [named[name].ravel() for name in names] + behind.get(group, [])
        assert groups[group].ravel().tolist() == np.concatenate(expected).tolist()
    assert named["sums"][SUMS.index("learnt")] == 40.0
    assert named["squared"].shape == (named["coefficients"].shape[2],)


# --- what is refused ----------------------------------------------------------------------------


# One check, of the state's values, is for both cores: it is tried on the core that there is.


def state_of_some(scale="dense"):
    """Return a state of its own each time, of the core that Trackers have here."""
    return pickle.loads(learnt_by(type(Tracker(5)._core), scale))


@cache
def learnt_by(_core, scale):
    model = Tracker(5, scale=scale, trees=True)
    for t in range(40):
        model.learn_one({"x": math.sin(t), "y": math.cos(t)}, "abc"[t % 3])
    return pickle.dumps(model.__getstate__())


def refuse(state, match="inconsistent"):
    model = Tracker.__new__(Tracker)
    with pytest.raises(ValueError, match=match), np.errstate(all="raise"):
        model.__setstate__(state)


def supports_of(core):
    return layout_of(Shape.of(PLAN, core)).supports(core["arrays"])


def array(name, change):
    """Change an array by a function, in place or by another one's numbers."""

    def forge(core):
        supports = dict(zip(("sizes", "numbers", "values"), supports_of(core), strict=True))
        part = supports[name] if name in supports else arrays_of(PLAN, core)[name]
        result = change(part)
        part[...] = part if result is None else result

    return forge


def put(place, value):
    def change(numbers):
        numbers[place] = value

    return change


def beside(**values):
    return lambda core: core.update(values)


def swapped(numbers):
    numbers[:2] = numbers[1::-1]


def take_another_slot(core):
    core["free"] = (core["free"] + 1) % core["slots"]


def use_the_free_slot(core):
    arrays_of(PLAN, core)["coefficients"][0, 0, core["free"]] = 0.5


def free_a_support(core):
    take_another_slot(core)
    arrays = arrays_of(PLAN, core)
    arrays["coefficients"][:, :, core["free"]] = arrays["squared"][core["free"]] = 0.0


PLAN = Tracker(5, trees=True)._core.plan
_VARIANCE = FEATURE.index("variance")

FORGED = {
    "another free slot": (take_another_slot, "coefficients of the free slot"),
    "a free slot that there is not": (beside(free=6), "free slot"),
    "a free slot of another type": (beside(free=5.0), "free slot"),
    "a free slot that is used": (use_the_free_slot, "coefficients of the free slot"),
    "a free slot with a support": (free_a_support, "support in the free slot"),
    "a class twice": (beside(classes=["a", "b", "b"]), "classes"),
    "a list as a class": (beside(classes=["a", "b", ["c"]]), "unhashable"),
    "no class as a class": (beside(classes=["a", "b", None]), "missing"),
    "another number of classes": (beside(classes=["a", "b"]), "float32 arrays"),
    "classes that are no list": (beside(classes="abc"), "classes"),
    "a name twice": (beside(names=["x", "x"]), "names"),
    "a list as a name": (beside(names=["x", ["y"]]), "names"),
    "one name less": (beside(names=["x"]), "float32 arrays"),
    "one name more": (beside(names=["x", "y", "z"]), "float32 arrays"),
    "more names than dense rows have": (beside(names=[*map(str, range(4097))]), "names"),
    "names that are no list": (beside(names=("x", "y")), "names"),
    "a row less in a window": (beside(windows=[39, 40]), "float32 arrays"),
    "a row more in a window": (beside(windows=[40, 41]), "float32 arrays"),
    "a window below 0": (beside(windows=[-1, 40]), "windows"),
    "too large a window": (beside(windows=[40, 65]), "windows"),
    "one window": (beside(windows=[40]), "windows"),
    "windows of another type": (beside(windows=[40, 40.0]), "windows"),
    "a code above the edges": (array("tree_codes", put((3, 1), 63)), "tree_codes"),
    "a leaf that there is not": (array("context_tree_places", put((2, 5), 64)), "tree_places"),
    "a label that there is not": (array("tree_labels", put(7, 3)), "tree_labels"),
    "a label below 0": (array("tree_labels", put(7, -1)), "tree_labels"),
    "a column that there is not": (array("tree_features", put((0, 0), 2)), "tree_features"),
    "a column below -1": (array("tree_features", put((0, 0), -2)), "tree_features"),
    "more edges than there are": (array("tree_n_edges", put(0, 64)), "tree_n_edges"),
    "a number of edges below 0": (array("tree_n_edges", put(0, -1)), "tree_n_edges"),
    "a huge leaf": (array("context_tree_leaves", put((0, 0, 0), 2.5)), "tree_leaves"),
    "a huge score of a row": (array("tree_scores", put((0, 0), -1e3)), "tree_scores"),
    "a weight of 0": (array("tree_weights", put(0, 0.0)), "tree_weights"),
    "a huge weight": (array("tree_weights", put(0, 1e5)), "tree_weights"),
    "a loss above 1": (array("tree_missed", put(0, 1.5)), "tree_missed"),
    "more trees than there are": (array("tree_forest", put((0, 5), 25)), "tree_forest"),
    "a next tree that there is not": (array("tree_forest", put((0, 6), 24)), "tree_forest"),
    "columns to renew that there are not": (array("tree_forest", put((0, 3), 3)), "tree_forest"),
    "a score of trees too large": (array("tree_scores", put((0, 0), 100.0)), "tree_scores"),
    "fewer rows kept than there are": (array("tree_forest", put((0, 1), 39)), "tree_forest"),
    "draws below 0": (beside(draws=-1), "draws"),
    "draws of more than 64 bits": (beside(draws=2**64), "draws"),
    "draws of another type": (beside(draws=1.0), "draws"),
    "a flag of another type": (beside(sparse=0), "sparse"),
    "sparse rows": (beside(sparse=True), "names"),
    "a part less": (lambda core: core.pop("draws"), "parts"),
    "a part more": (beside(more=1), "parts"),
    "an array less": (lambda core: core["arrays"].pop("int32"), "its arrays"),
    "an array more": (lambda core: core["arrays"].update(more=np.zeros(1)), "its arrays"),
    "slots below 0": (beside(slots=-1), "slots"),
    "slots of another type": (beside(slots=3.0), "slots"),
    "too many slots": (beside(slots=2**31), "slots"),
    "a slot more": (lambda core: core.update(slots=core["slots"] + 1), "float32 arrays"),
    "a slot less": (lambda core: core.update(slots=core["slots"] - 1), "float32 arrays|free slot"),
    "values below 0": (beside(values=-1), "values"),
    "values of another type": (beside(values=True), "values"),
    "a value more": (lambda core: core.update(values=core["values"] + 1), "float32 arrays"),
    "a size below 0": (array("sizes", put(0, -1)), "sizes"),
    "a size too large": (array("sizes", put(0, 2**31 - 1)), "sizes"),
    "a feature below 0": (array("numbers", put(0, -1)), "feature that there is not"),
    "a feature that there is not": (array("numbers", put(1, 2)), "feature that there is not"),
    "features out of order": (array("numbers", swapped), "out of order"),
    "a feature twice": (array("numbers", put(1, 0)), "out of order"),
    "a value of nan": (array("values", put(0, math.nan)), "values of the supports"),
    "maps that sum to 2": (array("maps", lambda maps: 2.0 * maps), "maps"),
    "a map below 0": (array("maps", put(0, -0.1)), "maps"),
    "huge maps": (array("maps", put(0, 1e308)), "maps"),
    "a factor of 0": (array("factors", put(0, 0.0)), "factors"),
    "a factor above 1": (array("factors", put(0, 2.0)), "factors"),
    "a covariance that is none": (array("covariances", put((0, 0, 1), 0.05)), "covariances"),
    "a variance of a weight below 0": (array("covariances", put((1, 2, 2), -1.0)), "covariances"),
    "a variance below 0": (array("features", put((0, _VARIANCE), -1.0)), "features"),
    "a variance of deviations below 0": (
        array("deviation_statistics", put((0, 0, _VARIANCE), -1.0)),
        "deviation_statistics",
    ),
    "a mean's weight below 0": (array("means", put((0, 0, 1), -0.1)), "means"),
    "a mean's weight above 1": (array("means", put((0, 0, 1), 1.1)), "means"),
    "a member's errors below 0": (array("errors", put(0, -1.0)), "errors"),
    "a member's losses below 0": (array("losses", put(0, -1.0)), "losses"),
    "regrets below 0": (array("regrets", put(0, -1.0)), "regrets"),
    "a norm below 0": (array("squared", put(0, -1.0)), "squared"),
    "a sum below 0": (array("sums", put(0, -1.0)), "sums"),
    "hashes of dense features": (array("common", put(0, 1)), "common"),
}
FORGED_SPARSE = {
    "names": (beside(names=["x"]), "names"),
    "windows": (beside(windows=[1, 0]), "windows"),
    "dense rows": (beside(sparse=False), "names|feature|arrays"),
}
#: Groups of numbers that may be no finite ones.
REAL = "float32", "float64", "covariances"
#: Arrays of all of a type: longer, with a dimension more, of another type, and none at all.
BROKEN = {
    "longer": lambda array: np.concatenate([array, array]),
    "deeper": lambda array: array[np.newaxis],
    "of another type": lambda array: array.astype(np.complex128),
    "of another order of bytes": lambda array: array.astype(array.dtype.newbyteorder()),
    "a list": lambda array: array.tolist(),
    "missing": lambda _: None,
}


@pytest.mark.parametrize(("forge", "match"), FORGED.values(), ids=FORGED)
def test_a_forged_state_is_refused(forge, match):
    state = state_of_some()
    forge(state["_core"])
    refuse(state, f"inconsistent: .*({match})")


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *(("tree_weights", 1e-6), ("tree_weights", 1e4)),
        *(("tree_missed", 0.0), ("tree_missed", 1.0)),
        *(("tree_leaves", -2.0), ("tree_leaves", 2.0)),
        *(("factors", 5e-324), ("factors", 1.0)),
    ],
)
def test_numbers_at_their_bounds_are_restored(name, number):
    """A row of weight 1,000 or more that is kept with a chance of a tenth weighs 10,000."""
    state = state_of_some()
    numbers = arrays_of(PLAN, state["_core"])[name]
    numbers.flat[0] = number
    model = Tracker.__new__(Tracker)
    model.__setstate__(state)
    assert model._core.arrays()[name].flat[0] == numbers.flat[0]


@pytest.mark.parametrize(("forge", "match"), FORGED_SPARSE.values(), ids=FORGED_SPARSE)
def test_a_forged_state_of_sparse_rows_is_refused(forge, match):
    state = state_of_some("sparse")
    forge(state["_core"])
    refuse(state, f"inconsistent: .*({match})")


@pytest.mark.parametrize(
    ("name", "broken"),
    [pair for pair in product(GROUPS, BROKEN) if pair != ("uint8", "of another order of bytes")],
)
def test_broken_arrays_are_refused_by_name(name, broken):
    arrays = STATE["_core"]["arrays"]
    arrays = arrays | {name: BROKEN[broken](arrays[name])}
    refuse(STATE | {"_core": STATE["_core"] | {"arrays": arrays}}, f"inconsistent: .*{name}")


@pytest.mark.parametrize("name", [n for kind in REAL for n in GROUPS[kind]])
def test_a_number_that_is_none_is_refused_by_the_name_of_its_array(name):
    state = state_of_some()
    numbers = arrays_of(PLAN, state["_core"])[name]
    for place, number in product((0, -1), (math.nan, math.inf, -math.inf)):
        before = numbers.flat[place]
        numbers.flat[place] = number
        refuse(state, f"inconsistent: {name} out of bounds")
        numbers.flat[place] = before


STATE = state_of_some()


@pytest.mark.parametrize("forged", [None, [], 3, {}, {"arrays": None}])
def test_what_is_no_state_is_refused(forged):
    refuse(STATE | {"_core": forged}, "inconsistent")


def test_more_supports_than_the_budget_are_refused():
    refuse(STATE | {"budget": 4}, "inconsistent: more supports")


def test_hashes_of_common_features_ascend():
    model = Tracker(9)
    for x, y in wide_table(120):
        model.learn_one(x, y)
    state = model.__getstate__()
    assert state["_core"]["sparse"]
    for wrong in ([5, 3, 9], [3, 3, 9], [-1, 3, 9]):  # amount, year, age
        arrays_of(model._core.plan, state["_core"])["common"][:] = wrong
        refuse(state, "inconsistent: common")


@pytest.mark.parametrize("stream", ["1 names", "17 names", "growing", "growing, halves, classes"])
def test_the_splines_have_the_knots_of_the_names_learnt(stream):
    model = Tracker(3)
    for t, (x, y) in enumerate(islice(FEW[stream](), 80)):
        model.learn_one(x, y)
        if t % 25 == 0:
            core = model._core.state()
            expected = n_knots(len(core["names"]))
            assert model._core.arrays()["splines"].shape[2] == expected
