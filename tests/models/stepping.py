"""A model and its twin, example by example."""

import pytest

from drift.errors import FeatureError
from tests.models.oracles import near


def steps(twin, examples, weights=None):
    """Score before each example, its scale of rounding errors, and what was counted after it.

    None for an example that is refused or has the weight 0.
    """
    twin.recognise(examples)
    for t, (_, y) in enumerate(examples):
        twin.w = 1.0 if weights is None else weights[t]
        if not twin.w or twin.refuses(t):
            yield None
            continue
        size = twin.size(t)
        yield twin.step(t, 1 if y else -1), size, twin.mistakes, len(twin.supports)


def assert_same(model, trace, examples, tolerance, weights=None):
    weights = [1.0] * len(examples) if weights is None else weights
    for t, ((x, y), step, w) in enumerate(zip(examples, trace, weights, strict=True)):
        if step is None:
            if w:
                with pytest.raises(FeatureError, match="a larger ridge"):
                    model.learn_one(x, y, w)
            continue
        score, size, mistakes, supports = step
        found = model.decision_function_one(x)
        assert near(found, score, tolerance * size), f"score of example {t}"
        model.learn_one(x, y, w)
        assert model.n_mistakes == mistakes, f"mistake at example {t}"
        assert model.n_supports == supports, f"supports after example {t}"
