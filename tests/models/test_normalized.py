"""The normalised kernel, ``k(u, u) k(x, z) / sqrt(k(x, x) k(z, z))``."""

import random
from array import array

import pytest
from river import preprocessing

from drift.kernels import DEFAULT_KERNEL, Linear, Polynomial
from drift.models import LBP, MIRA, MRBP, OneVsRest, Perceptron, column_type
from drift.models._store.supports import SupportSet
from drift.streams import newswire
from tests.models.cases import CASES
from tests.models.oracles import naive_kernel

ROWS = Polynomial(normalize="rows")
MODELS = {name: lambda k, case=case: case.model(k, 30) for name, case in CASES.items()} | {
    "MIRA": lambda k: MIRA(kernel=k),
    "MRBP": lambda k: MRBP(30, kernel=k, seed=1),
    "OneVsRest": lambda k: OneVsRest(LBP(30, kernel=k)),
}


def circle_errors(kernel, n=5000):
    """Share of errors on whether a point of the plane is far from its origin."""
    rng = random.Random(0)
    model = preprocessing.StandardScaler() | LBP(300, kernel=kernel)
    errors = 0
    for _ in range(n):
        x = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)}
        y = x["a"] ** 2 + x["b"] ** 2 > 1.386  # half of them are
        errors += model.predict_one(x) != y
        model.learn_one(x, y)
    return errors / n


@pytest.mark.compiled
def test_the_default_kernel_tells_how_long_a_dense_row_is():
    assert circle_errors(None) < 0.08
    assert circle_errors(ROWS) > 0.4  # an angle says nothing


def awkward_rows():
    """Return dense, sparse, zero, tiny and huge rows, and some along the same line."""
    rng = random.Random(1)
    dense = [{j: rng.gauss(0, 1) for j in range(20)} for _ in range(5)]
    sparse = [{j: rng.gauss(0, 2) for j in rng.sample(range(40), 3)} for _ in range(5)]
    lines = [{0: 1.0}, {0: -3.0}, {0: 1e9, 1: 1e9}, {0: 1e18}, {1: 1e-18}, {0: 1e-50}, {}]
    return [*dense, *sparse, *lines, {1: 0.0}]


@pytest.mark.parametrize(("degree", "coef0"), [(4, 1.0), (3, 0.01), (1, 50.0), (2, 0.0)])
def test_the_stores_have_the_kernel_of_the_formula(degree, coef0, tolerance):
    rows, largest = awkward_rows(), (1.0 + coef0) ** degree
    supports = SupportSet(Polynomial(degree, coef0, normalize=True))
    for x in rows:
        supports.read(x)
        supports.add(x, 1.0)
    values = array("d", bytes(8 * supports.capacity))
    for x in rows:
        supports.read(x)
        supports.store.write_kernels(values)
        expected = [
            naive_kernel("polynomial", x, z, degree=degree, coef0=coef0, normalize=True)
            for z in rows
        ]
        assert list(values[: len(rows)]) == pytest.approx(expected, abs=tolerance * largest)
        assert supports.score() == pytest.approx(sum(expected), abs=tolerance * largest * len(rows))
        # k(x, x) is that of unit norm; without a constant term a zero row has nothing.
        assert supports.self_kernel() == pytest.approx(largest if coef0 or any(x.values()) else 0.0)


@pytest.mark.usefixtures("tolerance")
def test_a_support_is_as_it_came_and_survives_a_copy():
    supports = SupportSet(Polynomial(normalize=True))
    for x in ({"a": 3.0, "b": -0.5}, {}, {"c": 1e12}):
        supports.read(x)
        supports.add(x, 1.0)
    supports.evict(1)
    copy = SupportSet.__new__(SupportSet)
    copy.__setstate__(supports.__getstate__())
    assert copy.__getstate__() == supports.__getstate__()
    assert [x for x, _ in copy] == [{"a": 3.0, "b": -0.5}, {"c": pytest.approx(1e12)}]
    scores = []
    for stored in (supports, copy):
        stored.read({"a": 1.0, "c": 1e6})
        row = array("d", bytes(8 * stored.capacity))
        stored.store.write_kernels(row)
        scores.append((stored.score(), row))
    assert scores[0] == scores[1]
    # The slot that is free has the kernel of a zero row.
    free = naive_kernel("polynomial", {"a": 1.0, "c": 1e6}, {}, normalize=True)
    assert scores[0][1][1] == pytest.approx(free, rel=1e-9, abs=0.0)


@pytest.fixture(scope="module")
def stories():
    """Rows of unit norm to within rounding, and whether they are about one of the desks."""
    documents = newswire(400)
    return documents.rows, documents.has("general").tolist()


@pytest.mark.usefixtures("tolerance")
def test_a_row_whose_norm_a_double_cannot_hold_is_stored_all_the_same():
    model = Perceptron(Linear(normalize="rows"))
    model.learn_one({"a": 1e-170}, True)
    assert model.n_supports == 1
    assert model.decision_function_one({"a": 1.0}) == pytest.approx(0.0, abs=1e-100)


@pytest.mark.compiled
@pytest.mark.parametrize("name", MODELS)
def test_rows_of_unit_norm_are_decided_as_they_were(name, stories):
    before = column_type("float64")
    try:
        predictions = [
            MODELS[name](kernel).predict_learn_many(*stories).tolist()
            for kernel in (DEFAULT_KERNEL, ROWS)
        ]
    finally:
        column_type(before)
    assert predictions[0] == predictions[1]
