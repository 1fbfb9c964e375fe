"""A batch is learnt exactly as the loop over its rows would, in whatever form it comes."""

import pickle
import tracemalloc
from collections import ChainMap, Counter, OrderedDict, UserDict
from functools import lru_cache, partial
from itertools import islice, pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from drift.errors import FeatureError, LabelError, ParameterError
from drift.explain import Explainer
from drift.kernels import RBF, Linear, Polynomial
from drift.models import (
    LBP,
    MIRA,
    MRBP,
    Averaged,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    Tracker,
    VotedPerceptron,
    compiled,
)
from drift.models._base.rows import Rows, numbered_objects, rows_to_check
from drift.models._store import built
from drift.streams import Documents
from tests.models.cases import CASES
from tests.models.forms import FORMS, loop
from tests.models.streams import STREAMS, as_arrays, drifting_stream

NAMES = ["a", "b", "c", "d", "e"]
value = st.one_of(st.just(float("nan")), st.just(0.0), st.integers(-3, 3), st.floats(-2, 2))
row = st.dictionaries(st.sampled_from(NAMES), value)
batch = st.lists(st.tuples(row, st.booleans()), min_size=1, max_size=8)


def as_frame(rows):
    # The names themselves: pandas would make Arrow strings of them, and new ones of those.
    names = pd.Index(dict.fromkeys(name for x in rows for name in x), dtype=object)
    return pd.DataFrame(rows, dtype=float, columns=names)


@settings(max_examples=(3 if compiled else 2) * settings().max_examples)
@given(batches=st.lists(batch, min_size=1, max_size=6), first=st.integers(0, 4))
def test_any_chunking_of_ragged_rows(batches, first):
    """Drawing takes longer than learning: a fifth of the models has each, every other as frames."""
    labels = [[y for _, y in examples] for examples in batches]
    rows = [[x for x, _ in examples] for examples in batches]
    forms = rows, [*map(as_frame, rows)]
    for i, case in enumerate([*CASES][first::5]):
        one, many = (CASES[case].model(RBF(0.5), 4) for _ in range(2))
        for examples, X, y in zip(batches, forms[i % 2], labels, strict=True):
            expected = loop(one, examples)
            assert list(many.predict_learn_many(X, y)) == expected, case
            assert pickle.dumps(many) == pickle.dumps(one), case


def as_named(X):
    names = [f"name {j}" for j in range(X.shape[1])]
    return names, [dict(zip(names, row, strict=True)) for row in X.tolist()]


NAMED_FORMS = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=pd.Index(names, dtype=object)),
    "pandas, two types": lambda X, names: pd.DataFrame(
        X, columns=pd.Index(names, dtype=object)
    ).astype({names[0]: np.float32}),
    "polars": lambda X, names: pl.DataFrame(X, schema=names),
    "pyarrow": lambda X, names: pa.table(dict(zip(names, X.T, strict=True))),
    "sparse pandas": lambda X, names: pd.DataFrame.sparse.from_spmatrix(
        sparse.csr_matrix(X), columns=pd.Index(names, dtype=object)
    ),
}


X, LABELS = as_arrays(drifting_stream())
ROWS = [dict(enumerate(row)) for row in X.tolist()]


@lru_cache(maxsize=1)  # for one form after the other
def looped(case):
    """A model that learnt `ROWS`, its pickle, what it predicted before each, and says of some."""
    one = CASES[case].model(None, 9)
    predictions = loop(one, zip(ROWS, LABELS, strict=True))
    learnt = pickle.dumps(one)
    calls = one.decision_function_one, one.predict_one, one.predict_proba_one
    return learnt, predictions, *([call(x) for x in ROWS[:20]] for call in calls)


#: Each way of reading rows; what else a form may be has been made one of these before a model.
WAYS = ("array", "csr", "dicts")
FORMS_OF = [
    *((case, form) for case in CASES for form in WAYS),
    *((case, form) for case in ("LBP", "SOP", "ROMMA-noise") for form in FORMS if form not in WAYS),
]


