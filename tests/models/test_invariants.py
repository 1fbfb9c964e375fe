"""What holds of every stream: budgets, draws, norms, and scores that follow from the supports."""

import inspect
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from drift.kernels import Linear
from drift.models import MODELS, MRBP, RBP, RBSOP, SOP, SPA, KernelClassifier, Perceptron
from drift.models._linalg.gram import InverseGram
from drift.models._store.built import Guard
from tests.models.cases import CASES, KERNELS
from tests.models.oracles import naive_gram, naive_kernel

#: In thousandths: below 1e-154 values are too small for their squares.
number = st.integers(-2000, 2000).map(lambda thousandths: thousandths / 1000)
point = st.dictionaries(st.sampled_from("abcdef"), st.integers(-3, 3) | number)
streams = st.lists(st.tuples(point, st.booleans()), min_size=1, max_size=30)
kernels = st.sampled_from(sorted(KERNELS))
#: Drawing takes longer than learning: five times as many examples, and each for a fifth of the
#: models, of which the first is drawn.
each_for_a_fifth = settings(max_examples=5 * settings().max_examples)
fifth = st.integers(0, 4)


def having(parameter):
    return [name for name, c in MODELS.items() if parameter in inspect.signature(c).parameters]


@each_for_a_fifth
@given(stream=streams, budget=st.integers(1, 5), kernel=kernels, first=fifth)
def test_a_budget_is_never_exceeded(stream, budget, kernel, first):
    for name in having("budget")[first::5]:
        more = {"cache": "fixed"} if name == "MIRA" else {}  # the cache that has a budget
        more |= {"budget": budget, "kernel": KERNELS[kernel][0]}
        one, many = (MODELS[name](**more) for _ in range(2))
        for x, y in stream:
            one.learn_one(x, y)
            assert one.n_supports <= budget, name
        many.learn_many([x for x, _ in stream], [y for _, y in stream])
        assert many.n_supports <= budget, name


def test_the_budgeted_models_are_found():
    assert {"RBP", "LBP", "Forgetron", "RBSOP", "LBSOP"} <= set(having("budget"))


@pytest.mark.parametrize("model_class", [RBP, RBSOP])
def test_each_support_is_as_likely_a_victim_as_the_others(model_class):
    budget, evictions = 10, 4000
    model = model_class(budget=budget, kernel=Linear(), seed=1)
    victims, supports = Counter(), []
    for t in range(budget + evictions):  # a feature of its own: the score is 0, a mistake
        model.learn_one({t: 1.0}, True)
        names = [name for x, _ in model.supports for name in x]
        if t >= budget:
            (place,) = (i for i, name in enumerate(supports) if name not in names)
            victims[place] += 1
            del supports[place]
        supports.append(t)
        assert names == supports
    expected = evictions / budget
    statistic = sum((victims[i] - expected) ** 2 / expected for i in range(budget))
    assert statistic < chi2.ppf(0.999, budget - 1)


@given(points=st.lists(point, max_size=30), decay=st.floats(0.01, 100), rbf=st.booleans())
def test_the_shifting_perceptron_keeps_to_the_paper_s_lemma_1(points, decay, rbf):
    """Cavallanti et al., lemma 1 and its proof, under kernels with k(x, x) <= 1.

    Support i was faded by 1 - lambda_j = j / (lambda + j) at the mistakes j = i + 1, ..., k - 1;
    a mistake leaves ||w_k||^2 <= (1 - lambda_{k-1})^2 ||w_{k-1}||^2 + 1; and after k mistakes
    ||w_k|| <= e sqrt((lambda + k + 1) / (2 lambda + 1)).
    """
    kernel = "rbf" if rbf else "linear-unit"
    _, name, parameters = KERNELS[kernel]
    model = SPA(decay, KERNELS[kernel][0])
    gram = naive_gram(points, name, **parameters)
    before = 0.0
    for k, x in enumerate(points, start=1):
        y = not model.predict_one(x)
        model.learn_one(x, y)
        assert model.n_mistakes == k
        alpha = np.array([coefficient for _, coefficient in model.supports])
        faded = [math.prod(j / (decay + j) for j in range(i + 1, k)) for i in range(k)]
        assert np.abs(alpha) == pytest.approx(faded, rel=1e-9)
        squared_norm = alpha @ gram[:k, :k] @ alpha
        lam = 1.0 if k == 1 else decay / (decay + k - 1)
        assert squared_norm <= (1 - lam) ** 2 * before + 1 + 1e-5
        assert squared_norm <= math.e**2 * (decay + k + 1) / (2 * decay + 1)
        before = squared_norm


