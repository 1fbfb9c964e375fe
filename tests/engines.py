"""``python -m tests.engines spark``: a program of docs/engines.md, killed in the middle.

Half of the messages are there when it starts, and are learnt by a program that is killed and one
that continues, of Quix Streams in another folder, where it has nothing but the changelog. The other
half comes once those are learnt, and is timed. 0 only if each key's state has the bytes of a plain
loop, and each prediction is the loop's. Takes a broker of tools/kafka, and the engine's extra.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift import models
from tools.kafka.broker import Broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Messages = list[tuple[str, dict[str, Any]]]

ROOT = Path(__file__).parents[1]
TICKS = os.sysconf("SC_CLK_TCK")
PAYMENTS, PREDICTIONS = "payments", "predictions"
CHANGELOG = "changelog__fraud--payments--default"
#: Seconds without any progress after which a program is given up.
PATIENCE = 300

PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
#: One core; a reader of states takes the same.
SPARK = {
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.master": "local[1]",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": PROVIDER,
    "spark.ui.enabled": "false",
}


def program(engine: str, address: str, model: str) -> str:
    """The engine's program on the page, of a broker and a model."""
    page = (ROOT / "docs" / "engines.md").read_text("utf-8")
    [code] = re.findall(
        rf"^## {engine}.*?^```py\n(.*?)^```$", page, re.DOTALL | re.MULTILINE | re.IGNORECASE
    )
    name = model.partition("(")[0]
    code = code.replace('os.environ["BROKER"]', repr(address)).replace("Tracker(budget=50)", model)
    return code.replace("import Tracker", f"import {name}")


def messages(keys: int, each: int) -> Messages:
    """Key and payment: of each key its own rule, and one payment in ten without a label."""
    rng = random.Random(0)
    rules = [[rng.gauss(0, 1) for _ in range(8)] for _ in range(keys)]
    results = []
    for number in range(keys * each):
        x = [rng.gauss(0, 1) for _ in range(8)]
        y = sum(a * b for a, b in zip(x, rules[number % keys], strict=True)) > 0
        payment = {"id": number, "features": {f"f{j}": v for j, v in enumerate(x)}}
        if rng.random() < 0.9:
            payment["label"] = y
        results.append((f"customer {number % keys}", payment))
    return results


def loop(some: Messages, model: Any) -> tuple[dict[str, bytes], list[Any]]:
    """State by key, and the predictions, of a plain loop."""
    by_key: dict[str, Any] = defaultdict(model.clone)
    predictions = []
    for key, payment in some:
        predictions.append(by_key[key].predict_one(payment["features"]))
        if "label" in payment:
            by_key[key].learn_one(payment["features"], payment["label"])
    return {key: one.to_bytes() for key, one in by_key.items()}, predictions


class Kafka:
    """The topics of a broker: payments go in, predictions are followed as they come."""

    def __init__(self, address: str) -> None:
        from confluent_kafka import Producer  # noqa: PLC0415 - an extra
        from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

        self._options = {"bootstrap.servers": address, "log_level": 0}
        self._producer = Producer(self._options)
        topics = [NewTopic(name, 2) for name in (PAYMENTS, PREDICTIONS)]
        admin = AdminClient(self._options)
        for made in admin.create_topics(topics).values():
            made.result()
        self._consumer = self._reader(PREDICTIONS)
        #: Prediction by the payment's number, and how many came, with those that came again.
        self.predicted: dict[int, Any] = {}
        self.came = 0
        self.is_quiet = True  # nothing came of late

    def _reader(self, topic: str) -> Any:
        from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415

        options = {"group.id": "tests", "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = Consumer(self._options | options)
        result = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in result])
        return consumer

    def send(self, some: Messages) -> None:
        """Send payments, in order for each key."""
        for key, payment in some:
            self._producer.produce(PAYMENTS, key=key, value=json.dumps(payment))
            self._producer.poll(0)
        self._producer.flush()

    def follow(self, until: Callable[[], Any], alive: Callable[[], None] = lambda: None) -> None:
        """Read predictions until something holds."""
        last = time.monotonic()
        while not until():
            alive()
            message = self._consumer.poll(0.1)
            self.is_quiet = message is None
            if message is not None and not message.error():
                answer = json.loads(message.value())
                self.predicted[answer["id"]] = answer["predicted"]
                self.came += 1
                last = time.monotonic()
            if time.monotonic() > last + PATIENCE:
                raise TimeoutError(f"nothing came for {PATIENCE} s")

    def changelog(self) -> Iterator[tuple[str, bytes]]:
        """What Quix Streams keeps of each key: key and value, the last of a key last."""
        consumer = self._reader(CHANGELOG)
        ahead = len(consumer.assignment())
        while ahead:
            message = consumer.poll(PATIENCE)
            if message.error():
                ahead -= 1
            else:
                yield message.key().decode().partition("|")[0], message.value()
        consumer.close()


