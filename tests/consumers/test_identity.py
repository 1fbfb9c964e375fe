"""A checkpoint continues with the log that it was learnt from, and with no other."""

import os
import re
import uuid

import pytest
from click.testing import CliRunner

from drift.cli import app
from drift.consumers import CheckpointFolder, WorkerOptions, read_topic
from drift.consumers.checkpoints.agreement import check_identity
from drift.consumers.codec import Example, codec_settings
from drift.consumers.json_codec import JsonCodec
from drift.consumers.order import Clock, Order
from drift.consumers.records import Gap, Message, Position
from drift.errors import CheckpointError, ConfigurationError, ConsumerError
from drift.models import LBP
from drift.models._state.codec import encode
from drift.testing import produce
from tests.consumers.stepping import claim_of, close, learner_of, run, until
from tools.kafka import broker as tool

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

import kafka
from kafka.errors import LogTruncationError

from drift.consumers.client.topics import create  # after the check that there is a client
from drift.consumers.worker import Worker


class Other(JsonCodec):
    """A codec of a user's own."""


FIRST, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)


def values(count, *, third=True):
    encoded = JsonCodec().encode
    return [encoded(Example({f"w{n % 7}": 1.0 + n}, (n % 3 == 0) == third)) for n in range(count)]


def worker(options, folder, *, topic="t", topic_id=None, group="g", codec=None, **more):
    one = Worker(
        LBP(budget=9),
        CheckpointFolder(folder),
        options,
        WorkerOptions(topic=topic, group=group, start="earliest", **more),
        codec=codec,
        consumer={"session_timeout_ms": 1500, "heartbeat_interval_ms": 200},
    )
    if topic_id is not None:
        name(one, topic_id)
    return one


def name(one, topic_id):
    """Have the broker give the topic an id, which the mock cluster does not."""
    one._consumer.consumer._cluster.topic_id = lambda topic: topic_id


def work(one, offset):
    """Step until one partition is learnt up to an offset."""
    until(one, lambda: learner_of(one) and offset in learner_of(one).offsets.values())
    one._end_save(claim_of(one))


def adopt(folder, *more, **given):
    return CliRunner().invoke(app, ["checkpoint", "adopt", str(folder), *more], **given)


@pytest.fixture
def learnt(broker, tmp_path):
    """A folder whose checkpoint of ten messages is of the first topic."""
    broker.create_topic("t")
    produce(broker, "t", values(10))
    one = worker(broker.client_args, tmp_path, topic_id=FIRST, group="left")
    # As if of "g", whose next member has no session to wait for.
    one._identity = lambda: {**one._consumer.identity(), "group": "g"}
    work(one, 10)
    close(one)
    return tmp_path


def test_a_folder_is_one_groups_and_the_other_group_is_told(broker, learnt):
    before = {path: path.read_bytes() for path in learnt.rglob("*") if path.is_file()}
    other = worker(broker.client_args, learnt, topic_id=FIRST, group="h")
    with pytest.raises(
        CheckpointError, match=r"another group learns(.|\n)*g in the ch.*h now"
    ) as raised:
        until(other, lambda: False)
    close(other)
    assert {path: path.read_bytes() for path in learnt.rglob("*") if path.is_file()} == before
    assert str(raised.value).endswith(f"by drift checkpoint adopt {learnt} --topic t")
    assert adopt(learnt, "--topic", "t").exit_code == 0
    other = worker(broker.client_args, learnt, topic_id=FIRST, group="h")
    produce(broker, "t", values(2))
    work(other, 12)
    close(other)
    assert newest(learnt).identity["group"] == "h"


def newest(folder):
    return CheckpointFolder(folder).newest(("t", None))


