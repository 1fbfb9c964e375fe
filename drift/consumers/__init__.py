"""Consumers that learn each example of a Kafka topic exactly once.

Names load on first use: checkpoints and messages are read without the client that a worker needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.checkpoints.folder import CheckpointFolder, Claim
    from drift.consumers.codec import Codec, Example
    from drift.consumers.join import JoinOptions
    from drift.consumers.json_codec import JsonCodec
    from drift.consumers.options import WorkerOptions
    from drift.consumers.reading import read_topic
    from drift.consumers.relearning import relearn
    from drift.consumers.worker import Worker
    from drift.models._state.kinds import register

__all__ = [
    "Checkpoint",
    "CheckpointFolder",
    "Claim",
    "Codec",
    "Example",
    "JoinOptions",
    "JsonCodec",
    "Worker",
    "WorkerOptions",
    "read_topic",
    "register",
    "relearn",
]

_HOMES = {
    "Checkpoint": "drift.consumers.checkpoints.checkpoint",
    "CheckpointFolder": "drift.consumers.checkpoints.folder",
    "Claim": "drift.consumers.checkpoints.folder",
    "Codec": "drift.consumers.codec",
    "Example": "drift.consumers.codec",
    "JoinOptions": "drift.consumers.join",
    "JsonCodec": "drift.consumers.json_codec",
    "Worker": "drift.consumers.worker",
    "WorkerOptions": "drift.consumers.options",
    "read_topic": "drift.consumers.reading",
    "register": "drift.models._state.kinds",
    "relearn": "drift.consumers.relearning",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
