"""What a checkpoint keeps of a model, and what it refuses to build."""

import itertools
import json
import random
import struct
from array import array

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drift.errors import CheckpointError
from drift.models import (
    LBP,
    MIRA,
    MODELS,
    MRBP,
    RBP,
    RBSOP,
    Averaged,
    Forgetron,
    KernelClassifier,
    OneVsRest,
    Perceptron,
    Projectron,
    ProjectronPlusPlus,
    Tracker,
)
from drift.models._base.guard import Guard
from drift.models._state import codec, kinds
from drift.models._state.codec import decode, encode
from drift.models._store import built, plain, precision
from drift.models._store.calibration import Calibration
from tests.models.cases import CASES, EVERY_KERNEL, Laplace, canonical
from tests.models.streams import degenerate_stream, drifting_stream, huge_stream

kinds.register(Laplace)


class Unknown(Perceptron):
    """A user's algorithm, not registered."""


def assert_goes_on(original, examples, before):
    """Train on some examples, copy, and train both on the others."""
    examples = list(examples)
    for x, y in examples[:before]:
        original.learn_one(x, y)
    copy = decode(encode(original))
    assert canonical(copy, shared=False) == canonical(original, shared=False)
    for x, y in examples[before:]:
        assert copy.predict_proba_one(x) == original.predict_proba_one(x)
        original.learn_one(x, y)
        copy.learn_one(x, y)
    assert canonical(copy, shared=False) == canonical(original, shared=False)
    assert encode(copy) == encode(original)
    assert encode(decode(encode(original, narrow=False))) == encode(original)
    return copy


def topics(stream):
    """Examples of four classes, made of those of two."""
    return [(x, f"topic {len(x) % 2}{'+' if y else '-'}") for x, y in stream]


WRAPPERS = {
    "shared": OneVsRest(RBP(6, seed=1)),
    "shared-scaled": OneVsRest(Forgetron(6)),
    "shared-bias": OneVsRest(Perceptron(bias=True)),
    "unshared": OneVsRest(RBSOP(6, seed=1)),
    "unshared-projected": OneVsRest(Projectron(0.5)),
    "of-averages": OneVsRest(Averaged(LBP(6))),
    "average-multiclass": Averaged(MRBP(6, seed=2)),
    "mira": MIRA(budget=6, cache="fixed"),
    "mira-variable": MIRA(cache="variable"),
    "mrbp": MRBP(6, seed=2),
    "projected-multiclass": ProjectronPlusPlus(0.5),
    "tracker": Tracker(6),
    "tracker-sparse": Tracker(6, scale="sparse"),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_with_every_kernel_goes_on_as_the_original(name):
    parameters = {"budget": 7, "seed": 3}
    model_class = MODELS[name]
    own = {k: v for k, v in parameters.items() if k in model_class().__dict__}
    if name == "MIRA":
        own = {}
    for kernel in EVERY_KERNEL.values():
        assert_goes_on(model_class(kernel=kernel, **own), drifting_stream(60), 35)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stream", [degenerate_stream, huge_stream])
def test_every_case_goes_on_on_hard_streams(case, stream):
    kernel = None if stream is degenerate_stream else EVERY_KERNEL["rbf"]
    assert_goes_on(CASES[case].model(kernel, 5), itertools.islice(stream(), 80), 40)


@pytest.mark.parametrize("name", list(MODELS))
def test_averages_go_on(name):
    assert_goes_on(Averaged(MODELS[name]()), drifting_stream(60), 35)


@pytest.mark.parametrize("name", WRAPPERS)
def test_models_of_several_classes_go_on(name):
    assert_goes_on(WRAPPERS[name].clone(), topics(drifting_stream(120)), 60)


@pytest.mark.parametrize("name", ["shared", "unshared", "mrbp", "tracker"])
@pytest.mark.parametrize("store", ["plain", "float64"])
def test_other_stores_go_on(name, store, monkeypatch):
    if store == "plain":
        monkeypatch.setattr(built, "ColumnStore", plain.ColumnStore)
        monkeypatch.setattr(built, "Guard", Guard)
        monkeypatch.setattr(built, "Calibration", Calibration)
    else:
        monkeypatch.setattr(precision, "_column_type", "float64")
    assert_goes_on(WRAPPERS[name].clone(), topics(drifting_stream(120)), 60)


def test_a_model_that_has_learnt_nothing():
    for model in [*(model_class() for model_class in MODELS.values()), OneVsRest(LBP(3))]:
        assert_goes_on(model, drifting_stream(10), 0)


def test_classes_share_their_store_in_the_copy():
    copy = assert_goes_on(OneVsRest(LBP(5)), topics(drifting_stream(60)), 30)
    stores = {id(model._supports._shared) for model in copy.models.values()}
    assert stores == {id(copy._shared)}


def test_the_kernel_is_one_object_in_the_copy():
    model = decode(encode(RBP(kernel=Laplace(0.25))))
    assert model.kernel is model._supports.kernel
    assert model.kernel == Laplace(0.25)


NAMES = [
    "word",
    "",
    "日本",
    "\ud83d\ude00",  # two lone surrogates, which JSON would make one character
    "\U0001f600",
    "\ud800",
    7,
    -(2**63),
    2**200,
    -0.5,
    1e308,
    float("inf"),
    None,
    True,
    b"\x00\xff",
    ("n", ("gram", 2.5)),
    frozenset({3}),
    np.int64(12),
    np.str_("numpy"),
    np.float32(0.1),
]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names_and_labels_of_any_kind(name):
    model = OneVsRest(LBP(5))
    own = "none" if name is None or isinstance(name, (float, np.floating)) else name
    model.learn_one({name: 1.0, "other": 0.5}, own)
    model.learn_one({name: 2.0}, "x")
    copy = decode(encode(model))
    assert canonical(copy, shared=False) == canonical(model, shared=False)
    [label, _] = copy.models
    assert label == own
    assert type(label) is type(own)
    assert copy.decision_function_one({name: 2.0}) == model.decision_function_one({name: 2.0})


def values():
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters(codec=None)),
        st.binary(max_size=9),
    )
    return st.recursive(
        scalars | st.lists(scalars) | st.builds(lambda v: array("d", v), st.lists(st.floats())),
        lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(scalars, inner),
        max_leaves=12,
    )


