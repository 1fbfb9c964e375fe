"""River's own questions, answers and metrics are the oracle: the same mistakes, delays included."""

import csv
import datetime as dt
import math
import sys
import time
from collections import deque
from contextlib import contextmanager
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from river import (
    base,
    datasets,
    dummy,
    ensemble,
    evaluate,
    forest,
    linear_model,
    metrics,
    naive_bayes,
    neighbors,
    optim,
    preprocessing,
    tree,
)
from river.drift import ADWIN
from river.stream import simulate_qa
from scipy import stats

from drift.errors import MissingExtraError, ParameterError
from drift.experiments import Contender, compare
from drift.experiments.comparison import evaluation, experiment, meter
from drift.experiments.comparison.identity import identity_of
from drift.experiments.comparison.measures import measure
from drift.experiments.comparison.predictions import Predictions
from drift.experiments.comparison.protocol import order_of
from drift.experiments.comparison.tables import remarks
from drift.experiments.rivals import Retrained, retrained
from drift.kernels import Linear
from drift.models import LBP, RBP, PassiveAggressive, Perceptron, Threshold, Tracker
from drift.streams import Stream
from drift.streams.tables import read_stream

PHISHING = list(islice(datasets.Phishing(), 150))
MODELS = {
    "LBP": LBP(budget=20),
    "Tracker": Tracker(budget=20, seed=0),
    "scaled": preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    "tree": tree.HoeffdingAdaptiveTreeClassifier(grace_period=20, seed=0),
    "forest": forest.ARFClassifier(n_models=2, seed=0),
    "bayes": naive_bayes.GaussianNB(),
    "neighbours": neighbors.KNNClassifier(3),
    "passive": linear_model.PAClassifier(),  # has no probabilities
    "bagging": ensemble.BaggingClassifier(linear_model.Perceptron(), n_models=2, seed=0),
    "no change": dummy.NoChangeClassifier(),
    "majority": dummy.PriorClassifier(),
}


def theirs(model, stream, *, first=False, moment=None, delay=None):
    """Mistakes, predictions that count and measures, as River says.

    Rows count if predicted after a label was learnt; with `first` all do. A Tracker is told
    that labels come late, if they do. A delay is no feature.
    """
    result = metrics.Accuracy() + metrics.CohenKappa() + metrics.BalancedAccuracy()
    options = {"late": True} if isinstance(model, Tracker) and delay is not None else None
    model, counts, asked = model.clone(options), first, {}
    for i, features, y in simulate_qa(iter(stream), moment, delay):
        x = {name: value for name, value in features.items() if name != delay}
        more = {"ticket": i} if options else {}
        if y is None:
            prediction = model.predict_one(x, **more)
            asked[i] = prediction if counts else None
            continue
        if (prediction := asked.pop(i)) is not None:
            result.update(y, prediction)
        model.learn_one(x, y, **more)
        counts = True
    accuracy, kappa, balanced = result
    counted = accuracy.cm.total_weight
    return round(counted * (1 - accuracy.get())), counted, kappa.get(), balanced.get()


def moment(x):
    return round(10 * sum(x.values()))


#: For delays that are others only in how they are given; the last two stand beside any models.
FEW = {
    name: MODELS[name] for name in ("LBP", "Tracker", "tree", "passive", "no change", "majority")
}
DELAYS = {
    "none": {},
    "0": {"delay": 0},
    "1": {"delay": 1},
    "50": {"delay": 50},
    "beyond the end": {"delay": 1000},
    "feature": {"delay": "age_of_domain"},
    "function": {"delay": lambda x, y: 5 + 30 * y},
    "moments": {"moment": moment, "delay": 4},
}


@pytest.mark.parametrize("protocol", [{}, {"delay": 50}])
def test_the_oracle_is_rivers_own_evaluation_except_for_the_rows_before_a_label(protocol):
    for model in (MODELS["scaled"], MODELS["tree"], MODELS["no change"]):
        accuracy = evaluate.progressive_val_score(
            PHISHING, model.clone(), metrics.Accuracy(), **protocol
        )
        mistakes, counted, *_ = theirs(model, PHISHING, first=True, **protocol)
        assert counted == accuracy.cm.total_weight
        assert mistakes == pytest.approx(counted * (1 - accuracy.get()))


