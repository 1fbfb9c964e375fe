"""Naive twins of what River has no metric for, and cases by hand."""

import json
import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from river import datasets, linear_model, metrics, naive_bayes
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    cohen_kappa_score,
    f1_score,
    log_loss,
    roc_auc_score,
)

from drift.experiments import compare
from drift.experiments.comparison import predictions
from drift.experiments.comparison.measures import (
    COSTS,
    MEASURES,
    RECOVERY,
    measure,
    recoveries,
)
from drift.experiments.comparison.predictions import Predictions
from drift.experiments.comparison.protocol import FORKS, forks_of
from drift.experiments.comparison.statistics import holm, pairs_of
from drift.experiments.comparison.tables import costs, remarks, run_rows, shown
from drift.models import LBP
from drift.streams import Drift, Stream

PHISHING = [(dict(x), y) for x, y in datasets.Phishing().take(200)]


class Answers(NamedTuple):
    """What a model answered, and what was true."""

    truth: list
    predicted: list
    shares: list


def drawn(n, labels, seed=0):
    """Labels and shares as a model might give them, with ties."""
    rng = np.random.default_rng(seed)
    counts = 1 + rng.multinomial(20, rng.dirichlet(np.ones(len(labels)), n))
    shares = [dict(zip(labels, one / one.sum(), strict=True)) for one in counts]
    truth = [labels[k] for k in rng.integers(len(labels), size=n)]
    return Answers(truth, [max(one, key=one.get) for one in shares], shares)


def measured(truth, predicted, shares, positive=None):
    made = Predictions(truth, positive)
    for row, answer in enumerate(zip(predicted, shares, strict=True)):
        made.put(row, *answer)
    made.decide(np.stack([np.arange(len(truth)), ~np.arange(len(truth))], axis=1).ravel(), 0)
    return measure(made.outcome(0, len(truth)))


def naive_calibration_error(answers):
    total = 0.0
    for k in range(10):
        inside = [
            (max(shares.values()), truth == max(shares, key=shares.get))
            for truth, _, shares in zip(*answers, strict=True)
            if min(9, math.floor(10 * max(shares.values()))) == k
        ]
        if inside:
            confident = sum(confidence for confidence, _ in inside) / len(inside)
            right = sum(hit for _, hit in inside) / len(inside)
            total += len(inside) / len(answers.truth) * abs(confident - right)
    return total


