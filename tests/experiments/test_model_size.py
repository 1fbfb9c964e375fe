"""Sizes of models by what they refer to."""

import gc
import sys

import numpy as np
import pytest
from river import linear_model

from drift.experiments.memory import memory


def test_memory_of_an_object():
    class Holder:
        __slots__ = ("held",)

    holder = Holder()
    holder.held = [b"x" * 1_000]
    size = sys.getsizeof(holder) + sys.getsizeof(holder.held) + sys.getsizeof(holder.held[0])
    assert memory(holder) == size
    holder.held += [holder.held[0], holder]
    list_ = sys.getsizeof(holder.held)
    assert memory(holder) == sys.getsizeof(holder) + list_ + sys.getsizeof(holder.held[0])


def test_memory_of_an_array_counts_once():
    holder = {"a": np.zeros(1_000)}
    assert 8_000 < memory(holder) < 8_600
    base = np.zeros(1_000)
    assert 4_000 < memory({"a": base[:500]}) < 4_600


def test_memory_of_weights_that_python_does_not_see():
    model = linear_model.LogisticRegression()
    before = memory(model)
    names = [f"word {i}" for i in range(1_000)]
    model.learn_one(dict.fromkeys(names, 1.0), True)
    weights = sys.getsizeof(dict.fromkeys(names)) + 1_000 * sys.getsizeof(1.0)
    grown = memory(model) - before
    assert grown == pytest.approx(weights + sum(map(sys.getsizeof, names)), rel=0.01)
    assert not any(isinstance(one, str) for one in gc.get_referents(model._weights))
