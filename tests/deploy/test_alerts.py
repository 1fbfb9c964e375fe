"""Each panel and each alert, evaluated by Prometheus over workers in trouble, 120 times as fast.

The broker has compose.yaml's settings, the workers have worker.toml, Prometheus has prometheus.yml.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

pytest.importorskip("kafka")

from kafka import KafkaAdminClient, KafkaProducer  # after the check that there is a client

from tests.deploy.files import DEPLOY, load, queries
from tools.kafka import broker as tool

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("prometheus") is None, reason="apt-get install prometheus has what it takes"
    ),
    pytest.mark.skipif(
        not tool.fetched(), reason="python tools/kafka/broker.py fetch gets a broker"
    ),
]

#: How much faster time goes for Prometheus; seconds that anything may take here.
FASTER, PATIENCE = 120, 60
EXAMPLE = b'{"features": {"a": 1, "b": %d}, "label": %s, "id": %d}'
#: For a worker whose labels come later, on a separate topic.
LATE = {
    "group": "late",
    "labels": "clicks.labels",
    "timestamps": "create",
    "grace": "1s",
    "max-idle": "8s",
    "pending": 500,
}


def hastened(text):
    """Return settings, rules or a query with each duration as much shorter."""

    def shorter(match):
        seconds = int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]
        return f"{1000 * seconds // FASTER}ms"

    return re.sub(r"\b(\d+)([smhd])\b", shorter, text.replace("5 * 60", f"{300 / FASTER}"))


class Broker(tool.Broker):
    """The broker of compose.yaml, on ports that are free here, which forgets a worker quickly."""

    def _configuration(self, data):
        environment = load("compose.yaml")["services"]["kafka"]["environment"]
        settings = {
            name.removeprefix("KAFKA_").lower().replace("_", "."): value
            for name, value in environment.items()
        }
        settings |= {
            "log.dirs": data,
            "group.min.session.timeout.ms": 1000,
            "broker.session.timeout.ms": 2000,
            "broker.heartbeat.interval.ms": 300,
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        text = text.replace("//kafka:", "//127.0.0.1:").replace("localhost:", "127.0.0.1:")
        for before, port in zip((9092, 9093, 9094), tool.free_ports(3), strict=True):
            text = text.replace(f":{before}", f":{port}")
        return text


class Prometheus:
    """Prometheus with the rules and settings of `deploy`, asked over HTTP."""

    def __init__(self, folder, *targets):
        settings = (DEPLOY / "prometheus.yml").read_text("utf-8")
        addresses = ([f"127.0.0.1:{port}" for port in ports] for ports in targets)
        settings = re.sub(r"targets: .*", lambda _: f"targets: {next(addresses)}", settings)
        (folder / "prometheus.yml").write_text(hastened(settings), encoding="utf-8")
        rules = (DEPLOY / "alerts.yml").read_text("utf-8")
        (folder / "alerts.yml").write_text(hastened(rules), encoding="utf-8")
        (port,) = tool.free_ports(1)
        self.address = f"127.0.0.1:{port}"
        options = {
            "config.file": folder / "prometheus.yml",
            "storage.tsdb.path": folder / "data",
            "web.listen-address": self.address,
        }
        command = ["prometheus", *(f"--{name}={value}" for name, value in options.items())]
        self.process = started(command, folder / "prometheus.log")

    def ask(self, what, **parameters):
        address = f"http://{self.address}/api/v1/{what}?{urlencode(parameters)}"
        with urlopen(address, timeout=10) as answer:
            return json.load(answer)["data"]

    def answers(self):
        try:
            return self.ask("rules")["groups"]
        except OSError:
            return False

    def firing(self):
        return {
            alert["labels"]["alertname"]
            for alert in self.ask("alerts")["alerts"]
            if alert["state"] == "firing"
        }

    def values(self, query):
        result = self.ask("query", query=hastened(query))["result"]
        return [float(series["value"][1]) for series in result]


class Workers:
    """Two workers with the settings of `deploy`, one of late labels, one of models of keys.

    And predictions over HTTP, of the model of the first two.
    """

    def __init__(self, folder, address):
        self.slow, self.checkpoints = folder / "slow", folder / "checkpoints"
        self.stalled = folder / "stalled"
        codec = f'[codec]\nclass = "tests.deploy.slow:SlowCodec"\nfile = "{self.slow}"\n'
        self.config = folder / "worker.toml"
        text = (DEPLOY / "worker.toml").read_text("utf-8")
        shadow = '[models.shadow]\nclass = "LBP"\nbudget = 20\n'
        self.config.write_text(text + codec + shadow, encoding="utf-8")
        keyed = folder / "keyed.toml"  # keys have no shadow
        keyed.write_text(text, encoding="utf-8")
        self.address, self.folder = address, folder
        self.ports = tool.free_ports(5)
        self.processes = [
            self.start(0),
            self.start(1),
            self.start(2, "clicks", **LATE),
            self.start(3, "payments", config=keyed, group="keyed", keyed="id"),
            self.start(4, command="serve", port=self.ports[4]),
        ]

    def start(self, number, topic="orders", command="consume", **others):
        kafka = {
            "BOOTSTRAP_SERVERS": self.address,
            "GROUP_INSTANCE_ID": f"worker-{number}",
            "SESSION_TIMEOUT_MS": 2000,
            "HEARTBEAT_INTERVAL_MS": 400,
            "MAX_POLL_INTERVAL_MS": 3000,
            "RECONNECT_BACKOFF_MAX_MS": 300,
        }
        options = {
            "config": self.config,
            "model": "RBP",
            "budget": 20,
            "checkpoints": self.checkpoints / topic,
            **others,
        }
        if command == "consume":
            options["checkpoint-seconds"] = 0.3
            options |= {"metrics-port": self.ports[number], "metrics-address": "127.0.0.1"}
        environment = {f"DRIFT_KAFKA_{name}": str(value) for name, value in kafka.items()}
        code = f"from tests.deploy.slow import stalling; stalling({str(self.stalled)!r})"
        return started(
            [sys.executable, "-c", code, command, topic]
            + [text for name, value in options.items() for text in (f"--{name}", str(value))],
            self.folder / f"worker-{number}.log",
            {**os.environ, **environment, "PYTHONPATH": str(Path(__file__).parents[2])},
        )


def started(command, log, environment=None):
    with log.open("a", encoding="utf-8") as output:
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=output)


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.1)


class Alerts:
    """Which alerts fire, and which have."""

    def __init__(self, prometheus):
        self.prometheus = prometheus
        self.seen = []

    def fire(self, *names):
        for name in names:
            until(
                lambda name=name: name in self.prometheus.firing(),
                lambda name=name: f"{name} does not fire, {self.prometheus.firing()} do",
            )
            self.seen.append(name)

    def resolve(self):
        until(
            lambda: not self.prometheus.firing(), lambda: f"{self.prometheus.firing()} still fire"
        )


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "broker") as broker:
        yield broker


@pytest.fixture
def workers(broker, tmp_path):
    create_topics(broker, {"orders.predicted": 4, "orders.dead": 1})
    workers = Workers(tmp_path, broker.address)
    yield workers
    for process in workers.processes:
        process.kill()
        process.wait(30)


@pytest.fixture
def prometheus(workers, tmp_path):
    *learning, serving = workers.ports
    prometheus = Prometheus(tmp_path, learning, [serving])
    yield prometheus
    prometheus.process.kill()
    prometheus.process.wait(30)


@pytest.fixture
def send(broker):
    producer = KafkaProducer(bootstrap_servers=broker.address)

    def send(count, *poison, turned=0):
        labels = [[b"true", b"false"][(n % 7 < 4) ^ turned] for n in range(count)]
        examples = [EXAMPLE % (n % 7, label, n) for n, label in enumerate(labels)]
        for value in (*poison, *examples):
            producer.send("orders", value)
        for value in examples[:50]:
            for topic in ("clicks", "clicks.labels", "payments"):
                producer.send(topic, value)
        producer.flush()

    def to(topic, value):
        producer.send(topic, value)
        producer.flush()

    send.to = to
    yield send
    producer.close()


def create_topics(broker, partitions):
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    admin.create_topics(
        {name: {"num_partitions": n, "replication_factor": 1} for name, n in partitions.items()},
        wait_for_metadata=True,
    )
    admin.close()


def turn_labels_around(alerts, prometheus, send):
    """Send labels that turn around again and again, which no model foresees."""
    send(4000)
    numbers = itertools.count()

    def is_noticed():
        send(100, turned=next(numbers) % 2)
        return "DriftAlarm" in prometheus.firing()

    until(is_noticed, lambda: prometheus.values("drift_windowed_error"))
    alerts.fire("DriftAlarm")
    alerts.resolve()


def send_too_many(alerts, send):
    """Send more features than may wait for their label."""
    for number in range(600):
        send.to("clicks", b'{"id": "alone-%d", "features": {"a": 1}}' % number)
    alerts.fire("DriftEvicted")
    alerts.resolve()


def kill_two(alerts, workers):
    """Kill a worker and what serves, and start them again."""
    for number in (0, 4):
        workers.processes[number].kill()
    alerts.fire("DriftWorkerDown", "DriftWorkerGone", "DriftServeDown", "DriftNobodyServes")
    workers.processes += [
        workers.start(0),
        workers.start(4, command="serve", port=workers.ports[4]),
    ]
    alerts.resolve()


def end_all(alerts, workers):
    """Leave Prometheus nothing to ask."""
    for process in workers.processes:
        process.kill()
    alerts.fire("DriftNoMetrics")


def hold_back(alerts, workers, send):
    """Have a worker wait for labels that the broker does not send."""
    workers.stalled.touch()
    send.to("clicks", b'{"id": "held", "features": {"a": 1}}')
    alerts.fire("DriftStalls", "DriftOutOfOrder")
    workers.stalled.unlink()
    alerts.resolve()


def test_each_alert_fires_under_its_fault_and_resolves_and_each_panel_has_values(
    broker, workers, prometheus, send
):
    alerts = Alerts(prometheus)
    until(prometheus.answers, lambda: "Prometheus does not answer")
    alerts.fire("DriftNobodyLearns")  # as there is no topic
    create_topics(broker, {"orders": 4, "clicks": 1, "clicks.labels": 1, "payments": 1})
    alerts.resolve()

    def every_panel_has_values():
        send(40)
        actual = [prometheus.values(query) for _, query in queries()]
        return all(values and all(v == v for v in values) for values in actual)

    until(
        every_panel_has_values,
        lambda: {title: prometheus.values(query) for title, query in queries()},
    )
    alerts.resolve()  # A worker that is busy may have missed scrapes, which come every 125 ms here.
    for query, value in (("sum(drift_ready)", 3), ("sum(drift_partitions)", 6)):
        until(lambda q=query, v=value: prometheus.values(q) == [v], lambda q=query: q)

    # Labels without features, which are given up as later features come.
    numbers = itertools.count()

    def labels_find_nothing():
        number = next(numbers)
        send.to("clicks.labels", b'{"id": "none-%d", "label": true}' % number)
        send.to("clicks", b'{"id": "later-%d", "features": {"a": 1}}' % number)
        return "DriftOrphans" in prometheus.firing()

    until(labels_find_nothing, lambda: prometheus.values("drift_orphans_total"))
    alerts.fire("DriftOrphans")
    alerts.resolve()

    send_too_many(alerts, send)
    hold_back(alerts, workers, send)

    # Poison, and more messages than slow workers can learn.
    workers.slow.write_text("0.3", encoding="utf-8")
    send(6000, b"{", b"[]")
    alerts.fire("DriftDeadLetters", "DriftFallsBehind")
    workers.slow.unlink()
    alerts.resolve()

    turn_labels_around(alerts, prometheus, send)

    # A file where the folder of checkpoints was.
    aside = workers.checkpoints.with_name("aside")
    workers.checkpoints.rename(aside)
    workers.checkpoints.touch()
    send(400)
    alerts.fire("DriftCheckpointsFail")
    workers.checkpoints.unlink()
    aside.rename(workers.checkpoints)
    alerts.resolve()

    # A message that takes longer than a worker may be silent.
    workers.slow.write_text("5", encoding="utf-8")
    send(4)
    alerts.fire("DriftNotPolling")
    workers.slow.unlink()
    alerts.resolve()

    kill_two(alerts, workers)
    # One that is starting ends without a broker, and one that is ready goes on.
    for query, value in (("sum(drift_ready)", 3), ("sum(drift_serve_ready)", 1)):
        until(lambda q=query, v=value: prometheus.values(q) == [v], lambda q=query: q)

    broker.stop(kill=True)
    alerts.fire("DriftBrokerAway", "DriftServeStale")
    broker.start()
    alerts.resolve()

    end_all(alerts, workers)

    rules = load("alerts.yml")["groups"][0]["rules"]
    assert sorted(alerts.seen) == sorted(rule["alert"] for rule in rules)
