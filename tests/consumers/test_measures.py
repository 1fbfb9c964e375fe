"""Measures, as scikit-learn has them of the same predictions, and as a checkpoint keeps them."""

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn
from sklearn.calibration import calibration_curve

from drift.consumers._json import text_of
from drift.consumers.answers import Answer
from drift.consumers.measures import FADING, Measures
from drift.consumers.waiting import Classes
from drift.errors import ParameterError


def answers(labels, n, seed, digits=2):
    """Labels and answers of a model that knows something, with ties among its probabilities."""
    draw = random.Random(seed)
    for _ in range(n):
        label = draw.choices(labels, range(1, len(labels) + 1))[0]
        raw = {one: draw.random() + 0.4 * (one == label) for one in labels}
        chances = {one: round(raw[one] / sum(raw.values()), digits) for one in labels[1:]}
        chances[labels[0]] = 1 - sum(chances.values())
        yield label, Answer(max(chances, key=chances.get), chances)


def measured(pairs, **given_options):
    measures = Measures(**given_options)
    for label, answer in pairs:
        measures.learnt(label, answer)
    return measures


def sklearn_of(labels, predicted, **how):
    precision, recall, f1, _ = sklearn.precision_recall_fscore_support(labels, predicted, **how)
    error = 1 - sklearn.accuracy_score(labels, predicted)
    return {"error": error, "precision": precision, "recall": recall, "f1": f1}


@pytest.mark.parametrize("window", [1000, 300])
@pytest.mark.parametrize(
    ("labels", "positive"), [([True, False], None), ([0, 1], None), (["fraud", "ok"], "fraud")]
)
def test_measures_of_two_labels_are_those_of_scikit_learn(labels, positive, window):
    pairs = list(answers(labels, 800, seed=len(labels[:1]) + window))
    measures = measured(pairs, positive=positive, window=window)
    positive = True if positive is None else positive
    pairs = pairs[-window:]
    truth = [label == positive for label, _ in pairs]
    chances = [answer.chances[positive] for _, answer in pairs]
    predicted = [answer.predicted == positive for _, answer in pairs]
    shares, means = sklearn_calibration(truth, chances)
    expected = {
        **sklearn_of(truth, predicted, average="binary"),
        "log_loss": sklearn.log_loss(truth, chances),
        "roc_auc": sklearn.roc_auc_score(truth, chances),
        "base_rate": sum(truth) / len(truth),
        "calibration_error": sum(
            n * abs(share - mean) for (n, share), mean in zip(shares, means, strict=True)
        )
        / len(truth),
    }
    assert measures.windowed() == pytest.approx(expected)


def sklearn_calibration(truth, chances):
    # scikit-learn has a bin's upper edge in it, the measure its lower one.
    chances = [min(1.0, chance + 1e-9) for chance in chances]
    shares, means = calibration_curve(truth, chances, n_bins=10)
    sizes = [0] * 10
    for chance in chances:
        sizes[min(9, int(10 * chance))] += 1
    return list(zip(filter(None, sizes), shares, strict=True)), means


def test_measures_of_more_labels_are_means_over_them():
    labels = ["a", "b", "c", "d"]
    pairs = list(answers(labels, 500, seed=5))
    truth, predicted = [y for y, _ in pairs], [answer.predicted for _, answer in pairs]
    right = [y == p for y, p in zip(truth, predicted, strict=True)]
    windowed = measured(pairs).windowed()
    assert windowed.pop("calibration_error") < 0.3
    assert windowed == pytest.approx({
        **sklearn_of(truth, predicted, average="macro", zero_division=0),
        "log_loss": sklearn.log_loss(truth, [[a.chances[c] for c in labels] for _, a in pairs]),
        "roc_auc": sklearn.roc_auc_score(right, [max(a.chances.values()) for _, a in pairs]),
        "base_rate": truth.count("d") / 500,
    })  # fmt: skip


def test_of_more_labels_one_may_be_the_positive_one():
    pairs = list(answers(["a", "b", "c"], 300, seed=6))
    truth, predicted = [y == "b" for y, _ in pairs], [a.predicted == "b" for _, a in pairs]
    windowed = measured(pairs, positive="b").windowed()
    expected = sklearn_of(truth, predicted, average="binary")
    for name in ("precision", "recall", "f1"):
        assert windowed[name] == pytest.approx(expected[name])
    assert windowed["base_rate"] == sum(truth) / 300


def naive(values):
    """The faded mean, by its weights."""
    weights = [(1 - FADING) ** (len(values) - 1 - i) for i in range(len(values))]
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def test_faded_measures_are_means_with_weights_that_fall():
    pairs = list(answers([True, False], 3000, seed=7))
    faded = measured(pairs, window=10).faded()
    hit = naive([y and a.predicted for y, a in pairs])
    positive, claimed = naive([y for y, _ in pairs]), naive([a.predicted for _, a in pairs])
    assert faded == pytest.approx({
        "error": naive([y != a.predicted for y, a in pairs]),
        "log_loss": naive([-math.log(a.chances[y]) for y, a in pairs]),
        "recall": hit / positive,
        "precision": hit / claimed,
        "f1": 2 * hit / (positive + claimed),
        "base_rate": positive,
    })  # fmt: skip
    several = measured(answers(["a", "b", "c"], 50, seed=8)).faded()
    assert set(several) == {"error", "log_loss"}  # nothing that is over classes


