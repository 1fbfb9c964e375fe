"""A shadow that takes the model's place in its checkpoints: an operator's decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.agreement import swapped
from drift.consumers.checkpoints.checkpoint import split
from drift.consumers.checkpoints.file_format import next_offsets
from drift.consumers.checkpoints.rewriting import rewrite
from drift.consumers.shadow import Shadow, promotion
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from drift.consumers.checkpoints.file_format import Description
    from drift.consumers.checkpoints.files import ModelFolder

__all__ = ["promote"]


def promote(files: ModelFolder, secret: bytes | None) -> dict[str, Any]:
    """Rewrite the newest checkpoint of a model with model and shadow swapped; see `rewrite`.

    Neither model is built, and the offsets stay.

    Raises
    ------
    CheckpointError
        If it has no shadow, and as `rewrite` does.
    """
    return rewrite(files, secret, _promoted, "drift promote")


def _promoted(old: Description) -> tuple[dict[str, Any], list[bytes]]:
    header, (models, _) = old.header, split(old)
    if len(models) < 2:
        raise CheckpointError("it has no shadow to be promoted")
    (_, model), (shadow, second) = models
    new = {
        "model": shadow["model"],
        "payload": shadow["payload"],
        "configuration": swapped(header["configuration"]),
        "promotions": promotion(
            header["promotions"],
            configuration=header["configuration"],
            shadow=shadow["state"],
            counts=header["metrics"],
            by="hand",
        ),
        "shadow": {
            "model": header["model"],
            "payload": header["payload"],
            "size": len(model),
            "state": Shadow(None, next_offsets(header)).state(),
        },
    }
    return header | new, [second, model, old.payload[len(model) + len(second) :]]
