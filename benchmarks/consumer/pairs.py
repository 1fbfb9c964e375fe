"""A worker's examples a second beside those of an older version, in turn on one real broker.

Each round has the old worker with RBP(1000), then this drift's with the same model, with
Tracker(300), and with labels of a second topic. A ratio is that of two workers of one round.

    python -m benchmarks.consumer pairs --old-python ../old/bin/python

--old-path is a checkout with a compiled store, where that interpreter would import another drift.
A round has 32,000 examples, and takes a minute on idle cores.

    python -m benchmarks.consumer pairs --eight --old-python python --old-path ../old --core 1

has Tracker(300) on 8 features, all workers on that core and the broker on the others: labels in the
messages or on a separate topic, some 1,250 examples later, predictions sent or not. A ratio is
that to the older version's worker with the same task. --without-trees leaves the trees out of this
version's Tracker, which an older one's lacks, so that the ratio is that of the workers alone.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from drift import models
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.worker import Worker

if TYPE_CHECKING:
    import argparse

#: What takes part beside the old worker: its model, topics, and share of the examples; and what
#: its rate is to be of the old one's.
NEW = {
    "RBP(1000)": ({"model": "RBP", "budget": 1000, "topic": "one"}, 0.95),
    "Tracker(300)": ({"model": "Tracker", "budget": 300, "topic": "one"}, 0.75),
    "RBP(1000), labels of a second topic": (
        {"model": "RBP", "budget": 1000, "topic": "features", "labels": "labels"},
        0.45,
    ),
}
#: Tasks of 8 features that both versions have, and what the rate is to be of the older one's.
EIGHT = {"model": "Tracker", "budget": 300, "topic": "eight"}
LATE = EIGHT | {"topic": "features", "labels": "labels", "timestamps": "create"}
TASKS = {
    "predictions sent": (EIGHT, 2.0),
    "nothing sent": (EIGHT | {"predictions": None}, 1.0),
    "late labels, predictions sent": (LATE, 2.0),
    "late labels, nothing sent": (LATE | {"predictions": None}, 2.0),
}
#: The folder of this version.
HERE = Path(__file__).resolve().parents[2]
#: Examples that are learnt before the clock starts, where there is a core of its own; none of late
#: labels, as a worker may have read features far ahead of what it has learnt.
WARM = 5000


# --- in the process of a worker, of either version ------------------------------------------------


def worker_of(task: dict[str, Any], folder: str) -> Any:
    """Return the worker that a task describes."""
    seed = {"seed": 0} if task["model"] == "RBP" else {}
    model = getattr(models, task["model"])(task["budget"], **seed, **task.get("parameters", {}))
    kafka = {"bootstrap_servers": task["address"]}
    group = f"group-{uuid.uuid4().hex}"
    names: dict[str, Any] = {"start": "earliest", "predictions": task.get("predictions", "out")}
    consumer = {"heartbeat_interval_ms": 300}
    names |= {name: task[name] for name in ("labels", "timestamps") if name in task}
    options = WorkerOptions(topic=task["topic"], group=group, **names)
    return Worker(model, CheckpointFolder(folder), kafka, options, consumer=consumer)


def work(task: dict[str, Any]) -> dict[str, float]:
    """Learn so many examples; return the seconds that took, of the clock and of the processor."""
    if task.get("core") is not None:
        os.sched_setaffinity(0, {task["core"]})
    with tempfile.TemporaryDirectory() as folder:
        worker = worker_of(task, folder)

        def learnt() -> int:
            return sum(metrics.examples for metrics in worker.metrics.models)

        while not worker.metrics.models:  # joining the group takes seconds
            worker.step(5.0)
        warm = 0 if task.get("core") is None or "labels" in task else WARM
        while learnt() < warm:
            worker.step(1.0)
        first, started, cpu = learnt(), time.perf_counter(), time.process_time()
        while learnt() < task["count"]:
            worker.step(1.0)
        worker._producer.flush()
        examples = learnt() - first
        result = {
            "seconds": (time.perf_counter() - started) / examples,
            "cpu": (time.process_time() - cpu) / examples,
        }
        worker.stop()
        worker.run(signals=False)
    return result


# --- in the benchmark's own ----------------------------------------------------------------------


class Part(NamedTuple):
    """A worker that takes part, the one of the older version that it is compared with, the bar."""

    task: dict[str, Any]
    beside: str
    bar: float = 1.0


def pairs() -> dict[str, Part]:
    """Return what takes part beside one worker of the older version."""
    old = "older version, RBP(1000)"
    new = {name: Part(task, old, bar) for name, (task, bar) in NEW.items()}
    return {old: Part(NEW["RBP(1000)"][0], old)} | new


def eight(parameters: dict[str, Any]) -> dict[str, Part]:
    """Return what takes part where both versions have each task; parameters of this one's model."""
    return {
        f"{version} version, {name}": Part(task | more, f"older version, {name}", bar)
        for name, (task, wanted) in TASKS.items()
        for version, more, bar in (
            ("older", {}, 1.0),
            ("this", {"parameters": parameters}, wanted),
        )
    }


def measured(python: str, task: dict[str, Any], path: str | None) -> dict[str, float]:
    """Run a worker in its own process, with the drift in a folder, or that of the python."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYTHONPATH": path} if path else {}
    line = [python, __file__, json.dumps(task)]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--old-python", help="python of an environment with the older version")
    parser.add_argument("--old-path", help="folder of its sources, where it is not installed there")
    parser.add_argument("--examples", type=int, default=32_000, help="of a round")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--eight", action="store_true", help="8 features, older and this version")
    parser.add_argument("--without-trees", action="store_true", help="this version's Tracker")
    parser.add_argument("--core", type=int, help="that all workers run on, and the broker does not")


def run(given: argparse.Namespace) -> None:
    """Run the benchmark."""
    # Not where the file runs as a worker of an older version.
    from benchmarks.consumer.rate import fill, fill_eight  # noqa: PLC0415
    from tools.kafka.broker import Broker  # noqa: PLC0415

    parameters = {"trees": False} if given.without_trees else {}
    plan = eight(parameters) if given.eight else pairs()
    if given.core is not None:
        os.sched_setaffinity(0, os.sched_getaffinity(0) - {given.core})
    rounds: list[dict[str, dict[str, float]]] = []
    with tempfile.TemporaryDirectory() as folder, Broker(folder) as broker:
        (fill_eight if given.eight else fill)(broker, given.examples)
        common = {"address": broker.address, "count": given.examples, "core": given.core}
        for number in range(given.repeats + 1):  # the first warms the broker up
            result = {}
            for name, one in plan.items():
                older = one.beside == name
                python = given.old_python if older else sys.executable
                result[name] = measured(
                    python, one.task | common, given.old_path if older else str(HERE)
                )
            if number:
                rounds.append(result)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {len(rounds)} rounds")
    print(f"{'examples/s':>10} {'CPU us':>8} {'of older':>9} {'by CPU':>7} {'wanted':>7}")
    for name, one in plan.items():
        seconds, cpu = (
            [(result[one.beside][key], result[name][key]) for result in rounds]
            for key in ("seconds", "cpu")
        )
        ratios = [statistics.median(old / new for old, new in both) for both in (seconds, cpu)]
        rate = 1 / statistics.median(new for _, new in seconds)
        each = 1e6 * statistics.median(new for _, new in cpu)
        print(f"{rate:10,.0f} {each:8.1f} {ratios[0]:9.2f} {ratios[1]:7.2f} {one.bar:7.2f}  {name}")


if __name__ == "__main__":  # a worker, of either version
    print(json.dumps(work(json.loads(sys.argv[1]))))
