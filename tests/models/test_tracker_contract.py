"""What the Tracker is to its users: River's checks, weights, labels, memory, what it shows."""

import copy
import math
import os
import pickle
import random
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from oracles_tracker import Tracker as Twin
from river import checks
from streams import random_stream
from test_multiclass import clusters
from test_threads import IN_USE, in_thread
from test_tracker_twin import paired, wide_table

from drift.errors import LabelError, ParameterError
from drift.experiments.memory import memory
from drift.models import Tracker
from drift.models._tracker import room
from drift.models._tracker.plain import TrackerCore

RIVER = [
    # Of memory there is a shorter test below.
    pytest.param(check, marks=[pytest.mark.compiled] * ("memory" in check.__name__))
    for check in checks.yield_checks(Tracker())
]


@pytest.mark.covering(1)
@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("scale", ["auto", "sparse"])
@pytest.mark.parametrize("check", RIVER, ids=lambda check: check.__name__)
def test_river_check(check, scale, delay):
    random.seed(1)  # the checks shuffle features
    check(Tracker(30, scale=scale, delay=delay))


@pytest.mark.usefixtures("tolerance")
@pytest.mark.parametrize("delay", [0, 2])
def test_a_second_thread_is_told(delay):
    model = Tracker(5, delay=delay)
    model.learn_one({"a": 1.0}, "x")
    model._guard.hold()
    met = [
        in_thread(lambda: model.predict_one({"a": 1.0})),
        in_thread(lambda: model.predict_proba_one({"a": 1.0})),
        in_thread(lambda: model.learn_one({"a": 1.0}, "y", 0.5)),
        in_thread(lambda: model.learn_many([{"a": 1.0}], ["y"])),
        in_thread(lambda: model.predict_many([{"a": 1.0}])),
        in_thread(lambda: model.experts),
        in_thread(model.regret_bound),
    ]
    model._guard.release()
    assert {str(error) for error in met} == {IN_USE}
    assert in_thread(lambda: model.learn_one({"a": 1.0}, "y")) is None


# --- weights, labels, memory --------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0, 2])
def test_a_weight_of_0_changes_nothing(delay):
    model = Tracker(4, delay=delay)
    for x, y in random_stream(20):
        model.learn_one(x, y)
    before = pickle.dumps(model)
    model.learn_one({"f1": 1.0, "new": 2.0}, "another class", 0)
    assert pickle.dumps(model) == before


@pytest.mark.usefixtures("tolerance")
def test_the_only_class_is_certain():
    model = Tracker(4)
    assert model.predict_proba_one({"a": 1.0}) == {}
    for _ in range(30):
        model.learn_one({"a": 1.0}, "only")
        assert model.predict_proba_one({"a": 2.0}) == {"only": 1.0}
    assert model.predict_proba_many([{"a": 3.0}]).tolist() == [[1.0]]


@pytest.mark.parametrize("w", [-1.0, float("nan"), float("inf"), "1", None])
def test_other_weights_are_refused(w):
    model = Tracker(4)
    before = pickle.dumps(model)
    with pytest.raises(ParameterError, match=r"^weight "):
        model.learn_one({"a": 1.0}, True, w)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("share", [1e-3, 0.0])
@pytest.mark.usefixtures("tolerance")
def test_no_weight_is_too_large(share):
    model = Tracker(5, share=share)
    for t, (x, y) in enumerate(random_stream(60)):
        model.learn_one(x, y, 1e100 if t % 3 == 0 else 1.0)
        assert sum(model.predict_proba_one(x).values()) == pytest.approx(1.0)
    assert sum(row.weight for row in model.experts) == pytest.approx(1.0)


def forget_maps(model):
    """Make a model that of a version which had no maps of probabilities."""
    state = model.__getstate__()
    del state["_core"]["maps"]
    model.__setstate__(state)


def test_an_older_state_has_the_mean_norm_of_sparse_rows_without_a_bias_of_one():
    model = Tracker(9, scale="sparse")
    for word in "abcdefg":
        model.learn_one({word: 1.0, "the": 1.0}, word < "d")
    state = model.__getstate__()
    core = dict(state["_core"])
    assert core["norms"] == pytest.approx(7 * (1.0 + 0.2**2))
    del core["lags"]
    older = Tracker(9, scale="sparse")
    core["norms"] = 14.0
    older.__setstate__(state | {"_core": core})
    assert core["norms"] == 14.0  # what was given stays as it was
    x = {"a": 1.0, "the": 1.0}
    for learner in (model, older):
        learner.learn_one(x, True)
    assert older.predict_proba_one(x) == pytest.approx(model.predict_proba_one(x))