def test_another_topic_of_the_name_is_refused_before_anything_is_claimed(broker, learnt):
    before = sorted(path.name for path in (learnt / "t-all").iterdir())
    assert newest(learnt).identity["topic_id"] == str(FIRST)
    other = worker(broker.client_args, learnt, topic_id=OTHER)
    message = (
        rf"t-all: .*\n.*topic_id: {FIRST} in the checkpoint, {OTHER} now\nThe topic was recreated: "
        rf".* all of it be learnt by .* adopt {learnt} --topic t --offset 0$"
    )
    with pytest.raises(CheckpointError, match=message):
        run(other)
    assert sorted(path.name for path in (learnt / "t-all").iterdir()) == before


def test_with_late_labels_an_offset_is_proposed_of_each_topic_that_is_another(tmp_path):
    """Without topic ids it may be either of the two."""
    before = {"topic_id": "1", "labels_topic_id": "2", "cluster_id": "c"}
    for changed, names in (
        ({"labels_topic_id": "3"}, ["l"]),
        ({"topic_id": "3"}, ["t"]),
        ({"cluster_id": "3"}, ["t", "l"]),
    ):
        commands = " and ".join(
            f"drift checkpoint adopt {tmp_path.parent} --topic {name} --offset 0" for name in names
        )
        said = rf"^{tmp_path}: learnt from another {' and '.join(names)}\n(.|\n)*by {commands}"
        with pytest.raises(CheckpointError, match=said):
            check_identity(tmp_path, "t", before, before | changed, labels="l")


def test_on_another_cluster_both_topics_are_adopted_one_by_one(tmp_path):
    """Where each is given its offset: the first leaves what the other was learnt from."""
    folder, places = CheckpointFolder(tmp_path, {"labels": "l"}), [("t", 0), ("l", 0)]
    before = {"topic_id": "1", "labels_topic_id": "2", "cluster_id": "c"}
    now = {"topic_id": "3", "labels_topic_id": "4", "cluster_id": "d"}
    epoch, _ = folder.claim(("t", None))
    folder.save(("t", None), epoch, LBP(9), dict.fromkeys(places, 8), identity=before)
    for topic, left in (("t", {"labels_topic_id": "2", "cluster_id": "c"}), ("l", {})):
        with pytest.raises(CheckpointError, match=r"topics go on there .* --topic t$"):
            check_identity(tmp_path / "t-all", "t", newest(tmp_path).identity, now, labels="l")
        assert adopt(tmp_path, "--topic", topic, "--offset", "0").exit_code == 0
        assert newest(tmp_path).identity == left


def test_a_replica_of_a_recreated_topic_waits_for_its_workers(tmp_path):
    before = {"topic_id": "1", "cluster_id": "c"}
    with pytest.raises(CheckpointError, match=r"recreated: the workers .* once they learn$"):
        check_identity(tmp_path, "t", before, before | {"topic_id": "3"}, follows=True)


def test_without_topic_ids_clusters_are_distinguished(broker, learnt):
    one = worker(broker.client_args, learnt)
    one._consumer.consumer._cluster.topic_id = lambda topic: uuid.UUID(int=0)
    one._consumer.refresh()
    assert list(one._consumer.identity()) == ["cluster_id"]
    work(one, 10)
    identity = newest(learnt).identity
    one._consumer.identity = lambda: {"cluster_id": "another"}
    message = (
        rf"{identity['cluster_id']} .*, another now\nThe topic was recreated, or is on another .*"
        rf" --offset 0\. If its log goes on there at the old offsets, accept it by .* {learnt} "
        r"--topic t$"
    )
    with pytest.raises(CheckpointError, match=message):
        one.step(0.1)
    one._claims.clear()
    close(one)


def test_a_topic_that_changes_under_a_worker_is_not_learnt(broker, learnt):
    one = worker(broker.client_args, learnt, topic_id=FIRST)
    work(one, 10)
    name(one, OTHER)
    produce(broker, "t", values(10))
    with pytest.raises(CheckpointError, match="learnt from another t"):
        run(one)
    assert newest(learnt).offsets == {("t", 0): 10}


