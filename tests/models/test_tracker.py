"""What the Tracker promises: its bound, no look-ahead, bounded memory, one result in every form."""

import copy
import math
import pickle
import random
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_tracker import Tracker as Twin
from streams import as_arrays, degenerate_stream, drifting_stream, random_stream
from test_batches import FORMS, loop
from test_multiclass import clusters
from test_tracker_twin import paired

from drift.consumers.checkpoints.state import decode, encode
from drift.models import Tracker, compiled

number = st.integers(-3, 3) | st.floats(-2, 2)
point = st.dictionaries(st.sampled_from("abcdef"), number)
streams = st.lists(
    st.tuples(point, st.sampled_from("xxxyyz"), st.sampled_from([0.0, 0.3, 1.0, 1.0, 1.0])),
    min_size=1,
    max_size=40,
)


# --- the bound ----------------------------------------------------------------------------------


#: More names than dense scaling takes: what comes after such an example is a sparse row.
WIDE = dict.fromkeys(range(4096), 1.0)


@given(
    stream=streams,
    budget=st.integers(1, 4),
    scale=st.sampled_from(["dense", "sparse", "auto"]),
    share=st.sampled_from([1e-3, 0.0, 0.1]),
)
def test_the_log_loss_keeps_to_the_bound_of_a_viterbi_pass(stream, budget, scale, share):
    model, twin = (kind(budget, scale=scale, share=share) for kind in (Tracker, Twin))
    if scale == "auto":
        stream = [*stream[::2], (WIDE, "x", 1.0), *stream[1::2]]
    for x, y, w in stream:
        model.learn_one(x, y, w)
        twin.learn(x, y, w)
        record = model.regret_bound()
        assert record.log_loss <= record.bound + 1e-9
    assert record.bound == pytest.approx(twin.bound()[0], rel=2e-3)
    assert twin.sparse == (scale != "dense")


@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.usefixtures("tolerance")
def test_the_bound_counts_no_weight_of_members_that_were_put_aside(turns):
    """Splines, which lead while rows are dense, lose least on labels that are against the rest."""
    rng, stream = random.Random(1), []
    if turns:
        values = [rng.uniform(-1.0, 1.0) for _ in range(150)]
        stream = [({"a": a}, abs(a) > 0.5) for a in values] + [(WIDE, True)]
    model = Tracker(5, kernels=(0.0,), rates=(0.5,), scale="auto" if turns else "sparse")
    for x, y in stream + [({"a": 1.0}, None)] * 60:
        chances = model.predict_proba_one(x)
        least = min(chances, key=chances.get) if len(chances) > 1 else not chances
        model.learn_one(x, least if y is None else y)
        record = model.regret_bound()
        assert record.log_loss <= record.bound + 1e-9


def alternating(_model, _x, t):
    return t % 2


