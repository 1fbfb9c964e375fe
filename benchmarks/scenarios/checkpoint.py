"""How long a checkpoint stops a worker of late labels, and the bytes of what waits.

A learner, a Tracker(300), has so many features that wait for their label, and as many ids that had
theirs; between checkpoints it learns on. No broker takes part: what is timed is what the worker
does before it continues, and what it leaves to the thread that writes. Bytes are those of a message
of 304 bytes, of a label of 60 and of an id of 16 characters, beside the same without; of a ticket
by the model.
"""

from __future__ import annotations

import gc
import json
import tempfile
import time
import tracemalloc
from collections import deque
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.timing import figure
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.codec import Example
from drift.consumers.json_codec import JsonCodec
from drift.consumers.late import LateLearner
from drift.consumers.metrics import Metrics
from drift.consumers.records import Message, Position
from drift.models import LBP, Tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "features", None
#: Milliseconds since 1970, of the first message whose bytes are counted.
NOW = 1_700_000_000_000
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


def learner_of(model: Any, **options: Any) -> LateLearner:
    """Return the learner of a worker with late labels."""
    topics: dict[str, Any] = {"topic": "features", "labels": "labels", "timestamps": "create"}
    about = WorkerOptions(group="g", **topics, **options)
    return LateLearner(model, JsonCodec(), Metrics(*KEY), about)


def checkpoint(*, quick: bool) -> dict[str, Any]:
    """Return what a checkpoint takes of the worker, and of the thread."""
    ids = 1_000 if quick else 100_000
    learner = learner_of(Tracker(300, late=True), pending=ids + 1)
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
    tables = {f"{learner.join.pending:,} wait": table, "bytes of each": sizes(ids)}
    return {"tables": tables}


def sizes(count: int) -> list[dict[str, Any]]:
    """Return the bytes in memory and in a checkpoint of what there is of each message."""
    learner = learner_of(LBP(9), pending=count, pending_bytes=1 << 40)
    tracemalloc.start()
    sizes = [(traced(), stored(learner))]
    for number in range(count):
        value = b'{"id": "%016d", "features": {}}' % number
        learner.take(
            Message(Position("features", 0, number), None, value.ljust(304), timestamp=NOW + number)
        )
    sizes.append((traced(), stored(learner)))
    for number in range(count):
        value = b'{"id": "%016d", "label": true}' % number
        learner.take(Message(Position("labels", 0, number), None, value, timestamp=NOW + number))
    sizes.append((traced(), stored(learner)))
    tracemalloc.stop()
    empty, waiting, learnt = np.array(sizes) / count
    rows = {"a message that waits": waiting - empty, "a label that waits": early(count)}
    rows |= {"a learnt id": learnt - empty}
    rows |= {f"a ticket, {features} features": ticket(features) for features in (8, 60)}
    return [{"": name, "memory": each[0], "checkpoint": each[1]} for name, each in rows.items()]


def early(count: int) -> np.ndarray:
    """Return the bytes of a label that comes before its features."""
    learner = learner_of(LBP(9), pending=count, pending_bytes=1 << 40)
    tracemalloc.start()
    before = traced(), stored(learner)
    for number in range(count):
        value = (b'{"id": "%016d", "label": true}' % number).ljust(60)
        learner.take(Message(Position("labels", 0, number), None, value, timestamp=NOW + number))
    after = traced(), stored(learner)
    tracemalloc.stop()
    return np.subtract(after, before) / count


def traced() -> int:
    """Return the bytes that Python's objects have."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def stored(learner: LateLearner) -> int:
    """Return the bytes that a checkpoint has of what waits, without the features."""
    return len(json.dumps(learner.join_state()()[0], separators=(",", ":")))


def ticket(features: int) -> tuple[float, float]:
    """Return the bytes of a ticket, of a model that has learnt two labels."""
    rows, count = np.random.default_rng(0).normal(size=(10_000, features)).tolist(), 5_000
    model = Tracker(300, late=True)
    examples = [dict(enumerate(row)) for row in rows]
    for x in examples[count:]:
        model.predict_learn_one(x, sum(x.values()) > 0)
    before = model._raw_memory_usage, len(model.to_bytes())
    for x in examples[:count]:
        model.predict_one(x)
    memory, size = model._raw_memory_usage - before[0], len(model.to_bytes()) - before[1]
    return memory / count, size / count
