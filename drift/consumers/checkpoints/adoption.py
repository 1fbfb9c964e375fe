"""Let checkpoints continue with another topic, or without a message: an operator's decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.agreement import without
from drift.consumers.checkpoints.file_format import next_offsets
from drift.consumers.checkpoints.rewriting import rewrite
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from drift.consumers.checkpoints.file_format import Description
    from drift.consumers.checkpoints.files import ModelFolder
    from drift.consumers.records import Position, TopicPartition

__all__ = ["adopt", "skip"]


def adopt(
    files: ModelFolder,
    offset: int | None,
    secret: bytes | None,
    *,
    place: TopicPartition | None = None,
    codec: bool = False,
) -> None:
    """Rewrite the newest checkpoint of a model for the topic as it is now; see `rewrite`.

    Parameters
    ----------
    files, secret
        As of `rewrite`.
    offset
        The next offset of each partition; None for those of the checkpoint.
    place
        The partition whose log is another one, of a topic that is the same; None for all, of a
        topic that may be another one.
    codec
        The topic is the checkpoint's; the codec may be another one, which the next checkpoint
        names.
    """

    def changed(old: Description) -> tuple[dict[str, Any], list[bytes]]:
        if offset is not None and "join" in old.header:
            remedy = "adopt it without --offset, or " if place is None else ""
            raise CheckpointError(
                f"it has offsets of two logs: {remedy}start with another folder and group"
            )
        if codec:
            return old.header | {"configuration": without(old.header["configuration"], "codec")}, [
                old.payload
            ]
        # Of the other partitions. What is true at the offsets of one log alone goes.
        kept = {
            name: [entry for entry in old.header[name] if place not in {None, (*entry[:2],)}]
            for name in ("offsets", "leader_epochs", "clocks", "skips")
        }
        adopted = [entry for entry in old.header["offsets"] if entry not in kept["offsets"]]
        begun = [[t, p, n if offset is None else offset] for t, p, n in adopted]
        new: dict[str, Any] = kept | {"offsets": sorted(kept["offsets"] + begun)}
        if place is None:
            new["identity"] = {}
        if offset is None:  # the log goes on, with its time and what is to be left out
            del new["clocks"], new["skips"]
        return old.header | new, [old.payload]

    rewrite(files, secret, changed, "drift checkpoint adopt")


def skip(files: ModelFolder, position: Position, secret: bytes | None) -> None:
    """Have the newest checkpoint of a model leave a message out; see `rewrite`.

    Parameters
    ----------
    files, secret
        As of `rewrite`.
    position
        The message, which becomes a dead letter.

    Raises
    ------
    CheckpointError
        If it has been learnt.
    """

    def changed(old: Description) -> tuple[dict[str, Any], list[bytes]]:
        at = next_offsets(old.header)[position[:2]]
        if position.offset < at:
            raise CheckpointError(
                f"{position} has been learnt, the next offset is {at}: roll back to a checkpoint "
                "before it to learn without it"
            )
        return old.header | {"skips": [*old.header["skips"], [*position]]}, [old.payload]

    rewrite(files, secret, changed, "drift checkpoint skip")
