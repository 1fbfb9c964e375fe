"""What an operator deploys: valid by its schemas, and true of the worker."""

import json
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

from drift.cli import _settings, app
from drift.cli._log import Secrets
from drift.consumers.exporter import Exporter
from drift.consumers.metrics import Metrics, WorkerMetrics
from tests.deploy.files import DEPLOY, load, metrics_in, queries

WORKER = tomllib.loads((DEPLOY / "worker.toml").read_text("utf-8"))["worker"]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def needs(program, package):
    return pytest.mark.skipif(
        shutil.which(program) is None, reason=f"{program} is not installed: {package}"
    )


promtool = needs("promtool", "apt-get install prometheus")


def exported():
    pytest.importorskip("prometheus_client")
    worker = WorkerMetrics()
    worker.models = [Metrics("orders")]
    with Exporter(worker) as exporter:
        families = list(exporter.registry.collect())
    return {family.name + "_total" * (family.type == "counter") for family in families}


# --- by their schemas ----------------------------------------------------------------------------


def test_the_compose_file_is_one():
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    schema = "--builtin-schema=vendor.compose-spec"
    assert "ok" in run(sys.executable, "-m", "check_jsonschema", schema, DEPLOY / "compose.yaml")


@pytest.mark.parametrize("path", sorted(DEPLOY.parent.glob(".github/workflows/*.yml")), ids=str)
def test_a_workflow_is_one(path):
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    schema = "--builtin-schema=vendor.github-workflows"
    assert "ok" in run(sys.executable, "-m", "check_jsonschema", schema, path)


def test_the_kubernetes_objects_are_some():
    pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    command = [sys.executable, "-m", "kubernetes_validate", "--strict"]
    run(*command, DEPLOY / "kubernetes.yaml")
    run(*command, DEPLOY / "command.yaml")
    objects = load("kubernetes.yaml")
    workers = ["StatefulSet", "Service", "PodDisruptionBudget"]
    serving = ["Deployment", "Service"]
    assert [one["kind"] for one in objects] == [*workers, *serving, "PersistentVolumeClaim"]


UNITS = ["drift@.service", "drift-serve.service"]


@pytest.mark.parametrize("name", UNITS)
@needs("systemd-analyze", "apt-get install systemd")
def test_systemd_knows_every_setting(tmp_path, name):
    unit = (DEPLOY / name).read_text("utf-8")
    file = tmp_path / name
    file.write_text(unit.replace("/opt/drift/bin/drift", sys.executable), encoding="utf-8")
    # It warns, and ends with 0, about what it does not know.
    output = run("systemd-analyze", "verify", file).splitlines()
    assert [line for line in output if name.partition(".")[0] in line] == []


@promtool
def test_prometheus_takes_its_settings_and_alerts():
    assert f"{len(load('alerts.yml')['groups'][0]['rules'])} rules" in run(
        "promtool", "check", "config", DEPLOY / "prometheus.yml"
    )


def test_no_alert_goes_by_the_name_of_a_job():
    rules = load("alerts.yml")["groups"][0]["rules"]
    assert not [rule["alert"] for rule in rules if "job=" in rule["expr"]]


@promtool
def test_alerts_fire_where_they_should_and_nowhere_else(tmp_path):
    tests = (DEPLOY.parent / "tests/deploy/alerts.yml").read_text("utf-8")
    file = tmp_path / "alerts.yml"
    file.write_text(tests.replace("RULES", str(DEPLOY / "alerts.yml")), encoding="utf-8")
    run("promtool", "test", "rules", file)


# --- by what they speak of -----------------------------------------------------------------------


def test_alerts_and_panels_ask_for_what_workers_export():
    rules = load("alerts.yml")["groups"][0]["rules"]
    asked = metrics_in(" ".join(rule["expr"] for rule in rules))
    shown = metrics_in(" ".join(query for _, query in queries()))
    served = metrics_in((DEPLOY.parent / "docs/metrics.md").read_text("utf-8"))
    assert asked <= exported() | served
    assert shown == exported()


def test_dashboard_and_settings_find_each_other():
    compose, provider = load("compose.yaml"), load("grafana/provider.yaml")
    mounts = dict(volume.split(":")[:2] for volume in compose["services"]["grafana"]["volumes"])
    folder = provider["providers"][0]["options"]["path"]
    assert mounts["./grafana/dashboard.json"].startswith(f"{folder}/")
    (target,), (serving,) = (
        job["static_configs"] for job in load("prometheus.yml")["scrape_configs"]
    )
    assert serving["targets"] == ["serve:8000"]
    workers = [name for name in compose["services"] if name.startswith("worker-")]
    assert target["targets"] == [f"{name}:{WORKER['metrics_port']}" for name in workers]
    assert load("grafana/datasource.yaml")["datasources"][0]["url"] == "http://prometheus:9090"


