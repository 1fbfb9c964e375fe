"""What a worker does with a message: weights, probabilities, floods of poison."""

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from river import base, compose, linear_model, naive_bayes, preprocessing

from drift._late import final_step
from drift.consumers import Codec, Example, JsonCodec, _json, trouble_log
from drift.consumers.late import learner_of
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics
from drift.consumers.options import WorkerOptions
from drift.consumers.preparing import check_model, check_reads_labels
from drift.consumers.records import Message, Position
from drift.errors import ParameterError
from drift.models import LBP, OneVsRest, Threshold, Tracker


class Noting(base.Classifier):
    """Has no probabilities, and records what it learns."""

    def __init__(self):
        self.told = []

    def learn_one(self, x, y, w=None):
        self.told.append((x, y, w))

    def predict_one(self, x):
        return None


class NotingAll(Noting):
    """Accepts weights and further arguments."""

    def learn_one(self, x, y, **told):
        self.told.append((x, y, told))


def pipeline(last):
    return compose.Pipeline(preprocessing.StandardScaler(), last)


def learner(model, codec=None, **options):
    options = WorkerOptions(topic="t", group="g", predictions="out", **options)
    return Learner(model, codec or JsonCodec(), Metrics("t", 0), options)


def message(value, offset=0):
    return Message(Position("t", 0, offset), None, value)


def test_it_is_said_once_that_no_message_has_a_label(caplog):
    said = "none of 1000 messages so far has a label, and nothing is learnt yet: say where it is"
    for labelled, count in ((None, 1), (999, 0)):
        caplog.clear()
        one = learner(LBP(9))
        for n in range(1100):
            label = b', "label": true' * (n == labelled)
            one.take(message(b'{"features": {"a": 1}%s}' % label, n))
            assert caplog.text.count(said) == (count if n >= 999 else 0)


@pytest.mark.parametrize("wrap", [lambda model: model, pipeline], ids=["alone", "pipeline"])
def test_where_messages_have_their_labels_those_without_leave_no_ticket(wrap):
    """One of the same features would find it, and learn from an earlier prediction."""
    sent = [({"a": float(n % 3)}, (n % 3 == 1) if n % 2 else None) for n in range(40)]
    one, plain = learner(wrap(Tracker(4, late=True))), wrap(Tracker(4, late=True))
    for n, (features, label) in enumerate(sent):
        one.take(message(json.dumps({"features": features, "label": label}).encode(), n))
        if label is not None:
            plain.predict_one(features)
            plain.learn_one(features, label)
    assert pickle.dumps(final_step(one.model)) == pickle.dumps(final_step(plain))


def test_a_digest_is_of_each_eighth_that_was_learnt_and_predicted_in_its_order():
    taken = [
        message(json.dumps({"features": {"a": float(n)}, "label": n > 2}).encode(), n)
        for n in range(20)
    ]
    taken.append(message(b'{"features": {"a": 1}}', 20))  # without a label

    def digest(messages, model=None, codec=None):
        one = learner(model or LBP(3), codec)
        for sent in messages:
            one.take(sent)
        return one.digest

    class Renaming(JsonCodec):
        def decode(self, value, headers=()):
            return super().decode(value, headers)._replace(features={"b": 1.0})

    class Numpy(JsonCodec):
        def decode(self, value, headers=()):
            example = super().decode(value, headers)
            return example._replace(
                features={n: np.float64(v) for n, v in example.features.items()}
            )

    whole = digest(taken)
    assert whole == digest(taken) == digest(taken[:20])
    assert digest(taken, codec=Numpy()) == digest(taken, codec=Numpy())
    others = [
        *(digest([]), digest(taken[1:]), digest([taken[0], *taken[2:]]), digest(taken, Noting())),
        digest(taken, codec=Renaming()),
    ]
    assert len({whole, *others}) == 6


@pytest.mark.parametrize(
    "model",
    [LBP(3), Tracker(300), OneVsRest(LBP(3)), naive_bayes.GaussianNB(), pipeline(LBP(3)), Noting()],
)
def test_classifiers_are_taken(model):
    check_model(model, JsonCodec())


@pytest.mark.parametrize(
    "model",
    [
        *(None, LBP, "RBP", linear_model.LinearRegression(), preprocessing.StandardScaler()),
        pipeline(linear_model.LinearRegression()),
    ],
)
def test_what_is_no_classifier_is_refused(model):
    with pytest.raises(ParameterError, match="is not a classifier: a worker predicts labels"):
        check_model(model, JsonCodec())


