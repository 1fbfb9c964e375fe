"""Workers with models of keys against the broker inside the process: each example exactly once."""

import json
import logging
import shutil
import sqlite3
from copy import deepcopy
from functools import cache
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from drift.cli import app
from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.checkpoints import files
from drift.consumers.checkpoints.files import ModelFolder
from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.consumers.checkpoints.rollback import plan
from drift.consumers.codec import Example
from drift.consumers.exporter import Exporter
from drift.consumers.json_codec import JsonCodec
from drift.consumers.keyed import name_unused
from drift.consumers.keyed_models import KeyedModels
from drift.consumers.records import ClaimId, Message, Position
from drift.errors import CheckpointError, MessageError, UnavailableError
from drift.models import LBP
from drift.models._state.codec import encode
from drift.testing import Abort, Aborted
from tests.consumers.stepping import close, kill, until

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from drift.consumers.worker import Worker
from tests.consumers.topics import everything, send, with_topics
from tests.crash_points import CHECKPOINT_POINTS, CLAIM_POINTS, MODELS_POINTS

pytestmark = pytest.mark.usefixtures("stores")

CODEC = JsonCodec(key="customer")
COUNT = 66
POISON = {20: b'{"features": {"a": 1}, "label": true}', 33: b"{", 60: b'{"customer": [1]}'}


