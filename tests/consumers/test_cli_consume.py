"""The commands that talk to Kafka: what they are told, what they refuse, what they never show."""

import json
import os
import re
import signal
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from drift import cli_kafka, cli_model, cli_settings
from drift.cli import app
from drift.consumers import CheckpointFolder
from drift.errors import ParameterError
from drift.models import RBP
from drift.testing import consume, produce

pytest.importorskip("kafka")

from kafka.errors import InvalidSessionTimeoutError

from drift.consumers import topics as client  # after the check that there is one

SECRET = "hunter2-correct-horse"  # noqa: S105
GIVEN = {"topic": "t", "group": "g", "checkpoints": "c"}


@pytest.fixture
def settings(tmp_path):
    """Read settings from the text of a TOML file; return them with the secrets found."""

    def read(toml="", environ=(), worker=GIVEN, model=(), bootstrap="h:1"):
        path = tmp_path / "worker.toml"
        path.write_text(toml, encoding="utf-8")
        secrets = cli_settings.Secrets()
        found = cli_settings.read(
            path, dict(environ), worker, {"class": "RBP", **dict(model)}, bootstrap, secrets
        )
        return found, secrets

    return read


@pytest.fixture
def drift(monkeypatch, tmp_path):
    """Run the command line in an empty folder, with no settings in the environment."""
    for name in os.environ:
        if name.startswith(cli_settings.PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))
    for number, handler in before.items():
        signal.signal(number, handler)


# --- settings ----------------------------------------------------------------------------------


def test_options_come_before_the_environment_and_that_before_the_file(settings):
    toml = """
        [model]
        class = "LBP"
        budget = 9
        kernel = {class = "Polynomial", degree = 2}
        [worker]
        group = "of the file"
        single = true
        [kafka]
        bootstrap_servers = ["f:1"]
        security_protocol = "SSL"
        client_id = "f"
        [consumer]
        session_timeout_ms = 7000
        [producer]
        compression_type = "lz4"
    """
    environ = {
        "DRIFT_KAFKA_CLIENT_ID": "e",
        "DRIFT_KAFKA_SESSION_TIMEOUT_MS": "8000",
        "DRIFT_KAFKA_LINGER_MS": "5",
    }
    found, _ = settings(toml, environ, model={"class": None, "budget": 5})
    assert found.model == {
        "class": "LBP",
        "budget": 5,
        "kernel": {"class": "Polynomial", "degree": 2},
    }
    assert found.worker == {**GIVEN, "single": True}
    assert found.kafka == {"bootstrap_servers": "h:1", "security_protocol": "SSL", "client_id": "e"}
    assert found.consumer == {"session_timeout_ms": 8000}
    assert found.producer == {"compression_type": "lz4", "linger_ms": 5}


