"""What a model for each key is worth: errors beside those of one model for all.

A stream of 1,000 made customers, some of whom come often, most seldom. The target of each is the
common one with a part of its own, which is drawn anew at its own moment.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models import LBP, Tracker

if TYPE_CHECKING:
    from collections.abc import Iterator


def customers(
    count: int, length: int, seed: int = 0
) -> Iterator[tuple[str, dict[str, float], bool]]:
    """Yield key, features and label of made customers, of whom some come often and most seldom."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=8)
    own = common + rng.normal(size=(count, 8))
    shares = rng.pareto(1.2, count) + 0.2
    drifts = rng.integers(length, size=count)
    keys = rng.choice(count, size=length, p=shares / shares.sum())
    rows = rng.normal(size=(length, 8))
    has_drifted = np.zeros(count, bool)
    for t in range(length):
        key = keys[t]
        if t >= drifts[key] and not has_drifted[key]:
            has_drifted[key] = True
            own[key] = common + rng.normal(size=8)
        x = rows[t]
        label = bool(x @ own[key] + 0.3 * rng.normal() > 0)
        yield f"c{key}", {f"f{j}": float(x[j]) for j in range(8)}, label


def keyed_worth(*, quick: bool) -> dict[str, Any]:
    """Return the errors of both models."""
    length = 5_000 if quick else 100_000
    models = {"Tracker(50)": Tracker(50), "LBP(50)": LBP(50)}
    return {"table": [row for name, model in models.items() for row in _rows(name, model, length)]}


def _rows(name: str, one: Any, length: int) -> Iterator[dict[str, Any]]:
    """Errors of one model for all, and of one for each, with a prior and without."""
    fresh, alone, own = copy.deepcopy(one), {}, {}
    mistakes: Counter[str] = Counter()
    early: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    firsts = 0
    for key, x, y in customers(1_000, length):
        is_first = seen[key] < 20
        seen[key] += 1
        firsts += is_first
        if key not in alone:
            alone[key] = copy.deepcopy(fresh)
        answers = {
            "one for all": one.predict_one(x),
            "keyed, no prior": alone[key].predict_one(x),
            "keyed, prior": own.get(key, one).predict_one(x),
        }
        for which, answer in answers.items():
            mistakes[which] += answer != y
            early[which] += is_first and answer != y
        alone[key].learn_one(x, y)
        one.learn_one(x, y)
        if key in own:
            own[key].learn_one(x, y)
        else:
            own[key] = copy.deepcopy(one)
    for which, wrong in mistakes.items():
        row = {"model": name, "models": which, "error, %": 100 * wrong / length}
        yield row | {"first 20 of a key, %": 100 * early[which] / firsts}