def log(partition):
    """Messages of six customers of a partition, some in a row of each; three are poison."""
    made = []
    for n in range(COUNT):
        key = f"c{partition}-{(n // 3) ** 2 % 11 % 7}"
        features = {f"w{(7 * n + k * k) % 13}": 1.0 + k for k in range(3)}
        label = None if n % 17 == 3 else (len(key) + n // 27 + n) % 3 == 0
        value = CODEC.encode(Example(features, label, key=key))
        at = Position("t", partition, n)
        made.append(Message(at, None, POISON.get(n, value), (), 10_000 + 40 * n))
    return made


LOGS = {("t", partition): log(partition) for partition in range(2)}


@cache
def loop(place, prior):
    """What plain loops learn: the topic's model, the keys' models, and what was predicted."""
    topic, own, predicted = LBP(budget=5), {}, {}
    for message in LOGS[place]:
        try:
            x, y, *_, key = CODEC.decode(message.value)
        except MessageError:
            continue
        if key is None:
            continue
        predicted[str(message.position)] = key, own.get(key, topic).predict_one(x)
        if y is None:
            continue
        if key not in own:
            own[key] = deepcopy(topic) if prior else LBP(budget=5)
        own[key].learn_one(x, y)
        if prior:
            topic.learn_one(x, y)
    return topic, own, predicted


def worker(broker, folder, group="g", *, prior=True, most=3, **more):
    options = {"start": "earliest", "predictions": "out", "dead_letters": "dead"}
    options |= {"checkpoint_every": 27} | more
    consumer = {"session_timeout_ms": 2000, "heartbeat_interval_ms": 200, "max_poll_records": 20}
    consumer |= options.pop("consumer", {})
    one = Worker(
        LBP(budget=5),
        CheckpointFolder(folder, keep=3),
        broker.client_args,
        WorkerOptions(topic="t", group=group, prior=prior, max_models=most, **options),
        codec=CODEC,
        consumer=consumer,
        producer={"linger_ms": 60_000},
    )
    one._identity = one._consumer.identity  # without the group, which is another each time
    return one


def offsets(*workers):
    """How far workers are together."""
    found = {}
    for one in workers:
        for claim in one._claims.values():
            found |= claim.learner.offsets
    return found


END = dict.fromkeys(LOGS, COUNT)


@pytest.fixture
def topics(broker):
    return with_topics(broker, LOGS)


def assert_exact(path, *, prior=True):
    """Checkpoints and files have the models of plain loops."""
    for place in LOGS:
        topic, own, _ = loop(place, prior)
        folder = CheckpointFolder(path)
        epoch, found = folder.claim(place)
        assert found.offsets == {place: COUNT}
        assert encode(found.model) == encode(topic)
        store = ModelStore(folder.folder(place), epoch, found.models)
        models = KeyedModels(store, 99)
        assert {key: encode(models.get(key)) for key in own} == {
            key: encode(model) for key, model in own.items()
        }
        assert models.count == len(own)
        models.close()


def assert_published(broker, *, prior=True):
    """Each prediction was sent, whether once or again, and each dead letter."""
    sent = [(r.key().decode(), json.loads(r.value())) for r in everything(broker, "out")]
    expected = {}
    for place in LOGS:
        expected |= loop(place, prior)[2]
    assert {(at, body["key"], body["predicted"]) for at, body in sent} == {
        (at, *of) for at, of in expected.items()
    }
    letters = {
        (int(h["drift.partition"]), int(h["drift.offset"]))
        for h in (dict(letter.headers()) for letter in everything(broker, "dead"))
    }
    assert letters == {(partition, offset) for partition in range(2) for offset in POISON}


@pytest.mark.parametrize("prior", [True, False])
def test_each_partition_has_a_checkpoint_and_models_of_its_own(topics, tmp_path, prior):
    one = worker(topics, tmp_path, prior=prior)
    until(one, lambda: offsets(one) == END)
    assert sorted(one._claims) == [("t", 0), ("t", 1)]
    first, second = (claim.learner for claim in one._claims.values())
    assert first.models.most == second.models.most == 1  # of three
    assert len(first.models) == len(second.models) == 1
    with Exporter(one.metrics) as exporter:
        labels = {"model": "LBP", "group": "g", "topic": "t", "partition": "1"}
        shown = exporter.registry.get_sample_value
        assert shown("drift_models", labels) == 6
        assert shown("drift_models_in_memory", labels) == 1
        assert shown("drift_model_loads_total", labels) > 6
    close(one)
    folders = CheckpointFolder(tmp_path).path.iterdir()
    assert sorted(path.name for path in folders) == ["t-0", "t-1", "t-partitions"]
    assert_exact(tmp_path, prior=prior)
    assert_published(topics, prior=prior)


FIRST = [*CLAIM_POINTS, "models.claimed", "checkpoint.begun", "models.saved", "checkpoint.synced"]
LATER = ["message.taken", "outputs.flushed", *MODELS_POINTS[1:], *CHECKPOINT_POINTS]


STEPS = [*((point, 1) for point in FIRST), *((point, 5) for point in LATER)]


@pytest.mark.parametrize(("point", "count"), STEPS)
def test_a_crash_at_any_step_loses_and_doubles_nothing(topics, tmp_path, monkeypatch, point, count):
    monkeypatch.setattr(ModelStore, "at_once", 2)
    one = worker(topics, tmp_path)
    with Abort(point, count=count), pytest.raises(Aborted):
        until(one, lambda: False)
    kill(one)
    other = worker(topics, tmp_path, "later", most=100)
    until(other, lambda: offsets(other) == END)
    close(other)
    assert_exact(tmp_path)
    assert_published(topics)


def test_two_workers_share_the_partitions(broker, tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    broker.create_topic("t", partitions=2)
    for topic in ("out", "dead"):
        broker.create_topic(topic)
    half = [message for log in LOGS.values() for message in log[: COUNT // 2]]
    send(broker, half)

    def member():
        return worker(broker, tmp_path, most=100, consumer=broker.group_args)

    one = member()
    until(one, lambda: offsets(one) == dict.fromkeys(LOGS, COUNT // 2))
    other = member()

    def shared():
        other.step(0.1)
        return len(one._claims) == len(other._claims) == 1

    until(one, shared)
    assert one._claims.keys() | other._claims.keys() == set(LOGS)
    send(broker, [message for log in LOGS.values() for message in log[COUNT // 2 :]])

    def done():
        other.step(0.1)
        return offsets(one, other) == END

    until(one, done)
    close(one)
    close(other)
    assert_exact(tmp_path)
    assert_published(broker)


def test_signed_models_are_not_taken_without_their_key(topics, tmp_path):
    one = worker(topics, tmp_path)
    one.folder.secret = b"secret" * 6
    until(one, lambda: sum(offsets(one).values()) > 60)
    close(one)
    other = worker(topics, tmp_path, "later")
    with pytest.raises(CheckpointError, match="is signed: give the file of its key, --key-file"):
        until(other, lambda: offsets(other) == END)
    kill(other)


def test_a_worker_frozen_before_it_opens_the_models_goes_on(topics, tmp_path, monkeypatch):
    """Another one has claimed them, too."""
    one = worker(topics, tmp_path)
    claims = []

    def late(path, epoch, lineage=(), *, secret=None):
        if not claims:
            claims.append(path)
            folder = CheckpointFolder(tmp_path)
            place = next(place for place in LOGS if folder.folder(place) == path)
            newer, newest = folder.claim(place)
            ModelStore(path, newer, () if newest is None else newest.models).close()
        return ModelStore(path, epoch, lineage, secret=secret)

    monkeypatch.setattr("drift.consumers.takeover.ModelStore", late)
    until(one, lambda: offsets(one) == END)
    close(one)
    assert_exact(tmp_path)


def test_a_worker_that_was_fenced_takes_over_anew(topics, tmp_path, monkeypatch, caplog):
    """Whether it finds out as a model leaves its memory, or by its checkpoint."""
    monkeypatch.setattr(ModelStore, "at_once", 1)
    one = worker(topics, tmp_path, most=1, checkpoint_every=10**6, checkpoint_seconds=10**6)
    until(one, lambda: sum(offsets(one).values()) > 40)
    for place in LOGS:
        folder = CheckpointFolder(tmp_path)
        epoch, checkpoint = folder.claim(place)
        ModelStore(folder.folder(place), epoch, checkpoint.models).close()
    until(one, lambda: offsets(one) == END)
    close(one)
    assert caplog.text.count("claimed again since") == 2
    assert_exact(tmp_path)


def test_a_worker_that_was_fenced_of_one_model_saves_the_others_as_it_leaves(topics, tmp_path):
    one = worker(topics, tmp_path, checkpoint_every=1_000, checkpoint_seconds=3600.0)
    until(one, lambda: offsets(one) == END)
    fenced, other = one._claims
    CheckpointFolder(tmp_path).claim(fenced)
    one._consumer.consumer._subscription.assignment.clear()  # as kafka-python has it by then
    one._leave()
    assert CheckpointFolder(tmp_path).newest(other).offsets == {other: COUNT}
    kill(one)


def test_a_file_that_another_one_holds_is_waited_for(topics, tmp_path, monkeypatch, caplog):
    """As one that was frozen while it wrote a row."""
    monkeypatch.setattr("drift.consumers.checkpoints.keyed_file._PATIENCE", 0.1)
    folder = CheckpointFolder(tmp_path).folder(("t", 0))
    folder.mkdir()
    holder = sqlite3.connect(folder / "models.sqlite", isolation_level=None)
    holder.execute("begin exclusive")
    one = worker(topics, tmp_path)
    until(one, lambda: offsets(one).get(("t", 1)) == COUNT and one._refused)
    assert list(one._claims) == [("t", 1)]  # which goes on
    assert "models.sqlite: database is locked; tried again for 30 s" in caplog.text
    assert "database is locked" in "; ".join(one.metrics.problems())
    holder.execute("rollback")
    holder.close()
    until(one, lambda: offsets(one) == END)
    close(one)
    assert_exact(tmp_path)


def test_each_partition_that_cannot_be_taken_over_says_why(topics, tmp_path, monkeypatch, caplog):
    tries, claim = {"t-0": 0, "t-1": 0}, ModelFolder.claim

    def refused(files, owner):
        name = files.path.name
        tries[name] += 1
        if tries[name] < 3:
            raise CheckpointError(f"{name} is away") from OSError()
        return claim(files, owner)

    monkeypatch.setattr(ModelFolder, "claim", refused)
    one = worker(topics, tmp_path)
    until(one, lambda: offsets(one) == END)
    close(one)
    monkeypatch.undo()
    assert_exact(tmp_path)
    for name in tries:
        assert caplog.text.count(f"{name} is away; tried again for 30 s") == 1


def test_a_partition_that_goes_takes_its_trouble_along(topics, tmp_path):
    """Or the worker that keeps the other one is never ready again."""
    one = worker(topics, tmp_path, checkpoint_every=10**6, checkpoint_seconds=10**6)
    until(one, lambda: offsets(one) == END)
    for place in LOGS:
        one._refuse_save(one._claims[place], CheckpointError(f"{place}: no space left"))
    assert len(one.metrics.problems()) == 2
    one._lose([("t", 0)])
    one.step(0.1)
    assert one.metrics.problems() == ["no checkpoint: ('t', 1): no space left"]
    close(one)


def test_a_model_that_was_rolled_back_learns_again(topics, tmp_path):
    one = worker(topics, tmp_path)
    until(one, lambda: offsets(one) == END)
    close(one)
    for place in LOGS:
        files = CheckpointFolder(tmp_path)._files(place)
        epoch, sequence = files.listing().checkpoints[0]
        plan(files, f"{epoch}-{sequence}").write(None)
    other = worker(topics, tmp_path, "later")
    until(other, lambda: offsets(other) == END)
    close(other)
    assert_exact(tmp_path)


def test_a_running_worker_drops_a_key_that_is_deleted(topics, tmp_path):
    """Messages sent before are not learnt again, though their offsets are read again."""
    one = worker(topics, tmp_path, checkpoint_seconds=10**6)
    until(one, lambda: offsets(one) == END)
    deleted = CliRunner().invoke(app, ["keys", str(tmp_path), "delete", "c0-1", "--yes"])
    assert deleted.exit_code == 0
    value = CODEC.encode(Example({"a": 1.0}, True, key="n"))
    send(topics, [Message(Position("t", 0, COUNT), None, value, (), 20_000)])
    until(one, lambda: offsets(one)["t", 0] == COUNT + 1)
    one._save_new()
    claim = one._claims["t", 0]
    assert claim.learner.models.get("c0-1") is None
    assert claim.learner.models.count == len(loop(("t", 0), True)[1])  # one less, and a new one
    close(one)
    listed = CliRunner().invoke(app, ["keys", str(tmp_path)]).output
    assert "  c0-2  " in listed
    assert "c0-1" not in listed
    files = CheckpointFolder(tmp_path)._files(("t", 0))
    plan(files, "{}-{}".format(*files.listing().checkpoints[0])).write(None)
    other = worker(topics, tmp_path, "later")
    until(other, lambda: offsets(other).get(("t", 0)) == COUNT + 1)
    assert other._claims["t", 0].learner.models.get("c0-1") is None
    close(other)


def test_the_command_takes_a_key_by_option_or_file(tmp_path):
    config = tmp_path / "worker.toml"
    config.write_text(
        '[worker]\ntopic = "t"\ngroup = "g"\n[kafka]\nbootstrap_servers = "localhost:1"\n'
        '[keyed]\nmax_models = 9\n[labels]\ntopic = "l"\n'
    )
    given = ["consume", "--config", str(config), "--checkpoints", str(tmp_path / "c")]
    refused = CliRunner().invoke(app, given)
    assert "[keyed] has max_models and no key: give --keyed, or key in [codec]" in refused.output
    refused = CliRunner().invoke(app, [*given, "--keyed", "customer"])
    assert "labels have to be in the messages, without [labels] topic" in refused.output
    text = config.read_text().replace('[labels]\ntopic = "l"', '[codec]\nkey = "customer"')
    config.write_text(text)
    served = CliRunner().invoke(app, ["serve", *given[1:]])
    assert "serving takes one model, and each key has one of its own: leave --k" in served.output


@pytest.mark.parametrize("start", ["latest", None])
def test_a_partition_that_is_added_is_learnt_from_its_first_message(
    topics, tmp_path, caplog, start
):
    one = worker(topics, tmp_path, start="latest")
    until(one, lambda: len(one._claims) == 2)
    assert offsets(one) == END
    close(one)
    assert (tmp_path / "t-partitions").read_bytes() == b"2\n"
    (tmp_path / "t-partitions").write_bytes(b"1\n")  # the second one came after that
    shutil.rmtree(tmp_path / "t-1")
    later = worker(topics, tmp_path, "later", start=start)
    until(later, lambda: offsets(later) == END)
    learners = {key: claim.learner for key, claim in later._claims.items()}
    assert learners["t", 0].metrics.examples == 0
    assert learners["t", 1].metrics.examples > COUNT // 2
    close(later)
    assert caplog.text.count("t:1 was added after the first start: keys whose messages ") == 1
    assert "t:0 was added" not in caplog.text


def test_models_of_partitions_that_the_topic_no_longer_has_are_named(topics, tmp_path, caplog):
    """As of a topic of four that was made anew with two."""
    one = worker(topics, tmp_path)
    until(one, lambda: offsets(one) == END)
    close(one)
    for number in (2, 3):
        shutil.copytree(tmp_path / "t-1", tmp_path / f"t-{number}")
    (tmp_path / "t-3" / "models.sqlite").unlink()  # nobody knows how many it had
    name_unused(CheckpointFolder(tmp_path), "t", 0)  # as of a moment without metadata
    assert "no longer has" not in caplog.text
    later = worker(topics, tmp_path, "later")
    until(later, lambda: offsets(later) == END)
    close(later)
    count = len(loop(("t", 1), True)[1])
    said = f"{tmp_path}: {count} models in t-2, t-3, partitions that t no longer has. Their keys, "
    assert caplog.text.count(said) == 1
    assert "Give the topic 4 partitions to use them again, or remove these folders" in caplog.text


def test_how_many_partitions_a_topic_had_at_first_is_noted_once(tmp_path):
    folder = CheckpointFolder(tmp_path)
    assert [folder.first_partitions("t", n) for n in (2, 5)] == [2, 2]
    assert (tmp_path / "t-partitions").stat().st_mode & 0o777 == 0o600
    epoch, _ = folder.claim(("t", 3))
    folder.save(("t", 3), epoch, LBP(2), {("t", 3): 1})
    (tmp_path / "t-partitions").unlink()
    assert folder.first_partitions("t", 9) == 4  # those that have checkpoints
    with pytest.raises(CheckpointError, match="t-partitions: cannot be written: No such file"):
        CheckpointFolder(tmp_path / "other").first_partitions("t", 2)


def test_of_workers_that_start_at_once_the_first_notes_how_many_there_were(tmp_path, monkeypatch):
    """The other one has learnt its first partition since this one has looked for the note."""
    first, second = CheckpointFolder(tmp_path), CheckpointFolder(tmp_path)
    read = Path.read_bytes

    def overtaken(_):
        monkeypatch.setattr(Path, "read_bytes", read)
        assert first.first_partitions("t", 4) == 4
        epoch, _ = first.claim(("t", 0))
        first.save(("t", 0), epoch, LBP(2), {("t", 0): 1})
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_bytes", overtaken)
    assert second.first_partitions("t", 4) == 4
    assert (tmp_path / "t-partitions").read_bytes() == b"4\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t-0", "t-partitions"]


def test_of_a_topic_that_is_gone_no_number_of_partitions_is_noted(topics, tmp_path, monkeypatch):
    one = worker(topics, tmp_path / "c")
    with monkeypatch.context() as patch:
        patch.setattr(one._consumer, "partitions", lambda _: 0)
        with pytest.raises(UnavailableError, match="there is no topic t, or this user may not see"):
            one._is_younger(ClaimId("t", 0))
    until(one, lambda: len(one._claims) == 2)
    close(one)
    assert (tmp_path / "c" / "t-partitions").read_bytes() == b"2\n"


def test_no_wrong_number_of_first_partitions_is_noted(tmp_path, monkeypatch):
    folder, noted = CheckpointFolder(tmp_path), tmp_path / "t-partitions"
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(CheckpointError, match="t-partitions: cannot be written: No space"):
            folder.first_partitions("t", 4)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", Mock(side_effect=PermissionError(13, "Permission denied")))
        with pytest.raises(CheckpointError, match=f"{tmp_path}: cannot be read: Permission denied"):
            folder.first_partitions("t", 4)
    assert list(tmp_path.iterdir()) == []
    assert folder.first_partitions("t", 4) == 4
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", Mock(side_effect=OSError(5, "Input/output error")))
        with pytest.raises(CheckpointError, match="t-partitions: cannot be read: Input/output"):
            folder.first_partitions("t", 9)
    for damage in (b"", b"0\n", b"\0\0"):
        noted.write_bytes(damage)
        said = "t-partitions has no number: write how many partitions t had when its group started"
        with pytest.raises(CheckpointError, match=said):
            folder.first_partitions("t", 9)
        assert noted.read_bytes() == damage