@pytest.mark.filterwarnings("ignore:stream. sorted by the moment")
@pytest.mark.parametrize("protocol", DELAYS.values(), ids=DELAYS)
def test_mistakes_are_those_of_river(protocol):
    models = MODELS if protocol in (DELAYS["none"], DELAYS["50"]) else FEW
    runs = compare(models, PHISHING, jobs=1, windows=3, **protocol)["runs"]
    stream = (
        sorted(PHISHING, key=lambda pair: moment(pair[0])) if "moment" in protocol else PHISHING
    )
    for _, run in runs.iterrows():
        blind = run["blind"]  # those count for no model that River asks
        actual = run["mistakes"] - blind, run["rows"] - run["unpredicted"] - blind, run["kappa"]
        expected = theirs(models[run["model"]], stream, **protocol)
        if not expected[1]:
            assert (run["rows"], run["status"]) == (0, "no label in time")
            continue
        assert run["rows"] == len(PHISHING) - 1  # the same for every delay
        assert (*actual, run["balanced_accuracy"]) == pytest.approx(expected), run["model"]
        assert run["status"] == "ok"


class _Hashed(str):
    """A label whose hash, and so its place in sets, is chosen."""

    __slots__ = ("hash",)

    def __new__(cls, text, number):
        made = super().__new__(cls, text)
        made.hash = number
        return made

    def __hash__(self):
        return self.hash


def test_the_order_of_labels_in_sets_changes_no_bit():
    rng = np.random.default_rng(4)
    truth, predicted = rng.integers(7, size=(2, 500)).tolist()
    predicted = [y if rng.random() < 0.5 else p for y, p in zip(truth, predicted, strict=True)]
    actual = []
    for order in (range(7), [6, 2, 5, 0, 3, 1, 4], range(7, 0, -1)):
        labels = [_Hashed(text, number) for text, number in zip("abcdefg", order, strict=True)]
        made = Predictions([labels[i] for i in truth])
        for row, number in enumerate(predicted):
            made.put(row, labels[number], None)
        actual.append(measure(made.outcome(0, 500)))
    assert actual[0] == actual[1] == actual[2]


@pytest.mark.parametrize(
    ("model", "protocol", "message"),
    [
        (Tracker(5), {"delay": 3}, "late=True"),
        (Contender(Tracker, {"budget": 5}), {"delay": 3}, "late=True"),
        (lambda: Tracker(5), {"delay": 0}, "late=True"),
        (Tracker(5), {}, "late=None"),
        (Tracker(5, late=True), {}, "late=True"),
        (Tracker(5, late=False), {"delay": 3}, "late=False"),
        (Tracker(5), {"delay": 3, "folds": 2}, "late=None"),
        (preprocessing.StandardScaler() | Tracker(5), {"delay": 3}, "late=True"),
        (Threshold(preprocessing.StandardScaler() | Tracker(5)), {"delay": 3}, "late=True"),
    ],
)
def test_a_tracker_gets_late_labels_set_and_the_report_says_so(model, protocol, message):
    results = compare({"it": model}, PHISHING[:30], jobs=1, windows=1, **protocol)
    assert message in results.settings["models"]["it"]
    assert set(results["runs"]["status"]) == {"ok"}


def test_a_tracker_inside_adwin_does_not_get_late_set():
    assert Contender(Tracker(5), late=True).make().late is True
    assert Contender(Tracker(5), adwin=True, late=True).make().model.late is None


