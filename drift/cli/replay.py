"""Send dead letters back to their topic, each once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from drift._options import option
from drift.cli._client import Client, send_all
from drift.cli._command import warn
from drift.consumers.dead_letters import error_of, original
from drift.consumers.replay import Replay as Letters
from drift.errors import ParameterError

if TYPE_CHECKING:
    from drift.consumers.records import Message, Outgoing

__all__ = ["Replay"]


@dataclass(kw_only=True)
class Replay(Client):
    """Send dead letters back to the topic that they come from, with their keys and headers.

    Takes the letters that there are as it starts. Duplicates are skipped, and so is what the topic
    holds of an earlier replay: after an interruption the same command sends the rest. Run one at a
    time.
    """

    dead_letters: str = option("The dead letters of `drift consume`.", argument=True)
    topic: str = option("The topic that they come from.", argument=True)
    error: str = option("Only letters whose error contains this text.", "", empty=True)
    dry_run: bool = option("Print what would be sent, and send nothing.", default=False)

    interrupted = "interrupted: the same command again sends the rest"

    def _run(self) -> None:
        if self.dead_letters == self.topic:
            raise ParameterError("the dead letters cannot be sent to their own topic")
        reading, sending = self.clients()
        from drift.consumers.client.topics import Reader

        with (
            Reader(self.dead_letters, reading) as letters,
            Reader(self.topic, reading) as target,
        ):
            letters.require()
            target.require()
            chosen = Letters(letters, target, error=self.error, warn=warn)
            rows = (outgoing for _, outgoing in chosen)
            options = {"max_request_size": 8 << 20, **sending}
            count = _show(chosen) if self.dry_run else send_all(rows, options)
        click.echo(
            f"{self.topic}: {count:,} {'to be ' * self.dry_run}sent, {chosen.before:,} sent by an "
            f"earlier replay; skipped {chosen.twice:,} duplicate letters and {chosen.others:,} of "
            "other topics"
        )


def _show(chosen: Letters) -> int:
    count = 0
    for letter, outgoing in chosen:
        click.echo(_line(letter, outgoing))
        count += 1
    return count


def _line(letter: Message, outgoing: Outgoing) -> str:
    size = len(outgoing.value or b"")
    where = original(letter).position
    return f"{where} to {outgoing.topic}:{outgoing.partition}, {size:,} bytes: {error_of(letter)}"
