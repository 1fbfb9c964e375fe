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
from river import checks

from drift.consumers.checkpoints.checkpoint import encode_model
from drift.errors import CheckpointError, FeatureError, FeatureTypeError, LabelError, ParameterError
from drift.experiments.memory import memory
from drift.models import Tracker, compiled, from_bytes
from drift.models._base.guard import IN_USE
from drift.models._tracker import reference, reference_core, room, tables
from drift.models._tracker.layout import layout_of
from tests.models.streams import random_stream
from tests.models.threads import in_thread
from tests.models.tracker_streams import wide_table

#: Of memory there is a shorter test below.
SLOW, LATE = [pytest.mark.slow], [pytest.mark.compiled]
RIVER = [
    pytest.param(check, late, marks=SLOW if "memory" in check.__name__ else LATE * late)
    for late in (False, True)
    for check in checks.yield_checks(Tracker(late=late))
    if check.__name__ not in Tracker(late=late)._unit_test_skips()
]


@pytest.mark.covering(1)
@pytest.mark.parametrize("scale", ["auto", "sparse"])
@pytest.mark.parametrize(("check", "late"), RIVER, ids=lambda one: getattr(one, "__name__", one))
def test_river_check(check, scale, late):
    random.seed(1)  # the checks shuffle features
    check(Tracker(30, scale=scale, late=late))


@pytest.mark.usefixtures("core")
def test_a_second_thread_gets_an_error():
    model = Tracker(5)
    model.learn_one({"a": 1.0}, "x")
    model._guard.acquire()
    errors = [
        in_thread(lambda: model.predict_one({"a": 1.0})),
        in_thread(lambda: model.predict_proba_one({"a": 1.0})),
        in_thread(lambda: model.learn_one({"a": 1.0}, "y", 0.5)),
        in_thread(lambda: model.learn_many([{"a": 1.0}], ["y"])),
        in_thread(lambda: model.predict_many([{"a": 1.0}])),
        in_thread(lambda: model.members),
    ]
    model._guard.release()
    assert {str(error) for error in errors} == {IN_USE}
    assert in_thread(lambda: model.learn_one({"a": 1.0}, "y")) is None


# --- weights, labels, memory --------------------------------------------------------------------


@pytest.mark.usefixtures("core")
def test_a_weight_of_0_changes_nothing():
    model = Tracker(4)
    for x, y in random_stream(20):
        model.learn_one(x, y)
    before = pickle.dumps(model)
    model.learn_one({"f1": 1.0, "new": 2.0}, "another class", 0)
    assert pickle.dumps(model) == before


@pytest.mark.usefixtures("core")
def test_the_only_class_is_certain():
    model = Tracker(4)
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.answer_one({"a": 1.0}) == (None, None, {})
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


@pytest.mark.usefixtures("core")
def test_no_weight_is_too_large():
    model = Tracker(5)
    for t, (x, y) in enumerate(random_stream(60)):
        model.learn_one(x, y, 1e100 if t % 3 == 0 else 1.0)
        assert sum(model.predict_proba_one(x).values()) == pytest.approx(1.0)
    assert all(math.isfinite(row.weight) for row in model.members)


@pytest.mark.usefixtures("core")
def test_weights_above_a_million_count_as_one_million():
    models = [Tracker(5) for _ in range(3)]
    for x, y in random_stream(12):
        for model, w in zip(models, (1e6, 1e7, 1e100), strict=True):
            model.learn_one(x, y, w)
            model.predict_learn_one(x, not y, w)
    assert len({pickle.dumps(model) for model in models}) == 1


@pytest.mark.covering(2)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("before", [1.0, 1e-100], ids=["ordinary values", "tiny ones"])
@pytest.mark.parametrize("value", [1e39, -1e39, 1e149])
def test_one_huge_value_does_no_lasting_harm(value, before, late):
    """Deviations from running means are float32, where it would be infinite.

    test_tracker_twin.py holds the other core to this one on such values.
    """
    rng, model, wrong = random.Random(1), Tracker(9, late=late, trees=True), 0
    for t in range(120):
        y = rng.random() < 0.5
        x = {"a": before * rng.gauss(4.0 * y, 1.0), "b": rng.gauss(0.0, 1.0)}
        if t in {5, 60}:  # before outliers are clipped, and after
            x["a"] = value
        wrong += t > 80 and model.predict_one(x) != y
        model.learn_one(x, y)
        if t in {5, 60, 119}:
            restored = from_bytes(model.to_bytes())
            assert restored.predict_proba_one(x) == model.predict_proba_one(x)
    assert wrong < 8  # of 39


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize(
    ("group", "array"),
    [("float32", "linear"), ("float64", "gates"), ("covariances", "covariances")],
)
def test_what_no_tracker_could_be_restored_from_is_not_stored(group, array):
    model = Tracker(5)
    for x, y in random_stream(9):
        model.learn_one(x, y)
    snapshot = model._snapshot()
    groups = snapshot._core.stored["arrays"]
    place = layout_of(snapshot._core.shape).places[array].start
    groups[group].flat[place] = math.nan
    with pytest.raises(CheckpointError, match=f"inconsistent: {array}"):
        encode_model(snapshot, allow_pickle=True)


