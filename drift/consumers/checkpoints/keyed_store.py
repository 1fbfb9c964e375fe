"""Models of keys, in a file of SQLite beside the checkpoints of their claim.

A row is a model as of a version. What is written between two checkpoints is of one version, and all
of it is stored before the checkpoint is there that names it, by its lineage: ranges of versions. A
crash leaves rows that no checkpoint names, a rollback begins a range of its own, and no version is
given out twice. Of a key the newest row of a lineage counts. Rows are removed once none needs them.

Claims share the file, one after the other. Each transaction looks whether its epoch is still the
newest, so that who claims the models fences the one before. Rows of a lineage that broke off are
removed once there is a checkpoint of this claim: until then, a process that was frozen may add the
one that names them.

`drift keys` deletes all rows of a key and leaves its hash and the time. The claim drops what it has
of the key, and learns no message of it up to that time: see `ModelStore.obey`.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import sqlite3
import threading
from bisect import bisect_right
from contextlib import closing, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from drift.consumers.checkpoints.file_format import describe, load, naming
from drift.consumers.checkpoints.files import files_in, private
from drift.consumers.crash_points import reached
from drift.errors import CheckpointError, ConsumerError, FencedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from drift.consumers.checkpoints.objects import AnyPath

__all__ = [
    "FILE",
    "REPAIR",
    "Lineage",
    "ModelStore",
    "Row",
    "database_errors",
    "hashed",
    "load_row",
    "newest_of",
    "opened",
]

#: What a checkpoint names: the first and the last of each range of versions, in ascending order.
Lineage: TypeAlias = "Sequence[Sequence[int]]"

#: The name of the file, in the folder of the claim's checkpoints.
FILE = "models.sqlite"

#: Seconds for which another process's transaction is waited for.
_PATIENCE = 10.0

#: A checkpoint must not outlast the rows that it names.
_SYNCHRONOUS = "full"
# An index of its own, as rows are some kilobytes: they are appended where there is room. It has all
# that is asked of many keys at once.
_TABLES = """
create table if not exists models (
    id integer primary key, key text not null, version integer not null,
    examples integer not null, time integer not null, size integer not null,
    kind text not null, state blob not null, digest blob not null
);
create index if not exists newest on models (key, version, examples, time, size);
create table if not exists deleted (
    name blob primary key, time integer not null, obeyed integer not null
);
create table if not exists claim (epoch integer not null, version integer not null);
create table if not exists saved (version integer primary key);
insert into claim select 0, 0 where not exists (select * from claim)
"""
_DELETED = "select name, time from deleted"
#: What to do about a file that is damaged as a whole.
REPAIR = "bring the checkpoints' folder back as a whole, or start with another folder and group"


class Row(NamedTuple):
    """A model as it is stored.

    `kind` is the format of `state`, `examples` how many it has learnt of its key, `time` that of
    the last one, in milliseconds since 1970.
    """

    state: bytes
    kind: str
    examples: int = 0
    time: int = -1


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
        self._known: dict[tuple[int, int], Lineage] = {}  # by checkpoint
        self._is_settled = False  # whether there is a checkpoint of this claim
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
        self._kept: list[Lineage] | None = None  # whose rows are needed; None where it is not known
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
        if self._kept is not None:
            self._kept = [*self._kept, self._upto(ended)]
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
                        *(row.state, _digest(self._secret, key, version, row)),
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
            kept = self._kept
            if kept is not None and self._is_settled:
                lasts = {version, *(lineage[-1][-1] for lineage in kept if lineage)}
                marks = ", ".join("?" * len(lasts))
                db.execute(f"delete from saved where version not in ({marks})", [*lasts])  # noqa: S608
        reached("models.saved")
        return self._upto(version)

    def refresh(self) -> None:
        """Look which checkpoints there are, which tells what is needed."""
        known: dict[tuple[int, int], Lineage] = {}
        try:
            for which in self._files.listing().checkpoints:
                lineage = self._known.get(which)
                if lineage is None:
                    file = self._files.file(*which)
                    with naming(file):
                        lineage = describe(load(file)).header["models"] or []
                known[which] = lineage
        except (CheckpointError, FileNotFoundError):
            self._kept = None  # it may need any
            return
        self._known = known
        self._is_settled = any(epoch == self._epoch for epoch, _ in known)
        self._kept = [*known.values(), self._upto(self.version - 1)]

    def sweep(self) -> None:
        """Remove what no checkpoint needs of all keys, once in a claim, as soon as that is sure."""
        if self._is_swept or not self._is_settled or self._kept is None:
            return
        rows = "select id, key from models where id > ? order by id limit ?"
        found = [(0, "")]
        while found:
            with self._transaction() as db:
                found = db.execute(rows, [found[-1][0], self.at_once]).fetchall()
                self._prune(db, [*{key for _, key in found}])
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

    def has_orders(self) -> bool:
        """Whether keys were deleted that the claim may still have."""
        orders = "select exists (select 1 from deleted where not obeyed)"
        with self._lock, database_errors(self.path):
            return bool(self._db.execute(orders).fetchone()[0])

    def obey(self, now: int, others: Iterable[str]) -> set[str]:
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
            orders = {name for (name,) in db.execute("select name from deleted where not obeyed")}
            texts = "select distinct key from models where typeof(key) = 'text'"  # else damaged
            known = (key for (key,) in db.execute(texts))
            gone = {key for key in chain(known, others) if hashed(key) in orders}
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
        kept = self._kept
        if kept is None:
            return
        marks = ", ".join("?" * len(keys))
        rows = f"select key, version from models where key in ({marks}) order by key, version"  # noqa: S608
        by_key: dict[str, list[int]] = {}
        for key, version in db.execute(rows, keys):
            if isinstance(version, int):  # else it is damaged
                by_key.setdefault(key, []).append(version)
        lineages = [*kept, self._ranges]
        unneeded: dict[tuple[int, ...], list[int]] = {}  # by versions, which most keys share
        gone = []
        for key, found in by_key.items():
            versions = tuple(found)
            if versions not in unneeded:
                unneeded[versions] = self._unneeded(versions, lineages)
            gone += [(key, version) for version in unneeded[versions]]
        db.executemany("delete from models where key = ? and version = ?", gone)

    def _unneeded(self, versions: Sequence[int], lineages: Sequence[Lineage]) -> list[int]:
        """Return which of a key's versions may be removed."""
        needed = {newest_of(versions, lineage) for lineage in lineages}
        return [
            version
            for version in versions
            if version not in needed
            and (
                self._is_settled
                or any(newest_of([version], lineage) is not None for lineage in lineages)
            )
        ]

    @contextmanager
    def _transaction(self, version: int = 0) -> Iterator[sqlite3.Connection]:
        """Begin one, in which rows of a version may be written."""
        with self._lock, database_errors(self.path):
            self._db.execute("begin immediate")
            try:
                self._enter(self._db, version)
                yield self._db
                self._db.execute("commit")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise

    def _enter(self, db: sqlite3.Connection, version: int) -> None:
        """Begin a transaction: FencedError where others have claimed; note a version as used."""
        [[epoch]] = db.execute("select epoch from claim")
        if epoch > self._epoch:
            raise FencedError(
                f"{self.path}: claimed again since, our epoch is {self._epoch} and the newest "
                f"{epoch}"
            )
        db.execute("update claim set version = max(version, ?)", [version])


