"""Records into the broker inside the process and out of it, by librdkafka.

That takes an eighth of the time of kafka-python, which is in Python.
"""

import time

from confluent_kafka import Consumer, Producer, TopicPartition

__all__ = ["everything", "hand_over", "send", "with_topics"]

#: By default librdkafka waits for 0.1 s between its first connection and that to the partition.
_AT_ONCE = {"reconnect.backoff.ms": 0}


def send(broker, messages):
    """Append messages to their partitions, with their times, in batches of 16 KiB."""
    # Full, however slow the machine is.
    options = {**_AT_ONCE, "linger.ms": 60_000, "batch.size": 16 << 10}
    producer = Producer({"bootstrap.servers": broker.address, **options})
    for message in messages:
        topic, partition, _ = message.position
        assert message.timestamp > 0  # librdkafka takes 0 for now
        producer.produce(topic, message.value, b"", partition, timestamp=message.timestamp)
    assert producer.flush(30) == 0


def everything(broker, topic):
    """All records of a topic: those of each partition in their order."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "-", **_AT_ONCE})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    places = [TopicPartition(topic, number, 0) for number in partitions]
    count = sum(consumer.get_watermark_offsets(place, timeout=30)[1] for place in places)
    consumer.assign(places)
    records, end = [], time.monotonic() + 60
    while len(records) < count:
        assert time.monotonic() < end, f"{len(records)} of the {count} records of {topic}"
        got = consumer.consume(count - len(records), timeout=1)
        records += [one for one in got if one.error() is None]  # else of a connection that broke
    consumer.close()
    return records


def hand_over(broker, group, topic="t"):
    """Give a group the offsets of "g": its member need not wait for the session of who left that.

    The mock cluster has whoever joins a group that was left wait for that, less a second.
    """
    options = {"bootstrap.servers": broker.address, **_AT_ONCE}
    left, new = (Consumer({**options, "group.id": name}) for name in ("g", group))
    partitions = left.list_topics(topic, timeout=30).topics[topic].partitions
    found = left.committed([TopicPartition(topic, number) for number in partitions], timeout=30)
    if offsets := [one for one in found if one.offset >= 0]:
        new.commit(offsets=offsets, asynchronous=False)
    left.close()
    new.close()


def with_topics(broker, logs):
    """Create the topic with its logs, and those of predictions and dead letters."""
    broker.create_topic("t", partitions=2)
    broker.create_topic("out")
    broker.create_topic("dead")
    send(broker, [message for log in logs.values() for message in log])
    return broker