def test_a_model_starts_afresh_where_adwin_finds_a_change():
    # A label that never changes, and then one that nobody can predict.
    y = np.arange(2_000) >= 1_000
    y &= np.random.default_rng(0).random(2_000) < 0.5
    one = Contender(Perceptron(Linear()), adwin=True)
    stream = [({"a": 1.0}, label) for label in y.tolist()]
    runs = compare({"one": one}, stream, jobs=1, windows=1)["runs"]
    model, detector, mistakes, resets = Perceptron(Linear()), ADWIN(), 0, 0
    for label in y.tolist():
        wrong = model.predict_one({"a": 1.0}) != label
        mistakes += wrong
        detector.update(wrong)
        if detector.drift_detected:
            model, resets = Perceptron(Linear()), resets + 1
        model.learn_one({"a": 1.0}, label)
    assert resets > 0
    assert (
        runs.set_index("model")["mistakes"]["one"] == mistakes
    )  # the first, which does not count, is right


def test_each_label_finds_the_prediction_of_its_example_among_texts_too():
    pairs = [({**x, "town": "abc"[i % 3]}, y) for i, (x, y) in enumerate(PHISHING[:40])]
    stream = read_stream(pairs)
    model = Contender(Tracker(5)).on(stream, late=True).make()
    *before, tracker = model.steps.values()
    assert before
    order = order_of(stream, 7).tolist()
    for i in order[:-7]:
        x, y = pairs[max(i, ~i)]
        model.predict_one(x) if i >= 0 else model.learn_one(x, y)
    assert len(tracker._core.tickets) == 7


def test_a_drawn_delay_is_the_same_for_all_and_rivers():
    law = stats.geom(0.05)
    drawn = iter(law.rvs(size=len(PHISHING), random_state=0).tolist())
    expected = theirs(LBP(budget=20), PHISHING, delay=lambda x, y: next(drawn))
    runs = compare({"a": LBP(budget=20), "b": lambda: LBP(budget=20)}, PHISHING, delay=law, jobs=1)[
        "runs"
    ]
    assert (runs["mistakes"] - runs["blind"])[:2].tolist() == [expected[0]] * 2
    assert runs["delay"][0] == "geom(0.05)"


def test_time_as_a_feature_may_be_the_moment():
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    stream = [(x | {"at": start + dt.timedelta(hours=i)}, y) for i, (x, y) in enumerate(PHISHING)]
    model = preprocessing.StandardScaler() | naive_bayes.GaussianNB()
    model = (lambda x: {k: v for k, v in x.items() if k != "at"}) | model
    protocol = {"moment": "at", "delay": dt.timedelta(days=1)}
    runs = compare({"one": model}, stream, jobs=1, **protocol)["runs"]
    assert runs["mistakes"][0] - 23 == theirs(model, stream, **protocol)[0]  # of the first day


def test_models_stay_as_they_were_given():
    model = Perceptron()
    model.learn_one({"a": 1.0}, True)
    runs = compare(model, PHISHING, jobs=1)["runs"]
    assert model.n_supports == 1
    assert runs["mistakes"][0] == theirs(Perceptron(), PHISHING)[0]


def test_seeds_are_those_of_what_draws():
    models = {
        "given": forest.ARFClassifier(n_models=2, seed=7),
        "open": forest.ARFClassifier(n_models=2),
        "part": ensemble.VotingClassifier([LBP(), forest.ARFClassifier(n_models=2)]),
        "none": naive_bayes.GaussianNB(),
    }
    runs = compare(models, PHISHING[:60], jobs=1)["runs"]
    assert runs["seed"].isna().all()
    expected = [
        theirs(forest.ARFClassifier(n_models=2, seed=seed), PHISHING[:60])[0] for seed in (7, 0)
    ]
    assert runs["mistakes"][:2].tolist() == expected
    runs = compare(models, PHISHING[:60], seeds=2, jobs=1)["runs"]
    counted = runs.groupby("model", sort=False)["seed"].apply(lambda seeds: seeds.dropna().tolist())
    assert counted[["given", "open", "part", "none"]].tolist() == [[0, 1]] * 3 + [[]]