def flipping(_model, x, t):
    return (sum(x.values()) > 0) != (t // 60) % 2


def at_random(_model, _x, t):
    return random.Random(t).randrange(3)


def the_other(model, x, _t):
    return not model.predict_one(x)


def least_likely(model, x, t):
    chances = model.predict_proba_one(x)
    return min(chances, key=chances.get) if t > 5 else t % 5


@pytest.mark.parametrize("adversary", [alternating, flipping, at_random, the_other, least_likely])
@pytest.mark.parametrize("scale", ["dense", "sparse", "auto"])
def test_no_adversary_breaks_the_bound(adversary, scale):
    """The worst labels there are, also chosen with the model in hand; `auto` turns to sparse."""
    model, given = Tracker(5, scale=scale), 0.0
    for t, (x, _) in enumerate(random_stream(250, signed=True)):
        x = WIDE if t == 60 and scale == "auto" else x  # noqa: PLW2901
        y = adversary(model, x, t)
        chances = model.predict_proba_one(x)
        model.learn_one(x, y)
        if len(chances) > 1 and y in chances:  # all that a prediction shows
            given -= math.log(chances[y])
        record = model.regret_bound()
        assert record.log_loss <= record.bound + 1e-9, f"example {t}"
    price = math.log(2) - 250 * math.log(1 - 3e-4 + 3e-4 / 13)  # of the maps
    assert given < record.log_loss + price
    assert record.bound < min(expert.log_loss for expert in model.experts) * 250 + 4.0


def test_the_bound_is_what_the_formula_says():
    """ln M + m ln(M / s) - (T - 1 - m) ln(1 - s + s / M) above the best sequence."""
    model, twin = Tracker(6, share=0.01), Twin(6, share=0.01)
    for t, (x, y) in enumerate(random_stream(360)):
        label = y != (t // 120 == 1)
        model.learn_one(x, label)
        twin.learn(x, label)
    record = model.regret_bound()
    losses = np.array([loss for _, loss in twin.losses])
    m, s, n = record.switches, 0.01, losses.shape[1]
    price = math.log(n) + m * math.log(n / s) - (359 - m) * math.log(1 - s + s / n)
    assert m > 0
    assert record.bound - price > losses.min(axis=1).sum()
    assert record.bound <= losses.sum(axis=0).min() + math.log(n) - 359 * math.log(1 - s + s / n)
    assert record.bound == pytest.approx(twin.bound()[0], rel=1e-3)


# --- no look-ahead ------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["dense", "sparse"])
def test_labels_flipped_later_change_no_earlier_prediction(scale):
    X, y = as_arrays(drifting_stream(150))
    flipped = [label if t < 90 else not label for t, label in enumerate(y)]
    one, other = (Tracker(9, scale=scale) for _ in range(2))
    before, after = one.predict_learn_many(X, y), other.predict_learn_many(X, flipped)
    assert before[:91].tolist() == after[:91].tolist()
    assert before[91:].tolist() != after[91:].tolist()


@pytest.mark.compiled  # 1,500 rows: the plain core says the same by test_tracker_twin.py
def test_shuffled_labels_end_at_the_rate_of_the_majority():
    X, _ = as_arrays(random_stream(1500))
    y = np.random.default_rng(0).random(1500) < 0.7
    errors = Tracker(30).predict_learn_many(X, y.tolist())[500:] != y[500:]
    assert abs(errors.mean() - (~y[500:]).mean()) < 0.04


@pytest.mark.skipif(not compiled, reason="the plain core takes denormal numbers as others")
def test_coefficients_that_fade_end_at_zero_before_they_are_denormal():
    X, y = as_arrays(random_stream(200))
    model = Tracker(30, forgetting=(0, 28))
    model.learn_many(X, y)
    sizes = abs(model._core.state()["coefficients"])
    assert (sizes == 0).any()
    assert sizes[sizes > 0].min() > 1e-20


# --- one result in every form -------------------------------------------------------------------


def streams_of_rows():
    X, y = as_arrays(drifting_stream(100))
    yield "dense", ("dense", X, y)
    yield "sparse", ("sparse", X, y)
    X, y = as_arrays(clusters(["red", "green", "blue", "white"], 100))
    X = X.astype(np.float32).astype(float)
    yield "classes", ("dense", X, y)
    for name, share in (("growing", 1.0), ("growing, halves", 0.5)):  # which keep their surfaces
        few, labels = as_arrays(paired(1, 18, 50, n=100, share=share))
        yield name, ("auto", few.astype(np.float32).astype(float), labels)
    words = np.zeros((100, 500))  # five in each row that no other has
    words[np.arange(500) // 5, np.arange(500)] = 1.0
    yield "auto", ("auto", np.hstack([X, words]), y)


ROWS = dict(streams_of_rows())


@pytest.mark.covering(2)
@pytest.mark.parametrize("delay", [0, 4])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", ROWS)
def test_every_form_of_batch_equals_the_loop(form, rows, delay):
    scale, X, y = ROWS[rows]
    one, many = (Tracker(9, scale=scale, delay=delay) for _ in range(2))
    rows = [{j: v for j, v in enumerate(row) if v} for row in X.tolist()]  # absent is 0
    expected = loop(one, zip(rows, y, strict=True))
    many.learn_one(rows[0], y[0])  # what is predicted before that is None, which frames have not
    got = [None]
    for part in (slice(1, 60), slice(60, 61), slice(61, None)):
        got += list(many.predict_learn_many(FORMS[form](X[part]), y[part]))
    assert got == expected
    assert pickle.dumps(many) == pickle.dumps(one)
    chances = np.asarray(many.predict_proba_many(FORMS[form](X[:10])))
    assert chances.tolist() == [list(one.predict_proba_one(x).values()) for x in rows[:10]]
    assert list(many.predict_many(FORMS[form](X[:10]))) == [one.predict_one(x) for x in rows[:10]]


@pytest.mark.parametrize("y", [["a", "b", "b"], [True, False, False], [2, 0, 0]])
def test_what_comes_before_the_first_label_is_missing_in_a_frame(y):
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[7, 8, 9])
    assert Tracker(9).predict_learn_many(X, y).isna().to_dict() == {7: True, 8: False, 9: False}


@pytest.mark.usefixtures("tolerance")
@pytest.mark.parametrize(("scale", "delay"), [("dense", 0), ("sparse", 0), ("dense", 3)])
def test_zero_missing_and_order_make_no_difference(scale, delay):
    models = [Tracker(7, scale=scale, delay=delay) for _ in range(3)]
    for x, y in islice(degenerate_stream(), 80):
        there = {name: v for name, v in x.items() if v == v and v != 0}
        forms = [there, dict(reversed(x.items())), x | {"zero": 0.0, "none": float("nan")}]
        expected = models[0].predict_proba_one(there)
        for model, form in zip(models, forms, strict=True):
            assert model.predict_proba_one(form) == expected
            model.learn_one(form, y)
    states = {pickle.dumps(model) for model in models}
    assert len(states) == 1


def test_auto_goes_on_as_sparse_where_it_finds_rows_sparse():
    """The switch drops supports and linear weights, and neither labels nor weights of members."""
    _, wide, y = ROWS["auto"]
    model, held = Tracker(9), []
    for row, label in zip(wide, y, strict=True):
        model.learn_many(row[None], [label])
        held.append(model.n_supports)
    [switch] = [t for t in range(1, len(held)) if held[t] < held[t - 1]]
    assert held[switch] == 0
    assert len(model.predict_proba_one({})) == 4
    sizes = [math.hypot(*x.values()) for x in model.supports]
    assert sizes == pytest.approx([1.0] * len(sizes))


@pytest.mark.compiled
def test_a_table_of_many_categories_stays_dense_and_text_does_not():
    """Of 3 columns with 100 categories each, the last of 300 names comes when others came often."""
    rng = random.Random(0)
    table = [
        {f"c{k}={rng.randrange(min(100, 1 + t // 8))}": 1.0 for k in range(3)} for t in range(900)
    ]
    text = [{f"w{rng.randrange(10_000)}": 1.0 for _ in range(60)} for _ in range(8)]
    models = Tracker(9), Tracker(9, scale="dense")
    for t, x in enumerate(table):
        for model in models:
            model.learn_one(x, t % 2)
    assert models[0].predict_proba_one(table[0]) == models[1].predict_proba_one(table[0])
    assert len(models[0].__getstate__()["_core"]["names"]) > 256
    for t, x in enumerate(text):
        model = Tracker(9) if t == 0 else model
        model.learn_one(x, t % 2)
    assert model.__getstate__()["_core"]["sparse"]
    for t in range(400):  # beyond 1,024 names zeros would take too much time
        models[0].learn_one({f"c{3 * t + k}=0": 1.0 for k in range(3)}, t % 2)
    assert models[0].__getstate__()["_core"]["sparse"]


@pytest.mark.parametrize(
    ("stream", "scale", "delay", "n"),
    [
        *(("auto", scale, 0, 70) for scale in ("dense", "sparse", "auto")),
        *(("auto", "auto", delay, 70) for delay in (5, 200)),
        *(("growing", "auto", delay, n) for delay in (0, 5) for n in (75, 83)),
        ("growing, halves", "auto", 5, 83),
    ],
)
def test_copies_go_on_bit_for_bit(stream, scale, delay, n):
    _, rows, y = ROWS[stream]
    one = Tracker(9, scale=scale, seed=3, delay=delay)
    one.learn_many(rows[:n], y[:n])
    copies = [
        pickle.loads(pickle.dumps(one)),
        copy.copy(one),
        copy.deepcopy(one),
        one.clone(include_attributes=True),
        decode(encode(one)),
    ]
    expected = one.predict_learn_many(rows[n:], y[n:]).tolist()
    for other in copies:
        assert other.predict_learn_many(rows[n:], y[n:]).tolist() == expected
        assert encode(other) == encode(one)


def test_the_seed_decides():
    X, y = as_arrays(random_stream(150))
    states = []
    for seed in (1, 1, 2):
        model = Tracker(8, seed=seed)
        model.learn_many(X, y)
        states.append([tuple(x.items()) for x in model.supports])
    assert states[0] == states[1] != states[2]
