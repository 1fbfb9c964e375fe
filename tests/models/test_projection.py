"""What the papers promise of projections, and what keeps the promise in floating point."""

import math
import pickle
import random
import tracemalloc
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg
from scipy.spatial import distance

from drift.kernels import RBF, Linear
from drift.models import ALMA2, Perceptron, Projectron, ProjectronPlusPlus
from drift.models._linalg.gram import GramFactor
from drift.models._linalg.span import Projector
from drift.models._store.built import Guard
from drift.streams import read_libsvm
from tests.models.cases import CASES, KERNELS, with_gram
from tests.models.oracles import naive_gram
from tests.models.streams import STREAMS, random_stream

PROJECTING = [Projectron, ProjectronPlusPlus, ALMA2]

#: Values a quarter apart: what is nearly singular is singular.
quarters = st.integers(-8, 8).map(lambda v: v / 4)
points = st.dictionaries(st.sampled_from("abc"), quarters, max_size=3)
streams = st.lists(st.tuples(points, st.booleans()), min_size=1, max_size=40)


def learn(model, examples):
    for x, y in examples:
        model.learn_one(x, y)
    return model


def squared_norm(model, name="linear", **parameters):
    """||f||^2 from its definition."""
    points, alpha = zip(*model.supports, strict=True) if model.supports else ([], [])
    gram = np.array(naive_gram(points, name, **parameters)).reshape(len(points), len(points))
    return float(np.array(alpha) @ gram @ np.array(alpha))


@pytest.mark.parametrize("kernel", ["default", "linear", "quadratic", "rbf"])
@given(examples=streams)
def test_a_projectron_without_tolerance_is_the_perceptron(kernel, examples):
    kernel = KERNELS[kernel][0]
    projectron, perceptron = Projectron(0.0, kernel=kernel), Perceptron(kernel=kernel)
    for x, y in examples:
        size = 1.0 + sum(abs(a) for _, a in perceptron.supports)  # whose columns are float32
        score = perceptron.decision_function_one(x)
        assert projectron.decision_function_one(x) == pytest.approx(score, abs=1e-5 * size)
        projectron.learn_one(x, y)
        perceptron.learn_one(x, y)
        assert projectron.n_mistakes == perceptron.n_mistakes
    assert projectron.n_supports <= perceptron.n_supports


@pytest.mark.parametrize("model_class", PROJECTING)
@given(examples=streams)
def test_supports_of_a_linear_kernel_are_independent(model_class, examples):
    model = learn(model_class(tolerance=0.0, kernel=Linear()), examples)
    rows = np.array([[x.get(name, 0.0) for name in "abc"] for x, _ in model.supports] or [[0.0]])
    assert model.n_supports == np.linalg.matrix_rank(rows) <= 3


@pytest.mark.covering(2)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tolerance", [None, 0.0, 0.3])
@pytest.mark.parametrize("stream", ["random", "signed", "degenerate"])
def test_the_norm_of_alma_stays_at_most_1(kernel, tolerance, stream):
    kernel, name, parameters = KERNELS[kernel]
    model = ALMA2(tolerance=tolerance, kernel=kernel)
    examples = list(STREAMS[stream]())
    for part in (examples[:3], examples[3:20], examples[20:]):
        learn(model, part)
        norm = squared_norm(model, name, **parameters)
        assert norm <= 1.0 + 1e-9
        assert model._squared_norm == pytest.approx(norm, abs=1e-7)


def test_supports_of_a_projected_alma_are_bounded_by_its_shrinking_steps():
    model = ALMA2(C=1.0, tolerance=0.2, kernel=RBF(50.0))
    learn(model, random_stream(400))
    assert model.n_updates > model.n_supports
    assert model.n_supports == 24  # C / sqrt(k) <= 0.2 from the 25th on; no two points are near


@pytest.mark.parametrize("model_class", PROJECTING)
@pytest.mark.parametrize("stream", ["random", "degenerate"])
def test_what_is_projected_adds_no_support(model_class, stream, monkeypatch):
    model = model_class(tolerance=0.4, kernel=KERNELS["linear-unit"][0])
    done = {"absorb": 0, "insert": 0}

    def counting(name, method):
        def call(self, supports, *arguments):
            before = len(supports)
            method(self, supports, *arguments)
            assert len(supports) == before + (name == "insert")
            done[name] += 1

        return call

    for name in done:
        monkeypatch.setattr(Projector, name, counting(name, getattr(Projector, name)))
    learn(model, STREAMS[stream]())
    assert done["insert"] == model.n_supports > 0 < done["absorb"]