def plain(model_class):
    """Whether the score that is shown is the expansion itself."""
    hooks = (model_class._score, model_class._decision)
    return hooks == (KernelClassifier._score, KernelClassifier._decision)


@each_for_a_fifth
@given(stream=streams, kernel=kernels, probe=point, first=fifth)
def test_a_score_is_the_sum_over_the_supports(stream, kernel, probe, first):
    k, name, parameters = KERNELS[kernel]
    for case in [c for c in CASES if plain(type(CASES[c].model(None, 3)))][first::5]:
        model = CASES[case].model(k, 3)
        for x, y in stream:
            model.learn_one(x, y)
        for x in (probe, stream[0][0], stream[-1][0]):
            terms = [
                a * naive_kernel(name, supports, x, **parameters) for supports, a in model.supports
            ]
            # Terms of <a, b> may cancel to less than float32 columns know of it.
            sizes = [
                abs(a) * naive_kernel(name, positive(supports), positive(x), **parameters)
                for supports, a in model.supports
            ]
            size = math.fsum(map(abs, terms if name == "rbf" else sizes))
            expected = pytest.approx(math.fsum(terms), rel=0, abs=1e-5 * size)
            assert model.decision_function_one(x) == expected, case


def positive(x):
    return {name: abs(value) for name, value in x.items()}


@pytest.mark.parametrize("name", [name for name, c in MODELS.items() if issubclass(c, SOP)])
@given(stream=streams, kernel=kernels, ridge=st.floats(0.1, 10), probe=point)
def test_a_second_order_score_solves_the_ridge_system(name, stream, kernel, ridge, probe):
    """[y_S, 0] (a I + G)^{-1} g over the supports and the point, after every update."""
    k, kernel_name, parameters = KERNELS[kernel]
    budget = {"budget": 4} if name in having("budget") else {}
    model = MODELS[name](ridge=ridge, kernel=k, **budget)
    for x, y in stream:
        updates = model.n_updates
        model.learn_one(x, y)
        if model.n_updates == updates:
            continue
        labels = [model._signs[slot] for slot in model._supports.slots_by_age]
        assert set(labels) <= {-1.0, 1.0}
        seen = [*(supports for supports, _ in model.supports), probe]
        gram = naive_gram(seen, kernel_name, **parameters)
        weights = np.linalg.solve(ridge * np.eye(len(seen)) + gram, gram[:, -1])[:-1]
        expected = pytest.approx(labels @ weights, abs=1e-9 * max(1.0, np.abs(weights).sum()))
        assert model.decision_function_one(probe) == expected


@each_for_a_fifth
@given(
    stream=streams,
    probes=st.lists(point, min_size=1, max_size=4),
    kernel=kernels,
    first=fifth,
)
def test_predicting_changes_nothing(stream, probes, kernel, first):
    for case in [*CASES][first::5]:
        model, silent = (CASES[case].model(KERNELS[kernel][0], 3) for _ in range(2))
        for x, y in stream:
            before = pickle.dumps(model)
            for probe in probes:
                model.predict_one(probe)
                model.predict_proba_one(probe)
                model.decision_function_one(probe)
            model.predict_many(probes)
            model.predict_proba_many(probes)
            model.decision_function_many(probes)
            assert pickle.dumps(model) == before, case
            model.learn_one(x, y)
            silent.learn_one(x, y)
        assert pickle.dumps(model) == pickle.dumps(silent), case


