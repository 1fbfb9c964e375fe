"""Swap a model and its shadow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - options are read off their types

import click

from drift._options import option
from drift.cli._client import read_secret
from drift.cli._command import Command, ask, warn
from drift.consumers.checkpoints.agreement import advice
from drift.consumers.checkpoints.file_format import next_offsets
from drift.consumers.checkpoints.files import newest
from drift.consumers.checkpoints.objects import as_path
from drift.consumers.records import written_offsets
from drift.errors import ParameterError

__all__ = ["Promote"]


@dataclass(kw_only=True)
class Promote(Command):
    """Swap the model of `drift consume` and its shadow.

    Rewrites the newest checkpoint, at the same offsets. The active worker reloads it and processes
    the messages since again. Repeat the command to swap back.
    """

    folder: str = option("The checkpoints, or those of one model.", argument=True)
    key_file: Path | None = option("File of the key that signs checkpoints.", None)
    yes: bool = option("Do not ask.", default=False)

    def _run(self) -> None:
        from drift.consumers.checkpoints.promotion import promote

        models = [one for one in newest(as_path(self.folder), warn) if "shadow" in one[1]]
        if len(models) != 1:
            raise ParameterError(
                f"{self.folder} has {len(models)} models with a shadow: "
                + ("give the folder of one of them" if models else "[models.shadow] makes one")
            )
        [(files, header)] = models
        names = header["model"], header["shadow"]["model"]
        question = "{1} is the shadow of {0}. Promote it".format(*names)
        if not self.yes and not ask(click.confirm, question, "--yes to promote"):
            click.echo("nothing was changed")
            return
        made = promote(files, read_secret(self.key_file))
        offsets = written_offsets(next_offsets(made))
        lines = (
            f"{files.path}: {names[1]} answers from {offsets} on",
            advice(made["configuration"]),
        )
        click.echo("\n".join(filter(None, lines)))