@pytest.mark.parametrize(("case", "form"), FORMS_OF)
def test_every_form_of_batch_equals_the_loop(case, form):
    y = LABELS
    learnt, expected, scores, decisions, chances = looped(case)
    many = CASES[case].model(None, 9)
    batches = [(X[:70], y[:70]), (X[70:71], np.array(y[70:71])), (X[71:], pd.Series(y[71:]))]
    predictions = []
    for rows, labels in batches:
        predictions.extend(many.predict_learn_many(FORMS[form](rows), labels))
    assert predictions == expected
    assert pickle.dumps(many) == learnt
    rows = FORMS[form](X[:20])
    assert many.decision_function_many(rows).tolist() == scores
    assert list(many.predict_many(rows)) == decisions
    probabilities = np.asarray(many.predict_proba_many(rows))
    assert probabilities[:, 1].tolist() == [chance[True] for chance in chances]


FEW = {
    "LBP": lambda: LBP(9),
    "MIRA": lambda: MIRA(0.01, 9, "fixed"),
    "MRBP": lambda: MRBP(9, seed=1),
    "OneVsRest": lambda: OneVsRest(LBP(9)),
    "Tracker": lambda: Tracker(20),
    "sparse Tracker": lambda: Tracker(20, scale="sparse"),
    "VotedPerceptron": VotedPerceptron,
}


@pytest.mark.parametrize("form", NAMED_FORMS)
@pytest.mark.parametrize("name", FEW)
def test_frames_with_names_equal_the_loop(name, form):
    """Names are no columns' numbers: they come and go with the supports that have them."""
    whole = X.astype(np.float32).astype(float)
    whole[::3, :2] = np.nan if "sparse" not in form else 0.0
    names, rows = as_named(whole)
    if "sparse" in form:
        rows = [{feature: v for feature, v in x.items() if v} for x in rows]
    one, many = FEW[name](), FEW[name]()
    expected = loop(one, zip(rows, LABELS, strict=True))
    predictions = []
    for part in (slice(70), slice(70, 71), slice(71, None)):
        backwards = list(range(len(names)))[:: -1 if part.start == 71 else 1]
        batch = NAMED_FORMS[form](whole[part][:, backwards], [names[j] for j in backwards])
        column = many.predict_learn_many(batch, LABELS[part])
        predictions += column.to_pylist() if form == "pyarrow" else list(column)
    assert predictions == expected
    assert many.to_bytes() == one.to_bytes()
    assert many.predict_proba_many(rows)[5].tolist() == [*one.predict_proba_one(rows[5]).values()]


ONE_COLUMN = {
    "sparse": (
        pd.arrays.SparseArray([0.0, 1.0, 0.0, 2.0], fill_value=0.0),
        [{}, {"a": 1.0}, {}, {"a": 2.0}],
    ),
    "masked": (pd.array([1.0, None, 0.0], dtype="Float64"), [{"a": 1.0}, {"a": np.nan}, {"a": 0}]),
    "whole": (pd.array([1, 3, 0], dtype="Int64"), [{"a": 1}, {"a": 3}, {"a": 0}]),
    "bools": ([True, False, True], [{"a": 1}, {"a": 0}, {"a": 1}]),
}


@pytest.mark.parametrize("column", ONE_COLUMN)
@pytest.mark.parametrize("make", [lambda: LBP(9), lambda: Tracker(20)], ids=["LBP", "Tracker"])
def test_a_frame_of_one_column_of_any_type_equals_the_loop(make, column):
    values, rows = ONE_COLUMN[column]
    y = [True, False, True, True][: len(rows)]
    one, many = make(), make()
    loop(one, zip(rows, y, strict=True))
    many.predict_learn_many(pd.DataFrame({"a": values}), y)
    assert many.to_bytes() == one.to_bytes()


AVERAGED = {
    "LBP": lambda: Averaged(LBP(9)),
    "PassiveAggressive": lambda: Averaged(PassiveAggressive(budget=9)),
    "Perceptron": lambda: Averaged(Perceptron(RBF(0.5))),
}