class Program:
    """A program of the page, in its own session, so that all its processes are known."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        own = Path(sys.executable).parent
        environment = {
            "PATH": f"{own}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.log = folder / "log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=os.environ | environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _processes(self) -> Iterator[tuple[int, list[str]]]:
        """Number and state, as of proc(5) from the third field on, of each process."""
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = path.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self._process.pid:
                    yield int(path.parent.name), fields

    def processor_seconds(self) -> float:
        """Time that its processes have taken of the processor, with those that ended."""
        return sum(sum(map(int, fields[11:15])) for _, fields in self._processes()) / TICKS

    def check(self) -> None:
        """Raise where it has ended."""
        if self._process.poll() is not None:
            raise RuntimeError(f"it ended:\n{self.log.read_text()[-3000:]}")

    def kill(self) -> None:
        """Kill all of it at once."""
        for number, _ in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self._process.wait()


class Quix:
    """Quix Streams, with its changelog as the state."""

    package = "quixstreams"

    def __init__(self, root: Path, code: str, kafka: Kafka) -> None:
        self._root, self._kafka, self._starts = root, kafka, 0
        self._file = root / "learn.py"
        self._file.write_text(code, encoding="utf-8")

    def start(self) -> Program:
        """Start it in an empty folder."""
        self._starts += 1
        self.folder = self._root / f"quix-{self._starts}"
        return Program([sys.executable, str(self._file)], self.folder)

    def is_saved(self) -> bool:
        """Whether what was predicted is in the state: both are in one transaction."""
        return True

    def states(self) -> dict[str, bytes]:
        """State by key."""
        return dict(self._kafka.changelog())

    def on_disk(self) -> int:
        """Bytes of the state's files."""
        return size(self.folder / "state")


class Spark:
    """Spark Structured Streaming on one core."""

    package = "pyspark"

    def __init__(self, root: Path, code: str, kafka: Kafka) -> None:
        self._folder = root / "spark"
        self._checkpoints = self._folder / "spark-checkpoints"
        self._file = root / "learn.py"
        self._file.write_text(code, encoding="utf-8")

    def start(self) -> Program:
        """Start it in its folder, which has the checkpoints."""
        connector = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version(self.package)}"
        options = [part for name, value in SPARK.items() for part in ("--conf", f"{name}={value}")]
        command = ["spark-submit", "--packages", connector, *options, str(self._file)]
        return Program(command, self._folder)

    def is_saved(self) -> bool:
        """Whether the last batch that started has been committed."""
        last = [
            max((int(path.name) for path in (self._checkpoints / name).glob("[0-9]*")), default=-1)
            for name in ("offsets", "commits")
        ]
        return last[0] == last[1] >= 0

    def states(self) -> dict[str, bytes]:
        """State by key."""
        from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

        with SparkSession.builder.config(map=SPARK).getOrCreate() as spark:
            _ = spark.streams.active  # starts what the reader of states asks
            reader = spark.read.format("statestore").option("stateVarName", "model")
            rows = reader.load(str(self._checkpoints)).collect()
        return {row.key.key.decode(): bytes(row.value.state) for row in rows}

    def on_disk(self) -> int:
        """Bytes of the state's files."""
        return size(self._checkpoints / "state")


