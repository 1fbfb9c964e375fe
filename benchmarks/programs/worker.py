"""Examples a second of a worker on a real broker, end to end, and where its time goes.

A topic has examples of 8 features as JSON, or of more. A worker with a Tracker(300), a process on a
core of its own, reads, predicts, learns, publishes predictions or none, and writes checkpoints at
the default interval; the broker has the other cores. The two take turns. One more round has clocks
around the steps. Time of the processor is counted, too: others may use these cores.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import output_option
from benchmarks.programs.topics import make_topics
from benchmarks.programs.worker_clock import Clock
from benchmarks.report import show_table, write_result
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.codec import Example
from drift.consumers.json_codec import JsonCodec
from drift.consumers.worker import Worker
from drift.models import Tracker
from drift.testing import produce
from tools.kafka.broker import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The topic that predictions go to, by what takes part.
TASKS = {"predictions published": "out", "nothing published": None}
#: Examples that are learnt before the clock starts.
WARM = 5_000
#: Seconds after which a worker must have gone wrong.
PATIENCE = 600


def examples(count: int, features: int = 8, classes: int = 2) -> Iterator[bytes]:
    """Yield messages of normal numbers and their label, which depends on the sum."""
    rng, codec = np.random.default_rng(0), JsonCodec()
    names = [*"abcdefgh", *(f"f{j}" for j in range(8, features))][:features]
    spread = statistics.NormalDist(0, features**0.5)
    for row in rng.normal(size=(count, features)).round(6).tolist():
        x, place = dict(zip(names, row, strict=True)), sum(row)
        y = place > 0 if classes == 2 else int(spread.cdf(place) * classes)
        yield codec.encode(Example(x, y))


def work(where: tuple[str, int], task: str, count: int, results: Any, *, profiled: bool) -> None:
    """Learn so many examples on a core; put down the time of one, and the shares of the steps."""
    address, core = where
    os.sched_setaffinity(0, {core})
    options = WorkerOptions(
        topic="in", group=f"group-{uuid.uuid4().hex}", start="earliest", predictions=TASKS[task]
    )
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(
            Tracker(300),
            CheckpointFolder(folder),
            {"bootstrap_servers": address},
            options,
            consumer={"heartbeat_interval_ms": 300},
        )

        def learnt() -> int:
            return sum(metrics.examples for metrics in worker.metrics.models)

        while learnt() < min(WARM, count // 2):  # joining the group takes seconds
            worker.step(5.0)
        clock = Clock() if profiled else None
        first, started, cpu = learnt(), time.perf_counter(), time.process_time()
        while learnt() < count:
            worker.step(1.0)
        worker._producer.flush()
        times = np.array([time.perf_counter() - started, time.process_time() - cpu])
        each = 1e6 * times / (learnt() - first)
        results.put((each.tolist(), clock.shares() if clock else {}))
        worker.stop()
        worker.run(signals=False)


def measured(*given: Any, profiled: bool = False) -> tuple[list[float], dict[str, float]]:
    """Run a worker in its own process; return microseconds an example and shares of the steps."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    given, profile = (*given, results), {"profiled": profiled}
    process = context.Process(target=work, args=given, kwargs=profile, daemon=True)
    process.start()
    result: tuple[list[float], dict[str, float]] = results.get(timeout=PATIENCE)
    process.join(PATIENCE)
    return result


def main(arguments: list[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks worker")
    parser.add_argument("--examples", type=int, default=100_000, help="of a round")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--classes", type=int, default=2)
    output_option(parser)
    given = parser.parse_args(arguments)
    messages = list(examples(given.examples, given.features, given.classes))
    core, *others = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, others or {core})
    rounds: dict[str, list[list[float]]] = {task: [] for task in TASKS}
    with tempfile.TemporaryDirectory() as folder, Broker(folder) as broker:
        make_topics(broker.address, ("in", "out"))
        produce(broker.address, "in", messages, 0)
        where, count = (broker.address, core), given.examples
        for number in range(given.repeats + 1):  # the first warms the broker up
            for task, results in rounds.items():
                each, _ = measured(where, task, count)
                if number:
                    results.append(each)
        _, shares = measured(where, "predictions published", count, profiled=True)
    table = []
    for task, results in rounds.items():
        wall, cpu = map(statistics.median, zip(*results, strict=True))
        table.append({"": task, "examples/s": 1e6 / wall, "CPU, us": cpu})
    show_table(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", table)
    shown = [{"step": step, "CPU, %": 100 * share} for step, share in shares.items()]
    show_table("where the time goes, predictions published", shown)
    tables = {"worker": table, "where the time goes": shown}
    write_result(given.output, "worker", {"tables": tables, "rounds": rounds, "given": str(given)})
