"""The structured Projectron++ against its twins, and what it asks of a kernel and an argmax."""

import copy
import math
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import compose

from drift.errors import LabelError, ParameterError
from drift.models import StructuredProjectron
from tests.models.oracles import naive_kernel
from tests.models.oracles_structured import (
    LABELS,
    SIZE,
    Multiclass,
    Tagger,
    best_of,
    check,
    features,
    tagged,
    tagging_argmax,
    tagging_kernel,
    taggings,
)

CLASSES = ["red", "green", ("blue", 1), 7]


def tagger(tolerance=0.0, **parameters):
    return StructuredProjectron(tagging_kernel, tagging_argmax, tolerance, **parameters)


#: Few inputs with any labels: repeats, contradictions, zeros, and pairs that others span.
inputs = st.lists(st.sampled_from([(0.0, 0.0), (1.0, 0.0), (0.5, 0.5), (1.0, 1.0)]), max_size=3)
repeats = st.lists(
    st.tuples(inputs.map(tuple).filter(len), st.text(LABELS, min_size=3, max_size=3)),
    min_size=1,
    max_size=25,
).map(lambda examples: [(x, tuple(y[: len(x)])) for x, y in examples])


@pytest.mark.covering(1)
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("tolerance", [0.0, 0.4, 0.9, 2.0])
def test_a_tagger_is_its_twin(tolerance, squared):
    model = tagger(tolerance, squared=squared)
    check(model, Tagger(tagging_argmax, tolerance, squared=squared), tagged(), taggings)
    assert 0 < model.n_mistakes < 50
    assert model.n_supports <= SIZE


@pytest.mark.parametrize("tolerance", [0.0, 0.5])
@given(examples=repeats)
def test_repeats_do_no_harm(tolerance, examples):
    model = tagger(tolerance)
    check(model, Tagger(tagging_argmax, tolerance), examples, taggings)
    rows = np.array([features(*pair) for pair, _ in model.supports] or np.zeros((1, SIZE)))
    assert np.linalg.matrix_rank(rows) == model.n_supports


def multiclass_examples(kind, n=80):
    rng = random.Random(5)
    pool = [{}, {"a": 1.0}, {"a": 0.7, "b": 0.4}, {"b": 1.0}, {"a": 0.0}, {"b": 2.0, "c": 1.0}]
    for _ in range(n):
        k = rng.randrange(len(CLASSES))
        if kind == "degenerate":
            yield rng.choice(pool), CLASSES[k]
        else:
            centre = [(j * k) % 5 / 4 for j in range(1, 6)]
            yield {f"f{j}": v + rng.gauss(0, 0.3) for j, v in enumerate(centre)}, CLASSES[k]


def class_argmax(x, score, exclude=None):  # noqa: ARG001 - classes are those of any input
    return best_of(CLASSES, score, exclude)