@pytest.mark.parametrize("third", [False, True])
@pytest.mark.parametrize("form", ["array", "csr", "dicts", "frame"])
@pytest.mark.parametrize("name", AVERAGED)
def test_averaged_learns_rows_without_an_update_as_the_loop_does(name, form, third):
    one, many = AVERAGED[name](), AVERAGED[name]()
    y = [*LABELS]
    if third and name == "PassiveAggressive":
        y[90] = "other"
    for model in (one, many):
        for x, label in zip(ROWS[:5], y, strict=False):
            model.learn_one(x, label, 0.3)  # examples no longer add up to whole numbers
    for x, label in zip(ROWS[5:], y[5:], strict=True):
        one.learn_one(x, label)
    for part in (slice(5, 7), slice(7, 90), slice(90, None)):
        many.learn_many(FORMS[form](X[part]), y[part])
    assert pickle.dumps(many) == pickle.dumps(one)


class Failing(Linear):
    """A kernel that cannot compare examples of norm 3."""

    def __call__(self, dot, squared_norm_a, squared_norm_b):
        if np.any(squared_norm_b == 9.0):
            raise LookupError  # an ArithmeticError would say that there is no finite value
        return super().__call__(dot, squared_norm_a, squared_norm_b)


@pytest.mark.parametrize("weight", [float(2**53 + 4), 1e100])
def test_averaged_learns_batches_after_a_weight_that_is_no_longer_counted_in_ones(weight):
    one, many = (Averaged(Perceptron(RBF(0.5))) for _ in range(2))
    for model in (one, many):
        model.learn_one({0: 1.0}, True, weight)
    loop(one, zip(ROWS[:40], LABELS, strict=False))
    many.learn_many(X[:40], LABELS[:40])
    assert pickle.dumps(many) == pickle.dumps(one)


@pytest.mark.parametrize("weight", [0.01, 1.0, 16.0])
def test_averaged_calibrates_at_every_sixteenth_example_whatever_it_weighs(weight):
    model, slopes = Averaged(Perceptron(RBF(0.5))), []
    for x, y in zip(ROWS[:49], LABELS, strict=False):
        model.learn_one(x, y, weight)
        slopes.append(model._calibration.state())
    changes = [i for i, (a, b) in enumerate(pairwise(slopes), start=1) if a != b]
    assert changes == [16, 32, 48]


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 1.0, 1.0]])
@pytest.mark.parametrize(
    "make", [Perceptron, lambda k: MRBP(9, k, seed=1), lambda k: Averaged(Perceptron(k))]
)
def test_an_error_while_a_batch_is_learnt_names_the_row_and_counts_the_rows_before(make, weights):
    def infinite(dot, _, squared_norm_b):
        return np.where(squared_norm_b == 9.0, np.inf, 1.0 + dot)

    values, y = np.array([[1.0], [-2.0], [3.0], [1.0]]), [True, False, True, False]
    for kernel, error in ((Failing(), LookupError), (infinite, FeatureError)):
        model, expected = make(kernel), make(kernel)
        with pytest.raises(error) as raised:
            model.learn_many(values, y, weights)
        assert raised.value.rows_learnt == 2
        told = [str(raised.value), *getattr(raised.value, "__notes__", [])]
        assert [line for line in told if "row 2" in line]
        for k in range(2):
            expected.learn_one({0: values[k, 0]}, y[k], 1.0 if weights is None else weights[k])
        assert model.n_updates == expected.n_updates
        assert model.predict_proba_one({0: 1.0}) == expected.predict_proba_one({0: 1.0})


def test_averaged_counts_the_rows_before_one_that_fails():
    one, many = (Averaged(Perceptron(Failing())) for _ in range(2))
    values = np.array([[1.0], [2.0], [-1.0], [2.0], [3.0], [1.0]])
    y = [True, True, False, True, True, False]
    with pytest.raises(LookupError):
        loop(one, zip(map(dict, map(enumerate, values.tolist())), y, strict=True))
    with pytest.raises(LookupError):
        many.learn_many(values, y)
    assert pickle.dumps(many) == pickle.dumps(one)


class Keeping(LBP):
    """A model whose hook keeps examples."""

    def _update(self, x, sign, score):
        KEPT.append(x)
        super()._update(x, sign, score)


KEPT = []


