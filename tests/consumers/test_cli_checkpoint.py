"""`drift checkpoint init`, `list`, `rollback` and `relearn`, and workers on the tests' broker."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from drift.cli import app
from drift.cli._named import configuration
from drift.consumers import CheckpointFolder, JsonCodec, WorkerOptions
from drift.consumers.checkpoints.journal import read_order
from drift.consumers.relearning import relearn
from drift.models import LBP, RBP, Tracker
from drift.models._state.codec import encode
from drift.testing import produce
from tests.consumers.stepping import close, learner_of, until
from tests.consumers.topics import everything

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from drift.consumers.client import topics  # after the check that there is a client
from drift.consumers.worker import Worker

KEY = ("t", None)
CODEC = JsonCodec(one_hot=True)


def row(n):
    """Features with a text, and their label."""
    x = {"size": 1.0 + n % 7, "colour": ("red", "blue")[n * n % 3 == 1]}
    return x, (n % 7 > 3) ^ (x["colour"] == "red")


def message(n):
    features, label = row(n)
    return json.dumps({"features": features, "label": label, "id": n}).encode()


@pytest.fixture
def drift(monkeypatch, tmp_path, broker):
    """The command line in a folder with the settings of a worker, and nobody in its group."""
    monkeypatch.chdir(tmp_path)
    broker.create_topic("t", 2)
    (tmp_path / "w.toml").write_text(
        '[model]\nclass = "RBP"\nbudget = 9\nseed = 1\n'
        '[worker]\ntopic = "t"\ngroup = "g"\ncheckpoints = "c"\nfrom = "earliest"\n'
        "[codec]\none_hot = true\n"
        f'[kafka]\nbootstrap_servers = "{broker.address}"\napi_version = [2, 3]\n'
    )
    # The broker inside the process describes no groups.
    monkeypatch.setattr(topics, "members", lambda group, options: [])
    return lambda *given, **more: CliRunner().invoke(app, ["checkpoint", *given], **more)


def init(drift, *more):
    return drift("init", "--config", "w.toml", *more)


def folder(**model):
    """The checkpoints, as the commands have them for a model."""
    table = model or {"class": "RBP", "budget": 9, "seed": 1}
    return CheckpointFolder("c", {"topic": "t", **configuration(table)})


SOON = {"session_timeout_ms": 1500, "heartbeat_interval_ms": 200}


def worker(broker, **more):
    return Worker(
        RBP(9, seed=1),
        folder(),
        broker.client_args,
        WorkerOptions(topic="t", group="g", start="earliest", **more),
        codec=CODEC,
        consumer=SOON,
    )


def step(one, count):
    """Step a worker until it has learnt up to so many messages."""
    until(one, lambda: learner_of(one) and sum(learner_of(one).offsets.values()) == count)


def learn(broker, count):
    """Have a worker learn up to so many messages, and save."""
    one = worker(broker)
    step(one, count)
    close(one)


def tables(path, n=60):
    """The same history in three forms, and the options that each takes."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        [{**x, "y": y, "day": i} for i, (x, y) in enumerate(map(row, range(n)))]
    )
    frame.iloc[::-1].to_csv(path / "h.csv", index=False)
    frame.drop(columns="day").to_parquet(path / "h.parquet")
    (path / "h.jsonl").write_bytes(b"\n".join(map(message, range(n))))
    return {
        "h.csv": ["--target", "y", "--time", "day"],
        "h.parquet": ["--target", "y"],
        "h.jsonl": [],
    }


