"""The command line of checkpoints: ``drift checkpoint show``, ``verify`` and ``adopt``."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drift.cli_common import read_key
from drift.errors import DriftError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from drift.consumers.checkpoints.checkpoint import Description

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Look into checkpoints of `drift consume`.")

_File = Annotated[Path, typer.Argument(help="The file of a checkpoint.")]
_KeyFile = Annotated[Path | None, typer.Option(help="File of the key that it must be signed with.")]


@app.command()
def show(file: _File) -> None:
    """Show a checkpoint's offsets, configuration, metrics and versions."""
    with _answering(file):
        from drift.consumers.checkpoints import checkpoint  # noqa: PLC0415

        with checkpoint.naming(file):
            description = checkpoint.describe(checkpoint.load(file))
    for line in _lines(description):
        typer.echo(line)


@app.command()
def verify(file: _File, key_file: _KeyFile = None) -> None:
    """Check a checkpoint's checksum, signature and model; runs nothing that is in the file."""
    with _answering(file):
        from drift.consumers.checkpoints import checkpoint  # noqa: PLC0415

        key = read_key(key_file)
        with checkpoint.naming(file):
            description = checkpoint.verify(checkpoint.load(file), key=key)
    kind = description.header["payload"]
    unread = ", its model a pickle that was not loaded" if kind == "pickle" else ""
    signed = "" if key is None else ", signed with this key"
    typer.echo(f"{file}: sound{signed}{unread}")


@app.command()
def adopt(
    folder: Annotated[Path, typer.Argument(help="The checkpoints, or those of one partition.")],
    topic: Annotated[
        str | None, typer.Option(help="The topic to be adopted; else it is asked for.")
    ] = None,
    offset: Annotated[
        int | None, typer.Option(min=0, help="Where to go on in each partition; else as before.")
    ] = None,
    key_file: _KeyFile = None,
) -> None:
    """Let checkpoints go on with a topic that was made anew, moved or truncated.

    Nothing is learnt that is in the topic before their offsets, whatever it is now.
    """
    with _answering(folder):
        from drift.consumers.checkpoints import adoption  # noqa: PLC0415

        found = adoption.newest(folder)
        for partition, header in found.items():
            offsets = ", ".join(f"{name}:{n} at {at}" for name, n, at in header["offsets"])
            known = ", ".join(f"{name} {value}" for name, value in header["identity"].items())
            typer.echo(f"{partition.path}: {offsets}, learnt from {known or 'no known topic'}")
        if topic is None:
            topic = typer.prompt("Name of the topic that these are to go on with")
        chosen = [one for one, h in found.items() if topic in {name for name, *_ in h["offsets"]}]
        if not chosen:
            raise ParameterError(f"{folder} has no checkpoint of {topic}: nothing was changed")
        for partition in chosen:
            adoption.adopt(partition, offset, read_key(key_file))
            typer.echo(f"{partition.path}: goes on with {topic} as it is now")


def _lines(description: Description) -> Iterator[str]:
    header = description.header
    signed = "" if description.signature is None else ", signed"
    when = datetime.fromtimestamp(header["time"], UTC).isoformat(sep=" ", timespec="seconds")
    size = f"{len(description.payload):,} bytes"
    yield f"format   version {description.version}, model as {header['payload']}, {size}{signed}"
    yield f"model    {header['model']}"
    yield f"id       {header['epoch']}-{header['sequence']}"
    yield f"time     {when}"
    yield "offsets"
    yield from (f"  {topic}:{partition} {offset}" for topic, partition, offset in header["offsets"])
    for name in ("identity", "configuration", "metrics", "versions"):
        yield name
        yield from _entries(header[name])


def _entries(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        yield f"  {name} {value if isinstance(value, str) else json.dumps(value)}"


@contextmanager
def _answering(file: Path) -> Iterator[None]:
    try:
        yield
    except DriftError as problem:
        typer.echo(f"error: {problem}", err=True)
        raise typer.Exit(2) from None
    except OSError as problem:
        typer.echo(f"error: {problem.filename or file}: {problem.strerror}", err=True)
        raise typer.Exit(2) from None