def held(model):
    return model.extra


@given(values())
@example([1, 2**63, -(2**63), -(2**63) - 1])
@example([1e300, -0.0, float("nan"), float("-inf")])
def test_any_value_comes_back(value):
    model = Perceptron()
    model.extra = value
    assert canonical(held(decode(encode(model))), shared=False) == canonical(value, shared=False)


@given(
    st.sampled_from(["?", "b", "B", "h", "H", "i", "I", "q", "Q", "f", "d"]),
    st.lists(st.integers(0, 1) | st.integers(-(2**63), 2**64 - 1), max_size=8),
    st.sampled_from("CF"),
)
def test_arrays_come_back(kind, numbers, order):
    wrapped = np.array([n % 2**64 for n in numbers], dtype=np.uint64)
    with np.errstate(all="ignore"):
        value = wrapped.view(np.float64).astype(kind) if kind in "fd" else wrapped.astype(kind)
    value = value.reshape((2, -1), order=order) if len(value) % 2 == 0 else value
    model = Perceptron()
    model.extra = [value, value]
    first, second = held(decode(encode(model)))
    assert first is second
    assert first.dtype == value.dtype
    assert first.flags.f_contiguous == value.flags.f_contiguous
    assert (first.shape, first.tobytes()) == (value.shape, value.tobytes())


@given(st.integers(0, 2**64 - 1), st.integers(1, 200), st.floats(0, 1))
def test_numbers_come_back_among_zeros(bits, n, share):
    numbers = np.array([bits, 1 << 63, *range(n)], np.uint64)  # the second one is -0.0
    numbers[np.random.default_rng(n).random(n + 2) < share] = 0
    for kind in ("<f8", "<f4", "<i8", "|u1"):
        value = numbers.view(np.float64) if kind == "<f8" else numbers.astype(kind)
        model = Perceptron()
        model.extra = [value, array("d", value.tobytes())] if kind == "<f8" else [value, [0]]
        first, second = held(decode(encode(model)))
        assert (first.dtype, first.tobytes()) == (value.dtype, value.tobytes())
        assert second == model.extra[1] or second.tobytes() == value.tobytes()  # nan is not nan
    model.extra = np.zeros(8_000)
    assert len(encode(model)) < 2_000


