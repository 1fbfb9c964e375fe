"""Where a partition starts that no checkpoint has, or goes on behind messages that were deleted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from drift.errors import ConsumerError

if TYPE_CHECKING:
    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import Logs, Source, TopicPartition

__all__ = ["behind_deleted", "first_offset", "offset_behind_gap"]

log = logging.getLogger("drift.consumers")


def first_offset(
    broker: Source,
    place: TopicPartition,
    start: str | None,
    folder: AnyPath,
    *,
    added: bool,
) -> int:
    """Return the first offset of a partition that no checkpoint has.

    Parameters
    ----------
    broker
        Has the group's committed offsets.
    place
        Topic and number.
    start
        "earliest", "latest" or None.
    folder
        The folder of checkpoints.
    added
        Whether a checkpoint exists and lacks the partition: it is new, and starts at its first
        offset, whatever an earlier model has committed.

    Raises
    ------
    ConsumerError
        If the group has learnt it without this folder, or `start` is None.
    """
    if added:
        return broker.bound(place, "earliest")
    committed = broker.committed(place)
    if committed is not None:
        raise ConsumerError(
            f"{place[0]}:{place[1]} has been learnt up to {committed}, but {folder} has no "
            "checkpoint of it: give the folder that has, or another group to start afresh"
        )
    if start is None:
        raise ConsumerError(
            f"{place[0]}:{place[1]} has no checkpoint: say where to start, --from earliest or "
            "--from latest, in Python start='earliest' or start='latest'"
        )
    first = broker.bound(place, start)
    if start == "latest" and (before := first - broker.bound(place, "earliest")):
        log.warning(
            "%s:%d starts at its end, %d (latest): %d messages before it are not learnt",
            *(*place, first, before),
        )
    return first


def offset_behind_gap(  # noqa: PLR0913
    broker: Logs,
    place: TopicPartition,
    offset: int,
    options: WorkerOptions,
    folder: AnyPath,
    *,
    what: str = "the next offset of its checkpoint",
) -> int:
    """Return the next offset after messages that were deleted, and log how many are lost.

    Parameters
    ----------
    broker, place, folder
        As of `first_offset`.
    offset
        The first that may be lost.
    options
        The worker's.
    what
        What that offset is, for the error.

    Raises
    ------
    ConsumerError
        If `on_gap` is "stop", or the log is not the checkpoint's.
    """
    first, end = broker.bound(place, "earliest"), broker.bound(place, "latest")
    if offset < first and options.on_gap == "stop":
        raise ConsumerError(
            f"{place[0]}:{place[1]} starts at {first}, after {offset}, {what}: "
            f"{first - offset} messages were deleted before they were learnt. Continue "
            "without them by on_gap = 'skip', --on-gap skip, or start afresh with another folder "
            "and another group"
        )
    why, which = "its log has other messages there", ""
    if offset > end:
        why, which = "its log ends before that", _where_to_go_on(place, first, end, options)
    other = ConsumerError(
        f"{place[0]}:{place[1]} has messages from {first} to {end}, and {offset} is {what}: "
        f"{why}, it was truncated or recreated. Start with another folder and group, or accept "
        f"it by drift checkpoint adopt {folder} --topic {place[0]} --partition {place[1]}"
        f"{which}"
    )
    return behind_deleted(place, offset, first, other)


def behind_deleted(place: TopicPartition, offset: int, first: int, other: ConsumerError) -> int:
    """Return the first offset of a log, if messages before it were deleted; log how many are lost.

    Parameters
    ----------
    place
        Topic and number.
    offset
        The first that may be lost.
    first
        The first that the log has.
    other
        What is raised if none were deleted: the log is another one.
    """
    if offset >= first:
        raise other
    log.error("%s:%d: %d messages are gone, continuing at %d", *place, first - offset, first)
    return first


def _where_to_go_on(place: TopicPartition, first: int, end: int, options: WorkerOptions) -> str:
    """Return the option of `adopt` for a log that ends before its checkpoint, and what it does."""
    if options.labels is None:
        return f" --offset {first}, which learns that log again"
    if place[0] == options.labels:
        return f" --offset {first}, which reads that log again and learns no label twice"
    # To read messages again would predict them again, and their labels may not come again.
    return f" --offset {end}, which goes on at its end; or give the offset where it was truncated"