def test_a_run_that_takes_too_long_or_fails_is_recorded_as_such():
    class Slow(dummy.NoChangeClassifier):
        def learn_one(self, x, y):
            while True:
                super().learn_one(x, y)
                self.seen = getattr(self, "seen", 0) + 1
                if self.seen % 100_000:
                    break

    class Failing(dummy.NoChangeClassifier):
        def learn_one(self, x, y):
            raise KeyError("what\nit was")

    runs = compare({"slow": Slow, "bad": Failing}, PHISHING, time_limit=0.0, jobs=1)["runs"]
    assert runs["status"].tolist() == ["time limit"] * 4
    runs = compare({"bad": Failing}, PHISHING, jobs=1)["runs"]
    assert runs["status"].tolist() == ["failed", "ok", "ok"]
    assert runs["message"][0] == "KeyError: 'what\\nit was'"
    assert runs["rows"].tolist() == [0, 149, 149]


class Says(base.Classifier):
    """A model that gives the same answer to every row."""

    def __init__(self, label, shares=None):
        self.label, self.shares = label, shares

    def learn_one(self, x, y):
        pass

    def predict_one(self, x):
        return self.label

    def predict_proba_one(self, x):
        return self.shares or {}


@pytest.mark.parametrize(
    ("model", "status", "error", "remark"),
    [
        (Says("True"), "ok", 1,
         "model on stream: 9 of 9 predictions are no label of a row, such as 'True'"),
        (Says(math.nan), "ok", None,
         "no prediction for 9 of 9 rows, which no measure counts: model"),
        (Says(True, {True: 1.0000001}), "ok", 4 / 9, None),
        (Says(True, {True: 70, False: 30}), "failed", None,
         "model on stream: failed (ValueError: the probability of True is 70, not 0 to 1)"),
        (Says(True, {True: -2.0, False: -3.0}), "failed", None,
         "model on stream: failed (ValueError: the probability of True is -2, not 0 to 1)"),
    ],
)  # fmt: skip
def test_answers_that_cannot_be_right_are_told(model, status, error, remark):
    results = compare({"model": model}, [({"a": 1}, i % 2 == 1) for i in range(10)], jobs=1)
    [run] = [row for row in results.rows("runs") if row["model"] == "model"]
    assert (run["status"], run["error"]) == (status, error)
    assert list(remarks(results.rows("runs"))) == ([] if remark is None else [remark])


@pytest.mark.parametrize("delay", [None, 4])
def test_predictions_before_the_first_label_are_not_told(delay):
    """drift's binary models say False then, whatever the labels."""
    stream = [({"a": 1.0}, "no" if i % 2 else "yes") for i in range(10)]
    results = compare({"model": PassiveAggressive()}, stream, delay=delay, jobs=1)
    assert {run["message"] for run in results.rows("runs")} == {""}


def edited(answer, helper=lambda x: x):
    """Return a model's class, as its author may edit it and run again under the same name."""

    class Base(dummy.NoChangeClassifier):
        def predict_one(self, x):
            return next(helper(answer) for _ in x)

    class Mine(Base):
        pass

    return Mine


@pytest.mark.usefixtures("undrawn")
def test_a_model_whose_code_has_changed_runs_again(tmp_path):
    def mistakes(model):
        return compare({"mine": model}, PHISHING, output=tmp_path, jobs=1)["runs"]["mistakes"][0]

    true = sum(y for _, y in PHISHING[1:])
    assert mistakes(edited(False)()) == true
    assert mistakes(edited(False)()) == true
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 3
    assert mistakes(edited(True)()) == len(PHISHING) - 1 - true
    assert mistakes(edited(True, lambda x: not x)()) == true
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 5


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("of_class", [False, True])
def test_a_contender_that_was_changed_runs_again(tmp_path, of_class):
    parameters = {"label": False}
    model = Says if of_class else Says(**parameters)
    contender = Contender(model, parameters if of_class else {})

    def run(**where):
        return compare({"says": contender}, PHISHING, jobs=1, **where)

    true = sum(y for _, y in PHISHING[1:])
    first = run(output=tmp_path)
    assert first["runs"]["mistakes"][0] == true
    if of_class:
        parameters["label"] = True
    else:
        model.label = True
    again = run(output=tmp_path)
    assert again["runs"]["mistakes"][0] == len(PHISHING) - 1 - true
    assert "label=True" in again.settings["models"]["says"]
    assert first.records[0]["key"] != again.records[0]["key"] == run().records[0]["key"]