def test_a_topic_that_changed_since_the_last_look_is_not_saved(broker, learnt, monkeypatch):
    one = worker(broker.client_args, learnt, topic_id=FIRST, checkpoint_seconds=10**6)
    work(one, 10)
    produce(broker, "t", values(10))
    work(one, 20)
    monkeypatch.setattr(one._consumer, "refresh", lambda: name(one, OTHER))
    with pytest.raises(CheckpointError, match="learnt from another t"):
        close(one)
    assert newest(learnt).offsets == {("t", 0): 10}


def test_a_checkpoint_of_no_known_topic_continues_once_with_a_warning(broker, learnt, caplog):
    folder = CheckpointFolder(learnt)
    epoch, checkpoint = folder.claim(("t", None))
    folder.save(("t", None), epoch, checkpoint.model, checkpoint.offsets)
    for _ in range(2):
        one = worker(broker.client_args, learnt, topic_id=OTHER)
        work(one, 10)
        close(one)
    assert len(re.findall(f"names no topic and group, they are .*{OTHER}", caplog.text)) == 1
    assert newest(learnt).identity["topic_id"] == str(OTHER)


def test_another_codec_is_refused_unless_it_is_adopted(broker, learnt):
    codec = Other(drop=["features.w1"], labels={"id": "n"}, max_bytes=5_000)
    said = (
        r'codec: "JsonCodec" in the checkpoint, "tests.consumers.test_identity:Other" now\n'
        r' *codec\.drop: absent in the checkpoint, \["features\.w1"\] now\n'
        r' *codec\.labels: absent in the checkpoint, \{"id": "n"\} now\n'
    )
    one = worker(broker.client_args, learnt, topic_id=FIRST, codec=codec)
    with pytest.raises(ConfigurationError, match=rf"{said}.*adopt {learnt}/t-all --codec"):
        work(one, 10)
    close(one)
    before = newest(learnt)
    assert before.configuration == {"codec": "JsonCodec"}
    assert adopt(learnt, "--topic", "t", "--codec").exit_code == 0
    assert newest(learnt).identity == before.identity
    one = worker(broker.client_args, learnt, topic_id=FIRST, codec=codec)
    work(one, 10)
    close(one)
    assert newest(learnt).configuration == codec_settings(codec)
    assert newest(learnt).metrics["examples"] == 10
    refused = adopt(learnt, "--topic", "t", "--codec", "--offset", "3")
    assert "--codec leaves the offsets as they are" in refused.output
    refused = adopt(learnt, "--topic", "t", "--codec", "--partition", "0")
    assert "--codec leaves the offsets as they are" in refused.output
    assert newest(learnt).offsets == {("t", 0): 10}


def test_what_only_refuses_messages_may_change():
    codec = JsonCodec(max_bytes=5_000, require_label=True, classes=[True, False], one_hot=True)
    assert codec_settings(codec) == {"codec": "JsonCodec", "codec.one_hot": True}


def test_a_checkpoint_without_a_codec_takes_one_once_with_a_warning(broker, learnt, caplog):
    assert adopt(learnt, "--topic", "t", "--codec").exit_code == 0
    codec = JsonCodec(label="label", one_hot=True)
    for _ in range(2):
        one = worker(broker.client_args, learnt, topic_id=FIRST, codec=codec)
        work(one, 10)
        close(one)
    said = (
        r"names no codec: it continues with this one, \[codec\] class = .JsonCodec., label = .labe"
    )
    assert len(re.findall(said, caplog.text)) == 1
    with pytest.raises(
        ConfigurationError, match=r'codec\.label: "label" in the checkpoint, absent n'
    ):
        work(worker(broker.client_args, learnt, topic_id=FIRST), 10)