@pytest.mark.usefixtures("tolerance")
def test_a_state_without_maps_shows_the_mixture():
    model, twin = Tracker(9), Twin(9)
    for x, y in clusters(list("abc"), 60):
        model.learn_one(x, y)
        twin.learn(x, y)
    shown = model.predict_proba_one(x)
    forget_maps(model)
    mixed = model.predict_proba_one(x)
    twin.look(x)
    assert list(mixed.values()) == pytest.approx(twin.mixed[:3] / twin.mixed[:3].sum(), abs=1e-4)
    assert mixed != pytest.approx(shown, abs=1e-3)


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.usefixtures("tolerance")
def test_a_state_of_twelve_maps_goes_on_with_those(delay):
    model = Tracker(9, delay=delay)
    for x, y in clusters(list("abc"), 60):
        model.learn_one(x, y)
    old, zero = model.__getstate__(), model.__getstate__()
    for core in ("core", "behind") if delay else ("_core",):
        parts = [state["_core"][core] if delay else state[core] for state in (old, zero)]
        parts[0]["maps"] = parts[0]["maps"][:12]
        parts[1]["maps"][12] = 0.0
    shown = []
    for state in (old, zero):
        model.__setstate__(state)
        for x, y in clusters(list("abc"), 20):
            model.learn_one(x, y)
        shown.append(model.predict_proba_one(x))
    assert shown[0] == shown[1]
    assert len(pickle.loads(pickle.dumps(model))._core.state()[core if delay else "maps"]) > 12


@pytest.mark.parametrize("delay", [0, 3])
def test_one_stored_before_there_were_surfaces_goes_on_without(delay):
    model, other = Tracker(5, pairs=False, delay=delay), Tracker.__new__(Tracker)
    stream = list(clusters(list("abc"), 60))
    for x, y in stream[:30]:
        model.learn_one(x, y)
    state = model.__getstate__()
    del state["pairs"]
    other.__setstate__(state)
    for x, y in stream[30:]:
        assert other.predict_proba_one(x) == model.predict_proba_one(x)
        model.learn_one(x, y)
        other.learn_one(x, y)
    assert not other.pairs


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.usefixtures("tolerance")
def test_one_that_had_lost_its_surfaces_by_its_names_goes_on_without(delay):
    """As versions did that ended them with the 17th name, whatever the example had."""
    model, other = Tracker(5, pairs=False, delay=delay), Tracker.__new__(Tracker)
    stream = list(paired(4, 27, 95, share=0.5))
    for x, y in stream[:90]:
        model.learn_one(x, y)
    other.__setstate__(model.__getstate__() | {"pairs": True})
    for x, y in stream[90:]:
        assert other.predict_proba_one(x) == model.predict_proba_one(x)
        model.learn_one(x, y)
        other.learn_one(x, y)


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.usefixtures("tolerance")
def test_a_copy_has_the_surfaces_that_there_are(delay):
    model = Tracker(5, delay=delay)
    stream = list(paired(4, 27, 95, share=0.5))
    for x, y in stream[:60]:
        model.learn_one(x, y)
    for x, y in stream[60:]:
        other = pickle.loads(pickle.dumps(model))
        assert other.predict_proba_one(x) == model.predict_proba_one(x)
        model.learn_one(x, y)
        other.learn_one(x, y)
        assert other.predict_proba_one(x) == model.predict_proba_one(x)
    core = model._core.state()
    core = core["core"] if delay else core
    assert core["splines"].shape[1] == 145 + 25 * 120 + 9 * (len(core["names"]) - 16)


#: Cells of a row of the splines by the number of names: a bias, curves, surfaces.
CELLS = {0: 1, 1: 145, 2: 145 + 25, 3: 145 + 75, 16: 145 + 25 * 120, 17: 1 + 9 * 17}


@pytest.mark.parametrize("names", CELLS)
@pytest.mark.usefixtures("tolerance")
def test_splines_of_other_sizes_are_refused(names):
    for pairs, cells in ((True, CELLS[names]), (False, 1 + 9 * names)):
        model = Tracker(3, pairs=pairs)
        model.learn_one(dict.fromkeys(range(names), 1.0), "a")
        state = model.__getstate__()
        splines = state["_core"]["splines"]
        assert splines.shape == (1, cells, 4)
        more = np.pad(splines, ((0, 0), (0, 1), (0, 0)))
        for wrong in (splines[:, :-1], more, splines[0], splines.ravel(), None):
            state["_core"]["splines"] = wrong
            with pytest.raises(ValueError, match="splines"):
                Tracker.__new__(Tracker).__setstate__(state)


