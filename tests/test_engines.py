"""A model as the state of a stream processor: steps are pure, and equal to one model's loop."""

import copy
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.base import Classifier
from river.linear_model import LogisticRegression
from river.preprocessing import StandardScaler

from drift import _format, engines
from drift.consumers import register
from drift.engines import step, tolerant_step
from drift.errors import (
    CheckpointError,
    ConfigurationError,
    DamagedCheckpointError,
    FeatureError,
    FeatureTypeError,
    LabelError,
    ParameterError,
)
from drift.models import LBP, RBP, Averaged, OneVsRest, Projectron, Threshold, Tracker
from drift.models._state.codec import encode
from tests.models.streams import drifting_stream

MODELS = [
    LBP(5),
    RBP(5, seed=1),
    OneVsRest(Averaged(LBP(4))),
    Tracker(5),
    Tracker(5, late=True),
    Threshold(LBP(5), rate=0.3),
    Threshold(Tracker(5, late=True), cost=(1, 3)),
]


def loop(model, examples):
    """What one model does over the stream: bytes and predictions."""
    model = model.clone()
    predictions = []
    for x, y, *w in examples:
        predictions.append(model.predict_one(x))
        if y is not None:
            model.learn_one(x, y, *w)
    return model.to_bytes(), predictions


STREAM = list(drifting_stream(60))


@st.composite
def streams(draw):
    """Examples, some of them without a label and some with a weight."""
    rng = random.Random(draw(st.integers(0, 999)))
    examples = [(x, y if rng.random() < 0.8 else None) for x, y in STREAM]
    return [one if rng.random() < 0.7 else (*one, rng.choice([0, 0.5, 2.0])) for one in examples]


@pytest.mark.parametrize("model", MODELS, ids=str)
@given(data=st.data())
def test_steps_over_a_stream_that_is_cut_anywhere_equal_one_models_loop(model, data):
    examples = data.draw(streams())
    cuts = data.draw(st.lists(st.integers(0, len(examples)), max_size=5))
    bounds = [0, *sorted(cuts), len(examples)]
    before, state, predictions = model.to_bytes(), None, []
    with pytest.MonkeyPatch.context() as patch:
        # Some models are kept from step to step; other states are read, as in another process.
        patch.setattr(engines, "_KEPT", engines._Kept(data.draw(st.sampled_from([0, 1 << 20]))))
        for start, end in pairwise(bounds):
            state, some = step(state, iter(examples[start:end]), model)
            predictions += some
    assert (state, predictions) == loop(model, examples)
    assert model.to_bytes() == before


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_step_is_a_function_of_its_arguments_which_it_leaves_as_they_are(model):
    first, second = list(drifting_stream(20)), list(drifting_stream(20, seed=2))
    state = bytearray(step(None, first, model)[0])
    kept = copy.deepcopy((state, second))
    once, again = (step(state, second, model) for _ in range(2))
    assert once == again
    assert (state, second) == kept
    assert type(once[0]) is bytes


def test_the_models_of_the_last_states_are_kept_up_to_so_many_bytes():
    kept, models = engines._Kept(100), [LBP(n) for n in range(1, 5)]
    states = [_format.seal(b"", [bytes(n)]) for n in (0, 1, 2)]
    assert [*map(len, states)] == [56, 57, 58]
    kept.put(states[0], models[0])
    kept.put(states[1], models[1])  # 113 bytes: the first one goes
    assert kept.take(states[0]) is None
    assert kept.take(states[1]) is models[1]
    assert kept.take(states[1]) is None  # a model continues once
    kept.put(states[0], models[0])
    kept.put(states[0], models[2])  # which leaves room for no other
    assert kept.take(states[0]) is models[2]
    kept.put(_format.seal(b"", [bytes(45)]), models[3])  # too large alone
    kept.put(states[2], models[0])
    assert kept.take(states[2]) is models[0]


def test_other_bytes_with_the_digest_of_a_state_are_refused():
    x = {"a": 1.0}
    state, _ = step(None, [(x, True)], LBP(3))
    forged = LBP(3).to_bytes()[:-32] + state[-32:]
    with pytest.raises(DamagedCheckpointError, match="the checksum is wrong"):
        step(forged, [])
    assert step(state, [(x, None)])[1] == [True]


def test_unlabelled_examples_are_predicted_and_not_learnt():
    x = {"a": 1.0}
    state, predictions = step(None, [(x, None), (x, True), (x, None), (x, None, 2.0)], LBP(3))
    assert predictions == [False, False, True, True]
    assert state == step(None, [(x, True)], LBP(3))[0]


def test_without_examples_a_model_starts_or_stays_as_it_is():
    state, predictions = step(None, [], LBP(3))
    assert (state, predictions) == (LBP(3).to_bytes(), [])
    assert step(state, []) == (state, [])


def test_what_starts_is_a_tracker_or_a_clone_that_has_learnt_nothing():
    assert step(None, [])[0] == Tracker().to_bytes()
    model = LBP(3)
    model.learn_one({"a": 1.0}, True)
    assert step(None, [], model)[0] == LBP(3).to_bytes()


def test_a_model_that_is_not_drifts_is_refused_with_the_remedy():
    for state in (None, LBP(3).to_bytes()):
        with pytest.raises(ParameterError, match=r"LogisticRegression.* give one of drift\.models"):
            step(state, [], LogisticRegression())
        for call in (step, tolerant_step):
            with pytest.raises(ParameterError, match=r"Pipeline.* give one of drift\.models"):
                call(state, [({"a": 1.0}, True)], StandardScaler() | LBP(3))
        with pytest.raises(ParameterError, match=r"such as LBP\(\), not the class"):
            step(state, [], LBP)