CELL = """
def answer(x):
    return round(RATE * len(x)) > 4

class Mine(dummy.NoChangeClassifier):
    rate = RATE

    @property
    def times(self):
        return TIMES

    def predict_one(self, x):
        return answer(x)
"""


@pytest.mark.parametrize("module", ["notebook", "drift.experiments.rivals.mine", "drift.features"])
def test_helpers_attributes_and_properties_are_in_a_models_identity(module):
    def identity(rate, times):
        cell = {"dummy": dummy, "__name__": module}
        exec(CELL.replace("RATE", rate).replace("TIMES", times), cell)  # noqa: S102
        return Contender(cell["Mine"]()).traits().identity

    assert identity("0.5", "1") == identity("0.5", "1")
    assert len({identity(rate, times) for rate in ("0.5", "0.25") for times in "12"}) == 4


CONSTANTS = """
EARLY = {10, SIZE}
NAMES = {"a": ["x", SIZE]}
LIMITS = (SIZE, None)

class Mine(dummy.NoChangeClassifier):
    _own = OWN

    def predict_one(self, x, *, key=KEY):
        return USED
"""


@pytest.mark.parametrize(
    ("place", "used"),
    [("USED", "10 in EARLY"), ("USED", "NAMES['a']"), ("USED", "LIMITS"),
     ("USED", "max(i in LIMITS for i in x)"), ("USED", "(lambda: EARLY)()"),
     ("OWN", "SIZE"), ("KEY", "SIZE")],
)  # fmt: skip
def test_constants_beside_a_model_and_in_it_are_in_its_identity(place, used):
    def identity(size):
        cell = {"dummy": dummy, "__name__": "notebook", "USED": 0, "OWN": 0, "KEY": 0}
        exec(CONSTANTS.replace(place, used).replace("SIZE", size), cell)  # noqa: S102
        return Contender(cell["Mine"]()).traits().identity

    assert identity("7") == identity("7")
    assert len({identity(size) for size in ("7", "8", "None")}) == 3


def test_a_variable_that_has_the_name_of_an_attribute_is_not_in_an_identity():
    cell = {"dummy": dummy, "__name__": "notebook", "OWN": 0, "KEY": 0}
    exec(CONSTANTS.replace("USED", "self.budget").replace("SIZE", "7"), cell)  # noqa: S102
    before = Contender(cell["Mine"]()).traits().identity
    cell["budget"] = 10
    assert Contender(cell["Mine"]()).traits().identity == before


class Unit:
    """What is pickled by its name."""

    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return self.name


@pytest.mark.parametrize(
    ("make", "value", "other"),
    [
        (Unit, "seconds", "second"),
        (deque, (1, 2), (1, 3)),  # whose items are neither its arguments nor its state
        (lambda n: SimpleNamespace(a=n), 1, 2),
    ],
)
def test_a_parameter_of_any_class_is_in_an_identity(make, value, other):
    def identity(value):
        return identity_of(optim.SGD(make(value)))

    assert identity(value) == identity(value) != identity(other)


class Wrapping(dummy.NoChangeClassifier):
    """A class of the user's whose code, and not its parameters, has one of drift's models."""

    def __init__(self):
        self.inner = LBP(9)


@pytest.mark.parametrize(
    ("model", "same"),
    [
        (LBP(9), False),
        (preprocessing.StandardScaler() | LBP(9), False),
        (Wrapping(), False),
        (linear_model.LogisticRegression(), True),
        (Retrained(), True),
    ],
)
def test_a_run_is_computed_again_if_the_code_of_its_model_changed(monkeypatch, model, same):
    def keys():
        results = compare({"it": model}, PHISHING, rows=30, jobs=1)
        return [record["key"] for record in results.records if record["model"] == "it"]

    before = keys()
    monkeypatch.setattr(experiment, "models_code", lambda: "mended")
    assert (keys() == before) == same


