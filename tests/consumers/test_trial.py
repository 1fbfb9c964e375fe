"""A new group whose first messages cannot be learnt: nothing of it stays."""

import pytest

from drift.consumers import CheckpointFolder, JsonCodec, WorkerOptions
from drift.errors import ConfigurationError, NothingLearntError
from drift.models import LBP, RBP
from drift.testing import produce
from tests.consumers.stepping import close, kill, learner_of, run, until

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from drift.consumers.client.topics import Reader
from drift.consumers.worker import Worker
from tests.consumers.topics import everything

GOOD = b'{"features": {"a": %d}, "label": true}'
OWN = b'{"a": %d, "fraud": true}'


@pytest.fixture
def topics(broker):
    for topic in ("t", "out", "dead"):
        broker.create_topic(topic)
    return broker


def worker(broker, folder, group="g", codec=None, model=None, **options):
    """A worker; each of a test has a group of its own, so that none waits for another's session."""
    given = {"start": "earliest", "predictions": "out", "dead_letters": "dead", **options}
    consumer = {"session_timeout_ms": 8000, "heartbeat_interval_ms": 200}
    one = Worker(
        model or LBP(budget=9),
        CheckpointFolder(folder),
        broker.client_args,
        WorkerOptions(topic="t", group=group, **given),
        codec=codec,
        consumer=consumer,
    )
    one._identity = one._consumer.identity  # the group is none of it
    return one


def committed(broker, group):
    with Reader("t", {**broker.client_args, "group_id": group}) as reader:
        return reader.committed()


def sent(broker, topic):
    return [one.value() for one in everything(broker, topic)]


def test_a_wrong_codec_ends_the_worker_and_a_right_one_learns_all(topics, tmp_path):
    produce(topics, "t", [OWN % n for n in range(150)])
    with pytest.raises(NothingLearntError, match="none of the first 100 messages of t can") as end:
        run(worker(topics, tmp_path, "wrong"))
    assert "the first as features is absent" in str(end.value)
    assert [message.position.offset for message, _ in end.value.failures] == [*range(100)]
    assert committed(topics, "wrong") == {}
    assert sent(topics, "dead") == sent(topics, "out") == []
    # The folder has no more than where it starts, so that codec and model may be others.
    one = worker(topics, tmp_path, "right", JsonCodec(label="fraud"), RBP(9, seed=1))
    until(one, lambda: learner_of(one) and learner_of(one).metrics.examples == 150)
    assert type(learner_of(one).model) is RBP
    close(one)
    assert committed(topics, "right") == {0: 150}
    assert sent(topics, "dead") == []
    # Now they may not.
    with pytest.raises(ConfigurationError, match=r"codec.label"):
        run(worker(topics, tmp_path, "again", JsonCodec(label="y"), RBP(9, seed=1)))


def test_the_failures_before_the_first_example_are_dead_letters(topics, tmp_path, caplog):
    bad = [b"{%d" % n for n in range(99)]
    produce(topics, "t", bad)
    one = worker(topics, tmp_path)
    until(one, lambda: learner_of(one) and learner_of(one).offsets == {("t", 0): 99})
    one.step(0.1)
    assert learner_of(one).since_checkpoint == 0
    assert sent(topics, "dead") == []
    assert caplog.text.count("cannot be learnt") == 1
    kill(one)
    # What was read is read again, and nothing is lost.
    produce(topics, "t", [GOOD % 1, b"}"])
    one = worker(topics, tmp_path, "later")
    until(one, lambda: learner_of(one) and learner_of(one).offsets == {("t", 0): 101})
    close(one)
    assert sent(topics, "dead") == [*bad, b"}"]
    assert len(sent(topics, "out")) == 1
    metrics = CheckpointFolder(tmp_path).newest(("t", None)).metrics
    assert (metrics["dead_letters"], metrics["examples"]) == (100, 1)


def test_what_is_skipped_does_not_count(topics, tmp_path):
    produce(topics, "t", [*([b'{"op": "d"}'] * 150), *(b"{%d" % n for n in range(60)), GOOD % 1])
    one = worker(topics, tmp_path, codec=JsonCodec(skip=['op = "d"']))
    until(one, lambda: learner_of(one) and learner_of(one).metrics.examples)
    metrics = learner_of(one).metrics
    assert (metrics.skipped, metrics.dead_letters) == (150, 60)
    close(one)


def test_a_group_that_has_learnt_is_not_tried_again(topics, tmp_path):
    produce(topics, "t", [GOOD % 1])
    one = worker(topics, tmp_path)
    until(one, lambda: learner_of(one) and learner_of(one).metrics.examples)
    close(one)
    produce(topics, "t", [b"{%d" % n for n in range(150)])
    one = worker(topics, tmp_path, "later")
    until(one, lambda: learner_of(one) and learner_of(one).offsets == {("t", 0): 151})
    close(one)
    assert len(sent(topics, "dead")) == 150


@pytest.mark.usefixtures("stores")
def test_a_partition_of_poison_does_not_end_who_learns_another(broker, tmp_path):
    broker.create_topic("t", partitions=2)
    for topic in ("out", "dead"):
        broker.create_topic(topic)
    produce(broker, "t", [b'{"features": {"a": 1}, "label": true, "k": "x"}'] * 5, 0)
    one = worker(broker, tmp_path, codec=JsonCodec(key="k"))
    until(one, lambda: sum(c.learner.metrics.examples for c in one._claims.values()) == 5)
    produce(broker, "t", [GOOD % n for n in range(150)], 1)  # without a key
    until(one, lambda: sum(c.learner.metrics.dead_letters for c in one._claims.values()) == 150)
    close(one)
    assert len(sent(broker, "dead")) == 150


@pytest.mark.parametrize("dead_letters", ["dead", None])
def test_a_start_without_dead_letters_says_so(topics, tmp_path, caplog, dead_letters):
    one = worker(topics, tmp_path, dead_letters=dead_letters)
    close(one)
    assert caplog.text.count("no topic for dead letters") == (dead_letters is None)


def test_labels_of_two_kinds_are_warned_of_once(topics, tmp_path, caplog):
    labels = [b"true", b"false", b'"true"', b"true", b'"x"', b"1"]
    produce(topics, "t", [b'{"features": {"a": 1}, "label": %s}' % one for one in labels])
    one = worker(topics, tmp_path)
    until(one, lambda: learner_of(one) and learner_of(one).offsets == {("t", 0): 6})
    close(one)
    assert caplog.text.count("some labels are strings and others are not, as 'true'") == 1
    assert caplog.text.count("some labels are strings") == 1
