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

from benchmarks.timing import Contender, Times, on_copies, progress, take_turns
from drift.models import MODELS, Averaged, OneVsRest, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.scenarios import Settings

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
    made: dict[str, Callable[[], Any]] = {}
    for name, model in MODELS.items():
        budgeted = name in {"RBP", "LBP", "MRBP", "Forgetron", "RBSOP", "LBSOP", "CKS"}
        made[name] = partial(model, budget=BUDGET) if budgeted else model
    made["PassiveAggressive"] = partial(MODELS["PassiveAggressive"], budget=BUDGET)
    made["OneVsRest"] = lambda: OneVsRest(MODELS["LBP"](BUDGET))
    made["Averaged"] = lambda: Averaged(MODELS["LBP"](BUDGET))
    made["Tracker"] = partial(Tracker, budget=BUDGET)
    return made


def loop(predict: bool, dicts: Any, y: Any, model: Any) -> None:  # noqa: FBT001
    """Predict or learn the rows one by one."""
    if predict:
        for x in dicts:
            model.predict_one(x)
    else:
        for x, label in zip(dicts, y, strict=True):
            model.learn_one(x, label)


def batch(predict: bool, X: Any, y: Any, model: Any) -> None:  # noqa: FBT001
    """Predict or learn the rows at once."""
    if predict:
        model.predict_many(X)
    else:
        model.learn_many(X, y)


def each(run: Callable[..., None], predict: bool, parts: Any, model: Any) -> None:  # noqa: FBT001
    """Let a loop or a batch run on one part of the rows after another."""
    for X, y in parts:
        run(predict, X, y, model)


def learnt(make: Callable[[], Any], rows: Rows) -> dict[bool, Any]:
    """Models that have learnt dicts with names, and with numbers."""
    models = {named: make() for named in (True, False)}
    for named, model in models.items():
        loop(False, rows.dicts[named], rows.y, model)
    return models


def whole(settings: Settings) -> dict[str, Any]:
    """Batches of some thousand rows: time over that of the loop, and us a row."""
    size = settings.pick(ROWS, 100)
    n = BATCHES * size
    X, y = drawn(LEARNT + n)
    before = Rows.of(X[:LEARNT], y[:LEARNT])
    starts = range(LEARNT, LEARNT + n, size)
    rows = [Rows.of(X[i : i + size], y[i : i + size]) for i in starts]
    table, figures = [], {}
    for name, make in progress(makers().items(), "batches: models"):
        models = learnt(make, before)
        for predict in (True, False):
            contenders: dict[str, Contender] = {}
            for named in (True, False):
                one = partial(each, loop, predict, [(part.dicts[named], part.y) for part in rows])
                contenders[f"loop {named}"] = on_copies(models[named], one, n)
            for kind in KINDS:
                many = partial(each, batch, predict, [(part.kinds[kind], part.y) for part in rows])
                contenders[kind] = on_copies(models[kind in NAMED], many, n)
            times = take_turns(contenders, settings.pick(5, 2), f"batches: {name}")
            direction = "predict" if predict else "learn"
            row: dict[str, Any] = {"model": f"{name}, {direction}"}
            row["loop, us"] = times.microseconds("loop True")["median"]
            for kind in KINDS:
                ratio = times.ratio(kind, f"loop {kind in NAMED}")
                row[kind] = ratio["median"]
                figures[f"{name} {direction} {kind} / loop"] = ratio
            table.append(row)
    return {"table": table, "figures": figures}


def short(settings: Settings) -> dict[str, Any]:
    """Batches of 1, 10 and 100 rows: us a call, and what is beyond the time of the loop."""
    X, y = drawn(LEARNT + 1_000)
    before = Rows.of(X[:LEARNT], y[:LEARNT])
    table, figures = [], {}
    chosen = {name: make for name, make in makers().items() if name in {"LBP", "Tracker"}}
    for name, make in progress(chosen.items(), "short batches: models"):
        models = learnt(make, before)
        for predict in (True, False):
            for size, calls in SHORT.items():
                rows = Rows.of(X[LEARNT : LEARNT + size], y[LEARNT : LEARNT + size])
                times = _short_times(models, predict, rows, calls, settings)
                direction = "predict" if predict else "learn"
                row: dict[str, Any] = {"model": f"{name}, {direction}", "rows": size}
                row["loop, us"] = times.microseconds("loop")["median"]
                for kind in KINDS:
                    row[kind] = times.microseconds(kind)["median"]
                    figures[f"{name} {direction} {kind} {size} rows, us"] = times.microseconds(kind)
                table.append(row)
    return {"table": table, "figures": figures}


def _short_times(
    models: dict[bool, Any],
    predict: bool,  # noqa: FBT001
    rows: Rows,
    calls: int,
    settings: Settings,
) -> Times:
    """Times of one call over few rows."""

    def repeated(run: Callable[[Any], None]) -> Callable[[Any], None]:
        def calling(model: Any) -> None:
            for _ in range(calls):
                run(model)

        return calling

    one = repeated(partial(loop, predict, rows.dicts[True], rows.y))
    contenders = {"loop": on_copies(models[True], one, calls)}
    for kind, batched in rows.kinds.items():
        many = repeated(partial(batch, predict, batched, rows.y))
        contenders[kind] = on_copies(models[kind in NAMED], many, calls)
    return take_turns(contenders, settings.pick(3, 2), "short batches: rounds")
