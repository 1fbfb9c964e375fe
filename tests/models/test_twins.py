"""Every model makes the mistakes and the scores of a twin that was written from its paper."""

import lzma

import numpy as np
import pytest
from cases import CASES, KERNELS
from oracles import naive_gram
from scipy import sparse
from streams import STREAMS

from drift.models import MODELS


def assert_same(model, twin, examples, tolerance):
    twin.recognise(examples)
    for t, (x, y) in enumerate(examples):
        size = twin.size(t)
        expected = twin.step(t, 1 if y else -1)
        assert model.decision_function_one(x) == pytest.approx(
            expected, rel=0, abs=tolerance * size
        ), f"score of example {t}"
        model.learn_one(x, y)
        assert model.n_mistakes == twin.mistakes, f"mistake at example {t}"
    assert model.n_supports == len(twin.supports)


@pytest.fixture(scope="module")
def gram():
    """Gram matrices by stream and kernel, each computed once."""
    cache = {}

    def compute(stream, kernel):
        if (stream, kernel) not in cache:
            examples = list(STREAMS[stream]())
            points = [{k: float(v) for k, v in x.items() if v == v} for x, _ in examples]
            _, name, parameters = KERNELS[kernel]
            sizes = matrix = naive_gram(points, name, **parameters)
            if stream == "signed" and name != "rbf":
                # <a, b> may cancel to less than float32 knows of it: measure its terms instead.
                points = [{k: abs(v) for k, v in x.items()} for x in points]
                sizes = naive_gram(points, name, **parameters)
            cache[stream, kernel] = examples, matrix, sizes
        return cache[stream, kernel]

    return compute


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("stream", STREAMS)
def test_agrees_with_its_twin(case, kernel, stream, tolerance, gram):
    if CASES[case].inverts and stream == "huge":
        pytest.skip("a Gram matrix with entries of 1e37 beside 1 has no inverse in floating point")
    examples, matrix, sizes = gram(stream, kernel)
    k = KERNELS[kernel][0]
    twin = CASES[case].twin(matrix, k, 9)
    if tolerance == 1e-5:
        twin.sizes = sizes
    assert_same(CASES[case].model(k, 9), twin, examples, tolerance)


def test_every_model_has_a_twin():
    assert {type(case.model(None, 9)).__name__ for case in CASES.values()} == set(MODELS)


@pytest.fixture(scope="module")
def rcv1(drift_data):
    """The first 2,000 stories as dicts, with a target that shifts, and their Gram matrix."""
    examples = []
    with lzma.open(drift_data / "rcv1" / "rcv1_topics.svm.xz", "rt") as file:
        for t, line in zip(range(2000), file, strict=False):
            labels, *pairs = line.split()
            target = "70" if t < 1000 else "102"  # GCAT, then MCAT
            x = {int(k): float(v) for k, v in (pair.split(":") for pair in pairs)}
            examples.append((x, target in labels.split(",")))
    rows, columns, values = zip(
        *((t, k, v) for t, (x, _) in enumerate(examples) for k, v in x.items()), strict=True
    )
    X = sparse.csr_array((values, (rows, columns)))
    X = sparse.diags_array(1 / np.sqrt(X.multiply(X).sum(axis=1))) @ X
    return examples, np.asarray((X @ X.T).todense())


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_its_twin_on_rcv1(case, rcv1, tolerance):
    examples, cosines = rcv1
    if CASES[case].slow:  # three hundred stories around the shift
        part = slice(850, 1150)
        examples, cosines = examples[part], cosines[part, part]
    twin = CASES[case].twin((1.0 + cosines) ** 4, None, 100)
    assert_same(CASES[case].model(None, 100), twin, examples, tolerance)
