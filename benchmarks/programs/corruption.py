"""Dirty data: the Tracker's error on corrupted streams, beside River's simple models.

    python -m benchmarks corruption                 # two generated streams; a quarter of an hour
    DRIFT_DATA=... python -m benchmarks corruption  # and three real ones; an hour
    python -m benchmarks corruption --streams gauss --corruptions clean "nan 5 %"

A cell is a corruption of a stream of 6,000 rows. Each model predicts a row, then learns it. Rivals
get the values that are there; the Tracker gets NaN, too. A cell is lost where the Tracker errs more
than 1.05 times as often as the best of them. Runs are kept in the output folder: the same call goes
on.
"""

from __future__ import annotations

import argparse
import math
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base, linear_model, multiclass, optim, preprocessing, tree
from river.compose import FuncTransformer

from benchmarks import output_option
from benchmarks.report import markdown, write_result
from drift.errors import DriftError
from drift.experiments import compare
from drift.experiments.arena.streams import STREAMS as ARENA
from drift.models import Tracker
from drift.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    Row = dict[str, float]
    Corruption = Callable[[list[Row], "About"], None]

ROWS = 6_000
#: Where the Tracker errs more than so many times as often as the best rival, a cell is lost.
MOST = 1.05


# --- streams -----------------------------------------------------------------------------------


def gauss() -> Stream:
    """Eight features of means 100 to 1e6 and deviation 1; two classes along a random line."""
    rng = np.random.default_rng(7)
    y, line = rng.integers(0, 2, ROWS), rng.normal(size=8)
    shift = 2.2 * (y[:, np.newaxis] - 0.5) * line / np.linalg.norm(line)
    X = rng.normal(size=(ROWS, 8)) + shift + np.geomspace(100, 1e6, 8)
    return _stream("gauss", X, y)


def categories() -> Stream:
    """Three columns of 60, 120 and 300 categories, one-hot, and three numbers; noise on both."""
    rng, counts = np.random.default_rng(7), (60, 120, 300)
    effects = [rng.normal(size=count) for count in counts]
    shares = [rng.dirichlet(np.full(count, 0.5)) for count in counts]
    drawn = [rng.choice(count, ROWS, p=p) for count, p in zip(counts, shares, strict=True)]
    Z = rng.normal(size=(ROWS, 3))
    score = 1.5 * sum(effect[k] for effect, k in zip(effects, drawn, strict=True))
    score += Z @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=ROWS)
    numbers = _stream("categories", Z * [1, 10, 5] + [50, 1000, 3], (score > 0).astype(int))
    ones = [{f"c{k}={column[i]}": 1.0 for k, column in enumerate(drawn)} for i in range(ROWS)]
    pairs = zip(numbers, ones, strict=True)
    return Stream([(x | more, y) for (x, y), more in pairs], "categories")


def real(name: str, start: int = 0, rows: int = ROWS) -> Stream:
    """Rows of a stream of the arena, zeros included."""
    examples = ARENA[name].make().examples[start : start + rows]
    return Stream([({f"f{k}": v for k, v in x.items()}, y) for x, y in examples], name)


def _stream(name: str, X: Any, y: Any) -> Stream:
    rows = [{f"f{j}": value for j, value in enumerate(row)} for row in X.tolist()]
    return Stream(list(zip(rows, y.tolist(), strict=True)), name)


STREAMS: dict[str, Callable[[], Stream]] = {
    "gauss": gauss,
    "categories": categories,
    "weather": partial(real, "weather"),
    # Behind the first year, where two columns are constant.
    "electricity": partial(real, "electricity", 18_000),
    "insects": partial(real, "insects", rows=3_000),
}

# --- corruptions, each in place ----------------------------------------------------------------


class About:
    """Numeric features of a stream, their means and deviations, and a generator."""

    def __init__(self, rows: list[Row]) -> None:
        names = dict.fromkeys(name for x in rows[:200] for name in x)
        self.names = [name for name in names if name.startswith("f")]
        values = {name: [x[name] for x in rows if name in x] for name in self.names}
        self.mean = {name: float(np.mean(column)) for name, column in values.items()}
        self.deviation = {name: float(np.std(column)) or 1.0 for name, column in values.items()}
        self.rng = random.Random(3)

    def change(self, rows: list[Row], names: list[str], new: Callable[[str, float], float]) -> None:
        """Put new values in the place of those that are there."""
        for x in rows:
            for name in names:
                if name in x:
                    x[name] = new(name, x[name])


