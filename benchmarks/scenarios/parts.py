"""Where the time of an example goes: reading the dict, the score, Python, updates."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from benchmarks import peers
from benchmarks.data import Examples, Stream, adults, stories
from benchmarks.timing import Contender, Times, on_examples, prequential, take_turns
from benchmarks.twins import check
from drift.models import RBP

if TYPE_CHECKING:
    from benchmarks.scenarios import Settings

BUDGETS = (100, 300, 1000, 2000)


def parts(settings: Settings) -> dict[str, Any]:
    """RBP on stories and persons, each step by itself."""
    streams = [
        stories(settings.pick(20_000, 5_000)),
        adults(settings.pick(32_561, 6_000)),
    ]
    checked: list[str] = []
    rows = []
    for stream in streams:
        makers = {f"{stream.name} B={b}": lambda b=b: RBP(b, seed=1) for b in BUDGETS}
        checked += check(stream.part(0, settings.pick(1_500, 500)), makers)
        split = len(stream) - settings.pick(4_000, 1_000)
        learnt = list(stream.part(0, split))
        timed = list(stream.part(split))
        for b in BUDGETS:
            model = RBP(b, seed=1)
            prequential(model, learnt)
            label = f"parts, {stream.name} B={b}: rounds"
            times = take_turns(steps(model, timed), settings.pick(7, 3), label)
            rows.append(row(stream, b, times, mistakes(model, timed)))
    return {"stream": {"names": [s.name for s in streams]}, "checked": checked, "table": rows} | {
        "figures": {}
    }


def steps(model: Any, timed: Examples) -> dict[str, Contender]:
    """What is timed: each step holds the one before it."""
    read, score = model._supports.read, model._supports.score
    predict, learn = model.predict_one, model.learn_one
    right = [(x, predict(x)) for x, _ in timed]

    def reading() -> None:
        for x, _ in timed:
            read(x)

    def scoring() -> None:
        for x, _ in timed:
            read(x)
            score()

    def predicting() -> None:
        for x, _ in timed:
            predict(x)

    def without_updates() -> None:
        for x, y in right:
            predict(x)
            learn(x, y)

    count = len(timed)
    result = {
        "read": reading,
        "score": scoring,
        "predict": predicting,
        "learn": without_updates,
    }
    fixed = {name: Contender(lambda f=f: f, count) for name, f in result.items()}  # type: ignore[misc]
    return fixed | {"floor": peers.floor(model, timed), "all": on_examples(model, timed)}


def mistakes(model: Any, timed: Examples) -> float:
    """Share of the examples that change the hypothesis."""
    copied = copy.deepcopy(model)
    prequential(copied, timed)
    return float(copied.n_updates - model.n_updates) / len(timed)


def row(stream: Stream, budget: int, times: Times, share: float) -> dict[str, Any]:
    """Microseconds of each step alone: differences between the medians."""
    us = {name: times.microseconds(name)["median"] for name in times}
    return {
        "RBP": f"{stream.name} B={budget}",
        "floor": us["floor"],
        "in all": us["all"],
        "read": us["read"],
        "score": us["score"] - us["read"],
        "predict": us["predict"] - us["score"],
        "learn": us["learn"] - us["predict"],
        "updates": us["all"] - us["learn"],
        "share that update": share,
        "us an update": (us["all"] - us["learn"]) / share,
    }
