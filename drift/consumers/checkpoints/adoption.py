"""Let checkpoints continue with another topic: an operator's decision."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.agreement import part, without
from drift.consumers.checkpoints.file_format import (
    Description,
    check_signature,
    describe,
    id_of,
    load,
    naming,
    seal,
)
from drift.consumers.checkpoints.files import PartitionFolder, files_in
from drift.consumers.checkpoints.journal import order_line
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.records import Position

__all__ = ["adopt", "check_secret", "newest", "partitions", "rewrite", "skip", "stored"]


def newest(
    folder: AnyPath, warn: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[PartitionFolder, dict[str, Any]]]:
    """Yield the headers of the newest checkpoints, in a folder of one partition or of several.

    Parameters
    ----------
    folder
        The folder.
    warn
        Called with a line for each checkpoint that is skipped, as it cannot be used.

    Raises
    ------
    CheckpointError
        At the end, if there are partitions of which no checkpoint can be used, or no partitions.
    """
    damaged = []
    for partition in partitions(folder):
        found = next(stored(partition, warn), None)
        if found is None:
            damaged.append(f"{partition.path}: no checkpoint can be used")
        else:
            yield partition, found.header
    if damaged:
        raise CheckpointError("; ".join(damaged))


def partitions(folder: AnyPath) -> list[PartitionFolder]:
    """Return the files of each model that has checkpoints in a folder, of one or of several.

    Raises
    ------
    CheckpointError
        If there is none.
    """
    folders = sorted(path for path in folder.iterdir() if path.is_dir())
    known = [files for files in map(files_in, [folder, *folders]) if files.listing().checkpoints]
    if not known:
        raise CheckpointError(f"{folder} has no checkpoint: give the folder of --checkpoints")
    return known


def stored(
    partition: PartitionFolder, warn: Callable[[str], None] = lambda _: None
) -> Iterator[Description]:
    """Yield the checkpoints of a partition that are whole, the newest first.

    Parameters
    ----------
    partition
        Its files.
    warn
        Called with a line for each that is skipped, as it cannot be used.
    """
    for which in reversed(partition.listing().checkpoints):
        file = partition.file(*which)
        try:
            with suppress(FileNotFoundError), naming(file):
                yield describe(load(file))
        except CheckpointError as problem:
            warn(str(problem))


def check_secret(partition: PartitionFolder, found: Description, secret: bytes | None) -> None:
    """Refuse to rewrite a checkpoint without the key that it is signed with.

    Parameters
    ----------
    partition
        The files that it is of.
    found
        What is in it.
    secret
        The key that there is; None for none.

    Raises
    ------
    CheckpointError
        If it is signed with another one.
    """
    with naming(partition.file(found.header["epoch"], found.header["sequence"])):
        if secret is None and found.signature is not None:
            raise CheckpointError("it is signed: give the file of its key, --key-file")
        check_signature(found, secret)


def adopt(
    partition: PartitionFolder, offset: int | None, secret: bytes | None, *, codec: bool = False
) -> None:
    """Rewrite the newest checkpoint of a partition for the topic as it is now; see `rewrite`.

    Parameters
    ----------
    partition, secret
        As of `rewrite`.
    offset
        The next offset of each partition; None for those of the checkpoint.
    codec
        The topic is the checkpoint's; the codec may be another one, which the next checkpoint
        names.
    """

    def changed(old: Description) -> tuple[dict[str, Any], list[bytes]]:
        if offset is not None and "join" in old.header:
            raise CheckpointError(
                "it has offsets of two logs: adopt it without --offset, or start with another "
                "folder and group"
            )
        if codec:
            return old.header | {"configuration": without(old.header["configuration"], "codec")}, [
                old.payload
            ]
        offsets = [[t, p, n if offset is None else offset] for t, p, n in old.header["offsets"]]
        new = {"offsets": offsets, "identity": {}, "leader_epochs": []}
        return old.header | new, [old.payload]

    rewrite(partition, secret, changed, "drift checkpoint adopt")


def skip(partition: PartitionFolder, position: Position, secret: bytes | None) -> None:
    """Have the newest checkpoint of a partition leave a message out; see `rewrite`.

    Parameters
    ----------
    partition, secret
        As of `rewrite`.
    position
        The message, which becomes a dead letter.

    Raises
    ------
    CheckpointError
        If it has been learnt.
    """

    def changed(old: Description) -> tuple[dict[str, Any], list[bytes]]:
        offsets = {(topic, number): at for topic, number, at in old.header["offsets"]}
        at = offsets[position[:2]]
        if position.offset < at:
            raise CheckpointError(
                f"{position} has been learnt, the next offset is {at}: roll back to a checkpoint "
                "before it to learn without it"
            )
        return old.header | {"skips": [*old.header.get("skips", []), [*position]]}, [old.payload]

    rewrite(partition, secret, changed, "drift checkpoint skip")


def _reads(header: dict[str, Any]) -> list[Any]:
    """Return what says which messages are learnt next, and how they are read."""
    return [header["offsets"], part(header["configuration"], "codec"), header.get("skips", [])]


def rewrite(
    partition: PartitionFolder,
    secret: bytes | None,
    changed: Callable[[Description], tuple[dict[str, Any], list[bytes]]],
    by: str,
) -> dict[str, Any]:
    """Rewrite the newest checkpoint of a partition, changed; return its header.

    A worker that has the partition is fenced, and loads the new checkpoint.

    Parameters
    ----------
    partition
        Its folder.
    secret
        What it is signed with, if it is.
    changed
        Returns header and payload of the new one.
    by
        Who claims it, for the worker that is fenced by it.

    Raises
    ------
    CheckpointError
        If it is signed with another key, or nothing can be written.
    """
    epoch = partition.claim(by)
    old = next(stored(partition), None)
    if old is None:
        raise CheckpointError(f"{partition.path} has no undamaged checkpoint any more")
    check_secret(partition, old, secret)
    with naming(partition.file(old.header["epoch"], old.header["sequence"])):
        header, payload = changed(old)
    if _reads(header) == _reads(old.header):
        # Else messages are learnt again, skipped or read otherwise, which the logs do not show.
        partition.append_order(epoch, 1, order_line(f"{epoch}-1", id_of(old.header), []))
    header |= {"epoch": epoch, "sequence": 1}
    header.pop("restores", None)
    partition.write(epoch, 1, seal(header, payload, secret))
    partition.clean(epoch)
    return header