@pytest.mark.covering(2)
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("tolerance", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kernel", ["linear", "polynomial", "rbf"])
@pytest.mark.parametrize("kind", ["clusters", "degenerate"])
def test_with_a_kernel_within_classes_it_is_the_multiclass_one(kind, kernel, tolerance, squared):
    parameters = dict(degree=2, normalize=True) if kernel == "polynomial" else {}

    def joint_kernel(pair, other):
        (x, y), (z, r) = pair, other
        return naive_kernel(kernel, x, z, **parameters) if y == r else 0.0

    model = StructuredProjectron(joint_kernel, class_argmax, tolerance, squared=squared)
    twin = Multiclass(class_argmax, tolerance, CLASSES, kernel, parameters, squared=squared)
    check(model, twin, multiclass_examples(kind), lambda x: CLASSES)


def test_the_twins_take_every_branch():
    twin = Tagger(tagging_argmax, 0.9)
    for x, y in tagged():
        twin.step(x, y)
    assert all(twin.branches.values())


# --- by hand -------------------------------------------------------------------------------------


def product(pair, other):
    """Inner product of what two outputs are worth; inputs say what that is."""
    (x, y), (z, r) = pair, other
    return float(np.dot(x[y], z[r]))


def listed(x, score, exclude=None):
    return max((y for y in x if y != exclude), key=score, default=None)


def test_a_mistake_by_hand():
    model = StructuredProjectron(product, listed, tolerance=1.0)
    first = {"p": (2.0, 0.0, 0.0), "q": (0.0, 2.0, 0.0)}
    model.learn_one(first, "p")  # a = (2, -2, 0), all of it left over
    assert model.supports == [((first, "p"), 1.0), ((first, "q"), -1.0)]
    model.learn_one({"p": (1.0, 0.0, 0.0), "q": (2.0, 0.0, 1.0)}, "p")  # margin -2
    # a = (-1, 0, -1), P a = (-1, 0, 0), ||delta|| = 1: no more than the tolerance
    assert [weight for _, weight in model.supports] == [0.5, -1.0]
    third = {"p": (1.0, 1.0, 0.0), "q": (1.0, 0.0, 2.0)}
    model.learn_one(third, "p")  # margin -2; ||delta|| = 2, but (third, "p") is in the span
    assert [pair for pair, _ in model.supports] == [(first, "p"), (first, "q"), (third, "q")]
    assert [weight for _, weight in model.supports] == pytest.approx([1.0, -0.5, -1.0])
    assert (model.n_mistakes, model.n_updates, model.n_supports) == (3, 3, 3)


def test_a_small_margin_by_hand():
    model = StructuredProjectron(product, listed, tolerance=1.0)
    model.learn_one({"p": (2.0, 0.0), "q": (0.0, 0.0)}, "p")
    assert model.n_supports == 1  # the pair of the rival is 0
    model.learn_one({"p": (0.25, 0.125), "q": (0.125, 0.0)}, "p")
    # margin 1/4, a = (1/8, 1/8): P a = (1/8, 0), tau = min(0.75 * 64, 2 * 0.625 * 64, 1)
    [(_, weight)] = model.supports
    assert weight == 1.0 + 1 / 16
    model.learn_one({"p": (0.25, 2.0), "q": (0.125, 0.0)}, "p")  # ||delta|| / eta = 2: left alone
    model.learn_one({"p": (2.0, 0.0), "q": (0.125, 0.0)}, "p")  # a margin beyond 1
    assert (model.n_mistakes, model.n_updates, model.n_supports) == (1, 2, 1)
    model.learn_one({"p": (0.4, 0.0), "q": (0.0, 0.0)}, "p")  # l = 0.15, ||P a||^2 = 0.16
    [(_, weight)] = model.supports
    assert weight == pytest.approx(1.0 + 1 / 16 + 0.2 * 0.15 / 0.16)


def test_a_kernel_that_does_not_tell_outputs_apart_teaches_nothing():
    model = StructuredProjectron(lambda pair, other: 0.1 * 3, listed, tolerance=0.0)
    for _ in range(3):
        model.learn_one({"p": 0, "q": 0}, "p")
    assert (model.n_mistakes, model.n_updates, model.n_supports) == (3, 3, 0)


def test_outputs_apart_by_rounding_leave_no_trace():
    model = StructuredProjectron(product, listed, tolerance=0.0)
    x = {"p": (2.0,), "q": (0.0,)}
    model.learn_one(x, "p")
    model.learn_one(x, "q")
    assert model.supports == [((x, "p"), 0.0)]
    model.learn_one({"p": (0.1 + 0.2,), "q": (0.3,)}, "p")
    assert model.supports == [((x, "p"), 0.0)]
    assert (model.n_mistakes, model.n_updates) == (3, 3)


def test_what_two_large_pairs_share_makes_no_error():
    model = StructuredProjectron(product, listed, tolerance=0.0)
    model.learn_one({"p": (1.0, 0.0), "q": (0.0, 1.0)}, "p")  # both are supports: all is spanned
    rng, updates = np.random.default_rng(0), 1
    for _ in range(50):
        shared, apart = rng.normal(size=(2, 2)) * [[1e4], [1e-2]]
        x = {"p": tuple(shared + apart), "q": tuple(shared - apart)}
        best, other = sorted("pq", key=lambda y, x=x: -model.decision_function_one(x, y))
        margin = model.decision_function_one(x, best) - model.decision_function_one(x, other)
        assert 1e-6 < margin < 0.9
        model.learn_one(x, best)
        updates += 1
        assert (model.n_updates, model.n_mistakes) == (updates, 1)


def test_an_only_output_is_nothing_to_learn():
    model = StructuredProjectron(product, listed)
    model.learn_one({"p": (1.0,)}, "p")
    assert (model.n_mistakes, model.n_updates, model.n_supports) == (0, 0, 0)
    assert model.predict_one({"p": (1.0,)}) == "p"
    assert model.predict_one({}) is None


def test_a_function_that_is_no_kernel_does_no_harm():
    def sigmoid(pair, other):
        return math.tanh(tagging_kernel(pair, other) - 2.0)

    model = StructuredProjectron(sigmoid, tagging_argmax, 0.1)
    for x, y in tagged(60):
        model.learn_one(x, y)
    assert all(math.isfinite(weight) for _, weight in model.supports)


# --- the contract --------------------------------------------------------------------------------


def learnt(n=60, tolerance=0.4):
    model = tagger(tolerance)
    for x, y in tagged(n):
        model.learn_one(x, y)
    return model


def test_it_learns_to_tag():
    model, test = learnt(80), list(tagged(50, seed=9))
    wrong = [r != s for x, y in test for r, s in zip(model.predict_one(x), y, strict=True)]
    assert sum(wrong) < 0.25 * len(wrong)  # the first guess, "a" throughout, has two thirds wrong


def test_predicting_changes_nothing():
    model = learnt()
    before = pickle.dumps(model)
    x, y = next(tagged(seed=3))
    assert model.predict_one(x) == model.predict_one(x)
    model.decision_function_one(x, y)
    assert model.supports
    assert pickle.dumps(model) == before


def test_a_copy_continues_as_the_original():
    model = learnt()
    copies = [pickle.loads(pickle.dumps(model)), model.clone(include_attributes=True)]
    copies.append(copy.copy(model))
    assert model.clone().n_supports == 0
    for each in (model, *copies):
        for x, y in tagged(20, seed=1):
            each.learn_one(x, y)
    for one in copies:
        assert one.supports == model.supports
        assert (one.n_mistakes, one.n_updates) == (model.n_mistakes, model.n_updates)
    assert model.n_updates > learnt().n_updates


def test_supports_are_copies():
    model = StructuredProjectron(product, listed)
    x = {"p": [1.0, 0.0], "q": [0.0, 1.0]}
    model.learn_one(x, "p")
    x["p"][0] = 5.0
    assert model.decision_function_one({"p": [1.0, 0.0]}, "p") == 1.0


def test_the_score_is_the_sum_over_its_supports():
    model, seen = learnt(), []

    def spy(x, score, exclude=None):
        for y in taggings(x):
            terms = [weight * tagging_kernel(pair, (x, y)) for pair, weight in score.supports]
            assert score(y) == pytest.approx(math.fsum(terms), abs=1e-9)
        seen.append(exclude)
        return tagging_argmax(x, score, exclude)

    model.argmax = spy
    x, y = next(tagged(seed=3))
    assert model.predict_one(x) == tagging_argmax(x, lambda r: model.decision_function_one(x, r))
    model.learn_one(x, y)
    assert seen == [None, y]


def test_it_ends_a_pipeline():
    pipeline = compose.FuncTransformer(tuple) | tagger(0.4)
    for x, y in tagged(20):
        pipeline.learn_one(list(x), y)
    x, y = next(tagged(seed=3))
    assert pipeline.predict_one(list(x)) in taggings(x)
    assert "StructuredProjectron" in repr(pipeline)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StructuredProjectron(None, listed), "joint_kernel must be a function, not None"),
        (lambda: StructuredProjectron(product, "max"), "argmax must be a function, not 'max'"),
        (lambda: tagger(-0.1), "tolerance must be a number of at least 0"),
        (lambda: tagger(math.nan), "tolerance must be"),
    ],
)
def test_bad_parameters_are_refused_by_name(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def with_kernel(value):
    return dict(joint_kernel=lambda pair, other: value)


def with_argmax(value):
    return dict(argmax=lambda x, score, exclude=None: value)


@pytest.mark.parametrize(
    ("broken", "y", "error", "message"),
    [
        ({}, ["p"], LabelError, "is a list, which is unhashable: use a string or a tuple"),
        ({}, None, LabelError, "is missing"),
        (with_kernel(math.nan), "p", ParameterError, "must return a finite number.*nan"),
        (with_kernel(-math.inf), "p", ParameterError, "must return a finite number.*inf"),
        (with_kernel(10**400), "p", ParameterError, "must return a finite number"),
        (with_kernel(None), "p", ParameterError, "must return a finite number.*None"),
        (with_kernel((1.0, 2.0)), "p", ParameterError, "must return a finite number"),
        (with_argmax(["q"]), "p", ParameterError, "'q'.*unhashable: return a string or a tuple"),
        (with_argmax("p"), "p", ParameterError, "'p', which it was told to exclude"),
    ],
)
def test_a_refusal_leaves_the_model_as_it_was(broken, y, error, message):
    model = StructuredProjectron(product, listed)
    x = {"p": (1.0, 0.0), "q": (0.0, 1.0)}
    model.learn_one(x, "p")
    before = pickle.dumps(model)
    for name, value in broken.items():
        setattr(model, name, value)
    with pytest.raises(error, match=message):
        model.learn_one({"p": (0.0, 1.0), "q": (1.0, 0.0)}, y)
    model.joint_kernel, model.argmax = product, listed
    assert pickle.dumps(model) == before
    if error is LabelError:
        with pytest.raises(LabelError):
            model.decision_function_one(x, y)


def test_a_prediction_that_cannot_be_learnt_is_refused():
    model = StructuredProjectron(product, lambda x, score, exclude=None: ["q"])
    with pytest.raises(ParameterError, match=r"'q'.*unhashable: return a string or a tuple"):
        model.predict_one({"p": (1.0, 0.0)})


def test_what_the_kernel_says_of_new_pairs_is_checked_before_anything_is_learnt():
    model = StructuredProjectron(lambda pair, other: math.nan, listed)
    with pytest.raises(ParameterError, match="finite number"):
        model.learn_one({"p": 1, "q": 2}, "p")
    assert (model.n_mistakes, model.n_updates, model.n_supports) == (0, 0, 0)


def test_a_mistake_is_one_however_large_its_terms_are():
    def scaled(scale):
        model = StructuredProjectron(
            lambda pair, other: scale * product(pair, other), listed, tolerance=0.0
        )
        for (a, b), y in (((1.0, 0.0), "p"), ((0.0, 1.0), "q"), ((1.0, 1.0), "p")):
            model.learn_one({"p": (a, b, 0.0, 0.0), "q": (0.0, 0.0, a, b)}, y)
        return model.n_mistakes, model.n_updates

    assert scaled(1e13) == scaled(1.0) == (3, 3)
