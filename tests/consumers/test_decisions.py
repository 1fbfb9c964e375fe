"""Thresholds and explanations of answers: what is sent, kept in checkpoints, and refused."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from river import linear_model, multiclass

from drift._decision import Decision
from drift.consumers import CheckpointFolder, JsonCodec, WorkerOptions
from drift.consumers.answers import Answer
from drift.consumers.checkpoints.checkpoint import from_bytes, to_bytes
from drift.consumers.late import learner_of
from drift.consumers.metrics import Metrics
from drift.consumers.preparing import prepared, prepared_shadow
from drift.consumers.records import Message, Position
from drift.consumers.relearning import relearn
from drift.errors import ParameterError
from drift.models import LBP, MIRA, Tracker


def options(**given):
    return WorkerOptions(topic="t", group="g", predictions="out", **given)


def learner(model=None, **given):
    one = learner_of(model or LBP(budget=20), JsonCodec(), options(**given))
    one.start({("t", 0): 0})
    return one


def stream(n=400):
    """Examples whose label is the sign of one feature."""
    rng = np.random.default_rng(0)
    for _ in range(n):
        x = dict(zip("abcde", rng.normal(size=5).round(3).tolist(), strict=True))
        yield {"features": x, "label": x["a"] > 1.0}


def sent(one, examples, first=0):
    bodies = []
    for i, example in enumerate(examples, first):
        value = json.dumps(example).encode()
        bodies += [
            json.loads(out.value) for out in one.take(Message(Position("t", 0, i), None, value))
        ]
    return bodies


def test_answers_are_decided_by_the_threshold_that_they_carry():
    twin, plain = Decision("rate", 0.3), sent(learner(), stream())
    bodies = sent(learner(rate=0.3), stream())
    for body, other in zip(bodies, plain, strict=True):
        assert body["probabilities"] == other["probabilities"]
        share = body["probabilities"]["true"]
        assert body["threshold"] == pytest.approx(twin.threshold)
        assert body["predicted"] is twin.says(share)
        twin.learn(share, body["label"])
    assert "threshold" not in plain[0]
    assert sum(body["predicted"] for body in bodies) / 400 == pytest.approx(0.3, abs=0.03)


def test_late_labels_teach_what_was_answered():
    def message(topic, i, time, **body):
        value = json.dumps({"id": str(i), **body}).encode()
        return Message(Position(topic, 0, i), None, value, (), time, appended=True)

    features = [message("t", i, i, features=one["features"]) for i, one in enumerate(stream(200))]
    labels = [message("l", i, i + 500, label=one["label"]) for i, one in enumerate(stream(200))]
    given = options(labels="l", cost=(1.0, 3.0), max_age=60.0)
    one = learner_of(LBP(budget=20), JsonCodec(), given)
    one.start({("t", 0): 0, ("l", 0): 0})
    bodies = [json.loads(out.value) for message in features for out in one.take(message)]
    assert all(body["threshold"] == pytest.approx(0.25, rel=0.02) for body in bodies)
    for message in labels:
        one.take(message)
    # All were answered before the first label, with a half.
    [[_, seen, hits]] = one.answering.state()["decision"]["bins"]
    twin = Decision("cost", 0.25)
    for body, label in zip(bodies, stream(200), strict=True):
        twin.learn(body["probabilities"]["true"], label["label"])
    [[_, *expected]] = twin.state()["bins"]
    assert [seen, hits] == pytest.approx(expected)


def test_a_checkpoint_keeps_threshold_and_baseline():
    given = {"recall": 0.8, "explain": 2}
    whole, first = learner(**given), learner(**given)
    expected = sent(whole, stream(120))
    sent(first, stream(80))
    second = learner(**given)
    second.restore(from_bytes(to_bytes(first.snapshot())))
    continued = sent(second, list(stream(120))[80:], 80)
    for body in (*continued, *expected):
        body.pop("checkpoint")
    assert continued == expected[80:]
    other = learner(rate=0.5)  # another goal starts anew, and so does none
    other.restore(from_bytes(to_bytes(first.snapshot())))
    assert other.answering.state()["decision"] == Decision("rate", 0.5).state()
    assert other.answering.baseline is None


def test_a_threshold_of_another_class_starts_anew():
    """As where it was misspelt, which a warning says after 1,000 labels."""
    examples = [example | {"label": "ham" if example["label"] else "spam"} for example in stream()]
    first = learner(MIRA(), rate=0.2, positive="Spam")
    sent(first, examples)
    for positive, expected in (
        ("Spam", first.answering.decision.state()),
        ("spam", Decision("rate", 0.2).state()),
    ):
        second = learner(MIRA(), rate=0.2, positive=positive)
        second.restore(from_bytes(to_bytes(first.snapshot())))
        assert second.answering.decision.state() == expected


@pytest.mark.parametrize("given", [{"positive": "yes"}, {"rate": 0.2}])
def test_a_positive_that_never_comes_is_warned_of_once(given, caplog):
    """Also across checkpoints; whether it is only measured, or decided, too."""
    one = learner(MIRA(), **given)
    examples = [example | {"label": "no"} for example in stream(1_300)]
    sent(one, examples[:999])
    second = learner(MIRA(), **given)
    second.restore(from_bytes(to_bytes(one.snapshot())))
    assert "positive" not in caplog.text
    sent(second, examples[999:], 999)
    [record] = [one for one in caplog.records if "positive is" in one.message]
    positive = given.get("positive", True)
    assert f"positive is {positive!r}, but the first 1,000 labels are 'no': " in record.message
    assert record.levelname == "WARNING"
    assert learner().answering.awaited is None


def test_an_explanation_has_the_largest_contributions():
    bodies = sent(learner(linear_model.LogisticRegression(), explain=2), stream())
    assert all(len(body["explanation"]) == 2 for body in bodies[2:])
    leading = [next(iter(body["explanation"])) for body in bodies[200:]]
    assert leading.count("a") > 100
    assert sent(learner(Tracker(budget=9), explain=2), stream(2))[0]["explanation"] is None
    assert "explanation" not in sent(learner(), stream(3))[0]


def test_an_explanation_that_fails_is_none_and_the_answer_stays(caplog):
    class Fragile(linear_model.LogisticRegression):
        def predict_proba_one(self, x):
            if "b" not in x:
                raise KeyError("b")
            return super().predict_proba_one(x)

    bodies = sent(learner(Fragile(), explain=2), stream(3))
    assert bodies[0]["explanation"] is None
    assert bodies[0]["predicted"] is False
    assert "a prediction has no explanation: 'b'" in caplog.text


def test_alarms_name_the_feature_whose_contributions_moved_most():
    """The target moves from a to b, whose values stay as they were; the others are noise."""
    rng = np.random.default_rng(1)
    one = learner(linear_model.LogisticRegression(), explain=1, events="events")
    alarms = []
    for i in range(2_500):
        x = dict(zip("abcdefgh", rng.normal(size=8).round(3).tolist(), strict=True))
        value = json.dumps({"features": x, "label": x["a" if i < 1_500 else "b"] > 0}).encode()
        answers = one.take(Message(Position("t", 0, i), None, value))
        alarms += [json.loads(out.value) for out in answers if out.topic == "events"]
        if alarms:
            break
    assert i > 1_500
    first, *others = alarms[0]["features"]
    assert first["name"] == "a"
    assert first["distance"] > 5 * max(one["distance"] for one in others)


def test_alarms_of_late_labels_name_features_by_their_values():
    """No contributions wait for a label."""
    assert Metrics.of(options(explain=1))._alarms.contributions
    metrics = Metrics.of(options(explain=1, labels="l", max_age=60.0))
    metrics.learnt(True, Answer(True), {"a": 7.0})
    assert metrics.state()["alarms"]["features"]["moments"] == [["a", [1, 7.0, 0.0], [0, 0.0, 0.0]]]


def test_an_answer_without_reasons_moves_no_contribution():
    metrics = Metrics.of(options(explain=1))
    metrics.learnt(True, Answer(True), {"a": 700.0})
    metrics.learnt(True, Answer(True, reasons={"a": -0.5}), {"a": 700.0})
    kept = metrics.state()["alarms"]["features"]
    assert kept["examples"] == [1, 0]
    assert kept["moments"] == [["a", [1, 0.5, 0.0], [0, 0.0, 0.0]]]
    other = Metrics.of(options(explain=1))
    other.restore(metrics.state())
    assert other._alarms._movement.contributions


def test_what_cannot_be_decided_or_explained_is_refused(tmp_path):
    for problem, given in [
        ("recall and rate are two goals", {"recall": 0.9, "rate": 0.1}),
        ("cost must be two numbers", {"cost": (1.0,)}),
        ("rate must be a number above 0 and up to 1", {"rate": 2.0}),
        ("explain must be at least 0", {"explain": -1}),
    ]:
        with pytest.raises(ParameterError, match=problem):
            options(**given)
    silent = multiclass.OneVsOneClassifier(linear_model.LogisticRegression())
    folder = CheckpointFolder(tmp_path, allow_pickle=True)
    for given in ({"explain": 3}, {"rate": 0.1}):
        with pytest.raises(ParameterError, match="OneVsOneClassifier gives no probabilities"):
            prepared(silent, folder, options(**given), JsonCodec())
    with pytest.raises(ParameterError, match="leave one of the two out"):
        prepared_shadow(LBP(), folder, options(rate=0.1), JsonCodec())
    with pytest.raises(ParameterError, match="leave one of the two out"):
        relearn(LBP(), {}, [], options(rate=0.1), shadow=LBP())


def test_a_replica_answers_as_the_worker_would_and_learns_nothing():
    pytest.importorskip("kafka")
    from drift.consumers.replica import Replica  # noqa: PLC0415 - needs an extra

    worker = learner(rate=0.3, explain=2)
    sent(worker, stream(300))
    before = worker.metrics.state(), worker.answering.state()
    replica = object.__new__(Replica)
    replica._serving = SimpleNamespace(learner=worker)
    example = next(iter(stream(1)))
    answer = replica.answer(example["features"])
    beside = replica.beside(answer)
    assert (worker.metrics.state(), worker.answering.state()) == before
    [body] = sent(worker, [example], 300)
    assert answer.predicted is body["predicted"]
    assert beside == {name: body[name] for name in ("threshold", "explanation")}


def test_a_learner_without_either_continues_what_had_both():
    one, plain = learner(rate=0.1, explain=1), learner()
    sent(one, stream(50))
    plain.restore(one.snapshot())
    assert (plain.answering.state(), plain.metrics.examples) == ({}, 50)
