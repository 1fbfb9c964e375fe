"""List, show, export and delete models of keys."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - options are read off their types
from typing import TYPE_CHECKING

import click

from drift._checks import counted
from drift._durations import shown_moment
from drift._options import option
from drift.cli._client import read_secret
from drift.cli._command import Command, warn
from drift.consumers.checkpoints.files import newest
from drift.consumers.checkpoints.objects import as_path
from drift.consumers.checkpoints.stored_keys import StoredKeys
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from drift.consumers.checkpoints.keyed_store import Row
    from drift.consumers.checkpoints.stored_keys import KeyFacts

__all__ = ["Keys"]


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
        headers = {
            partition.path: (StoredKeys(partition, header["models"]), header)
            for partition, header in newest(as_path(self.folder), warn)
        }
        if self.action == "list":
            for path, (stored, _) in headers.items():
                for facts in stored:
                    click.echo(self._line(path, facts))
            return
        if self.key is None:
            raise ParameterError(f"which key? drift keys {self.folder} {self.action} KEY")
        known = {path: stored.facts(self.key) for path, (stored, _) in headers.items()}
        found = {path: one for path, one in known.items() if one is not None}
        if self.action == "delete":
            self._delete(self.key, headers, found)
            return
        if not found:
            raise ParameterError(f"{self.folder} has no model of {self.key!r}")
        if self.action == "export" and len(found) > 1:
            names = ", ".join(map(str, found))
            raise ParameterError(f"{self.key!r} has several models, give one of {names}")
        for path, facts in found.items():
            stored, header = headers[path]
            row = stored.load(self.key, read_secret(self.key_file))
            if self.action == "export":
                self._export(row)
            else:
                click.echo("\n".join([self._line(path, facts), *_described(header, row)]))

    def _line(self, path: Any, facts: KeyFacts) -> str:
        time = shown_moment(facts.time)
        if self.json:
            return json.dumps({"folder": str(path), **facts._asdict(), "time": time})
        return (
            f"{path}  {facts.key}  {counted(facts.examples, 'example')}  last {time}  "
            f"{facts.size:,} bytes in {counted(facts.versions, 'version')}"
        )

    def _export(self, row: Row | None) -> None:
        from drift.models._state.codec import decode, to_bytes

        if self.to is None:
            raise ParameterError("give the file to write, --to FILE")
        assert row is not None  # noqa: S101 - there are facts of it
        is_ours = row.kind == "drift"
        self.to.write_bytes(to_bytes(decode(row.state)) if is_ours else row.state)
        reader = "drift.models.from_bytes" if is_ours else "pickle.loads, which runs what is in it"
        click.echo(f"{self.to}: the model of {self.key}, for {reader}")

    def _delete(
        self,
        key: str,
        headers: Mapping[Any, tuple[StoredKeys, Any]],
        found: Mapping[Any, KeyFacts],
    ) -> None:
        for path, facts in found.items():
            click.echo(self._line(path, facts))
        if not found:
            click.echo(f"no checkpoint has a model of {key}; a worker may have a new one")
        if not self.yes and not click.confirm(f"Delete {key}?"):
            click.echo("nothing was changed")
            return
        for path, (stored, header) in headers.items():
            versions = stored.delete(key)
            click.echo(
                f"{path}: {counted(versions, 'version')} deleted; what was sent of it up to now is "
                "not learnt again"
            )
            if header["configuration"].get("keyed.prior"):
                examples = found[path].examples if path in found else 0
                click.echo(
                    f"{path}: the prior has learnt its messages, too"
                    + (f", these {counted(examples, 'example')} and any before" if examples else "")
                    + ", and keys that began later began as copies of it: the page of keyed models "
                    "says how to go on without them"
                )


def _described(header: Mapping[str, Any], row: Row | None) -> list[str]:
    from drift.models._state.codec import decode

    if row is None or row.kind != "drift":
        return [f"{header['model']}, a pickle that was not loaded"]
    model = decode(row.state)
    supports = getattr(model, "n_supports", None)
    lines = repr(model).splitlines()
    return lines if supports is None else [*lines, counted(supports, "support vector")]