def test_the_test_brokers_variable_is_no_option(settings):
    found, _ = settings(environ={"DRIFT_KAFKA": "x:1", "DRIFT_KAFKA_API_VERSION": "2.3"})
    assert found.kafka == {"bootstrap_servers": "h:1", "api_version": (2, 3)}


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[worke]", "no 'worke': did you mean 'worker'?"),
        ("worker = 1", "worker must be a table"),
        ("[worker]\nsingel = true", "[worker] has no 'singel': did you mean 'single'?"),
        ("[worker]\nsingle = 'yes'", "single must be bool, not str"),
        ("[codec]\nlabel = ['a']", "[codec] has no 'label': did you mean 'labels'?"),
        ("[codec]\nlabels = 'spam'", "[codec] labels must be list, not str"),
        ("[codec]\nlabels = []", "labels must be a list of labels"),
        ("[codec]\nlabels = ['a', 0.5]", "[codec] labels: 0.5 is no label"),
        ("[codec]\nrequire_label = 1", "[codec] require_label must be bool, not int"),
        ("[codec]\nmax_bytes = 0", "max_bytes must be at least 1, not 0"),
        ("[model]\nbudgt = 4", "RBP has no parameter 'budgt': did you mean 'budget'?"),
        ("[model]\nbudget = 0", "budget must be an integer of at least 1, not 0"),
        ("[model]\nkernel = {class = 'Polynomal'}", "no model or kernel 'Polynomal': did you mean"),
        ("[kafka]\nsasl_plain_pasword = 'x'", "did you mean 'sasl_plain_password'?"),
        ("[consumer]\ngroup_id = 'x'", "group_id is the worker's own"),
        ("[consumer]\nenable_auto_commit = true", "enable_auto_commit is the worker's own"),
        ("[producer]\nlingerms = 1", "did you mean 'linger_ms'?"),
        ("[producer]\nacks = 1", "[producer] acks is the worker's own: leave it out"),
        ("[kafka", "is no TOML"),
    ],
)
def test_what_there_is_not_is_refused_with_the_nearest_name(settings, toml, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        settings(toml.replace("[model]", "[model]\nclass = 'RBP'"), model={"class": None})


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("security_protocol = 'ssl'", "is none of Kafka's: did you mean 'SSL'?"),
        ("security_protocol = 'SASL_PLAINTXT'", "did you mean 'SASL_PLAINTEXT'?"),
        ("session_timeout_ms = 'abc'", "must be a whole number, not str"),
        ("session_timeout_ms = true", "must be a whole number, not bool"),
        ("check_crcs = 1", "must be true or false, not int"),
        ("client_id = 3", "must be a string, not int"),
        ("api_version = 2", "must be numbers, as [2, 3] in a file"),
        ("receive_buffer_bytes = 'few'", "must be a whole number, not str"),
        ("max_poll_records = 0", "must be at least 1"),
        ("request_timeout_ms = 0", "must be at least 1"),
        ("fetch_max_wait_ms = -1", "must be at least 0"),
        ("ssl_cafile = '/nonexistent.pem'", "/nonexistent.pem: No such file or directory"),
        ("ssl_keyfile = '.'", ".: Is a directory"),
        ("partition_assignment_strategy = ['x']", "takes classes or functions, of Python alone"),
    ],
)
def test_values_that_cannot_be_are_refused_by_their_name_in_file_and_environment(
    settings, option, message
):
    name, value = option.split(" = ")
    with pytest.raises(ParameterError, match=re.escape(message)) as refused:
        settings(f"[consumer]\n{option}")
    assert str(refused.value).startswith(f"[consumer] {name}")
    if value.startswith("'"):
        variable = f"DRIFT_KAFKA_{name.upper()}"
        with pytest.raises(ParameterError, match=variable) as refused:
            settings(environ={variable: value.strip("'")})
        assert message in str(refused.value)


@pytest.mark.parametrize("table", ["consumer", "producer"])
def test_every_option_takes_its_default(settings, table):
    defaults = getattr(client, f"{table}_options")()
    # Given by --bootstrap here; the others are the worker's own.
    other = {"bootstrap_servers", "acks", "auto_offset_reset", "auto_commit_interval_ms"}
    other.add("enable_auto_commit")
    plain = {
        name: value
        for name, value in defaults.items()
        if type(value) in {bool, int, str} and name not in other
    }
    assert len(plain) > 20
    lines = [f"{name} = {json.dumps(value)}" for name, value in plain.items()]
    found, _ = settings("\n".join([f"[{table}]", *lines]))
    assert getattr(found, table) == plain


def test_a_variable_and_an_option_come_before_every_table_of_the_file(settings):
    toml = """
        [kafka]
        request_timeout_ms = 9999
        [consumer]
        request_timeout_ms = 11111
        bootstrap_servers = "c:1"
        [producer]
        request_timeout_ms = 'not looked at'
        linger_ms = 3
    """
    found, _ = settings(toml, {"DRIFT_KAFKA_REQUEST_TIMEOUT_MS": "222"})
    assert found.kafka == {"bootstrap_servers": "h:1", "request_timeout_ms": 222}
    assert (found.consumer, found.producer) == ({}, {"linger_ms": 3})