@pytest.mark.parametrize("offset", [None, 0])
def test_a_topic_is_adopted_where_it_is_named(broker, learnt, offset):
    more = [] if offset is None else ["--offset", str(offset)]
    refused = adopt(learnt, *more, input="news\n")
    assert (refused.exit_code, newest(learnt).offsets) == (2, {("t", 0): 10})
    assert f"learnt from topic_id {FIRST}, cluster_id" in refused.output.replace("\n", " ")
    assert "has no checkpoint of news: nothing was changed" in refused.output
    adopted = adopt(learnt, *more, input="t\n")
    assert adopted.exit_code == 0
    says_what_is_left_out = "before t:0 at 10 is not read" in adopted.output.replace("\n", " ")
    assert says_what_is_left_out == (offset is None)
    assert newest(learnt).offsets == {("t", 0): 10 if offset is None else 0}
    one = worker(broker.client_args, learnt, topic_id=OTHER)
    work(one, 10)
    close(one)
    assert newest(learnt).identity["topic_id"] == str(OTHER)
    assert newest(learnt).metrics["examples"] == (10 if offset is None else 20)


@pytest.mark.parametrize("offset", [None, 0])
def test_an_adopted_checkpoint_has_the_times_of_its_offsets(tmp_path, offset):
    """Else one partition is learnt after the other, whatever the times of their records."""
    folder, hour = CheckpointFolder(tmp_path), 3_600_000
    epoch, _ = folder.claim(("t", None))
    places = ("t", 0), ("t", 1)
    clocks = dict.fromkeys(places, Clock(10 * hour))
    folder.save(("t", None), epoch, LBP(budget=9), dict.fromkeys(places, 50), clocks=clocks)
    given = [] if offset is None else ["--offset", str(offset)]
    assert adopt(tmp_path, "--topic", "t", *given).exit_code == 0
    found = folder.newest(("t", None))
    order, begin = Order(), 10 * hour if offset is None else 10
    for place, times in zip(places, ([0, 20], [10, 30]), strict=True):
        order.start(place, found.clocks.get(place, Clock()))
        records = [
            Message(Position(*place, found.offsets[place] + n), None, b"", (), begin + time)
            for n, time in enumerate(times)
        ]
        order.add(place, records, read_at=1.0)
    taken = [str(message.position) for message in order.take(lambda _: 2.0)]
    at = found.offsets[places[0]]
    assert taken == [f"t:0:{at}", f"t:1:{at}", f"t:0:{at + 1}", f"t:1:{at + 1}"]
    assert found.clocks == (clocks if offset is None else {})


def test_a_partition_is_adopted_alone(tmp_path):
    """As its log was truncated: the others have been learnt up to their offsets."""
    folder = CheckpointFolder(tmp_path)
    identity = {"topic_id": str(FIRST), "group": "g"}
    for key, parts in ((("t", None), (0, 1)), (("k", 0), (0,)), (("k", 1), (1,))):
        places = [(key[0], part) for part in parts]
        epochs, skips = dict.fromkeys(places, 4), [Position(*place, 90) for place in places]
        given = {"identity": identity, "leader_epochs": epochs, "skips": skips}
        epoch, _ = folder.claim(key)
        folder.save(key, epoch, LBP(9), dict.fromkeys(places, 80), **given)
    refused = adopt(tmp_path, "--topic", "t", "--partition", "2", "--offset", "0")
    assert "has no checkpoint of t:2: nothing was changed" in refused.output.replace("\n", " ")
    adopted = adopt(tmp_path, "--topic", "t", "--partition", "1", "--offset", "0")
    assert "t-all: continues with t:1 as it is now" in adopted.output.replace("\n", " ")
    one = folder.newest(("t", None))
    assert (one.offsets, one.leader_epochs) == ({("t", 0): 80, ("t", 1): 0}, {("t", 0): 4})
    assert (one.identity, one.skips) == (identity, [("t", 0, 90)])
    adopt(tmp_path, "--topic", "k", "--partition", "1")  # it has grown beyond the old offset
    assert [folder.newest(("k", n)).id for n in (0, 1)] == ["1-1", "2-1"]
    one = folder.newest(("k", 1))
    assert (one.offsets, one.leader_epochs, one.skips) == ({("k", 1): 80}, {}, [("k", 1, 90)])


