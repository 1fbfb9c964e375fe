"""Examples a second of workers on a real broker, end to end, and where the time goes.

Each partition holds RCV1 stories as JSON. A worker, a process with an RBP of budget 1,000, reads,
predicts, learns, publishes every prediction and writes checkpoints at the default interval. The
contenders take turns; one more round has clocks around the steps.

    python -m benchmarks.consumer rate --output results/consumer.json

Time of the processor is counted, too, and what other processes took of it meanwhile: workers,
broker and they share the cores.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import tempfile
import time
import uuid
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kafka import KafkaAdminClient, KafkaProducer

from benchmarks.consumer.steps import Clock
from benchmarks.data import stories
from benchmarks.machine import machine, write_json
from benchmarks.report import show_table
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.codec import Example, JsonCodec
from drift.consumers.worker import Worker
from drift.models import RBP
from drift.testing import produce
from tools.kafka.broker import Broker

if TYPE_CHECKING:
    import argparse

#: Seconds after which a process of the benchmark must have gone wrong.
PATIENCE = 300
#: Examples, one a millisecond, between the features and their label where that has a topic of its
#: own: least and most.
LATER = 625, 1875


class Contender(NamedTuple):
    """What takes part."""

    topic: str
    partitions: int = 1
    publishes: bool = True
    checkpoints: bool = True


class Meeting(NamedTuple):
    """What the processes of a round have between them."""

    barrier: Any
    results: Any


CONTENDERS = {
    "one worker": Contender("one"),
    "one worker, no checkpoints": Contender("one", checkpoints=False),
    "one worker, nothing published": Contender("one", publishes=False),
    "one worker, two partitions": Contender("two", partitions=2),
}


# --- in the process of a worker ------------------------------------------------------------------


def work(contender: Contender, where: dict[str, Any], meeting: Meeting, *, profiled: bool) -> None:
    """Learn the topic; put down how many examples were learnt by when."""
    rarely: dict[str, Any] = {}
    if not contender.checkpoints:
        rarely = {"checkpoint_every": 10**9, "checkpoint_seconds": 1e9}
    worker = Worker(
        RBP(budget=1000, seed=0),
        CheckpointFolder(where["folder"]),
        {"bootstrap_servers": where["address"]},
        WorkerOptions(
            topic=contender.topic,
            group=where["group"],
            start="earliest",
            predictions="out" if contender.publishes else None,
            **rarely,
        ),
        consumer={"heartbeat_interval_ms": 300},
    )
    # Joining the group takes seconds, and continues only while all who are in it poll. A short poll
    # that ends meanwhile may lose the partitions, up to kafka-python 3.0.12.
    while worker.metrics.partitions < contender.partitions:
        worker.step(5.0)

    def learnt() -> int:
        return sum(metrics.examples for metrics in worker.metrics.models)

    meeting.barrier.wait(PATIENCE)
    clock = Clock() if profiled else None
    cpu = time.process_time()
    points = [(time.monotonic(), learnt())]
    while learnt() < contender.partitions * where["count"]:
        worker.step(1.0)
        points.append((time.monotonic(), learnt()))
    worker._producer.flush()
    points.append((time.monotonic(), learnt()))
    cpu = time.process_time() - cpu
    shares = clock.shares() if clock else {}
    meeting.barrier.wait(PATIENCE)
    meeting.results.put({"points": points, "cpu": cpu, "shares": shares})
    worker.stop()
    worker.run(signals=False)


# --- in the benchmark's own ----------------------------------------------------------------------


def ticks(path: str) -> float:
    """Seconds of the processor in a file of /proc; NaN where there is none."""
    try:
        text = Path(path).read_text(encoding="ascii")
    except OSError:
        return float("nan")
    if path == "/proc/stat":
        fields = text.splitlines()[0].split()[1:9]
        idle = int(fields[3]) + int(fields[4])
        return (sum(map(int, fields)) - idle) / os.sysconf("SC_CLK_TCK")
    return sum(map(int, text.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def one_round(
    broker: Broker, contender: Contender, count: int, *, profiled: bool = False
) -> dict[str, Any]:
    """Run a contender; examples a second, and what it took."""
    context = multiprocessing.get_context("spawn")
    meeting = Meeting(context.Barrier(2), context.Queue())
    files = ("/proc/stat", f"/proc/{broker.pid}/stat")
    with tempfile.TemporaryDirectory() as folder:
        group = f"group-{uuid.uuid4().hex}"
        where = dict(address=broker.address, folder=folder, group=group, count=count)
        process = context.Process(
            target=work,
            args=(contender, where, meeting),
            kwargs={"profiled": profiled},
            daemon=True,
        )
        process.start()
        meeting.barrier.wait(PATIENCE)
        before, started = [ticks(file) for file in files], time.monotonic()
        meeting.barrier.wait(PATIENCE)
        after, seconds = [ticks(file) for file in files], time.monotonic() - started
        result = meeting.results.get(timeout=PATIENCE)
        process.join(PATIENCE)
    return report(result, seconds, *(b - a for a, b in zip(before, after, strict=True)))


def report(
    result: dict[str, Any], seconds: float, machine_cpu: float, broker_cpu: float
) -> dict[str, Any]:
    """Figures of a round."""
    points = np.array(result["points"])
    took, learnt = points[-1] - points[0]
    return {
        "rate": learnt / took,
        "cpu": 1e6 * result["cpu"] / learnt,
        "broker": 1e6 * broker_cpu / learnt,
        "others": (machine_cpu - broker_cpu - result["cpu"]) / seconds,
        "shares": result["shares"],
    }


def fill(broker: Broker, count: int) -> str:
    """Make the topics, those of `pairs` too; return the name of the stream in them."""
    stream, codec = stories(), JsonCodec()
    examples = list(islice(cycle(stream), count))
    repeated = [codec.encode(Example(x, y)) for x, y in examples]
    values = {
        "one": repeated,
        "two": repeated,
        "out": [],
        "features": [codec.encode(Example(x, id=n)) for n, (x, _) in enumerate(examples)],
        "labels": [json.dumps({"id": n, "label": y}).encode() for n, (_, y) in enumerate(examples)],
    }
    make(broker, values)
    return stream.name


def fill_eight(broker: Broker, count: int) -> None:
    """Make a topic of examples with 8 features, one for predictions, and two for late labels."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(count, 8)).round(6).tolist()
    examples = [Example(dict(zip("abcdefgh", row, strict=True)), sum(row) > 0) for row in rows]
    make(broker, {"eight": [JsonCodec().encode(one) for one in examples], "out": []})
    make(broker, {"features": [], "labels": []}, stamps="CreateTime")
    first = int(1000 * time.time()) - count
    due = np.arange(count) + rng.integers(*LATER, size=count)
    producer = KafkaProducer(bootstrap_servers=broker.address, linger_ms=60_000)
    for number, example in enumerate(examples):
        value = JsonCodec().encode(Example(example.features, id=number))
        producer.send("features", value, partition=0, timestamp_ms=first + number)
    for number in np.argsort(due, kind="stable").tolist():
        value = json.dumps({"id": number, "label": examples[number].label}).encode()
        producer.send("labels", value, partition=0, timestamp_ms=first + int(due[number]))
    producer.flush()
    producer.close()


