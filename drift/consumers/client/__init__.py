"""The client that drift has of Kafka: kafka-python, which no other package imports."""

from drift.errors import MissingExtraError

try:
    import kafka  # noqa: F401 - so that each module here may import it at its top
except ImportError:
    raise MissingExtraError("kafka-python", "kafka") from None

__all__: list[str] = []
