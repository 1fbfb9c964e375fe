"""Send the rows of a stream that a topic lacks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path  # noqa: TC003 - options are read off their types
from typing import TYPE_CHECKING, Any

import click

from drift import streams
from drift._checks import counted
from drift._options import option
from drift.cli._client import Client, send_all
from drift.consumers.codec import Example
from drift.consumers.json_codec import JsonCodec
from drift.consumers.records import Outgoing
from drift.errors import ConsumerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from drift.consumers.client.topics import Reader
    from drift.streams import ShiftingStream

__all__ = ["Produce", "messages", "paced", "pick", "rest"]


@dataclass(kw_only=True)
class Produce(Client):
    """Send a stream to a topic of its own as JSON, its rows to the partitions in turn.

    After an interruption the same command resumes where each partition ends: no row is left out or
    sent twice. Returns when the broker has confirmed every row.
    """

    stream: str = option(
        "newswire, rcv1, reuters21578, segments, a9a or a LIBSVM file.", argument=True
    )
    topic: str = option("The topic; created if it is missing.")
    partitions: int | None = option("Partitions of a new topic; default: 1.", None, least=1)
    shifts: int = option("How often the target shifts.", 7, least=0)
    rows: int | None = option("Take the first examples only.", None, least=1)
    rate: float | None = option(
        "Examples a second; default: as fast as possible.", None, least=0, above=True
    )
    seed: int = option("Seed of the stream.", 0)
    data: Path | None = option("Folder of the stream's files; default: in $DRIFT_DATA.", None)

    interrupted = "interrupted: the same command again sends the rest"

    def _run(self) -> None:
        reading, sending = self.clients()
        from drift.cli._progress import bar
        from drift.consumers.client.topics import Reader, create

        with Reader(self.topic, reading) as reader:
            if not reader.partitions:
                create(self.topic, self.partitions or 1, sending)
                reader.refresh()
            elif self.partitions not in {None, len(reader.partitions)}:
                raise ConsumerError(
                    f"{self.topic} has {counted(len(reader.partitions), 'partition')}, not "
                    f"{self.partitions}: leave --partitions out, or give another topic"
                )
            stream = pick(self.stream, self.data, self.rows, self.shifts, self.seed)
            ends = reader.ends()
            _refuse_another_stream(reader, ends, stream)
        before, started = sum(ends.values()), time.monotonic()
        with bar(stream.n_samples, before) as advance:
            rows = paced(rest(stream, self.topic, ends), self.rate)
            confirmed = send_all(rows, sending, advance)
        click.echo(
            f"{self.topic}: {counted(confirmed, 'example')} confirmed by the broker in "
            f"{time.monotonic() - started:.1f} s, {before:,} already there; "
            f"{counted(len(ends), 'partition')}"
        )


def pick(
    stream: str, data: Path | None, rows: int | None, shifts: int, seed: int
) -> ShiftingStream:
    """Return a stream by its name, with `shifts` shifts of its target."""
    documents, targets = streams.load(stream, data, rows, seed)
    return streams.tracking_groups(documents, targets, [shifts], 1, seed)[shifts][0]


def messages(stream: ShiftingStream) -> Iterator[bytes]:
    """Yield the JSON of each row; its ``id`` is the row's number."""
    codec = JsonCodec()
    for number, (features, label) in enumerate(stream):
        yield codec.encode(Example(features, label, number))


def _refuse_another_stream(reader: Reader, ends: dict[int, int], stream: ShiftingStream) -> None:
    """Refuse a topic whose last messages are not this stream's."""
    wanted = {(end - 1) * len(ends) + number: number for number, end in ends.items() if end}
    last = max(wanted, default=-1)
    foreign = last >= stream.n_samples
    for row, value in enumerate(islice(messages(stream), last + 1)):
        if row in wanted and not foreign:
            message = reader.at(wanted[row], row // len(ends))
            foreign = message is not None and message.value != value
    if foreign:
        raise ConsumerError(
            f"{reader.topic} holds another stream: give the options that it was "
            "started with, or another topic"
        )


def paced(
    rows: Iterable[Outgoing], rate: float | None, wait: Callable[[float], Any] = time.sleep
) -> Iterator[Outgoing]:
    """Yield `rate` rows a second; None: without waiting.

    Ends before the row for which `wait` returns something that is true, as an event does.
    """
    began = time.monotonic()
    for number, row in enumerate(rows):
        if rate is not None and wait(max(0.0, began + number / rate - time.monotonic())):
            return
        yield row


def rest(stream: ShiftingStream, topic: str, ends: Mapping[int, int]) -> Iterator[Outgoing]:
    """Yield the rows that the partitions lack."""
    for row, value in enumerate(messages(stream)):
        turn, number = divmod(row, len(ends))
        if turn >= ends[number]:
            yield Outgoing(topic, None, value, [], number)