@register
class Foreign(Classifier):
    """Stored, as it is registered, and still no model of drift's."""

    def learn_one(self, x, y):
        """Nothing."""


def test_states_that_no_step_returned_are_refused():
    good = LBP(3).to_bytes()
    with pytest.raises(DamagedCheckpointError, match="the state cannot be used: damaged"):
        step(good[:-1] + b"\0", [])
    with pytest.raises(CheckpointError, match="the state cannot be used: "):
        step(_format.seal(b"", [b"forged"]), [])
    with pytest.raises(ParameterError, match="bytes that a step returned, or None, not str"):
        step(good.hex(), [])
    with pytest.raises(CheckpointError, match="the state is of Foreign"):
        step(_format.seal(b"", [encode(Foreign())]), [])
    with pytest.raises(CheckpointError, match="LogisticRegression"):
        step(None, [({"a": 1.0}, True)], Threshold(LogisticRegression()))


@pytest.mark.parametrize("other", [LBP(4), Tracker(3), OneVsRest(LBP(3))], ids=str)
def test_a_state_of_another_model_is_refused_and_without_one_continues(other):
    state = step(None, [], LBP(3))[0]
    with pytest.raises(ConfigurationError, match=r"LBP \( budget=3 .* pass the model that"):
        step(state, [], other)
    assert step(state, [])[0] == state


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Projectron(1.0e-5), Projectron(1.4e-5)),  # as text both are 1e-05
        (OneVsRest(Projectron(1.0e-5)), OneVsRest(Projectron(1.4e-5))),
        (Threshold(LBP(5)), Threshold(LBP(6))),
        (Threshold(LBP(5), rate=0.3), Threshold(LBP(5), rate=0.4)),
        (Threshold(OneVsRest(LBP(5))), Threshold(OneVsRest(LBP(6)))),
        (Threshold(LBP(5)), Threshold(Tracker(5))),
        (OneVsRest(RBP(5)), OneVsRest(RBP(6))),
        (OneVsRest(RBP(5)), OneVsRest(RBP(5, seed=1))),
    ],
    ids=str,
)
def test_the_smallest_difference_makes_another_model(one, other):
    state = step(None, [({"a": 1.0}, True)], one)[0]
    assert step(state, [], one.clone())[0] == state
    with pytest.raises(ConfigurationError):
        step(state, [], other)


@pytest.mark.parametrize(
    "model",
    [LBP(5), OneVsRest(LBP(5)), Threshold(OneVsRest(LBP(5))), Averaged(Projectron())],
    ids=repr,
)
def test_models_of_plain_parameters_are_compared_without_clones(model, monkeypatch):
    state = step(None, [({"a": 1.0}, True)], model)[0]
    same = model.clone()
    monkeypatch.setattr(type(model), "clone", lambda *_: pytest.fail("it was cloned"))
    assert step(state, [], same)[0] == state


@register
class Unnamed:
    """A kernel whose text is another one in each process."""

    def __call__(self, dot, squared_norm_a, squared_norm_b):
        return dot


def test_models_are_distinguished_by_more_than_their_text():
    state = step(None, [], LBP(3, kernel=Unnamed()))[0]
    assert step(state, [], LBP(3, kernel=Unnamed()))[0] == state
    with pytest.raises(ConfigurationError):
        step(state, [], LBP(4, kernel=Unnamed()))


@pytest.mark.parametrize(
    ("example", "error", "message"),
    [
        (({"a": float("inf")}, True), FeatureError, "'a'"),
        (({"a": "red"}, None), FeatureTypeError, "'a'"),
        (({"a": 1.0}, "spam"), LabelError, "'spam'"),
        (({"a": 1.0}, True, -1.0), ParameterError, "weight -1"),
        (({"a": 1.0},), ParameterError, "None for a label that is not known, not"),
        ({"a": 1.0}, ParameterError, "None for a label that is not known, not"),
    ],
)
def test_an_example_that_is_refused_is_named(example, error, message):
    with pytest.raises(error, match=f"^example 1: .*{message}"):
        step(None, [({"a": 1.0}, True), example], LBP(3))


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_tolerant_step_leaves_out_what_has_a_fault_and_learns_the_rest(model, caplog):
    good = [({"a": 1.0}, True), ({"a": -1.0}, False), ({"a": 0.5}, None)]
    bad = [({"a": "x"}, True), ({"a": 1.0}, []), ({"a": 1.0}, True, -1.0)]
    mixed = [bad[0], good[0], bad[1], bad[2], good[1], good[2]]
    state, predictions = tolerant_step(None, mixed, model)
    expected, labels = step(None, good, model)
    assert state == expected
    assert predictions == [None, labels[0], None, None, *labels[1:]]
    told = [one for one in caplog.records if one.name == "drift.engines"]  # others have threads
    assert [one.levelname for one in told] == ["WARNING"] * 3
    named = [one.getMessage().split(": ")[1:3] for one in told]
    assert [number for number, _ in named] == ["example 0", "example 2", "example 3"]
    assert [why.split()[0] for _, why in named] == ["feature", "label", "weight"]
    assert tolerant_step(state, bad[:1], model) == (state, [None])
    assert tolerant_step(state, good, model) == step(state, good, model)
    with pytest.raises(ConfigurationError):
        tolerant_step(state, mixed, Tracker(7))
    with pytest.raises(ParameterError, match="state must be the bytes"):
        tolerant_step("state", mixed, model)
    with pytest.raises(ParameterError, match="None for a label that is not known"):
        tolerant_step(state, [*mixed, ({"a": 1.0},)], model)
