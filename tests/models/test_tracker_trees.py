"""The Tracker's trees: a fit by hand, what windows keep, and both cores on longer streams.

What is by hand runs on the core that there is, as both agree below and in test_tracker_twin.py, but
on both where no stream of these comes by.
"""

import math
import pickle
import random
import sys
from itertools import pairwise, product

import numpy as np
import pytest

from drift.models import Tracker, compiled
from drift.models._state.codec import decode, encode
from drift.models._tracker import room
from drift.models._tracker import tables as c
from tests.models.tracker_cores import NOTHING, arrays, both, changed, compare, same_values

CORES = pytest.mark.usefixtures("core")


def tracker(budget=8, **parameters):
    """A model with a window of 64 rows, unless its budget is larger."""
    return Tracker(budget, kernels=(0.0,), rates=(0.5,), trees=True, **parameters)


def counts(model, prefix=""):
    return dict(zip(c.FOREST, arrays(model)[f"{prefix}tree_forest"][0].tolist(), strict=True))


def logistic(score):
    return 1.0 / (1.0 + math.exp(-score))


# --- by hand -------------------------------------------------------------------------------------


def learnt(n, missing=()):
    """Labels that equal the only feature, whose values are 0 and 1."""
    model = tracker()
    for t in range(n):
        model.learn_one({"a": None if t in missing else float(t % 2)}, t % 2 == 1)
    return model


def test_no_tree_is_fitted_to_fewer_than_32_rows():
    model = learnt(31)
    assert counts(model)["n_trees"] == 0
    assert counts(model)["since"] == counts(model)["kept"] == 31
    assert arrays(model)["tree_n_edges"].tolist() == [0]


def test_the_first_tree():
    """16 rows of each class, at a probability of 1/2: gradients of 1/2, curvatures of 1/4."""
    model = learnt(32)
    a = arrays(model)
    assert a["tree_n_edges"].tolist() == [1]
    assert a["tree_edges"][0, 0] == 0.5
    assert a["tree_codes"][:, 0].tolist() == [0, 1] * 16
    assert (a["tree_features"][0, 0], a["tree_thresholds"][0, 0]) == (0, 0.5)
    assert (a["tree_features"][0, 1:] == -1).all()
    leaf = 0.5 * (16 / 2) / (16 / 4 + 1)  # half of the sum over the curvatures' and the ridge
    assert a["tree_leaves"][0, 0, [0, 32]] == pytest.approx([-leaf, leaf])
    assert a["tree_places"][0].tolist() == [0, 32] * 16
    assert a["tree_scores"][0] == pytest.approx([-leaf, leaf] * 16)
    assert a["tree_gains"] == pytest.approx([2 * 8.0**2 / (4.0 + 1.0)])
    assert a["tree_weights"].tolist() == [1.0] * 32
    assert a["tree_missed"].tolist() == [0.5] * 32
    expected = {"kept": 32, "renew": 64, "renewing": 0, "since": 0, "n_trees": 1, "next": 1}
    assert counts(model).items() >= expected.items()


