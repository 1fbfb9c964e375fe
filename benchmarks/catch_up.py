"""Predictions of a live run, and of a group that reads the same logs later, on a real broker.

A topic of features and one of labels, each example labelled some thousand examples later, are
written at a live rate while a first group follows them. Then fresh groups read both topics from
their beginnings. Each prediction is to know what the live one knew:

    python -m benchmarks.catch_up --output results/catch_up.json

The error is that of the predictions that were sent; between a prediction and its learning lie so
many examples in the median. `--old-python` has the worker of another version catch up as well.
"""

from __future__ import annotations

import argparse
import heapq
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kafka
import numpy as np

from benchmarks.machine import machine, write_json
from benchmarks.report import show_table
from drift.consumers import CheckpointFolder
from drift.consumers.checkpoints.journal import read_order
from drift.consumers.client.topics import Reader
from drift.consumers.options import WorkerOptions
from drift.consumers.relearning import in_order
from drift.consumers.worker import Worker
from drift.models import Tracker
from tools.kafka.broker import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Partitions of features and of labels, which need not agree.
PARTITIONS = 4, 3
BUDGET = 300


def events(pairs: int, delay: int) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield topic, partition and message: 8 features, a plane that turns, labels `delay` later."""
    rng = np.random.default_rng(0)
    plane, turn = rng.normal(size=8), rng.normal(size=8) / 400
    waiting: list[tuple[int, int, dict[str, Any]]] = []
    for number in range(pairs + 2 * delay):
        if number < pairs:
            x = rng.normal(size=8)
            label = bool(plane @ x + rng.normal() / 4 > 0)
            plane += turn * np.cos(number / 4000)
            features = {f"x{k}": round(float(v), 6) for k, v in enumerate(x)}
            yield "features", int(rng.integers(PARTITIONS[0])), {"id": number, "features": features}
            due = number + int(rng.integers(delay // 2, delay + delay // 2))
            heapq.heappush(waiting, (due, number, {"id": number, "label": label}))
        while waiting and waiting[0][0] <= number:
            yield "labels", int(rng.integers(PARTITIONS[1])), heapq.heappop(waiting)[2]


def write(address: str, pairs: int, delay: int, rate: float) -> None:
    """Send them all, so many pairs a second."""
    producer = kafka.KafkaProducer(bootstrap_servers=address, linger_ms=5)
    started, number = time.perf_counter(), 0
    for topic, partition, message in events(pairs, delay):
        if topic == "features":
            number += 1
            if number % 50 == 0:
                time.sleep(max(0.0, started + number / rate - time.perf_counter()))
        producer.send(topic, json.dumps(message).encode(), partition=partition)
    producer.flush()
    producer.close()


# --- in the process of a worker, of any version ---------------------------------------------------


def work(task: dict[str, Any]) -> None:
    """Learn all pairs; print the seconds of the processor for each."""
    options = WorkerOptions(
        topic="features",
        labels="labels",
        group=task["group"],
        start="earliest",
        predictions=task["group"],
    )
    worker = Worker(
        Tracker(BUDGET),
        CheckpointFolder(task["folder"]),
        {"bootstrap_servers": task["address"]},
        options,
        consumer={"heartbeat_interval_ms": 300},
    )

    def learnt() -> int:
        return sum(metrics.examples for metrics in worker.metrics.models)

    cpu = first = 0.0
    while learnt() < task["pairs"]:
        worker.step(1.0)
        if not first and learnt():
            first, cpu = time.perf_counter(), time.process_time()
    result = {"cpu": time.process_time() - cpu, "seconds": time.perf_counter() - first}
    worker.stop()
    worker.run(signals=False)
    print(json.dumps(result))


def start(python: str, task: dict[str, Any]) -> subprocess.Popen[str]:
    """Start a worker in its own process."""
    line = [python, "-m", "benchmarks.catch_up", "--work", json.dumps(task)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)  # noqa: S603


# --- what came of it ------------------------------------------------------------------------------


def log(address: str, topic: str) -> list[Any]:
    """Return the messages of a topic, by partition."""
    with Reader(topic, {"bootstrap_servers": address}) as reader:
        return list(reader.read(reader.ends()))


def measure(address: str, task: dict[str, Any], truth: dict[int, bool]) -> dict[str, float]:
    """Return the error of what was sent, and how many examples lay before learning."""
    sent = {
        value["id"]: value["predicted"]
        for value in (json.loads(message.value) for message in log(address, task["group"]))
    }
    wrong = statistics.fmean(sent[name] != label for name, label in truth.items())
    folder = CheckpointFolder(task["folder"])
    newest = folder.newest(("features", None))
    logs: dict[Any, list[Any]] = {}
    for topic in ("features", "labels"):
        for message in log(address, topic):
            logs.setdefault(message.position[:2], []).append(message)
    options = WorkerOptions(topic="features", labels="labels", group=task["group"])
    runs = read_order(folder.folder(("features", None)), newest.id)
    first: dict[int, int] = {}
    gaps, count = [], 0
    for message in in_order(logs, runs, options):
        name = json.loads(message.value)["id"]
        if message.position.topic == "features":
            first[name], count = count, count + 1
        else:
            gaps.append(count - first[name] - 1 if name in first else -1)
    return {
        "error": 100 * wrong,
        "between": statistics.median(gaps),
        "early": sum(gap < 0 for gap in gaps),
        "runs": len(runs),
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="JSON file of the figures")
    parser.add_argument("--pairs", type=int, default=120_000)
    parser.add_argument("--delay", type=int, default=1_250, help="examples before a label, mean")
    parser.add_argument("--rate", type=float, default=3_000, help="pairs a second of the live run")
    parser.add_argument("--repeats", type=int, default=2, help="groups that catch up")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(json.loads(given.work))
        return
    truth = {
        message["id"]: message["label"]
        for topic, _, message in events(given.pairs, given.delay)
        if topic == "labels"
    }
    with tempfile.TemporaryDirectory() as scratch, Broker(f"{scratch}/kafka") as broker:
        admin = kafka.KafkaAdminClient(bootstrap_servers=broker.address)
        admin.create_topics(
            {
                topic: {
                    "num_partitions": count,
                    "replication_factor": 1,
                    "configs": {"message.timestamp.type": "LogAppendTime"},
                }
                for topic, count in zip(("features", "labels"), PARTITIONS, strict=True)
            },
            wait_for_metadata=True,
        )
        rows = []
        for name in ["live", *["later"] * given.repeats]:
            group = f"{name}-{uuid.uuid4().hex[:8]}"
            task = {
                "address": broker.address,
                "group": group,
                "folder": f"{scratch}/{group}",
                "pairs": given.pairs,
            }
            worker = start(sys.executable, task)
            if name == "live":
                write(broker.address, given.pairs, given.delay, given.rate)
            out, _ = worker.communicate(timeout=600)
            cost = json.loads(out.splitlines()[-1])
            result = measure(broker.address, task, truth)
            rows.append({"group": name, **result, "us a pair": 1e6 * cost["cpu"] / given.pairs})
            print(rows[-1], flush=True)
    show_table("error of what was sent, %, and examples between prediction and learning", rows)
    if given.output:
        write_json(given.output, {"machine": machine(), "rows": rows})


if __name__ == "__main__":
    main()