@pytest.mark.parametrize("constant", ["_EARLY", "_CATEGORIES"])
def test_a_rivals_constants_are_in_its_identity(monkeypatch, constant):
    before = Contender(Retrained()).traits().identity
    monkeypatch.setattr(retrained, constant, 7)
    assert Contender(Retrained()).traits().identity != before


@pytest.mark.usefixtures("undrawn")
def test_more_seeds_run_only_what_is_new(tmp_path):
    def run(**settings):
        compare({"rbp": RBP(5)}, PHISHING[:60], output=tmp_path, jobs=1, **settings)
        return len((tmp_path / "runs.jsonl").read_text().splitlines())

    assert [run(seeds=2), run(seeds=3), run(seeds=3, forks="bootstrap")] == [4, 5, 5]


def test_a_model_of_ones_own_does_not_take_the_place_of_a_baseline():
    with pytest.raises(ParameterError, match="'majority' is the baseline that runs beside yours"):
        compare({"majority": LBP(5)}, PHISHING, jobs=1)


@pytest.mark.parametrize("windows", [1, 3])
def test_time_is_that_of_the_rows_that_were_taken(windows, monkeypatch):
    class Failing(dummy.NoChangeClassifier):
        def learn_one(self, x, y):
            self.seen = getattr(self, "seen", 0) + 1
            if self.seen == 20:
                raise ValueError

    @contextmanager
    def window(self, number):
        try:
            yield
        finally:
            self.seconds[number] = 2.00001

    monkeypatch.setattr(meter.Meter, "window", window)
    [row, *_] = compare({"bad": Failing}, PHISHING, windows=windows, jobs=1).rows("runs")
    assert row["microseconds"] == pytest.approx(100_000.5, abs=0.01)


def test_failed_runs_are_listed_after_the_others(monkeypatch):
    spent = 0.0

    class Slow(dummy.NoChangeClassifier):
        def learn_one(self, x, y):
            nonlocal spent
            self.seen = getattr(self, "seen", 0) + 1
            spent += self.seen > 1  # a second

        def predict_one(self, x):
            return PHISHING[0][1]

    clocks = SimpleNamespace(
        perf_counter=lambda: time.perf_counter() + spent,
        process_time=lambda: time.process_time() + spent,
    )
    for module in (evaluation, meter):
        monkeypatch.setattr(module, "time", clocks)
    table = compare({"slow": Slow}, PHISHING, time_limit="0.5s", jobs=1)["table"]
    assert table["status"].tolist() == ["ok", "ok", "time limit"]
    assert table["error"].tolist()[-1] == 0.0  # of one row


@pytest.mark.usefixtures("unrendered")
def test_a_shuffled_copy_is_no_other_stream():
    alone = compare(naive_bayes.GaussianNB(), PHISHING, folds=2, jobs=1)
    both = compare(naive_bayes.GaussianNB(), PHISHING, folds=2, shuffled=10, jobs=1)
    assert len(both.rows("runs")) == 2 * len(alone.rows("runs"))
    assert both.rows("tests") == alone.rows("tests")
    assert {row["unit"] for row in both.rows("tests")} == {"fold"}
    assert compare(naive_bayes.GaussianNB(), PHISHING, shuffled=10, jobs=1).rows("tests") == []
    for name in ("cost", "ranks"):
        drawn = [one.plot(name).get_axes()[0].get_ylim() for one in (alone, both)]
        assert drawn[0] == drawn[1]