def test_what_fails_once_rows_are_sparse_changes_nothing(monkeypatch):
    """Also if the row brings a third class, after the gates have learnt."""
    core = reference_core.TrackerCore(Tracker(3)._plan(), "auto", 0)

    def broken(*_):
        raise KeyboardInterrupt

    for t in range(10):
        core.learn({"a": 1.0}, t % 2, 1.0)
    before = pickle.dumps(core.state())
    monkeypatch.setattr(reference, "to_sparse", broken)
    with pytest.raises(KeyboardInterrupt):
        core.learn(dict.fromkeys(range(2000), 1.0), 2, 1.0)
    assert pickle.dumps(core.state()) == before


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("label", [None, float("nan"), ["a"], 0.5])
def test_what_names_no_class_is_refused(label):
    model = Tracker(4)
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


@pytest.mark.skipif(not compiled, reason="Python's own dicts are the other core's tables")
def test_the_table_of_the_supports_features_is_as_large_as_the_supports_need():
    """Each example brings its own names; one brings thousands, and is evicted again."""
    model, sizes = Tracker(2, scale="sparse"), []
    for t in range(220):
        names = range(5000) if t == 150 else range(20)
        model.learn_one({f"{t} {k}": 1.0 for k in names}, t % 2)
        sizes.append(sys.getsizeof(model._core))
    assert sizes[20:150] == [sizes[20]] * 130
    places = 4 * (16384 - 1024)
    assert max(sizes[150:]) - sizes[-1] >= places + 4 * (5000 - 20)


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


@pytest.mark.usefixtures("core")
def test_the_unit_of_a_column_does_not_matter_where_rows_turn_sparse():
    models = Tracker(9), Tracker(9)
    for x, y in wide_table(70):
        shown = []
        for model, unit in zip(models, (1.0, 1024.0), strict=True):
            given = {**x, "amount": unit * x["amount"]}
            shown.append(model.predict_proba_one(given))
            model.learn_one(given, y)
        assert shown[0] == shown[1]
    assert models[0].__getstate__()["_core"]["sparse"]


@pytest.mark.usefixtures("core")
def test_a_row_of_common_values_that_do_not_vary_says_nothing():
    """Standardised, all of it is 0, and there is no norm to divide by."""
    model = Tracker(9)
    for x, y in wide_table(60):
        model.learn_one(x, y)
    assert model.__getstate__()["_core"]["sparse"]
    for x in ({"year": 2026.0}, {"tiny": 1e-200}):
        model.learn_one(x, True)
        assert model.predict_proba_one(x) == model.predict_proba_one({})


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("scale", ["dense", "sparse"])
@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e200, "3", [1.0]])
def test_what_is_no_value_is_refused_by_name(value, scale):
    """Of an old name, and of a new one."""
    model = Tracker(4, scale=scale)
    model.learn_one({"a": 1.0}, "x")
    before = pickle.dumps(model)
    for name in ("a", "b"):
        for call in (model.predict_one, lambda x: model.learn_one(x, "y")):
            with pytest.raises((FeatureError, FeatureTypeError), match=f"feature '{name}'"):
                call({name: value})
    assert pickle.dumps(model) == before


@pytest.mark.compiled
def test_a_model_whose_rows_turn_sparse_gives_back_the_room_of_its_splines():
    dense = [dict.fromkeys(range(16), float(t % 7)) for t in range(10)]
    sparse = [{37 * t + 11 * k: 1.0 for k in range(6)} for t in range(100)]
    models = turned, always = Tracker(20), Tracker(20, scale="sparse")
    for t, x in enumerate(dense + sparse):
        for model in models:
            model.learn_one(x, t % 2)
    assert memory(turned) < 1.05 * memory(always)


class Fickle(str):
    """A name whose own hash raises at one of its calls."""

    __slots__ = ()
    calls, at = 0, -1

    def __eq__(self, other):
        return str.__eq__(self, other)

    def __hash__(self):
        Fickle.calls += 1
        if Fickle.calls == Fickle.at:
            raise KeyboardInterrupt
        return str.__hash__(self)


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("scale", ["dense", "sparse"])
def test_a_name_whose_hash_raises_changes_nothing(scale):
    x, probe = {Fickle(name): 1.0 for name in "bcd"} | {"a": 2.0}, {"b": 1.0, "c": 2.0, "e": 1.0}

    def learnt():
        model = Tracker(4, scale=scale)
        for t in range(6):
            model.learn_one({"a": float(t)}, t % 2)
        return model

    def outputs(model):
        actual = []
        for t in range(4):
            actual.append(model.predict_proba_one(probe))
            model.learn_one(probe | {"f": float(t)}, t % 2)
        return actual

    before, after = learnt(), learnt()
    Fickle.calls = 0
    after.learn_one(x, 1)
    calls, expected = Fickle.calls, [outputs(before), outputs(after)]
    errors = set()
    for at in range(1, calls + 1):
        model = learnt()
        Fickle.calls, Fickle.at = 0, at
        try:
            model.learn_one(x, 1)
        except KeyboardInterrupt:
            errors.add(at)
        finally:
            Fickle.at = -1
        assert outputs(model) == expected[at not in errors]
    assert errors or scale == "sparse"