def test_a_history_in_any_form_is_that_of_a_plain_loop(drift, tmp_path):
    plain = RBP(9, seed=1)
    for n in range(60):
        x, y = row(n)
        plain.learn_one({"size": x["size"], f"colour={x['colour']}": 1}, y)
    for name, more in tables(tmp_path).items():
        shown = init(drift, "--checkpoints", name[2:], "--history", name, *more)
        assert shown.exit_code == 0, shown.output
        newest = CheckpointFolder(name[2:]).newest(KEY)
        assert newest.model.supports == plain.supports
        assert newest.offsets == {("t", 0): 0, ("t", 1): 0}
        output = " ".join(shown.output.split())
        assert f"{name[2:]}/t-all: 1-1 has learnt 60 examples, 0 left out; error " in output
        assert "drift consume starts at t:0 offset 0, t:1 offset 0" in output


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_worker_continues_behind_the_history(drift, broker, tmp_path, start):
    tables(tmp_path)
    for p in range(2):
        produce(broker, "t", map(message, range(60 + p, 100, 2)), p)
    shown = init(drift, "--history", "h.jsonl", "--start", start)
    assert shown.exit_code == 0, shown.output
    first = folder().newest(KEY)
    assert first.offsets == dict.fromkeys([("t", 0), ("t", 1)], 20 * (start == "latest"))
    codec = {"codec": "JsonCodec", "codec.one_hot": True}
    assert first.configuration == folder().configuration | codec
    for p in range(2):
        produce(broker, "t", map(message, range(100 + p, 120, 2)), p)
    learn(broker, 60)
    newest = folder().newest(KEY)
    assert newest.metrics["examples"] == 60 + 20 + 40 * (start == "earliest")
    # The history's model is what the order of the logs starts with.
    runs = read_order(folder().folder(KEY), newest.id)
    logs = {("t", p): [] for p in range(2)}
    with topics.Reader("t", broker.client_args) as reader:
        for one in reader.read(reader.ends()):
            logs[one.position[:2]].append(one)
    options = WorkerOptions(topic="t", group="g")
    learner, _ = relearn(first.model, logs, runs, options, CODEC)
    assert encode(learner.model) == encode(newest.model)


def test_what_the_group_has_learnt_is_not_started_anew(drift, broker, tmp_path):
    tables(tmp_path)
    produce(broker, "t", map(message, range(5)), 0)
    learn(broker, 5)
    shown = init(drift, "--history", "h.jsonl")
    assert shown.exit_code == 2
    assert "c/t-all has checkpoint 1-" in shown.output
    assert "give another folder and group" in shown.output
    shown = init(drift, "--history", "h.jsonl", "--checkpoints", "other")
    assert shown.exit_code == 2, shown.output
    assert "g has learnt t:0 up to 5, t:1 up to 0: a history" in shown.output
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--history", "h.csv"], "name the target, one of"),
        (["--history", "h.csv", "--target", "z"], "no column 'z'"),
        (["--history", "h.jsonl", "--target", "y"], "leave --target, --time and --drop out"),
        (["--history", "none.jsonl"], "none.jsonl: cannot be read"),
        (["--history", "h.jsonl", "--start", "soon"], "--start is 'soon': write earliest, latest"),
        (["--history", "h.jsonl", "--labels", "nosuch"], "there is no topic nosuch"),
        (["--history", "h.jsonl", "--partition", "7"], "t has no partition 7"),
        (["--history", "empty.jsonl"], "nothing was learnt"),
    ],
)
def test_what_a_history_lacks_is_reported_before_anything_is_written(
    drift, tmp_path, more, message
):
    tables(tmp_path)
    (tmp_path / "empty.jsonl").write_text("{}\n" * 12)
    shown = init(drift, *more)
    assert shown.exit_code == 2, shown.output
    assert message in " ".join(shown.output.split())
    assert not (tmp_path / "c").exists()
    assert shown.output.count("left out: empty.jsonl: ") == 10 * ("empty.jsonl" in more)


def test_the_start_of_the_log_is_required(drift, tmp_path):
    tables(tmp_path)
    config = tmp_path / "w.toml"
    config.write_text(config.read_text().replace('from = "earliest"\n', ""))
    shown = init(drift, "--history", "h.jsonl")
    assert shown.exit_code == 2
    assert "say where to start in the topic: --start" in shown.output


