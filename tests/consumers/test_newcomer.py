"""A newcomer's first minutes on a real broker: the page's commands as they are printed."""

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

from drift.cli._settings import PREFIX

kafka = pytest.importorskip("kafka")

pytestmark = [pytest.mark.kafka, pytest.mark.sources]

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
#: What starts the clone's broker; the test has one.
START = "export BROKER=$(python tools/kafka/broker.py start)"


def section(heading, topic, name):
    """The text of a section of the page, about another topic, so that no two tests meet."""
    text = PAGE.read_text("utf-8")
    [found] = re.findall(rf"^## {heading}\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)
    return found.replace(topic, name)


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def newcomer(kafka_address, tmp_path, monkeypatch):
    """Starts commands in an empty folder; they are gone after the test."""
    for name in os.environ:
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.setenv("BROKER", kafka_address)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    started = []

    def start(commands):
        process = subprocess.Popen(
            ["/bin/bash", "-e", "-c", commands.replace(START, ":")],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def name(kafka_address):
    """A topic of its own, with those of predictions and dead letters, gone after the test."""
    made = f"drift-test-{uuid.uuid4().hex}"
    names = [made, f"{made}.predicted", f"{made}.dead"]
    admin = kafka.KafkaAdminClient(bootstrap_servers=kafka_address)
    for one in names:
        admin.create_topics({one: {"num_partitions": 1, "replication_factor": 1}})
    yield made
    admin.delete_topics(names)
    admin.close()


def done(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@contextmanager
def predictions(newcomer, worker, reader, count):
    """The first predictions that a second terminal shows, while the worker runs."""
    shown = newcomer(reader).stdout
    yield [json.loads(shown.readline()) for _ in range(count)]
    os.killpg(worker.pid, signal.SIGTERM)
    _, err = worker.communicate(timeout=120)
    assert "INFO drift.consumers: stopped" in err


def rounded(prediction):
    chances = prediction["probabilities"]
    return {**prediction, "probabilities": {k: round(v, 2) for k, v in chances.items()}}


def test_the_first_run(newcomer, name):
    text = section("First run", "orders", name)
    commands, reader = blocks(text, "sh")
    assert START in commands
    [expected] = blocks(text, "json")
    worker = newcomer(commands)
    with predictions(newcomer, worker, reader, 2) as found:
        shown = re.split(r"\n(?=\{)", expected)
        assert [*map(rounded, found)] == [*map(json.loads, shown)]


def test_messages_of_another_shape(newcomer, name, kafka_address, tmp_path):
    text = section("Your own messages", "shop", name)
    send, ask, configure, learn = blocks(text, "sh")
    (proposal, features), [expected] = blocks(text, "text"), blocks(text, "json")
    assert done(newcomer(send))[0] == 0
    code, out, err = done(newcomer(ask))
    assert (code, out.endswith(proposal)) == (2, True), out + err
    assert proposal.partition("[codec]")[2] in configure
    code, out, err = done(newcomer(configure))
    assert code == 0, err
    assert out.endswith(features.partition("\n")[2])  # the first line has a time
    # All of that has left nothing behind.
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.jsonl", "worker.toml"}
    admin = kafka.KafkaAdminClient(bootstrap_servers=kafka_address)
    assert name not in str(admin.list_groups())
    admin.close()
    worker = newcomer(learn)
    [reader] = re.findall(r"`(python -m kafka\.consumer [^`]*)`", text)
    with predictions(newcomer, worker, reader, 4) as found:
        assert rounded(found[3]) == json.loads(expected)
