"""Which features mattered when: on streams whose target moves from one feature to others."""

import math
import re

import numpy as np
import pytest
from river import multiclass, tree
from river.base import Classifier
from river.datasets import synth
from river.dummy import NoChangeClassifier
from river.linear_model import LogisticRegression

from drift.errors import ParameterError
from drift.experiments import compare
from drift.experiments.comparison import evaluation, experiment, importances
from drift.experiments.comparison import sample as sampling
from drift.experiments.comparison.report import report
from drift.experiments.comparison.sample import Sample
from drift.models import Tracker
from drift.streams import Stream


def moving(n=2_000):
    """The target is the sign of one feature, then of another."""
    rng, rows = np.random.default_rng(0), []
    for i in range(n):
        x = dict(
            zip(("amount", "hour", "<age>", "distance"), rng.normal(size=4).tolist(), strict=True)
        )
        rows.append((x, x["amount" if i < n // 2 else "distance"] > 0))
    return Stream(rows, name="moving", drifts=((n // 2, 1),))


@pytest.fixture
def _without_time(monkeypatch):
    monkeypatch.setattr(sampling, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(sampling, "_MOST", 200)


def leading(results, start):
    rows = [row for row in results.rows("importances") if row["start"] == start]
    return [row["feature"] for row in sorted(rows, key=lambda row: -row["importance"])]


@pytest.mark.usefixtures("_without_time")
def test_a_target_that_moves_to_another_feature_is_seen():
    models = {"<b>": LogisticRegression()}
    results = compare(models, moving(), windows=20, jobs=1, explain=True)
    assert leading(results, 900)[0] == "amount"
    assert leading(results, 1900)[0] == "distance"
    rows = results.rows("importances")
    assert {row["model"] for row in rows} == {"<b>"}
    assert rows[-1]["explained"] == 200
    page = report(results)
    assert '<option value="importances 0">&lt;b&gt;</option>' in page
    assert "importances of &lt;b&gt; are of 200 of 2,000 rows" in page
    figure = results.plot("importances")
    assert {line.get_label() for line in figure.axes[0].lines} >= {"amount", "distance", "<age>"}


@pytest.mark.usefixtures("_without_time")
def test_agrawals_functions_are_told_by_their_features():
    """The first is of the age alone, the fifth of age, salary and loan."""
    examples = [
        *synth.Agrawal(classification_function=0, seed=1).take(2_000),
        *synth.Agrawal(classification_function=2, seed=2).take(2_000),
    ]
    stream = Stream(examples, name="Agrawal", drifts=((2_000, 1),))
    results = compare({"Tracker": Tracker(budget=100)}, stream, windows=20, jobs=1, explain=True)
    assert leading(results, 1_800)[0] == "age"
    assert set(leading(results, 3_800)[:2]) == {"age", "elevel"}
    before = {
        r["feature"]: r["importance"] for r in results.rows("importances") if r["start"] == 1_800
    }
    assert before["elevel"] < 0.1 * before["age"]


def test_explaining_takes_no_more_time_than_the_model(monkeypatch):
    """An explanation takes 5 s, and a row half a second: one in 10 can be explained."""
    now = 0.0

    def clock():
        nonlocal now
        now += 5.0
        return now

    model = LogisticRegression()
    model.learn_one({"a": 1.0}, True)
    sample = Sample(model, 100)
    monkeypatch.setattr(sampling, "perf_counter", clock)
    for row in range(100):
        sample.earn(0.5)
        sample.look(row, {"a": float(row)})
    sample.end_window()
    assert sample.record()["explained"] == [10]


class Fragile(tree.HoeffdingTreeClassifier):
    """Cannot predict without a feature."""

    def predict_proba_one(self, x):
        if "<age>" in x and x["<age>"] > 2.5:
            raise KeyError("age")
        return super().predict_proba_one(x)


def test_a_model_that_cannot_be_explained_further_says_so():
    sample = Sample(Fragile(), 10)
    sample._explainer.model.learn_one({"<age>": 1.0}, True)
    sample.look(0, {"<age>": 3.0})
    sample.look(1, {"<age>": 1.0})
    sample.end_window()
    found = sample.record()
    assert found["explained"] == [0]
    records = [{"stream": "s", "model": "m", "examples": 10, "importances": found}]
    assert list(importances.remarks(records)) == [
        "s: importances of m are of 0 of 10 rows",
        "s: no further row of m is explained: KeyError: 'age'",
    ]


class Unknowing(Classifier):
    """Gives no numbers as probabilities."""

    def learn_one(self, x, y):
        pass

    def predict_proba_one(self, x):
        return {True: math.nan, False: math.nan}


def test_a_model_that_is_never_explained_says_why():
    sample = Sample(Unknowing(), 10)
    sample.earn(9.0)
    sample.look(0, {"a": 1.0})
    assert sample.record()["problem"].startswith("the model gives probabilities that are none")
    sample = Sample(tree.HoeffdingTreeClassifier(), 10)
    sample.earn(9.0)
    sample.look(0, {"a": 1.0})  # it has learnt nothing yet
    assert "gives no probabilities yet" in sample.record()["problem"]
    for row in range(1, 10):
        sample._explainer.model.learn_one({"a": 1.0}, row % 2 == 0)
        sample.look(row, {"a": 1.0})
    assert sample.record()["problem"] == ""


def test_models_without_probabilities_are_refused_before_anything_runs():
    silent = multiclass.OneVsOneClassifier(LogisticRegression())
    with pytest.raises(ParameterError, match="OneVsOneClassifier gives no probabilities"):
        compare({"silent": silent}, moving(100), jobs=1, explain=True)


def test_without_the_option_nothing_is_explained():
    results = compare({"lr": LogisticRegression()}, moving(200), windows=5, jobs=1)
    assert results.rows("importances") == []
    assert "importances" not in results.figures
    assert not re.search("mattered when", report(results))


def test_a_row_is_explained_by_what_was_learnt_before_it(monkeypatch):
    """Labels come two rows late: as row 5 is explained, those of rows 0 to 3 are learnt."""
    looked = []

    class Looking(Sample):
        def __init__(self, model, rows):
            super().__init__(model, rows)
            self.model = model

        def look(self, row, x):
            looked.append((row, self.model.learnt))

    class Counting(NoChangeClassifier):
        learnt = 0

        def learn_one(self, x, y):
            super().learn_one(x, y)
            self.learnt += 1

    monkeypatch.setattr(evaluation, "Sample", Looking)
    monkeypatch.setattr(experiment, "baselines", dict)
    compare({"it": Counting()}, moving(8), delay=2, explain=True, jobs=1)
    assert looked == [(row, max(0, row - 1)) for row in range(8)]
