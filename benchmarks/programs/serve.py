"""How long predictions over HTTP take while the model learns, on a real broker.

A producer writes examples at a rate; a worker learns them and writes checkpoints; `drift serve`
follows it and learns them, too. A generator in its own process asks at fixed times, whether
or not the answers before have come: a time counts from when a request was due.

    python -m benchmarks serve
    python -m benchmarks serve --hostile 10000

`--late` has labels on a separate topic, which come 5 s later. With `--hostile` the requests are
what no client should send, and what counts is the statuses and the memory of the service.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter, deque
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import numpy as np
from confluent_kafka import Producer

from benchmarks import output_option
from benchmarks.process import cpu_seconds, resident
from benchmarks.programs.topics import make_topics
from benchmarks.report import load_average, show_table, write_result
from tools.kafka.broker import Broker, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds by which labels come later; for which a service may take to be ready.
DELAY, PATIENCE = 5.0, 120
#: Connections of the generator.
CONNECTIONS = 64
NAMES = [f"x{k}" for k in range(8)]


def example(rng: random.Random, number: int) -> tuple[dict[str, Any], bool]:
    """Return the features of an example, and its label, by a plane that turns."""
    x = {name: round(rng.gauss(0, 1), 6) for name in NAMES}
    plane = np.cos(number / 40_000 + np.arange(len(NAMES)))
    return x, bool(float(plane @ np.array([*x.values()])) > 0)


def produce(address: str, topic: str, rate: float, *, late: bool) -> None:
    """Write examples at a rate, a few every five milliseconds, until it is ended."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5})
    rng, started, number = random.Random(0), time.monotonic(), 0
    waiting: deque[tuple[float, bytes]] = deque()
    while True:
        now = time.monotonic()
        for _ in range(int((now - started) * rate) - number):
            x, y = example(rng, number)
            message = {"id": number, "features": x} | ({} if late else {"label": y})
            producer.produce(topic, json.dumps(message).encode())
            if late:
                waiting.append((now + DELAY, json.dumps({"id": number, "label": y}).encode()))
            number += 1
        while waiting and waiting[0][0] < now:
            producer.produce(f"{topic}.labels", waiting.popleft()[1])
        producer.poll(0)
        time.sleep(0.005)


# --- the generator -------------------------------------------------------------------------------