def make(broker: Broker, values: dict[str, list[bytes]], stamps: str = "LogAppendTime") -> None:
    """Make topics with these messages, in each of their partitions."""
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    for topic, sent in values.items():
        wanted = {
            "num_partitions": 2 if topic in {"two", "out"} else 1,
            "replication_factor": 1,
            "configs": {"message.timestamp.type": stamps},
        }
        admin.create_topics({topic: wanted}, wait_for_metadata=True)
        for partition in range(wanted["num_partitions"]):
            produce(broker.address, topic, sent, partition)
    admin.close()


def show(rounds: dict[str, list[dict[str, Any]]], shares: dict[str, float]) -> dict[str, Any]:
    """Print the figures; return them."""
    keys = ("rate", "cpu", "broker", "others")
    middle: dict[str, dict[str, float]] = {
        contender: {key: statistics.median(one[key] for one in measured) for key in keys}
        for contender, measured in rounds.items()
    }
    headings = ("examples/s", "CPU us each", "of broker", "cores of others")
    table = [
        {"": contender} | dict(zip(headings, row.values(), strict=True))
        for contender, row in middle.items()
    ]
    show_table("medians of the rounds", table)
    print("CPU time of one worker by step:")
    for step, share in shares.items():
        print(f"{share:12.1%}  {step}")
    return {"contenders": middle, "shares": shares}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--examples", type=int, default=40_000, help="in each partition")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, help="JSON file for the figures")


def run(arguments: argparse.Namespace) -> None:
    """Run the benchmark."""
    count = arguments.examples
    with tempfile.TemporaryDirectory() as folder, Broker(folder) as broker:
        name = fill(broker, count)
        one_round(broker, CONTENDERS["one worker"], count)  # warms the broker up
        rounds: dict[str, list[dict[str, Any]]] = {contender: [] for contender in CONTENDERS}
        for _ in range(arguments.repeats):
            for label, contender in CONTENDERS.items():
                rounds[label].append(one_round(broker, contender, count))
        shares = one_round(broker, CONTENDERS["one worker"], count, profiled=True)["shares"]
    print(f"{name}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    figures = show(rounds, shares)
    if arguments.output:
        everything = {"stream": name, "examples": count, **figures, "rounds": rounds, **machine()}
        write_json(arguments.output, everything)