def test_labels_of_a_separate_topic_start_with_the_features(drift, broker, tmp_path):
    tables(tmp_path)
    broker.create_topic("l", 3)
    produce(broker, "l", [b"{}"] * 4, 2)
    config = tmp_path / "w.toml"
    config.write_text(config.read_text() + '[labels]\ntopic = "l"\ngrace = 5\n')
    shown = init(drift, "--history", "h.jsonl", "--start", "latest", "--model", "Tracker")
    assert shown.exit_code == 0, shown.output
    newest = CheckpointFolder("c").newest(KEY)
    assert newest.offsets == {("t", 0): 0, ("t", 1): 0, ("l", 0): 0, ("l", 1): 0, ("l", 2): 4}
    assert (newest.model.late, newest.configuration["labels.grace"]) == (True, 5)
    one = Worker(
        Tracker(),
        folder(**{"class": "Tracker", "late": True}),
        broker.client_args,
        WorkerOptions(topic="t", group="g", labels="l", grace=5),
        codec=CODEC,
    )
    until(one, lambda: learner_of(one))
    assert (learner_of(one).metrics.examples, learner_of(one).join.pending) == (60, 0)
    one._claims.clear()
    close(one)


# --- rolling back --------------------------------------------------------------------------------


@pytest.fixture
def learnt(drift, broker):
    """A folder with the checkpoints of a worker: of no message, of 10 and of 16."""
    one = worker(broker)
    for begin, count in ((0, 10), (10, 16)):
        produce(broker, "t", map(message, range(begin, count)), 0)
        step(one, count)
        one._save_new()
    close(one)
    return [one["id"] for one in entries(drift)]


def back(drift, *more, **given):
    return drift("rollback", "c", "--config", "w.toml", *more, **given)


def entries(drift):
    return [json.loads(line) for line in drift("list", "c", "--json").output.splitlines()]


def test_checkpoints_are_listed_with_what_they_have_learnt(drift, learnt):
    first, *_, last = entries(drift)
    assert (first["examples"], first["offsets"]) == (16, [["t", 0, 16], ["t", 1, 0]])
    assert 0 < first["error"] < 1
    assert first["folder"] == "c/t-all"
    assert first["time"] >= last["time"] > "2026"
    lines = drift("list", "c").output.splitlines()
    assert [line.split()[0] for line in lines] == learnt
    assert f"  examples 16  error {first['error']:.1%}  t:0 at 16, t:1 at 0" in lines[0]


@pytest.mark.usefixtures("learnt")
@pytest.mark.parametrize("keep", [False, True])
def test_a_worker_continues_from_what_was_rolled_back(drift, broker, keep):
    [target] = [one["id"] for one in entries(drift) if one["examples"] == 10]
    shown = back(drift, "--to", target, "--yes", *["--keep-offsets"] * keep)
    assert shown.exit_code == 0, shown.output
    what = "continues at 16: 6 messages" if keep else "goes back from 16 to 10: 6 messages"
    assert what in shown.output
    now = entries(drift)[0]
    assert (now["examples"], now["restores"]) == (10, target)
    produce(broker, "t", map(message, range(16, 20)), 0)
    learn(broker, 20)
    newest = folder().newest(KEY)
    plain = RBP(9, seed=1)
    for n in range(20):
        if not keep or not 10 <= n < 16:
            example = CODEC.decode(message(n))
            plain.learn_one(example.features, example.label)
    assert newest.model.supports == plain.supports
    assert newest.metrics["examples"] == (14 if keep else 20)


@pytest.mark.usefixtures("learnt")
def test_it_asks_before_and_takes_times(drift):
    now = datetime.now(UTC).isoformat()
    before = entries(drift)
    shown = back(drift, "--to", before[-1]["id"], input="n\n")
    assert (shown.exit_code, entries(drift)) == (0, before)
    assert "Roll back? [y/N]: n\nnothing was changed" in shown.output
    shown = back(drift, "--to", now)
    assert shown.exit_code == 2
    assert "is the newest: there is nothing to roll back" in shown.output
    shown = back(drift, "--to", before[-1]["id"], input="y\n")
    assert shown.exit_code == 0
    assert "is the newest, start the workers" in shown.output


