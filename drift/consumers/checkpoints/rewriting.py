"""Rewrite a model's newest checkpoint, by hand."""

from __future__ import annotations

import time as clock
from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.agreement import part
from drift.consumers.checkpoints.file_format import (
    Description,
    check_signature,
    id_of,
    naming,
    seal,
)
from drift.consumers.checkpoints.files import stored
from drift.consumers.checkpoints.journal import order_line, which_models
from drift.consumers.crash_points import reached
from drift.consumers.order import BY_HAND, LearntRuns
from drift.consumers.records import Position
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from drift.consumers.checkpoints.files import ModelFolder

__all__ = ["check_secret", "publish", "rewrite"]


def check_secret(files: ModelFolder, found: Description, secret: bytes | None) -> None:
    """Refuse to rewrite a checkpoint without the key that it is signed with.

    Parameters
    ----------
    files
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
    with naming(files.file(found.header["epoch"], found.header["sequence"])):
        if secret is None and found.signature is not None:
            raise CheckpointError("it is signed: give the file of its key, --key-file")
        check_signature(found, secret)


def _reads(header: dict[str, Any]) -> list[Any]:
    """Return what says which messages come next, and how they are read."""
    return [header["offsets"], part(header["configuration"], "codec")]


def rewrite(
    files: ModelFolder,
    secret: bytes | None,
    changed: Callable[[Description], tuple[dict[str, Any], list[bytes]]],
    by: str,
) -> dict[str, Any]:
    """Rewrite the newest checkpoint of a model, changed; return its header.

    A worker that has the model is fenced, and loads the new checkpoint.

    Parameters
    ----------
    files
        Its folder.
    secret
        What it is signed with, if it is.
    changed
        Returns header and payload of the new one.
    by
        Who claims it, for the worker that is fenced by it.

    Raises
    ------
    FencedError, CheckpointError
        As `publish` does; or if it is signed with another key.
    """

    def look() -> tuple[Description, dict[str, Any], list[bytes]]:
        old = next(stored(files), None)
        if old is None:
            raise CheckpointError(f"{files.path} has no undamaged checkpoint any more")
        check_secret(files, old, secret)
        with naming(files.file(old.header["epoch"], old.header["sequence"])):
            return old, *changed(old)

    look()  # what is refused fences no worker
    epoch = files.claim(by)
    old, header, payload = look()
    header.pop("restores", None)
    # Else messages are learnt again, skipped or read otherwise, which neither the logs nor the line
    # show.
    is_ordered = _reads(header) == _reads(old.header) and all(
        position in header["skips"] for position in old.header["skips"]
    )
    previous = id_of(old.header) if is_ordered else None
    replaced = id_of(old.header)
    return publish(files, epoch, header, payload, secret, replaced=replaced, previous=previous)


def publish(  # noqa: PLR0913
    files: ModelFolder,
    epoch: int,
    header: dict[str, Any],
    payload: Sequence[bytes],
    secret: bytes | None,
    *,
    replaced: str,
    previous: str | None,
    offsets_of: str | None = None,
) -> dict[str, Any]:
    """Write the only checkpoint of a claim, such that the next worker has it; return its header.

    Parameters
    ----------
    files, secret
        As of `rewrite`.
    epoch
        Number of the claim.
    header, payload
        Its contents, without epoch, sequence and time.
    replaced
        The checkpoint that was the newest, which is kept for a day to undo this.
    previous
        The checkpoint that it is to follow in the order of learning; None for none.
    offsets_of
        As of `drift.consumers.checkpoints.journal.order_line`.

    Raises
    ------
    FencedError
        If a worker has claimed the model meanwhile, which may go on from the checkpoint before.
    CheckpointError
        If it cannot be written.
    """
    header = header | {"epoch": epoch, "sequence": 1, "time": clock.time(), "replaced": replaced}
    if previous is not None:
        models = which_models(header["promotions"], header.get("shadow", {}).get("state"))
        skips = LearntRuns(skips={Position(*at): BY_HAND for at in header["skips"]})
        line = order_line(
            id_of(header),
            previous,
            skips,
            offsets_of=offsets_of,
            digest=header["digest"],
            models=models,
        )
        files.append_order(epoch, 1, line)
    files.write(epoch, 1, seal(header, payload, secret))
    files.look_again(epoch)
    reached("rewrite.written")
    files.clean(epoch)
    return header