def test_clients_that_are_no_workers_have_the_consumers_and_the_producers_options(tmp_path):
    path = tmp_path / "w.toml"
    path.write_text("[kafka]\nclient_id = 'k'\n[consumer]\nfetch_min_bytes = 2\n")
    environ = {"DRIFT_KAFKA_COMPRESSION_TYPE": "gzip"}
    reading, sending = cli_settings.load_kafka(path, environ, "h:1", cli_settings.Secrets())
    every = {"bootstrap_servers": "h:1", "client_id": "k"}
    assert reading == {**every, "fetch_min_bytes": 2}
    assert sending == {**every, "compression_type": "gzip"}


@pytest.mark.parametrize(
    ("name", "value", "bounds"),
    [
        ("checkpoint_every", 0, "at least 1, not 0"),
        ("checkpoint_seconds", -1.0, "at least 0, not -1.0"),
        ("checkpoint_seconds", float("nan"), "at least 0, not nan"),
        ("keep", 0, "at least 1, not 0"),
        ("metrics_port", 65536, "from 0 to 65535, not 65536"),
    ],
)
def test_numbers_of_the_worker_that_cannot_be_are_refused(settings, name, value, bounds):
    option = f"--{name.replace('_', '-')} ({name} in [worker]) must be {bounds}"
    with pytest.raises(ParameterError, match=re.escape(option)):
        settings(worker={**GIVEN, name: value})
    with pytest.raises(ParameterError, match=re.escape(option)):
        settings(f"[worker]\n{name} = {value}")


def test_settings_that_are_missing_are_named(settings):
    with pytest.raises(ParameterError, match="give --group, or group in"):
        settings(worker={"topic": "t"})
    with pytest.raises(ParameterError, match="say where the broker is"):
        settings(bootstrap=None)
    with pytest.raises(ParameterError, match="bootstrap_servers must be host:port or a list"):
        settings("[kafka]\nbootstrap_servers = 9092", bootstrap=None)
    with pytest.raises(ParameterError, match="say which model"):
        settings(model={"class": None})
    with pytest.raises(
        ParameterError, match="DRIFT_KAFKA_SESSION_TIMEOUT_MS must be a whole number"
    ):
        settings(environ={"DRIFT_KAFKA_SESSION_TIMEOUT_MS": "long"})


@pytest.mark.parametrize("text", ["RBP(5)", "RBP(budget=x())(1)", "import os", "a.b", "3", ""])
def test_a_model_is_data_and_never_code(text):
    with pytest.raises(ParameterError, match="write RBP"):
        cli_model.parse(text)


def test_a_wrapped_model_is_built_and_described():
    table = cli_model.parse("OneVsRest(model=LBP(budget=9, kernel=RBF(gamma=0.5)))")
    assert cli_model.build(table).model.kernel.gamma == 0.5
    entries = cli_model.configuration(table)
    assert entries["model"] == "OneVsRest"
    assert entries["model.model.budget"] == 9
    assert entries["model.model.kernel.gamma"] == 0.5


def test_the_default_kernel_is_the_same_configuration_when_it_is_named():
    kernel = {"class": "Polynomial", "degree": 4, "coef0": 1.0, "normalize": True}
    assert cli_model.configuration({"class": "RBP"}) == cli_model.configuration(
        {"class": "RBP", "budget": 100, "kernel": kernel}
    )