@pytest.mark.usefixtures("tolerance")
def test_what_splines_learn_of_an_example_by_hand():
    """Of a the mean is 2 and the deviation 1 before, of b 2 and 0, of c as of a; d comes once.

    An example of next to no weight lets features be scaled, and splines know nothing.
    """
    model, r = Tracker(3), math.sqrt(3 / 7)  # which is half a deviation: r (1 - 1/3) = sqrt(s) / 2
    for a, c, w in ((1.0, 3.0, 1e-9), (3.0, 1.0, 1e-9), (2.0 + r, 2.0 - r, 1.0)):
        model.learn_one({"a": a, "b": 2.0, "c": c} | ({"d": 4.0} if a == 1.0 else {}), "only", w)
    third = 1 / math.sqrt(3)  # three curves and surfaces, none of d
    ab, ac, bc = 145, 170, 195
    values = {0: 1.0} | dict.fromkeys((1 + 5, 1 + 9 + 4, 1 + 18 + 3), third)
    values |= dict.fromkeys((ab + 10 + 2, ab + 10 + 3, bc + 5 + 2, bc + 10 + 2), third / 2)
    values |= dict.fromkeys((ac + 5 + 2, ac + 5 + 3, ac + 10 + 2, ac + 10 + 3), third / 4)
    # Their squares are 1 + 1 + 5/12, of variance 10; p (1 - p) is 1/4, the gradient -1/2.
    total = 1 + 10 * (29 / 12) / 4
    [cells] = model._core.state()["splines"]
    expected = np.zeros((295, 4))
    for cell, v in values.items():
        near = v if cell == 0 else v / third
        known = 100 * v * v / 4 / total
        expected[cell] = [*[-5 * v / total] * 2, known - 1e-4 * near, known - 0.01 * near]
    assert cells == pytest.approx(expected, abs=1e-6)


def test_what_fails_once_rows_are_sparse_leaves_the_members_their_weights(monkeypatch):
    """Where the row brings a third class as well, nothing else gives the list new weights."""
    core, begin = TrackerCore(Tracker(3)._plan(), "auto", 0), TrackerCore._begin

    def broken(*arguments):
        begin(*arguments)
        raise KeyboardInterrupt

    for t in range(10):
        core.learn({"a": 1.0}, t % 2, 1.0)
    before = core.state()
    monkeypatch.setattr(TrackerCore, "_begin", broken)
    with pytest.raises(KeyboardInterrupt):
        core.learn(dict.fromkeys(range(2000), 1.0), 2, 1.0)
    after = core.state()
    assert not after["sparse"]
    for name in ("weights", "majority"):
        assert after[name].tolist() == before[name].tolist()


def test_a_weight_scales_steps():
    """Far from any supports, the score of one linear step is in proportion to the weight."""
    gains = []
    for w in (0.25, 0.5):
        model = Tracker(4, scale="sparse")
        model.learn_one({"a": 1.0}, "no", 0.001)
        model.learn_one({"b": 1.0}, "yes", w)
        forget_maps(model)
        chance = model.predict_proba_one({"b": 1.0})["yes"]
        gains.append(math.log(chance / (1 - chance)))
    assert 1.7 < gains[1] / gains[0] < 2.1


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("label", [None, float("nan"), ["a"]])
def test_what_names_no_class_is_refused(label, delay):
    model = Tracker(4, delay=delay)
    before = pickle.dumps(model)
    with pytest.raises(LabelError):
        model.learn_one({"a": 1.0}, label)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("scale", ["auto", "dense", "sparse"])
def test_memory_does_not_follow_the_stream(scale):
    """Names that never come again: 6,000 of them, and then as many again."""
    model, sizes = Tracker(5, scale=scale), []
    for t in range(40):
        x = {f"{i}": 1.0 for i in range(300 * t, 300 * (t + 1))}
        model.learn_one(x | {"a": t % 7}, t % 2)
        if t % 20 == 19:
            sizes.append(len(pickle.dumps(model)))
    assert sizes[1] < 1.02 * sizes[0]
    assert model.n_supports == 5