def test_a_signed_checkpoint_is_adopted_with_its_key(tmp_path):
    (tmp_path / "key").write_bytes(b"a key\n")
    (tmp_path / "other").write_bytes(b"another")
    signing = CheckpointFolder(tmp_path / "c", secret=b"a key")
    epoch, _ = signing.claim(("t", None))
    offsets, identity = {("t", 0): 7}, {"topic_id": str(FIRST)}
    signing.save(("t", None), epoch, LBP(budget=9), offsets, identity=identity)
    folder = tmp_path / "c" / "t-all"
    assert "it is signed: give the file of its key" in adopt(folder, "--topic", "t").output
    other = adopt(folder, "--topic", "t", "--key-file", str(tmp_path / "other"))
    assert "not to be trusted" in other.output
    assert signing.newest(("t", None)).identity
    assert adopt(folder, "--topic", "t", "--key-file", str(tmp_path / "key")).exit_code == 0
    assert signing.newest(("t", None)).identity == {}
    assert signing.newest(("t", None)).offsets == {("t", 0): 7}


def test_a_folder_without_checkpoints_is_named(tmp_path):
    assert f"{tmp_path} has no checkpoint: give the folder" in adopt(tmp_path).output


def test_a_log_that_was_truncated_or_made_anew_is_refused(broker, learnt):
    one = worker(broker.client_args, learnt, topic_id=FIRST, on_gap="skip")
    work(one, 10)
    with pytest.raises(
        ConsumerError,
        match=r"0 to 10, and 50 is .*: its log ends before.* --topic t --partition 0 --offset 0, w",
    ):
        one._skip(Gap({("t", 0): 50}))
    broker.delete_records("t", 0, before=4)
    with pytest.raises(ConsumerError, match=r"from 4 to 10, .* --partition 0 --offset 4, which"):
        one._skip(Gap({("t", 0): 50}))
    with pytest.raises(ConsumerError, match=r"4 to 10, and 10 is .*: its log has other messages"):
        one._skip(Gap({("t", 0): 10}))
    assert newest(learnt).offsets == {("t", 0): 10}
    close(one)


def test_a_truncation_that_the_broker_tells_is_a_gap(broker, learnt, monkeypatch):
    one = worker(broker.client_args, learnt, topic_id=FIRST)
    work(one, 10)
    place = kafka.TopicPartition("t", 0)
    client = one._consumer.consumer

    def poll(**_):
        raise LogTruncationError({place: None})

    monkeypatch.setattr(client, "poll", poll)
    with pytest.raises(Gap) as raised:
        list(one._consumer.poll(0.1))
    assert raised.value.offsets == {("t", 0): 10}
    monkeypatch.undo()
    close(one)


def test_a_topic_that_is_gone_is_not_made_anew(broker, member):
    broker.create_topic("t")
    one = member(broker.client_args)
    one.consumer._cluster.set_topics(["t", "gone"])
    for _ in range(3):
        one.refresh()
    assert one.consumer.topics() == {"t"}


# --- on a real broker, which gives topics ids and logs leader epochs -----------------------------


@pytest.mark.kafka
def test_a_topic_that_was_deleted_and_made_anew_is_told(kafka_address, tmp_path):
    topic = f"drift-test-{uuid.uuid4().hex}"
    options = {"bootstrap_servers": kafka_address, "metadata_max_age_ms": 500}
    create(topic, 1, options)
    produce(kafka_address, topic, values(10))
    admin = kafka.KafkaAdminClient(bootstrap_servers=kafka_address)

    def topic_id():
        [actual] = admin.describe_topics([topic])
        return str(actual["topic_id"])

    first = topic_id()
    one = worker(options, tmp_path, topic=topic)
    work(one, 10)
    one._save_new()
    checkpoint = CheckpointFolder(tmp_path).newest((topic, None))
    assert checkpoint.identity["topic_id"] == first
    assert checkpoint.leader_epochs == {(topic, 0): 0}
    admin.delete_topics([topic])
    cluster = one._consumer.consumer._cluster
    until(one, lambda: cluster.topic_id(topic) is None)
    for _ in range(3):  # what asks for it does not make it
        one._consumer.refresh()
    assert topic not in admin.list_topics()
    create(topic, 1, options)
    produce(kafka_address, topic, values(30, third=False))
    error = f"topic_id: {first} in the checkpoint, {topic_id()} now"
    with pytest.raises(CheckpointError, match=error):
        run(one)
    after = CheckpointFolder(tmp_path).newest((topic, None))
    assert encode(after.model) == encode(checkpoint.model)
    admin.delete_topics([topic])
    admin.close()


