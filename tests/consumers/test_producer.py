"""What a worker sends: what becomes of a refusal and of an outage."""

from contextlib import suppress
from itertools import count
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from drift.consumers.dead_letters import dead_letter
from drift.consumers.records import Message, Outgoing, Position
from drift.errors import ConsumerError, UnavailableError
from drift.testing import consume

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from kafka.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
)

from drift.consumers.client import producer

REFUSED = TopicAuthorizationFailedError.errno
TOO_LARGE = MessageSizeTooLargeError.errno
TIMED_OUT = RequestTimedOutError.errno


@pytest.fixture
def outputs(broker):
    broker.create_topic("out")
    made = producer.Producer(broker.client_args, hurry=lambda: False)
    yield made
    made.close()


def prediction(number):
    return Outgoing("out", b"t:0:%d" % number, b"{}", [])


def letter(size):
    message = Message(Position("t", 0, 7), b"key", b"x" * size, [("trace", b"1")])
    return dead_letter(message, ValueError("no"), "out")


def test_what_the_broker_refuses_ends_the_flush(broker, outputs):
    outputs.send(prediction(0))
    outputs.flush()
    broker.fail("Produce", REFUSED)
    outputs.send(prediction(1))
    with pytest.raises(TopicAuthorizationFailedError):
        outputs.flush()
    assert [record.key for record in consume(broker, "out", 1)] == [b"t:0:0"]


@pytest.mark.parametrize(
    ("number", "kind", "why"),
    [
        (InvalidTimestampError.errno, UnavailableError, "the clock of this machine is ahead of"),
        (InvalidRecordError.errno, ConsumerError, "if it is compacted, set cleanup.policy=delete"),
    ],
)
def test_a_refused_record_names_the_topic_and_the_remedy(broker, outputs, number, kind, why):
    broker.fail("Produce", number)
    outputs.send(prediction(1))
    with pytest.raises(kind, match=f"^out refuses a record .*: {why}") as refusal:
        outputs.flush()
    assert type(refusal.value) is kind


def test_what_the_broker_refuses_ends_the_sends_before_many_follow(broker, outputs, monkeypatch):
    monkeypatch.setattr(producer, "_UNANSWERED", 3)
    broker.fail("Produce", *[REFUSED] * 9)
    for number in range(3):
        outputs.send(prediction(number))
    with pytest.raises(TopicAuthorizationFailedError):
        outputs.send(prediction(3))
    broker.fail("Produce")


def test_a_letter_that_is_too_large_is_cut_without_a_word_for_each(broker, outputs, caplog):
    for size in (1 << 10, 3 << 20):  # the producer takes 1 MiB unless it is told otherwise
        outputs.send(letter(size))
    outputs.flush()
    first, second = consume(broker, "out", 2)
    assert (len(first.value), first.headers[-1][0]) == (1 << 10, "drift.time")
    assert (len(second.value), second.headers[-1]) == (3 << 18, ("drift.cut", b"%d" % (3 << 20)))
    assert not [one for one in caplog.records if one.name == "drift.consumers"]


def test_a_prediction_that_is_too_large_is_named(broker, outputs):
    with pytest.raises(ConsumerError, match=r"out: b't:0:3' is too large .*max_request_size"):
        outputs.send(prediction(3)._replace(value=b" " * (1 << 21)))
    broker.fail("Produce", TOO_LARGE)
    outputs.send(prediction(4)._replace(value=b" " * 100))
    with pytest.raises(ConsumerError, match=r"out does not take .* 112 bytes .*max_request_size"):
        outputs.flush()


def sent(size, **answer):
    place = SimpleNamespace(topic="out")
    return SimpleNamespace(
        futures=[Mock(**answer)], max_record_size=size, topic_partition=place, record_count=1
    )


def test_of_what_is_given_up_at_once_the_largest_is_named(outputs):
    given_up = {"get.side_effect": MessageSizeTooLargeError}
    outputs._unanswered.extend(sent(size, **given_up) for size in (1, 99, 0))
    outputs._waiting = 3
    with pytest.raises(ConsumerError, match="out does not take a record of 99 bytes"):
        outputs._settle(2)