@given(
    st.lists(st.floats(width=64), min_size=18, max_size=18),
    st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([(1, 1), (3, 3), (2, 3, 3), (2, 1, 3, 3), (0, 3, 3), (18, 1, 1)]),
)
def test_matrices_that_mirror_themselves_but_for_rounding_come_back(numbers, apart, shape):
    value = np.resize(numbers, shape)
    value = np.where(np.tri(shape[-1], k=-1).astype(bool), value.swapaxes(-1, -2), value)
    bits = value.view(np.int64)
    if value.size:
        with np.errstate(over="ignore"):
            bits[..., -1, 0] += np.int64(apart)  # last places
    model = Perceptron()
    model.extra = value
    copy = held(decode(encode(model)))
    assert (copy.shape, copy.dtype, copy.tobytes()) == (value.shape, value.dtype, value.tobytes())
    assert copy.flags.c_contiguous
    copy[...] = 0.0  # it may be written to


def test_matrices_that_mirror_themselves_take_half():
    model, n = Perceptron(), 50
    square = np.random.default_rng(0).random((n, n))
    model.extra = (square + square.T) * (1 + 1e-15 * square)
    taken = len(encode(model))
    model.extra = None
    assert 4 * n * (n + 1) < taken - len(encode(model)) < 4 * n * (n + 1) + n * n + 100


@pytest.mark.parametrize(
    ("kind", "numbers", "size"),
    [
        *(("d", [1.0, 0.5], 4), ("d", [0.1, 0.5], 8), ("f", [1.0, 0.1], 4), ("e", [1.0, 2.0], 2)),
        *(("q", [0, 255], 1), ("q", [-1, 255], 2), ("q", [0, 65_536], 4), ("q", [0, 2**32], 8)),
    ],
)
def test_numbers_take_no_more_bytes_than_they_need(kind, numbers, size):
    narrow = codec._narrowest(np.array(numbers, dtype=kind))
    assert (narrow.dtype.itemsize, narrow.tolist()) == (size, np.array(numbers, kind).tolist())


def test_random_generators_go_on():
    model = Perceptron()
    model.extra = random.Random(5)
    model.extra.gauss(0, 1)  # leaves one over
    copy = held(decode(encode(model)))
    assert [copy.gauss(0, 1) for _ in range(5)] == [model.extra.gauss(0, 1) for _ in range(5)]
    assert copy.random() == model.extra.random()


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (len, "builtin_function_or_method"),
        (Unknown(), "Unknown"),
        (object(), "object"),
        (1j, "complex"),
        (np.array([object()]), "object"),
        (array("u", "x"), "'u'"),
        (lambda: 0, "function"),
    ],
)
def test_other_kinds_are_refused_by_name(value, names):
    model = Perceptron()
    model.extra = value
    with pytest.raises(CheckpointError, match=names):
        encode(model)


def test_what_holds_itself_is_refused():
    model = Perceptron()
    model.extra = [model]
    with pytest.raises(CheckpointError, match="holds itself"):
        encode(model)


def test_a_class_that_is_not_registered_says_how_to():
    with pytest.raises(CheckpointError, match=r"Unknown.*drift\.consumers\.register"):
        encode(Unknown())


def parts(payload):
    (size,) = struct.unpack_from("<Q", payload)
    return json.loads(payload[8 : 8 + size]), payload[8 + size :]


def whole(tree, blobs=b""):
    text = json.dumps(tree).encode()
    return struct.pack("<Q", len(text)) + text + blobs


@pytest.mark.parametrize(
    "tree",
    [
        1,
        None,
        "os.system",
        {},
        [],
        ["l"],
        ["o", "os.system", {}],
        ["o", "object", {}],
        ["o", "drift.models.budget.RBP", {}],
        ["o", "RBF", {"gamma": 1.0}],
        ["k", "RBF", {"gamma": -1.0}],
        ["k", "RBF", {"other": -1.0}],
        ["k", "RBP", {"budget": 3}],
        ["k", "RBF", {}],
        ["o", "RBP", {"__class__": 1}],
        ["o", "RBP", {"a b": 1}],
        ["o", "SupportSet", {}],
        ["r", 0],
        ["r", -1],
        ["n", "|O", "C", [1], "|u1", 0],
        ["n", "<f8", "C", [10**9, 10**9], "<f8", 0],
        ["n", "<f8", "C", [10**9], "z<f8", 0],
        ["n", "<f8", "C", [8], "zz<f8", 0],
        ["y", [2, 3], "<f8", 0, "|i1", 0],
        ["y", [0, 10**6, 10**6], "<f8", 0, "|i1", 0],
        ["y", [10**6, 10**6], "z<f8", 0, "z|i1", 0],
        ["y", [3], "<f8", 0, "|i1", 0],
        ["y", [], "<f8", 0, "|i1", 0],
        ["g", "O", "00"],
        ["i", "7" * 10_000],
        ["p", [[]]],
        ["d", ["l"], 1],
        ["d", [["f0", 1]]],
        ["h", ["l"], 1],
        ["h", 1],
    ],
    ids=json.dumps,
)
def test_forged_trees_are_refused(tree):
    with pytest.raises(CheckpointError):
        decode(whole(tree))