class Connection(asyncio.Protocol):
    """A connection that is kept, with one request at a time."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[int] | None = None
        self._data = b""

    def connection_made(self, transport: Any) -> None:
        """Keep what writes."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Note the status once an answer is there."""
        self._data += data
        head, result, body = self._data.partition(b"\r\n\r\n")
        if not result:
            return
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if len(body) >= size and self.answer is not None and not self.answer.done():
            self._data = b""
            self.answer.set_result(int(head[9:12]))

    def connection_lost(self, error: Exception | None) -> None:
        """Note that there will be none."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(0)

    async def ask(self, body: bytes) -> int:
        """Return the status of the answer; 0 where the connection is gone."""
        if self.transport.is_closing():
            return 0
        self.answer = asyncio.get_running_loop().create_future()
        head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)
        return await asyncio.wait_for(self.answer, 30)


async def ask(port: int, rate: float, seconds: float) -> dict[str, Any]:
    """Ask at a rate; return times in milliseconds and statuses."""
    loop, rng = asyncio.get_running_loop(), random.Random(1)
    bodies = [json.dumps({"features": example(rng, k)[0]}).encode() for k in range(1000)]
    idle: asyncio.LifoQueue[Connection] = asyncio.LifoQueue()
    times: list[float] = []
    statuses: Counter[int] = Counter()
    lateness: list[float] = []

    async def connect() -> Connection:
        return (await loop.create_connection(Connection, "127.0.0.1", port))[1]

    async def one(number: int, due: float) -> None:
        lateness.append(1000 * (time.monotonic() - due))
        connection = await idle.get()
        # One that no request needed yet was closed by the service; clients' pools look, too.
        if connection.transport.is_closing():
            connection = await connect()
        status = await connection.ask(bodies[number % len(bodies)])
        times.append(1000 * (time.monotonic() - due))
        statuses[status] += 1
        idle.put_nowait(connection)

    for _ in range(CONNECTIONS):
        idle.put_nowait(await connect())
    started, tasks = time.monotonic(), set()
    for number in range(int(rate * seconds)):
        due = started + number / rate
        if (wait := due - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        task = asyncio.ensure_future(one(number, due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return {"times": times, "statuses": dict(statuses), "lateness": lateness}


def generate(port: int, rate: float, seconds: float, results: Any) -> None:
    """Be the generator; in its own process."""
    results.put(asyncio.run(ask(port, rate, seconds)))


def hostile(rng: random.Random) -> bytes:
    """Return a body that no client should send."""
    good = json.dumps({"features": example(rng, 0)[0], "id": "a"}).encode()
    return rng.choice(
        [
            lambda: b"",
            lambda: rng.randbytes(rng.randrange(300)),
            lambda: b"[" * rng.randrange(1, 100_000),
            lambda: b'{"features":' * rng.randrange(1, 5_000) + b"1" + b"}" * 9,
            lambda: b'{"features": {"a": NaN, "b": -Infinity}}',
            lambda: b'{"features": {"a": 1' + b"0" * rng.randrange(10_000) + b"}}",
            lambda: b'{"features": {"a": 1e999}}',
            lambda: b'{"features": {"a": 1, "a": 2}}',
            lambda: b'{"features": {"a": "\\ud800"}, "id": "\\udfff"}',
            lambda: b'\xff\xfe{"features": {}}',
            lambda: json.dumps({"features": rng.choice([None, 1, "a", [], [[]]])}).encode(),
            lambda: json.dumps([{"features": {"a": [1]}}] * rng.randrange(300)).encode(),
            lambda: json.dumps({"features": {f"f{k}": 1 for k in range(20_000)}}).encode(),
            lambda: json.dumps({"features": {"x" * 100_000: 1e308, "y": -1e308}}).encode(),
            lambda: good[: rng.randrange(len(good))],
            lambda: good.replace(rng.choice(good).to_bytes(), rng.randbytes(1)),
            lambda: b" " * (2 << 20),
            lambda: json.dumps({"features": {rng.random().hex(): 1.0 for _ in range(50)}}).encode(),
        ]
    )()


async def ask_badly(port: int, count: int) -> Counter[int]:
    """Send what no client should, over a few connections; return the statuses."""
    loop, rng, statuses = asyncio.get_running_loop(), random.Random(2), Counter[int]()

    async def some(number: int) -> None:
        connection = None
        for _ in range(number):
            if connection is None or connection.transport.is_closing():
                connection = (await loop.create_connection(Connection, "127.0.0.1", port))[1]
            statuses[await connection.ask(hostile(rng))] += 1
        if connection is not None:
            connection.transport.close()

    await asyncio.gather(*(some(count // 8) for _ in range(8)))
    await asyncio.sleep(0.1)  # until they are closed
    return statuses


# --- what is measured ----------------------------------------------------------------------------


def page_of(port: int, path: str) -> str:
    """Return a page of the service; the text of an error where there is none."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.read().decode()
    except OSError as problem:
        return str(problem)


def metric(port: int, name: str) -> float:
    """Return a metric of the service."""
    page = page_of(port, "/metrics")
    for line in page.splitlines():
        if line.startswith((f"{name} ", f"{name}{{")):
            return float(line.rpartition(" ")[2])
    raise RuntimeError(f"no {name} in {page}")


