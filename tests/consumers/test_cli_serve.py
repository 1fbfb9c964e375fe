"""`drift serve`: its settings, and the commands of its page."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from drift.cli import _settings, app
from drift.cli._log import Secrets
from drift.testing._mock import API_VERSION

pytest.importorskip("kafka")
pytest.importorskip("uvicorn")

ROOT = Path(__file__).resolve().parents[2]


def blocks(language, page="serving.md"):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_page_lead_from_an_empty_folder_to_an_answer(broker, tmp_path):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    first, second, _ = (code.replace(":8000", f":{port}") for code in blocks("sh"))
    for name, code in (("drift", "from drift.cli import main; main()"), ("python", "")):
        (tmp_path / name).write_text(
            f'#!/bin/sh\nexec {sys.executable} {f"-c {code!r}" if code else ""} "$@"\n'
        )
        (tmp_path / name).chmod(0o700)
    (tmp_path / "empty").mkdir()
    broker.create_topic("scores")  # as a broker makes it that may
    version = ".".join(map(str, API_VERSION))
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "BROKER": broker.address,
        "DRIFT_KAFKA_API_VERSION": version,
    }
    producer = first.replace("-t scores", f"-t scores -C api_version={version}")
    script = producer.replace("drift serve scores", f"drift serve scores --port {port}")
    command = ["bash", "-c", f"{script}\necho\n{second}\necho\n"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=tmp_path / "empty",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    timer = threading.Timer(60, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    try:
        output = [process.stdout.readline() for _ in range(3)]
    finally:
        timer.cancel()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        process.stdout.close()
    assert output[0] == "ok\n", (tmp_path / "log").read_text()
    answers = [shape(json.loads(one)) for one in output[1:]]
    printed = [shape(json.loads(one)) for one in blocks("json")]
    assert answers == printed
    # With reasons a prediction has two more fields; their page leaves out what names the model.
    [explained], reasons = blocks("json", "explain.md"), {"threshold", "explanation"}
    assert json.loads(explained).keys() == (answers[0].keys() - {"model"}) | reasons


def shape(value):
    """An answer with its numbers left out."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in sorted(value.items())}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return 0.0 if isinstance(value, float) else value


def test_the_tables_of_the_pages_are_of_the_file(tmp_path):
    [table], [reasons] = blocks("toml"), blocks("toml", "explain.md")
    worker = 'topic = "t"\ngroup = "g"\ncheckpoints = "c"\n[kafka]\nbootstrap_servers="b"\n'
    reasons = reasons.replace("[worker]\n", f"[worker]\n{worker[: worker.index('[')]}")
    file = tmp_path / "worker.toml"
    worker = worker.replace("[kafka]", 'predictions = "out"\nfrom = "latest"\n[kafka]')  # unused
    file.write_text(f"{table}\n{reasons}\n{worker[worker.index('[') :]}", encoding="utf-8")
    read = _settings.read(file, {}, {}, {}, "b:1", Secrets(), _settings.ServeOptions)
    options = read.worker
    assert (options.host, options.port, options.max_staleness) == ("0.0.0.0", 8000, 300.0)  # noqa: S104
    assert (options.max_examples, options.max_features, options.timeout) == (100, 10_000, 5.0)
    assert options.topic == "t"
    # And a worker reads the same file.
    options = _settings.read(file, {}, {}, {}, "b:1", Secrets()).worker
    assert (options.group, options.positive) == ("g", "fraud")
    assert (options.cost, options.explain) == ([1, 50], 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--port", "0"], "--port must be from 1 to 65535, not 0"),
        (["--max-staleness", "soon"], "--max-staleness takes a number of seconds"),
        ([], "give the topic, --group and --checkpoints"),
        (
            ["t", "--predictions", "t.out", "--keep", "3", "--from", "latest"],
            "serve has no use for --from, --predictions, --keep: leave it out",
        ),
    ],
)
def test_what_cannot_be_is_refused(given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(app, ["serve", *given])
    assert (shown.exit_code, message in shown.stderr) == (2, True), shown.output


def test_without_its_extra_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in ("drift.consumers.service", "drift.consumers.web_server"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.delattr(name, raising=False)
    given = ["serve", "t", "--group", "g", "--checkpoints", "c", "--bootstrap", "b"]
    shown = CliRunner().invoke(app, given)
    assert shown.exit_code == 2
    assert 'starlette or uvicorn is not installed: pip install ".[serve]"' in shown.stderr
