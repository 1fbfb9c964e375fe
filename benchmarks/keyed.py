"""What a model for each key costs, and what it is worth.

**Costs**, without a broker: the learner takes messages of 8 features, of customers drawn at random.
With a prior all models are full from their first example on. All rates are by processor time:

    python -m benchmarks.keyed costs --output results/keyed.json

`in memory`: all models are there. `with checkpoints`: likewise, of a tenth of the keys, and one is
written after as many messages as there are keys. `loaded`: none of those that are requested is
there, and a changed one leaves for each that comes.

**Worth**: error on a stream of 1,000 made customers, some of whom come often, most seldom. The
target of each is the common one with a part of its own, which is drawn anew at its own moment:

    python -m benchmarks.keyed worth
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.machine import machine, resident, write_json
from benchmarks.report import show_table
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.consumers.codec import JsonCodec
from drift.consumers.keyed import KeyedLearner, KeyedModels
from drift.consumers.metrics import Metrics
from drift.consumers.records import Message, Position
from drift.models import LBP, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODELS: dict[str, Callable[[], Any]] = {
    "LBP(50)": lambda: LBP(50),
    "Tracker(50)": lambda: Tracker(50),
}
PLACE = "t", 0


def values(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Return the beginnings and the ends of messages between which the key stands."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        features = {f"f{j}": round(rng.gauss(0, 1), 4) for j in range(8)}
        label = features["f0"] * features["f1"] + features["f2"] > 0
        text = json.dumps({"features": features, "label": label})
        made.append(('{"customer":"', f'",{text[1:]}'))
    return made


class Run:
    """A claim's learner, driven without a broker."""

    def __init__(self, folder: Path, model: Any, most: int, *, prior: bool) -> None:
        self.folder = CheckpointFolder(folder)
        self.epoch, _ = self.folder.claim(PLACE)
        store = ModelStore(self.folder.folder(PLACE), self.epoch)
        self.models = KeyedModels(store, most)
        options = WorkerOptions(topic="t", group="g", prior=prior)
        codec = JsonCodec(key="customer")
        self.learner = KeyedLearner(model, codec, Metrics("t", 0), options, self.models)
        self._parts = values(5_000)
        self._offset = 0

    def take(self, keys: Iterator[int], save: int = 0) -> float:
        """Learn a message of each key; return messages a second of processor time."""
        learner, parts, messages = self.learner, self._parts, []
        for key in keys:
            before, behind = parts[self._offset % len(parts)]
            value = f"{before}{key:06d}{behind}".encode()
            messages.append(Message(Position("t", 0, self._offset), None, value))
            self._offset += 1
        gc.collect()
        started = time.process_time()
        for number, message in enumerate(messages, 1):
            learner.take(message)
            if save and not number % save:
                self.save()
        return len(messages) / (time.process_time() - started)

    def save(self) -> None:
        """Write a checkpoint."""
        learner = self.learner
        learner.epoch = self.epoch
        self.folder.prepare(PLACE, learner.snapshot(), keyed=learner.models_state())()


def costs(name: str, keys: int, count: int, *, prior: bool) -> dict[str, Any]:
    """Measure one model."""
    rng = random.Random(0)
    few, left = keys // 10, 100
    with tempfile.TemporaryDirectory() as folder:
        before = resident()
        run = Run(Path(folder) / "a", MODELS[name](), keys, prior=prior)
        run.take(rng.randrange(keys) for _ in range(300))
        made = run.take(iter(range(keys)))
        memory = resident()
        in_memory = run.take(rng.randrange(keys) for _ in range(count))
        run.models.close()
        run = Run(Path(folder) / "b", MODELS[name](), few, prior=prior)
        run.take(iter(range(few)))
        run.save()
        size = sum(file.stat().st_size for file in (Path(folder) / "b").rglob("*.sqlite"))
        saved = run.take((rng.randrange(few) for _ in range(few)), save=few)
        run.models.most = left
        run.models.leave()
        loads, order = run.models.loads, [*range(few)]
        rng.shuffle(order)
        loaded = run.take(iter(order))
        found = run.models.loads - loads
        run.models.close()
    return {
        "model": f"{name}{', prior' * prior}",
        "memory, MB": memory,
        "KB a key": (memory - before) * 1000 / keys,
        "KB in the file": size / 1000 / few,
        "new keys/s": made,
        "in memory, messages/s": in_memory,
        "with checkpoints": saved,
        "loaded": loaded,
        "share that was": found / few,
    }


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


def worth(name: str, count: int, length: int) -> list[dict[str, Any]]:
    """Return the errors of one model for all, and of one for each, with a prior and without."""
    made, mistakes = MODELS[name], {"one for all": 0, "keyed, no prior": 0, "keyed, prior": 0}
    early = dict.fromkeys(mistakes, 0)
    one, alone, own = made(), {}, {}
    seen: dict[str, int] = {}
    firsts = 0
    for key, x, y in customers(count, length):
        is_first = seen.get(key, 0) < 20
        seen[key] = seen.get(key, 0) + 1
        firsts += is_first
        if key not in alone:
            alone[key] = made()
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
    return [
        {
            "model": name,
            "models": which,
            "error": n / length,
            "first_20_of_a_key": early[which] / firsts,
        }
        for which, n in mistakes.items()
    ]


def main() -> None:
    """Measure, and show a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["costs", "worth"])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--count", type=int, default=100_000, help="messages of a figure")
    parser.add_argument("--length", type=int, default=100_000, help="messages of worth")
    parser.add_argument("--no-prior", action="store_true", help="costs without a prior")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    if given.what == "costs":
        rows = [costs(n, given.keys, given.count, prior=not given.no_prior) for n in given.models]
        names = [name for name in rows[0] if name != "model"]
        show_table("costs", [{"": n} | {str(one["model"]): one[n] for one in rows} for n in names])
    else:
        rows = [row for n in given.models for row in worth(n, 1_000, given.length)]
        show_table("worth", rows)
    if given.output:
        write_json(given.output, {"machine": machine(), "rows": rows})


if __name__ == "__main__":
    main()