def _missing(rows: list[Row], about: About, share: float, *, nan: bool = False) -> None:
    for x in rows:
        for name in [one for one in x if about.rng.random() < share]:
            if nan:
                x[name] = math.nan
            else:
                del x[name]


def _missing_above(rows: list[Row], about: About) -> None:
    for x in rows:
        for name in about.names[1::2]:
            if x.get(name, -math.inf) > about.mean[name] and about.rng.random() < 0.5:
                del x[name]


def _blocks(rows: list[Row], about: About) -> None:
    for k, name in enumerate(about.names[:8]):
        for i, x in enumerate(rows):
            if (i // 500) % 10 == (k + 2) % 10:
                x.pop(name, None)


def _move(
    rows: list[Row], about: About, names: slice, *, by: float = 0.0, times: float = 1.0
) -> None:
    """Move the second half by so many deviations, or multiply it."""
    later = rows[len(rows) // 2 :]
    about.change(later, about.names[names], lambda k, v: times * v + by * about.deviation[k])


def _outliers(rows: list[Row], about: About, size: float) -> None:
    def new(name: str, value: float) -> float:
        if about.rng.random() >= 1e-3:
            return value
        return about.mean[name] + size * about.deviation[name] * about.rng.choice((-1, 1))

    about.change(rows, about.names, new)


def _first(rows: list[Row], about: About, size: float) -> None:
    two = [rows[2], rows[6]]
    about.change(two, about.names, lambda k, _: about.mean[k] + size * about.deviation[k])


def _gone(rows: list[Row], about: About, *, late: bool) -> None:
    half = len(rows) // 2
    for x in rows[:half] if late else rows[half:]:
        for name in about.names[::2]:
            x.pop(name, None)


def _constant(rows: list[Row], about: About) -> None:
    about.change(rows[: len(rows) // 2], about.names[::2], lambda k, _: about.mean[k])


def _units(rows: list[Row], about: About) -> None:
    about.change(rows[len(rows) // 2 :], about.names, lambda _, v: 1.8 * v + 32)


def _permuted(rows: list[Row], about: About) -> None:
    other = dict(zip(about.names, about.rng.sample(about.names, len(about.names)), strict=True))
    for i in range(len(rows) // 2, len(rows)):
        rows[i] = {other.get(name, name): value for name, value in rows[i].items()}


def _cauchy(rows: list[Row], about: About) -> None:
    rng = np.random.default_rng(5)
    noise = rng.standard_cauchy
    about.change(rows, about.names, lambda k, v: v + 0.05 * about.deviation[k] * float(noise()))


_ONE, _ALL = slice(1, 2), slice(None)
CORRUPTIONS: dict[str, Corruption] = {
    "clean": lambda rows, about: None,
    "absent 1 %": partial(_missing, share=0.01),
    "absent 5 %": partial(_missing, share=0.05),
    "absent 20 %": partial(_missing, share=0.2),
    "nan 5 %": partial(_missing, share=0.05, nan=True),
    "absent above the mean": _missing_above,
    "absent in blocks": _blocks,
    "one jumps by 10": partial(_move, names=_ONE, by=10.0),
    "one jumps by 1,000": partial(_move, names=_ONE, by=1e3),
    "all jump by 10": partial(_move, names=_ALL, by=10.0),
    "all jump by 1,000": partial(_move, names=_ALL, by=1e3),
    "one times 100": partial(_move, names=_ONE, times=100.0),
    "all times 100": partial(_move, names=_ALL, times=100.0),
    "all times 0.01": partial(_move, names=_ALL, times=0.01),
    "outliers of 1e3": partial(_outliers, size=1e3),
    "outliers of 1e30": partial(_outliers, size=1e30),
    "first of 1e3": partial(_first, size=1e3),
    "first of 1e30": partial(_first, size=1e30),
    "half come late": partial(_gone, late=True),
    "half vanish": partial(_gone, late=False),
    "half constant at first": _constant,
    "other units": _units,
    "permuted": _permuted,
    "Cauchy noise": _cauchy,
}


def corrupted(stream: Stream, name: str) -> Stream:
    """Return a stream with a corruption in `CORRUPTIONS`."""
    rows = [dict(x) for x, _ in stream]
    CORRUPTIONS[name](rows, About(rows))
    labels = [y for _, y in stream]
    return Stream(list(zip(rows, labels, strict=True)), f"{stream.name}: {name}")


# --- models ------------------------------------------------------------------------------------


class Mean(base.Transformer):
    """Fill absent features with the mean so far: River's `StatImputer` for every name."""

    def __init__(self) -> None:
        self._mean: dict[Any, float] = {}
        self._count: dict[Any, int] = {}

    def learn_one(self, x: dict[Any, float]) -> None:
        """Learn the means."""
        for name, value in x.items():
            n = self._count[name] = self._count.get(name, 0) + 1
            mean = self._mean.get(name, 0.0)
            self._mean[name] = mean + (value - mean) / n

    def transform_one(self, x: dict[Any, float]) -> dict[Any, float]:
        """Fill."""
        return {**self._mean, **x}


def without_nan(x: dict[Any, float]) -> dict[Any, float]:
    """Leave out values that are NaN."""
    return {name: value for name, value in x.items() if value == value}


def _regression() -> Any:
    model = linear_model.LogisticRegression(optim.SGD(0.05))
    return multiclass.OneVsRestClassifier(model)


def models() -> dict[str, Any]:
    """Return the Tracker and its rivals."""
    scaler, adaptive = preprocessing.StandardScaler, preprocessing.AdaptiveStandardScaler
    rivals = {
        "LR": _regression(),
        "scaler, LR": scaler() | _regression(),
        "means, scaler, LR": Mean() | scaler() | _regression(),
        "adaptive scaler, LR": adaptive(0.01) | _regression(),
        "HAT": tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    }
    imputed = {name: FuncTransformer(without_nan) | model for name, model in rivals.items()}
    return {"Tracker": Tracker()} | imputed


# --- the table ---------------------------------------------------------------------------------


def cell(errors: dict[str, float | None]) -> dict[str, Any]:
    """Return the Tracker's error, the best rival, its error and whether the cell is lost."""
    ours = errors["Tracker"]
    rivals = {name: e for name, e in errors.items() if name != "Tracker" and e is not None}
    best = min(rivals, key=rivals.__getitem__)
    lost = ours is None or ours > MOST * rivals[best]
    return {"Tracker": ours, "best": best, "its error": rivals[best], "lost": lost}


def main(arguments: list[str]) -> int:
    """Run what is missing and print the table; 1 if a cell is lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks corruption")
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=list(STREAMS))
    parser.add_argument("--corruptions", nargs="+", choices=CORRUPTIONS, default=list(CORRUPTIONS))
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1: one for each core")
    output_option(parser)
    chosen = parser.parse_args(arguments)
    cells = []
    for name in chosen.streams:
        try:
            stream = STREAMS[name]()
        except DriftError as error:
            print(f"left out: {name} ({error})")
            continue
        streams = [corrupted(stream, one) for one in chosen.corruptions]
        named = {one.name: one for one in streams}
        kept = chosen.output / "corruption" / name
        result = compare(models(), named, jobs=chosen.jobs, output=kept, progress=True)
        for one in named:
            rows = [row for row in result.rows("runs") if row["stream"] == one]
            errors = {
                row["model"]: 100 * row["error"] if row["status"] == "ok" else None
                for row in rows
                if row["model"] in models()
            }
            cells.append({"stream": name, "corruption": one.partition(": ")[2], **cell(errors)})
    print(markdown(row | {"lost": "lost" * row["lost"]} for row in cells))
    lost = sum(row["lost"] for row in cells)
    print(f"{lost} of {len(cells)} cells lost")
    write_result(chosen.output, "corruption", {"table": cells})
    return int(lost > 0)
