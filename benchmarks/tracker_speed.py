"""Time of an example through dicts, all models in turns, and memory; all figures are ratios."""

from __future__ import annotations

import pickle
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.contenders import FAMILIES
from benchmarks.streams import stream
from benchmarks.timing import on_examples, prequential, take_turns
from drift.experiments.memory import memory

if TYPE_CHECKING:
    from benchmarks.timing import Contender

STREAMS = ("rcv1-0", "electricity")
#: Models are timed on the rows after those that they have learnt, with full budgets. Of trees and
#: forests, which get slower as they grow, a few rows after fewer: in their favour.
LEARNT, TIMED, ROUNDS = 10_000, 500, 25
LEARNT_SLOWLY, TIMED_SLOWLY = 200, 20
BUDGETS = (100, 300, 500)
GROWING = (50, 100, 200, 300, 500, 700, 1_000, 1_400, 2_000)

Examples = list[tuple[dict[str, float], Any]]

#: What runs in the environment of another version, once for each line that it reads.
_OTHER = """
import copy, gc, pickle, sys, time
from drift.models import LBP
budget, learnt, timed = pickle.load(sys.stdin.buffer)
def prequential(model, examples):
    predict, learn = model.predict_one, model.learn_one
    for x, y in examples:
        predict(x)
        learn(x, y)
model = LBP(budget=budget)
prequential(model, learnt)
for _ in sys.stdin.buffer:
    one = copy.deepcopy(model)
    gc.collect()
    gc.disable()
    start = time.process_time()
    prequential(one, timed)
    print((time.process_time() - start) / len(timed), flush=True)
    gc.enable()
"""


def speed(models: list[str], old_python: str | None, *, quick: bool) -> dict[str, Any]:
    """Return microseconds an example of models, growth of the Tracker's, and its memory."""
    learnt, rounds = (500, 2) if quick else (LEARNT, ROUNDS)
    result: dict[str, Any] = {"times": {}, "growth": {}}
    for name in STREAMS:
        examples = list(stream(name, learnt + TIMED))
        split = examples[:learnt], examples[learnt:]
        contenders: dict[str, Any] = {
            f"{family}{f', {budget}' * bool(budget)}": _timed(family, budget, *split)
            for family in models
            if family not in {"Neighbours", "no change", "majority"}
            for budget in (BUDGETS if FAMILIES[family].budgeted else (0,))
        }
        if old_python:
            for budget in (100, 500):
                contenders[f"old LBP, {budget}"] = _Other(old_python, budget, *split)
        result["times"][name] = _turns(contenders, rounds, name)
        growing = {str(budget): _timed("Tracker", budget, *split) for budget in GROWING}
        result["growth"][name] = _fitted(_turns(growing, rounds, f"{name}, growth"))
    model = FAMILIES["Tracker"].make(False, budget=500)
    data = stream("reuters-shifts", learnt if quick else None)
    model.learn_many(data.X, data.y)
    return result | {"reuters_megabytes": memory(model) / 1e6}


def _timed(family: str, budget: int, learnt: Examples, timed: Examples) -> Contender:
    """Return copies of a model that has learnt the first examples."""
    about = FAMILIES[family]
    model = about.make(False, **({"budget": budget} if budget else {}), **about.grid[0])
    if about.slow:
        learnt, timed = learnt[:LEARNT_SLOWLY], timed[:TIMED_SLOWLY]
    prequential(model, learnt)
    return on_examples(model, timed)


class _Other:
    """LBP of another version in its own process, in the place of a `Contender`."""

    def __init__(self, python: str, *task: Any) -> None:
        self.process: Any = subprocess.Popen(  # noqa: S603
            [python, "-I", "-c", _OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        pickle.dump(task, self.process.stdin)

    def microseconds(self) -> float:
        """Have it time itself."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return 1e6 * float(self.process.stdout.readline())


def _turns(contenders: dict[str, Any], rounds: int, label: str) -> dict[str, Any]:
    """Microseconds of each, in all rounds."""
    times = take_turns(contenders, rounds, label)
    return {name: times.microseconds(name) | {"rounds": values} for name, values in times.items()}


def _fitted(times: dict[str, Any]) -> dict[str, Any]:
    """Fit a line through the medians, over the budget."""
    budgets = np.array([int(name) for name in times])
    medians = np.array([one["median"] for one in times.values()])
    slope, start = np.polyfit(budgets, medians, 1)
    off = np.abs(start + slope * budgets - medians) / medians
    return {
        "us": dict(zip(budgets.tolist(), medians.tolist(), strict=True)),
        "start": float(start),
        "slope": float(slope),
        "R2": float(np.corrcoef(budgets, medians)[0, 1] ** 2),
        "largest_deviation": float(off.max()),
    }
