"""The error of a topic of predictions, live."""

from __future__ import annotations

import time
from dataclasses import dataclass

import click

from drift._options import option
from drift.cli._client import Client

__all__ = ["Watch"]


@dataclass(kw_only=True)
class Watch(Client):
    """Draw the error of predictions as they come, from the first on; each counts once."""

    topic: str = option("The predictions of `drift consume`.", argument=True)
    seconds: float | None = option("Seconds after which to end; default: at Ctrl-C.", None)

    interrupted = ""

    def _run(self) -> None:
        reading, _ = self.clients()
        from drift.cli._figure import ErrorFigure, drawn  # noqa: PLC0415
        from drift.consumers.client.topics import Reader  # noqa: PLC0415

        end = None if self.seconds is None else time.monotonic() + self.seconds
        figure = ErrorFigure()
        with Reader(self.topic, reading) as reader:
            if not reader.partitions:
                missing = f"there is no topic {self.topic}, or this user may not see it"
                click.echo(f"{missing}: waiting for it", err=True)
            with drawn(figure):
                while end is None or time.monotonic() < end:
                    figure.add(reader.poll(0.5))
                    reader.refresh()
