"""Consumers that learn each example of a Kafka topic exactly once."""

from drift.consumers._trust import register
from drift.consumers.checkpoint import Checkpoint
from drift.consumers.folder import CheckpointFolder, Claim

__all__ = ["Checkpoint", "CheckpointFolder", "Claim", "register"]