def test_a_model_of_ones_own_comes_from_a_function(tmp_path, monkeypatch):
    (tmp_path / "own_models.py").write_text(
        "from drift.models import RBP\ndef make(size=3):\n    return RBP(size)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    table = {**cli_model.parse("own_models:make"), "size": 4}
    assert cli_model.build(table).budget == 4
    assert cli_model.configuration(table) == {"model": "own_models:make", "model.size": 4}
    with pytest.raises(ParameterError, match="cannot be imported"):
        cli_model.build({"class": "own_models:mak"})


# --- secrets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sasl_plain_password", "ssl_password", "sasl_plain_pasword"])
@pytest.mark.parametrize("by", ["file", "environment"])
def test_a_secret_is_in_no_refusal(drift, tmp_path, name, by, monkeypatch):
    (tmp_path / "w.toml").write_text(
        "[kafka]\nbootstrap_timeout_ms = 100\n" + (f"{name} = '{SECRET}'" if by == "file" else "")
    )
    if by == "environment":
        monkeypatch.setenv(f"DRIFT_KAFKA_{name.upper()}", SECRET)
    shown = drift(
        *["consume", "t", "--group", "g", "--checkpoints", "c", "--model", "RBP"],
        *["--bootstrap", "127.0.0.1:1", "--config", "w.toml"],
    )
    assert shown.exit_code in {1, 2}
    assert "error: " in shown.stderr
    assert SECRET not in shown.output + repr(shown.exception)


def test_a_secret_is_hidden_as_python_shows_it_and_as_a_number(settings):
    secret = "it's\\a 'quoted' ☃\n"  # noqa: S105
    _, secrets = settings(f"[kafka]\nsasl_plain_password = {json.dumps(secret)}")
    shown = secrets.hidden(f"{secret} {secret!r} { ({'sasl_plain_password': secret}) }")
    assert "quoted" not in shown
    assert shown.count("***") == 3
    secrets = cli_settings.Secrets()
    with pytest.raises(ParameterError, match="sasl_plain_password must be a string") as refused:
        cli_kafka.kafka_options({"kafka": {"sasl_plain_password": 20061}}, {}, "h:1", secrets)
    assert "20061" not in str(refused.value)
    assert secrets.hidden("20061") == "***"


# --- with a broker -----------------------------------------------------------------------------


def options(broker, *more, toml=""):
    # A member that left is missed by the mock cluster only after its session.
    session = "[consumer]\nsession_timeout_ms = 2000\nheartbeat_interval_ms = 200\n"
    api = '[kafka]\napi_version = [2, 3]\nsasl_plain_password = "' + SECRET + '"\n'
    Path("w.toml").write_text(toml + api + session, encoding="utf-8")
    return ["--bootstrap", broker.address, "--config", "w.toml", *more]


def learn(drift, broker, *more, count, model=("RBP(seed=1)", "--budget", 9), toml=""):
    """Run a worker until it has published so many predictions, then send it a SIGTERM.

    A worker that is to refuse gets none.
    """
    got = []

    def watch():
        got.extend(consume(broker, "out", count, timeout=30))
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=watch)
    signal.signal(signal.SIGTERM, lambda *_: None)  # where the worker ends before
    if count:
        thread.start()
    shown = drift(
        *["consume", "t", "--group", "g", "--checkpoints", "c", "--model", *model],
        *["--predictions", "out", "--dead-letters", "dead"],
        *options(broker, "--checkpoint-seconds", 0.2, *more, toml=toml),
    )
    if count:
        thread.join()
    return shown, got


def row(number):
    return json.dumps({"features": {"a": 1.0, "b": number % 5}, "label": number % 2 == 0}).encode()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("HEARTBEAT_INTERVAL_MS=4000", "must be lower than the session timeout"),
        ("ISOLATION_LEVEL=none", "Unrecognized isolation_level"),
        ("COMPRESSION_TYPE=gzp", "Not supported codec: gzp"),
        ("CLIENT_DNS_LOOKUP=x", "client_dns_lookup must be one of"),
    ],
)
def test_what_kafka_python_refuses_is_a_line(drift, broker, monkeypatch, setting, message):
    variable, value = setting.split("=")
    monkeypatch.setenv(f"DRIFT_KAFKA_{variable}", value)
    shown, _ = learn(drift, broker, count=0)
    assert shown.exit_code == 2, shown.output
    assert shown.stderr.startswith("error: kafka-python refuses its options: ")
    assert message in shown.stderr