@pytest.mark.kafka
def test_a_log_without_the_leader_epoch_of_the_checkpoint_is_refused(
    kafka_address, kafka_topic, tmp_path
):
    options = {"bootstrap_servers": kafka_address}
    place = kafka_topic, 0
    produce(kafka_address, kafka_topic, values(10))
    one = worker(options, tmp_path, topic=kafka_topic)
    work(one, 10)
    for _ in range(3):  # what brings nothing does not make it forget
        one.step(0.6)
    assert one._consumer.position(place) == (10, 0)
    close(one)
    folder = CheckpointFolder(tmp_path)
    epoch, old = folder.claim((kafka_topic, None))
    assert old.leader_epochs == {place: 0}
    folder.save(
        (kafka_topic, None),
        epoch,
        old.model,
        old.offsets,
        identity=old.identity,
        leader_epochs={place: 5},
    )
    produce(kafka_address, kafka_topic, values(10))
    other = worker(options, tmp_path, topic=kafka_topic, on_gap="skip")
    with pytest.raises(ConsumerError, match=r"from 0 to 20, and 10 is .* other messages"):
        run(other)
    assert folder.newest((kafka_topic, None)).offsets[place] == 10


def truncate(broker, topic, offset):
    """Have a broker lose the end of a log, as an unclean election does."""
    broker.stop()
    log = broker.folder / "data" / f"{topic}-0"
    segment = log / f"{0:020d}.log"
    data, end = segment.read_bytes(), 0
    while int.from_bytes(data[end : end + 8], "big") < offset:
        end += 12 + int.from_bytes(data[end + 8 : end + 12], "big")
    os.truncate(segment, end)
    (broker.folder / "data" / ".kafka_cleanshutdown").unlink(missing_ok=True)
    for path in [*log.glob("*index"), *log.glob("*.snapshot")]:
        path.unlink()
    broker.start()


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.skipif(not tool.fetched(), reason="python tools/kafka/broker.py fetch gets a broker")
def test_a_log_that_was_truncated_and_filled_again_is_refused(tmp_path):
    with tool.Broker(tmp_path / "kafka") as broker:
        options = {"bootstrap_servers": broker.address, "reconnect_backoff_max_ms": 500}
        create("t", 1, options)
        for _ in range(10):
            produce(broker.address, "t", values(10))
        idle = worker(options, tmp_path / "c")
        work(idle, 100)
        for _ in range(3):
            idle.step(0.6)
        slowly = {"max_poll_records": 20, "max_partition_fetch_bytes": 1000}
        examples = read_topic("t", options | slowly)
        came = [next(examples)]
        truncate(broker, "t", 60)
        with pytest.raises(ConsumerError, match=r"t:0 was read up to \d+, and is another log now"):
            came.extend(examples)
        expected = [JsonCodec().decode(value)[:2] for _ in range(10) for value in values(10)]
        assert came == expected[: len(came)]
        for _ in range(10):
            produce(broker.address, "t", values(10, third=False))
        for one in (idle, worker(options, tmp_path / "c")):
            with pytest.raises(ConsumerError, match=r"from 0 to 160, and 100 is .* other messages"):
                run(one)
        assert newest(tmp_path / "c").offsets == {("t", 0): 100}
        assert adopt(tmp_path / "c", "--topic", "t", "--offset", "60").exit_code == 0
        for stop in (False, True):  # a restart of the broker is no truncation
            one = worker(options, tmp_path / "c")
            work(one, 160)
            close(one)
            broker.stop(kill=stop)
            broker.start()
        assert newest(tmp_path / "c").metrics["examples"] == 200
