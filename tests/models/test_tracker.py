"""What the Tracker promises: no look-ahead, bounded memory, one result in every form."""

import copy
import math
import pickle
import random
from itertools import islice

import numpy as np
import pandas as pd
import pytest

from drift.models import Tracker, compiled
from drift.models._state.codec import decode, encode
from drift.models._tracker import tables
from tests.models.forms import FORMS, loop
from tests.models.streams import (
    as_arrays,
    clusters,
    degenerate_stream,
    drifting_stream,
    random_stream,
)
from tests.models.tracker_streams import paired

# --- no look-ahead ------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["dense", "sparse"])
def test_labels_flipped_later_change_no_earlier_prediction(scale):
    X, y = as_arrays(drifting_stream(150))
    flipped = [label if t < 90 else not label for t, label in enumerate(y)]
    one, other = (Tracker(9, scale=scale) for _ in range(2))
    before, after = one.predict_learn_many(X, y), other.predict_learn_many(X, flipped)
    assert before[:91].tolist() == after[:91].tolist()
    assert before[91:].tolist() != after[91:].tolist()


@pytest.mark.compiled  # 1,500 rows: the reference says the same by test_tracker_twin.py
def test_shuffled_labels_end_at_the_rate_of_the_majority():
    X, _ = as_arrays(random_stream(1500))
    y = np.random.default_rng(0).random(1500) < 0.7
    errors = Tracker(30).predict_learn_many(X, y.tolist())[500:] != y[500:]
    assert abs(errors.mean() - (~y[500:]).mean()) < 0.04


@pytest.mark.skipif(not compiled, reason="the reference takes denormal numbers as others")
def test_coefficients_that_fade_end_at_zero_before_they_are_denormal():
    X, y = as_arrays(random_stream(200))
    model = Tracker(30, forgetting=(0, 28))
    model.learn_many(X, y)
    sizes = abs(model._core.arrays()["coefficients"])
    assert (sizes == 0).any()
    assert sizes[sizes > 0].min() > 1e-20


# --- one result in every form -------------------------------------------------------------------


#: Forms in which a 0 is absent.
SPARSE = {name: FORMS[name] for name in ("csr", "csc", "coo")} | {
    "dicts": lambda X: [{j: v for j, v in enumerate(row) if v} for row in X.tolist()]
}


def streams_of_rows():
    """Rows without a 0, in every form, and others where 0 is absent."""
    X, y = as_arrays(drifting_stream(100))
    yield "dense", ("dense", X + 0.5, y)
    yield "sparse", ("sparse", X, y)
    X, y = as_arrays(clusters(["red", "green", "blue", "white"], 100))
    yield "classes", ("dense", (X + 0.25).astype(np.float32).astype(float), y)
    for name, share in (("growing", 1.0), ("growing, halves", 0.5)):
        few, labels = as_arrays(paired(1, 18, 50, n=100, share=share))
        yield name, ("auto", few.astype(np.float32).astype(float), labels)
    words = np.zeros((100, 500))  # five in each row that no other has
    words[np.arange(500) // 5, np.arange(500)] = 1.0
    yield "auto", ("auto", np.hstack([X, words]), y)


ROWS = dict(streams_of_rows())


@pytest.mark.covering(2)
@pytest.mark.parametrize(
    ("rows", "form"),
    [(rows, form) for rows, (_, X, _) in ROWS.items() for form in (FORMS if X.all() else SPARSE)],
)
def test_every_form_of_batch_equals_the_loop(rows, form):
    scale, X, y = ROWS[rows]
    formed = (FORMS | SPARSE)[form]
    one, many = (Tracker(9, scale=scale) for _ in range(2))
    dicts = SPARSE["dicts"](X)
    expected = loop(one, zip(dicts, y, strict=True))
    many.learn_one(dicts[0], y[0])  # what is predicted before that is None, which frames have not
    got = [None]
    for part in (slice(1, 60), slice(60, 61), slice(61, None)):
        got += list(many.predict_learn_many(formed(X[part]), y[part]))
    assert got == expected
    assert pickle.dumps(many) == pickle.dumps(one)
    chances = np.asarray(many.predict_proba_many(formed(X[:10])))
    assert chances.tolist() == [list(one.predict_proba_one(x).values()) for x in dicts[:10]]
    assert list(many.predict_many(formed(X[:10]))) == [one.predict_one(x) for x in dicts[:10]]


@pytest.mark.parametrize("y", [["a", "b", "b"], [True, False, False], [2, 0, 0]])
def test_what_comes_before_the_first_label_is_missing_in_a_frame(y):
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[7, 8, 9])
    assert Tracker(9).predict_learn_many(X, y).isna().to_dict() == {7: True, 8: False, 9: False}


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("scale", ["dense", "sparse"])
def test_order_and_the_form_of_what_is_missing_make_no_difference(scale):
    """None is as NaN, and of a name that never had a value as none; in sparse rows so is 0."""
    models = [Tracker(7, scale=scale) for _ in range(3)]
    for x, y in islice(degenerate_stream(), 30):
        never = {"none": None, "nan": math.nan} | ({"zero": 0.0} if scale == "sparse" else {})
        nones = {name: None if v != v else v for name, v in x.items()}
        expected = models[0].predict_proba_one(x)
        for model, form in zip(models, (x, dict(reversed(x.items())), nones | never), strict=True):
            assert model.predict_proba_one(form) == expected
            model.learn_one(form, y)
    states = {pickle.dumps(model) for model in models}
    assert len(states) == 1


@pytest.mark.usefixtures("core")
def test_a_prediction_with_new_names_leaves_no_trace():
    """Neither where the example is then learnt without them, as one that comes late may be."""
    models = Tracker(7), Tracker(7)
    for x, y in islice(random_stream(), 40):
        models[1].predict_one(x | {"new": 2.0, "newer": 0.0})
        for model in models:
            model.learn_one(x, y)
    assert pickle.dumps(models[0]) == pickle.dumps(models[1])


def test_auto_continues_as_sparse_where_it_finds_rows_sparse():
    """The switch drops supports and linear weights, and neither labels nor weights of members."""
    _, wide, y = ROWS["auto"]
    model, held = Tracker(9), []
    for x, label in zip(SPARSE["dicts"](wide), y, strict=True):
        model.learn_one(x, label)
        held.append(model.n_supports)
    [switch] = [t for t in range(1, len(held)) if held[t] < held[t - 1]]
    assert held[switch] == 0
    assert len(model.predict_proba_one({})) == 4
    sizes = [math.hypot(*x.values()) for x in model.supports]
    assert sizes == pytest.approx([1.0] * len(sizes))


@pytest.mark.usefixtures("core")
def test_a_copy_finds_rows_sparse_as_soon_as_its_original():
    """Each name has had one value, and no more than so many have a place among dense ones."""
    model = Tracker(3)
    for t in range(20):
        copied = pickle.loads(pickle.dumps(model))
        for one in (model, copied):
            one.learn_one({f"{t} {k}": 1.0 for k in range(20)}, t % 2)
        assert copied._core.sparse == model._core.sparse == (20 * (t + 1) > tables.FEW_NAMES)


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
    ("stream", "scale", "n"),
    [
        *(("auto", scale, 70) for scale in ("dense", "sparse", "auto")),
        *(("growing", "auto", n) for n in (1, 75, 83)),
        ("growing, halves", "auto", 83),
    ],
)
def test_copies_continue_bit_for_bit(stream, scale, n):
    _, rows, y = ROWS[stream]
    rows = FORMS["csr"](rows)
    one = Tracker(9, scale=scale, seed=3)
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
