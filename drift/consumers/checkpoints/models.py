"""The models of keys, in a file of SQLite beside the checkpoints of their claim.

A row is a model as of a version. What is written between two checkpoints is of one version, and all
of it is in the file before the checkpoint is there that names it, by its lineage: the ranges of
versions that it goes on from. Of a key the newest row of a lineage counts. So a crash leaves rows
that no checkpoint names; a rollback begins a lineage of its own; and no version is given out twice.

Each transaction looks whether its epoch is still the newest, so that who claims the models fences
the one before. Rows are removed once no checkpoint of the folder needs them; those of a lineage
that broke off once there is a checkpoint of this claim: until then, a process that was frozen may
add the one that names them.
"""

from __future__ import annotations

import hmac
import os
import sqlite3
import threading
from bisect import bisect_right
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, TypeAlias

from drift.consumers.checkpoints.file_format import describe, load, naming
from drift.consumers.checkpoints.files import files_in
from drift.consumers.crash_points import reached
from drift.errors import CheckpointError, ConsumerError, FencedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["Lineage", "ModelStore"]

#: Ranges of versions, the first and the last of each, in ascending order.
Lineage: TypeAlias = "Sequence[Sequence[int]]"

#: Seconds for which another process's transaction is waited for.
_PATIENCE = 10.0
#: Keys that are looked at in one transaction.
_MANY = 500

