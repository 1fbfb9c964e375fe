"""Rows of models of keys, in a database of SQLite: what both kinds of stores share.

A row is a model as of a version. What is written between two checkpoints is of one version, and all
of it is stored before the checkpoint is there that names it, by its lineage. Of a key the newest
row of a lineage counts. Rows are removed once none needs them.
"""

from __future__ import annotations

import hmac
import sqlite3
import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from contextlib import closing, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from drift.consumers.checkpoints.file_format import describe, load, naming
from drift.consumers.checkpoints.files import files_in
from drift.consumers.crash_points import reached
from drift.errors import CheckpointError, ConsumerError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from drift.consumers.checkpoints.objects import AnyPath

__all__ = ["Lineage", "ModelStore", "Row"]

#: What a checkpoint names: of a file the first and the last of each range of versions, of objects
#: epoch, version and number of each; in ascending order.
Lineage: TypeAlias = "Sequence[Sequence[int]]"
#: Key, version, how it is stored, its bytes, their digest.
Row: TypeAlias = tuple[str, int, str, bytes, bytes]

#: Seconds for which another process's transaction is waited for.
_PATIENCE = 10.0

#: A checkpoint must not outlast the rows that it names.
_SYNCHRONOUS = "full"
# An index of its own, as rows are some kilobytes: they are appended where there is room.
_TABLE = """
create table if not exists models (
    id integer primary key, key text not null, version integer not null,
    kind text not null, state blob not null, digest blob not null, unique (key, version)
)
"""


