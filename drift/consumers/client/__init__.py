"""The client that drift has of Kafka: kafka-python, which no other package imports."""

from drift.errors import needing

with needing("kafka-python", "kafka"):
    import kafka  # noqa: F401 - so that each module here may import it at its top

__all__: list[str] = []
