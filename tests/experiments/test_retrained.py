import random

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from drift.experiments.rivals import Retrained, retrained


def drawn(n):
    """Rows of a number, which is missing at times, and a text; the label follows both."""
    rng = random.Random(3)
    rows = []
    for _ in range(n):
        x = {"size": rng.random(), "shape": rng.choice(["round", "flat", "long"])}
        y = "big" if (x["size"] > 0.5) != (x["shape"] == "flat") else "small"
        if rng.random() < 0.2:
            del x["size"]
        rows.append((x, y))
    return rows


def test_it_is_what_scikit_learn_makes_of_the_latest_rows(monkeypatch):
    """After 270 rows, 20 of them since it has trained: of those from 50 to 250."""
    monkeypatch.setattr(retrained, "_EARLY", {10})  # the others take the test's time
    rows, codes = drawn(290), {"flat": 0, "long": 1, "round": 2}
    model = Retrained(every=250, window=200)
    for x, y in rows[:270]:
        model.learn_one(x, y)

    def cells(rows):
        return np.array([[x.get("size", np.nan), codes.get(x.get("shape"), np.nan)] for x in rows])

    trees = HistGradientBoostingClassifier(categorical_features=[False, True], random_state=0)
    trees.fit(cells(x for x, _ in rows[50:250]), [y for _, y in rows[50:250]])
    asked = [x for x, _ in rows[270:]]
    asked += [{"shape": "odd", "size": k / 9} for k in range(10)] + [{"size": 0.9}, {}]
    for x, (big, small) in zip(asked, trees.predict_proba(cells(asked)), strict=True):
        assert model.predict_proba_one(x) == pytest.approx({"big": big, "small": small})
    assert len({model.predict_proba_one(x)["big"] for x in asked}) > 2  # it knows something


def test_it_predicts_the_commonest_label_until_it_has_trained_on_two():
    model = Retrained()
    assert model.predict_one({"a": 1.0}) is None
    for i, label in enumerate(["no", "yes", "yes", *5 * ["no"]]):  # it trains after 10 rows
        model.learn_one({"a": float(i)}, label)
        if i == 2:
            assert model.predict_one({"a": 0.0}) == "yes"
    assert model.predict_proba_one({"a": 1.0}) == {"no": 0.75, "yes": 0.25}
    model = Retrained()
    for i in range(30):  # with one label there is nothing to train on
        model.learn_one({"a": float(i)}, "no")
    assert model.predict_one({"a": 1.0}) == "no"


def test_it_keeps_its_trees_while_its_window_has_one_label():
    model = Retrained(every=100, window=100)
    for i in range(200):
        model.learn_one({"a": float(i % 7), "b": 0.0}, i % 7 > 3)
    for _ in range(100):
        model.learn_one({"b": 0.0, "a": 6.0}, True)  # other columns, one label
    assert [model.predict_one({"b": 0.0, "a": float(a)}) for a in (2, 6)] == [False, True]
    for _ in range(100):
        model.learn_one({"b": 0.0}, True)  # a column less
    assert [model.predict_one({"a": float(a)}) for a in (2, 6)] == [False, True]


def test_it_trains_early_and_then_at_regular_intervals(monkeypatch):
    trained, model = [], Retrained()
    monkeypatch.setattr(Retrained, "_train", lambda self: trained.append(self._learnt))
    for i in range(2_100):
        model.learn_one({"a": 1.0}, i % 2)
    assert trained == [10, 25, 50, 100, 200, 500, 1_000, 2_000]
