"""`read_topic`: the examples that a worker learns, in its order; and the Python of the page."""

import itertools
import re
from contextlib import suppress
from pathlib import Path

import pytest
from river import evaluate, metrics, preprocessing

from drift.consumers import JsonCodec, WorkerOptions, read_topic
from drift.consumers.records import Gap, Position
from drift.errors import ConsumerError, MessageError, ParameterError
from drift.models import LBP
from drift.testing import consume
from tests.consumers.labelled_logs import LOGS, log, loop
from tests.consumers.late_logs import JOIN, SILENCE, logs, messages
from tests.consumers.stepping import close, offsets, until
from tests.consumers.twin_late import Twin
from tests.consumers.twin_order import in_time

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from drift.consumers.client.consumer import LoneConsumer  # as there is a client
from tests.consumers.topics import send, with_topics

PAGE = Path(__file__).parents[2] / "docs" / "kafka_python.md"
LATE = messages(logs())


@pytest.fixture
def topics(broker):
    return with_topics(broker, LOGS)


class Noting:
    """Notes what it learns."""

    def __init__(self):
        self.learnt = []

    def predict_one(self, x):
        return None

    def learn_one(self, x, y, w=None):
        self.learnt.append((x, y))


def plain(logs, options, codec):
    """What a loop learns of logs in the order of their times."""
    twin = Twin(options, Noting(), codec, with_scores=False)
    for message in in_time(logs):
        twin.take(message)
    return twin.model.learnt


@pytest.mark.parametrize("given", [JOIN, SILENCE], ids=["join", "silence"])
def test_late_labels_come_as_a_plain_loop_learns_them(broker, given):
    for topic, partitions in (("f", 2), ("l", 3)):
        broker.create_topic(topic, partitions)
    send(broker, [message for log in LATE.values() for message in log])
    given = given | {"labels": "l", "timestamps": "create"}
    codec = JsonCodec(weight="weight")
    expected = plain(LATE, WorkerOptions(topic="f", group="g", **given), codec)
    assert len(expected) > 25
    assert list(read_topic("f", broker.client_args, codec=codec, **given)) == expected
    with pytest.raises(ConsumerError, match="has the time of its producer, not of the log"):
        next(read_topic("f", broker.client_args, labels="l"))


def test_a_score_is_that_of_a_plain_loop_and_what_comes_later_is_not_read(topics):
    examples = read_topic("t", topics.client_args)
    first = next(examples)
    send(topics, [late for partition in range(2) for late in log(partition, 210)[200:]])
    score = evaluate.progressive_val_score(
        itertools.chain([first], examples), LBP(budget=9), metrics.Accuracy()
    )
    _, expected = loop(tuple(in_time(LOGS)))
    learnt, right = 0, 0
    for message in in_time(LOGS):
        if str(message.position) in expected:
            label = JsonCodec().decode(message.value).label
            learnt += expected[str(message.position)] is not None  # else River leaves it out
            right += expected[str(message.position)] == label
    assert (score.cm.n_samples, score.get()) == (learnt, pytest.approx(right / learnt))


def examples_of(logs):
    """The examples of logs whose labels are in their messages."""
    for message in in_time(logs):
        with suppress(MessageError):
            yield JsonCodec().decode(message.value)[:2]


def ends_before(monkeypatch):
    """Have the log of t:0 end at 5, before what was read, which the broker tells at a fetch."""
    bound, poll = LoneConsumer.bound, LoneConsumer.poll

    def truncated(self, seconds):
        offset, _ = self.position(("t", 0))
        if offset < 50:
            return poll(self, seconds)
        raise Gap({("t", 0): offset})

    def end(self, place, start):
        return 5 if start == "latest" else bound(self, place, start)

    monkeypatch.setattr(LoneConsumer, "poll", truncated)
    monkeypatch.setattr(LoneConsumer, "bound", end)


def ends_there(monkeypatch):
    """Have each log end at 50, just where it was read to."""
    bound, poll = LoneConsumer.bound, LoneConsumer.poll

    def truncated(self, seconds):
        for place, came in poll(self, seconds):
            yield place, [message for message in came if message.position.offset < 50]

    def end(self, place, start):
        return 50 if start == "latest" else bound(self, place, start)

    monkeypatch.setattr(LoneConsumer, "poll", truncated)
    monkeypatch.setattr(LoneConsumer, "bound", end)
    monkeypatch.setattr(LoneConsumer, "end", lambda self, place: 50)


