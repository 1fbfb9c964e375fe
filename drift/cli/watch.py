"""The error of a topic of predictions, live."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from drift._options import option
from drift.cli._client import Client
from drift.cli._settings import TABLES, load
from drift.cli._shadow import shadow_line
from drift.consumers.checkpoints.files import newest
from drift.consumers.checkpoints.objects import as_path
from drift.errors import CheckpointError, ConsumerError

if TYPE_CHECKING:
    from drift.consumers.client.topics import Reader

__all__ = ["Watch"]

#: Seconds between looks at the checkpoints.
_EVERY = 2.0


@dataclass(kw_only=True)
class Watch(Client):
    """Draw the error of predictions as they come, and measure them; each counts once.

    Where labels have a topic of their own, the worker measures: see its metrics, its log, or drift
    checkpoint list.

    Beside a [models.shadow] a line says how it does, by the newest checkpoint in the folder of
    [worker], which has to be in reach.
    """

    topic: str = option("The predictions of `drift consume`.", argument=True)
    events: str | None = option("Topic of alarms; default: that of the --config file.", None)
    positive: object | None = option(
        "Label that recall and precision are of; default: that of the --config file.", None
    )
    seconds: float | None = option(
        "Seconds after which to end; default: at Ctrl-C.", None, duration=True
    )

    interrupted = ""

    def _run(self) -> None:
        from drift.cli._figure import ErrorFigure, drawn

        reading, _ = self.clients()
        tables = load(self.config, TABLES)
        worker = tables["worker"]
        folder = worker.get("checkpoints") if tables["models"] else None
        positive = worker.get("positive") if self.positive is None else self.positive
        events = self.events or worker.get("events")

        with ExitStack() as stack:
            predictions = stack.enter_context(self._reader(self.topic, reading))
            readers, figure = [predictions], ErrorFigure(positive)
            alarms = None
            if events is not None:
                alarms = stack.enter_context(self._reader(events, reading))
                readers.append(alarms)
            stack.enter_context(drawn(figure))
            looked = -math.inf
            end = math.inf if self.seconds is None else time.monotonic() + self.seconds
            while (now := time.monotonic()) < end:
                if folder is not None and now > looked + _EVERY:
                    figure.shadow, looked = _shadow(folder), now
                figure.add(predictions.poll(0.5))
                if alarms is not None:
                    figure.add_events(alarms.poll(0.0))
                for reader in readers:
                    reader.refresh()

    @staticmethod
    def _reader(topic: str, options: dict[str, Any]) -> Reader:
        from drift.consumers.client.topics import Reader

        reader = Reader(topic, options)
        try:
            reader.require()
        except ConsumerError as missing:
            click.echo(f"{missing}: waiting for it", err=True)
        return reader


def _shadow(folder: str) -> str:
    """Return a line for each shadow in a folder of checkpoints, or why there is none to be seen."""
    try:
        return "\n".join(
            f"{files.path.name}: shadow {line}"
            for files, header in newest(as_path(folder))
            if (line := shadow_line(header))
        )
    except (CheckpointError, OSError) as problem:
        return str(problem)
