"""Checkpoints that go on with another topic than they were learnt from: an operator's decision."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.file_format import (
    Description,
    check_signature,
    describe,
    load,
    naming,
    seal,
)
from drift.consumers.checkpoints.files import PartitionFolder, files_in
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from drift.consumers.checkpoints.objects import AnyPath

__all__ = ["adopt", "newest"]


def newest(folder: AnyPath) -> dict[PartitionFolder, dict[str, Any]]:
    """Return the headers of the newest checkpoints, in a folder of one partition or of several."""
    folders = sorted(path for path in folder.iterdir() if path.is_dir())
    files = {one: _newest(one) for one in map(files_in, [folder, *folders])}
    found = {partition: one[1].header for partition, one in files.items() if one is not None}
    if not found:
        raise CheckpointError(f"{folder} has no checkpoint: give the folder of --checkpoints")
    return found


def _newest(partition: PartitionFolder) -> tuple[AnyPath, Description] | None:
    """Return the newest file that is whole, and what is in it."""
    for which in reversed(partition.listing().checkpoints):
        file = partition.file(*which)
        with suppress(CheckpointError, FileNotFoundError):
            return file, describe(load(file))
    return None


def adopt(partition: PartitionFolder, offset: int | None, key: bytes | None) -> None:
    """Write the newest checkpoint of a partition once more, so that it takes the topic as it is.

    A worker that has the partition is fenced, and takes it over anew.

    Parameters
    ----------
    partition
        Its folder.
    offset
        Where to go on; None for where it would have gone on.
    key
        What it is signed with, if it is.

    Raises
    ------
    CheckpointError
        If it is signed with another key, or nothing can be written.
    """
    epoch = partition.claim()
    newest = _newest(partition)
    if newest is None:
        raise CheckpointError(f"{partition.path} has no undamaged checkpoint any more")
    file, old = newest
    with naming(file):
        if key is None and old.signature is not None:
            raise CheckpointError("it is signed: give the file of its key, --key-file")
        check_signature(old, key)
    if offset is not None and "join" in old.header:
        raise CheckpointError(
            f"{partition.path}: it goes on in two logs, which one offset does not say: adopt it "
            "without, or start with another folder and group"
        )
    offsets = [[t, p, n if offset is None else offset] for t, p, n in old.header["offsets"]]
    new = {"epoch": epoch, "sequence": 1, "offsets": offsets, "identity": {}, "leader_epochs": []}
    partition.write(epoch, 1, seal(old.header | new, old.payload, key))
    partition.clean(epoch)