def test_what_is_confirmed_late_is_counted_too(outputs):
    outputs._unanswered.append(sent(1))
    outputs._waiting = 1
    outputs._settle(0)
    assert outputs.confirmed == 1


def test_what_is_sent_arrives_without_a_flush(broker, outputs):
    for number in range(3):
        outputs.send(prediction(number))
    assert len(consume(broker, "out", 3)) == 3
    assert outputs.confirmed == 0  # as nobody has asked


def test_all_of_many_batches_are_confirmed_in_order(broker, monkeypatch):
    monkeypatch.setattr(producer, "_BATCH", 200)
    monkeypatch.setattr(producer, "_UNANSWERED", 50)
    with producer.Producer(broker.client_args) as outputs:
        for number in range(300):
            outputs.send(prediction(number))
            assert outputs._waiting <= 50
        outputs.flush()
        assert (outputs.confirmed, outputs._waiting, len(outputs._unanswered)) == (300, 0, 0)
    assert [one.key for one in consume(broker, "out", 300)] == [b"t:0:%d" % n for n in range(300)]


def test_what_was_forgotten_takes_nothing_that_is_waited_for(broker, outputs, monkeypatch):
    monkeypatch.setitem(outputs.producer._accumulator.config, "linger_ms", 1e6)
    outputs.send(prediction(0))
    outputs.forget()
    outputs.send(prediction(1))
    outputs.flush()
    assert outputs.confirmed == 1
    assert [one.key for one in consume(broker, "out", 2)] == [b"t:0:0", b"t:0:1"]


def test_topics_that_the_last_client_knew_are_not_missed_by_the_next(outputs, monkeypatch):
    outputs.check(["out"])
    assert outputs._counts == {"out": 1}
    opened, known = outputs._open, []
    monkeypatch.setattr(outputs, "_open", lambda: (known.append({**outputs._counts}), opened()))
    outputs._failed = True
    outputs.forget()
    assert known == [{}]


def test_a_batch_is_no_larger_than_what_topics_take(broker):
    for given, size in (({}, 512 << 10), ({"max_request_size": 9000}, 9000)):
        with producer.Producer(broker.client_args | given) as outputs:
            assert outputs.producer.config["batch_size"] == size