def test_what_the_broker_refuses_for_good_is_the_users_to_mend(drift, topics):
    topics.fail("JoinGroup", *[InvalidSessionTimeoutError.errno] * 9)
    shown, _ = learn(drift, topics, count=0)
    topics.fail("JoinGroup")
    assert shown.exit_code == 2, shown.output
    assert "error: InvalidSessionTimeoutError" in shown.stderr


def test_a_broker_that_does_not_answer_is_not_the_users(drift, monkeypatch):
    monkeypatch.setenv("DRIFT_KAFKA_BOOTSTRAP_TIMEOUT_MS", "300")
    shown = drift("watch", "t", "--bootstrap", "127.0.0.1:1")
    assert shown.exit_code == 1, shown.output
    [line] = [line for line in shown.stderr.splitlines() if line.startswith("error: ")]
    assert "Unable to bootstrap" in line
    assert "refused" in line.partition("; ")[2].lower()


@pytest.fixture
def topics(broker):
    for name in ("t", "out", "dead"):
        broker.create_topic(name)
    produce(broker, "t", [*map(row, range(100)), b"{"])
    return broker


def test_a_worker_learns_stops_at_sigterm_and_goes_on(drift, topics, tmp_path):
    shown, got = learn(drift, topics, "--from", "earliest", count=100)
    assert (shown.exit_code, len(got)) == (0, 100), shown.output
    newest = CheckpointFolder(tmp_path / "c").newest(("t", 0))
    assert newest.offsets == {("t", 0): 101}
    assert newest.configuration["model.budget"] == 9
    plain = RBP(9, seed=1)
    for number in range(100):
        value = json.loads(row(number))
        plain.learn_one(value["features"], value["label"])
    assert newest.model.supports == plain.supports
    assert "t:0:100 goes to dead" in shown.stderr
    assert "stopped" in shown.stderr

    produce(topics, "t", map(row, range(100, 150)))
    again, got = learn(drift, topics, "--log-json", count=150)
    assert (again.exit_code, len(got)) == (0, 150), again.output
    lines = [json.loads(line) for line in again.stderr.splitlines()]
    assert any(line.get("examples") == 150 and line["topic"] == "t" for line in lines)
    assert SECRET not in shown.output + again.output
    written = b"".join(path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file())
    assert written
    assert SECRET.encode() not in written


def test_the_codec_is_that_of_the_file(drift, broker):
    for name in ("t", "out", "dead"):
        broker.create_topic(name)
    values = [
        row(0),
        b'{"features": {"a": 1}}',
        b'{"features": {"a": 1}, "label": "other"}',
        b'{"features": {"a": 1}, "label": true, "comment": "' + 99 * b"x" + b'"}',
        row(1),
    ]
    produce(broker, "t", values)
    codec = "[codec]\nlabels = [true, false]\nrequire_label = true\nmax_bytes = 99\n"
    shown, got = learn(drift, broker, "--from", "earliest", count=2, toml=codec)
    assert (shown.exit_code, len(got)) == (0, 2), shown.output
    errors = [dict(record.headers)["drift.error"] for record in consume(broker, "dead", 3)]
    starts = [b"label is absent", b"label is 'other', not one of True, False", b"value has "]
    assert [error[: len(start)] for error, start in zip(errors, starts, strict=True)] == starts


def test_a_first_start_has_to_say_where_and_changes_are_refused(drift, topics):
    shown, _ = learn(drift, topics, count=0)
    assert shown.exit_code == 2, shown.output
    assert "say where to start, earliest or latest" in shown.stderr
    shown, _ = learn(drift, topics, "--from", "earliest", count=100)
    assert shown.exit_code == 0
    shown, _ = learn(drift, topics, "--budget", "10", count=0)
    assert shown.exit_code == 2
    assert "model.budget: 9 in the checkpoint, 10 now" in shown.stderr


