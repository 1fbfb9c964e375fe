"""Records into the broker inside the process and out of it, by librdkafka.

That takes an eighth of the time of kafka-python, which is in Python.
"""

from confluent_kafka import Consumer, Producer, TopicPartition

__all__ = ["everything", "send"]


def send(broker, messages):
    """Append messages to their partitions, with their times, in batches of 16 KiB."""
    options = {"linger.ms": 60_000, "batch.size": 16 << 10}  # full, however slow the machine is
    producer = Producer({"bootstrap.servers": broker.address, **options})
    for message in messages:
        topic, partition, _ = message.position
        assert message.timestamp > 0  # librdkafka takes 0 for now
        producer.produce(topic, message.value, b"", partition, timestamp=message.timestamp)
    assert producer.flush(30) == 0


def everything(broker, topic):
    """All records of a topic: those of each partition in their order."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "-"})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    places = [TopicPartition(topic, number, 0) for number in partitions]
    count = sum(consumer.get_watermark_offsets(place)[1] for place in places)
    consumer.assign(places)
    records = []
    while len(records) < count:
        records += consumer.consume(count - len(records), timeout=30)
    consumer.close()
    return records
