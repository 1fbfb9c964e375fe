"""List, show, export and delete models of keys."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - options are read off their types
from typing import TYPE_CHECKING, NamedTuple

import click

from drift._checks import counted
from drift._durations import shown_moment
from drift._options import option
from drift.cli._client import read_secret
from drift.cli._command import Command, ask, noting, raise_all, warn
from drift.consumers.checkpoints.files import newest
from drift.consumers.checkpoints.objects import as_path
from drift.consumers.checkpoints.stored_keys import StoredKeys
from drift.errors import CheckpointError, DriftError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from drift.consumers.checkpoints.keyed_file import Row
    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.checkpoints.stored_keys import KeyFacts

__all__ = ["Keys"]


class _Partition(NamedTuple):
    """The models of a partition's keys, and the header of its newest checkpoint."""

    path: AnyPath
    stored: StoredKeys
    header: Mapping[str, Any]


@dataclass(kw_only=True)
class Keys(Command):
    """List the models of keys; show, export or delete that of one.

    `drift keys FOLDER` prints a line for each key, as of the newest checkpoint. Workers may go on.

    `show KEY` prints what is stored of it, with its model. `export KEY` writes the model to the
    file --to, for drift.models.from_bytes in Python.

    `delete KEY` removes it from all kept checkpoints, and asks before. A worker drops its model at
    its next checkpoint. Messages of the key that were sent before are not learnt again; with a
    later one it begins as a new key.
    """

    folder: str = option("The checkpoints, or those of one partition.", argument=True)
    action: str = option(
        "show, export or delete; default: list them all.",
        "list",
        choices=("list", "show", "export", "delete"),
        argument=True,
    )
    key: str | None = option("The key, for these three.", None, argument=True, empty=True)
    to: Path | None = option("The file to export to.", None)
    json: bool = option("List objects of JSON, a line each.", default=False)
    key_file: Path | None = option("File of the key that models are signed with.", None)
    yes: bool = option("Delete without asking.", default=False)

    def _run(self) -> None:
        partitions = [
            _Partition(files.path, StoredKeys(files, header["models"], warn), header)
            for files, header in newest(as_path(self.folder), warn)
        ]
        if self.action == "list":
            self._list(partitions)
        elif self.key is None:
            raise ParameterError(f"which key? drift keys {self.folder} {self.action} KEY")
        elif self.action == "delete":
            self._delete(self.key, partitions)
        else:
            self._show_or_export(self.key, partitions)

    def _list(self, partitions: Sequence[_Partition]) -> None:
        problems: list[DriftError] = []
        for partition in partitions:
            with noting(problems):
                for facts in partition.stored:
                    click.echo(self._line(partition, facts))
                partition.stored.check()
        raise_all(problems)

    def _line(self, partition: _Partition, facts: KeyFacts) -> str:
        time = shown_moment(facts.time)
        if self.json:
            return json.dumps({"folder": str(partition.path), **facts._asdict(), "time": time})
        return (
            f"{partition.path}  {facts.key}  {counted(facts.examples, 'example')}  last {time}  "
            f"{facts.size:,} bytes in {counted(facts.versions, 'version')}"
        )

    def _show_or_export(self, key: str, partitions: Sequence[_Partition]) -> None:
        found = [(one, facts) for one in partitions if (facts := one.stored.facts(key)) is not None]
        if not found:
            problems: list[DriftError] = []
            for partition in partitions:
                with noting(problems):
                    partition.stored.check(key)  # it may be there, and no search finds it
            raise_all(problems)
            raise ParameterError(f"{self.folder} has no model of {key!r}")
        if self.action == "export" and len(found) > 1:
            names = ", ".join(str(partition.path) for partition, _ in found)
            raise ParameterError(f"{key!r} has several models, give one of {names}")
        secret = read_secret(self.key_file)
        for partition, facts in found:
            row = partition.stored.load(key, secret)
            if row is None:
                raise CheckpointError(
                    f"{partition.path}: the model of {key!r} has just been deleted"
                )
            if self.action == "export":
                self._export(key, row)
            else:
                lines = _described(partition.header["model"], row)
                click.echo("\n".join([self._line(partition, facts), *lines]))

    def _export(self, key: str, row: Row) -> None:
        from drift.models._state.codec import decode, to_bytes

        if self.to is None:
            raise ParameterError("give the file to write, --to FILE")
        is_ours = row.kind == "drift"
        self.to.write_bytes(to_bytes(decode(row.state)) if is_ours else row.state)
        reader = "drift.models.from_bytes" if is_ours else "pickle.loads, which runs what is in it"
        click.echo(f"{self.to}: the model of {key}, for {reader}")

    def _delete(self, key: str, partitions: Sequence[_Partition]) -> None:
        problems: list[DriftError] = []
        found: list[tuple[_Partition, KeyFacts | None]] = []
        for partition in partitions:
            with noting(problems):
                found.append((partition, partition.stored.facts(key)))
        if not found:
            raise_all(problems)
        for partition, facts in found:
            if facts is not None:
                click.echo(self._line(partition, facts))
        if not problems and not any(facts for _, facts in found):
            click.echo(f"no checkpoint has a model of {key}; a worker may have a new one")
        if not self.yes and not ask(click.confirm, f"Delete {key}?", "--yes to delete it"):
            click.echo("nothing was changed")
            return
        deleted = []
        for partition, facts in found:
            with noting(problems):
                versions = partition.stored.delete(key)
                deleted.append(partition)
                _tell_deleted(partition, versions, 0 if facts is None else facts.examples)
        for partition in deleted:
            with noting(problems):
                partition.stored.check(key)  # a row that no search finds is still there
        raise_all(problems)


def _tell_deleted(partition: _Partition, versions: int, examples: int) -> None:
    """Print what was deleted of a key that had learnt so many examples, and what was not."""
    path = partition.path
    click.echo(
        f"{path}: {counted(versions, 'version')} deleted; what was sent of it up to now is not "
        "learnt again"
    )
    if partition.header["configuration"].get("keyed.prior"):
        click.echo(
            f"{path}: the prior has learnt its messages, too"
            + (f", these {counted(examples, 'example')} and any before" if examples else "")
            + ", and keys that began later began as copies of it: the page of keyed models says "
            "how to go on without them"
        )


def _described(kind: str, row: Row) -> list[str]:
    """Return lines about a model, of this class."""
    from drift.models._state.codec import decode

    if row.kind != "drift":
        return [f"{kind}, a pickle that was not loaded"]
    model = decode(row.state)
    supports = getattr(model, "n_supports", None)
    lines = repr(model).splitlines()
    return lines if supports is None else [*lines, counted(supports, "support vector")]
