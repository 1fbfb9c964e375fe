"""kafka-python as the worker reads from it."""

import time
from unittest.mock import Mock

import pytest

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

from kafka.errors import KafkaTimeoutError

from drift.consumers import kafka  # after the check that there is a client


@pytest.fixture
def client(broker):
    """The client of a worker."""
    broker.create_topic("t")
    made = kafka.Broker("t", "g", broker.group_args, leave=lambda places, *, save: None)
    yield made
    made.close()


def test_a_leader_whose_polls_are_short_joins_after_new_metadata(client):
    coordinator = client.consumer._coordinator
    give_up = time.monotonic() + 60

    def poll_until(done):
        while not done():
            assert time.monotonic() < give_up
            list(client.poll(0.01))

    poll_until(lambda: client.assigned)
    first = client.assigned[:]
    client.assigned.clear()
    coordinator._assignment_snapshot = "what the leader knew before"
    poll_until(lambda: coordinator.rejoining)
    poll_until(lambda: not coordinator.rejoining)
    assert client.assigned == first


def test_an_outage_while_closing_hides_no_other_error(client, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        patch.setattr(client.consumer, "close", Mock(side_effect=KafkaTimeoutError("silence")))
        client.close()
    assert caplog.text.count("silence") == 1
