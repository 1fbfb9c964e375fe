"""The Tracker on every development stream, beside what else there is; constants are the same.

    export DRIFT_DATA=...
    python -m benchmarks.tracker                                       # everything; hours
    python -m benchmarks.tracker --streams electricity insects --models Tracker LBP --budgets 100
    python -m benchmarks.tracker --quick                               # does it run? a minute
    python -m benchmarks.tracker --speed --old-python ../old/bin/python     # times and memory, too
    python -m benchmarks.tracker --page docs/tracker_results.md        # with the page made anew

Each row is predicted, then learnt. A run is appended to `runs.jsonl` in the output folder as it
ends, and one that is there is not run again, so the command can be interrupted and called again.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.contenders import FAMILIES
from benchmarks.streams import STREAMS, TEXTS, stream
from benchmarks.tracker_page import draw, page
from benchmarks.tracker_speed import speed
from drift.experiments import Run, RunFolder, run_all
from drift.experiments.jobs import code_fingerprint
from drift.models import Tracker

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.streams import Stream

#: Mistakes are counted in parts of so many rows.
PART = 500
SLOW_ROWS = 20_000
#: Rows of a window that calibration is measured in, and how often labels are drawn for it.
WINDOW, BINS, DRAWS = 5_000, 10, 20
#: A probability below this counts as this in the log loss, and that of an unknown class, too.
LEAST = 1e-6


class Case(NamedTuple):
    """One model with one setting on one stream."""

    family: str
    setting: int
    budget: int | None
    stream: str
    rows: int | None
    shuffled: bool
    seconds: float

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the setting, with the budget where there is one."""
        budget = {} if self.budget is None else {"budget": self.budget}
        return FAMILIES[self.family].grid[self.setting] | budget

    @property
    def takes_texts(self) -> bool:
        """Whether the model gets categories as texts: it is a tree, or made of them."""
        return FAMILIES[self.family].slow and self.stream in TEXTS

    def run(self) -> Run:
        """Return what `drift.experiments.run_all` takes: a worker reads the stream."""
        identity = {
            "model": self.family,
            "setting": self.setting,
            "parameters": self.parameters,
            "stream": self.stream,
            "rows": self.rows,
            "shuffled": self.shuffled,
            "versions": [version("river"), version("drift-learn")],
            # The Tracker may still change; the others keep their bits within a version.
            "code": code_fingerprint() if self.family == "Tracker" else None,
            "texts": self.takes_texts,
        }
        return Run(identity, self.make, measured, (self,), len(stream(self.stream, self.rows)))

    def make(self) -> Any:
        """Make the model, which has learnt nothing."""
        multiclass = len(np.unique(stream(self.stream, self.rows).y)) > 2
        return FAMILIES[self.family].make(multiclass, **self.parameters)


def measured(model: Any, case: Case) -> dict[str, Any]:
    """Test, then train, on one row after the other, as long as the processor's time lasts."""
    data = stream(case.stream, case.rows)
    data = data.block_shuffled() if case.shuffled else data
    data = data if FAMILIES[case.family].raw else data.scaled()
    texts = TEXTS[case.stream]().examples if case.takes_texts else []
    tracker = isinstance(model, Tracker)
    started = time.process_time()
    wrong: list[int] = []
    confident: list[tuple[float, bool, float]] = []
    for start in range(0, len(data), PART):
        if time.process_time() - started > case.seconds:
            break
        stop = min(start + PART, len(data))
        if tracker:
            one = [_track(model, data.row(i), data.label(i)) for i in range(start, stop)]
            wrong.append(sum(not right for _, right, _ in one))
            confident += one
        elif texts:
            wrong.append(_by_row(model, texts[start:stop]))
        else:
            wrong.append(_mistakes(model, data, start, stop))
    seconds = time.process_time() - started
    learnt = min(len(wrong) * PART, len(data))
    result = {
        "n_samples": learnt,
        "whole": learnt == len(data),
        "mistakes": sum(wrong),
        "error": 100 * sum(wrong) / learnt,
        "wrong": wrong,
        "seconds": round(seconds, 3),
    }
    return result | (_inside(model, np.array(confident), data.shifts) if tracker else {})


def _mistakes(model: Any, data: Stream, start: int, stop: int) -> int:
    """Mistakes in a part of a stream: by batches where there are any, else through dicts."""
    if hasattr(model, "predict_learn_many"):
        y = data.y[start:stop]
        return int((np.asarray(model.predict_learn_many(data.X[start:stop], y)) != y).sum())
    return _by_row(model, [(data.row(i), data.label(i)) for i in range(start, stop)])