@pytest.mark.parametrize("case", [c for c in CASES if "Projectron" in c or c.startswith("ALMA2-")])
def test_the_twins_take_every_branch(case):
    branches = {}
    for stream in ("random", "degenerate"):
        for kernel in ("linear", "linear-unit", "rbf"):
            examples, gram = with_gram(STREAMS[stream], kernel)
            twin = CASES[case].twin(gram, KERNELS[kernel][0], 9)
            for t, (_, y) in enumerate(examples):
                twin.step(t, 1 if y else -1)
            branches = {b: branches.get(b, 0) + n for b, n in twin.branches.items()}
    never = {"small margin", "left alone"} if "Projectron" in case and "Plus" not in case else set()
    assert {b for b, n in branches.items() if n} == set(branches) - never


def test_by_hand():
    model = Projectron(tolerance=0.5, kernel=Linear())
    model.learn_one({"a": 2.0}, True)
    assert model.supports == [({"a": 2.0}, 1.0)]
    model.learn_one({"a": 3.0, "b": 0.5}, False)  # P k = 1.5 k(a): ||delta|| = 0.5
    assert model.supports == [({"a": 2.0}, -0.5)]
    model.learn_one({"a": 1.0, "b": 0.75}, True)  # f = -1, ||delta|| = 0.75
    assert model.supports == [({"a": 2.0}, -0.5), ({"a": 1.0, "b": 0.75}, 1.0)]
    assert (model.n_mistakes, model.n_updates) == (3, 3)


@pytest.mark.parametrize(
    ("squared", "excess"),
    # l = 1 - 0.5, ||delta|| = 0.25, eta = 1 on the norm and 1/4 on the square: both 0.25
    [(False, 0.5 - 0.25), (True, 0.5 - 0.25**2 / 0.25)],
)
def test_a_small_margin_by_hand(squared, excess):
    model = ProjectronPlusPlus(0.25 if squared else 1.0, kernel=Linear(), squared=squared)
    model.learn_one({"a": 4.0}, True)  # f = 4 a
    model.learn_one({"a": 0.125, "b": 0.25}, True)  # f(x) = 0.5, ||P k||^2 = 1/64: tau = 1
    assert excess * 2 > 1 / 64
    assert model.supports == [({"a": 4.0}, 1.0 + 1 / 32)]
    assert (model.n_mistakes, model.n_updates) == (1, 2)
    model.learn_one({"a": 0.125, "b": 4.0}, True)  # cannot be projected
    assert (model.n_supports, model.n_updates) == (1, 2)
    model.learn_one({"a": 8.0}, True)  # the margin is 33
    assert (model.n_supports, model.n_updates) == (1, 2)


def test_the_step_of_a_small_margin_is_what_the_loss_needs():
    model = ProjectronPlusPlus(0.5, kernel=Linear())
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"a": 0.5}, True)  # l = 1/2, ||P k||^2 = 1/4: tau = min(2, 4, 1)
    assert model.supports == [({"a": 1.0}, 1.5)]
    model.learn_one({"a": 0.625, "b": 0.015625}, True)  # l = 1/16, delta / eta = 1/32
    tau = 0.0625 / 0.625**2
    assert model.supports == [({"a": 1.0}, pytest.approx(1.5 + 0.625 * tau))]
    assert model.decision_function_one({"a": 0.625}) == pytest.approx(1.0)
    model.learn_one({"a": 0.625, "b": 0.0}, True)  # a loss of 0 except for rounding
    assert model.n_updates == 3


@pytest.mark.parametrize("model_class", PROJECTING)
def test_a_zero_vector_of_the_linear_kernel_becomes_no_support(model_class):
    model = learn(model_class(tolerance=0.0, kernel=Linear()), [({}, True), ({"a": 0.0}, False)])
    assert (model.n_supports, model.n_updates, model.n_mistakes) == (0, 2, 2)
    learn(model, [({"a": 1.0}, True), ({}, True)])
    assert (model.n_supports, model.n_updates, model.n_mistakes) == (1, 4, 4)


def test_alma_counts_a_zero_vector_in_its_steps():
    with_zero = ALMA2(kernel=Linear(), C=0.5)
    learn(with_zero, [({}, True), ({"a": 2.0}, True)])
    [(_, coefficient)] = with_zero.supports
    assert coefficient == pytest.approx(0.5 / math.sqrt(2) / 2)


def test_contradictory_labels_leave_nothing():
    model = Projectron(0.0, kernel=RBF(0.3))
    points = [{"a": 0.1, "b": 0.7}, {"a": 0.3}, {"b": -0.2, "c": 1.1}]
    for x in points:
        learn(model, [(x, True), (x, False)] * 3)  # each a mistake: f(x) is 0, k(x, x), 0, ...
    assert model.n_mistakes == 18
    assert [coefficient for _, coefficient in model.supports] == [0.0, 0.0, 0.0]


def inverse(model):
    """K^-1 as the model applies it."""
    factor, size = model._projector._factor, model.n_supports
    columns = [
        factor.coefficients(factor.whiten(unit))[:size] for unit in np.eye(size, factor.capacity)
    ]
    return np.array(columns).T


