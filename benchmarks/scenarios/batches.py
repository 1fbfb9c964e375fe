"""Batches against the loop over their rows: every model, kind of rows and direction.

The loop calls `predict_one` or `learn_one` on dicts, which have the names of a frame's columns or
the numbers of an array's. A batch is never to be slower.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy.sparse import csr_array

from benchmarks.models import made
from benchmarks.timing import Timed, on_copies, progress, take_turns
from drift.models import MODELS, Averaged, OneVsRest, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.timing import Times

    #: Does something with a model, rows and labels.
    Run = Callable[[Any, Any, Any], None]

WIDTH, LEARNT, BUDGET = 10, 500, 100
#: Rows of a batch, and how many batches come one after another, as in a stream.
ROWS, BATCHES = 1_000, 3
#: Rows of a call whose fixed cost is measured, and so many calls.
SHORT = {1: 400, 10: 100, 100: 10}

#: The rows of an array as each kind of batch. The first four have the columns' names.
KINDS: dict[str, Callable[[Any, list[str]], Any]] = {
    "dicts": lambda X, names: [dict(zip(names, x, strict=True)) for x in X.tolist()],
    "pandas": lambda X, names: pd.DataFrame(X, columns=names),
    "polars": lambda X, names: pl.DataFrame(X, schema=names),
    "pyarrow": lambda X, names: pa.table(dict(zip(names, X.T, strict=True))),
    "numpy": lambda X, _: X,
    "sparse": lambda X, _: csr_array(X),
}
NAMED = ("dicts", "pandas", "polars", "pyarrow")


class Rows(NamedTuple):
    """Rows in all kinds of batch, their labels, and the dicts of both loops."""

    kinds: dict[str, Any]
    y: list[bool]
    dicts: dict[bool, list[dict[Any, float]]]  # by whether features have names

    @classmethod
    def of(cls, X: Any, y: Any) -> Rows:
        """Make them of an array."""
        names = [f"f{j}" for j in range(X.shape[1])]
        kinds = {kind: make(X, names) for kind, make in KINDS.items()}
        numbers = [dict(enumerate(x)) for x in X.tolist()]
        return cls(kinds, y.tolist(), {True: kinds["dicts"], False: numbers})


def drawn(n: int) -> tuple[Any, Any]:
    """Rows without zeros and labels by a noisy linear rule."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, WIDTH))
    return X, X @ rng.normal(size=WIDTH) + rng.normal(size=n) > 0.0


def makers() -> dict[str, Callable[[], Any]]:
    """All models, with a budget where they have one."""
    result: dict[str, Callable[[], Any]] = {name: partial(made, name, BUDGET) for name in MODELS}
    result["OneVsRest"] = lambda: OneVsRest(MODELS["LBP"](BUDGET))
    result["Averaged"] = lambda: Averaged(MODELS["LBP"](BUDGET))
    return result | {"Tracker": partial(Tracker, budget=BUDGET)}


def predict_each(model: Any, X: Any, _: Any) -> None:
    """Predict the rows one by one."""
    for x in X:
        model.predict_one(x)


def learn_each(model: Any, X: Any, y: Any) -> None:
    """Learn the rows one by one."""
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label)


#: What is done, by its name: in a loop over dicts, and with a batch.
DIRECTIONS: dict[str, tuple[Run, Run]] = {
    "predict": (predict_each, lambda model, X, _: model.predict_many(X)),
    "learn": (learn_each, lambda model, X, y: model.learn_many(X, y)),
}


def learnt(make: Callable[[], Any], rows: Rows) -> dict[bool, Any]:
    """Models that have learnt dicts with names, and with numbers."""
    models = {named: make() for named in (True, False)}
    for named, model in models.items():
        learn_each(model, rows.dicts[named], rows.y)
    return models


def batches(*, quick: bool) -> dict[str, Any]:
    """Time of batches over that of the loop, and microseconds of short calls."""
    size, rounds = (100, 2) if quick else (ROWS, 5)
    X, y = drawn(LEARNT + BATCHES * size)
    before, starts = Rows.of(X[:LEARNT], y[:LEARNT]), range(LEARNT, len(y), size)
    parts = [Rows.of(X[i : i + size], y[i : i + size]) for i in starts]
    ratios, calls = [], []
    for name, make in progress(makers().items(), "batches: models"):
        models = learnt(make, before)
        for direction in DIRECTIONS:
            times = _times(models, direction, parts, rounds, name)
            row: dict[str, Any] = {"model": f"{name}, {direction}"}
            row["loop, us a row"] = times.microseconds("loop True")["median"] / size
            for kind in KINDS:
                row[kind] = times.ratio(kind, f"loop {kind in NAMED}")["median"]
            ratios.append(row)
    models = learnt(makers()["LBP"], before)
    for direction in DIRECTIONS:
        for few, repeats in SHORT.items():
            part = Rows.of(X[LEARNT : LEARNT + few], y[LEARNT : LEARNT + few])
            times = _times(models, direction, [part] * repeats, rounds, "short")
            row = {"LBP": f"{direction} {few} rows"}
            calls.append(row | {kind: min(times[kind]) for kind in KINDS})
    title = f"{BATCHES} batches of {size:,} rows: time over the loop's"
    return {"tables": {title: ratios, "microseconds of a call": calls}}


def _times(
    models: dict[bool, Any], direction: str, parts: list[Rows], rounds: int, label: str
) -> Times:
    """Microseconds of a part, by the loops over dicts and by batches of each kind."""
    in_loop, at_once = DIRECTIONS[direction]
    contenders: dict[str, Timed] = {}
    for named in (True, False):
        dicts = [(part.dicts[named], part.y) for part in parts]
        contenders[f"loop {named}"] = _on_parts(models[named], in_loop, dicts)
    for kind in KINDS:
        rows = [(part.kinds[kind], part.y) for part in parts]
        contenders[kind] = _on_parts(models[kind in NAMED], at_once, rows)
    return take_turns(contenders, rounds, f"batches: {label}")


def _on_parts(model: Any, run: Run, parts: list[tuple[Any, Any]]) -> Timed:
    """Time one part of the rows after another."""

    def through(copied: Any) -> None:
        for X, y in parts:
            run(copied, X, y)

    return on_copies(model, through, len(parts))
