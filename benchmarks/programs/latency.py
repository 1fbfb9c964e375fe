"""How long a prediction takes, from the send of its message to its arrival, on a real broker.

A worker with a Tracker(300) learns a topic of 8 features as JSON, and publishes its predictions.
This process sends messages at a steady rate, and reads the predictions. Each has a core of its own;
the broker is on both. Messages of 5 ms are sent together: a request for each would be more than the
broker and this process can do on one core.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from typing import TYPE_CHECKING

import numpy as np
from confluent_kafka import Consumer, Producer

from benchmarks import output_option
from benchmarks.process import cpu_seconds
from benchmarks.programs.topics import make_topics
from benchmarks.programs.worker import examples
from benchmarks.report import show_table, write_result
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.worker import Worker
from drift.models import Tracker
from tools.kafka.broker import Broker

if TYPE_CHECKING:
    from collections.abc import Sequence

RATES = (10, 100, 1_000, 5_000)
#: Seconds of each rate. The first one does not count.
SECONDS = 20
#: Messages that are learnt before the clock starts.
WARM = 5_000
#: Seconds after which a prediction does not come any more.
PATIENCE = 120


def work(address: str, core: int, linger: int, folder: str) -> None:
    """Learn and predict until SIGTERM."""
    os.sched_setaffinity(0, {core})
    options = WorkerOptions(topic="in", group="latency", start="earliest", predictions="out")
    settings = {"bootstrap_servers": address}
    store = CheckpointFolder(folder)
    Worker(Tracker(300), store, settings, options, producer={"linger_ms": linger}).run()


class Pipe:
    """Messages that go in, and predictions that come out in the same order, or TimeoutError."""

    def __init__(self, address: str) -> None:
        # Of the log only what is critical: the broker ends before the last connection.
        client = {"bootstrap.servers": address, "log_level": 2}
        self._producer = Producer(client | {"linger.ms": 5})
        self._consumer = Consumer(
            client | {"group.id": "reader", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 5}
        )
        self._consumer.subscribe(["out"])

    def arrivals(self, messages: Sequence[bytes], rate: float) -> np.ndarray:
        """Send messages at a rate, and return for each the seconds until its prediction came."""
        sent, came, started = [], [], time.perf_counter()
        patience = len(messages) / rate + PATIENCE
        while len(came) < len(messages):
            if time.perf_counter() > started + patience:
                raise TimeoutError(f"{len(came)} of {len(messages)} predictions came")
            while len(sent) < len(messages) and time.perf_counter() >= started + len(sent) / rate:
                sent.append(time.perf_counter())
                self._producer.produce("in", messages[len(sent) - 1])
            self._producer.poll(0)
            due = started + len(sent) / rate if len(sent) < len(messages) else float("inf")
            wait = min(max(due - time.perf_counter(), 0), 0.1)
            if (first := self._consumer.poll(wait)) is not None:
                now, found = time.perf_counter(), [first, *self._consumer.consume(500, 0)]
                came += [now for message in found if not message.error()]
        return np.subtract(came, sent)

    def close(self) -> None:
        """Leave before the broker does."""
        self._producer.flush()
        self._consumer.close()


def main(arguments: list[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks latency")
    parser.add_argument("--rates", type=int, nargs="+", default=RATES, help="messages a second")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of a rate")
    parser.add_argument("--linger", type=int, default=20, help="linger_ms of the worker's producer")
    output_option(parser)
    given = parser.parse_args(arguments)
    if given.seconds < 2:
        parser.error("--seconds must be at least 2: the first does not count")
    core, *others = sorted(os.sched_getaffinity(0))
    table = []
    with tempfile.TemporaryDirectory() as folder, Broker(folder) as broker:
        make_topics(broker.address, ("in", "out"))
        context = multiprocessing.get_context("spawn")
        where = (broker.address, core, given.linger, f"{folder}/checkpoints")
        worker = context.Process(target=work, args=where, daemon=True)
        worker.start()
        os.sched_setaffinity(0, others or {core})
        pipe = Pipe(broker.address)
        try:
            pipe.arrivals(list(examples(WARM)), WARM)
            for rate in given.rates:
                before = cpu_seconds(worker.pid)
                late = pipe.arrivals(list(examples(rate * given.seconds)), rate)
                each = 1e6 * (cpu_seconds(worker.pid) - before) / len(late)
                quantiles = np.quantile(1e3 * late[rate:], (0.5, 0.99, 1)).tolist()
                named = zip(("median, ms", "99 %, ms", "most, ms"), quantiles, strict=True)
                table.append({"messages/s": rate} | dict(named) | {"CPU of the worker, us": each})
        finally:
            pipe.close()
            worker.terminate()
            worker.join(60)
    show_table(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", table)
    write_result(given.output, "latency", {"linger_ms": given.linger, "table": table})