def test_the_second_tree_is_fitted_to_what_the_first_leaves():
    """Three examples later, a twelfth of the window: 18 rows of one class, 17 of the other."""
    model = learnt(35)
    a, leaf = arrays(model), 0.8
    p = logistic(-leaf)
    for place, n, sign in ((0, 18, -1.0), (32, 17, 1.0)):
        expected = sign * 0.5 * n * p / (n * p * (1 - p) + 1.0)
        assert a["tree_leaves"][0, 1, place] == pytest.approx(expected, rel=1e-6)
        assert a["tree_scores"][0, place // 32] == pytest.approx(sign * leaf + expected, rel=1e-6)
    assert a["tree_missed"][32:] == pytest.approx([p] * 3)
    assert a["tree_weights"][32:].tolist() == [1.0] * 3  # 4 p is above 1
    g, h = [round(4096 * v) / 4096 for v in (p, p * (1 - p))]
    gain = sum((n * g) ** 2 / (n * h + 1.0) for n in (18, 17))
    gain -= g**2 / (35 * h + 1.0)  # of both, in which the classes cancel but for one row
    assert a["tree_gains"] == pytest.approx([0.9 * 25.6 + gain])
    assert counts(model)["n_trees"] == 2


@CORES
def test_a_value_at_an_edge_goes_left():
    model = learnt(32)
    model.learn_one({"a": 0.5}, True)
    a = arrays(model)
    assert (a["tree_codes"][-1, 0], a["tree_places"][0, -1]) == (0, 0)


def test_a_missing_value_goes_left():
    model = learnt(32, missing=(1, 5))
    a = arrays(model)
    assert a["tree_codes"][:6, 0].tolist() == [0, 0, 0, 1, 0, 0]
    assert a["tree_places"][0, :6].tolist() == [0, 0, 0, 32, 0, 0]
    bottom = 18 / 4 + 1.0
    assert a["tree_leaves"][0, 0, 0] == pytest.approx(0.5 * (2 - 16) / 2 / bottom)
    assert a["tree_sample"][0, :2].tolist() == [0.0, np.float32(c.COLUMN_MISSING)]


@pytest.mark.parametrize("few", [0.0, 2.0])
@pytest.mark.parametrize(("n", "is_split"), [(3, False), (4, True)])
def test_each_side_has_a_curvature_of_1_at_least(n, is_split, few):
    """A quarter for each row."""
    model = tracker()
    for t in range(32):
        model.learn_one({"a": few if t < n else 1.0}, t < n or t % 2 == 1)
    assert (arrays(model)["tree_features"][0, 0] == 0) == is_split


def test_of_equal_gains_the_first_column_and_the_lowest_code_are_taken():
    """Eight rows of each class apart, and between them 16 of both."""
    model = tracker()
    for t in range(32):
        a = 1.0 if t % 4 > 1 else 2.0 * (t % 4)
        model.learn_one({"a": a, "b": a}, t // 4 % 2 == 1 if a == 1.0 else a == 2.0)
    root = arrays(model)["tree_features"][0, 0], arrays(model)["tree_thresholds"][0, 0]
    assert root == (0, 0.5)


@CORES
def test_a_leaf_is_bounded():
    """33 rows of one class that all have a probability of 1/3000: 33 over little more than 1."""
    model = learnt(32)

    def one(labels):
        labels[:] = 1

    def wrong(scores):
        scores[:] = -8.0

    def now(forest):
        forest[0, c.FOREST.index("since")] = 1_000

    model = changed(model, tree_labels=one, tree_scores=wrong, tree_forest=now)
    model.learn_one({"a": 1.0}, True)
    after = arrays(model)
    assert after["tree_leaves"][0, 1, 0] == 0.5 * 4.0
    assert after["tree_scores"][0, :32].tolist() == [-6.0] * 32


def test_a_tree_is_fitted_after_a_twelfth_of_the_window():
    model = tracker()
    for t in range(47):
        model.learn_one({"a": float(t % 2)}, t % 2 == 1, NOTHING)

    def three(forest):
        forest[0, c.FOREST.index("since")] = 3

    model = changed(model, tree_forest=three)
    model.learn_one({"a": 0.0}, False, NOTHING)
    assert counts(model).items() >= {"kept": 48, "since": 0}.items()


def gain_of(groups):
    """Gains of the splits of a node, of rows as (number, gradient, curvature) by their values."""

    def quality(some):
        return sum(n * g for n, g, _ in some) ** 2 / (sum(n * h for n, _, h in some) + 1.0)

    cuts = [(groups[:k], groups[k:]) for k in range(1, len(groups))]
    gains = [quality(left) + quality(right) - quality(groups) for left, right in cuts]
    if max(gains, default=0.0) < 1e-6:
        return 0.0
    best = gains.index(max(gains))
    return gains[best] + sum(map(gain_of, cuts[best]))


def test_many_classes_are_told_apart_by_random_signs():
    """Four rows of scores, one of the next class, at a probability of 1/4: some signs fit."""
    for seed in range(4):
        model = tracker(seed=seed)
        for t in range(32):
            model.learn_one({"a": float(t % 3)}, t % 3)
        expected = []
        for signs in product((-1.0, 1.0), repeat=4):
            mean = sum(signs) / 4
            groups = [(n, signs[k] - mean, 1.0 - mean**2) for k, n in enumerate((11, 11, 10))]
            expected.append(gain_of(groups))
        [gain] = arrays(model)["tree_gains"]
        assert min(abs(gain - one) for one in expected) < 1e-6


@CORES
def test_half_of_the_columns_are_those_of_the_largest_gains():
    """Those that are chosen fade; columns without edges gain nothing."""
    model, x = tracker(), {f"f{j:02}": 1.0 for j in range(20)}
    for t in range(32):
        model.learn_one(x, t % 2 == 1, NOTHING)
    before = np.array([9.0, 8.0, 7.0, 6.0, 5.0, *[1.0] * 15])

    def gains(columns):
        columns[:] = before

    def now(forest):
        forest[0, c.FOREST.index("since")] = 1_000

    times = np.zeros(20, int)
    for t in range(30):
        model = changed(model, tree_gains=gains, tree_forest=now)
        model.learn_one(x, t % 2 == 1, NOTHING)
        chosen = arrays(model)["tree_gains"] == 0.9 * before
        assert chosen.sum() == c.CHOSEN
        times += chosen
    assert (times[:6] == 30).all()  # of equal gains the first one
    assert ((times[6:] > 0) & (times[6:] < 30)).all()
    assert counts(model)["next"] == 31 % c.TREES


def test_what_is_predicted_well_is_seldom_kept_and_weighs_more():
    model = learnt(400)
    a, n = arrays(model), counts(model)
    missed = a["tree_missed"].astype(float)
    expected = 1.0 / np.clip(c.KEPT * missed, c.LEAST_KEPT, 1.0)
    assert a["tree_weights"] == pytest.approx(expected)
    assert missed[-1] < c.LEAST_KEPT / c.KEPT  # the floor holds: one in ten is kept
    assert 60 < n["kept"] < 160
    assert len(missed) == min(n["kept"], 64)
    # Each row has the sum of its leaves, whichever trees were fitted anew meanwhile.
    leaves = a["tree_leaves"][0][np.arange(c.TREES)[:, np.newaxis], a["tree_places"]]
    assert a["tree_scores"][0] == pytest.approx(leaves.sum(axis=0), abs=1e-5)


def test_a_weight_counts_within_bounds():
    for w, expected in ((1e-9, 1e-6), (2.5, 2.5), (1e100, 1e3)):
        model = tracker()
        model.learn_one({"a": 1.0}, "x", w)
        assert arrays(model)["tree_weights"] == pytest.approx([expected])


def test_edges_lie_between_values_or_their_quantiles():
    """Examples of no weight are all kept, as trees learn nothing of them."""
    model, values = tracker(100), random.Random(3).sample(range(128), 128)
    for n, a in enumerate(values, 1):
        model.learn_one({"a": float(a), "few": float(a % 5)}, a % 2, NOTHING)
        if n not in {32, 64, 128}:
            continue
        after, own = arrays(model), sorted(values[:n])
        middles = [(low + high) / 2 for low, high in pairwise(own)]
        edges = middles if n <= 64 else [middles[b * (n - 1) // 64] for b in range(1, 64)]
        assert after["tree_n_edges"].tolist() == [len(edges), 4]
        assert after["tree_edges"][0, : len(edges)].tolist() == edges
        assert after["tree_edges"][1, :4].tolist() == [0.5, 1.5, 2.5, 3.5]
        assert after["tree_codes"][:, 1].tolist() == [a % 5 for a in values[:n]]
        if n == 32:
            first = edges
            assert after["tree_codes"][:, 0].tolist() == [*map(own.index, values[:n])]
        if n == 64:  # what had a code between two edges has now that of the middle of these
            new = [0] + [np.searchsorted(edges, (a + b) / 2) for a, b in pairwise(first)]
            new.append(np.searchsorted(edges, first[-1], "right"))
            old = np.searchsorted(first, values[:64])
            assert after["tree_codes"][:, 0].tolist() == [new[code] for code in old]
    assert counts(model)["renew"] == 256


@CORES
def test_edges_that_are_gone_leave_zeros():
    model = tracker(100)
    for a in range(64):
        model.learn_one({"a": float(a)}, a % 2, NOTHING)
    assert arrays(model)["tree_n_edges"].tolist() == [63]

    def two(sample):
        sample[:] = sample > 30.0

    def now(forest):
        forest[0, c.FOREST.index("renew")] = 65

    model = changed(model, tree_sample=two, tree_forest=now)
    model.learn_one({"a": 1.0}, True, NOTHING)
    assert arrays(model)["tree_n_edges"].tolist() == [1]
    assert arrays(model)["tree_edges"][0].tolist() == [0.5] + [0.0] * 62


@CORES
def test_rows_from_before_a_change_are_dropped():
    """Older rows were missed by .1, the newest 31 by .9, and the next is by half."""
    model = tracker(100)
    for t in range(150):
        model.learn_one({"a": float(t % 2)}, t % 3 == 1, NOTHING)
    assert len(arrays(model)["tree_missed"]) == 150

    def missed(rows):
        rows[:], rows[-31:] = 0.1, 0.9

    def evenly(rows):
        rows[:] = 1.0

    def now(forest):
        forest[0, c.FOREST.index("since")] = 1_000

    model = changed(model, tree_missed=missed, tree_weights=evenly, tree_forest=now)
    model.learn_one({"a": 0.0}, True)
    after = arrays(model)
    assert len(after["tree_missed"]) == after["tree_codes"].shape[0] == 32
    assert after["tree_missed"][:31] == pytest.approx([0.9] * 31)
    assert after["tree_places"].shape == (c.TREES, 32)
    assert after["tree_scores"].shape == (1, 32)


@CORES
@pytest.mark.parametrize(
    ("older", "newer", "left"),
    [
        ([0.5] * 32, [0.9] * 31, 32),  # half of the window; z = 7.7
        ([0.1] * 64, [0.9] * 63, 64),  # z = 6.4 for the newest 32, and 11 for 64
        ([0.3, 0.5] * 16, [0.5, 0.7] * 16, 64),  # z = 5.6, a half instead of the last .7
        ([0.5] * 32, [0.501] * 31, 64),  # hardly a difference, though there is little else
    ],
)
def test_the_newest_rows_are_alone_left_where_they_are_missed_far_more(older, newer, left):
    """The last of them is the next example, which is missed by half."""
    given = [*older, *newer[: len(older) - 1]]
    model = tracker(100)
    for t in range(len(given)):
        model.learn_one({"a": float(t % 2)}, t % 3 == 1, NOTHING)

    def missed(rows):
        rows[:] = given

    def evenly(rows):
        rows[:] = 1.0

    def now(forest):
        forest[0, c.FOREST.index("since")] = 1_000

    model = changed(model, tree_missed=missed, tree_weights=evenly, tree_forest=now)
    model.learn_one({"a": 0.0}, True)
    assert arrays(model)["tree_missed"] == pytest.approx([*given, 0.5][-left:], abs=1e-4)


def test_a_third_class_halves_leaves_and_the_rows_scores():
    model = learnt(39)
    before = arrays(model)
    model.learn_one({"a": 1.0}, "third", 1e-9)
    after = arrays(model)
    n = len(before["tree_labels"])
    assert counts(model)["since"] > 0  # no tree was fitted to this example
    for r, share in enumerate((-0.5, 0.5, 0.0, 0.0)):
        expected = share * before["tree_leaves"][0]
        assert after["tree_leaves"][r, : c.TREES].tolist() == expected.tolist()
        assert not after["tree_leaves"][r, c.TREES :].any()
        assert after["tree_scores"][r, :n].tolist() == (share * before["tree_scores"][0]).tolist()
    assert after["tree_labels"][-1] == 2


@CORES
def test_a_third_class_brings_more_trees():
    """The next ones are new; before, the turn was the oldest's. Each 24th of the window has one."""
    model = learnt(100)
    assert counts(model)["n_trees"] == c.TREES
    model.learn_one({"a": 1.0}, "third", NOTHING)
    assert counts(model)["next"] == counts(model)["n_trees"] == c.TREES
    turns, late = [], []
    for t in range(80):
        before, n = counts(model), len(arrays(model)["tree_labels"])
        model.learn_one({"a": float(t % 5)}, ("third", True, False)[t % 3])
        after = counts(model)
        if after["since"] == 0:
            turns.append((before["next"], after["n_trees"], after["next"]))
            # At an example that was kept or not.
            late.append(before["since"] + 1 - math.ceil((n + after["kept"] - before["kept"]) / 24))
    new = range(c.TREES, c.MANY_TREES)
    assert turns[: len(new)] == [(k, k + 1, (k + 1) % c.MANY_TREES) for k in new]
    assert turns[len(new)][::2] == (0, 1)
    assert {n for _, n, _ in turns[len(new) :]} == {c.MANY_TREES}
    assert not any(late)


# --- where there are trees -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"budget": c.TREES_FROM - 1}, False),
        ({"budget": c.TREES_FROM}, True),
        ({"budget": 300, "trees": False}, False),
        ({"budget": 1, "trees": True}, True),
    ],
)
def test_trees_begin_at_a_budget(given, expected):
    names = [member.kernel for member in Tracker(**given).members]
    assert ("trees" in names, "context, trees" in names) == (expected, expected)
    assert len(names) == 23 + 2 * expected


@pytest.mark.parametrize("n", [0, 1, 50])
def test_examples_without_features_leave_a_model_that_can_be_stored(n):
    model = tracker()
    for t in range(n):
        model.learn_one({}, t % 2)
    copied = decode(encode(model))
    for one in (model, copied):
        one.learn_one({"a": 1.0}, 1)
    assert encode(copied) == encode(model)
    assert counts(model)["kept"] == n + 1


def test_over_sparse_rows_trees_say_nothing():
    model = tracker(scale="sparse")
    for t in range(50):
        model.learn_one({f"w{t % 7}": 1.0}, t % 2)
    assert arrays(model)["tree_codes"].size == arrays(model)["tree_leaves"].size == 0
    assert [m.log_loss for m in model.members[-2:]] == pytest.approx([math.log(2.0)] * 2, abs=0.02)


def test_wide_rows_have_trees_without_a_context():
    model = tracker()
    for t in range(40):
        row = {f"f{j}": float((t * j) % 3) for j in range(c.CONTEXT + 1)}
        model.learn_one(row, t % 2)
    assert counts(model)["n_trees"] > 0
    assert counts(model, "context_")["kept"] == 0


# --- both cores ----------------------------------------------------------------------------------


def rules(n, classes=2, columns=3, seed=5):
    """A sharp rule on two features that changes; values are missing, and names come late."""
    rng = random.Random(seed)
    for t in range(n):
        x = {f"f{j:02}": rng.choice([rng.random(), 0.5]) for j in range(columns)}
        first, other = ("f00", "f01") if t < n / 2 else ("f01", "f02")
        y = int((x[first] > 0.3) + (x[other] > 0.6) + (classes > 3 and x["f02"] > 0.8))
        if rng.random() < 0.1:
            x["f01"] = rng.choice([None, math.nan])
        if t > n / 3:
            x[f"late{t // 100}"] = rng.random()
        yield x, min(y, classes - 1 if t > n / 4 else 1)


@pytest.mark.skipif(not compiled, reason="there is one core")
@pytest.mark.parametrize(("budget", "classes", "columns"), [(12, 2, 3), (40, 2, 15), (8, 4, 18)])
def test_the_cores_agree_when_windows_are_full(budget, classes, columns):
    """With more columns than a tree chooses from, and than are renewed at one example."""
    cores = both(budget, trees=True)
    n = compare(cores, rules(150, classes, columns), most=1e-5)
    found, expected = (core.arrays() for core in cores)
    for name in expected if n == 150 else ():
        if "tree" in name:
            assert same_values(found[name], expected[name], 1e-5, 1e-5), name


@pytest.mark.parametrize("stops", [(40, 90), (131, 170), (210, 215)])
def test_copies_continue_bit_for_bit(stops):
    one = other = tracker(seed=3)
    for t, (x, y) in enumerate(rules(260, 3, 7)):
        assert one.predict_proba_one(x) == other.predict_proba_one(x)
        one.learn_one(x, y)
        if other is not one:
            other.learn_one(x, y)
        if t in stops:
            other = decode(encode(one)) if t == stops[0] else pickle.loads(pickle.dumps(one))
    assert encode(one) == encode(other)


@pytest.mark.skipif(not compiled, reason="the reference allocates at each example")
def test_a_window_without_room_leaves_the_model_as_it_was(monkeypatch):
    model, examples = tracker(100), list(rules(140))
    for x, y in examples[:64]:
        model.learn_one(x, y)
    before = pickle.dumps(model)
    with monkeypatch.context() as patch:
        patch.setattr(room, "memory", lambda: 0)
        with pytest.raises(MemoryError):  # noqa: PT012 - it is not the first that needs room
            for x, y in examples[64:]:
                model.learn_one(x, y)
                before = pickle.dumps(model)
    assert pickle.dumps(model) == before
    for x, y in examples[64:]:
        model.learn_one(x, y)
    assert counts(model)["n_trees"] == c.TREES


# --- what they take, and what they are for -------------------------------------------------------


@pytest.mark.compiled
def test_memory_is_bounded_by_the_budget():
    rng, model, sizes = random.Random(2), Tracker(300), []
    for t in range(6_000):
        x = {f"f{j}": rng.random() for j in range(8)}
        model.learn_one(x, rng.random() < 0.5)
        if t in {3_500, 5_999}:
            sizes.append(sys.getsizeof(model._core))
    assert sizes[0] == sizes[1] < 1e6
    assert len(arrays(model)["tree_labels"]) == 8 * 300


@pytest.mark.compiled
def test_they_pay_where_rules_are_sharp():
    """Two of ten features tell, by bounds on both."""
    errors = []
    for trees in (False, True):
        rng, model, wrong = random.Random(4), Tracker(100, trees=trees), 0
        for t in range(2_500):
            x = {f"f{j}": rng.random() for j in range(10)}
            y = (x["f0"] > 0.35) != (x["f1"] > 0.6)
            wrong += t >= 1_000 and model.predict_one(x) != y
            model.learn_one(x, y)
        errors.append(wrong)
    assert errors[1] < 0.3 * errors[0]
