"""Checkpoints that go on with another topic than they were learnt from: an operator's decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.file_format import (
    check_signature,
    describe,
    is_whole,
    load,
    naming,
    seal,
)
from drift.consumers.checkpoints.files import PartitionFolder, files_in
from drift.consumers.checkpoints.objects import ObjectPath
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from drift.consumers.checkpoints.objects import AnyPath

__all__ = ["adopt", "newest"]


def newest(folder: AnyPath) -> dict[PartitionFolder, dict[str, Any]]:
    """Return the headers of the newest checkpoints, in a folder of one partition or of several."""
    if isinstance(folder, ObjectPath):
        folders: list[Any] = folder.folders()
    else:
        folders = sorted(path for path in folder.iterdir() if path.is_dir())
    files = {one: _newest(one) for one in map(files_in, [folder, *folders])}
    found = {}
    for partition, file in files.items():
        if file is not None:
            with naming(file):
                found[partition] = describe(load(file)).header
    if not found:
        raise CheckpointError(f"{folder} has no checkpoint: give the folder of --checkpoints")
    return found


def _newest(partition: PartitionFolder) -> AnyPath | None:
    files = [partition.file(*which) for which in reversed(partition.listing().checkpoints)]
    return next(filter(is_whole, files), None)


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
    file = _newest(partition)
    if file is None:
        raise CheckpointError(f"{partition.path} has no undamaged checkpoint any more")
    with naming(file):
        old = describe(load(file))
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