def test_weights_are_refused_where_they_would_not_count():
    weighted = JsonCodec(weight="w")
    for model in (LBP(3), Tracker(300), pipeline(LBP(3)), Noting(), NotingAll(), Threshold(LBP(3))):
        check_model(model, weighted)
    for bayes in (naive_bayes.GaussianNB(), pipeline(naive_bayes.GaussianNB())):
        for model in (bayes, Threshold(bayes), pipeline(Threshold(Threshold(bayes)))):
            with pytest.raises(ParameterError, match="learns without weights: leave weight out"):
                check_model(model, weighted)


class Plain(Codec):
    """A codec of the user's, without classes."""

    decode = decode_label = None


def test_silence_is_one_of_the_labels_that_there_are():
    for silence in (None, False, 0):
        check_reads_labels(JsonCodec(classes=[True, False]), silence)
    for codec in (JsonCodec(), Plain()):
        check_reads_labels(codec, "legit")
    with pytest.raises(ParameterError, match="Mute has no decode_label"):
        check_reads_labels(type("Mute", (Codec,), {"decode": None})())
    with pytest.raises(ParameterError, match=r"silence is 'legit', .* classes, \['ok', 'fraud'\]:"):
        check_reads_labels(JsonCodec(classes=["ok", "fraud"]), "legit")


def test_a_weight_goes_to_the_model():
    codec = JsonCodec(weight="w")
    one = learner(Noting(), codec)
    for offset, example in enumerate(
        [Example({"a": 1}, True), Example({"a": 2}, False, weight=2.5), Example({"a": 3}, weight=2)]
    ):
        one.take(message(codec.encode(example), offset))
    assert one.model.told == [({"a": 1}, True, None), ({"a": 2}, False, 2.5)]


@pytest.mark.parametrize("model", [pipeline(LBP(9)), LBP(9), Tracker(300)])
def test_predictions_have_each_class_with_its_probability(model):
    one, plain = learner(model.clone()), model.clone()
    names = {True: "true", False: "false"}
    for offset in range(40):
        x, y = {f"w{offset % 7}": 1.0, "bias": 0.5}, offset % 3 == 0
        [sent] = one.take(message(JsonCodec().encode(Example(x, y)), offset))
        expected = {names[label]: p for label, p in plain.predict_proba_one(x).items()}
        assert json.loads(sent.value)["probabilities"] == expected
        plain.learn_one(x, y)
    assert sum(expected.values()) == pytest.approx(1)


def test_a_prediction_has_the_most_probable_classes_and_fits_its_topic():
    """Of 1,250 labels of 900 characters all would be 2.3 MB."""
    one = learner(OneVsRest(LBP(5)), top_probabilities=3)
    for n in range(60):
        x = {"features": {f"f{n % 7}": 1.0}, "label": f"{n % 9} {'x' * 900}"}
        one.take(message(json.dumps(x).encode(), n))
    features = {"f3": 1.0, "f5": 1.0}
    [sent] = one.take(message(json.dumps({"features": features}).encode(), 60))
    body = json.loads(sent.value)
    for found, every in (
        (body["probabilities"], one.model.predict_proba_one(features)),
        (body["score"], one.model.decision_function_one(features)),
    ):
        assert sorted(found.values()) == sorted(every.values())[-3:]
        assert all(every[label] == value for label, value in found.items())
    assert len(sent.value) < 3 * 2 * 950 + 1_500


def test_probabilities_are_null_where_a_model_knows_none():
    [sent] = learner(Noting()).take(message(b'{"features": {"a": 1}, "label": 3}'))
    assert json.loads(sent.value)["probabilities"] is None


class Numpy(Noting):
    """Answers in numpy's types, as a model of scikit-learn does."""

    def __init__(self, *labels, score):
        super().__init__()
        self.labels, self.score = labels, score

    def predict_one(self, x):
        return self.labels[0]

    def predict_proba_one(self, x):
        return dict.fromkeys(self.labels, np.float64(1 / len(self.labels)))

    def decision_function_one(self, x):
        return self.score