def test_an_example_that_a_hook_keeps_stays_as_it_was():
    KEPT.clear()
    loop(Keeping(9), zip(ROWS, LABELS, strict=True))
    expected = [*KEPT]
    assert len(expected) > 2
    KEPT.clear()
    Keeping(9).learn_many(X, LABELS)
    assert [{j: v for j, v in x.items() if v == v != 0.0} for x in KEPT] == [
        {j: v for j, v in x.items() if v == v != 0.0} for x in expected
    ]


entry = st.one_of(st.integers(-9, 9).map(float), st.sampled_from([np.nan, np.inf, -1e30]))


@given(
    rows=st.lists(st.lists(entry, min_size=3, max_size=3), min_size=1), largest=st.integers(-1, 99)
)
def test_rows_are_checked_whose_squares_exceed_the_bound(rows, largest):
    values = np.array(rows)
    sums = [sum(v * v for v in x if v == v) for x in rows]
    expected = [i for i, total in enumerate(sums) if not total <= largest]
    for form in (values, np.asfortranarray(values), values.astype(np.float32)):
        for check in (built.rows_to_check, rows_to_check):
            assert check(Rows(form, 3), float(largest)) == expected


def test_a_dense_array_is_read_where_it_is():
    X = np.random.default_rng(0).normal(size=(50_000, 20))
    y, model = (X[:, 0] > 0.0).tolist(), LBP(3, kernel=Linear())
    model.learn_many(X[:10], y[:10])
    tracemalloc.start()
    try:
        model.learn_many(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 2


@pytest.mark.parametrize("form", ["frame", "array", "dicts"])
def test_a_bad_row_of_a_prediction_is_named(form):
    model = LBP(3)
    model.learn_many(FORMS[form](np.eye(3)), [True, False, True])
    bad = FORMS[form](np.array([[1.0, 2.0, 0.0], [0.0, np.inf, 1.0]]))
    for predict in (model.predict_many, model.predict_proba_many, model.decision_function_many):
        with pytest.raises(FeatureError, match=r"^row 1: feature 1 is inf"):
            predict(bad)


def test_no_rows_have_the_shape_of_the_decisions_of_many():
    binary, classes, untrained = LBP(3), MIRA(), MIRA()
    binary.learn_one({0: 1.0}, True)
    for label in "abc":
        classes.learn_one({0: 1.0}, label)
    for model, shape in ((binary, (0,)), (classes, (0, 3)), (untrained, (0, 0))):
        assert model.decision_function_many([]).shape == shape
        assert model.decision_function_many(np.empty((0, 2))).shape == shape


@pytest.mark.covering(1)
@pytest.mark.usefixtures("tolerance")
@pytest.mark.parametrize("case", CASES)
def test_arrays_and_dicts_agree_on_every_store(case):
    one, many = (CASES[case].model(None, 9) for _ in range(2))
    expected = loop(one, zip(ROWS, LABELS, strict=True))
    assert many.predict_learn_many(sparse.csr_array(X), LABELS).tolist() == expected
    assert many.n_mistakes == one.n_mistakes


@pytest.mark.parametrize("kind", ["ties", "constant", "half empty"])
@pytest.mark.parametrize("kernel", [Linear(), RBF(0.2), Polynomial(4, normalize="rows")], ids=str)
@pytest.mark.parametrize("case", ["Perceptron", "SPA", "RBP", "LBP", "PassiveAggressive"])
def test_dense_rows_on_which_rounding_could_decide(case, kernel, kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(160, 9)) + 0.3
    if kind == "ties":  # the same few rows again and again, and zeros
        X = rng.integers(-2, 3, size=(6, 9))[rng.integers(6, size=160)].astype(float)
        X[80] = 0.0
    elif kind == "constant":  # roundings that all go the same way
        X = np.full((160, 9), 0.1) + 1e-9 * rng.normal(size=(160, 9))
    else:
        X[rng.random(X.shape) < 0.6] = 0.0
    y = (X @ rng.normal(size=9) + 0.3 * rng.normal(size=160) > 0.0).tolist()
    one, many = (CASES[case].model(kernel, 30) for _ in range(2))
    examples = [dict(enumerate(x)) for x in X.tolist()]
    expected = loop(one, zip(examples, y, strict=True))
    predictions = [*many.predict_learn_many(X[:40], y[:40])]
    assert predictions + many.predict_learn_many(X[40:], y[40:]).tolist() == expected
    assert pickle.dumps(many) == pickle.dumps(one)
    assert many.predict_many(X).tolist() == [one.predict_one(x) for x in examples]


@pytest.mark.parametrize("case", CASES)
def test_the_order_of_features_does_not_matter(case):
    for name, stream in STREAMS.items():
        one, other = (CASES[case].model(None, 9) for _ in range(2))
        for x, y in islice(stream(), 100):
            backwards = dict(reversed(x.items()))
            assert other.decision_function_one(backwards) == one.decision_function_one(x), name
            one.learn_one(x, y)
            other.learn_one(backwards, y)
        assert pickle.dumps(other) == pickle.dumps(one), name


def test_results_come_in_the_library_of_the_input():
    model = CASES["RBP"].model(None, 9)
    frame = pd.DataFrame({"a": [1.0, 0.0], "b": [0.0, 1.0]}, index=[7, 9])
    labels = pd.Series([True, False], index=[7, 9], name="spam")
    learnt = model.predict_learn_many(frame, labels)
    assert isinstance(learnt, pd.Series)
    assert learnt.name == "spam"
    assert learnt.index.tolist() == [7, 9]
    probabilities = model.predict_proba_many(frame)
    assert probabilities.columns.tolist() == [False, True]
    assert probabilities.index.tolist() == [7, 9]
    assert isinstance(model.predict_many(pl.DataFrame({"a": [1.0], "b": [0.0]})), pl.Series)
    assert isinstance(model.predict_proba_many(pl.DataFrame({"a": [1.0]})), pl.DataFrame)


@pytest.mark.parametrize("X", [np.empty((0, 3)), [], pd.DataFrame({"a": []}, dtype=float)])
def test_an_empty_batch_changes_nothing(X):
    model = CASES["LBP"].model(None, 9)
    before = pickle.dumps(model)
    assert len(model.predict_learn_many(X, [])) == 0
    assert len(model.predict_many(X)) == 0
    assert pickle.dumps(model) == before


def test_an_array_wider_than_the_table_of_columns():
    wide = sparse.csr_array(([1.0, 2.0, 3.0], ([0, 1, 2], [5, 2**21, 5])), shape=(3, 2**21 + 1))
    narrow = sparse.csr_array(([1.0, 2.0, 3.0], ([0, 1, 2], [5, 7, 5])), shape=(3, 8))
    models = [CASES["LBP"].model(None, 9) for _ in range(2)]
    results = [
        m.predict_learn_many(X, [1, 0, 1]) for m, X in zip(models, (wide, narrow), strict=True)
    ]
    assert results[0].tolist() == results[1].tolist()
    assert models[0].predict_many(narrow[:1]).tolist() == [1]  # and back to a table


def test_a_matrix_with_duplicate_entries_adds_them_up():
    X = sparse.csr_array(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 2))
    model = CASES["Perceptron"].model(None, 9)
    model.learn_many(X, [True])
    assert X.nnz == 2  # the caller's matrix is as it was
    assert model.supports == [({0: 3.0}, 1.0)]


