"""A history for `drift checkpoint init`: its examples, and the offsets to start from after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drift._durations import moment
from drift.consumers.client.topics import Reader
from drift.consumers.codec import Example
from drift.errors import ConsumerError, ParameterError
from drift.streams import read_stream
from drift.streams._files import COMPRESSED, read_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import TopicPartition

__all__ = ["history_of", "start_offsets"]

_LINES = {".jsonl", ".ndjson"}


def history_of(
    path: Path, target: str | None, time: str | None, drop: Collection[str]
) -> Sequence[Example | bytes]:
    """Return the lines of a file of JSON as they are, or the rows of a table as examples.

    Parameters
    ----------
    path
        The file.
    target
        The column of the labels; None for JSON lines, which the codec reads.
    time
        The column by which rows are ordered; None: as they come.
    drop
        Columns that are no features.

    Raises
    ------
    ParameterError
        If the file is a table and there is no such column, or it is none and one is named.
    DataError
        If it cannot be read.
    """
    suffixes = [one.lower() for one in path.suffixes if one.lower() not in COMPRESSED]
    if not suffixes or suffixes[-1] not in _LINES:
        return [Example(x, y) for x, y in read_stream(path, target, time=time, drop=drop)]
    if target or time or drop:
        raise ParameterError(
            f"{path} has messages as the topic has them, which [codec] reads: leave --target, "
            "--time and --drop out"
        )
    _, content = read_bytes(path)
    return content.splitlines()


def start_offsets(
    start: str | None, options: WorkerOptions, reading: Mapping[str, Any]
) -> tuple[dict[TopicPartition, int], dict[str, str]]:
    """Return the offsets where a worker starts, and the identity of its topics and group.

    Parameters
    ----------
    start
        ``"earliest"``, ``"latest"`` or a time in ISO's form; None for what the options say.
    options
        The worker's.
    reading
        Options of kafka-python.

    Raises
    ------
    ParameterError
        If it is neither, or neither it nor the options say where.
    ConsumerError
        If there is no such topic, or the group has learnt it.
    """
    wanted = _start(start or options.start)
    first: dict[TopicPartition, int] = {}
    identity = {"group": options.group}
    for topic in options.topics:
        with Reader(topic, {**reading, "group_id": options.group}) as reader:
            reader.require(options.partition)
            if committed := reader.committed():
                upto = ", ".join(f"{topic}:{n} up to {at}" for n, at in committed.items())
                raise ConsumerError(
                    f"{options.group} has learnt {upto}: a history is learnt before anything else, "
                    "give another group"
                )
            starts = reader.starts(wanted)
            identity |= reader.identity(of_labels=topic == options.labels)
        first |= {
            (topic, number): offset
            for number, offset in starts.items()
            if options.partition in {None, number}
        }
    return first, identity


def _start(text: str | None) -> str | float:
    if text is None:
        raise ParameterError("say where to start in the topic: --start latest or TIME")
    if text in {"earliest", "latest"}:
        return text
    try:
        return moment(text).timestamp()
    except ValueError:
        raise ParameterError(
            f"--start is {text!r}: write earliest, latest or a time, as 2026-11-20T08:00"
        ) from None
