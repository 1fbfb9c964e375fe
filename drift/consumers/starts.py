"""Where a partition begins: without a checkpoint, and where what comes after one was deleted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from drift.errors import ConsumerError

if TYPE_CHECKING:
    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.client.consumer import GroupConsumer
    from drift.consumers.records import Source

__all__ = ["first_offset", "offset_behind_gap"]

log = logging.getLogger("drift.consumers")


def first_offset(
    broker: GroupConsumer,
    place: tuple[str, int],
    start: str | None,
    folder: AnyPath,
    *,
    came_later: bool,
) -> int:
    """Return the offset at which a partition begins that no checkpoint knows.

    Parameters
    ----------
    broker
        Which tells what the group has committed.
    place
        Topic and number.
    start
        What was asked for: "earliest", "latest" or nothing.
    folder
        Where a checkpoint was looked for.
    came_later
        Whether one model learns it with others, and went on from a checkpoint of those: one that
        went back to before this one came has learnt nothing of it, whatever a later one had.

    Raises
    ------
    ConsumerError
        If it has been learnt elsewhere, or nothing was asked for.
    """
    committed = broker.committed(place)
    if committed is not None and not (came_later and start == "earliest"):
        raise ConsumerError(
            f"{place[0]}:{place[1]} has been learnt up to {committed}, but {folder} has no "
            "checkpoint of it: give the folder that has, or another group to start anew"
            + (", or start at the earliest message, as the model has none of it" * came_later)
        )
    if start is None:
        raise ConsumerError(
            f"{place[0]}:{place[1]} has no checkpoint: say where to start, earliest or latest"
        )
    first = broker.bound(place, start)
    if start == "latest" and (before := first - broker.bound(place, "earliest")):
        log.warning(
            "%s:%d begins at its end, %d, as was asked for: %d messages before it are not learnt",
            *(*place, first, before),
        )
    return first


def offset_behind_gap(
    broker: Source, place: tuple[str, int], offset: int, on_gap: str, folder: AnyPath
) -> int:
    """Return where a partition goes on whose next message is gone, and say what is lost.

    Raises
    ------
    ConsumerError
        If that was not asked for, or the log is another one than the checkpoint's.
    """
    first, end = broker.bound(place, "earliest"), broker.bound(place, "latest")
    if offset >= first:
        what = "its log ends before that" if offset > end else "its log has other messages there"
        raise ConsumerError(
            f"{place[0]}:{place[1]} has messages from {first} to {end}, and its checkpoint goes on "
            f"at {offset}: {what}, it was truncated or made anew. Start with another folder and "
            f"group, or go on with it by drift checkpoint adopt {folder}"
        )
    if on_gap == "stop":
        raise ConsumerError(
            f"{place[0]}:{place[1]} begins at {first}, behind {offset}, where its checkpoint goes "
            f"on: {first - offset} messages were deleted before they were learnt. Go on without "
            "them with on_gap = 'skip', --on-gap skip, or start afresh with another folder and "
            "another group"
        )
    log.error("%s:%d: %d messages are gone, going on at %d", *place, first - offset, first)
    return first