def test_a_tree_of_any_depth_is_refused():
    deep = b'["t",' * 100_000 + b"1" + b"]" * 100_000
    with pytest.raises(CheckpointError):
        decode(struct.pack("<Q", len(deep)) + deep)


def trained():
    model = OneVsRest(LBP(4))
    for x, y in topics(drifting_stream(40)):
        model.learn_one(x, y)
    yield model
    model = RBP(4, seed=1)
    for x, y in drifting_stream(40):
        model.learn_one(x, y)
    yield model
    model = Tracker(4)
    for x, y in topics(drifting_stream(40)):
        model.learn_one(x, y)
    yield model


def paths(node, path=()):
    """Every place in a tree."""
    yield path
    items = enumerate(node) if isinstance(node, list) else ()
    for key, part in node.items() if isinstance(node, dict) else items:
        yield from paths(part, (*path, key))


def put(tree, path, value):
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["RBF", "RBP", "SupportSet", "SharedStore", "l", "r", "p"]),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=6,
)


def use(payload):
    """Decode what may be forged; what is accepted may fail, but not crash the process."""
    try:
        model = decode(payload)
    except CheckpointError:
        return
    try:
        for x, y in topics(drifting_stream(30)) if model._multiclass else drifting_stream(30):
            model.predict_one(x)
            model.learn_one(x, y)
        encode(model)
    except Exception:  # noqa: BLE001, S110 - nonsense in the model, not in memory
        pass


FORGED = [parts(encode(model)) for model in trained()]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(st.data())
def test_a_tree_changed_anywhere_is_refused_or_harmless(data):
    tree, blobs = data.draw(st.sampled_from(FORGED))
    tree = json.loads(json.dumps(tree))
    for _ in range(data.draw(st.integers(1, 2))):
        put(tree, data.draw(st.sampled_from(list(paths(tree))[1:])), data.draw(JSON))
    use(whole(tree, blobs))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(st.data())
def test_numbers_changed_anywhere_are_refused_or_harmless(data):
    tree, blobs = data.draw(st.sampled_from(FORGED))
    changed = bytearray(blobs)
    changed[data.draw(st.integers(0, len(blobs) - 1))] = data.draw(st.integers(0, 255))
    use(whole(tree, bytes(changed)))


@given(JSON)
def test_any_json_is_refused_or_harmless(tree):
    use(whole(tree))


def store_of(tree):
    """Attributes of a support set, and of its store."""
    supports = tree[2]["_supports"][2]
    return supports, supports["store"][1]


@pytest.mark.parametrize(
    "change",
    [
        lambda s, put: s.update(budget=-3),
        lambda s, put: put("n_added", -1),
        lambda s, put: put("n_added", 2**63),
        lambda s, put: put("serials", ["p", [1]]),
        lambda s, put: put("capacity", 1),
        lambda s, put: put("capacity", 2**30),
        lambda s, put: put("capacity", -1),
        lambda s, put: put("free_slots", ["p", [0]]),
        lambda s, put: put("free_slots", ["p", [99]]),
        lambda s, put: put("free_columns", ["p", [0]]),
        lambda s, put: put("dense", ["p", [10**6]]),
        lambda s, put: put("names", ["p", ["w1", "w1"]]),
        lambda s, put: put("wide", 2),
    ],
)
def test_a_store_that_does_not_hold_together_is_refused(change):
    tree, blobs = json.loads(json.dumps(FORGED[1][0])), FORGED[1][1]
    supports, store = store_of(tree)
    change(supports, store.__setitem__)
    with pytest.raises(CheckpointError, match="does not hold together"):
        decode(whole(tree, blobs))


def test_every_model_has_a_name_to_be_stored_by():
    assert all(kinds.class_of(kinds.name_of(model)) is model for model in MODELS.values())
    with pytest.raises(CheckpointError):
        kinds.name_of(KernelClassifier)


def test_a_model_without_one_of_its_attributes_is_refused_when_it_is_read():
    tree, blobs = json.loads(json.dumps(FORGED[1][0])), FORGED[1][1]
    del tree[2]["n_updates"]
    with pytest.raises(CheckpointError, match="without n_updates"):
        decode(whole(tree, blobs))