class Window:
    """The latest of many random points, their Gram matrix and drift's inverse of it."""

    def __init__(self, ridge, budget, seed=0):
        self.rng = np.random.default_rng(seed)
        self.inverse, self.guard = InverseGram(ridge), Guard()
        self.inverse.reserve(budget)
        self.points = np.zeros((self.inverse.capacity, 5))
        self.slots = []
        self.budget = budget

    def change(self):
        """Evict the oldest, if the budget is full, and insert a point."""
        self.inverse.prepare(1.0)
        if len(self.slots) == self.budget:
            slot = self.slots.pop(0)
            self.inverse.remove(slot, self.guard)
        else:
            slot = len(self.slots)
        point = self.rng.standard_normal(5)
        self.points[slot] = point
        row = np.zeros(self.inverse.capacity)
        row[self.slots] = self.kernel(point)
        weights = self.inverse.times(row)
        schur = self.inverse.ridge + 1.0 - row @ weights
        row[slot] = 1.0
        self.inverse.insert(slot, row, weights, schur, self.guard)
        self.slots.append(slot)

    def kernel(self, point):
        return np.exp(-0.5 * ((self.points[self.slots] - point) ** 2).sum(axis=1))

    def error(self):
        """max |K K^{-1} - I|."""
        K = self.inverse.ridge * np.eye(len(self.slots))
        K += [self.kernel(self.points[slot]) for slot in self.slots]
        units = np.eye(self.inverse.capacity)[self.slots]
        inverse = np.array([self.inverse.times(unit)[self.slots] for unit in units])
        return np.abs(K @ inverse - np.eye(len(self.slots))).max()


@pytest.mark.compiled
@pytest.mark.parametrize("ridge", [1.0, 0.0])
@pytest.mark.parametrize("updates", [2_500, pytest.param(25_000, marks=pytest.mark.slow)])
def test_the_inverse_stays_exact_over_many_updates(ridge, updates):
    window = Window(ridge, budget=30)
    for update in range(updates):  # of two changes each, once the budget is full
        window.change()
        if update % 250 == 0:
            assert window.error() <= 1e-6
    assert window.error() <= 1e-6


class NoKernel(Window):
    """The same with values that are no inner products: the matrix has negative eigenvalues."""

    def kernel(self, point):
        values = super().kernel(point)
        return np.where(values == 1.0, 1.0, 3.0 * values)


@pytest.mark.parametrize(("points", "exact"), [(Window, 1e-12), (NoKernel, 1e-9)])
def test_an_inverse_that_has_drifted_is_computed_afresh(points, exact):
    window = points(0.1, budget=65)  # no eviction, which would take the error away
    for _ in range(40):
        window.change()
    assert window.error() < exact
    window.inverse._inverse *= 1.001
    for _ in range(24):
        window.change()
    assert window.error() > 1e-4
    window.change()  # the 64th is followed by a check
    assert window.error() < exact


class Margin(KernelClassifier):
    """A rule that says its margin, and nothing else."""

    _update_margin = 1.0


@pytest.mark.usefixtures("tolerance")
def test_a_rule_that_says_its_margin_updates_up_to_it_and_passes_over_the_rest():
    stepped, X, y = [], np.array([[1.0], [1.0], [1.0], [-1.0], [0.5]]), [True] * 3 + [False, True]
    one, many = Margin(Linear()), Margin(Linear())
    for model in (one, many):
        model._should_update = lambda *example, rule=model._should_update: (
            stepped.append(example[-1]) or rule(*example)
        )
    for row, label in zip(X, y, strict=True):
        one.learn_one({0: row[0]}, label)
    many.learn_many(X, y)
    assert (
        stepped == [0.0, 1.0, 1.0] * 2
    )  # the first, the second and the last; others score 2 and -2
    assert one.n_mistakes == many.n_mistakes == 1


class Always:
    """Hooks of a mixin, which comes before a template's or a model's own."""

    def _should_update(self, x, sign, score):
        return True

    def _should_update_class(self, x, k, rival, margin):
        return True


def test_a_hook_of_a_mixin_is_asked_about_every_example():
    class Binary(Always, Perceptron):
        pass

    class Classes(Always, MRBP):
        pass

    class Own(Always, Perceptron):
        _update_margin = 0.5  # what the class itself says is taken

    models = Binary(Linear()), Own(Linear())
    for model in models:
        for _ in range(5):
            model.learn_one({"a": 1.0}, True)
    assert [model.n_updates for model in models] == [5, 1]
    assert Classes._class_update_margin == math.inf


def test_a_model_cannot_override_the_step_that_compiled_code_takes():
    with pytest.raises(TypeError, match="Stepping overrides _step, which compiled code"):

        class Stepping(Perceptron):
            def _step(self, x, y, sign, score):
                raise NotImplementedError