def hashed(key: str) -> bytes:
    """Return what is left of a deleted key."""
    return hashlib.sha256(key.encode()).digest()


def opened(path: Path) -> sqlite3.Connection:
    """Open the file, a new one where there is none."""
    os.close(private(str(path), os.O_CREAT | os.O_RDWR))
    db = sqlite3.connect(path, _PATIENCE, isolation_level=None, check_same_thread=False)
    # What a disk has damaged is no text; the digest tells.
    db.text_factory = lambda text: text.decode(errors="replace")
    try:
        # Of a new file: a model of some kilobytes takes one page or few.
        db.execute("pragma page_size = 16384")
        # Not WAL, whose second file has what a copy of the first alone lacks.
        db.execute("pragma journal_mode = truncate")
        # What is removed is a person's, and must not stay in free pages.
        db.execute("pragma secure_delete = on")
        db.execute(f"pragma synchronous = {_SYNCHRONOUS}")
        for statement in _TABLES.split(";"):
            db.execute(statement)
    except BaseException:
        db.close()
        raise
    return db


def load_row(db: sqlite3.Connection, key: str, ranges: Lineage, secret: bytes) -> Row | None:
    """Return the newest model of a key in some ranges; None where there is none.

    Raises
    ------
    CheckpointError
        If it is not what was written.
    """
    rows = (
        "select version, ifnull(cast(digest as blob), x''), ifnull(cast(state as blob), x''), "
        "kind, examples, time from models where key = ? order by version desc"
    )
    with closing(db.execute(rows, [key])) as found:
        for version, digest, *values in found:
            row = Row(*values)
            # Of all of them, as a damaged version may be one that the ranges do not have.
            if not hmac.compare_digest(digest, _digest(secret, key, version, row)):
                raise CheckpointError("it is damaged, or not signed with this key")
            if newest_of([version], ranges) is not None:
                return row
    return None


def _digest(secret: bytes, key: str, version: int, row: Row) -> bytes:
    head = f"{len(key)} {key} {version} {row.examples} {row.time} {row.kind} ".encode()
    return hmac.digest(secret, head + row.state, "sha256")


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Say which file it is that cannot be used."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as problem:
        raise UnavailableError(f"{path}: {problem}") from problem
    except (sqlite3.DatabaseError, UnicodeDecodeError) as problem:
        raise ConsumerError(f"{path}: {problem}: {REPAIR}") from problem


def newest_of(versions: Sequence[int], ranges: Iterable[Sequence[int]]) -> int | None:
    """Return the newest of several versions, in ascending order, that some ranges have.

    >>> newest_of([1, 4, 6, 9], [[1, 3], [5, 8]]), newest_of([4], [[1, 3], [5, 8]])
    (6, None)
    """
    for first, last in reversed([*ranges]):
        at = bisect_right(versions, last)
        if at and versions[at - 1] >= first:
            return versions[at - 1]
    return None
