import numpy as np
import pytest

from drift.experiments import TRACKING, Results
from drift.experiments.comparison import statistics
from drift.streams import Documents

TOPICS = ("a", "b", "c", "d")


@pytest.fixture(scope="module", autouse=True)
def few_samples():
    """Draw 500 samples, not 10,000, in the Bayesian test of two models, which are most of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "_SAMPLES", 500)
        yield


@pytest.fixture(scope="session")
def documents():
    """Two hundred stories that leave something to get wrong: words of their topic and others."""
    rng = np.random.default_rng(5)
    topics = rng.integers(0, 4, 200)
    X = rng.random((200, 12)) * (rng.random((200, 12)) < 0.4)
    X[np.arange(200), topics] += 1.0
    return Documents.from_arrays(X, [TOPICS[topic] for topic in topics], name="stories")


@pytest.fixture
def close():
    """Two stories whose inner product, 2^-30, float32 takes for zero, and a zero for a mistake."""
    return Documents.from_arrays(np.array([[1 + 2**-30, 1.0], [1.0, -1.0]]), ["a", "a"])


@pytest.fixture
def run():
    """Make a record with the fields that reports read."""

    def make(model="LBP", value=None, mistakes=10, *, shifts=0, index=0, seed=None, **more):
        name = {"SPA": "decay", "Perceptron": None, "SOP": None}.get(model, "budget")
        return {
            "contender": model,
            "model": model,
            "parameters": {} if name is None else {name: value},
            "seed": seed,
            "shifts": shifts,
            "index": index,
            "stream": "rcv1",
            "targets": ["GCAT"] * (shifts + 1),
            "n_samples": 100,
            "mistakes": mistakes,
            "supports": mistakes,
            "seconds": 0.001,
            "window_errors": [mistakes / 100] * 16,
            **more,
        }

    return make


@pytest.fixture
def tracked():
    """Make results of such records."""
    return lambda records: Results(TRACKING, records, {"stories": {}}, {}, 1.0)
