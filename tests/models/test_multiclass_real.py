"""The multiclass models against their twins on real stories of five topics."""

import numpy as np
import pytest

from drift.models import (
    MIRA,
    MRBP,
    PassiveAggressive,
    ProjectronPlusPlus,
)
from drift.models._store import built, plain
from tests.models import oracles_multiclass as oracles
from tests.models.oracles import near
from tests.models.streams import first_rows, matrix_of

#: Stories for each model; the plain store takes a hundred times as long.
FAST_ROWS, ROWS = 300, 5000
#: GCAT, MCAT, C15 and ECAT; a story that has several counts as the first of them.
TOPICS = ["70", "102", "4", "59"]
REAL = {
    "MRBP": (lambda k: MRBP(100, kernel=k, seed=4), lambda g: oracles.MRBP(g, 100, 4)),
    "MIRA-fixed": (
        lambda k: MIRA(0.01, 100, "fixed", k),
        lambda g: oracles.MIRA(g, 0.01, "fixed", 100),
    ),
    "MIRA": (lambda k: MIRA(kernel=k), lambda g: oracles.MIRA(g, 0.01)),
    "MIRA-variable": (
        lambda k: MIRA(cache="variable", kernel=k),
        lambda g: oracles.MIRA(g, 0.01, "variable"),
    ),
    "PassiveAggressive": (
        lambda k: PassiveAggressive(kernel=k),
        lambda g: oracles.PassiveAggressive(g, 1.0),
    ),
    "ProjectronPlusPlus": (
        lambda k: ProjectronPlusPlus(3.0, k),
        lambda g: oracles.ProjectronPlusPlus(g, 3.0),
    ),
}


@pytest.fixture(scope="module", params=[FAST_ROWS, pytest.param(ROWS, marks=pytest.mark.slow)])
def rows(request):
    return request.param


@pytest.fixture(scope="module")
def stories(drift_data, rows):
    """The first stories of RCV1 with one of five labels, and their Gram matrix."""
    examples = []
    for x, labels in first_rows(drift_data("rcv1") / "rcv1_topics.svm.xz", rows):
        topic = next((topic for topic in TOPICS if topic in labels), "other")
        examples.append((x, topic))
    X = matrix_of(examples)
    matrix = (1.0 + (X @ X.T).toarray()) ** 4
    norms = np.sqrt(matrix.diagonal())
    return examples, 16.0 * matrix / np.outer(norms, norms)


@pytest.fixture(scope="module")
def real_steps(stories):
    """Scores, their sizes and mistakes of each twin, computed once."""
    examples, matrix = stories
    cache = {}

    def compute(case):
        if case not in cache:
            _, make_twin = REAL[case]
            twin, trace = make_twin(matrix), []
            for t, (_, y) in enumerate(examples):
                size = twin.size(t)
                trace.append((twin.step(t, y), size, twin.mistakes, len(twin.supports)))
            cache[case] = trace
        return cache[case]

    return compute


@pytest.mark.covering(1)
@pytest.mark.parametrize("case", REAL)
def test_agrees_with_its_twin_on_real_stories(case, rows, stories, real_steps, tolerance):
    make_model, _ = REAL[case]
    if built.ColumnStore is plain.ColumnStore:
        rows = FAST_ROWS
    model = make_model(None)
    for (x, y), (scores, size, mistakes, supports) in zip(
        stories[0][:rows], real_steps(case)[:rows], strict=True
    ):
        shown = model.decision_function_one(x)
        if isinstance(shown, dict):  # and not the binary stage before the first label
            assert near(shown, scores, 2 * tolerance * size)
        model.learn_one(x, y)
        assert (model.n_mistakes, model.n_supports) == (mistakes, supports)
