"""What compose.yaml starts, started without containers: a broker inside the process stands in."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from urllib.request import Request, urlopen

import pytest

from drift.testing import MockKafka, produce
from drift.testing._mock import API_VERSION
from tests.deploy.files import DEPLOY, load

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")
pytest.importorskip("uvicorn")

EXAMPLE = b'{"features": {"sum": %d}, "label": %s}'


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


@contextmanager
def started(service, folder, ports, broker):
    """Run what a service of the file runs, with paths, ports and the broker that there are here."""
    text = (DEPLOY / "worker.toml").read_text("utf-8")
    for there, here in {
        "/var/lib/drift": str(folder),
        "9101": ports["9101"],
        "[serve]\n": f"[serve]\nport = {ports['8000']}\n",
    }.items():
        text = text.replace(there, here)
    (folder / "worker.toml").write_text(text, encoding="utf-8")
    (default,) = re.findall(r"^CMD (.*)$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    command = [
        one.replace("/etc/drift", str(folder)).replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        for one in service.get("command", json.loads(default))
    ]
    environment = {
        name: value.replace("kafka:9092", broker.address)
        for name, value in service["environment"].items()
    }
    more = {
        "PYTHONPATH": str(DEPLOY.parent),
        "DRIFT_KAFKA_API_VERSION": ".".join(map(str, API_VERSION)),
    }
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", "from drift.cli import main; main()", *command],
            env=os.environ | environment | more,
            cwd=folder,
            stderr=log,
        )
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(60) == 0


def asked(url, body=None):
    try:
        asked = Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - our own
        with urlopen(asked, timeout=5) as answer:  # noqa: S310
            return answer.read()
    except OSError as problem:
        return str(problem).encode()


def test_what_compose_starts_learns_and_answers(tmp_path):
    services = load("compose.yaml")["services"]
    ports = {name: free_port() for name in ("8000", "9101")}
    with MockKafka() as broker, ExitStack() as stack:
        for topic in ("orders", "orders.predicted", "orders.dead"):
            broker.create_topic(topic)
        produce(broker, "orders", [EXAMPLE % (n, [b"false", b"true"][n > 5]) for n in range(12)])
        for name in ("worker-1", "serve"):
            stack.enter_context(started(services[name], tmp_path, ports, broker))
        page, end = f"http://127.0.0.1:{ports['8000']}", time.monotonic() + 60
        while (ready := asked(f"{page}/readyz")) != b"ok\n":
            assert time.monotonic() < end, (ready, (tmp_path / "log").read_text())
            time.sleep(0.1)
        answer = json.loads(asked(f"{page}/predict", b'{"features": {"sum": 11}}'))
        assert answer["predicted"] is True
        assert answer["model"]["offsets"] == {"orders": {"0": 12}}
        assert b"drift_examples_total" in asked(f"http://127.0.0.1:{ports['9101']}/metrics")
