"""Consumers that learn each example of a Kafka topic exactly once."""

__all__: list[str] = []
