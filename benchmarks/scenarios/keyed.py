"""What a model for each key costs, without a broker.

The learner takes messages of 8 features, of customers drawn at random. With a prior all models are
full from their first example on. All rates are by processor time. `in memory`: all models are
there. `with checkpoints`: likewise, of a tenth of the keys, and one is written after as many
messages as there are of these keys. `loaded`: of three tenths; none of those that are requested is
there, and a changed one leaves for each that comes.
"""

from __future__ import annotations

import gc
import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.process import resident
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.consumers.json_codec import JsonCodec
from drift.consumers.keyed import KeyedLearner
from drift.consumers.keyed_models import KeyedModels
from drift.consumers.metrics import Metrics
from drift.consumers.records import Message, Position
from drift.models import LBP, Tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACE = "t", 0


def message_parts(count: int, seed: int = 0) -> list[tuple[str, str]]:
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

    def __init__(self, folder: Path, model: Any, most: int) -> None:
        self.folder = CheckpointFolder(folder)
        self.epoch, _ = self.folder.claim(PLACE)
        store = ModelStore(self.folder.folder(PLACE), self.epoch)
        self.models = KeyedModels(store, most)
        options = WorkerOptions(topic="t", group="g")
        codec = JsonCodec(key="customer")
        self.learner = KeyedLearner(model, codec, Metrics("t", 0), options, self.models)
        self._parts = message_parts(5_000)
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
        self.folder.prepare(PLACE, learner.snapshot(), keyed=learner.prepare_models())()


def keyed(*, quick: bool) -> dict[str, Any]:
    """Measure both models with a prior."""
    keys = 1_000 if quick else 100_000
    models = {"LBP(50)": LBP(50), "Tracker(50)": Tracker(50)}
    measured = {name: costs(model, keys) for name, model in models.items()}
    rows = [
        {"": what} | {name: one[what] for name, one in measured.items()}
        for what in measured["LBP(50)"]
    ]
    return {"table": rows}


def costs(model: Any, keys: int) -> dict[str, float]:
    """Measure one model."""
    rng = random.Random(0)
    few, many, left = keys // 10, 3 * keys // 10, keys // 1_000
    with tempfile.TemporaryDirectory() as folder:
        before = resident()
        run = Run(Path(folder) / "a", model, keys)
        run.take(rng.randrange(keys) for _ in range(300))
        made = run.take(iter(range(keys)))
        memory = resident()
        in_memory = run.take(rng.randrange(keys) for _ in range(keys))
        run.models.close()
        run = Run(Path(folder) / "b", model, many)
        run.take(iter(range(few)))
        run.save()
        size = sum(file.stat().st_size for file in (Path(folder) / "b").rglob("*.sqlite"))
        saved = run.take((rng.randrange(few) for _ in range(few)), save=few)
        run.take(iter(range(few, many)))
        run.models.most = left
        run.models.evict()
        loads, order = run.models.loads, [*range(many)]
        rng.shuffle(order)
        loaded = run.take(iter(order))
        found = run.models.loads - loads
        run.models.close()
    return {
        "memory, MB": memory,
        "KB a key": (memory - before) * 1000 / keys,
        "KB in the file": size / 1000 / few,
        "new keys/s": made,
        "in memory, messages/s": in_memory,
        "with checkpoints": saved,
        "loaded": loaded,
        "share that was": found / many,
    }