def test_a_worker_that_was_frozen_continues_from_what_was_rolled_back(drift, broker):
    one = worker(broker, checkpoint_seconds=10**6)
    produce(broker, "t", map(message, range(10)), 0)
    step(one, 10)
    one._save_new()
    target = folder().newest(KEY).id
    produce(broker, "t", map(message, range(10, 15)), 0)
    step(one, 15)
    one._save_new()
    produce(broker, "t", map(message, range(15, 20)), 0)
    step(one, 20)  # of which there is no checkpoint yet
    assert back(drift, "--to", target, "--yes").exit_code == 0
    one._save_new()
    assert learner_of(one) is None
    assert entries(drift)[0]["restores"] == target
    step(one, 20)
    close(one)
    newest = folder().newest(KEY)
    assert newest.metrics["examples"] == 20
    with topics.Reader("t", broker.client_args) as reader:
        logs = {("t", 0): list(reader.read(reader.ends()))}
    runs = read_order(folder().folder(KEY), newest.id)
    learner, _ = relearn(RBP(9, seed=1), logs, runs, one.options, CODEC)
    assert encode(learner.model) == encode(newest.model)


def test_it_is_refused_while_workers_are_in_the_group(drift, learnt, monkeypatch):
    before = entries(drift)
    asked = []

    def members(group, options):
        asked.append((group, "bootstrap_servers" in options))
        return ["worker-1 at 10.0.0.7", "worker-2 at 10.0.0.8"]

    monkeypatch.setattr(topics, "members", members)
    shown = back(drift, "--to", learnt[-1], "--yes")
    assert shown.exit_code == 2
    output = "worker-1 at 10.0.0.7, worker-2 at 10.0.0.8 in the group g: stop its workers first"
    assert output in " ".join(shown.output.split())
    assert asked == [("g", True)]
    assert entries(drift) == before


def test_a_worker_that_comes_while_it_asks_is_seen(drift, learnt, monkeypatch):
    answers = iter([[], ["worker-1 at 10.0.0.7"]])
    monkeypatch.setattr(topics, "members", lambda *_: next(answers))
    shown = back(drift, "--to", learnt[-1], input="y\n")
    assert shown.exit_code == 2
    assert "worker-1 at 10.0.0.7 in the group g" in shown.output


def test_deleted_messages_are_reported(drift, learnt, monkeypatch):
    monkeypatch.setattr(topics.Reader, "beginnings", lambda self: {0: 12, 1: 0})
    shown = back(drift, "--to", learnt[-1], input="n\n")
    assert "t:0 now starts at 12: " in shown.output
    shown = back(drift, "--to", learnt[-1], "--keep-offsets", input="n\n")
    assert "now starts" not in shown.output


def test_a_log_that_ends_before_the_old_offsets_is_reported(drift, learnt, monkeypatch):
    """As after it was truncated: a worker would stop there."""
    drift("adopt", "c", "--topic", "t", "--offset", "0")
    monkeypatch.setattr(topics.Reader, "ends", lambda self: {0: 12, 1: 0})
    shown = back(drift, "--to", learnt[0], input="n\n").output
    assert "t:0 goes on from 0 to 16: 16 messages between count as learnt" in shown
    assert "t:0 now ends at 12, before 16: it was truncated or recreated, and workers st" in shown
    assert "t:1 now" not in shown


def test_one_model_is_rolled_back_at_a_time(drift, learnt):
    other = CheckpointFolder("c")
    epoch, _ = other.claim(("u", None))
    other.save(("u", None), epoch, RBP(9), {("u", 0): 1})
    shown = back(drift, "--to", learnt[-1])
    assert shown.exit_code == 2
    assert "c has several models, give one of c/t-all, c/u-all" in shown.output
    shown = drift("rollback", "c/u-all", "--config", "w.toml", "--to", "1-1")
    assert "is the newest" in shown.output


def test_the_group_of_an_adopted_checkpoint_is_that_of_the_file_or_given(drift, learnt):
    given = Path("w.toml").read_text()
    for more in ((), ("--group", "g")):
        drift("adopt", "c", "--topic", "t")
        if more:
            Path("w.toml").write_text(given.replace('group = "g"\n', ""))
            shown = back(drift, "--to", learnt[0], "--yes")
            assert "does not name its group: give it by --group" in shown.output
        assert back(drift, "--to", learnt[0], "--yes", *more).exit_code == 0
        assert entries(drift)[0]["restores"] == learnt[0]
    drift("adopt", "c", "--topic", "t")
    assert entries(drift)[0]["restores"] is None