@pytest.mark.parametrize(
    ("answered", "refusal", "seconds"),
    [
        (True, (ConsumerError, r"there is no topic nowhere, .*create it"), 11),
        (False, (producer.UnsentError, "not even whether there is nowhere"), 61),
    ],
)
def test_a_missing_topic_is_distinguished_from_silence(
    outputs, monkeypatch, answered, refusal, seconds
):
    clock = count(1000)
    monkeypatch.setattr(producer, "time", SimpleNamespace(monotonic=clock.__next__))
    metadata = SimpleNamespace(_last_successful_refresh_ms=1e9 if answered else 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(outputs.producer, "_wait_on_metadata", Mock(side_effect=KafkaTimeoutError))
        patch.setattr(outputs.producer, "_metadata", metadata)
        with pytest.raises(refusal[0], match=refusal[1]):
            outputs.check(["nowhere"])
    assert next(clock) == 1000 + seconds + 1


def test_a_topic_that_was_made_anew_is_looked_at_again(broker, outputs, monkeypatch):
    outputs.check(["out"])
    monkeypatch.setitem(outputs._counts, "out", 3)
    with pytest.raises(producer.UnsentError, match="out has other partitions than it had"):
        outputs.send(prediction(0)._replace(partition=2))
    outputs.send(prediction(0)._replace(partition=2))
    outputs.flush()
    assert [record.key for record in consume(broker, "out", 1)] == [b"t:0:0"]


def test_an_output_that_is_gone_is_named_once_until_it_is_there_again(broker, outputs, caplog):
    broker.create_topic("dead", partitions=3)
    outputs.check(["out", "dead"])
    for there in (None, None, {0, 1, 2}, None):
        outputs._look(SimpleNamespace(partitions_for_topic={"out": {0}, "dead": there}.get))
    said = (
        "there is no topic dead, or this user may not see it: what is sent there is tried again "
        "for 60 s. Create it, with 3 partitions"
    )
    assert [one.getMessage() for one in caplog.records] == [said] * 2


def test_topics_are_made_at_the_start_only(outputs):
    outputs.check(["made"])
    assert set(outputs._counts) == {"made"}
    with pytest.raises(KafkaTimeoutError):
        outputs.producer._wait_on_metadata("gone", 300)


def test_what_is_sent_after_outputs_were_given_up_arrives(broker):
    for topic in ("out", "dead"):
        broker.create_topic(topic)
    given = {"request_timeout_ms": 300, "delivery_timeout_ms": 700}
    outputs = producer.Producer(broker.client_args | given, hurry=lambda: True)
    outputs.check(["out", "dead"])
    broker.fail("Produce", *[TIMED_OUT] * 200)
    for number in range(40):  # some expire on their second try, others are just being sent
        outputs.send(prediction(number)._replace(topic=("out", "dead")[number % 2]))
        with suppress(KafkaTimeoutError):
            outputs.producer.flush(timeout=0.03)
    with pytest.raises(producer.UnsentError):
        outputs.flush()
    outputs.forget()
    broker.fail("Produce")
    for topic in ("out", "dead"):
        outputs.send(prediction(99)._replace(topic=topic))
    outputs.flush()
    outputs.close()


def test_a_producer_that_the_broker_has_not_numbered_is_replaced(broker, outputs):
    failed = outputs.producer
    failed._transaction_manager.transition_to_fatal_error(KafkaError("Request timed out"))
    outputs.send(prediction(0))
    with pytest.raises(producer.UnsentError, match=r"does not know the producer .*timed out"):
        outputs.flush()
    outputs.forget()
    assert outputs.producer is not failed
    outputs.send(prediction(1))
    outputs.flush()
    assert [record.key for record in consume(broker, "out", 1)] == [b"t:0:1"]


def test_the_wait_for_an_answer_has_an_end_and_is_short_in_a_hurry(outputs, monkeypatch):
    waited = Mock(side_effect=KafkaTimeoutError("silence"))
    monkeypatch.setattr(producer, "time", SimpleNamespace(monotonic=count().__next__))
    outputs.send(prediction(0))
    with monkeypatch.context() as patch:
        patch.setattr(outputs.producer, "flush", waited)
        with pytest.raises(producer.UnsentError, match="silence"):
            outputs.flush()
        patient = waited.call_count
        outputs._hurry = lambda: True
        with pytest.raises(producer.UnsentError):
            outputs.flush()
    assert (patient, waited.call_count - patient) == (61, 6)
    outputs.flush()


def test_an_outage_while_closing_is_no_error(broker, caplog):
    outputs = producer.Producer(broker.client_args, hurry=lambda: True)
    outputs.producer.flush = Mock(side_effect=KafkaTimeoutError("silence"))
    sender = outputs.producer._sender
    outputs.close()
    sender.join(10)
    assert "close: KafkaTimeoutError: silence" in caplog.text
    assert not sender.is_alive()
    assert outputs.producer._closed


def test_a_topic_is_missing_only_where_the_broker_has_said_so_since(monkeypatch):
    """An answer from just before the question is none."""
    for answered_at, error in ((99.95, producer.UnsentError), (100.05, ConsumerError)):
        clock = count(100.0, 50.0)
        monkeypatch.setattr(producer.time, "monotonic", lambda clock=clock: next(clock))
        one = Mock()
        one.producer._wait_on_metadata.side_effect = KafkaTimeoutError
        one.producer._metadata._last_successful_refresh_ms = 1000 * answered_at
        one._patience.return_value = 30.0
        with pytest.raises(error):
            producer.Producer._count(one, "nosuch")
        monkeypatch.undo()