@pytest.mark.parametrize(
    "labels", [[False, True], ["a", "b", "c"], [9, 10, 11, 100], ["no", "yes"]]
)
def test_measures_are_those_of_scikit_learn(labels):
    answers = drawn(300, labels)
    actual = measured(*answers)
    truth, predicted, shares = answers
    table = np.array([[one[label] for label in labels] for one in shares])
    assert actual["calibration_error"] == pytest.approx(naive_calibration_error(answers))
    assert actual["log_loss"] == pytest.approx(log_loss(truth, table, labels=labels))
    hits = np.array([[y == label for label in labels] for y in truth])
    binary = len(labels) == 2
    y, scores = (hits[:, 1], table[:, 1]) if binary else (hits, table)
    assert actual["auc"] == pytest.approx(roc_auc_score(y, scores))
    assert actual["average_precision"] == pytest.approx(average_precision_score(y, scores))
    assert actual["f1"] == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert actual["kappa"] == pytest.approx(cohen_kappa_score(truth, predicted))
    assert actual["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, predicted))
    assert actual["error"] == pytest.approx(1 - accuracy_score(truth, predicted))


def test_the_positive_class_may_be_the_first():
    truth, predicted, shares = drawn(200, ["bad", "good"])
    hits, scores = [y == "bad" for y in truth], [one["bad"] for one in shares]
    actual = measured(truth, predicted, shares, positive="bad")
    assert actual["auc"] == pytest.approx(roc_auc_score(hits, scores))
    assert actual["average_precision"] == pytest.approx(average_precision_score(hits, scores))


@pytest.mark.parametrize("positive", [None, "c"])
def test_beyond_so_many_probabilities_every_kth_row_is_ranked(monkeypatch, positive):
    monkeypatch.setattr(predictions, "MOST_SCORES", 300)  # of 300 rows and 3 classes
    answers = drawn(300, ["a", "b", "c"])
    whole, part = (
        measured(*([*one[::3]] if every else one for one in answers), positive=positive)
        for every in (False, True)
    )
    assert whole["auc"] == pytest.approx(part["auc"])
    if positive is None:
        assert whole["average_precision"] == pytest.approx(part["average_precision"])
    else:  # that of one class is of all rows
        hits, scores = [y == "c" for y in answers.truth], [one["c"] for one in answers.shares]
        assert whole["average_precision"] == pytest.approx(average_precision_score(hits, scores))
    assert whole["log_loss"] != pytest.approx(part["log_loss"])  # that is of all


def test_precision_of_ties_by_hand():
    shares = [{0: 1 - p, 1: p} for p in (0.2, 0.5, 0.5, 0.9)]
    actual = measured([0, 0, 1, 0], [0] * 4, shares)
    # Of the three pairs of a 0 and a 1 one is right, one is tied, one is wrong.
    assert actual["auc"] == pytest.approx(1.5 / 3)
    # The 1 is among the first three, of which no order is known.
    assert actual["average_precision"] == pytest.approx(1 / 3)


def test_a_class_that_the_model_does_not_know_has_probability_zero():
    actual = measured(["a", "b"], ["a", "a"], [{"a": 0.5, "c": 0.5}, {"a": 1.0}])
    assert actual["log_loss"] == pytest.approx((math.log(2) + 15 * math.log(10)) / 2)


@pytest.mark.filterwarnings("error")
def test_probabilities_that_are_no_numbers_are_not_measured():
    broken = {True: math.nan, False: math.nan}
    actual = measured([True, False], [True, True], [broken, {True: 0.75, False: 0.25}])
    assert actual["error"] == 0.5
    names = ("auc", "average_precision", "log_loss", "calibration_error")
    assert [actual[name] for name in names] == [None] * 4


def test_what_failed_is_shown_last_and_without_measures():
    some = {"stream": "s", "runs": 1, "status": "ok", "rows": 9, "headline": "error"}
    bad = some | {"model": "bad", "status": "failed", "error": 0.0}
    rows = [bad, some | {"model": "good", "error": 0.1}, some | {"model": "fair", "error": 0.2}]
    first, second, last = shown(rows)
    assert [first, second] == rows[1:]
    assert last == bad | {"rows": None, "error": None}


def test_without_rows_or_probabilities_there_is_nothing():
    assert set(measured([1, 0], [None, None], [None, None]).values()) == {None}
    actual = measured([1, 0], [1, 1], [None, None])
    assert actual["error"] == 0.5
    assert actual["log_loss"] is actual["auc"] is actual["calibration_error"] is None
    assert measured([1, 1], [1, 1], [{1: 0.5}] * 2)["auc"] is None


def naive_recovery(wrong, row, end, width):
    before = [w for w in wrong[max(0, row - width) : row] if w == w]
    level = sum(before) / len(before)
    bar = level + math.sqrt(level * (1 - level) / len(before))
    rows, recovered = end - row, False
    for stop in range(row + width, end + 1):
        window = [w for w in wrong[stop - width : stop] if w == w]
        if window and sum(window) / len(window) <= bar:
            rows, recovered = stop - row, True
            break
    excess = sum(w - level for w in wrong[row:end] if w == w)
    return {
        "row": row,
        "before": level,
        "rows": rows,
        "recovered": recovered,
        "excess": excess,
    }


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_recoveries_are_those_of_the_naive_twin(missing):
    rng = np.random.default_rng(1)
    error = np.concatenate([np.full(300, 0.1), np.linspace(0.6, 0.05, 400), np.full(100, 0.9)])
    wrong = (rng.random(800) < error).astype(float)
    wrong[rng.random(800) < missing] = np.nan
    actual = recoveries(wrong, [Drift(300), Drift(700, 20)], 50)
    assert actual[0] == pytest.approx(naive_recovery(wrong.tolist(), 300, 700, 50))
    assert actual[1] == pytest.approx(naive_recovery(wrong.tolist(), 700, 800, 50))
    assert [one["recovered"] for one in actual] == [True, False]
    assert actual[1]["rows"] == 100  # all there are


def test_what_cannot_have_recovered():
    wrong = np.array([np.nan, np.nan, 0.0, 0.0])
    unknown = dict.fromkeys(("before", "rows", "recovered", "excess"))
    assert recoveries(wrong, [Drift(2)], 2) == [{"row": 2, **unknown}]
    # Fewer rows than the width.
    assert recoveries(wrong, [Drift(3)], 2)[0] | {"excess": 0} == {
        "row": 3,
        "before": 0.0,
        "rows": 1,
        "recovered": False,
        "excess": 0,
    }


def test_recovery_is_the_mean_over_drifts_those_without_one_included():
    drifts = [
        {"row": 10, "before": None, "rows": None, "recovered": None, "excess": None},
        {"row": 100, "before": 0.1, "rows": 40, "recovered": True, "excess": 3.0},
        {"row": 200, "before": 0.1, "rows": 60, "recovered": True, "excess": 4.0},
        {"row": 300, "before": 0.1, "rows": 500, "recovered": False, "excess": 99.0},
    ]
    shared = {"stream": "s", "seed": None, "fold": None, "windows": [], "error": 0.2}
    shared |= {"rows": 5, "unpredicted": 0, "blind": 0, "mistakes": 1}
    records = [shared | {"model": name, "drifts_met": drifts} for name in ("it", "no change")]
    row, idle = run_rows(records)
    assert (row["recovery"], row["unrecovered"]) == (200.0, 1)
    assert (idle["recovery"], idle["unrecovered"]) == (None, None)


def test_recoveries_by_hand():
    """Behind a drift that nothing came before, and from fewer rows than the width."""
    wrong = np.array([np.nan, np.nan, 0.0, 0.0, 1.0, 0.0, 0.0])
    _, second = recoveries(wrong, [Drift(2), Drift(4)], 2)
    assert second == {"row": 4, "before": 0.0, "rows": 3, "recovered": True, "excess": 1.0}
    [only] = recoveries(np.array([1.0, 0.0, 1.0, 1.0]), [Drift(2)], 3)
    assert only == {"row": 2, "before": 0.5, "rows": 2, "recovered": False, "excess": 1.0}


@pytest.mark.parametrize("forks", FORKS)
def test_forks(forks):
    roles = forks_of(2000, 4, forks)
    tested = np.array([fork.tested for fork in roles])
    learnt = np.array([fork.learnt for fork in roles])
    assert not (tested & (learnt > 0)).any()
    if forks == "cross":
        assert (tested.sum(axis=0) == 1).all()
        assert (learnt.sum(axis=0) == 3).all()
    elif forks == "split":
        assert (tested.sum(axis=0) == 3).all()
        assert (learnt.sum(axis=0) == 1).all()
    else:
        assert (tested == (learnt == 0)).all()
        assert tested.mean() == pytest.approx(math.exp(-1), abs=0.02)
        assert learnt.mean() == pytest.approx(1, abs=0.05)
    assert forks_of(2000, 1, forks) == [None]


@pytest.mark.parametrize("forks", FORKS)
def test_folds_are_those_of_a_plain_loop(forks):
    runs = compare({"LBP": LBP(budget=9)}, PHISHING, folds=3, forks=forks, jobs=1)["runs"]
    for fold, fork in enumerate(forks_of(200, 3, forks)):
        model, mistakes, rows = LBP(budget=9), 0, 0
        for i, (x, y) in enumerate(PHISHING):
            if fork.tested[i] and fork.learnt[:i].any():
                rows += 1
                mistakes += model.predict_one(x) != y
            for _ in range(fork.learnt[i]):
                model.learn_one(x, y)
        row = runs[(runs["model"] == "LBP") & (runs["fold"] == fold)].iloc[0]
        assert (row["mistakes"], row["rows"]) == (mistakes, rows)


def test_windows_and_kappas_are_those_of_a_plain_loop():
    results = compare([naive_bayes.GaussianNB()], PHISHING, windows=4, jobs=1)
    model, wrong, last = naive_bayes.GaussianNB(), [], []
    counts, majority, before = {}, [], None
    truth, chances = [y for _, y in PHISHING], []
    for x, y in PHISHING:
        chances.append(model.predict_proba_one(x).get(True, 0.0))
        wrong.append(model.predict_one(x) != y if model.predict_one(x) is not None else None)
        last.append(before != y if before is not None else None)
        majority.append(max(counts, key=counts.get) != y if counts else None)
        model.learn_one(x, y)
        counts[y] = counts.get(y, 0) + 1
        before = y

    def error(flags):
        known = [flag for flag in flags if flag is not None]
        return sum(known) / len(known)

    windows = results["windows"].query("model == 'GaussianNB'")
    assert windows["start"].tolist() == [0, 50, 100, 150]
    for _, window in windows.iterrows():
        part = slice(window["start"], window["stop"])
        assert window["error"] == pytest.approx(error(wrong[part]))
        assert window["kappa_temporal"] == pytest.approx(1 - error(wrong[part]) / error(last[part]))
        assert window["kappa_m"] == pytest.approx(1 - error(wrong[part]) / error(majority[part]))
    run = results["runs"].iloc[0]
    assert run["kappa_temporal"] == pytest.approx(1 - error(wrong) / error(last))
    assert run["kappa_m"] == pytest.approx(1 - error(wrong) / error(majority))
    assert (run["rows"], run["unpredicted"]) == (199, 0)
    assert run["auc"] == pytest.approx(roc_auc_score(truth[1:], chances[1:]))
    assert run["average_precision"] == pytest.approx(
        average_precision_score(truth[1:], chances[1:])
    )
    f1 = metrics.MacroF1()
    model = naive_bayes.GaussianNB()
    for x, y in PHISHING:
        if (label := model.predict_one(x)) is not None:
            f1.update(y, label)
        model.learn_one(x, y)
    assert run["f1"] == pytest.approx(f1.get())


def test_pooled_measures_do_not_depend_on_windows():
    first, *others = (
        compare([naive_bayes.GaussianNB()], PHISHING, windows=windows, jobs=1)
        for windows in (1, 7, 50)
    )
    for other in others:
        for one, two in zip(first.rows("runs"), other.rows("runs"), strict=True):
            assert {k: v for k, v in one.items() if k not in COSTS} == {
                k: v for k, v in two.items() if k not in COSTS
            }


def runs_of(errors):
    """Rows of runs from errors by model and stream."""
    return [
        {"model": model, "stream": i, "fold": None, "status": "ok", "error": error}
        for model, values in errors.items()
        for i, error in enumerate(values)
    ]


def test_tests_by_hand():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.1, 0.4, 8)
    gaps = np.array([0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10])
    signs = np.array([1, -1] * 4)
    errors = {"good": base, "bad": base + gaps, "same": base + 0.0001 * gaps * signs}
    actual = {(row["model"], row["other"]): row for row in pairs_of(runs_of(errors))}
    row = actual["good", "bad"]
    assert (row["n"], row["wins"], row["losses"], row["ties"]) == (8, 8, 0, 0)
    assert row["unit"] == "stream"
    assert row["median_difference"] == pytest.approx(-0.065)
    # All of eight differences have one sign: 2 of 2^8 ways to draw the signs are so far out.
    assert row["wilcoxon"] == pytest.approx(2 / 2**8)
    assert row["p_better"] > 0.99
    assert actual["good", "same"]["p_equivalent"] > 0.99
    assert actual["bad", "same"]["p_worse"] > 0.99
    pvalues = [row["wilcoxon"] for row in actual.values()]
    assert [row["holm"] for row in actual.values()] == pytest.approx(naive_holm(pvalues))