@pytest.mark.compiled  # the factor is no store's
@pytest.mark.parametrize("updates", [3_000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_the_factor_stays_exact_over_many_updates(updates):
    rng = random.Random(0)
    pool = [{name: rng.random() for name in "abc"} for _ in range(500)]
    model = Projectron(0.02, kernel=RBF(10.0))
    for x in pool:  # those that become supports first
        model.learn_one(x, model.decision_function_one(x) <= 0)
    supports = [x for x, _ in model.supports]
    assert 200 < len(supports) < 500
    sums = [coefficient for _, coefficient in model.supports]
    while model.n_updates < updates:
        i = rng.randrange(len(supports))
        wrong = model.decision_function_one(supports[i]) <= 0
        model.learn_one(supports[i], wrong)
        sums[i] += 1 if wrong else -1
    assert model.n_supports == len(supports)
    gram = np.array(naive_gram(supports, "rbf", gamma=10.0))
    assert 1e5 < np.linalg.cond(gram) < 1e9
    assert np.abs(gram @ inverse(model) - np.eye(len(supports))).max() <= 1e-6
    lower = model._projector._factor._lower[: len(supports), : len(supports)]
    assert np.abs(lower - linalg.cholesky(gram, lower=True)).max() <= 1e-9
    assert [coefficient for _, coefficient in model.supports] == pytest.approx(sums, abs=1e-6)


@pytest.mark.parametrize("model_class", PROJECTING)
def test_a_projection_copies_no_matrix(model_class):
    model = learn(model_class(tolerance=0.0, kernel=RBF(50.0)), random_stream(500))
    assert model.n_supports > 100
    model = pickle.loads(pickle.dumps(deepcopy(model)))
    matrix = model._projector._factor._lower
    assert matrix.flags.f_contiguous
    x, _ = next(random_stream())
    model.learn_one(x, model.decision_function_one(x) <= 0)
    vars(model)["tolerance"] = 1.0  # all is projected from here on
    updates, tracemalloc_before = model.n_updates, tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        for _ in range(3):
            model.learn_one(x, model.decision_function_one(x) <= 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if not tracemalloc_before:
            tracemalloc.stop()
    assert model.n_updates == updates + 3
    assert peak < matrix.nbytes / 2


def test_a_factor_that_grows_is_that_of_the_whole_matrix():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(70, 80)) * 10.0 ** rng.integers(-8, 8, size=(70, 1))
    gram, factor = points @ points.T, GramFactor()
    for t in range(70):
        row = np.zeros(factor.capacity)
        row[:t] = gram[t, :t]
        whitened = factor.whiten(row)
        factor.append(whitened, math.sqrt(factor.residual(whitened, gram[t, t])), Guard())
    lengths = np.sqrt(np.diag(gram))
    product = factor._lower[:70, :70] @ factor._lower[:70, :70].T
    assert np.abs((product - gram) / np.outer(lengths, lengths)).max() <= 1e-14
    assert np.array_equal(factor._lower[70:, 70:], np.eye(factor.capacity - 70))
    assert factor._lengths[:70] == pytest.approx(lengths)


@pytest.mark.slow
def test_as_many_supports_on_a9a_as_the_paper_has(drift_data):
    model = Projectron(0.1, kernel=RBF(0.04), squared=True)
    for x, y in read_libsvm(drift_data("a9a") / "a9a.xz"):
        model.learn_one(x, "+1" in y)
    assert model.n_supports == pytest.approx(793, rel=0.03)  # section 7; the order is another
    rows = np.zeros((model.n_supports, 123))
    for row, (x, _) in zip(rows, model.supports, strict=True):
        row[list(x)] = list(x.values())
    gram = np.exp(-0.04 * distance.cdist(rows, rows, "sqeuclidean"))
    assert np.abs(gram @ inverse(model) - np.eye(len(gram))).max() <= 1e-6


@dataclass(frozen=True)
class Sigmoid:
    """A function that is no kernel: its Gram matrices have negative eigenvalues."""

    def __call__(self, dot, squared_norm_a, squared_norm_b):
        return np.tanh(0.5 * dot - 1.0)


@pytest.mark.parametrize("model_class", PROJECTING)
def test_a_function_that_is_no_kernel_does_no_harm(model_class):
    model = learn(model_class(tolerance=0.1, kernel=Sigmoid()), random_stream(signed=True))
    assert all(math.isfinite(model.decision_function_one(x)) for x, _ in random_stream())


@pytest.mark.parametrize("last_bit", [-1, 0, 1])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("model", [Projectron, ProjectronPlusPlus])
def test_an_error_of_just_the_tolerance_is_within_it(model, squared, last_bit):
    tolerance = float(np.nextafter(1.0, 1.0 + last_bit))
    tied = model(tolerance, RBF(0.5), squared=squared)
    tied.learn_one({"a": 1.0}, True)  # k(x, x) is 1, and nothing spans it
    assert (tied.n_mistakes, tied.n_supports) == (1, 0)