@pytest.mark.parametrize("rate", [None, 1.0], ids=["likeliest", "threshold"])
def test_what_numpy_predicts_is_sent_as_json_has_it(rate):
    for labels, score, expected in (
        ([np.bool_(True), np.bool_(False)], np.float32(0.5), (True, 0.5, {"true", "false"})),
        ([np.int64(3), np.int64(4)], np.array([0.5, 2.0]), (3, [0.5, 2.0], {"3", "4"})),
        ([np.str_("spam")], float("nan"), ("spam", None, {"spam"})),
        ([2.5, "2"], {1: float("-inf"), np.int8(2): 1}, (2.5, {"1": None, "2": 1}, {"2.5", "2"})),
    ):
        one = learner(Numpy(*labels, score=score), rate=rate)
        one.answering.positive = _json.plain(labels[0])  # a threshold chooses of those known
        [sent] = one.take(message(b'{"features": {"a": 1}, "label": true}'))
        body = json.loads(sent.value, parse_constant=pytest.fail)
        predicted, scored, names = expected
        assert (body["predicted"], body["score"]) == (predicted, scored)
        assert type(body["predicted"]) is type(predicted)
        assert body["probabilities"] == dict.fromkeys(names, 1 / len(names))
        assert one.metrics.mistakes == (predicted is not True)


@pytest.mark.parametrize("dead_letters", ["dead", None])
def test_of_a_flood_of_poison_each_kind_has_a_line_a_minute(monkeypatch, caplog, dead_letters):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(trouble_log, "time", SimpleNamespace(monotonic=lambda: clock.now))
    one = learner(LBP(3), dead_letters=dead_letters)
    odd = b'{"features": {"a%d": [[]]}, "label": true}'
    for offset in range(0, 500, 2):
        one.take(message(b"{", offset))
        one.take(message(odd % offset, offset + 1))
    assert [line.partition(" ")[0] for line in caplog.messages] == ["t:0:0", "t:0:1"]
    assert one.metrics.dead_letters == 500
    clock.now += 59
    one.note()
    assert len(caplog.messages) == 2
    clock.now += 1
    one.note()
    assert [line.partition(" ")[0] for line in caplog.messages[2:]] == ["t:0:498", "t:0:499"]
    assert all(line.endswith(" (and 248 like it before)") for line in caplog.messages[2:])
    one.take(message(b"{", 500))
    assert len(caplog.messages) == 4
    one.close()
    assert caplog.messages[-1].startswith("t:0:500 ")
    assert "like it" not in caplog.messages[-1]
    clock.now += 60
    one.note()
    one.take(message(b"{", 501))
    assert caplog.messages[-1].startswith("t:0:501 ")


@pytest.mark.parametrize("labels", [None, "labels"])
def test_predictions_have_the_headers_that_are_chosen(labels):
    """By default those of a trace, as they are; a dead letter has all."""
    sent = [("traceparent", b"00-1-2-01"), ("tenant", b"x"), ("tracestate", None), ("tenant", b"y")]
    good = b'{"features": {"a": 1}, "id": 7}'
    for options, expected in (
        ({}, [("traceparent", b"00-1-2-01"), ("tracestate", None)]),
        ({"headers": ("tenant",)}, [("tenant", b"x"), ("tenant", b"y")]),
        ({"headers": ()}, []),
    ):
        options |= {"predictions": "out", "dead_letters": "dead", "labels": labels}
        one = learner_of(LBP(3), JsonCodec(), WorkerOptions(topic="t", group="g", **options))
        [prediction] = one.take(message(good)._replace(headers=sent, appended=True))
        assert prediction.headers == expected
        [letter] = one.take(message(b"{", 1)._replace(headers=sent))
        assert letter.headers[:4] == sent


def test_a_model_that_fails_makes_a_dead_letter():
    model = SimpleNamespace(predict_one=lambda x: 1 / 0)
    [letter] = learner(model, dead_letters="dead").take(message(b'{"features": {}}'))
    assert dict(letter.headers)["drift.error.class"] == b"ZeroDivisionError"


def test_a_checkpoint_has_how_far_each_partition_is_and_what_is_left_out_yet():
    one, other = learner(LBP(5)), learner(LBP(5))
    one.start({("t", 0): 0, ("t", 1): 5})
    for offset, time in enumerate((7_000, 99_000_000, 8_000)):
        at = Position("t", 0, offset)
        one.take(Message(at, None, b'{"features": {"a": 1}}', (), time, leader_epoch=4))
    left_out = [Position("t", 0, 2), Position("t", 1, 5), Position("t", 1, 9)]
    one.skips = dict.fromkeys(left_out, "is too much")
    other.restore(one.snapshot())
    assert other.offsets == {("t", 0): 3, ("t", 1): 5}
    assert other.leader_epochs == {("t", 0): 4}
    assert other.clocks == {("t", 0): (8_000, None)}
    assert [*other.skips] == left_out[1:]