def test_a_value_that_is_far_off_leaves_the_others_their_differences():
    rng, mistakes = random.Random(3), [0, 0]
    models = Tracker(20), Tracker(20)
    for t in range(800):
        x = {"a": rng.gauss(0.0, 1.0), "b": rng.gauss(0.0, 1.0)}
        y = x["a"] * x["b"] > 0.0
        for k, model in enumerate(models):
            far = 1e9 if k and t % 100 == 50 else 1.0
            mistakes[k] += t >= 200 and model.predict_one(x) != y
            model.learn_one({**x, "a": far * x["a"]}, y)
    assert mistakes[1] < mistakes[0] + 30  # of 600; without a bound they were 250 more


@pytest.mark.usefixtures("tolerance")
def test_the_unit_of_a_column_does_not_matter_where_rows_turn_sparse():
    models = Tracker(9), Tracker(9)
    for x, y in wide_table(120):
        shown = []
        for model, unit in zip(models, (1.0, 1024.0), strict=True):
            given = {**x, "amount": unit * x["amount"]}
            shown.append(model.predict_proba_one(given))
            model.learn_one(given, y)
        assert shown[0] == shown[1]
    state = models[0].__getstate__()
    assert state["_core"]["sparse"]
    for wrong in ([5, 3, 9], [3, 3, 9], [-1, 3, 9], [3, 9, 2**31], [3, 9]):  # amount, year, age
        state["_core"]["common"] = np.array(wrong)
        with pytest.raises(ValueError, match="inconsistent"):
            Tracker.__new__(Tracker).__setstate__(state)


@pytest.mark.usefixtures("tolerance")
def test_a_state_that_counted_no_names_goes_on():
    model, rows = Tracker(9), list(wide_table(120))
    for t, (x, y) in enumerate(rows):
        if t == 5:
            state = model.__getstate__()
            del state["_core"]["present"], state["_core"]["common"]
            model.__setstate__(state)
        model.learn_one(x, y)
    assert pickle.loads(pickle.dumps(model)).predict_proba_one(x) == model.predict_proba_one(x)
    assert len(model._core.state()["common"]) == 2  # not age, of which few were counted


@pytest.mark.compiled
def test_a_model_whose_rows_turn_sparse_gives_back_the_room_of_its_splines():
    dense = [dict.fromkeys(range(16), float(t % 7)) for t in range(10)]
    sparse = [{37 * t + 11 * k: 1.0 for k in range(6)} for t in range(100)]
    models = turned, always = Tracker(20), Tracker(20, scale="sparse")
    for t, x in enumerate(dense + sparse):
        for model in models:
            model.learn_one(x, t % 2)
    assert memory(turned) < 1.05 * memory(always)


# --- what it shows ------------------------------------------------------------------------------


def test_a_vote_has_no_score():
    assert not hasattr(Tracker, "decision_function_one")
    assert not hasattr(Tracker, "decision_function_many")


def test_experts_are_a_table_of_what_each_would_have_done():
    model = Tracker(9)
    rows = model.experts
    assert len(rows) == 24
    assert [row.weight for row in rows] == pytest.approx([1 / 24] * 24)
    for x, y in random_stream(100):
        model.learn_one(x, y)
    rows = model.experts
    assert sum(row.weight for row in rows) == pytest.approx(1.0)
    assert {row.kernel for row in rows} == {
        *("linear", "RBF(0.25)", "RBF(2)", "RBF(16)"),
        *(
            "features, SGD",
            "features, AdaGrad",
            "features, Kalman",
            "splines, Kalman",
            "gate",
            "gate, Kalman",
        ),
    }
    assert [(row.rate, row.forgetting) for row in rows[:4]] == [
        *((0.5, pytest.approx(0.05 / 9)), (0.5, 0.5)),
        *((6.0, pytest.approx(0.05 / 9)), (6.0, pytest.approx(0.75 / 18))),
    ]
    text = repr(rows).splitlines()
    assert len(text) == 25
    assert max(map(len, text)) <= 80
    html = rows._repr_html_()
    assert html.count("<tr>") == 25
    assert f"{rows[0].log_loss:.3f}" in html
    frame = pd.DataFrame(rows)
    assert frame.columns.tolist() == list(rows[0]._fields)


def test_the_class_of_the_largest_probability_can_be_asked_for():
    model = Tracker(9, decide="probability")
    for x, y in random_stream(120):
        chances = model.predict_proba_one(x)
        if len(chances) == 2:
            assert model.predict_one(x) == max(chances, key=chances.get)
        model.learn_one(x, y)


