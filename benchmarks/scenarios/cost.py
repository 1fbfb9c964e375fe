"""What an example costs a Tracker, and how that grows: one setting at a time is another.

Rows are normal numbers, and the label is the largest of as many noisy sums as there are classes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.scenarios.alternatives import BEFORE, BLOCK
from benchmarks.timing import Times, mistakes, order_of, progress, seconds
from drift.models import Tracker

if TYPE_CHECKING:
    from benchmarks.timing import Example

DELAY = 100


class Setting(NamedTuple):
    """A kind of rows, and a Tracker for them."""

    features: int = 8
    classes: int = 2
    given: dict[str, Any] = {}  # noqa: RUF012 - never changed


SETTINGS: dict[str, Setting] = {
    "8 features, 2 classes, budget 300": Setting(),
    **{f"{n} features": Setting(features=n) for n in (2, 32, 128)},
    **{f"{n} classes": Setting(classes=n) for n in (3, 6, 12)},
    **{f"budget={n}": Setting(given={"budget": n}) for n in (50, 100, 1_000)},
    "trees=False": Setting(given={"trees": False}),
    "kernels=(0, 1)": Setting(given={"kernels": (0, 1)}),
    f"late=True, {DELAY} rows": Setting(given={"late": True}),
}


def rows_of(setting: Setting, n: int) -> list[Example]:
    """Draw the rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, setting.features))
    sums = X @ rng.normal(size=(setting.features, setting.classes))
    y = (sums + rng.normal(size=sums.shape)).argmax(axis=1)
    names = [f"f{j}" for j in range(setting.features)]
    rows = [dict(zip(names, x, strict=True)) for x in X.tolist()]
    return list(zip(rows, y.tolist(), strict=True))


def later(model: Tracker, waiting: deque[Example], examples: list[Example]) -> None:
    """Predict each example, then learn the one of so many before it."""
    for x, y in examples:
        model.predict_one(x)
        waiting.append((x, y))
        if len(waiting) > DELAY:
            model.learn_one(*waiting.popleft())


def cost(*, quick: bool) -> dict[str, Any]:
    """Microseconds of an example and bytes of the model, by setting."""
    n = 3_000 if quick else 8_000
    models = {name: Tracker(**setting.given) for name, setting in SETTINGS.items()}
    rows = {name: rows_of(setting, n) for name, setting in SETTINGS.items()}
    waiting: dict[str, deque[Example]] = {name: deque() for name in SETTINGS}
    times = Times({name: [] for name in SETTINGS})
    for k in progress(range(n // BLOCK), "cost: blocks"):
        for name in order_of(k, list(SETTINGS)):
            model, block = models[name], rows[name][k * BLOCK : (k + 1) * BLOCK]
            if model.late:
                spent = seconds(lambda: later(model, waiting[name], block))  # noqa: B023 - called here
            else:
                spent = seconds(lambda: mistakes(model, block))  # noqa: B023 - called here
            if k >= BEFORE:
                times[name].append(1e6 * spent / len(block))
    base = next(iter(SETTINGS))
    table = [
        {
            "setting": name,
            "us": times.microseconds(name),
            "x the first": times.ratio(name, base)["median"],
            "MB": model._raw_memory_usage / 1e6,
        }
        for name, model in models.items()
    ]
    return {"table": table}
