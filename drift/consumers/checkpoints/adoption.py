"""Let checkpoints continue with another topic, or without a message: an operator's decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.agreement import without
from drift.consumers.checkpoints.checkpoint import with_join
from drift.consumers.checkpoints.file_format import next_offsets
from drift.consumers.checkpoints.join_state import before
from drift.consumers.checkpoints.rewriting import rewrite
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.consumers.checkpoints.file_format import Description
    from drift.consumers.checkpoints.files import ModelFolder
    from drift.consumers.records import Position

__all__ = ["adopt", "skip"]


def adopt(  # noqa: PLR0913
    files: ModelFolder,
    topic: str,
    offset: int | None,
    secret: bytes | None,
    *,
    partition: int | None = None,
    codec: bool = False,
) -> int:
    """Rewrite the newest checkpoint of a model for the topic as it is now; see `rewrite`.

    Returns how many messages and labels waited for each other, and are dropped.

    Parameters
    ----------
    files, secret
        As of `rewrite`.
    topic
        The topic; where labels have their own, either of the two.
    offset
        The next offset of each partition of the topic. What waits for its label, or its features,
        from there on is dropped, and read again if it is there. None for the offsets of the
        checkpoint, also of the other topic.
    partition
        The partition whose log is another one, of a topic that is the same; None for all, of a
        topic that may be another one.
    codec
        The topic is the checkpoint's; the codec may be another one, which the next checkpoint
        names.
    """
    dropped = 0

    def adopted_by(old: Description) -> tuple[dict[str, Any], list[bytes]]:
        header = old.header
        if codec:
            return header | {"configuration": without(header["configuration"], "codec")}, [
                old.payload
            ]

        def is_adopted(name: str, number: int) -> bool:
            if partition is None and offset is None:
                return True
            return name == topic and partition in {None, number}

        # Of the other partitions. What is true at the offsets of one log alone goes.
        kept = {
            name: [entry for entry in header[name] if not is_adopted(*entry[:2])]
            for name in ("offsets", "leader_epochs", "clocks", "skips")
        }
        adopted = [entry for entry in header["offsets"] if entry not in kept["offsets"]]
        begun = [[t, p, n if offset is None else offset] for t, p, n in adopted]
        new: dict[str, Any] = kept | {"offsets": sorted(kept["offsets"] + begun)}
        if partition is None:
            new["identity"] = {} if offset is None else _of_the_other(header, topic)
        if offset is None:  # the log goes on, with its time and what is to be left out
            del new["clocks"], new["skips"]
            return header | new, [old.payload]
        limits = {(t, p): offset for t, p, _ in adopted}

        def left(state: Mapping[str, Any], values: bytes) -> tuple[dict[str, Any], bytes]:
            nonlocal dropped
            result = before(state, values, limits)
            dropped = sum(len(state[name]) - len(result[0][name]) for name in ("ids", "early"))
            return result

        return with_join(old._replace(header=header | new), left)

    rewrite(files, secret, adopted_by, "drift checkpoint adopt")
    return dropped


def _of_the_other(header: dict[str, Any], topic: str) -> dict[str, str]:
    """Return the identity of the topic that is not adopted, if labels have one of their own.

    The cluster's is kept, too. Without it the next error could not exclude another cluster.
    """
    labels = header["configuration"].get("labels")
    if labels is None:
        return {}
    name = "topic_id" if topic == labels else "labels_topic_id"
    known = header["identity"]
    return {n: known[n] for n in (name, "cluster_id") if n in known} if name in known else {}


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