# An index of its own, as rows are some kilobytes: they are appended where there is room.
_TABLES = """
create table if not exists claim (epoch integer not null, version integer not null);
create table if not exists models (
    id integer primary key, key text not null, version integer not null,
    kind text not null, state blob not null, digest blob not null, unique (key, version)
);
create table if not exists saved (version integer primary key);
insert into claim select 0, 0 where not exists (select * from claim);
"""


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
    version : int
        Version of what is written next.

    Raises
    ------
    FencedError
        If somebody has claimed it since.
    CheckpointError
        If it has not what the checkpoint names.
    UnavailableError
        If the file cannot be opened or written now.
    ConsumerError
        If it is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> store = ModelStore(folder, epoch=1)
    >>> first = store.advance()
    >>> store.write(1, {"ann": (b"...", "drift")})
    >>> store.finish(1)
    >>> store.write(2, {"ann": (b"a later one", "drift")})
    >>> store.close()
    >>> store = ModelStore(folder, epoch=2, lineage=first)
    >>> first, store.load("ann")
    ([[1, 1]], (b'...', 'drift'))
    >>> store.close()
    """

    def __init__(
        self, folder: Path, epoch: int, lineage: Lineage = (), *, secret: bytes | None = None
    ) -> None:
        self.path = folder / "models.sqlite"
        self._epoch = epoch
        self._secret = b"" if secret is None else secret
        self._files = files_in(folder)
        self._lock = threading.Lock()
        self._known: dict[tuple[int, int], Lineage] = {}  # by checkpoint
        self._is_swept = self._is_settled = False
        with self._saying_why():
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
            self._db = sqlite3.connect(
                self.path, _PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                # Of a new file: a model of some kilobytes takes one page or few.
                self._db.execute("pragma page_size = 16384")
                # Not WAL, which takes shared memory: workers on several machines share the folder.
                # A checkpoint must not outlast the rows that it names, hence "full", the default.
                self._db.execute("pragma journal_mode = truncate")
                self._db.execute("pragma synchronous = full")
                self.version = self._claim(lineage)
                self._lineage = self._joined(lineage)
                [[self.count]] = self._db.execute("select count(distinct key) from models")
            except BaseException:
                self._db.close()
                raise
        self._kept: list[Lineage] | None = None  # of the checkpoints; None where it is not known
        self.refresh()
        reached("models.claimed")

    def _claim(self, lineage: Lineage) -> int:
        """Fence whoever had the models before; return the first version of this claim."""
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
            return int(version) + 1

    def _joined(self, lineage: Lineage) -> list[list[int]]:
        """Return a lineage with the versions to come, without gaps that have no rows."""
        joined: list[list[int]] = []
        for first, last in [*lineage, [self.version, self.version]]:
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
        """Close the file."""
        with self._lock:
            self._db.close()

    # --- reading -------------------------------------------------------------------------------

    def load(self, key: str) -> tuple[bytes, str] | None:
        """Return the newest model of a key, and how it is stored; None where there is none.

        Raises
        ------
        CheckpointError
            If it is not what was written.
        """
        rows = (
            "select version, kind, cast(state as blob), cast(digest as blob) from models "
            "where key = ? order by version desc"
        )
        with self._lock, self._saying_why(), closing(self._db.execute(rows, [key])) as found:
            for version, kind, state, digest in found:
                if _newest([version], self._lineage) is None:
                    continue
                if not hmac.compare_digest(digest, self._digest(key, version, kind, state)):
                    raise CheckpointError("it is damaged, or not signed with this key")
                return state, kind
        return None

    def _digest(self, key: str, version: int, kind: str, state: bytes) -> bytes:
        head = f"{len(key)} {key} {version} {kind} ".encode()
        return hmac.digest(self._secret, head + state, "sha256")

    # --- writing -------------------------------------------------------------------------------

    def advance(self) -> list[list[int]]:
        """End a version; return the lineage of a checkpoint that has all up to it."""
        lineage = [[*one] for one in self._lineage]
        if self._kept is not None:
            self._kept = [*self._kept, lineage]
        self.version += 1
        self._lineage[-1][1] = self.version
        return lineage

    def write(self, version: int, rows: Mapping[str, tuple[bytes, str]]) -> None:
        """Write models, and remove the versions of theirs that no checkpoint needs.

        Parameters
        ----------
        version
            Theirs: that of before `advance`, or the present one.
        rows
            The bytes by key, and how they are stored.

        Raises
        ------
        FencedError
            If somebody has claimed the models since.
        UnavailableError
            If nothing can be written now.
        """
        with self._transaction() as db:
            db.execute("update claim set version = max(version, ?)", [version])
            db.executemany(
                "insert or replace into models (key, version, kind, state, digest) "
                "values (?, ?, ?, ?, ?)",
                (
                    (key, version, kind, state, self._digest(key, version, kind, state))
                    for key, (state, kind) in rows.items()
                ),
            )
            reached("models.half-written")
            self._prune(db, [*rows])

    def finish(self, version: int) -> None:
        """Note that all of a version is written, so that a checkpoint may name it."""
        reached("models.written")
        with self._transaction() as db:
            db.execute("update claim set version = max(version, ?)", [version])
            db.execute("insert or ignore into saved values (?)", [version])
            kept = self._kept
            if kept is not None and self._is_settled:
                lasts = {version, *(one[-1][-1] for one in kept if one)}
                marks = ", ".join("?" * len(lasts))
                db.execute(f"delete from saved where version not in ({marks})", [*lasts])  # noqa: S608
        reached("models.saved")

    def refresh(self) -> None:
        """Look which checkpoints there are, which tells what rows are needed."""
        known: dict[tuple[int, int], Lineage] = {}
        flying = [[*self._lineage[:-1], [self._lineage[-1][0], self.version - 1]]]
        try:
            for which in self._files.listing().checkpoints:
                lineage = self._known.get(which)
                if lineage is None:
                    file = self._files.file(*which)
                    with naming(file):
                        lineage = describe(load(file)).header.get("models", [])
                known[which] = lineage
        except (CheckpointError, FileNotFoundError):
            self._kept = None  # it may need any
            return
        self._known, self._kept = known, [*known.values(), *flying]
        self._is_settled = any(epoch == self._epoch for epoch, _ in known)

    def sweep(self) -> None:
        """Remove what no checkpoint needs of all keys, once in a claim; as soon as that is sure."""
        if self._is_swept or not self._is_settled or self._kept is None:
            return
        keys: list[str] = [""]
        while keys:
            with self._transaction() as db:
                found = "select distinct key from models where key > ? order by key limit ?"
                keys = [key for (key,) in db.execute(found, [keys[-1], _MANY])]
                self._prune(db, keys)
        self._is_swept = True

    def _prune(self, db: sqlite3.Connection, keys: Sequence[str]) -> None:
        kept = self._kept
        if kept is None:
            return
        marks = ", ".join("?" * len(keys))
        rows = f"select key, version from models where key in ({marks}) order by key, version"  # noqa: S608
        by_key: dict[str, list[int]] = {}
        for key, version in db.execute(rows, keys):
            by_key.setdefault(key, []).append(version)
        lineages = [*kept, self._lineage]
        gone = []
        for key, versions in by_key.items():
            needed = {_newest(versions, one) for one in lineages}
            for version in versions:
                is_ours = any(_newest([version], one) is not None for one in lineages)
                if version not in needed and (is_ours or self._is_settled):
                    gone.append((key, version))
        db.executemany("delete from models where key = ? and version = ?", gone)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._saying_why():
            self._db.execute("begin immediate")
            try:
                self._check_epoch()
                yield self._db
                self._db.execute("commit")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise

    def _check_epoch(self) -> None:
        [[epoch]] = self._db.execute("select epoch from claim")
        if epoch > self._epoch:
            raise FencedError(
                f"{self.path}: claimed again since, our epoch is {self._epoch} and the newest "
                f"{epoch}"
            )

    @contextmanager
    def _saying_why(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.OperationalError, OSError) as problem:
            raise UnavailableError(f"{self.path}: {problem}") from problem
        except sqlite3.DatabaseError as problem:
            raise ConsumerError(
                f"{self.path}: {problem}: bring the checkpoints' folder back as a whole, or start "
                "with another folder and group"
            ) from problem


def _newest(versions: Sequence[int], lineage: Iterable[Sequence[int]]) -> int | None:
    """Return the newest of several versions, in ascending order, that a lineage has.

    >>> _newest([1, 4, 6, 9], [[1, 3], [5, 8]]), _newest([4], [[1, 3], [5, 8]])
    (6, None)
    """
    for first, last in reversed([*lineage]):
        at = bisect_right(versions, last)
        if at and versions[at - 1] >= first:
            return versions[at - 1]
    return None