def test_folds_of_few_rows_are_named():
    """Each of 50 rows is tested once, and the first never counts: one fold has 24 or fewer."""
    results = compare(naive_bayes.GaussianNB(), PHISHING[:50], folds=2, jobs=1)
    few = min(row["rows"] for row in results.rows("runs"))
    assert few <= 24
    [remark] = remarks(results.rows("runs"))
    assert remark.startswith(f"stream: a fold is tested on {few} rows: errors of so few are chance")
    assert not list(remarks(compare(LBP(budget=3), PHISHING, folds=2, jobs=1).rows("runs")))


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ({}, {}, "models is empty"),
        ({"a": 3}, {}, "3 is not a classifier"),
        ({"a": "LBP"}, {}, r"'LBP' is not a classifier: .*drift\.models\.LBP\(\)"),
        ({"a": preprocessing.StandardScaler()}, {}, "not a classifier"),
        ({"a": linear_model.LinearRegression()}, {}, "^a LinearRegression is not a classifier"),
        ({"a": Contender(LBP(), {"budget": 2})}, {}, "has its parameters"),
        ({"a": Threshold}, {}, "Threshold cannot be called with nothing .*'model'.*Contender"),
        ({"a": Contender(LBP, {"budgt": 2})}, {}, r"LBP cannot be called with \['budgt'\]"),
        (LBP(), {"delay": -1}, "delay must be at least 0"),
        (LBP(), {"delay": stats.geom(p=2)}, r"no delay can be drawn from geom\(p=2\)"),
        (LBP(), {"delay": "nowhere"}, "without 'nowhere': give a delay"),
        (LBP(), {"delay": dt.timedelta(1)}, "is a span of time, and stream has no moments"),
        (LBP(), {"delay": "2 days"}, "is a span of time, and stream has no moments"),
        (LBP(), {"delay": stats.norm()}, "delay must be at least 0 and finite"),
        (LBP(), {"delay": lambda x, y: -1}, "delay of example 0 must be 0 or more"),
        (LBP(), {"delay": lambda x, y: "soon"}, "the delay of example 0 is 'soon'"),
        (LBP(), {"delay": lambda x, y: 10**400}, "the delay of example 0 is 1000"),
        (LBP(), {"moment": "when"}, "without 'when': give a moment that every example has"),
        (LBP(), {"moment": lambda x: math.nan}, "moment of example 0 must be a finite number"),
        (LBP(), {"target": "y", "drop": ["zz"]}, "stream has no columns.*cannot use target, drop"),
        (LBP(), {"folds": 2, "forks": "x"}, "no forks 'x'"),
        (LBP(), {"folds": 300}, r"29\d of 300 folds of 10 rows are tested on no row.*fewer"),
        (LBP(), {"folds": 300, "forks": "split"}, r"29\d of 300 folds.*, or learn none: ask for"),
        (LBP(), {"drifts": [0]}, "has 10 examples: a drift starts after the first"),
        (LBP(), {"drifts": 5}, "drifts must be a list of rows or of .row, width., not 5"),
        (LBP(), {"drifts": [(5, 2, 1)]}, r"must be a list of rows .* not \[\(5, 2, 1\)\]"),
        (LBP(), {"drifts": [(5, 0.5)]}, "drifts must be an integer of at least 0, not 0.5"),
        (LBP(), {"delay": True}, "delay True is no time"),
        ({1: LBP(), "1": RBP()}, {}, "two models have one name, as text: .1, '1'."),
        (LBP(), {"windows": 0}, "windows"),
        (LBP(), {"time_limit": "10"}, "time_limit must be a number of seconds, or as '30d'"),
        (LBP(), {"time_limit": -1}, "time_limit must be a number of seconds"),
        (LBP(), {"predictions": True}, "give one as output"),
    ],
)
def test_what_cannot_be_compared_is_refused(models, options, message):
    with pytest.raises(ParameterError, match=message):
        compare(models, PHISHING[:10], jobs=1, **options)


