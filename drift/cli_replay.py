"""The command ``drift replay``: dead letters back to their topic, each once."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drift import cli_settings
from drift.cli_common import answering
from drift.errors import ParameterError

if TYPE_CHECKING:
    from drift.consumers.codec import Message, Outgoing
    from drift.consumers.dead_letters import Replay

__all__ = ["replay"]


def replay(  # noqa: PLR0913, PLR0917
    dead_letters: Annotated[str, typer.Argument(help="The dead letters of `drift consume`.")],
    topic: Annotated[str, typer.Argument(help="The topic that they come from, and go to.")],
    bootstrap: Annotated[str | None, typer.Option(help="host:port of a broker.")] = None,
    error: Annotated[str, typer.Option(help="Only letters whose error holds this text.")] = "",
    dry_run: Annotated[  # noqa: FBT002
        bool, typer.Option("--dry-run", help="Print what would be sent, and send nothing.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file; [kafka], [consumer] and [producer] count here."),
    ] = None,
) -> None:
    """Send the messages of dead letters to their topic once more, with their keys and headers.

    Takes the letters that there are as it starts. One that stands twice is sent once, and what the
    topic holds of an earlier replay is left out: after an interruption the same command sends the
    rest. Run one at a time.
    """
    secrets = cli_settings.Secrets()
    with answering(secrets, "interrupted: the same command again sends the rest"):
        if dead_letters == topic:
            raise ParameterError("the dead letters cannot be sent to their own topic")
        reading, sending = cli_settings.load_kafka(config, os.environ, bootstrap, secrets)
        from drift.consumers.client.topics import Reader  # noqa: PLC0415
        from drift.consumers.dead_letters import Replay  # noqa: PLC0415

        with Reader(dead_letters, reading) as letters, Reader(topic, reading) as target:
            letters.require()
            target.require()
            found = Replay(letters, target, error=error, warn=_warn)
            count = _show(found) if dry_run else _send(found, sending)
    typer.echo(
        f"{topic}: {count:,} {'to be ' * dry_run}sent once more, {found.before:,} were before; "
        f"{found.twice:,} letters stand twice, {found.others:,} are of other topics"
    )


def _show(found: Replay) -> int:
    count = 0
    for letter, outgoing in found:
        typer.echo(_line(letter, outgoing))
        count += 1
    return count


def _send(found: Replay, options: dict[str, Any]) -> int:
    from drift.consumers.client.topics import Sender  # noqa: PLC0415

    with Sender(options) as sender:
        for _, (topic, key, value, headers, partition) in found:
            sender.send(topic, partition, value, key, headers)
        sender.flush()
    return sender.confirmed


def _line(letter: Message, outgoing: Outgoing) -> str:
    facts = {name: (value or b"").decode(errors="replace") for name, value in letter.headers}
    where = ":".join(facts[f"drift.{part}"] for part in ("topic", "partition", "offset"))
    size = len(outgoing.value or b"")
    return f"{where} to {outgoing.topic}:{outgoing.lane}, {size:,} bytes: {facts['drift.error']}"


def _warn(line: str) -> None:
    typer.echo(f"warning: {line}", err=True)
