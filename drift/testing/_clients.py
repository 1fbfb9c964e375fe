"""Clients for tests, each in one line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from drift.errors import needing

with needing("kafka-python", "kafka"):
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.testing._mock import MockKafka

__all__ = ["consume", "produce"]


def _client_args(broker: MockKafka | str) -> dict[str, Any]:
    if isinstance(broker, str):
        return {"bootstrap_servers": broker.split(",")}
    return broker.client_args


def produce(
    broker: MockKafka | str, topic: str, values: Iterable[bytes | None], partition: int = 0
) -> None:
    """Append records to a partition and wait until the broker has them all.

    Parameters
    ----------
    broker
        The cluster, or the ``host:port`` of a real one.
    topic
        Their topic.
    values
        Their values, in their order; None makes a tombstone.
    partition
        Their partition.
    """
    # They wait for the flush, so that what fits is one batch, however fast the producer's thread.
    producer = KafkaProducer(**_client_args(broker), linger_ms=60_000)
    try:
        sent = [producer.send(topic, value, key=b"", partition=partition) for value in values]
        producer.flush(timeout=30)
        for future in sent:
            future.get(timeout=30)
    finally:
        producer.close(timeout=5)


def consume(broker: MockKafka | str, topic: str, count: int, *, timeout: float = 10) -> list[Any]:
    """Read a topic's first records, of all its partitions.

    Parameters
    ----------
    broker
        The cluster, or the ``host:port`` of a real one.
    topic
        The topic.
    count
        Return once this many are there.
    timeout
        Return what has come after this many seconds.

    Returns
    -------
    list of ConsumerRecord
        By partition, then offset; more than `count` where the last fetch brought more.
    """
    end = time.monotonic() + timeout
    # The mock cluster answers a fetch that finds nothing after this time, whatever comes meanwhile.
    consumer = KafkaConsumer(**_client_args(broker), enable_auto_commit=False, fetch_max_wait_ms=10)
    try:
        partitions = consumer.partitions_for_topic(topic) or ()
        consumer.assign([TopicPartition(topic, partition) for partition in partitions])
        consumer.seek_to_beginning()
        records: list[Any] = []
        while len(records) < count and time.monotonic() < end:
            for batch in consumer.poll(timeout_ms=100).values():
                records += batch
    finally:
        consumer.close(timeout_ms=1000)
    return sorted(records, key=lambda record: (record.partition, record.offset))