class ModelStore(ABC):
    """The models of a claim's keys; `drift.consumers.checkpoints.models.models_in` makes one.

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
    count : int
        Keys that there were at the beginning.

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
    """

    version: int
    #: Keys of one transaction, at most.
    at_once = 250
    #: Numbers in each entry of a lineage.
    width: int
    #: What to do about a database that is damaged, and about a model that is.
    repair: str
    remedy: str

    def __init__(
        self, folder: AnyPath, epoch: int, lineage: Lineage = (), *, secret: bytes | None = None
    ) -> None:
        if any(len(one) != self.width for one in lineage):
            raise CheckpointError(
                f"{folder}: the newest checkpoint names models in another kind of store: give the "
                "one that it was written to"
            )
        self._epoch = epoch
        self._secret = b"" if secret is None else secret
        self._files = files_in(folder)
        self._lock = threading.Lock()
        self._known: dict[tuple[int, int], Lineage] = {}  # by checkpoint
        self._is_settled = False  # whether there is a checkpoint of this claim
        with self._saying_why():
            self._db = sqlite3.connect(
                self._open(), _PATIENCE, isolation_level=None, check_same_thread=False
            )
            # What a disk has damaged is no text; the digest tells.
            self._db.text_factory = lambda text: text.decode(errors="replace")
            try:
                # Of a new file: a model of some kilobytes takes one page or few.
                self._db.execute("pragma page_size = 16384")
                # Not WAL, which takes shared memory: workers on several machines share the folder.
                self._db.execute("pragma journal_mode = truncate")
                self._db.execute(f"pragma synchronous = {_SYNCHRONOUS}")
                self._db.execute(_TABLE)
                self._ranges = self._begin(lineage)
                self.version = self._ranges[-1][1]
                within = " or ".join(["version between ? and ?"] * len(self._ranges))
                count = f"select count(distinct key) from models where {within}"  # noqa: S608
                [[self.count]] = self._db.execute(count, [*chain.from_iterable(self._ranges)])
            except BaseException:
                self._db.close()
                raise
        self._kept: list[Lineage] | None = None  # whose rows are needed; None where it is not known
        self.refresh()
        reached("models.claimed")

    @property
    @abstractmethod
    def where(self) -> str:
        """What to call the database in errors."""

    @abstractmethod
    def _open(self) -> str | Path:
        """Return what SQLite is to open."""

    @abstractmethod
    def _begin(self, lineage: Lineage) -> list[list[int]]:
        """Have the rows of a lineage; return its ranges, with this claim's first version."""

    def close(self) -> None:
        """Close the database."""
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
                if isinstance(version, int) and _newest([version], self._ranges) is None:
                    continue
                if not hmac.compare_digest(digest, self._digest(key, version, kind, state)):
                    raise CheckpointError("it is damaged, or not signed with this key")
                return state, kind
        return None

    def _digest(self, key: str, version: int, kind: str, state: bytes) -> bytes:
        head = f"{len(key)} {key} {version} {kind} ".encode()
        return hmac.digest(self._secret, head + state, "sha256")

    # --- writing -------------------------------------------------------------------------------

    def advance(self) -> int:
        """End a version and return it: the next checkpoint has all up to it."""
        ended = self.version
        if self._kept is not None:
            self._kept = [*self._kept, self._upto(ended)]
        self.version += 1
        self._ranges[-1][1] = self.version
        return ended

    def write(self, version: int, rows: Mapping[str, tuple[bytes, str]]) -> None:
        """Write models, and remove the versions of theirs that no checkpoint needs.

        Parameters
        ----------
        version
            Theirs: one that has ended, or the present one.
        rows
            The bytes by key, and how they are stored.

        Raises
        ------
        FencedError
            If somebody has claimed the models since.
        UnavailableError
            If nothing can be written now.
        """
        with self._transaction(version) as db:
            self._insert(
                db,
                (
                    (key, version, kind, state, self._digest(key, version, kind, state))
                    for key, (state, kind) in rows.items()
                ),
            )
            reached("models.half-written")
            self._prune(db, [*rows])

    @abstractmethod
    def finish(self, version: int) -> Lineage:
        """Have all up to a version stored; return the lineage by which a checkpoint names it.

        Raises
        ------
        FencedError
            If somebody has claimed the models since.
        CheckpointError, UnavailableError
            If nothing can be written now.
        """

    def refresh(self) -> None:
        """Look which checkpoints there are, which tells what is needed."""
        known: dict[tuple[int, int], Lineage] = {}
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
        self._known = known
        self._is_settled = any(epoch == self._epoch for epoch, _ in known)
        self._kept = [*self._named(), self._upto(self.version - 1)]

    @abstractmethod
    def _named(self) -> list[Lineage]:
        """Return the ranges of the rows that checkpoints need."""

    @abstractmethod
    def sweep(self) -> None:
        """Remove what no checkpoint needs; as soon as that is sure."""

    def _upto(self, version: int) -> list[list[int]]:
        """Return the ranges up to a version of this claim."""
        *before, (first, _) = self._ranges
        return [*before, [first, version]]

    def _insert(self, db: sqlite3.Connection, rows: Iterable[Row]) -> None:
        db.executemany(
            "insert or replace into models (key, version, kind, state, digest) "
            "values (?, ?, ?, ?, ?)",
            rows,
        )

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
        needed = {_newest(versions, one) for one in lineages}
        return [
            version
            for version in versions
            if version not in needed
            and (self._is_settled or any(_newest([version], one) is not None for one in lineages))
        ]

    @contextmanager
    def _transaction(self, version: int = 0) -> Iterator[sqlite3.Connection]:
        """Begin one, in which rows of a version may be written."""
        with self._lock, self._saying_why():
            self._db.execute("begin immediate")
            try:
                self._enter(self._db, version)
                yield self._db
                self._db.execute("commit")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise

    @abstractmethod
    def _enter(self, db: sqlite3.Connection, version: int) -> None:
        """Begin a transaction: FencedError where others have claimed; note a version as used."""

    @contextmanager
    def _saying_why(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.OperationalError, OSError) as problem:
            raise UnavailableError(f"{self.where}: {problem}") from problem
        except (sqlite3.DatabaseError, UnicodeDecodeError) as problem:
            raise ConsumerError(f"{self.where}: {problem}: {self.repair}") from problem


def _newest(versions: Sequence[int], ranges: Iterable[Sequence[int]]) -> int | None:
    """Return the newest of several versions, in ascending order, that some ranges have.

    >>> _newest([1, 4, 6, 9], [[1, 3], [5, 8]]), _newest([4], [[1, 3], [5, 8]])
    (6, None)
    """
    for first, last in reversed([*ranges]):
        at = bisect_right(versions, last)
        if at and versions[at - 1] >= first:
            return versions[at - 1]
    return None