@contextlib.contextmanager
def running(options: argparse.Namespace, address: str) -> Iterator[dict[str, Any]]:
    """Run a producer, a worker and a service; wait until the service has caught up."""
    topic = f"serve-{uuid.uuid4().hex[:8]}"
    names = [topic, f"{topic}.labels"] if options.late else [topic]
    make_topics(address, names, partitions=options.partitions, log_times=True)
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        shared = [topic, "--bootstrap", address, "--group", topic, "--checkpoints", folder]
        shared += ["--labels", f"{topic}.labels"] if options.late else []
        command = [sys.executable, "-m", "drift"]
        commands = {
            "worker": ["consume", *shared, "--from", "earliest"],
            "service": ["serve", *shared, f"--port={port}"],
        }
        processes = {
            name: subprocess.Popen([*command, *one])  # noqa: S603 - drift's own
            for name, one in commands.items()
        }
        given = address, topic, options.examples
        feed = multiprocessing.Process(target=produce, args=given, kwargs={"late": options.late})
        feed.start()
        try:
            end = time.monotonic() + PATIENCE
            while page_of(port, "/readyz") != "ok\n":
                assert time.monotonic() < end, page_of(port, "/readyz")
                time.sleep(0.5)
            time.sleep(options.warm)
            pids = {name: one.pid for name, one in processes.items()} | {"producer": feed.pid}
            yield {"port": port, "pids": pids}
        finally:
            feed.terminate()
            for one in processes.values():
                one.terminate()
                one.wait(60)


def measure(options: argparse.Namespace, address: str, broker: int | None) -> dict[str, Any]:
    """Return a row of the table."""
    with running(options, address) as run:
        pids = run["pids"] | ({"broker": broker} if broker else {})
        results: Any = multiprocessing.Queue()
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        given = run["port"], options.rate, options.seconds, results
        generator = multiprocessing.Process(target=generate, args=given)
        began = time.monotonic()
        generator.start()
        stale = []
        while results.empty():
            stale.append(metric(run["port"], "drift_staleness_seconds"))
            time.sleep(1.0)
        result = results.get()
        took = time.monotonic() - began
        cpu = {name: (cpu_seconds(pid) - before[name]) / took for name, pid in pids.items()}
        begun = metric(run["port"], "drift_serve_checkpoints_total")
        memory = resident(pids["service"])
    p50, p99, p999 = np.percentile(result["times"], [50, 99, 99.9])
    return {
        "requests": len(result["times"]),
        "p50 ms": float(p50),
        "p99 ms": float(p99),
        "p99.9 ms": float(p999),
        "sent late p99 ms": float(np.percentile(result["lateness"], 99)),
        "failed": len(result["times"]) - result["statuses"].get(200, 0),
        "stale s": max(stale),
        "learnt from": int(begun),
        "MB": memory,
        **{f"CPU {name}": share for name, share in cpu.items()},
        "load": load_average()[0],
    }


def measure_hostile(options: argparse.Namespace, address: str) -> dict[str, Any]:
    """Return a row of the table of bad requests."""
    with running(options, address) as run:
        port, pid = run["port"], run["pids"]["service"]
        asyncio.run(ask_badly(port, 2_000))
        before = resident(pid)
        statuses = asyncio.run(ask_badly(port, options.hostile))
        row = {"requests": options.hostile, "MB before": before, "MB after": resident(pid)}
        assert page_of(port, "/healthz") == "ok\n"
    return row | {str(status): statuses[status] for status in sorted(statuses)}


def main(arguments: list[str]) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks serve")
    parser.add_argument("--rate", type=float, default=500, help="requests a second")
    parser.add_argument("--examples", type=float, default=5_000, help="examples a second")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--warm", type=float, default=10, help="seconds before")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--late", action="store_true", help="labels have a topic of their own")
    parser.add_argument("--hostile", type=int, help="send so many bad requests instead")
    output_option(parser)
    options = parser.parse_args(arguments)
    address = os.environ.get("DRIFT_KAFKA")
    with contextlib.ExitStack() as stack:
        broker = None
        if address is None:
            started = Broker(stack.enter_context(tempfile.TemporaryDirectory()))
            address, broker = stack.enter_context(started).address, started.pid
        if options.hostile:
            rows = [measure_hostile(options, address)]
        else:
            rows = [measure(options, address, broker) for _ in range(options.rounds)]
    show_table("serve", rows)
    name = "serve_hostile" if options.hostile else "serve_late" if options.late else "serve"
    write_result(options.output, name, {"table": rows})
