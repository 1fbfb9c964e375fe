"""Where the models of keys are: in a file beside the checkpoints of their claim, or in objects.

The file is a database of SQLite. Its lineages are ranges of versions: a crash leaves rows that no
checkpoint names, a rollback begins a range of its own, and no version is given out twice. Each
transaction looks whether its epoch is still the newest, so that who claims the models fences the
one before. Rows of a lineage that broke off are removed once there is a checkpoint of this claim:
until then, a process that was frozen may add the one that names them.

`drift.consumers.checkpoints.chain` has the other one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from drift.consumers.checkpoints.chain import ModelObjects
from drift.consumers.checkpoints.objects import ObjectPath
from drift.consumers.checkpoints.rows import ModelStore
from drift.consumers.crash_points import reached
from drift.errors import CheckpointError, FencedError

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.checkpoints.rows import Lineage

__all__ = ["ModelFile", "models_in"]

_TABLES = """
create table if not exists claim (epoch integer not null, version integer not null);
create table if not exists saved (version integer primary key);
insert into claim select 0, 0 where not exists (select * from claim);
"""


def models_in(
    folder: AnyPath, epoch: int, lineage: Lineage = (), *, secret: bytes | None = None
) -> ModelStore:
    """Return the models of a claim's keys; parameters and errors are those of `ModelStore`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> store = models_in(folder, epoch=1)
    >>> store.advance()
    1
    >>> store.write(1, {"ann": (b"...", "drift")})
    >>> first = store.finish(1)
    >>> store.write(2, {"ann": (b"a later one", "drift")})
    >>> store.close()
    >>> store = models_in(folder, epoch=2, lineage=first)
    >>> first, store.load("ann")
    ([[1, 1]], (b'...', 'drift'))
    >>> store.close()
    """
    kind = ModelObjects if isinstance(folder, ObjectPath) else ModelFile
    return kind(folder, epoch, lineage, secret=secret)


class ModelFile(ModelStore):
    """Those in a file of SQLite that claims share, one after the other."""

    width = 2
    repair = "bring the checkpoints' folder back as a whole, or start with another folder and group"
    remedy = "roll back, or delete its rows in models.sqlite, and it starts anew"

    _is_swept = False

    @property
    def path(self) -> Path:
        """The file."""
        path: Path = self._files.path / "models.sqlite"
        return path

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self.path)

    def _open(self) -> Path:
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
        return self.path

    def _begin(self, lineage: Lineage) -> list[list[int]]:
        """Fence whoever had the models before."""
        for statement in _TABLES.split(";"):
            self._db.execute(statement)
        with self._transaction() as db:
            if lineage:
                last = lineage[-1][-1]
                if not [*db.execute("select 1 from saved where version = ?", [last])]:
                    raise CheckpointError(
                        f"{self.path} has not the models that the newest checkpoint names: bring "
                        "it back from where the checkpoints' folder is kept, roll back to an "
                        "earlier checkpoint, or start with another folder and group"
                    )
            db.execute("update claim set epoch = ?", [self._epoch])
            [[version]] = db.execute("select version from claim")
        return self._joined(lineage, version + 1)

    def _joined(self, lineage: Lineage, version: int) -> list[list[int]]:
        """Return a lineage with a version more, without gaps that have no rows."""
        joined: list[list[int]] = []
        for first, last in [*lineage, [version, version]]:
            between = [joined[-1][1] + 1, first - 1] if joined else []
            exists = "select exists (select 1 from models where version between ? and ?)"
            if joined and (
                between[0] > between[1] or not self._db.execute(exists, between).fetchone()[0]
            ):
                joined[-1][1] = last
            else:
                joined.append([first, last])
        return joined

    def _named(self) -> list[Lineage]:
        return [*self._known.values()]

    def _enter(self, db: sqlite3.Connection, version: int) -> None:
        [[epoch]] = db.execute("select epoch from claim")
        if epoch > self._epoch:
            raise FencedError(
                f"{self.path}: claimed again since, our epoch is {self._epoch} and the newest "
                f"{epoch}"
            )
        db.execute("update claim set version = max(version, ?)", [version])

    def finish(self, version: int) -> Lineage:
        """Note that all of a version is written, so that a checkpoint may name it."""
        reached("models.written")
        with self._transaction(version) as db:
            db.execute("insert or ignore into saved values (?)", [version])
            kept = self._kept
            if kept is not None and self._is_settled:
                lasts = {version, *(one[-1][-1] for one in kept if one)}
                marks = ", ".join("?" * len(lasts))
                db.execute(f"delete from saved where version not in ({marks})", [*lasts])  # noqa: S608
        reached("models.saved")
        return self._upto(version)

    def sweep(self) -> None:
        """Remove what no checkpoint needs of all keys, once in a claim."""
        if self._is_swept or not self._is_settled or self._kept is None:
            return
        rows = "select id, key from models where id > ? order by id limit ?"
        found = [(0, "")]
        while found:
            with self._transaction() as db:
                found = db.execute(rows, [found[-1][0], self.at_once]).fetchall()
                self._prune(db, [*{key for _, key in found}])
        self._is_swept = True