def test_a_tie_leaves_the_test_exact():
    ours = [0.1 + 0.001 * i for i in range(16)]
    theirs = [error + 0.01 + 0.001 * i for i, error in enumerate(ours)]
    (row,) = pairs_of(runs_of({"ours": [*ours, 0.3], "theirs": [*theirs, 0.3]}))
    assert (row["n"], row["wins"], row["losses"], row["ties"]) == (17, 16, 0, 1)
    # The tie has no sign: 2 of 2^16 ways to draw the others are so far out.
    assert row["wilcoxon"] == pytest.approx(2 / 2**16)


def naive_holm(pvalues):
    order = sorted(pvalues)
    steps = [min(1.0, (len(order) - i) * p) for i, p in enumerate(order)]
    return [max(steps[: order.index(p) + 1]) for p in pvalues]


def test_holm_is_that_of_the_twin():
    rng = np.random.default_rng(2)
    for n in (1, 2, 9):
        pvalues = (rng.random(n) ** 3).tolist()
        assert holm(pvalues) == pytest.approx(naive_holm(pvalues))
    assert holm([]) == []


def test_what_ended_badly_is_not_tested():
    rows = runs_of({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.3, 0.4], "c": [0.2, 0.2, 0.2]})
    rows[0]["status"] = "time limit"
    actual = {(row["model"], row["other"]): row["n"] for row in pairs_of(rows)}
    assert actual == {("a", "b"): 2, ("a", "c"): 2, ("b", "c"): 3}
    assert pairs_of(rows[:1] + rows[3:4]) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory, without_rendering):
    path = tmp_path_factory.mktemp("comparison")
    streams = {
        "one": Stream(PHISHING, drifts=[100]),
        "two": [(x, not y) for x, y in PHISHING[:120]],
    }
    models = [LBP(budget=9), linear_model.PAClassifier()]
    settings = dict(windows=3, predictions=True, shuffled=20, jobs=1)
    with without_rendering():
        return path, compare(models, streams, output=path, **settings)