def size(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def run(options: argparse.Namespace, root: Path) -> bool:
    """Run a program over the topic, print what came of it; return whether all holds."""
    some = messages(options.keys, options.each)
    half = len(some) // 2
    name, _, arguments = options.model.partition("(")
    known = dict(part.split("=") for part in arguments.rstrip(")").split(",") if part)
    model = getattr(models, name)(**{key: int(value) for key, value in known.items()})
    states, predictions = loop(some, model)
    with Broker(root / "kafka") as broker, contextlib.ExitStack() as programs:
        kafka = Kafka(broker.address)
        kafka.send(some[:half])
        code = program(options.engine, broker.address, options.model)
        engine = {"quix": Quix, "spark": Spark}[options.engine](root, code, kafka)

        started = time.monotonic()
        first = engine.start()
        programs.callback(first.kill)
        kafka.follow(lambda: kafka.came, first.check)
        start = time.monotonic() - started, first.processor_seconds()
        kafka.follow(lambda: kafka.came >= half // 4, first.check)
        first.kill()
        started = time.monotonic()
        kafka.follow(lambda: kafka.is_quiet)
        killed = len(kafka.predicted)
        second = engine.start()
        programs.callback(second.kill)
        kafka.follow(lambda: len(kafka.predicted) > killed, second.check)
        restart = time.monotonic() - started, second.processor_seconds()
        kafka.follow(lambda: len(kafka.predicted) == half and engine.is_saved(), second.check)

        processor, started = second.processor_seconds(), time.monotonic()
        kafka.send(some[half:])
        kafka.follow(lambda: len(kafka.predicted) == len(some) and engine.is_saved(), second.check)
        seconds, processor = time.monotonic() - started, second.processor_seconds() - processor
        second.kill()
        held = engine.states()
    same = sum(held.get(key) == state for key, state in states.items())
    right = sum(kafka.predicted[number] == y for number, y in enumerate(predictions))
    rest = len(some) - half
    sys.stdout.write(
        f"{engine.package} {version(engine.package)}, {options.model}: {options.keys:,} keys, "
        f"{len(some):,} messages; killed after {killed:,} predictions\n"
        f"states that equal a plain loop's: {same:,} of {len(states):,}; predictions: {right:,} of "
        f"{len(some):,}, {kafka.came - len(some):,} sent twice\n"
        f"first prediction {start[0]:.1f} s after the start, {start[1]:.1f} of the processor; "
        f"{restart[0]:.1f} s after the restart, {restart[1]:.1f} of the processor\n"
        f"{rest:,} messages, {rest // options.keys:,} a key: {seconds:.1f} s, {processor:.1f} of "
        f"the processor; {rest / processor:,.0f} messages/s and core\n"
        f"a key: {sum(map(len, held.values())) / len(held):,.0f} bytes, "
        f"{engine.on_disk() / len(held):,.0f} on disk; load {os.getloadavg()[1]:.1f} on "
        f"{os.cpu_count()} cores\n"
    )
    return (same, len(held), right) == (len(states), len(states), len(some))


def main() -> int:
    """Run it; what a run that fails has left stays."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines", description=__doc__)
    parser.add_argument("engine", choices=("quix", "spark"))
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--each", type=int, default=100, help="messages of a key")
    parser.add_argument("--model", default="Tracker(budget=50)", help="as the program has it")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # its programs end with it
    root = Path(tempfile.mkdtemp(prefix=f"engines-{options.engine}-"))
    if not run(options, root):
        sys.stdout.write(f"it does not hold: {root}\n")
        return 1
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
