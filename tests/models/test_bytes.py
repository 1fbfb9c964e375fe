"""A model's bytes give it back as it was; any others are an error, never a crash."""

import math
import random
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift import _format
from drift.consumers.checkpoints.checkpoint import Checkpoint, to_bytes
from drift.errors import CheckpointError, DamagedCheckpointError
from drift.kernels import RBF
from drift.models import (
    CKS,
    LBP,
    LBSOP,
    MIRA,
    Averaged,
    KernelClassifier,
    OneVsRest,
    Projectron,
    Tracker,
    from_bytes,
)
from drift.models._state.codec import decode, encode
from drift.models._store.built import Calibration
from tests.models.cases import CASES, canonical
from tests.models.streams import drifting_stream


def learnt(model, n=40):
    for x, y in drifting_stream(n):
        model.learn_one(x, y)
    return model


def stored(*values):
    """These values as an attribute of a model that was stored and read."""
    model = LBP()
    model.extra = list(values)
    return decode(encode(model)).extra


def test_a_zero_below_0_stays_one():
    """Among zeros, in an array that is stored as float32, and in a matrix."""
    zeros = np.zeros(49)
    zeros[3] = -0.0
    for before in (zeros, np.array([0.5, -0.0]), zeros.reshape(7, 7)):
        [after] = stored(before)
        assert np.signbit(after).tolist() == np.signbit(before).tolist()


def test_values_of_one_name_are_shared_only_where_they_are_equal():
    one, other, same = stored(RBF(1.0), RBF(2.0), RBF(1.0))
    assert (one.gamma, other.gamma) == (1.0, 2.0)
    assert same is one


def test_numbers_that_no_part_has_are_refused():
    payload = encode(learnt(Tracker(3)))
    assert encode(decode(payload)) == payload
    for more in (b"\0", bytes(64)):
        with pytest.raises(CheckpointError, match="more numbers than it has"):
            decode(payload + more)


@pytest.mark.parametrize("case", CASES)
def test_a_model_continues_as_the_original(case):
    model = CASES[case].model(None, 5)
    examples = list(drifting_stream(60))
    for x, y in examples[:35]:
        model.learn_one(x, y)
    data = model.to_bytes()
    for copy in (type(model).from_bytes(data), from_bytes(data)):
        assert type(copy) is type(model)
        assert copy.to_bytes() == data
        assert canonical(copy, shared=False) == canonical(model, shared=False)
    for x, y in examples[35:]:
        assert copy.predict_proba_one(x) == model.predict_proba_one(x)
        copy.learn_one(x, y)
        model.learn_one(x, y)
    assert copy.to_bytes() == model.to_bytes()


@given(st.data())
def test_a_tracker_continues_from_any_time_by_its_bytes(data):
    """Features come and go, are missing, constant, many; labels come late, and of new classes."""
    late, scale = data.draw(st.booleans()), data.draw(st.sampled_from(["auto", "sparse"]))
    n, width = data.draw(st.integers(0, 40)), data.draw(st.sampled_from([1, 3, 8, 20, 70]))
    rng = random.Random(data.draw(st.integers(0, 99)))
    model = Tracker(data.draw(st.sampled_from([1, 5, 70])), scale=scale, late=late)

    def step(*models):
        x = {f"f{j}": rng.choice([0.0, 1.0, rng.gauss(0, 1)]) for j in range(rng.randint(0, width))}
        output = [one.predict_proba_one(x) for one in models]
        y = rng.choice("ab" if rng.random() < 0.9 else "abcd")
        if rng.random() < 0.9:
            for one in models:
                one.learn_one(x, y)
        return output

    for _ in range(n):
        step(model)
    copy = Tracker.from_bytes(model.to_bytes())
    for _ in range(15):
        first, others = step(model, copy)
        assert first == others
    assert copy.to_bytes() == model.to_bytes()


def test_the_bytes_of_another_class_are_refused_by_name():
    data = LBP(3).to_bytes()
    assert type(KernelClassifier.from_bytes(data)) is LBP
    with pytest.raises(CheckpointError, match=r"of LBP, not of Tracker: use LBP\.from_bytes"):
        Tracker.from_bytes(data)
    with pytest.raises(CheckpointError, match="of OneVsRest, not of LBP"):
        LBP.from_bytes(OneVsRest(LBP(3)).to_bytes())


def test_another_version_is_refused_by_name(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_format, "FORMAT", _format.FORMAT + 1)
        newer = LBP(3).to_bytes()
    with pytest.raises(CheckpointError, match=f"the model was .* version {_format.FORMAT + 1}"):
        LBP.from_bytes(newer)


def test_a_checkpoint_is_none_and_none_is_a_checkpoint():
    with pytest.raises(CheckpointError, match="it is a checkpoint"):
        from_bytes(to_bytes(Checkpoint(LBP(3), {})))