def test_what_there_is_nothing_to_measure_by_is_absent():
    measures = Measures()
    assert list(measures.windowed()) == ["error"]
    assert math.isnan(measures.error)
    assert measures.faded() == {}
    assert math.isnan(measures.learnt(False, Answer(None, {})))
    assert measures.windowed() == {"error": 1}
    assert measures.faded() == pytest.approx({"error": 1})  # of no prediction only that
    assert math.isnan(measures.learnt(False, Answer(False)))
    assert measures.windowed() == {"error": 0.5, "base_rate": 0}
    measures.learnt(True, Answer(False, {False: 1.0}), 3.0)
    measures.learnt(True, Answer(True, {False: 0.5, True: 0.5}), 5.0)
    windowed = measures.windowed()
    assert windowed.pop("log_loss") == pytest.approx((math.log(2) - math.log(1e-15)) / 2)
    assert windowed == pytest.approx({
        "error": 0.5,
        "recall": 0.5,
        "precision": 1,
        "f1": 2 / 3,
        "base_rate": 2 / 3,
        "calibration_error": 0.75,  # 0 and 0.5 for what was true both times
        "label_latency_seconds": 4,
    })  # fmt: skip


labels = st.sampled_from([True, False, 2, "c", 1.5, None])
examples = st.lists(
    st.tuples(
        labels.filter(lambda one: one is not None),
        labels,
        st.none() | st.dictionaries(labels, st.floats(0, 1), max_size=3),
        st.none() | st.floats(0, 1e9),
    ),
    max_size=30,
)


@given(examples, examples, st.integers(1, 12))
def test_a_restored_state_continues_exactly(before, after, window):
    one = Measures(window=window)
    for label, predicted, chances, delay in before:
        one.learnt(label, Answer(predicted, chances), delay)
    other = Measures.restore(json.loads(json.dumps(one.state())), window=window)
    for label, predicted, chances, delay in after:
        for measures in (one, other):
            measures.learnt(label, Answer(predicted, chances), delay)
    assert json.dumps(other.state()) == json.dumps(one.state())
    assert repr(other.windowed()) == repr(one.windowed())
    assert other.faded() == one.faded()


def test_faded_measures_of_another_class_start_anew():
    pairs = list(answers(["spam", "ham"], 300, seed=3))
    one = Measures.restore(measured(pairs[:200], positive="ham").state(), "spam")
    for label, answer in pairs[200:]:
        one.learnt(label, answer)
    faded, expected = one.faded(), measured(pairs[200:], positive="spam").faded()
    of_class = ("recall", "precision", "f1", "base_rate")
    assert {name: faded[name] for name in of_class} == {name: expected[name] for name in of_class}
    others = ("error", "log_loss")
    whole = measured(pairs, positive="spam").faded()
    assert [faded[name] for name in others] == [whole[name] for name in others]


def test_what_is_no_state_is_refused():
    state = measured(answers([True, False], 20, seed=1)).state()
    short = {"chances": "AAAA"}, {"of": [0]}, {"predicted": [7] * 20}, {"labels": []}
    forged = (
        *({"means": {}}, {"seen": 1}, {"predicted": [-1] * 20}, {"labels": [[], True, False]}),
        *({"delays": 20}, {"delays": "9" * 30}, {"means": state["means"] | {"error": 10**400}}),
        *({"seen": state["seen"] | {"error": wrong}} for wrong in (math.inf, -1, 10**400)),
    )
    for wrong in (None, {}, [], *(state | one for one in (*short, *forged))):
        with pytest.raises(ParameterError, match="no state of measures"):
            Measures.restore(wrong)


# --- probabilities that wait ---------------------------------------------------------------------


@given(st.lists(st.dictionaries(labels.filter(bool), st.floats(0.125, 1, width=32), min_size=1)))
def test_probabilities_come_back_from_their_bytes(rows):
    classes = Classes()
    packed = [classes.pack(row) for row in rows]
    classes = Classes(json.loads(json.dumps(classes.labels)))
    for row, one in zip(rows, packed, strict=True):
        actual = classes.unpack(one, next(iter(row)))
        assert {label: chance for label, chance in actual.items() if chance} == row


def test_a_class_beyond_those_that_are_kept_has_what_they_leave():
    classes = Classes()
    packed = classes.pack(dict.fromkeys(range(64), 1 / 64))
    assert len(packed) == 4 * 32
    assert classes.unpack(packed, 3)[3] == 1 / 64
    assert classes.unpack(packed, 40)[40] == 0.5
    assert classes.unpack(classes.pack(None), 3) is None
    assert classes.unpack(classes.pack({}), 3) is None


def test_the_text_of_a_label_is_that_of_a_prediction():
    assert list(map(text_of, [True, False, 1, 0, "true", 1.5])) == [
        *("true", "false", "1", "0", "true", "1.5"),
    ]