@pytest.mark.parametrize(
    ("streams", "options", "message"),
    [
        ({1: PHISHING[:10], "1": PHISHING[10:20]}, {}, "2 streams are called '1', as text"),
        ({"a": PHISHING[:10], "a, shuffled": PHISHING[10:20]}, {"shuffled": 5},
         "2 streams are called 'a, shuffled', as text: give each a name of its own"),
        ({}, {}, "there is no stream: give at least one"),
    ],
)  # fmt: skip
def test_each_stream_has_a_name_of_its_own(streams, options, message):
    with pytest.raises(ParameterError, match=message):
        compare(LBP(), streams, jobs=1, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"moment": "a"}, "has moments of its own: leave moment out"),
        ({"moment": lambda x: x["a"]}, "has moments of its own"),
        ({"delay": "a"}, "has delays of its own: leave delay out"),
        ({"delay": lambda x, y: 1}, "has delays of its own"),
    ],
)
def test_a_stream_with_moments_and_delays_takes_no_others(options, message):
    stream = Stream([({"a": 2.0}, True), ({"a": 1.0}, False)], moments=[1, 2], delays=[0, 0])
    with pytest.raises(ParameterError, match=message):
        compare(LBP(), stream, jobs=1, **options)


@pytest.mark.usefixtures("undrawn")
def test_second_call_computes_only_missing_runs(tmp_path):
    models = {"LBP": LBP(budget=20)}
    first = compare(models, PHISHING, output=tmp_path, jobs=1)
    again = compare(models, PHISHING, output=tmp_path, jobs=1)
    assert again.records == first.records  # times included
    other = compare({"LBP": LBP(budget=21)}, PHISHING, output=tmp_path, jobs=1)
    assert other.records[0]["key"] != first.records[0]["key"]
    assert other.records[1:] == first.records[1:]
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 4


def test_records_need_no_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    results = compare(LBP(budget=5), PHISHING[:50], jobs=1)
    assert [row["rows"] for row in results.rows("runs")] == [49] * 3
    with pytest.raises(MissingExtraError, match="compare"):
        _ = results["runs"]


def test_the_error_before_a_drift_is_over_as_many_rows_as_a_window_has():
    """Of the 200 rows before the drift 11 are wrong, two of which lie more than 167 before it."""

    class Yes(dummy.NoChangeClassifier):
        def predict_one(self, x):
            return True

    wrong = {301, 302, *range(400, 409)}
    rows = [({"a": 1.0}, i not in wrong) for i in range(1_000)]
    results = compare({"yes": Yes}, rows, drifts=[500], windows=5, jobs=1)
    [row] = results.rows("recoveries")
    assert row["before"] == 11 / 200


def test_time_is_that_of_the_calls_without_probabilities_beside_a_label(monkeypatch):
    class Counting:
        learnt = 0

        def learn_one(self, x, y):
            self.learnt += 1

        def predict_one(self, x):
            return "yes"

        def predict_proba_one(self, x):
            return {"yes": 1.0}

    model = Counting()
    calls = evaluation._Calls(model)
    clock = iter([3.0, 5.5, 7.0, 8.25]).__next__
    monkeypatch.setattr(evaluation, "time", SimpleNamespace(perf_counter=clock))
    assert (calls.learn(0, {}, "yes", 2), model.learnt) == (2.5, 2)
    assert calls.predict(1, {}) == ("yes", {"yes": 1.0}, 1.25)


@pytest.mark.usefixtures("undrawn")
def test_predictions_that_are_kept_are_those_of_the_rows_that_count(tmp_path):
    """All but the first; a row without a prediction has an empty cell."""

    class Says(dummy.NoChangeClassifier):
        def predict_one(self, x):
            return {2: "z", 3: None}.get(x["i"], "a")

    rows = [({"i": i}, label) for i, label in enumerate("abaac")]
    results = compare({"it": Says}, rows, predictions=True, output=tmp_path, jobs=1)
    [key] = [record["key"] for record in results.records if record["model"] == "it"]
    with (tmp_path / "predictions" / f"{key}.csv").open(newline="") as file:
        actual = list(csv.reader(file))
    assert actual == [
        ["row", "truth", "prediction"],
        *(["1", "b", "a"], ["2", "a", "z"], ["3", "a", ""], ["4", "c", "a"]),
    ]