def test_probabilities_are_those_of_the_classes_met():
    model = Tracker(5)
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    for t, label in enumerate(["x", ("y", 1), 3, "x", None, 5]):
        if label is not None:
            model.learn_one({"a": t}, label)
        chances = model.predict_proba_one({"a": 0.5})
        assert sum(chances.values()) == pytest.approx(1.0)
    assert list(chances) == ["x", ("y", 1), 3, 5]


@pytest.mark.parametrize(
    "bad",
    [
        dict(budget=0),
        dict(kernels=()),
        dict(kernels=(-1.0,)),
        dict(rates=(0.0,)),
        dict(rates=(0.5, 1e300)),
        dict(rates=(10**400,)),
        dict(kernels=(1e300,)),
        dict(forgetting=(float("nan"),)),
        dict(share=-0.1),
        dict(scale="wide"),
        dict(decide="both"),
        dict(seed=1.5),
        dict(delay=-1),
    ],
)
def test_bad_parameters_are_refused_by_name(bad):
    [name] = bad
    with pytest.raises(ParameterError, match=name):
        Tracker(**bad)


@pytest.mark.usefixtures("tolerance")
@pytest.mark.parametrize("scale", ["dense", "sparse"])
def test_the_largest_parameters_and_weights_leave_all_finite(scale):
    model = Tracker(3, kernels=(0.0, 1e6), rates=(1e6,), forgetting=(0.0,), scale=scale)
    for t, (x, _) in enumerate(random_stream(80)):
        model.learn_one(x, t % 3, 1e100)
        assert sum(model.predict_proba_one(x).values()) == pytest.approx(1.0)
    assert np.isfinite(model._core.state()["coefficients"]).all()


# --- many classes -------------------------------------------------------------------------------

#: Bytes of the linear experts' weights for a class over sparse rows: six floats for each slot.
OF_A_CLASS = 6 * 4 * (1 + 2**14)


def capacity(core):
    """For how many classes there is room, about."""
    if isinstance(core, TrackerCore):
        return len(core.linear if core.linear.base is None else core.linear.base)
    return core.__sizeof__() // OF_A_CLASS


@pytest.mark.usefixtures("tolerance")
def test_room_for_classes_grows_by_a_share_of_itself():
    """Each time what there is is copied: it must not be for every class."""
    model, rooms = Tracker(1, scale="sparse"), []
    for k in range(150):
        model.learn_one({f"w{k}": 1.0}, k)
        rooms.append(capacity(model._core))
    assert len(set(rooms)) <= 3 + math.log(150, 1.5)
    assert 151 <= rooms[-1] <= 1.5 * 151
    assert len(model.predict_proba_one({"w1": 1.0})) == 150


@pytest.mark.usefixtures("tolerance")
@pytest.mark.parametrize("delay", [0, 3])
def test_a_class_without_room_is_refused_by_name(monkeypatch, delay):
    model = Tracker(2, scale="sparse", delay=delay)
    rows = [{f"w{k}": 1.0, "the": 1.0} for k in range(60)]
    model.learn_many(rows[:5], list("abcde"))
    monkeypatch.setattr(room, "memory", lambda: 40 * OF_A_CLASS)
    expected = copy.deepcopy(model)
    with pytest.raises(
        LabelError, match=r"^label 'order 5\d*' would be class \d+, .*0.39 MB"
    ) as met:
        model.learn_many(rows, [f"order 5{k}" for k in range(60)])
    learnt = met.value.rows_learnt
    assert 3 < learnt < 35
    expected.learn_many(rows[:learnt], [f"order 5{k}" for k in range(learnt)])
    assert pickle.dumps(model) == pickle.dumps(expected)
    for one in (model, expected):
        one.learn_one(rows[0], "a")
    assert pickle.dumps(model) == pickle.dumps(expected)


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="it ends the process")
def test_a_class_that_the_system_has_no_memory_for_is_refused():
    """As where a limit of the process is below the machine's memory."""
    code = """
import resource
from drift.errors import LabelError
from drift.models import Tracker
model = Tracker(1, scale="sparse")
model.learn_one({"a": 1.0}, "a")
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 60_000_000, -1))
try:
    for k in range(300):
        model.learn_one({f"w{k}": 1.0}, k)
except LabelError as error:
    assert "no memory" in str(error), error
    print(k, model.predict_one({"w1": 1.0}))
"""
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 20 < int(said.stdout.split()[0]) < 200, said
