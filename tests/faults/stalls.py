"""Catch-ups on a real broker that stalls, against a plain merge of the logs by time.

A topic of features in three partitions and one of labels in two, of ten days, are there when a
worker begins to read. While it does, the broker is stopped (SIGSTOP) at random places for one to
ten seconds. In the end no label may be an orphan, and the model must have the bytes of one that
learnt the records in the order of their times:

    python -m tests.faults.stalls --runs 10

The exit code is 1 if a run differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

import click
import kafka

from drift.consumers import CheckpointFolder
from drift.consumers.client.topics import Reader
from drift.consumers.options import WorkerOptions
from drift.consumers.worker import Worker
from drift.models import LBP
from tools.kafka.broker import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS = {"features": 3, "labels": 2}
DAYS, COUNT, STOPS = 10, 40_000, 4


def events(now: int) -> Iterator[tuple[int, str, int, dict[str, Any]]]:
    """Yield time, topic, partition and message: labels come an hour later, some not yet."""
    rng, day = random.Random(7), 86_400_000
    for number in range(COUNT):
        features = {f"f{j}": round(rng.gauss(0, 1), 4) for j in range(6)}
        time_ = now - DAYS * day + number * DAYS * day // COUNT
        label = features["f0"] + (1 if number // 8000 % 2 else -1) * features["f1"] > 0
        yield time_, "features", number % 3, {"id": f"m{number}", "features": features}
        due = time_ + int(rng.expovariate(1 / 3600) * 1000) + 1000
        if due < now:
            yield due, "labels", number % 2, {"id": f"m{number}", "label": label}


def write(address: str) -> int:
    """Create the topics and send all in the order of time; return the number of labels."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=address)
    admin.create_topics(
        {
            topic: {
                "num_partitions": count,
                "replication_factor": 1,
                "configs": {"retention.ms": "-1"},
            }
            for topic, count in PARTITIONS.items()
        },
        wait_for_metadata=True,
    )
    admin.close()
    producer = kafka.KafkaProducer(bootstrap_servers=address, linger_ms=20, batch_size=1 << 16)
    rows = sorted(events(int(1000 * time.time())), key=lambda row: row[:3])
    for at, topic, partition, body in rows:
        producer.send(topic, json.dumps(body).encode(), partition=partition, timestamp_ms=at)
    producer.flush()
    producer.close()
    return sum(topic == "labels" for _, topic, *_ in rows)


def merged(address: str) -> LBP:
    """Return a model that has learnt a plain merge of the logs by time."""
    rows = []
    for topic in PARTITIONS:
        with Reader(topic, {"bootstrap_servers": address}) as reader:
            rows += [
                (m.timestamp, topic == "labels", *m.position[1:], json.loads(m.value))
                for m in reader.read(reader.ends())
            ]
    model, waiting = LBP(budget=50), {}
    for _, is_label, _, _, body in sorted(rows, key=lambda row: row[:4]):
        if not is_label:
            waiting[body["id"]] = body["features"]
        elif body["id"] in waiting:
            model.learn_one(waiting.pop(body["id"]), body["label"])
    return model


def catch_up(
    broker: Broker, folder: str, seed: int, labels: int, expected: bytes
) -> dict[str, Any]:
    """Read both topics while the broker is stopped now and then; return what came of it."""
    draw = random.Random(seed)
    options = WorkerOptions(
        topic="features",
        labels="labels",
        group=f"stalls-{seed}",
        start="earliest",
        timestamps="create",
    )
    kafka_options = {"bootstrap_servers": broker.address}
    worker = Worker(LBP(budget=50), CheckpointFolder(folder), kafka_options, options)
    places = sorted(draw.randrange(COUNT) for _ in range(STOPS))
    stops, stopped, held, pid = [], threading.Event(), 0.0, broker.pid
    stopped.set()

    def stop(seconds: float) -> None:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
        stopped.set()

    def count(name: str) -> float:
        return sum(getattr(one, name) or one.late.get(name, 0) for one in worker.metrics.models)

    def is_done() -> bool:
        late = [one.late.get("orphans", 0) for one in worker.metrics.models]
        return count("unlabelled") == COUNT and count("examples") + sum(late) == labels

    started = time.perf_counter()
    while not is_done():
        worker.step(0.5)
        held = max(held, worker.metrics.held)
        if places and count("unlabelled") > places[0] and stopped.is_set():
            places.pop(0)
            stops.append(round(draw.uniform(1, 10), 1))
            stopped.clear()
            threading.Thread(target=stop, args=stops[-1:], daemon=True).start()
    stopped.wait()
    [metrics] = worker.metrics.models
    forced, seconds = worker.metrics.forced_steps(), time.perf_counter() - started
    worker.stop()
    worker.run(signals=False)
    model = CheckpointFolder(folder).newest(("features", None)).model
    return {
        "seed": seed,
        "stops": " ".join(map(str, stops)),
        "seconds": round(seconds, 1),
        "longest wait": round(held, 1),
        "examples": metrics.examples,
        "orphans": metrics.late["orphans"],
        "forced": forced,
        "equal": model.to_bytes() == expected,
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch, Broker(f"{scratch}/kafka") as broker:
        labels = write(broker.address)
        expected = merged(broker.address).to_bytes()
        for seed in range(given.seed, given.seed + given.runs):
            rows.append(catch_up(broker, f"{scratch}/{seed}", seed, labels, expected))
            click.echo(rows[-1])
    sys.exit(not all(row["equal"] and not row["orphans"] for row in rows))


if __name__ == "__main__":
    main()
