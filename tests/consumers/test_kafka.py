"""kafka-python as the worker uses it: what becomes of a refusal."""

import time
from unittest.mock import Mock

import pytest

from drift.consumers._records import Outgoing
from drift.testing import consume

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from kafka.errors import KafkaTimeoutError, TopicAuthorizationFailedError

from drift.consumers import kafka  # after the check that there is a client

REFUSED = TopicAuthorizationFailedError.errno


@pytest.fixture
def clients(broker):
    """The clients of a worker."""
    broker.create_topic("t")
    broker.create_topic("out")
    made = kafka.Broker(
        "t", "g", broker.client_args, broker.group_args, {}, leave=lambda places, *, save: None
    )
    yield made
    made.close()


def prediction(number):
    return Outgoing("out", b"t:0:%d" % number, b"{}", [])


def test_a_leader_whose_polls_are_short_joins_after_new_metadata(clients):
    coordinator = clients.consumer._coordinator
    give_up = time.monotonic() + 60

    def poll_until(done):
        while not done():
            assert time.monotonic() < give_up
            list(clients.poll(0.01))

    poll_until(lambda: clients.assigned)
    first = clients.assigned[:]
    clients.assigned.clear()
    coordinator._assignment_snapshot = "what the leader knew before"
    poll_until(lambda: coordinator.rejoining)
    poll_until(lambda: not coordinator.rejoining)
    assert clients.assigned == first


def test_an_outage_while_closing_hides_no_other_error(clients, monkeypatch, caplog):
    close = Mock(side_effect=KafkaTimeoutError("nobody answers"))
    with monkeypatch.context() as patch:
        patch.setattr(clients.consumer, "close", close)
        patch.setattr(clients.producer, "close", close)
        clients.close()
    assert close.call_count == caplog.text.count("nobody answers") == 2


def test_what_the_broker_refuses_ends_the_flush(broker, clients):
    clients.send(prediction(0))
    clients.flush()
    broker.fail("Produce", REFUSED)
    clients.send(prediction(1))
    with pytest.raises(TopicAuthorizationFailedError):
        clients.flush()
    assert [record.key for record in consume(broker, "out", 1)] == [b"t:0:0"]


def test_what_the_broker_refuses_ends_the_sends_before_many_follow(broker, clients, monkeypatch):
    monkeypatch.setattr(kafka, "_UNANSWERED", 3)
    broker.fail("Produce", *[REFUSED] * 9)
    for number in range(3):
        clients.send(prediction(number))
    with pytest.raises(TopicAuthorizationFailedError):
        clients.send(prediction(3))
    broker.fail("Produce")