WIDE = {
    "Perceptron": Perceptron,
    "MRBP": lambda: MRBP(9, seed=1),
    "Averaged": lambda: Averaged(Perceptron()),
    "OneVsRest": lambda: OneVsRest(Perceptron()),
    "Tracker": Tracker,
}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil"])
def test_columns_from_2_to_the_31_on_are_features_of_their_own(name, kind):
    rows = [{5: 1.0}, {2**32 + 5: 2.0}, {2**31 + 5: 1.0, 7: 3.0}, {2**31 - 1: 1.0, 2**31: 2.0}]
    i, columns, values = zip(
        *((i, j, v) for i, x in enumerate(rows) for j, v in x.items()), strict=True
    )
    shape = (4, 2**33 if kind in {"csr", "coo"} else 2**32 + 6)
    if kind in {"csc", "lil"}:  # whose memory grows with the width
        rows = [{j % 2**20: v for j, v in x.items()} for x in rows]
        columns, shape = [j % 2**20 for j in columns], (4, 2**20)
    X = sparse.coo_array((values, (i, columns)), shape=shape).asformat(kind)
    y = [True, False, True, False]
    one, many = WIDE[name](), WIDE[name]()
    assert list(many.predict_learn_many(X, y)) == loop(one, zip(rows, y, strict=True))
    assert many.predict_many(X).tolist() == [one.predict_one(x) for x in rows]
    assert [*map(many.predict_proba_one, rows)] == [*map(one.predict_proba_one, rows)]