# --- learning again ------------------------------------------------------------------------------


def again(drift, *more):
    return drift("relearn", "--config", "w.toml", *more)


def settings(old, new):
    """Change the worker's file."""
    file = Path("w.toml")
    file.write_text(file.read_text().replace(old, new))


@pytest.fixture
def predicted(drift, broker):  # noqa: ARG001 - which makes the folder
    """A folder of a worker that has learnt two partitions, and its topic of predictions."""
    broker.create_topic("out", 1)
    settings("[codec]", 'predictions = "out"\n[codec]')
    one = worker(broker, predictions="out")
    for begin, end in ((0, 40), (40, 100)):
        for p in range(2):
            produce(broker, "t", map(message, range(begin + p, end, 2)), p)
        step(one, end)
        one._save_new()
    close(one)
    return broker


def answers(lines):
    """What was predicted of each message; a checkpoint has another name when it is learnt again."""
    told = (json.loads(line) for line in lines)
    return {(one["partition"], one["offset"]): (one["predicted"], one["score"]) for one in told}


def test_a_model_that_is_learnt_again_is_equal_and_so_are_its_predictions(drift, predicted):
    which = entries(drift)[0]["id"]
    shown = again(drift, "--out", "out.jsonl")
    assert shown.exit_code == 0, shown.output
    said = f"c/t-all: {which}: 100 examples learnt again: the model is equal to the last bit"
    assert said in shown.output
    lines = Path("out.jsonl").read_bytes().splitlines()
    sent = [record.value() for record in everything(predicted, "out")]
    assert len(lines) == len(sent) == 100
    assert answers(lines) == answers(sent)
    shown = again(drift, "--out", "out.jsonl")
    assert (shown.exit_code, "out.jsonl is there: give another name" in shown.output) == (2, True)
    assert Path("out.jsonl").read_bytes().splitlines() == lines
    settings("one_hot = true", 'one_hot = true\nskip = ["id=4"]')
    shown = again(drift, "--out", "other.jsonl")
    assert shown.exit_code == 2
    assert "what was learnt is not what the worker has learnt" in shown.output
    assert not Path("other.jsonl").exists()


@pytest.mark.usefixtures("predicted")
def test_an_older_model_is_learnt_again_also_where_its_file_is_gone(drift):
    [which] = [one["id"] for one in entries(drift) if one["examples"] == 40]
    assert "40 examples learnt again: the model is equal" in again(drift, "--to", which).output
    for file in Path("c/t-all").glob(f"checkpoint-*{which[2:]}.drift"):
        file.unlink()
    shown = again(drift, "--to", which)
    assert (shown.exit_code, "its file is gone" in shown.output) == (0, True), shown.output
    for to, message in (
        ("9-9", "has no order of what checkpoint 9-9 learnt"),
        ("2026-01-01", "has no checkpoint from 2026-01-01 23:59:59.999999+00:00 or before"),
        ("soon", "'soon' is neither a time, as 2026-11-20T08:00, nor the id of a checkpoint"),
    ):
        shown = again(drift, "--to", to)
        assert (shown.exit_code, message in shown.output) == (2, True), shown.output
    assert "100 examples learnt again" in again(drift, "--to", "9999-01-01").output


@pytest.mark.usefixtures("predicted")
def test_a_signature_that_is_not_checked_is_said(drift):
    newest = folder().newest(KEY)
    signed = CheckpointFolder("c", newest.configuration, secret=b"mine")
    unsigned = CheckpointFolder("c", newest.configuration)
    epoch, _ = unsigned.claim(KEY)
    kept = {"digest": newest.digest, "identity": newest.identity, "previous": newest.id}
    signed.save(KEY, epoch, newest.model, newest.offsets, newest.metrics, **kept)
    shown = again(drift)
    assert shown.exit_code == 0, shown.output
    assert f"{epoch}-1 is signed, and that was not checked: give --key-file" in shown.output
    Path("key").write_text("mine")
    shown = again(drift, "--key-file", "key")
    assert (shown.exit_code, "not checked" in shown.output) == (0, False), shown.output
    Path("key").write_text("another")
    assert "not to be trusted" in again(drift, "--key-file", "key").output


