"""Time of an example by that of the Tracker: models that may be used in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from river import forest, linear_model, naive_bayes, preprocessing, tree

from benchmarks.streams import stream
from benchmarks.timing import Times, mistakes, progress, seconds, turns
from drift.models import LBP, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Rows that a model predicts and learns before the next one's turn.
BLOCK = 500
#: Blocks whose time does not count, as models grow in them.
BEFORE = 4
TRACKER = "Tracker(300)"
#: All take rows of numbers.
MODELS: dict[str, Callable[[], Any]] = {
    TRACKER: lambda: Tracker(300),
    "Tracker(100)": lambda: Tracker(100),
    "LBP(300)": lambda: LBP(300),
    "LBP(300) behind a StandardScaler": lambda: preprocessing.StandardScaler() | LBP(300),
    "LogisticRegression": linear_model.LogisticRegression,
    "LogisticRegression behind a StandardScaler": lambda: (
        preprocessing.StandardScaler() | linear_model.LogisticRegression()
    ),
    "GaussianNB": naive_bayes.GaussianNB,
    "HoeffdingAdaptiveTreeClassifier": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    "ARFClassifier": lambda: forest.ARFClassifier(seed=1),
}
#: Those that words suit.
OF_TEXT = (TRACKER, "Tracker(100)", "LBP(300)", "LogisticRegression")


def normal(n: int) -> list[tuple[dict[str, float], bool]]:
    """Rows of eight normal features, labels by a noisy linear rule."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(n, 8)), rng.normal(size=n)
    y = X @ rng.normal(size=8) + noise > 0.0
    return [
        ({f"f{j}": v for j, v in enumerate(x)}, label)
        for x, label in zip(X.tolist(), y.tolist(), strict=True)
    ]


def alternatives(*, quick: bool) -> dict[str, Any]:
    """Models in turns on a table, on numbers without drift, and on text."""
    n = 3_000 if quick else 12_000
    columns = {
        "Electricity, 6 features": (stream("electricity").head(n), MODELS),
        "8 normal features": (normal(n), MODELS),
        "RCV1, 77 words": (stream("rcv1 shifts").head(n), OF_TEXT),
    }
    table = [{"contender": name} | dict.fromkeys(columns) for name in MODELS]
    notes = []
    for column, (examples, names) in columns.items():
        times = in_turns(list(examples), names, column)
        for row in table:
            if row["contender"] in names:
                row[column] = times.ratio(row["contender"], TRACKER)["median"]
        notes.append(f"{column}: {TRACKER} takes {times.microseconds(TRACKER)['median']:.1f} us")
    return {"table": table, "notes": notes}


def in_turns(examples: list[Any], names: Iterable[str], label: str) -> Times:
    """Microseconds an example of each model in each block; all go through the whole stream."""
    models = {name: MODELS[name]() for name in names}
    times = Times({name: [] for name in models})
    blocks = [examples[i : i + BLOCK] for i in range(0, len(examples), BLOCK)]
    for k, name in progress(turns(models, len(blocks)), f"alternatives: {label}"):
        block = blocks[k]
        spent = seconds(lambda: mistakes(models[name], block))  # noqa: B023 - called here
        if k >= BEFORE:
            times[name].append(1e6 * spent / len(block))
    return times