def test_the_folder(folder):
    path, results = folder
    assert results.folder == path
    for name in ("runs", "windows", "drifts", "recoveries", "tests", "table"):
        frame = results[name]
        assert frame.equals(pd.read_parquet(path / f"{name}.parquet").astype(frame.dtypes)), name
        assert len(pd.read_csv(path / f"{name}.csv")) == len(frame)
    assert sorted(one.name for one in path.glob("*.svg")) == ["cost.svg", "ranks.svg"]
    assert json.loads((path / "manifest.json").read_text())["parameters"]["windows"] == 3
    assert results["drifts"].to_numpy().tolist() == [["one", 100, 1]]


def test_baselines_have_nothing_to_recover(folder):
    _, results = folder
    assert set(results["recoveries"]["model"]) == {"LBP", "PAClassifier"}
    idle = results["runs"]["model"].isin(["no change", "majority"])
    assert results["runs"].loc[idle, ["recovery", "unrecovered"]].isna().all(axis=None)
    assert results["runs"].loc[~idle, "unrecovered"].notna().all()


def test_predictions_are_kept(folder):
    path, results = folder
    for record in results.records:
        rows = pd.read_csv(path / "predictions" / f"{record['key']}.csv")
        known = rows.dropna(subset="prediction")
        assert (known["truth"].astype(str) != known["prediction"].astype(str)).sum() == (
            record["mistakes"]
        )
        assert len(rows) == record["rows"]


