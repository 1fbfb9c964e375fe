"""Rare classes: which one is singled out, how it is measured, and what models are ranked by."""

import numpy as np
import pytest
from rich.console import Console
from river import naive_bayes, preprocessing
from river.base import Classifier
from river.compose import Pipeline
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    precision_score,
    recall_score,
)

from drift.errors import ParameterError
from drift.experiments import Contender, compare
from drift.experiments.comparison.focus import EVERYTHING, focus_of
from drift.experiments.comparison.report import report
from drift.models import Threshold, Tracker
from drift.streams import Stream


def stream_of(counts):
    return Stream([({}, label) for label, n in counts.items() for _ in range(n)])


@pytest.mark.parametrize(
    ("counts", "positive", "headline"),
    [
        ({"fine": 90, "bad": 10}, None, "error"),
        ({"fine": 91, "bad": 9}, "bad", "average_precision"),
        ({True: 9, False: 91}, True, "average_precision"),
        ({0: 9, 1: 91}, 0, "average_precision"),
        ({"a": 50, "b": 45, "c": 5}, "c", "average_precision"),
        ({"a": 90, "b": 5, "c": 5}, None, "average_precision"),  # two are rare
        (dict.fromkeys(range(26), 10), None, "error"),  # none is rarer than the others
        (dict.fromkeys(range(25), 10) | {25: 4}, 25, "average_precision"),
        ({"a": 50, "b": 49, "slip": 1}, None, "error"),
        ({"a": 94, "b": 5, "slip": 1}, "b", "average_precision"),
    ],
)
def test_the_class_that_is_rare(counts, positive, headline):
    focus = focus_of(stream_of(counts))
    assert (focus.positive, focus.headline) == (positive, headline)
    assert bool(focus.note) is (headline != "error")
    assert (focus == EVERYTHING) is (headline == "error")


def test_the_positive_class_may_be_asked_for():
    stream = stream_of({1: 9, 2: 5, 3: 5})
    assert focus_of(stream, 2).positive == focus_of(stream, "2").positive == 2
    assert focus_of(stream_of({True: 3, False: 3}), "true").positive is True
    with pytest.raises(ParameterError, match=r"stream has no label 4: choose among 1, 2, 3"):
        focus_of(stream, 4)
    with pytest.raises(ParameterError, match=r"stream has no label \[1\]: choose among 1, 2, 3"):
        focus_of(stream, [1])


class Hard(Classifier):
    """Naive Bayes without its probabilities."""

    def __init__(self):
        self.model = naive_bayes.GaussianNB()

    def learn_one(self, x, y):
        self.model.learn_one(x, y)

    def predict_one(self, x):
        return self.model.predict_one(x)


@pytest.fixture(scope="module")
def frauds():
    rng = np.random.default_rng(1)
    hits = rng.random(1000) < 0.05
    values = rng.normal(size=1000) + 2 * hits
    return Stream(
        [
            ({"a": a, "b": b}, bool(hit))
            for a, b, hit in zip(values.tolist(), rng.random(1000).tolist(), hits, strict=True)
        ],
        "frauds",
    )


@pytest.fixture(scope="module")
def results(frauds):
    return compare({"bayes": naive_bayes.GaussianNB(), "hard": Hard}, frauds, windows=5, jobs=1)


def test_measures_of_a_rare_class_are_those_of_scikit_learn(frauds, results):
    row = results.rows("runs")[0]
    model, truth, scores = naive_bayes.GaussianNB(), [], []
    for x, y in frauds:
        truth.append(y)
        scores.append(model.predict_proba_one(x).get(True, 0.0))
        model.learn_one(x, y)
    truth, scores = np.array(truth[1:]), np.array(scores[1:])
    assert row["average_precision"] == pytest.approx(average_precision_score(truth, scores))
    # The counts of what was said follow from recall and precision, and give F1.
    hits = row["recall"] * truth.sum()
    claimed = hits / row["precision"]
    assert hits == pytest.approx(round(hits))
    assert claimed == pytest.approx(round(claimed))
    assert row["positive_f1"] == pytest.approx(2 * hits / (truth.sum() + claimed))
    best = max(
        f1_score(truth, scores >= edge) for edge in np.quantile(scores, np.arange(0, 1, 0.01))
    )
    assert best > row["positive_f1"] > 0.75 * best  # of 50 rows, the first ones unlearnt
    last = scores >= row["threshold"]  # the last threshold is nearly the best one
    assert f1_score(truth, last) > 0.9 * best
    assert recall_score(truth, last) > 0
    assert precision_score(truth, last) > 0


def test_a_model_without_probabilities_says_itself_what_is_positive(results):
    row = results.rows("runs")[1]
    assert row["model"] == "hard"
    assert (row["average_precision"], row["threshold"]) == (None, None)
    assert row["recall"] > 0


def test_a_model_with_a_threshold_says_itself_what_is_positive(frauds):
    models = {"own": Threshold(naive_bayes.GaussianNB(), True, rate=0.3)}
    results = compare(models, frauds, windows=5, jobs=1, predictions=False)
    row = results.rows("runs")[0]
    model, said, truth = Threshold(naive_bayes.GaussianNB(), True, rate=0.3), [], []
    for x, y in frauds:
        said.append(model.predict_one(x) is True)
        truth.append(y)
        model.learn_one(x, y)
    assert row["recall"] == pytest.approx(recall_score(truth[1:], said[1:]))
    assert row["precision"] == pytest.approx(precision_score(truth[1:], said[1:]))
    assert row["threshold"] == model.threshold


def test_a_threshold_at_the_end_of_pipelines_in_one_another_says_so_too(frauds):
    scaler, other = preprocessing.StandardScaler(), preprocessing.MinMaxScaler()
    last = Threshold(naive_bayes.GaussianNB(), rate=0.3)
    models = {"flat": scaler | other | last, "nested": Pipeline(scaler, Pipeline(other, last))}
    results = compare(models, frauds, windows=5, jobs=1, positive=True)
    flat, nested = results.rows("runs")[:2]
    assert nested["status"] == "ok"
    for name in ("error", "recall", "precision", "threshold"):
        assert nested[name] == flat[name]


def test_a_tracker_in_a_threshold_is_one_for_late_labels():
    assert Contender(Threshold(Tracker()), late=True).make().model.late is True
    assert Contender(Threshold(Tracker(late=False)), late=True).make().model.late is False


def test_models_are_ranked_by_average_precision(results):
    rows = results.rows("table")
    assert [row["headline"] for row in rows] == ["average_precision"] * 4
    values = [row["average_precision"] for row in rows]
    assert values[:3] == sorted(values[:3], reverse=True)
    assert (rows[0]["model"], values[3], rows[3]["model"]) == ("bayes", None, "hard")
    by_error = min(rows, key=lambda row: row["error"])
    console = Console(width=120)
    with console.capture() as shown:
        console.print(results)
    assert "frauds: recall, precision and F1 are of True, " in " ".join(shown.get().split())
    page = report(results)
    lead = page.partition('class="lead">')[2].partition("</p>")[0]
    assert "bayes has the highest average precision of &#x27;True&#x27;, 0." in lead
    assert by_error["model"] == "majority" or by_error["error"] < 0.06
    assert "<h3>Average precision of &#x27;True&#x27; against time</h3>" in page
