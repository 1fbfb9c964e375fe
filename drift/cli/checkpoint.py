"""Show, verify or adopt checkpoints of `drift consume`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path  # noqa: TC003 - options are read off their types
from typing import TYPE_CHECKING, Any

import click

from drift._options import option
from drift.cli._client import read_key
from drift.cli._command import Command
from drift.cli._shadow import promotion_line, shadow_line
from drift.consumers.checkpoints.adoption import adopt, newest
from drift.consumers.checkpoints.checkpoint import verify
from drift.consumers.checkpoints.file_format import Description, describe, load, naming
from drift.consumers.checkpoints.objects import place
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Adopt", "Show", "Verify"]

#: Counts that a line about a partition has.
_SHOWN = ("examples", "mistakes", "unlabelled", "dead_letters")
_warn = partial(click.echo, err=True)


@dataclass(kw_only=True)
class Show(Command):
    """Show a checkpoint's offsets, configuration, metrics and versions.

    Of a folder, a line for the newest one of each model.
    """

    file: str = option("The file of a checkpoint, or a folder of them.", argument=True)

    def _run(self) -> None:
        folder = place(self.file)
        if folder.is_dir():
            for _, header in newest(folder, _warn):
                click.echo(_line(header))
        else:
            with naming(self.file):
                description = describe(load(self.file))
            click.echo(_described(description))


@dataclass(kw_only=True)
class _Signed(Command):
    key_file: Path | None = option("File of the key that it must be signed with.", None)


@dataclass(kw_only=True)
class Verify(_Signed):
    """Check a checkpoint's checksum, signature and model; runs nothing that is in the file."""

    file: str = option("The file of a checkpoint.", argument=True)

    def _run(self) -> None:
        key = read_key(self.key_file)
        with naming(self.file):
            description = verify(load(self.file), key=key)
        kind = description.header["payload"]
        unread = ", its model a pickle that was not loaded" if kind == "pickle" else ""
        signed = "" if key is None else ", signed with this key"
        click.echo(f"{self.file}: sound{signed}{unread}")


@dataclass(kw_only=True)
class Adopt(_Signed):
    """Let checkpoints go on with a topic that was made anew, moved or truncated.

    Nothing is learnt that is in the topic before their offsets, whatever it is now.
    """

    folder: str = option("The checkpoints, or those of one model.", argument=True)
    topic: str | None = option("The topic to be adopted; default: you are asked for it.", None)
    offset: int | None = option(
        "Where to go on in each partition; default: as before.", None, least=0
    )

    def _run(self) -> None:
        found = dict(newest(place(self.folder), _warn))
        for partition, header in found.items():
            offsets = ", ".join(f"{name}:{n} at {at}" for name, n, at in header["offsets"])
            known = ", ".join(f"{name} {value}" for name, value in header["identity"].items())
            click.echo(f"{partition.path}: {offsets}, learnt from {known or 'no known topic'}")
        topic = self.topic or click.prompt("Name of the topic that these are to go on with")
        chosen = [one for one, h in found.items() if topic in {name for name, *_ in h["offsets"]}]
        if not chosen:
            raise ParameterError(f"{self.folder} has no checkpoint of {topic}: nothing was changed")
        for partition in chosen:
            adopt(partition, self.offset, read_key(self.key_file))
            click.echo(f"{partition.path}: goes on with {topic} as it is now")


def _line(header: Mapping[str, Any]) -> str:
    counts = header["metrics"]
    return "  ".join(
        [
            ", ".join(f"{topic}:{n} at {offset}" for topic, n, offset in header["offsets"]),
            f"{header['epoch']}-{header['sequence']}",
            _when(header),
            header["model"],
            *([f"shadow {header['shadow']['model']}"] if "shadow" in header else []),
            *(f"promotions {last['number']}" for last in header["promotions"][-1:]),
            *(
                f"{name.replace('_', ' ')} {counts[name]:,}"
                for name in _SHOWN
                if type(counts.get(name)) is int
            ),
        ]
    )


def _when(header: Mapping[str, Any]) -> str:
    return datetime.fromtimestamp(header["time"], UTC).isoformat(sep=" ", timespec="seconds")


def _described(description: Description) -> str:
    header = description.header
    signed = "" if description.signature is None else ", signed"
    size = f"{len(description.payload):,} bytes"
    lines = [
        f"format   version {description.version}, model as {header['payload']}, {size}{signed}",
        f"model    {header['model']}",
        f"id       {header['epoch']}-{header['sequence']}",
        f"time     {_when(header)}",
        "offsets",
        *(f"  {topic}:{partition} {offset}" for topic, partition, offset in header["offsets"]),
    ]
    if "shadow" in header:
        lines.append(f"shadow   {shadow_line(header)}")
    lines += [f"promoted {promotion_line(one)}" for one in header["promotions"]]
    for part in ("identity", "configuration", "metrics", "versions"):
        lines.append(part)
        for name, value in header[part].items():
            lines.append(f"  {name} {value if isinstance(value, str) else json.dumps(value)}")
    return "\n".join(lines)