def test_the_supports_of_columns_from_2_to_the_31_on():
    X = sparse.csr_array(([1.0, 2.0], [5, 2**32 + 5], [0, 1, 2]), shape=(2, 2**33))
    model = Perceptron(Linear())
    model.learn_many(X, [True, False])
    assert model.supports == [({5: 1.0}, 1.0), ({2**32 + 5: 2.0}, -1.0)]
    assert model.decision_function_many(X).tolist() == [1.0, -4.0]


def test_an_array_of_more_columns_than_can_be_numbered_is_refused():
    with pytest.raises(ParameterError, match=r"^X has 4294967297 columns, .* a sparse matrix"):
        Perceptron().learn_many(np.broadcast_to(1.0, (1, 2**32 + 1)), [True])


def tampered(matrix, name, values):
    """A matrix with an array changed after scipy looked at it."""
    setattr(matrix, name, np.array(values))
    return matrix


def lil_with_a_column_too_large():
    matrix = sparse.lil_matrix(np.ones((1, 4)))
    matrix.rows[0][3] = 10**9
    return matrix


one_row = partial(sparse.csr_matrix, shape=(1, 4))
#: SciPy checks the first and last number of `indptr`, and no index.
DAMAGED = {
    "column too large": lambda: one_row(([1.0], [2 * 10**9], [0, 1])),
    "column of 64 bits": lambda: one_row(([1.0], np.array([2**40]), np.array([0, 1]))),
    "column below 0": lambda: one_row(([1.0], [-1], [0, 1])),
    "one column too far": lambda: one_row(([1.0], [4], [0, 1])),
    "ends descend": lambda: sparse.csr_array(([1.0, 1.0], [0, 1], [0, 9, 2]), shape=(2, 4)),
    "ends of nothing": lambda: sparse.csr_array(([], [], [0, 2**30, 0]), shape=(2, 4)),
    "start below 0": lambda: tampered(one_row(([1.0], [1], [0, 1])), "indptr", [-9, 1]),
    "too many ends": lambda: tampered(one_row(([1.0], [1], [0, 1])), "indptr", [0, 1, 1]),
    "too few columns": lambda: tampered(one_row(([1.0, 2.0], [1, 2], [0, 2])), "indices", [1]),
    "no whole columns": lambda: tampered(one_row(([1.0], [1], [0, 1])), "indices", [np.nan]),
    "csc": lambda: sparse.csc_array(([1.0], [10**9], [0, 1, 1, 1, 1]), shape=(1, 4)),
    "bsr": lambda: sparse.bsr_array((np.ones((1, 1, 2)), [2], [0, 1]), shape=(1, 4)),
    "coo row": lambda: tampered(sparse.coo_matrix(([1.0], ([0], [1])), (1, 4)), "row", [10**9]),
    "coo column": lambda: tampered(sparse.coo_matrix(([1.0], ([0], [1])), (1, 4)), "col", [4]),
    "coo length": lambda: tampered(sparse.coo_matrix(([1.0], ([0], [1])), (1, 4)), "col", [1, 1]),
    "lil": lil_with_a_column_too_large,
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("model", [Perceptron, Tracker])
def test_a_damaged_sparse_matrix_is_refused_before_anything_is_read(name, model):
    model = model()
    model.learn_one({1: 1.0}, True)
    before = pickle.dumps(model)
    X = DAMAGED[name]()
    for call in (
        lambda: model.learn_many(X, [True] * X.shape[0]),
        lambda: model.predict_many(X),
        lambda: Explainer(model).explain_many(X),
        lambda: Documents.from_arrays(X, [0] * X.shape[0]),
        lambda: Documents.from_arrays(np.ones((X.shape[0], 1)), X, ["a"] * X.shape[1]),
    ):
        with pytest.raises(ParameterError, match=r"matrix of shape \(.*\) is damaged: its index"):
            call()
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows_in_any_order_and_with_duplicates(index):
    columns, ends = np.array([3, 0, 3, 2, 1], dtype=index), np.array([0, 3, 3, 5], dtype=index)
    X = sparse.csr_array(([1.0, 2.0, 4.0, 8.0, 16.0], columns, ends), shape=(3, 4))
    X.has_canonical_format = True  # a wrong claim changes nothing
    model = Perceptron(Linear())
    model.learn_many(X, [True, False, True])
    # The empty row is a mistake for either label, as every score is 0 there.
    assert model.supports == [({0: 2.0, 3: 5.0}, 1.0), ({}, -1.0), ({1: 16.0, 2: 8.0}, 1.0)]
    blocks = sparse.bsr_array(X.toarray(), blocksize=(1, 2))
    assert model.decision_function_many(blocks).tolist() == [29.0, 0.0, 320.0]


@pytest.mark.usefixtures("tolerance")
@pytest.mark.parametrize("kind", [np.array, sparse.coo_matrix, sparse.csr_array, pd.DataFrame])
@pytest.mark.parametrize("zeros", [False, True])
def test_float16_is_learnt_as_float64(kind, zeros):
    """SciPy makes no such matrix, but takes its values."""
    values = np.arange(1.0, 13.0).reshape(4, 3) / 4.0
    values[2, 1] *= not zeros
    X = kind(values)
    if sparse.issparse(X):
        half = X.copy()
        half.data = X.data.astype(np.float16)
    else:
        half = X.astype(np.float16)
    one, many = LBP(3), LBP(3)
    y = [True, False, True, False]
    assert list(many.predict_learn_many(half, y)) == list(one.predict_learn_many(X, y))
    assert pickle.dumps(many) == pickle.dumps(one)


def test_predictions_come_in_a_column_of_one_kind():
    X, y = np.eye(4), np.array([1, 0, 1, 0])
    for labels in (y, 2 * y - 1):  # what is predicted before the first of them is False
        predictions = CASES["LBP"].model(None, 9).predict_learn_many(X, labels)
        assert predictions.dtype.kind == "i"
        assert predictions.tolist() == loop(
            CASES["LBP"].model(None, 9), zip(map(dict, map(enumerate, X)), labels, strict=True)
        )
    frame = pl.DataFrame(X)
    assert CASES["LBP"].model(None, 9).predict_learn_many(frame, pl.Series(y)).dtype == pl.Int64
    words = MIRA().predict_learn_many(frame, list("abab"))
    assert (words.dtype, words.null_count()) == (pl.String, 1)
    mixed = MIRA().predict_learn_many(frame, ["a", 1, "a", 1])
    assert (mixed.dtype, mixed[0]) == (pl.Object, None)


@pytest.mark.parametrize(
    "number", [built.numbered_objects, numbered_objects], ids=["compiled", "plain"]
)
def test_objects_are_numbered_by_identity_up_to_a_bound(number):
    few = [object() for _ in range(16)]
    order = [3, 3, 0, 15, *range(16), 0]
    distinct, numbers = number([few[k] for k in order])
    assert distinct == [few[k] for k in [3, 0, 15, 1, 2, *range(4, 15)]]
    assert [distinct[k] for k in numbers] == [few[k] for k in order]
    assert number([True, 1, 1.0, True]) == ([True, 1, 1.0], bytearray([0, 1, 2, 0]))
    assert number([]) == ([], bytearray())
    assert number([*few, object()]) is None


@pytest.mark.parametrize("n", [3, 40])
def test_a_column_has_the_labels_of_few_and_of_many_classes(n):
    labels = [f"class {k * k}" for k in range(n)]
    model = MIRA(0.01, 100, "fixed")
    model.learn_many([{k: 1.0} for k in range(n)], labels)
    predicted = model.predict_many(pd.DataFrame(np.eye(n)))
    assert predicted.tolist() == labels


def test_truths_beside_other_whole_labels_are_learnt_once_and_come_back_whole():
    frame, labels = pl.DataFrame({"a": [1.0, 2.0, -1.0, 3.0]}), [True, 2, 5, 2]
    model = MRBP(seed=1)
    predictions = model.predict_learn_many(frame, labels)
    expected = loop(MRBP(seed=1), zip(frame.to_dicts(), labels, strict=True))
    assert predictions.dtype == pl.Int64
    assert predictions.to_list() == expected  # True is 1
    assert model.predict_many(frame).to_list() == [model.predict_one(x) for x in frame.to_dicts()]


@pytest.mark.parametrize("library", [pd, pl])
def test_a_column_of_labels_of_several_types_is_refused_before_it_is_learnt(library):
    X, model = library.DataFrame({"a": [1.0, 2.0, -1.0]}), MRBP(seed=1)
    before = pickle.dumps(model)
    for labels in ([True, 2, 5], ["a", "b", 1]):
        y = pd.Series(labels) if library is pd else pl.Series(labels, dtype=pl.Object)
        with pytest.raises(LabelError, match=r"^row [12]: label .* is of type int, the one before"):
            model.predict_learn_many(X, y)
    y = [1, None, "a"]
    y = pd.Series(y, dtype=object) if library is pd else pl.Series(y, dtype=pl.Object)
    with pytest.raises(LabelError, match=r"^row 2: label 'a' is of type str, the one before of "):
        model.learn_many(X, y, [1, 0, 1])
    assert pickle.dumps(model) == before


def test_arrow_has_a_column_for_labels_of_one_kind():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    X = pa.table({"a": [1.0, 0.0, 1.0, 0.0], "b": [0, 1, 0, 1]})
    signs = CASES["LBP"].model(None, 9).predict_learn_many(X, pa.chunked_array([[1, -1, 1, -1]]))
    assert signs.type == pa.int64()
    assert MIRA().predict_learn_many(X, ["a", "b", "a", "b"]).null_count == 1
    mixed = MIRA().predict_learn_many(X, ["a", (1, 2), "a", (1, 2)])
    assert mixed.tolist() == [None, "a", "a", (1, 2)]  # an array
    assert MIRA().predict_many(X).null_count == 4


def test_before_any_class_there_are_no_columns():
    assert MIRA().predict_proba_many(np.ones((2, 1))).shape == (2, 0)


def test_what_is_masked_or_filled_with_nan_is_absent():
    masked = np.ma.masked_array([[1, 2], [3, 4]], mask=[[True, False], [False, False]])
    filled = pd.DataFrame({0: pd.arrays.SparseArray([np.nan, 3.0]), 1: [2.0, 4.0]})
    filled[1] = pd.arrays.SparseArray(filled[1])
    models = [LBP(kernel=Linear()) for _ in range(2)]
    for model, X in zip(models, (masked, filled), strict=True):
        model.learn_many(X, [True, False])
        assert model.supports[0] == ({1: 2.0}, 1.0)
    assert models[0].supports == models[1].supports


@pytest.mark.parametrize("kind", [Counter, OrderedDict, ChainMap, UserDict])
def test_any_mapping_is_an_example(kind):
    model, twin = LBP(budget=9), LBP(budget=9)
    for i, (x, y) in enumerate(drifting_stream()):
        model.learn_one(kind(x), y)
        twin.learn_one(x, y)
        assert model.predict_one(kind(x)) == twin.predict_one(x)
        if i % 50 == 0:
            assert model.supports == twin.supports


def test_labels_of_one_spelling_are_never_one_column():
    model = Tracker(50)
    for label in ("1", 1, "1"):
        model.learn_one({"a": 1.0}, label)
    rows = {"a": [1.0]}
    by_label = model.predict_proba_many(pd.DataFrame(rows))
    assert dict(by_label.iloc[0]) == model.predict_proba_one({"a": 1.0})
    for frame in (pl.DataFrame(rows), pa.table(rows)):
        with pytest.raises(LabelError, match="labels '1' and 1 would be one column"):
            model.predict_proba_many(frame)
