"""How much memory a model takes."""

from __future__ import annotations

import gc
import sys
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

__all__ = ["memory"]

#: What no one model owns.
_OF_ALL = (type, ModuleType, FunctionType)


def memory(model: Any) -> int:
    """Bytes of a model and of all that it refers to, names of features included.

    As River counts, by what `sys.getsizeof` says of each object, with two differences: the contents
    of River's vectors of weights, which are no Python objects, count as those of a dict of as many
    names and floats (46 bytes a weight and its name; by the memory of a process they take 54 to 70
    and the name); and an array is not counted twice.

    Parameters
    ----------
    model
        Any classifier of River or of drift.

    Examples
    --------
    >>> from river.linear_model import LogisticRegression
    >>> from drift.experiments.memory import memory
    >>> small, large = LogisticRegression(), LogisticRegression()
    >>> small.learn_one({"a": 1.0}, True)
    >>> large.learn_one({f"word {i}": 1.0 for i in range(1_000)}, True)
    >>> memory(large) - memory(small) > 80 * 999
    True
    """
    seen: set[int] = set()
    size, pending = 0, [model]
    while pending:
        fresh, inside = [], []
        for value in pending:
            if id(value) in seen or isinstance(value, _OF_ALL):
                continue
            seen.add(id(value))
            fresh.append(value)
            size += sys.getsizeof(value)
            if isinstance(value, np.ndarray) and not value.flags.owndata:
                size += value.nbytes
            elif type(value).__name__ == "VectorDict":
                weights = value.to_dict()
                size += sys.getsizeof(weights) + len(weights) * sys.getsizeof(0.0)
                inside += list(weights)
        pending = gc.get_referents(*fresh) + inside
    return size
