"""Labels at once, 10, 100 and 1,000 rows late: the Tracker beside forests, on the same rows.

    export DRIFT_DATA=...
    python -m benchmarks.late                                      # the Tracker; five minutes
    python -m benchmarks.late --models Tracker ARF SRP Leveraging  # and forests of 10 trees; hours
    python -m benchmarks.late --streams electricity --delays 100

Rows behind the first 1,000 and the delay count. Forests get the first 10,000 rows, in a table of
their own with the Tracker on the same rows; those with `RecentDeviation` see the same features as
the Tracker does, each row as it is predicted. *Shuffled* is the stream in random order: what looks
ahead, or lives on the order of the rows, shows there. A run is appended to `runs.jsonl` in the
output folder as it ends, and is not made again from the same sources.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from river import ensemble, forest, linear_model, multiclass, preprocessing, tree

from benchmarks.streams import stream
from drift.experiments import Run, RunFolder, run_all
from drift.experiments.jobs import code_fingerprint
from drift.features import RecentDeviation
from drift.models import Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

STREAMS = ("electricity", "weather", "outdoor", "insects", "rialto", "ijcnn1", "a9a", "sea")
DELAYS = (0, 10, 100, 1_000)
#: Rows before which nothing counts, besides the delay; and those that forests get.
SETTLED, SLOW_ROWS = 1_000, 10_000
#: Error in % that the Tracker is to have at most, by stream and delay.
GOALS = {
    ("electricity", 0): 4.0,
    ("electricity", 100): 8.0,
    ("electricity", 1_000): 9.0,
    ("weather", 0): 18.5,
    ("weather", 100): 19.3,
    ("outdoor", 100): 47.0,
    ("insects", 1_000): 30.7,
    ("rialto", 0): 10.0,
}


def _logistic() -> Any:
    one = linear_model.LogisticRegression()
    return preprocessing.StandardScaler() | multiclass.OneVsRestClassifier(one)


def _bagging() -> Any:
    return ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(), n_models=10, seed=0)


#: Models by name, from whether labels are late.
MODELS: dict[str, Callable[[bool], Any]] = {
    "Tracker": lambda late: Tracker(300, late=late),
    "logistic regression": lambda _: _logistic(),
    "ARF": lambda _: forest.ARFClassifier(n_models=10, seed=0),
    "SRP": lambda _: ensemble.SRPClassifier(n_models=10, seed=0),
    "Leveraging": lambda _: _bagging(),
}


class Case(NamedTuple):
    """One model on one stream, labels so many rows late."""

    model: str
    deviations: bool
    stream: str
    rows: int | None
    delay: int
    shuffled: bool

    def run(self) -> Run:
        """Return what `drift.experiments.run_all` takes: a worker reads the stream."""
        code = code_fingerprint() if self.model == "Tracker" or self.deviations else None
        identity = self._asdict() | {
            "parameters": {"late": self.delay > 0} if self.model == "Tracker" else {},
            "river": version("river"),
            "code": code,
        }
        make = partial(MODELS[self.model], self.delay > 0)
        return Run(identity, make, measured, (self,), len(stream(self.stream, self.rows)))


def with_deviations(rows: Iterable[tuple[Any, Any]]) -> Iterable[tuple[Any, Any]]:
    """Give each row its deviations from the means of those before it, as it comes."""
    recent = RecentDeviation()
    for x, y in rows:
        yield recent.transform_one(x), y
        recent.learn_one(x)


def measured(model: Any, case: Case) -> dict[str, Any]:
    """Predict each row, and learn it so many rows later."""
    rows = list(stream(case.stream, case.rows))
    if case.shuffled:
        order = np.random.default_rng(0).permutation(len(rows)).tolist()
        rows = [rows[i] for i in order]
    rows = list(with_deviations(rows)) if case.deviations else rows
    waiting: deque[Any] = deque()
    wrong, started = 0, time.process_time()
    for t, (x, y) in enumerate(rows):
        predicted = model.predict_one(x)  # of rows that do not count, too: it leaves a ticket
        wrong += t >= SETTLED + case.delay and predicted != y
        waiting.append((x, y))
        if len(waiting) > case.delay:
            model.learn_one(*waiting.popleft())
    counted = len(rows) - SETTLED - case.delay
    seconds = time.process_time() - started
    return {"n_samples": len(rows), "error": 100 * wrong / counted, "seconds": round(seconds, 3)}


def runs(chosen: argparse.Namespace) -> list[Run]:
    """Return the runs that the options ask for."""
    wanted = [
        Case("Tracker", False, name, None, delay, shuffled)
        for name in chosen.streams
        for delay in chosen.delays
        for shuffled in (False, True)
    ]
    beside = [name for name in chosen.models if name != "Tracker"]
    wanted += [
        Case(name, deviations, of, SLOW_ROWS, delay, False)
        for of in chosen.streams
        for delay in chosen.delays
        for name in ["Tracker", *beside] * bool(beside)
        for deviations in ((False,) if name == "Tracker" else (False, True))
    ]
    return [case.run() for case in wanted]


def tables(records: list[dict[str, Any]]) -> str:
    """Return the tables, as Markdown."""
    whole = [one for one in records if one["rows"] is None]
    lines = [
        "| stream | rows late | error, % | goal | shuffled | us a row |",
        "|---|---|---|---|---|---|",
    ]
    for one in whole:
        if one["shuffled"]:
            continue
        place = one["stream"], one["delay"]
        other = [r for r in whole if r["shuffled"] and (r["stream"], r["delay"]) == place]
        shuffled = f"{other[0]['error']:.1f}" if other else ""
        goal, us = GOALS.get(place, ""), 1e6 * one["seconds"] / one["n_samples"]
        lines.append(
            f"| {place[0]} | {place[1]:,} | {one['error']:.2f} | {goal} | {shuffled} | {us:.0f} |"
        )
    beside = pd.DataFrame([one for one in records if one["rows"] is not None])
    if len(beside):
        names = beside["model"] + np.where(beside["deviations"], ", deviations", "")
        wide = beside.assign(model=names).pivot_table(
            index=["stream", "delay"], columns="model", values="error", sort=False
        )
        lines += ["", f"First {SLOW_ROWS:,} rows:", "", f"| stream | late | {' | '.join(wide)} |"]
        lines += ["|" + "---|" * (2 + len(wide.columns))]
        for (name, delay), row in wide.iterrows():
            cells = " | ".join("" if v != v else f"{v:.1f}" for v in row)
            lines.append(f"| {name} | {delay:,} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=list(STREAMS))
    parser.add_argument("--delays", nargs="+", type=int, default=list(DELAYS))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["Tracker"])
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1: one for each core")
    parser.add_argument("--output", type=Path, default=Path("results", "late"))
    chosen = parser.parse_args()
    folder = RunFolder(chosen.output)
    records = run_all(runs(chosen), folder=folder, jobs=chosen.jobs, progress=True)
    text = tables(records)
    (chosen.output / "table.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    from benchmarks import late  # noqa: PLW0406 - as what workers import it

    late.main()