# --- what it shows ------------------------------------------------------------------------------


def test_a_vote_has_no_score():
    assert not hasattr(Tracker, "decision_function_one")
    assert not hasattr(Tracker, "decision_function_many")


@pytest.mark.parametrize("trees", [False, True])
def test_members_are_a_table_of_what_each_would_have_done(trees):
    model = Tracker(9, trees=trees)
    rows = model.members
    families = {k: v for k, v in tables.FAMILIES.items() if trees or k not in tables.OPTIONAL}
    n = 16 + sum(map(len, families.values()))
    assert [row.weight for row in rows] == pytest.approx([1 / n] * n)
    wrong = 0
    for t, (x, y) in enumerate(random_stream(100)):
        wrong += t > 1 and model.predict_one(x) != y
        model.learn_one(x, y)
    rows = model.members
    gates, maps = (model._core.arrays()[name] for name in ("gates", "maps"))
    expected = sum(maps[8 * g : 8 * g + 8].sum() * gate for g, gate in enumerate(gates))
    assert [row.weight for row in rows] == pytest.approx(expected.tolist())
    assert min(row.error for row in rows) < wrong / 100 + 0.1
    assert all(0.0 < row.log_loss < 3.0 for row in rows)
    named = ["slow SGD", "fast SGD", "Kalman", "splines"]
    named += [f"context, {name}" for name in ("AdaGrad", "Kalman", "splines")]
    assert [row.kernel for row in rows[16 : 16 + len(named)]] == named  # and what is added
    assert [row.kernel for row in rows[-2:]] == ["trees", "context, trees"] or not trees
    assert {row.kernel for row in rows[:16]} == {"linear", "RBF(0.25)", "RBF(2)", "RBF(16)"}
    assert [(row.rate, row.forgetting) for row in rows[:4]] == [
        *((0.5, pytest.approx(0.05 / 9)), (0.5, 0.5)),
        *((6.0, pytest.approx(0.05 / 9)), (6.0, pytest.approx(0.75 / 18))),
    ]
    text = repr(rows).splitlines()
    assert len(text) == n + 1
    assert max(map(len, text)) <= 80
    html = rows._repr_html_()
    assert html.count("<tr>") == n + 1
    assert f"{rows[0].log_loss:.3f}" in html
    frame = pd.DataFrame(rows)
    assert frame.columns.tolist() == list(rows[0]._fields)


@pytest.mark.usefixtures("core")
def test_probabilities_are_those_of_the_classes_learnt():
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
        dict(scale="wide"),
        dict(seed=1.5),
    ],
)
def test_bad_parameters_are_refused_by_name(bad):
    [name] = bad
    with pytest.raises(ParameterError, match=name):
        Tracker(**bad)


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("scale", ["dense", "sparse"])
def test_the_largest_parameters_and_weights_leave_all_finite(scale):
    model = Tracker(3, kernels=(0.0, 1e6), rates=(1e6,), forgetting=(0.0,), scale=scale)
    for t, (x, _) in enumerate(random_stream(80)):
        model.learn_one(x, t % 3, 1e100)
        assert sum(model.predict_proba_one(x).values()) == pytest.approx(1.0)
    assert np.isfinite(model._core.arrays()["coefficients"]).all()


# --- many classes -------------------------------------------------------------------------------

#: Bytes of the linear members' weights for a class over sparse rows: four floats for each slot.
OF_A_CLASS = 4 * 4 * (1 + 2**14)


def capacity(core):
    """For how many classes there is room, about."""
    return core.__sizeof__() // OF_A_CLASS


@pytest.mark.skipif(not compiled, reason="the reference copies what there is at each example")
def test_room_for_classes_grows_by_a_share_of_itself():
    """Each time what there is is copied: it must not be for every class."""
    model, rooms = Tracker(1, scale="sparse"), []
    for k in range(150):
        model.learn_one({f"w{k}": 1.0}, k)
        rooms.append(capacity(model._core))
    assert len(set(rooms)) <= 3 + math.log(150, 1.5)
    assert 151 <= rooms[-1] <= 1.5 * 151
    assert len(model.predict_proba_one({"w1": 1.0})) == 150


@pytest.mark.usefixtures("core")
def test_a_class_without_room_is_refused_by_name(monkeypatch):
    model = Tracker(2, scale="sparse")
    rows = [{f"w{k}": 1.0, "the": 1.0} for k in range(60)]
    model.learn_many(rows[:5], list("abcde"))
    monkeypatch.setattr(room, "memory", lambda: 40 * OF_A_CLASS)
    expected = copy.deepcopy(model)
    with pytest.raises(
        LabelError, match=r"^row \d+: label 'order 5\d*' would be class \d+, .*0.26 MB"
    ) as raised:
        model.learn_many(rows, [f"order 5{k}" for k in range(60)])
    learnt = raised.value.rows_learnt
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
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    least = 20 if compiled else 5  # the reference copies its arrays at each update
    assert least < int(output.stdout.split()[0]) < 200, output
