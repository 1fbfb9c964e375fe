"""The command ``drift watch``: the error of a topic of predictions, live."""

from __future__ import annotations

import os
import time
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated, Any

import typer

from drift import cli_settings
from drift.cli_common import answering

__all__ = ["watch"]


def watch(
    topic: Annotated[str, typer.Argument(help="The predictions of `drift consume`.")],
    bootstrap: Annotated[str | None, typer.Option(help="host:port of a broker.")] = None,
    seconds: Annotated[float | None, typer.Option(help="End by itself; else by Ctrl-C.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file; [kafka] and [consumer] count here.")
    ] = None,
) -> None:
    """Draw the error of predictions as they come, from the first on; each counts once."""
    secrets = cli_settings.Secrets()
    with answering(secrets, ""):
        reading, _ = cli_settings.load_kafka(config, os.environ, bootstrap, secrets)
        _watch(topic, reading, seconds)


def _watch(topic: str, options: dict[str, Any], seconds: float | None) -> None:
    from rich.live import Live  # noqa: PLC0415

    from drift.cli_figure import ErrorFigure  # noqa: PLC0415
    from drift.consumers.client.topics import Reader  # noqa: PLC0415

    end = None if seconds is None else time.monotonic() + seconds
    figure = ErrorFigure()
    with Reader(topic, options) as reader:
        if not reader.partitions:
            missing = f"there is no topic {topic}, or this user may not see it: waiting for it"
            typer.echo(missing, err=True)
        with Live(figure, refresh_per_second=4):
            while end is None or time.monotonic() < end:
                figure.add(reader.poll(0.5))
                reader.refresh()
