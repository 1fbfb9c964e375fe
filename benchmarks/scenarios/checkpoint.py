"""How long a checkpoint stops a worker of late labels, and what the thread beside it takes.

A learner, a Tracker(300), has so many features that wait for their label, and as many ids that had
theirs; between checkpoints it learns on. No broker takes part: what is timed is what the worker
does before it continues, and what it leaves to the thread that writes.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import deque
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.timing import figure
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.codec import Example, JsonCodec
from drift.consumers.late import LateLearner
from drift.consumers.metrics import Metrics
from drift.consumers.records import Message, Position
from drift.models import Tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "features", None
#: Messages between two checkpoints.
BETWEEN = 20_000


def messages(waiting: int) -> Iterator[Message]:
    """Yield features, each followed by the label of those so many before it."""
    rng, codec, labels = np.random.default_rng(0), JsonCodec(), deque()
    for number in count():
        row = rng.normal(size=8).round(6).tolist()
        value = codec.encode(Example(dict(zip("abcdefgh", row, strict=True)), id=number))
        yield Message(Position("features", 0, number), None, value, timestamp=number)
        labels.append(sum(row) > 0)
        if (of := number - waiting) >= 0:
            value = json.dumps({"id": of, "label": labels.popleft()}).encode()
            yield Message(Position("labels", 0, of), None, value, timestamp=number)


def now() -> np.ndarray:
    """Return milliseconds of the clock and of the processor."""
    return 1000 * np.array([time.perf_counter(), time.process_time()])


def checkpoint(*, quick: bool) -> dict[str, Any]:
    """Return what a checkpoint takes of the worker, and of the thread."""
    ids = 1_000 if quick else 100_000
    names = {"topic": "features", "labels": "labels", "timestamps": "create"}
    options = WorkerOptions(group="g", pending=ids + 1, **names)
    learner = LateLearner(Tracker(300, late=True), JsonCodec(), Metrics(*KEY), options)
    rest = messages(ids)
    for message in islice(rest, 3 * ids):
        learner.take(message)
    steps: dict[str, list[np.ndarray]] = {"stop": [], "thread": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = CheckpointFolder(scratch)
        epoch, _ = folder.claim(KEY)
        for _ in range(9):
            for message in islice(rest, BETWEEN):
                learner.take(message)
            began = now()
            learner.epoch = epoch
            write = folder.prepare(KEY, learner.snapshot(), join=learner.join_state())
            went_on = now()
            write()
            steps["stop"].append(went_on - began)
            steps["thread"].append(now() - went_on)
    table = [
        {"": name, "wall, ms": figure(wall.tolist()), "CPU, ms": figure(cpu.tolist())}
        for name, times in steps.items()
        for wall, cpu in [np.transpose(times)]
    ]
    return {"table": table, "notes": [f"{learner.join.pending:,} wait"]}
