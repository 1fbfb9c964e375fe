"""Consumers that learn each example of a Kafka topic exactly once."""

from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.checkpoint import Checkpoint
from drift.consumers.checkpoints.folder import CheckpointFolder, Claim
from drift.consumers.codec import Example, JsonCodec
from drift.consumers.join import JoinOptions
from drift.consumers.options import WorkerOptions
from drift.consumers.relearning import relearn
from drift.models._state.kinds import register

if TYPE_CHECKING:
    from drift.consumers.worker import Worker

__all__ = [
    "Checkpoint",
    "CheckpointFolder",
    "Claim",
    "Example",
    "JoinOptions",
    "JsonCodec",
    "Worker",
    "WorkerOptions",
    "register",
    "relearn",
]


def __getattr__(name: str) -> Any:
    # Checkpoints and messages are read without the client that a worker needs.
    if name != "Worker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from drift.consumers.worker import Worker  # noqa: PLC0415

    return Worker