def is_another(monkeypatch):
    """Have the broker tell that the topic is another one."""
    monkeypatch.setattr(LoneConsumer, "identity", lambda self: {"cluster_id": "another"})


@pytest.mark.parametrize("truncate", [ends_before, ends_there, is_another])
def test_of_a_log_that_is_truncated_while_it_is_read_nothing_comes_twice(
    topics, monkeypatch, truncate
):
    options = {"max_poll_records": 20, "max_partition_fetch_bytes": 1000}
    examples = read_topic("t", topics.client_args | options)
    came = [next(examples)]
    truncate(monkeypatch)
    with pytest.raises(ConsumerError, match=r"^t:0 was read up to \d+, and is another log now"):
        came.extend(examples)
    assert came == [*examples_of(LOGS)][: len(came)]
    assert len(came) < 150


def test_of_messages_that_are_deleted_before_they_are_read_it_is_said(topics, caplog):
    whole = log(0, 900)
    send(topics, whole[200:])
    options = {"max_poll_records": 20, "max_partition_fetch_bytes": 1000}  # a batch at a time
    examples = read_topic("t", topics.client_args | options, partition=0)
    came = [next(examples)]
    topics.delete_records("t", 0, before=850)
    came.extend(examples)
    [gone] = re.findall(r"t:0: (\d+) messages are gone, continuing at 850", caplog.text)
    assert came == [*examples_of({("t", 0): whole[: 850 - int(gone)] + whole[850:]})]
    assert int(gone) > 100


def test_of_one_partition_messages_come_as_they_are(topics, caplog):
    expected = []
    for message in LOGS["t", 1]:
        with suppress(MessageError):
            example = JsonCodec().decode(message.value)
            expected.append((example.features, example.label))
    assert list(read_topic("t", topics.client_args, partition=1)) == expected
    assert "t:1:7 is left out" in caplog.text


def test_what_cannot_be_read_is_refused(broker):
    broker.create_topic("t", 2)
    with pytest.raises(ConsumerError, match="t has no partition 2, it has 2"):
        next(read_topic("t", broker.client_args, partition=2))
    with pytest.raises(ConsumerError, match="no topic nothing"):
        next(read_topic("nothing", broker.client_args))
    with pytest.raises(ParameterError, match="say where it is, id in"):
        next(read_topic("t", broker.client_args, labels="l", codec=JsonCodec(label="fraud")))
    with pytest.raises(TypeError, match="pending_byte"):
        next(read_topic("t", broker.client_args, pending_byte=3))


def test_the_page_runs(broker, tmp_path, monkeypatch, capsys, caplog):
    """Its pipeline learns in a worker and is stored, and a topic is evaluated in five lines."""
    caplog.set_level("INFO", "drift")  # as the program does, and back when the test ends
    monkeypatch.chdir(tmp_path)
    for topic in ("orders", "orders.program", "orders.program.dead"):
        broker.create_topic(topic)
    send(broker, [one._replace(position=Position("orders", 0, 0)) for one in log(0)])
    text = PAGE.read_text("utf-8").replace(
        '{"bootstrap_servers": os.environ["BROKER"]}', repr(broker.client_args)
    )
    codes = re.findall(r"^```py\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    [model] = [code for code in codes if "def scaled" in code]
    (tmp_path / "my_models.py").write_text(model, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    [pipeline] = [code for code in codes if "worker.run()" in code]
    [evaluation] = [code for code in codes if "read_topic" in code]
    names = {}
    exec(pipeline.replace("worker.run()", ""), names)  # noqa: S102 - ours
    one = names["worker"]
    until(one, lambda: offsets(one) == {("orders", 0): 200})
    close(one)
    model = names["folder"].newest(("orders", None)).model
    assert isinstance(model["StandardScaler"], preprocessing.StandardScaler)
    assert model["LBP"].n_updates > 9
    read = len(loop(tuple(log(0)))[1])
    for topic, count in (("orders.program", read), ("orders.program.dead", 200 - read)):
        assert len(consume(broker, topic, count)) == count
    exec(evaluation, {})  # noqa: S102 - ours
    assert re.fullmatch(r"Accuracy: \d\d\.\d\d%\n", capsys.readouterr().out)