@pytest.mark.usefixtures("predicted")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("budget = 9", "budget = 8", "model.budget: 9 in the checkpoint, 8 now"),
        ("one_hot = true", "", "codec.one_hot: true in the checkpoint, absent now"),
        ('topic = "t"', 'topic = "u"', "c/u-all has no checkpoint that can be used"),
        ("one_hot = true", 'key = "id"', "drift checkpoint relearn takes one model"),
        ('predictions = "out"', "", "--out is for predictions, and these options send none"),
    ],
)
def test_other_settings_are_named(drift, old, new, message):
    settings(old, new)
    shown = again(drift, "--out", "out.jsonl")
    assert shown.exit_code == 2
    assert message in shown.output


@pytest.mark.parametrize("model", [Tracker(9), RBP(9, seed=1)], ids=lambda one: type(one).__name__)
def test_a_file_need_not_name_the_model(drift, broker, model):
    """As deploy/worker.toml: parameters that the checkpoint has as JSON are what they were."""
    named = {"class": type(model).__name__, "budget": 9, "seed": model.seed}
    one = Worker(
        model,
        folder(**named),
        broker.client_args,
        WorkerOptions(topic="t", group="g", start="earliest"),
        codec=CODEC,
        consumer=SOON,
    )
    produce(broker, "t", map(message, range(30)), 0)
    step(one, 30)
    close(one)
    settings('[model]\nclass = "RBP"\nbudget = 9\nseed = 1\n', "")
    shown = again(drift)
    assert shown.exit_code == 0, shown.output
    assert "30 examples learnt again: the model is equal to the last bit" in shown.output


@pytest.mark.usefixtures("predicted")
def test_copies_of_the_order_are_as_good(drift):
    copies = Path("copies")
    copies.mkdir()
    (copies / "t-all").mkdir()
    for file in Path("c/t-all").glob("order-*"):
        file.rename(copies / "t-all" / file.name)
    assert "c/t-all has no order of what checkpoint" in again(drift).output
    for folder_of in ("copies", "copies/t-all"):
        assert again(drift, "--orders", folder_of).exit_code == 0
    shown = again(drift, "--orders", "none")
    assert shown.exit_code == 2
    assert "none: cannot be read: No such file or directory" in shown.output


def test_messages_that_are_gone_cannot_be_learnt_again(drift, predicted):
    predicted.delete_records("t", 0, before=12)
    shown = again(drift)
    assert shown.exit_code == 2
    said = "the log of t:0 begins at 12, and the worker began at 0: what is deleted cannot"
    assert said in shown.output


@pytest.mark.usefixtures("predicted")
def test_a_model_that_is_not_what_was_learnt_is_refused(drift):
    newest = folder().newest(KEY)
    newest.model.learn_one({"size": 1.0}, True)
    one = CheckpointFolder("c", newest.configuration)
    epoch, _ = one.claim(KEY)
    kept = {"digest": newest.digest, "identity": newest.identity, "previous": newest.id}
    which = one.save(KEY, epoch, newest.model, newest.offsets, newest.metrics, **kept).id
    shown = again(drift)
    assert shown.exit_code == 2
    assert f"the model differs from that of {which}, though the same was learnt" in shown.output


@pytest.mark.usefixtures("predicted")
@pytest.mark.parametrize(
    ("command", "count"),
    [
        (["adopt", "c", "--topic", "t"], 100),
        (["skip", "c", "t:1:77"], 100),
        (["rollback", "c", "--config", "w.toml", "--yes", "--to"], 40),
    ],
    ids=lambda one: one[0] if isinstance(one, list) else "",
)
def test_what_a_command_has_made_is_learnt_again(drift, command, count):
    if command[-1] == "--to":
        command = [*command, *(one["id"] for one in entries(drift) if one["examples"] == 40)]
    assert drift(*command).exit_code == 0
    shown = again(drift)
    assert shown.exit_code == 0, shown.output
    assert f"{count} examples learnt again: the model is equal to the last bit" in shown.output