MODELS = [learnt(LBP(4)), learnt(Tracker(4)), learnt(OneVsRest(Averaged(LBP(4))))]
BYTES = [model.to_bytes() for model in MODELS]


def use(data):
    """Build what may be forged: what is accepted may fail, but not crash the process."""
    try:
        model = from_bytes(data)
    except CheckpointError:
        return
    with suppress(Exception):  # nonsense in the model, not in memory
        learnt(model, 20).to_bytes()


@pytest.mark.parametrize(
    ("model", "forge"),
    [
        (LBP(4), lambda m: setattr(m._supports, "budget", 3)),
        (LBP(4), lambda m: m._supports.store.scale_coefficients(math.nan)),
        (Averaged(LBP(4)), lambda m: setattr(m, "_calibration", Calibration(math.nan))),
        (OneVsRest(LBP(4)), lambda m: setattr(m, "_calibration", Calibration(0.0))),
        (OneVsRest(LBP(4)), lambda m: setattr(m.models["a"]._supports, "coefficient_factor", 0.0)),
        (OneVsRest(LBP(4)), lambda m: setattr(m.models["a"]._supports, "budget", 3)),
        (OneVsRest(LBP(4)), lambda m: m._shared.coefficients.matrix.fill(math.nan)),
        (OneVsRest(LBP(4)), lambda m: m._shared.coefficients.matrix.fill(1.0)),
        (LBSOP(4), lambda m: m._inverse._gram.fill(math.nan)),
        (LBSOP(4), lambda m: m._inverse._inverse.resize((8, 8), refcheck=False)),
        (LBSOP(4), lambda m: setattr(m._inverse, "_inverse", m._inverse._inverse.copy("C"))),
        (LBSOP(4), lambda m: setattr(m, "_inverse", None)),
        (LBSOP(4), lambda m: m._signs.fill(0.0)),
        (LBSOP(4), lambda m: m._signs.fill(1.0)),
        (LBSOP(4), lambda m: m._supports.evict(0)),
        (Projectron(0.1), lambda m: m._projector._factor._lower.fill(math.inf)),
        (Projectron(0.1), lambda m: m._projector._factor._lengths.resize(3, refcheck=False)),
        (CKS(4), lambda m: m._rest.values.fill(math.nan)),
        (CKS(4), lambda m: m._rest.sizes.resize(3, refcheck=False)),
        (CKS(4), lambda m: m._rest._born.fill(math.inf)),
        (MIRA(budget=4, cache="fixed"), lambda m: m._prototypes.matrix.fill(math.inf)),
        (MIRA(budget=4, cache="fixed"), lambda m: m._prototypes.matrix[:3].fill(1.0)),
        (MIRA(budget=4, cache="fixed"), lambda m: m._prototypes.labels.append("a")),
        (MIRA(budget=4, cache="fixed"), lambda m: m._prototypes.labels.append([])),
        (
            MIRA(budget=4, cache="fixed"),
            lambda m: setattr(m._prototypes, "matrix", m._prototypes.matrix[:, :5]),
        ),
        (
            MIRA(budget=4, cache="fixed"),
            lambda m: setattr(m._prototypes, "matrix", m._prototypes.matrix[:2]),
        ),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(model, forge):
    model = model.clone()
    for i in range(40):
        x = {"u": float(i % 7), "v": float(i % 5), f"w{i % 11}": 1.0}
        model.learn_one(x, "abc"[i % 3] if type(model) in {OneVsRest, MIRA} else i % 2)
    from_bytes(model.to_bytes())
    forge(model)
    with pytest.raises(CheckpointError, match="inconsistent"):
        from_bytes(model.to_bytes())


def test_a_label_that_differs_from_itself_is_stored():
    model = MIRA()
    model.learn_one({"u": 1.0}, ("a", math.nan))
    model.learn_one({"v": 1.0}, "b")
    copy = from_bytes(model.to_bytes())
    assert str(copy.predict_one({"u": 1.0})) == "('a', nan)"
    assert copy.to_bytes() == model.to_bytes()


@given(st.data())
def test_whatever_is_cut_or_changed_is_noticed(data):
    whole = data.draw(st.sampled_from(BYTES))
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    for damaged in (whole[:at], bytes(changed), whole + whole[:1]):
        with pytest.raises(DamagedCheckpointError):
            from_bytes(damaged)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(st.data())
def test_what_is_forged_is_refused_or_harmless(data):
    """The checksum is right, as whoever forges can compute it."""
    payload = bytearray(_format.unseal("model", data.draw(st.sampled_from(BYTES))).payload)
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(payload)) | st.just(len(payload)))
    use(_format.seal(b"", [bytes(payload[:cut])]))


@given(st.binary(max_size=64))
def test_any_payload_is_refused(payload):
    with pytest.raises(CheckpointError):
        from_bytes(_format.seal(b"", [payload]))
