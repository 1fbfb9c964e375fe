"""The client that drift has of Kafka: kafka-python, which no other package imports.

Not confluent-kafka, as librdkafka takes no assignor of one's own (`LeadAssignor`); and not that for
the producer alone, as [kafka] then had the options of two clients.
"""

from drift.errors import needing

with needing("kafka-python", "kafka"):
    import kafka  # noqa: F401 - so that each module here may import it at its top

__all__: list[str] = []