@pytest.mark.usefixtures("predicted")
def test_another_topic_of_that_name_is_named(drift, monkeypatch):
    newest = folder().newest(KEY)
    one = CheckpointFolder("c", newest.configuration)
    epoch, _ = one.claim(KEY)
    kept = {"digest": newest.digest, "identity": {"topic_id": "a-1"}, "previous": newest.id}
    one.save(KEY, epoch, newest.model, newest.offsets, newest.metrics, **kept)
    monkeypatch.setattr(topics.Reader, "identity", lambda *_, **__: {"topic_id": "b-2"})
    shown = again(drift)
    assert shown.exit_code == 2
    assert "t is another one than was learnt (topic_id a-1 then, b-2 now)" in shown.output


def test_a_model_that_draws_without_a_seed_is_named(drift, broker):
    settings("seed = 1\n", "")
    one = Worker(
        RBP(9),
        folder(**{"class": "RBP", "budget": 9}),
        broker.client_args,
        WorkerOptions(topic="t", group="g", start="earliest"),
        codec=CODEC,
        consumer=SOON,
    )
    produce(broker, "t", map(message, range(9)), 0)
    step(one, 9)
    close(one)
    assert "RBP draws, and has no seed: a replay may be another model" in again(drift).output


def test_a_history_comes_first(drift, broker, tmp_path):
    tables(tmp_path)
    assert init(drift, "--history", "h.jsonl").exit_code == 0
    first = tmp_path / "first.drift"
    first.write_bytes(next(tmp_path.glob("c/t-all/checkpoint-*")).read_bytes())
    produce(broker, "t", map(message, range(60, 100)), 0)
    learn(broker, 40)
    shown = again(drift)
    assert shown.exit_code == 2
    assert "the model has begun with a history: give the checkpoint that" in shown.output
    shown = again(drift, "--history", "first.drift")
    assert shown.exit_code == 0, shown.output
    assert "40 examples learnt again: the model is equal to the last bit" in shown.output


def test_labels_of_a_separate_topic_are_read_too(drift, broker):
    broker.create_topic("l", 1)
    settings('class = "RBP"\nbudget = 9\nseed = 1', 'class = "Tracker"\nbudget = 9')
    settings("[codec]", '[labels]\ntopic = "l"\ntimestamps = "create"\n[codec]')
    for n in range(30):
        features, label = row(n)
        told = {"features": features, "id": n}
        produce(broker, "t", [json.dumps(told).encode()], n % 2)
        produce(broker, "l", [json.dumps({"id": n, "label": label}).encode()], 0)
    one = Worker(
        Tracker(9),
        folder(**{"class": "Tracker", "budget": 9, "late": True}),
        broker.client_args,
        WorkerOptions(topic="t", group="g", labels="l", start="earliest", timestamps="create"),
        codec=CODEC,
    )
    step(one, 60)
    close(one)
    shown = again(drift)
    assert shown.exit_code == 0, shown.output
    assert "30 examples learnt again: the model is equal to the last bit" in shown.output


def test_a_shadow_is_promoted_again_where_it_was(drift, broker):
    settings("[worker]", '[models.shadow]\nclass = "LBP"\nbudget = 30\n[worker]')
    models = {"topic": "t", **configuration({"class": "RBP", "budget": 9, "seed": 1})}
    models |= configuration({"class": "LBP", "budget": 30}, "shadow")
    for begin, end in ((0, 40), (40, 70)):
        one = Worker(
            RBP(9, seed=1),
            CheckpointFolder("c", models),
            broker.client_args,
            WorkerOptions(topic="t", group="g", start="earliest"),
            codec=CODEC,
            consumer=SOON,
            shadow=LBP(30),
        )
        produce(broker, "t", map(message, range(begin, end)), 0)
        step(one, end)
        close(one)
        if begin == 0:
            assert CliRunner().invoke(app, ["promote", "c", "--yes"]).exit_code == 0
    assert isinstance(CheckpointFolder("c").newest(KEY).model, LBP)
    shown = again(drift)
    assert shown.exit_code == 0, shown.output
    assert "70 examples learnt again: the model is equal to the last bit" in shown.output
