"""A worker and a real broker that encrypts and asks for a password, which nobody else sees."""

import json
import os
import signal
import threading
import time

import pytest
from click.testing import CliRunner

from drift.cli import app
from drift.consumers import CheckpointFolder
from drift.consumers.client.topics import Reader, create
from drift.testing import produce

pytest.importorskip("kafka")
pytestmark = pytest.mark.kafka

REMEDIES = {
    "SaslAuthenticationFailedError": "sasl_plain_username and sasl_plain_password in [kafka]",
    "UnsupportedSaslMechanismError": "set sasl_mechanism in [kafka] to one that the listener has",
}
WRONG = "hunter2-correct-horse"


def consume(folder, options, *more):
    """Run ``drift consume`` with options of kafka-python in a TOML file."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    config = folder / "worker.toml"
    config.write_text("\n".join(["[kafka]", *lines]), encoding="utf-8")
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        return CliRunner().invoke(
            app,
            [
                *["consume", "t", "--group", "g", "--checkpoints", str(folder / "c")],
                *["--config", str(config), "--model", "RBP(seed=1)", "--from", "earliest", *more],
            ],
        )
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_worker_learns_over_sasl_and_ssl_and_keeps_the_password_to_itself(kafka_broker, tmp_path):
    options = kafka_broker.secure_options
    create("t", 1, options)
    rows = [b'{"features": {"a": %d}, "label": %s}' % (n, b"true") for n in range(40)]
    produce(kafka_broker.address, "t", [*rows, b"{"])
    got = []

    def stop():
        end = time.monotonic() + 60
        with Reader("t-out", options) as reader:
            while len(got) < len(rows) and time.monotonic() < end:
                reader.refresh()
                got.extend(reader.poll(0.2))
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    outputs = ["--predictions", "t-out", "--dead-letters", "t-dead"]
    shown = consume(tmp_path, options, *outputs, "--checkpoint-seconds", "0.2")
    thread.join(30)
    assert shown.exit_code == 0, shown.output
    assert len(got) == len(rows)
    assert CheckpointFolder(tmp_path / "c").newest(("t", None)).offsets == {("t", 0): 41}
    password = options["sasl_plain_password"]
    written = b"".join(p.read_bytes() for p in (tmp_path / "c").rglob("*") if p.is_file())
    assert written
    assert password.encode() not in written
    assert password not in shown.output
    with Reader("t-dead", options) as reader:
        [letter] = reader.poll(5.0)
    assert password not in repr((letter, *got))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sasl_plain_password": WRONG}, "SaslAuthenticationFailedError"),
        ({"sasl_mechanism": "SCRAM-SHA-256"}, "UnsupportedSaslMechanismError"),
        ({"ssl_cafile": None}, "CERTIFICATE_VERIFY_FAILED"),
        ({"ssl_cafile": "password"}, "[X509"),
    ],
    ids=["password", "mechanism", "certificate", "no certificate"],
)
def test_a_refused_login_is_explained_without_the_password(
    kafka_broker, tmp_path, caplog, change, reason
):
    options = {**kafka_broker.secure_options, **change, "bootstrap_timeout_ms": 1500}
    if options["ssl_cafile"] is None:
        del options["ssl_cafile"]
    elif options["ssl_cafile"] == "password":
        options["ssl_cafile"] = str(kafka_broker.folder / "password")
    shown = consume(tmp_path, {**options})
    [line] = [line for line in shown.stderr.splitlines() if line.startswith("error: ")]
    # A broker that refuses hangs up, and kafka-python may notice that before it reads why. Of its
    # log it loses lines that name a connection, where another thread closes that meanwhile.
    explained = reason in line
    assert explained or (reason not in caplog.text and "Unable to bootstrap" in line)
    assert shown.exit_code == (2 if explained else 1), shown.output
    assert options["sasl_plain_password"] not in shown.output + repr(shown.exception)
    if explained:
        assert line.endswith(REMEDIES.get(reason, "set them in [kafka]"))


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_a_wrong_protocol_is_answered_with_the_setting(kafka_broker, tmp_path, protocol):
    options = kafka_broker.secure_options | {
        "security_protocol": protocol,
        "bootstrap_timeout_ms": 1500,
    }
    shown = consume(tmp_path, options)
    [line] = [line for line in shown.stderr.splitlines() if line.startswith("error: ")]
    assert "want another security_protocol (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)" in line
    assert "sasl_mechanism" in line


def test_a_login_where_there_is_none_is_refused_with_what_to_set(kafka_broker, tmp_path):
    options = kafka_broker.secure_options | {
        "security_protocol": "SASL_PLAINTEXT",
        "bootstrap_servers": kafka_broker.address,
        "bootstrap_timeout_ms": 1500,
    }
    shown = consume(tmp_path, options)
    [line] = [line for line in shown.stderr.splitlines() if line.startswith("error: ")]
    assert "IllegalSaslStateError" not in line or shown.exit_code == 2
    assert "security_protocol" in line
