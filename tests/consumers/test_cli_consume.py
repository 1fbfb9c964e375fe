"""The commands that talk to Kafka: what they do, what they refuse, what they never show."""

import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from drift.cli import app
from drift.cli._figure import ErrorFigure
from drift.cli._settings import PREFIX
from drift.consumers import CheckpointFolder
from drift.models import LBP, RBP
from drift.testing import consume, produce

pytest.importorskip("kafka")

from kafka.errors import InvalidSessionTimeoutError  # after the check that there is a client

SECRET = "hunter2-correct-horse"  # noqa: S105


@pytest.fixture
def drift(monkeypatch, tmp_path):
    """Run the command line in an empty folder, with no settings in the environment."""
    for name in os.environ:
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    # What ends a worker that has not started would end the tests, too.
    monkeypatch.setattr(os, "_exit", lambda code: pytest.exit("a signal came too early", 1))
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))
    for number, handler in before.items():
        signal.signal(number, handler)


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


#: What waits for a broker as it starts, with its exit codes at SIGTERM and Ctrl-C.
WAITING = {
    "consume t --group g --checkpoints c": (0, 0),
    "consume t --dry-run 5": (143, 130),
    "serve t --group g --checkpoints c": (0, 0),
    "watch out": (143, 130),
    "replay dead t": (143, 130),
    "produce rows.svm --topic t": (143, 130),
    "checkpoint rollback c --to 1-1": (143, 130),
    "checkpoint init --history h.jsonl --config w.toml": (143, 130),
}


