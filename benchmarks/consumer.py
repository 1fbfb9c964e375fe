"""Examples a second of one worker on a real broker, end to end, and where the time goes.

A topic of one partition holds RCV1 stories as JSON. A worker with an RBP of budget 1,000 reads,
predicts, learns, publishes every prediction and writes checkpoints at the default interval. Rounds
with checkpoints, without, and without predictions take turns; one more runs under a profiler.

    python benchmarks/consumer.py --output results/consumer.json
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import argparse
import cProfile
import json
import pstats
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from data import stories
from machine import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from drift.consumers import CheckpointFolder
from drift.consumers.messages import Example, JsonCodec
from drift.consumers.worker import Worker
from drift.models import RBP
from drift.testing import produce
from tools.kafka.broker import Broker

#: Functions whose whole time makes up a share, by a part of their file and their name.
SHARES = {
    "client: poll": ("consumers/kafka.py", "poll"),
    "decode": ("consumers/messages.py", "decode"),
    "predict": ("models/base.py", "predict_one"),
    "score": ("models/base.py", "decision_function_one"),
    "learn": ("models/_contract.py", "learn_one"),
    "client: send": ("consumers/kafka.py", "send"),
    "client: flush": ("consumers/kafka.py", "flush"),
    "checkpoint": ("consumers/folder.py", "save"),
}


def one_round(address: str, topic: str, count: int, profile: Any = None, **options: Any) -> float:
    """Examples a second from the first message to the last."""
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(
            RBP(budget=1000, seed=0),
            topic,
            f"group-{uuid.uuid4().hex}",
            CheckpointFolder(folder),
            {"bootstrap_servers": address},
            start="earliest",
            **options,
        )
        while not worker.metrics.models:  # joining the group takes seconds
            worker.step(0.1)
        taken = sum(metrics.examples for metrics in worker.metrics.models)
        started = time.perf_counter()
        if profile is not None:
            profile.enable()
        while taken < count:
            taken += worker.step(1.0)
        worker._broker.flush()
        if profile is not None:
            profile.disable()
        seconds = time.perf_counter() - started
        worker.stop()
        worker.run(signals=False)
    return count / seconds


def shares(profile: cProfile.Profile) -> dict[str, float]:
    """Share of the profiled time by part."""
    stats: Any = pstats.Stats(profile)
    whole = stats.total_tt
    found = dict.fromkeys(SHARES, 0.0)
    for (file, _, name), (_, _, _, cumulative, _) in stats.stats.items():
        for part, (path, function) in SHARES.items():
            if file.endswith(path) and name == function:
                found[part] += cumulative / whole
    return found


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    arguments = parser.parse_args()
    stream = stories()
    name, examples = stream.name, list(stream.examples())
    codec = JsonCodec()
    values = [codec.encode(Example(x, y)) for x, y in examples]
    count = arguments.examples
    contenders: dict[str, dict[str, Any]] = {
        "predictions published, default checkpoints": {"predictions": "out"},
        "predictions published, no checkpoints": {
            "predictions": "out",
            "every_messages": 10**9,
            "every_seconds": 1e9,
        },
        "no predictions, default checkpoints": {},
    }
    rates: dict[str, list[float]] = {contender: [] for contender in contenders}
    profile = cProfile.Profile()
    with tempfile.TemporaryDirectory() as folder, Broker(folder) as broker:
        repeated = [values[i % len(values)] for i in range(count)]
        produce(broker.address, "examples", repeated)
        for _ in range(arguments.repeats):
            for contender, options in contenders.items():
                rates[contender].append(one_round(broker.address, "examples", count, **options))
        one_round(broker.address, "examples", count, profile, predictions="out")
    results = {contender: statistics.median(found) for contender, found in rates.items()}
    for contender, rate in results.items():
        print(f"{rate:8,.0f} examples/s  {contender}")
    parts = shares(profile)
    for part, share in parts.items():
        print(f"{share:8.1%}  {part}")
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        report = {"stream": name, "examples": count, "rates": results, "shares": parts}
        arguments.output.write_text(json.dumps(report | machine(), indent=2))


if __name__ == "__main__":
    main()
