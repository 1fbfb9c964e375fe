"""Learning from Kafka, each example exactly once."""

from drift.consumers._trust import register

__all__ = ["register"]