@pytest.mark.parametrize(
    ("command", "number"),
    [
        *((command, signal.SIGTERM) for command in WAITING),
        *((command, signal.SIGINT) for command in [*WAITING][::3]),
    ],
)
def test_what_waits_for_its_broker_leaves_at_a_signal(tmp_path, number, command):
    """Also as the first process of a container, which gets no signal that it does not handle."""
    folder = CheckpointFolder(tmp_path / "c")
    epoch, _ = folder.claim(("t", None))
    for offset in (3, 6):
        folder.save(("t", None), epoch, LBP(9), {("t", 0): offset}, identity={"group": "g"})
    own = "[worker]\ntopic = 't'\ngroup = 'h'\ncheckpoints = 'new'\nfrom = 'earliest'\n"
    (tmp_path / "w.toml").write_text(own)
    (tmp_path / "h.jsonl").write_text('{"features": {"a": 1}, "label": true}\n')
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 1:2\n")
    start = "from drift.cli import main; main()"
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
        silent.settimeout(60)
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        line = [sys.executable, "-c", start, *command.split(), "--bootstrap", address]
        with (
            subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as waiting,
            silent.accept()[0],
        ):
            before = time.monotonic()
            waiting.send_signal(number)
            rest = waiting.stderr.read()
    assert waiting.returncode == WAITING[command][number == signal.SIGINT], rest
    assert time.monotonic() - before < 10
    assert "Traceback" not in rest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_its_settings_are_read_ends_a_worker(tmp_path, number):
    """As amid an import, which takes a second on a busy machine and may swallow an exception."""
    (tmp_path / "mine.py").write_text(
        "import os\n"
        f"try:\n    os.kill(os.getpid(), {number})\nexcept BaseException:\n    pass\n"
        "from drift.consumers import JsonCodec as Mine\n"
    )
    (tmp_path / "w.toml").write_text('[codec]\nclass = "mine:Mine"\n')
    start = "from drift.cli import main; main()"
    line = [sys.executable, "-c", start, "consume", "t", "--group", "g", "--checkpoints", "c"]
    more = ["--config", "w.toml", "--bootstrap", "127.0.0.1:1"]
    ended = subprocess.run(
        [*line, *more], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


# --- with a broker -----------------------------------------------------------------------------


def options(broker, *more, toml=""):
    # The mock cluster has who comes after somebody left wait for the session less a second.
    session = "[consumer]\nsession_timeout_ms = 1500\nheartbeat_interval_ms = 200\n"
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
    # On a busy machine kafka-python says before that a task of its took long.
    [line] = [line for line in shown.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: kafka-python refuses its options: ")
    assert message in line


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
    assert line.endswith(": start the broker, or give its address by --bootstrap")


@pytest.fixture
def topics(broker):
    for name in ("t", "out", "dead"):
        broker.create_topic(name)
    produce(broker, "t", [*map(row, range(100)), b"{"])
    return broker


def test_a_worker_learns_stops_at_sigterm_and_continues(drift, topics, tmp_path):
    shown, got = learn(drift, topics, "--from", "earliest", count=100)
    assert (shown.exit_code, len(got)) == (0, 100), shown.output
    newest = CheckpointFolder(tmp_path / "c").newest(("t", None))
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


def test_a_port_that_is_taken_ends_a_worker_before_it_learns(drift, topics, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        more = ["--group", "g", "--checkpoints", "c", "--model", "RBP", "--from", "earliest"]
        before = threading.enumerate()
        shown = drift("consume", "t", *more, "--metrics-port", port, *options(topics))
        assert (shown.exit_code, f"127.0.0.1:{port} " in shown.stderr) == (2, True), shown.output
        # Its clients are closed.
        assert not {*threading.enumerate()} - {*before}
    assert not (tmp_path / "c").exists()


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
    codec = "[codec]\nclasses = [true, false]\nrequire_label = true\nmax_bytes = 99\n"
    shown, got = learn(drift, broker, "--from", "earliest", count=2, toml=codec)
    assert (shown.exit_code, len(got)) == (0, 2), shown.output
    errors = [dict(record.headers)["drift.error"] for record in consume(broker, "dead", 3)]
    starts = [b"label is absent", b"label is 'other', not one of True, False", b"value has "]
    assert [error[: len(start)] for error, start in zip(errors, starts, strict=True)] == starts


def test_a_dry_run_shows_messages_and_makes_nothing(drift, topics, tmp_path):
    topics.create_topic("two", partitions=2)
    for partition in (0, 1):
        produce(topics, "two", map(row, range(4)), partition)

    def positions(shown):
        lines = shown.stdout.splitlines()
        return [one.partition("  ")[0] for one in lines if one.startswith(("t:", "two:"))]

    shown = drift("consume", "two", *options(topics), "--dry-run", 3)
    assert shown.exit_code == 0, shown.output
    assert len(positions(shown)) == 3
    assert '    features   {"a": 1.0, "b": 0}\n    label      true\n' in shown.stdout
    shown = drift("consume", "two", *options(topics), "--dry-run", 9, "--partition", 1)
    assert positions(shown) == [f"two:1:{n}" for n in range(4)]
    file = '[worker]\ntopic = "t"\ngroup = "g"\ncheckpoints = "c"\nfrom = "latest"\n'
    shown = drift("consume", *options(topics, toml=file), "--dry-run", 2)
    assert positions(shown) == ["t:0:99", "t:0:100"]
    assert "    not learnt: value is no JSON" in shown.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.toml"]


def test_a_dry_run_without_an_example_ends_with_2(drift, broker):
    for name in ("t", "l", "empty"):
        broker.create_topic(name)
    produce(broker, "t", [b'{"sum": 1, "fraud": true}'])
    shown = drift("consume", "t", *options(broker), "--dry-run", 5)
    assert shown.exit_code == 2
    assert shown.stdout.endswith('[codec]\nlabel = "fraud"\n')
    assert shown.stderr.endswith("error: none of 1 message can be learnt: correct [codec]\n")
    produce(broker, "l", [b'{"id": 7, "label": true}'])
    shown = drift("consume", "t", "--labels", "l", *options(broker), "--dry-run", 5)
    assert shown.exit_code == 0, shown.output
    assert "    id         7" in shown.stdout
    shown = drift("consume", "empty", *options(broker), "--dry-run", 5)
    assert shown.exit_code == 1
    assert "error: empty has no messages yet: send some" in shown.stderr
    shown = drift("consume", "t", *options(broker), "--dry-run", 5, "--partition", 7)
    assert shown.exit_code == 2
    assert "error: t has no partition 7, it has 1: give one below that" in shown.stderr


def test_a_worker_that_can_learn_nothing_shows_why_and_ends_with_2(drift, broker):
    for name in ("t", "out", "dead"):
        broker.create_topic(name)
    produce(broker, "t", [b'{"sum": %d, "fraud": true}' % n for n in range(120)])
    shown, _ = learn(drift, broker, "--from", "earliest", count=0)
    assert shown.exit_code == 2, shown.output
    assert shown.stdout.count("not learnt: features is absent") == 20
    table = '\nWith this 20 of 20 become examples, 20 with a label:\n\n[codec]\nlabel = "fraud"\n'
    assert shown.stdout.endswith(table)
    assert "error: none of the first 100 messages of t can be learnt" in shown.stderr
    shown, got = learn(
        drift, broker, "--from", "earliest", count=120, toml=table.lstrip().partition("\n\n")[2]
    )
    assert (shown.exit_code, len(got)) == (0, 120), shown.output


def test_a_first_start_has_to_say_where_and_changes_are_refused(drift, topics):
    shown, _ = learn(drift, topics, count=0)
    assert shown.exit_code == 2, shown.output
    assert "say where to start, --from earliest or --from latest" in shown.stderr
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
    newest = CheckpointFolder(tmp_path / "c", secret=SECRET.encode()).newest(("t", None))
    assert newest.offsets == {("t", 0): 101}
    [*_, file] = sorted((tmp_path / "c" / "t-all").glob("checkpoint-*"))
    assert SECRET.encode() not in file.read_bytes()
    assert "signed with this key" in drift("checkpoint", "verify", file, "--key-file", "key").stdout
    for name, message in (
        ("other", "its signature is not that of this key"),
        ("empty", "empty is empty: write a key"),
        ("missing", "missing: No such file"),
    ):
        shown, _ = learn(drift, topics, "--key-file", name, count=0)
        assert shown.exit_code == 2
        assert message in shown.stderr
    left = sorted((tmp_path / "c" / "t-all").iterdir())
    shown, _ = learn(drift, topics, count=0)
    assert shown.exit_code == 2
    assert "is signed: give the file of its key, --key-file" in shown.stderr
    assert sorted((tmp_path / "c" / "t-all").iterdir()) == left  # nothing was claimed


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
    assert "who can write to c can run code here; give a --key-file" in shown.stderr
    newest = CheckpointFolder(tmp_path / "c", allow_pickle=True).newest(("t", None))
    assert newest.metrics["examples"] == 100
    assert newest.model["StandardScaler"].counts["a"] == 100
    shown, _ = learn(drift, topics, count=0, model=model)
    assert shown.exit_code == 2
    assert "--allow-pickle" in shown.stderr


def test_a_stream_is_sent_once_however_often_it_is_requested(drift, broker):
    broker.create_topic("news", partitions=2)
    asked = ["produce", "newswire", "--topic", "news", *options(broker), "--shifts", 1]
    first = drift(*asked, "--rows", 60)
    assert first.exit_code == 0, first.output
    assert "60 examples confirmed by the broker" in first.stdout
    again = drift(*asked, "--rows", 60)
    assert "0 examples confirmed" in again.stdout
    assert "60 already there" in again.stdout
    records = consume(broker, "news", 60)
    ids = [(record.partition, json.loads(record.value)["id"]) for record in records]
    assert ids == [(p, n) for p in range(2) for n in range(p, 60, 2)]
    other = drift(*asked, "--rows", 60, "--seed", 1)
    assert other.exit_code == 2
    assert "holds another stream" in other.stderr
    other = drift(*asked, "--partitions", 3)
    assert other.exit_code == 2
    assert "news has 2 partitions, not 3" in other.stderr


def test_a_topic_that_is_missing_is_made_for_a_stream(drift, broker, monkeypatch):
    # The mock cluster makes none for those who ask it to.
    monkeypatch.setattr(
        "drift.consumers.client.topics.create",
        lambda topic, partitions, _: broker.create_topic(topic, partitions=partitions),
    )
    asked = ["produce", "newswire", "--topic", "made", *options(broker), "--rows", 40]
    shown = drift(*asked, "--shifts", 1)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("made: 40 examples confirmed by the broker in ")
    assert shown.stdout.endswith(" s, 0 already there; 1 partition\n")


def test_an_interrupted_stream_continues_where_each_partition_ends(drift, broker):
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


@pytest.fixture
def until_shown(monkeypatch):
    """Have `drift watch --seconds` end as soon as its figure has what a function looks for."""
    figures, init = [], ErrorFigure.__init__

    def noted(figure, *given):
        figures.append(figure)
        init(figure, *given)

    def until(done):
        ended = SimpleNamespace(
            monotonic=lambda: math.inf if any(map(done, figures)) else time.monotonic()
        )
        monkeypatch.setattr("drift.cli.watch.time", ended)

    monkeypatch.setattr(ErrorFigure, "__init__", noted)
    return until


def test_the_figure_counts_each_prediction_once(drift, topics, until_shown):
    learn(drift, topics, "--from", "earliest", count=100)
    until_shown(lambda figure: figure.examples == 100)
    shown = drift("watch", "out", *options(topics), "--seconds", 60)
    assert shown.exit_code == 0, shown.output
    assert "100 so far" in shown.stdout
    assert "t:0" in shown.stdout


@pytest.mark.parametrize("by", ["flag", "file"])
def test_the_figure_shows_measures_and_alarms(drift, broker, until_shown, by):
    for name in ("out", "events"):
        broker.create_topic(name)
    body = {"topic": "t", "partition": 0, "predicted": "spam", "probabilities": {"spam": 0.75}}
    sent = [
        json.dumps(body | {"offset": n, "label": ["spam", "ham"][n % 4 == 0]}) for n in range(8)
    ]
    produce(broker, "out", [one.encode() for one in sent])
    alarm = {"event": "alarm", "measure": "error", "before": 0.05, "now": 0.25, "examples": 90}
    alarm |= {"topic": "t", "partition": 0, "offset": 70}
    alarm |= {"features": [{"name": "sum", "distance": 0.5}]}
    produce(broker, "events", [b"{", *2 * [json.dumps(alarm).encode()]])
    toml, more = "", ["--events", "events", "--positive", "spam"]
    if by == "file":
        toml, more = '[worker]\nevents = "events"\npositive = "spam"\n', []
    until_shown(lambda figure: figure.examples == 8 and figure._alarms)
    shown = drift("watch", "out", *options(broker, toml=toml), *more, "--seconds", 60)
    assert shown.exit_code == 0, shown.output
    assert "last 1,000: recall 100.0%, precision 75.0%, F1 85.7%, log loss" in shown.stdout
    line = "alarm: t:0:70 error rose from 0.05 to 0.25, moved most: sum (0.50)"
    assert shown.stdout.count(line) == 1


def test_dead_letters_go_back_once_however_often_it_is_requested(drift, broker):
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
    assert summary.startswith("t: 1 to be sent, 0 sent by an earlier replay; skipped 0 dup")
    assert "t: 1 sent, 0 sent by an earlier replay" in drift(*asked).stdout
    assert "t: 0 sent, 1 sent by an earlier replay" in drift(*asked).stdout
    again = consume(broker, "t", 5)
    assert (len(again), again[4].value, again[4].key) == (5, large, b"")
    replayed, (name, time) = again[4].headers
    assert replayed == ("drift.replayed", b"t:0:1")
    assert (name, int(time)) == ("drift.replayed.timestamp", again[1].timestamp)
    shown, got = learn(drift, broker, count=3)
    assert (shown.exit_code, len(got)) == (0, 3), shown.output


def test_no_dead_letters_are_nothing_to_send(drift, broker):
    for name in ("t", "dead"):
        broker.create_topic(name)
    produce(broker, "t", [row(0)])
    shown = drift("replay", "dead", "t", *options(broker))
    assert shown.exit_code == 0, shown.output
    assert "t: 0 sent, 0 sent by an earlier replay" in shown.stdout


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


def test_a_missing_topic_is_waited_for_with_a_message(drift, broker):
    shown = drift("watch", "nosuch", *options(broker), "--seconds", 0.1)
    assert shown.exit_code == 0, shown.output
    assert "there is no topic nosuch, or this user may not see it: waiting" in shown.stderr


def test_durations_have_units_on_the_command_line(drift):
    asked = ["consume", "t", "--group", "g", "--checkpoints", "c", "--labels", "l"]
    shown = drift(*asked, "--max-age", "1 fortnight")
    assert shown.exit_code == 2
    assert "--max-age takes a number of seconds, or as '30d', not '1 fortnight'" in shown.stderr
    shown = drift(*asked, "--silence", "false", "--max-age", "2d")
    assert "silence and after belong together" in shown.stderr
    # All of it is taken, and the broker is what is missing.
    shown = drift(*asked, "--silence", "false", "--after", "30d", "--correct-for", "90d")
    assert shown.stderr.startswith("error: say where the broker is")
    shown = drift("consume", "--help")
    assert "--correct-for DURATION" in shown.stdout
    assert "[default: 90d;" in shown.stdout


@pytest.mark.slow
def test_the_demo_kills_a_worker_and_loses_nothing(drift, monkeypatch):
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr("drift.cli.demo._ROWS", 800)
    shown = drift("demo", "--rate", 200)
    assert shown.exit_code == 0, shown.output
    events = [
        "worker 1 started",
        ": it learns",
        "worker 2 started",
        ": it stands by",
        "worker 1 killed by SIGKILL",
        "worker 2 takes over",
        "worker 3 started",
        "800 of 800 examples predicted",
        "the model is that of a plain loop over the topic, in its order: True",
    ]
    actual = [shown.stdout.find(event) for event in events]
    assert -1 not in actual, shown.stdout
    assert actual == sorted(actual)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_demo_leaves_nothing_behind_at_a_signal(tmp_path, number, code):
    """No process, as the pipe that all of them have ends, and no folder."""
    pytest.importorskip("confluent_kafka")
    start = "from drift.cli import main; main()"
    line = [sys.executable, "-c", start, "demo"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True) as demo:
        while not [*tmp_path.glob("*/*-all/*")]:  # its worker has not claimed the topic
            with pytest.raises(subprocess.TimeoutExpired):  # nor has it ended
                demo.wait(0.05)
        demo.send_signal(number)
        said = demo.stderr.read()
    assert (demo.returncode, said) == (code, "interrupted\n")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("missing", "command", "message"),
    [
        ("confluent_kafka", ["demo"], "confluent-kafka is not installed"),
        ("kafka", ["watch", "out"], "kafka-python is not installed"),
    ],
)
def test_an_extra_that_is_missing_is_named(drift, monkeypatch, missing, command, message):
    monkeypatch.setitem(sys.modules, missing, None)
    late = "drift.consumers.client", "drift.testing._mock"
    for name in [name for name in sys.modules if name.startswith(late)]:
        monkeypatch.delitem(sys.modules, name)
    shown = drift(*command)
    assert shown.exit_code == 2, shown.output
    assert message in shown.stderr


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("InvalidSessionTimeoutError", "set session_timeout_ms in [consumer] between"),
        ("GroupAuthorizationFailedError", "grant this user Read on the group, or give another"),
        ("TopicAuthorizationFailedError", "grant this user Read on topics that are read, and Wr"),
        ("InconsistentGroupProtocolError", "another member of the group assigns partitions in an"),
    ],
)
def test_what_a_broker_refuses_is_answered_with_the_remedy(drift, monkeypatch, error, remedy):
    from kafka import errors  # noqa: PLC0415 - needs the client

    def refused(_):
        raise getattr(errors, error)("")

    monkeypatch.setattr("drift.cli.consume.Consume._worker", lambda *_: refused(_))
    given = ["consume", "t", "--group", "g", "--checkpoints", "c", "--bootstrap", "127.0.0.1:1"]
    shown = drift(*given)
    assert shown.exit_code == 2
    assert remedy in shown.stderr
