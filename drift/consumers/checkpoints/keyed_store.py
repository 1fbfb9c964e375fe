"""The models of a claim's keys, in the file beside its checkpoints.

**Versions.** What is written between two checkpoints has one version, and no version is given out
twice. All of it is stored before there is the checkpoint that names it. So a crash leaves rows that
no checkpoint names, and a rollback begins a range of its own.

**Fencing.** Claims share the file, one after the other. Each transaction looks whether its epoch is
still the newest: whoever claims the models fences the claim before.

**Removal.** A row is removed once no checkpoint needs it: see `KeptLineages`.

**Deletion.** `drift keys` deletes all rows of a key, and leaves its hash and the time. The claim
drops what it has of the key, and learns no message of it up to that time.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.files import files_in
from drift.consumers.checkpoints.keyed_file import (
    BEFORE_ALL,
    FILE,
    database_errors,
    digest,
    hashed,
    load_row,
    opened,
    rows_after,
)
from drift.consumers.checkpoints.keyed_lineages import KeptLineages
from drift.consumers.crash_points import reached
from drift.errors import CheckpointError, FencedError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from drift.consumers.checkpoints.keyed_file import Lineage, Row
    from drift.consumers.checkpoints.objects import AnyPath

__all__ = ["ModelStore"]

_DELETED = "select name, time from deleted"


class ModelStore:
    """The models of a claim's keys.

    Loads and writes may be made by two threads; they take turns.

    Parameters
    ----------
    folder
        The folder of the claim's checkpoints.
    epoch
        The number of the claim.
    lineage
        That of the checkpoint that the claim goes on from.
    secret
        Key that rows are signed with, and have to be; None for a checksum.

    Attributes
    ----------
    path : Path
        The file.
    version : int
        Version of what is written next.
    deleted : dict
        Up to which time messages of a deleted key are not to be learnt, by its hash.

    Raises
    ------
    FencedError
        If somebody has claimed it since.
    CheckpointError
        If it has not what the checkpoint names.
    UnavailableError
        If the database cannot be opened or written now.
    ConsumerError
        If it is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from drift.consumers.checkpoints.keyed_file import Row
    >>> folder = Path(tempfile.mkdtemp())
    >>> store = ModelStore(folder, epoch=1)
    >>> store.advance()
    1
    >>> store.write(1, {"ann": Row(b"...", "drift", examples=7, time=1_790_000_000_000)})
    >>> first = store.finish(1)
    >>> store.write(2, {"ann": Row(b"a later one", "drift")})
    >>> store.close()
    >>> store = ModelStore(folder, epoch=2, lineage=first)
    >>> first, store.load("ann")
    ([[1, 1]], Row(state=b'...', kind='drift', examples=7, time=1790000000000))
    >>> store.close()
    """

    version: int
    #: Keys of one transaction, at most.
    at_once = 250

    def __init__(
        self, folder: AnyPath, epoch: int, lineage: Lineage = (), *, secret: bytes | None = None
    ) -> None:
        self._epoch = epoch
        self._secret = b"" if secret is None else secret
        self._files = files_in(folder)
        self.path: Path = self._files.path / FILE
        self._lock = threading.Lock()
        self._kept = KeptLineages(self._files, epoch)
        self._is_swept = False
        with database_errors(self.path):
            self._db = opened(self.path)
            try:
                self._ranges = self._begin(lineage)
                self.version = self._ranges[-1][1]
                self.deleted: dict[bytes, int] = dict(self._db.execute(_DELETED))
            except BaseException:
                self._db.close()
                raise
        self.refresh()
        reached("models.claimed")

    def _begin(self, lineage: Lineage) -> list[list[int]]:
        """Fence whoever had the models before; return the ranges, with this claim's version."""
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

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._db.close()

    # --- reading -------------------------------------------------------------------------------

    def count(self, others: Collection[str] = ()) -> int:
        """Return how many keys there are, with others that may not be in the file."""
        within = " or ".join(["version between ? and ?"] * len(self._ranges))
        bounds = [*chain.from_iterable(self._ranges)]
        count = f"select count(distinct key) from models where {within}"  # noqa: S608
        has = f"select exists (select 1 from models where key = ? and ({within}))"  # noqa: S608
        with self._lock, database_errors(self.path):
            [[stored]] = self._db.execute(count, bounds)
            known = sum(self._db.execute(has, [key, *bounds]).fetchone()[0] for key in others)
        return int(stored) + len(others) - int(known)

    def load(self, key: str) -> Row | None:
        """Return the newest model of a key; None where there is none.

        Raises
        ------
        CheckpointError
            If it is not what was written.
        """
        with self._lock, database_errors(self.path):
            return load_row(self._db, key, self._ranges, self._secret)

    # --- writing -------------------------------------------------------------------------------

    def advance(self) -> int:
        """End a version and return it: the next checkpoint has all up to it."""
        ended = self.version
        self._kept.add(self._upto(ended))
        self.version += 1
        self._ranges[-1][1] = self.version
        return ended

    def write(self, version: int, rows: Mapping[str, Row]) -> None:
        """Write models, and remove the versions of theirs that no checkpoint needs.

        Parameters
        ----------
        version
            Theirs: one that has ended, or the present one.
        rows
            The models by key.

        Raises
        ------
        FencedError
            If somebody has claimed the models since.
        UnavailableError
            If nothing can be written now.
        """
        with self._transaction(version) as db:
            db.executemany(
                "delete from models where key = ? and version = ?", ((key, version) for key in rows)
            )
            db.executemany(
                "insert into models (key, version, examples, time, size, kind, state, digest) "
                "values (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        *(key, version, row.examples, row.time, len(row.state), row.kind),
                        *(row.state, digest(self._secret, key, version, row)),
                    )
                    for key, row in rows.items()
                ),
            )
            reached("models.half-written")
            self._prune(db, [*rows])

    def finish(self, version: int) -> Lineage:
        """Note that all up to a version is written; return the lineage that a checkpoint names.

        Raises
        ------
        FencedError
            If somebody has claimed the models since.
        UnavailableError
            If nothing can be written now.
        """
        reached("models.written")
        with self._transaction(version) as db:
            db.execute("insert or ignore into saved values (?)", [version])
            if (lasts := self._kept.last_versions()) is not None:
                lasts.add(version)
                marks = ", ".join("?" * len(lasts))
                db.execute(f"delete from saved where version not in ({marks})", [*lasts])  # noqa: S608
        reached("models.saved")
        return self._upto(version)

    def refresh(self) -> None:
        """Look which checkpoints there are, which tells what is needed."""
        self._kept.refresh(lambda: self._upto(self.version - 1))

    def sweep(self) -> None:
        """Remove what no checkpoint needs of all keys, once in a claim, as soon as that is sure."""
        if self._is_swept or not self._kept.is_settled:
            return
        rows: list[Any] = [(BEFORE_ALL, "")]
        while rows:
            with self._transaction() as db:
                rows = rows_after(db, rows[-1][0], self.at_once, "key")
                self._prune(db, [*{key for _, key in rows}])
        self._is_swept = True

    def expire(self, before: int) -> bool:
        """Remove the keys, in all versions, that have learnt nothing since; say if there were any.

        Parameters
        ----------
        before
            Milliseconds since 1970, by the clock of the log.
        """
        expired = "select key from models group by key having max(time) < ?"
        with self._lock, database_errors(self.path):
            keys = self._db.execute(expired, [before]).fetchall()
        # One of them may have come back, and been written, before it is deleted.
        delete = (
            "delete from models where key = ?1 and not exists "
            "(select 1 from models where key = ?1 and time >= ?2)"
        )
        for first in range(0, len(keys), self.at_once):
            with self._transaction() as db:
                some = [(key, before) for (key,) in keys[first : first + self.at_once]]
                db.executemany(delete, some)
        return bool(keys)

    def is_deleted(self, key: str, time: int) -> bool:
        """Whether a message of a key, sent at a time, came before the key was deleted."""
        return time <= self.deleted.get(hashed(key), -2)

    def has_deletions(self) -> bool:
        """Whether keys were deleted that the claim may still have."""
        deletions = "select exists (select 1 from deleted where not obeyed)"
        with self._lock, database_errors(self.path):
            return bool(self._db.execute(deletions).fetchone()[0])

    def drop_deleted(self, now: int, others: Iterable[str]) -> set[str]:
        """Remove what was written of deleted keys since; return which keys are to be dropped.

        Parameters
        ----------
        now
            The time of the log. What was sent up to then is not to be learnt again.
        others
            Keys that may not be in the file.

        Raises
        ------
        FencedError
            If somebody has claimed the models since.
        UnavailableError
            If nothing can be written now.
        """
        with self._transaction() as db:
            names = {name for (name,) in db.execute("select name from deleted where not obeyed")}
            texts = "select distinct key from models where typeof(key) = 'text'"  # else damaged
            known = (key for (key,) in db.execute(texts))
            gone = {key for key in chain(known, others) if hashed(key) in names}
            db.executemany("delete from models where key = ?", ((key,) for key in gone))
            obeyed = "update deleted set time = max(time, ?), obeyed = 1 where not obeyed"
            db.execute(obeyed, [now])
            self.deleted = dict(db.execute(_DELETED))
        return gone

    def _upto(self, version: int) -> list[list[int]]:
        """Return the ranges up to a version of this claim."""
        *before, (first, _) = self._ranges
        return [*before, [first, version]]

    def _prune(self, db: sqlite3.Connection, keys: Sequence[str]) -> None:
        """Remove the versions of some keys that no checkpoint needs."""
        marks = ", ".join("?" * len(keys))
        rows = f"select key, version from models where key in ({marks}) order by key, version"  # noqa: S608
        by_key: dict[str, list[int]] = {}
        for key, version in db.execute(rows, keys):
            if isinstance(version, int):  # else it is damaged
                by_key.setdefault(key, []).append(version)
        unneeded: dict[tuple[int, ...], list[int]] = {}  # by versions, which most keys share
        gone = []
        for key, found in by_key.items():
            versions = tuple(found)
            if versions not in unneeded:
                unneeded[versions] = self._kept.unneeded(versions, self._ranges)
            gone += [(key, version) for version in unneeded[versions]]
        db.executemany("delete from models where key = ? and version = ?", gone)

    @contextmanager
    def _transaction(self, version: int = 0) -> Iterator[sqlite3.Connection]:
        """Begin one, in which rows of a version may be written."""
        with self._lock, database_errors(self.path):
            db = self._db
            db.execute("begin immediate")
            try:
                self._refuse_fenced(db)
                db.execute("update claim set version = max(version, ?)", [version])
                yield db
                db.execute("commit")
            except BaseException:
                if db.in_transaction:
                    db.execute("rollback")
                raise

    def _refuse_fenced(self, db: sqlite3.Connection) -> None:
        [[epoch]] = db.execute("select epoch from claim")
        if epoch > self._epoch:
            raise FencedError(
                f"{self.path}: claimed again since, our epoch is {self._epoch} and the newest "
                f"{epoch}"
            )