def test_the_operators_prometheus_finds_each_pod_by_one_port():
    spec = load("podmonitor.yaml")["spec"]
    [chosen] = spec["selector"]["matchExpressions"]
    asked = {one["port"] for one in spec["podMetricsEndpoints"]}
    pods = [one["spec"]["template"] for one in load("kubernetes.yaml") if "template" in one["spec"]]
    assert [pod["metadata"]["labels"]["app"] for pod in pods] == chosen["values"]
    for pod in pods:
        [port] = pod["spec"]["containers"][0]["ports"]
        assert port["name"] in asked
        notes = pod["metadata"]["annotations"]
        assert notes["prometheus.io/port"] == str(port["containerPort"])


def test_what_the_page_makes_of_the_alerts_has_all_of_them(tmp_path):
    yaml = pytest.importorskip("yaml")
    page = (DEPLOY.parent / "docs/monitoring.md").read_text("utf-8")
    _, script, chart = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "deploy").symlink_to(DEPLOY)
    shown = "{ echo ---; cat ${@: -1}; }"
    made = run(
        *("bash", "-euc", f"cd {tmp_path}\nkubectl() {shown}\nhelm() {shown}\n{script}\n{chart}")
    )
    monitor, rule, values = yaml.safe_load_all(made)
    assert monitor == load("podmonitor.yaml")
    assert (rule["apiVersion"], rule["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert rule["metadata"]["labels"] == monitor["metadata"]["labels"]
    alerts = json.dumps(load("alerts.yml"))
    assert rule["spec"] == json.loads(
        alerts.replace("https://example.org/drift/docs", "https://docs.example.com/drift")
    )
    assert values == {"serverFiles": {"alerting_rules.yml": rule["spec"]}}


def test_everything_that_is_mounted_is_there():
    for service in load("compose.yaml")["services"].values():
        for volume in service.get("volumes", ()):
            source, target, *_ = volume.split(":")
            assert source in load("compose.yaml")["volumes"] or (DEPLOY / source).is_file()
            assert target.startswith("/")
    (made,) = load("kustomization.yaml")["configMapGenerator"]
    assert all((DEPLOY / name).is_file() for name in made["files"])
    (claim,) = [one for one in load("kubernetes.yaml") if one["kind"] == "PersistentVolumeClaim"]
    for kind in ("StatefulSet", "Deployment"):
        volumes = pod(kind)["volumes"]
        assert {"name": "settings", "configMap": {"name": made["name"]}} in volumes
        shared = {"claimName": claim["metadata"]["name"]}
        assert {"name": "checkpoints", "persistentVolumeClaim": shared} in volumes


def pod(kind):
    """What a pod of the first object of a kind is."""
    objects = (one for one in load("kubernetes.yaml") if one["kind"] == kind)
    return next(objects)["spec"]["template"]["spec"]


def test_one_line_of_the_kustomization_names_another_image():
    yaml = pytest.importorskip("yaml")
    assert "images" not in load("kustomization.yaml")  # a local image runs as it is
    text = (DEPLOY / "kustomization.yaml").read_text("utf-8")
    (image,) = yaml.safe_load(text.replace("# images:", "images:"))["images"]
    assert image["name"] == "drift"


def test_commands_run_as_the_workers_do():
    worker, command = pod("StatefulSet"), load("command.yaml")["spec"]["template"]["spec"]
    images = [one["containers"][0]["image"] for one in (worker, command, pod("Deployment"))]
    assert images == ["drift"] * 3
    assert command["securityContext"] == worker["securityContext"]
    assert command["volumes"] == worker["volumes"]
    (its,), (theirs,) = command["containers"], worker["containers"]
    for name in ("image", "envFrom", "securityContext", "volumeMounts"):
        assert its[name] == theirs[name]
    assert its["env"][0] == theirs["env"][0]


def test_the_server_gets_only_its_options():
    pytest.importorskip("kafka")
    (container,) = pod("Deployment")["containers"]
    service = load("compose.yaml")["services"]["serve"]
    assert service["command"] == container["args"]
    arguments = app.get_command(None, container["args"][0]).make_context(
        "serve", service["command"][1:]
    )
    assert arguments.params["config"] == "/etc/drift/worker.toml"
    environments = [service["environment"], {one["name"]: one["value"] for one in container["env"]}]
    for environment in environments:
        read = _settings.read(
            DEPLOY / "worker.toml", environment, {}, {}, None, Secrets(), _settings.ServeOptions
        )
        assert read.kafka["bootstrap_servers"] == "kafka:9092"
        assert (read.worker.host, read.worker.max_staleness) == ("127.0.0.1", 300)
        # In a container others are to reach it.
        assert arguments.params["host"] == "0.0.0.0"  # noqa: S104
        assert service["ports"] == [f"127.0.0.1:{read.worker.port}:{read.worker.port}"]
        assert container["ports"] == [{"name": "http", "containerPort": read.worker.port}]
    # It writes nothing.
    assert "checkpoints:/var/lib/drift:ro" in service["volumes"]
    (mount,) = [one for one in container["volumeMounts"] if one["name"] == "checkpoints"]
    assert mount["readOnly"]
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "http"}
    assert ":8000/healthz" in service["healthcheck"]["test"][-1]


def test_the_units_differ_only_in_what_they_run():
    own = ("#", "Description=", "Environment=", "ExecStart=", "State", "TimeoutStop", "Working")
    worker, serving = (
        [
            line
            for line in (DEPLOY / name).read_text("utf-8").splitlines()
            if not line.startswith(own)
        ]
        for name in UNITS
    )
    assert worker == serving
    unit = (DEPLOY / UNITS[1]).read_text("utf-8")
    [command] = re.findall(r"^ExecStart=\S+ (.*)$", unit, re.MULTILINE)
    pytest.importorskip("kafka")
    name, *options = command.split()
    arguments = app.get_command(None, name).make_context(name, options)
    assert arguments.params["config"] == "/etc/drift/worker.toml"
    # An option would go before what worker.toml says.
    assert arguments.params["host"] is None


def worker_environments():
    compose = load("compose.yaml")["services"]
    (container,) = load("kubernetes.yaml")[0]["spec"]["template"]["spec"]["containers"]
    yield from (compose[name]["environment"] for name in ("worker-1", "worker-2"))
    yield {one["name"]: one.get("value", "drift-0") for one in container["env"]}


def test_workers_get_only_their_options():
    pytest.importorskip("kafka")
    for environment in worker_environments():
        read = _settings.read(DEPLOY / "worker.toml", environment, {}, {}, None, Secrets())
        assert read.kafka["bootstrap_servers"] == "kafka:9092"
        assert read.consumer["group_instance_id"]
        assert read.worker.checkpoints.startswith("/var/lib/drift/")


def test_no_two_workers_share_a_name():
    names = [one["DRIFT_KAFKA_GROUP_INSTANCE_ID"] for one in worker_environments()]
    assert len(set(names)) == len(names)


def test_the_topics_that_workers_need_are_made(tmp_path):
    *shell, script = load("compose.yaml")["services"]["topics"]["command"]
    output = tmp_path / "kafka-topics.sh"
    output.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    output.chmod(0o700)
    script = script.replace("$$", "$").replace("/opt/kafka/bin/kafka-topics.sh", str(output))
    asked = (
        r"--bootstrap-server kafka:9092 --create --if-not-exists --topic (\S+) --partitions (\d)\n"
    )
    made = dict(re.findall(asked, run(*shell, script)))
    assert made.keys() == {WORKER[name] for name in ("topic", "predictions", "dead_letters")}
    # Predictions go to the partition of their number.
    assert made[WORKER["predictions"]] == made[WORKER["topic"]]


def test_the_probes_are_those_of_the_page():
    (container,) = load("kubernetes.yaml")[0]["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "metrics", "containerPort": WORKER["metrics_port"]}]
    for probe in ("livenessProbe", "readinessProbe"):
        # Of /readyz a worker that stands by says no, and a rollout would wait for it for ever.
        assert container[probe]["httpGet"] == {"path": "/livez", "port": "metrics"}


def test_the_image_is_that_of_one_user_everywhere():
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    (user,) = re.findall(r"^USER (\d+)$", text, re.MULTILINE)
    assert f"--uid {user} " in text
    security = load("kubernetes.yaml")[0]["spec"]["template"]["spec"]["securityContext"]
    assert (str(security["runAsUser"]), str(security["fsGroup"])) == (user, user)