def test_checkpoints_are_signed_with_the_key_of_a_file(drift, topics, tmp_path):
    (tmp_path / "key").write_text(f"{SECRET}\n")
    (tmp_path / "other").write_text("another")
    (tmp_path / "empty").write_text("\n")
    shown, _ = learn(drift, topics, "--from", "earliest", "--key-file", "key", count=100)
    assert shown.exit_code == 0, shown.output
    assert SECRET not in shown.output
    newest = CheckpointFolder(tmp_path / "c", key=SECRET.encode()).newest(("t", 0))
    assert newest.offsets == {("t", 0): 101}
    [*_, file] = sorted((tmp_path / "c" / "t-0").glob("checkpoint-*"))
    assert SECRET.encode() not in file.read_bytes()
    assert "signed with this key" in drift("checkpoint", "verify", file, "--key-file", "key").stdout
    for name, message in (
        ("other", "its signature is not that of this key"),
        ("empty", "empty is empty, and no key"),
        ("missing", "missing: No such file"),
    ):
        shown, _ = learn(drift, topics, "--key-file", name, count=0)
        assert shown.exit_code == 2
        assert message in shown.stderr


def test_a_model_that_is_not_drifts_needs_pickle_to_be_allowed(
    drift, topics, tmp_path, monkeypatch
):
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "own_pipeline.py").write_text(
        "from river import linear_model, preprocessing\n"
        "def make():\n"
        "    return preprocessing.StandardScaler() | linear_model.LogisticRegression()\n"
    )
    model = ("own_pipeline:make",)
    shown, _ = learn(drift, topics, "--from", "earliest", count=0, model=model)
    assert shown.exit_code == 2
    assert "--allow-pickle" in shown.stderr
    assert not (tmp_path / "c").exists()
    shown, got = learn(
        drift, topics, "--from", "earliest", "--allow-pickle", count=100, model=model
    )
    assert (shown.exit_code, len(got)) == (0, 100), shown.output
    newest = CheckpointFolder(tmp_path / "c", allow_pickle=True).newest(("t", 0))
    assert newest.metrics["examples"] == 100
    assert newest.model["StandardScaler"].counts["a"] == 100
    shown, _ = learn(drift, topics, count=0, model=model)
    assert shown.exit_code == 2
    assert "--allow-pickle" in shown.stderr


def test_a_stream_is_sent_once_however_often_it_is_asked_for(drift, broker):
    broker.create_topic("news", partitions=2)
    asked = ["produce", "newswire", "--topic", "news", *options(broker), "--shifts", 1]
    first = drift(*asked, "--rows", 60)
    assert first.exit_code == 0, first.output
    assert "60 examples confirmed by the broker" in first.stdout
    again = drift(*asked, "--rows", 60)
    assert "0 examples confirmed" in again.stdout
    assert "60 were there before" in again.stdout
    records = consume(broker, "news", 60)
    ids = [(record.partition, json.loads(record.value)["id"]) for record in records]
    assert ids == [(p, n) for p in range(2) for n in range(p, 60, 2)]
    other = drift(*asked, "--rows", 60, "--seed", 1)
    assert other.exit_code == 2
    assert "holds something else than this stream" in other.stderr
    other = drift(*asked, "--partitions", 3)
    assert other.exit_code == 2
    assert "news has 2 partitions, not 3" in other.stderr


def test_an_interrupted_stream_goes_on_where_each_partition_ends(drift, broker):
    broker.create_topic("whole", partitions=2)
    broker.create_topic("cut", partitions=2)
    asked = [*options(broker), "--rows", 40, "--shifts", 1]
    assert drift("produce", "newswire", "--topic", "whole", *asked).exit_code == 0
    whole = consume(broker, "whole", 40)
    for partition, count in ((0, 7), (1, 3)):
        values = [record.value for record in whole if record.partition == partition]
        produce(broker, "cut", values[:count], partition)
    shown = drift("produce", "newswire", "--topic", "cut", *asked, "--rate", 10000)
    assert "30 examples confirmed" in shown.stdout, shown.output
    cut = consume(broker, "cut", 40)
    assert [(r.partition, r.value) for r in cut] == [(r.partition, r.value) for r in whole]