def _by_row(model: Any, rows: list[tuple[Any, Any]]) -> int:
    wrong = 0
    for x, y in rows:
        wrong += model.predict_one(x) != y
        model.learn_one(x, y)
    return wrong


def _track(model: Any, x: dict[str, float], y: Any) -> tuple[float, bool, float]:
    """Learn a row; return the prediction's confidence, whether it was right, and the log loss."""
    prediction, chances = model.predict_one(x), model.predict_proba_one(x)
    loss = -math.log(max(chances.get(y, 0.0), LEAST))
    model.learn_one(x, y)
    return chances.get(prediction, 0.0), prediction == y, loss


def _inside(model: Any, confident: NDArray[Any], shifts: tuple[int, ...]) -> dict[str, Any]:
    """What only the Tracker is asked: its members, and the probabilities that it has shown."""
    best = min(model.members, key=lambda member: member.error)
    rate = f", {best.rate:g}" * (best.rate > 0)
    starts = range(0, len(confident) - WINDOW + 1, WINDOW)
    calm = [s for s in starts if not any(s < shift < s + WINDOW for shift in shifts)]
    rng = np.random.default_rng(0)
    return {
        "log_loss": float(np.mean(confident[:, 2])),
        "best_member": f"{best.kernel}{rate}{', forgets soon' * (best.forgetting > 1e-3)}",
        "best_member_error": 100 * best.error,
        "calibration": [_excess(confident[s : s + WINDOW], rng) for s in calm],
    }


def _excess(confident: NDArray[Any], rng: np.random.Generator) -> float:
    """ECE in percent, less that of labels drawn from the same probabilities."""
    p, right, _ = confident.T
    drawn = [_ece(p, rng.random(len(p)) < p) for _ in range(DRAWS)]
    return 100 * (_ece(p, right) - float(np.mean(drawn)))


def _ece(p: NDArray[Any], right: NDArray[Any]) -> float:
    """Expected calibration error of the likeliest class, in bins of equal width."""
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(bins, weights=right - p)).sum() / len(p))


def runs(chosen: argparse.Namespace) -> list[Run]:
    """Return the runs that the options ask for."""
    wanted = []
    for name in chosen.streams:
        for family in chosen.models:
            about = FAMILIES[family]
            rows = min(chosen.rows or SLOW_ROWS, SLOW_ROWS) if about.slow else chosen.rows
            wanted += [
                Case(family, setting, budget, name, rows, shuffled, chosen.seconds)
                for setting in range(1 if chosen.defaults else len(about.grid))
                for budget in (chosen.budgets if about.budgeted else [None])
                for shuffled in ((False, True) if family == "Tracker" else (False,))
            ]
    return [case.run() for case in wanted]


def main() -> None:
    """Run what is missing and make the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=list(STREAMS))
    parser.add_argument("--models", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--budgets", nargs="+", type=int, default=[100, 500])
    parser.add_argument("--rows", type=int, help="first rows of each stream only")
    parser.add_argument("--defaults", action="store_true", help="no settings but the default ones")
    parser.add_argument("--quick", action="store_true", help="1,000 rows, defaults")
    parser.add_argument("--seconds", type=float, default=600, help="that a run may take")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1: one for each core")
    parser.add_argument("--speed", action="store_true", help="measure times and memory as well")
    parser.add_argument("--old-python", help="python of an environment with drift of 65f8e9f")
    parser.add_argument("--output", type=Path, default=Path("results", "tracker"))
    parser.add_argument("--page", type=Path, help="page to write: docs/tracker_results.md")
    parser.add_argument("--figure", type=Path, help="SVG of errors and of --speed's times to write")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rows, chosen.defaults = chosen.rows or 1_000, True
    folder = RunFolder(chosen.output)
    records = run_all(runs(chosen), folder=folder, jobs=chosen.jobs, progress=True)
    times = chosen.output / "speed.json"
    if chosen.speed:
        folder.write_json(times.name, speed(chosen.models, chosen.old_python, quick=chosen.quick))
    result = json.loads(times.read_text()) if times.exists() else None
    text = page(records, result)
    print(text)
    if chosen.page:
        chosen.page.write_text(text, encoding="utf-8")
    if chosen.figure:
        if result is None:
            raise SystemExit(f"{times} is not there: --figure needs times, which --speed measures")
        draw(records, result, chosen.figure)


if __name__ == "__main__":
    from benchmarks import tracker  # noqa: PLW0406 - as what workers import it

    tracker.main()