def test_values_as_tables_have_them():
    shown = [MEASURES["error"].text(0.1234), MEASURES["kappa"].text(-0.0004)]
    assert [*shown, COSTS["memory"].text(1_500_000), RECOVERY.text(1234.4)] == [
        *("12.34", "0.000"),
        *("1.50", "1,234"),
    ]
    assert MEASURES["auc"].text(None) == ""


def test_the_table_has_the_best_first(folder):
    _, results = folder
    console = Console(width=160)
    with console.capture() as shown:
        console.print(results)
    assert all(name in shown.get() for name in ("LBP", "PAClassifier", "no change", "majority"))
    assert list(results["table"]["stream"].unique()) == [
        "one",
        "two",
        "one, shuffled",
        "two, shuffled",
    ]
    best = results["table"].groupby("stream")["error"]
    assert (best.first() == best.min()).all()
    counted = {(row["model"], row["other"]): row["n"] for _, row in results["tests"].iterrows()}
    assert set(counted) == set(combinations(["LBP", "PAClassifier", "no change", "majority"], 2))
    assert set(counted.values()) == {2}  # the shuffled copies are no streams of their own


def test_costs_are_geometric_means_over_the_streams():
    """Of 0.5 and 2 us, and of 1 and 100 bytes; a time of 0 counts as a nanosecond."""
    shared = {"status": "ok", "error": 0.1}
    rows = [
        {"model": "it", "stream": "a", "microseconds": 0.5, "memory": 1, **shared},
        {"model": "it", "stream": "b", "microseconds": 2.0, "memory": 100, **shared},
        {"model": "idle", "stream": "a", "microseconds": 0.0, "memory": 1, **shared},
        {"model": "idle", "stream": "b", "microseconds": 0.1, "memory": 1, **shared},
        {"model": "half", "stream": "a", "microseconds": 1.0, "memory": 1, **shared},
    ]
    it, idle = costs(rows, ["a", "b"])
    assert (it["microseconds"], it["memory"]) == pytest.approx((1.0, 10.0))
    assert idle["microseconds"] == pytest.approx(0.01)


@pytest.mark.parametrize(("n", "few"), [(29, True), (30, False)])
def test_a_fold_of_few_rows_is_told(n, few):
    shared = {"stream": "a", "status": "ok", "blind": 0, "unpredicted": 0, "message": ""}
    rows = [{"model": "it", "fold": fold, "rows": n + fold, **shared} for fold in (0, 1)]
    assert ("tested on 29 rows" in " ".join(remarks(rows))) == few