def test_the_figure_counts_each_prediction_once(drift, topics):
    learn(drift, topics, "--from", "earliest", count=100)
    shown = drift("watch", "out", *options(topics), "--seconds", 1.5)
    assert shown.exit_code == 0, shown.output
    assert "100 so far" in shown.stdout
    assert "t:0" in shown.stdout


def test_dead_letters_go_back_once_however_often_it_is_asked_for(drift, broker):
    for name in ("t", "out", "dead"):
        broker.create_topic(name)
    large = b'{"features": {"a": 1}, "label": true, "comment": "' + 99 * b"x" + b'"}'
    produce(broker, "t", [row(0), large, b"{", row(1)])
    small = "[codec]\nmax_bytes = 99\n"
    shown, _ = learn(drift, broker, "--from", "earliest", count=2, toml=small)
    assert shown.exit_code == 0, shown.output
    asked = ["replay", "dead", "t", "--error", "raise max_bytes", *options(broker)]
    shown = drift(*asked, "--dry-run")
    assert shown.exit_code == 0, shown.output
    [line, summary] = shown.stdout.splitlines()
    assert line.startswith("t:0:1 to t:0, 151 bytes: value has 151 bytes, more than the 99")
    assert summary.startswith("t: 1 messages would be sent once more, 0 were before; 0 letters")
    assert "t: 1 messages sent once more, 0 were before" in drift(*asked).stdout
    assert "t: 0 messages sent once more, 1 were before" in drift(*asked).stdout
    again = consume(broker, "t", 5)
    assert (len(again), again[4].value, again[4].key) == (5, large, b"")
    assert list(again[4].headers) == [("drift.replayed", b"t:0:1")]
    shown, got = learn(drift, broker, count=3)
    assert (shown.exit_code, len(got)) == (0, 3), shown.output


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("dead", "dead"), "cannot be sent to their own topic"),
        (("nosuch", "dead"), "there is no topic nosuch"),
        (("dead", "nosuch"), "there is no topic nosuch"),
    ],
)
def test_a_replay_needs_two_topics(drift, broker, names, message):
    broker.create_topic("dead")
    shown = drift("replay", *names, *options(broker))
    assert shown.exit_code == 2, shown.output
    assert message in shown.stderr


def test_a_topic_that_is_missing_is_waited_for_and_said_so(drift, broker):
    shown = drift("watch", "nosuch", *options(broker), "--seconds", 0.1)
    assert shown.exit_code == 0, shown.output
    assert "there is no topic nosuch, or this user may not see it: waiting" in shown.stderr


def test_the_demo_kills_a_worker_and_loses_nothing(drift, monkeypatch):
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr("drift.cli_demo._ROWS", 800)
    shown = drift("demo", "--rate", 200)
    assert shown.exit_code == 0, shown.output
    assert "worker 1 killed by SIGKILL" in shown.stdout
    assert "worker 3 started" in shown.stdout
    assert "800 of 800 examples predicted" in shown.stdout
    assert "as a plain loop over each partition learns them: True" in shown.stdout


@pytest.mark.parametrize(
    ("missing", "command", "message"),
    [
        ("confluent_kafka", ["demo"], "confluent-kafka is not installed"),
        ("drift.consumers.topics", ["watch", "out"], "kafka-python is not installed"),
    ],
)
def test_an_extra_that_is_missing_is_named(drift, monkeypatch, missing, command, message):
    if missing == "drift.consumers.topics":
        monkeypatch.setitem(sys.modules, "kafka", None)
        monkeypatch.delitem(sys.modules, missing, raising=False)
        monkeypatch.delattr("drift.consumers.topics", raising=False)
    else:
        monkeypatch.setitem(sys.modules, missing, None)
    shown = drift(*command)
    assert shown.exit_code == 2, shown.output
    assert message in shown.stderr
