"""The file of models of keys: its tables, its rows, and who may read them.

It is SQLite's, beside the checkpoints. A row is the model of a key as of a version, with a digest.
A checkpoint names its *lineage*: the ranges of versions that count for it. Of a key's rows in these
ranges the newest is the checkpoint's. `ModelStore` says who writes which version, and when rows are
removed; `StoredKeys` is what an operator asks of them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import sqlite3
from bisect import bisect_right
from contextlib import closing, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from drift.consumers.checkpoints.files import private
from drift.errors import CheckpointError, ConsumerError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = [
    "BEFORE_ALL",
    "CONTENT",
    "FILE",
    "REPAIR",
    "Lineage",
    "Row",
    "database_errors",
    "digest",
    "hashed",
    "is_whole",
    "load_row",
    "newest_of",
    "opened",
    "opened_to_read",
    "refuse_disorder",
    "rows_after",
]

#: What a checkpoint names: the first and the last of each range of versions, in ascending order.
Lineage: TypeAlias = "Sequence[Sequence[int]]"

#: The name of the file, in the folder of the claim's checkpoints.
FILE = "models.sqlite"

#: An id before those of all rows.
BEFORE_ALL = -(2**63)

#: What is read of a row: its version, its digest and its `Row`. A damaged one may be of any type.
CONTENT = (
    "version, ifnull(cast(digest as blob), x''), ifnull(cast(state as blob), x''), kind, examples, "
    "time"
)
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


def hashed(key: str) -> bytes:
    """Return what is left of a deleted key."""
    return hashlib.sha256(key.encode()).digest()


def opened(path: Path) -> sqlite3.Connection:
    """Open the file, a new one where there is none."""
    os.close(private(str(path), os.O_CREAT | os.O_RDWR))
    db = _connected(path, "rw")
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


def opened_to_read(path: Path) -> sqlite3.Connection:
    """Open the file where nothing is to be written, also one on a file system that is read-only."""
    # Else what a worker left that was killed amid a write could not be rolled back.
    db = _connected(path, "rw" if os.access(path, os.W_OK) else "ro")
    try:
        db.execute("pragma query_only = on")
    except BaseException:
        db.close()
        raise
    return db


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, _PATIENCE, isolation_level=None, check_same_thread=False, uri=True)
    # What a disk has damaged is no text; the digest tells.
    db.text_factory = lambda text: text.decode(errors="replace")
    return db


def load_row(db: sqlite3.Connection, key: str, ranges: Lineage, secret: bytes) -> Row | None:
    """Return the newest model of a key in some ranges; None where there is none.

    Raises
    ------
    CheckpointError
        If it is not what was written.
    """
    rows = (
        f"select found, {CONTENT} from (select id as number, version as found from models "  # noqa: S608
        "indexed by newest where key = ?) left join models as t on t.id = number "
        "order by found desc"
    )
    with closing(db.execute(rows, [key])) as entries:
        for found, version, *row in entries:
            # Only where index and table agree is it sure that it is a row of another checkpoint.
            is_known = isinstance(version, int) and version == found
            if is_known and newest_of([version], ranges) is None:
                continue
            if not is_known or not is_whole(secret, key, version, row):
                raise CheckpointError("it is damaged, or not signed with this key")
            return Row(*row[1:])
    return None


def is_whole(secret: bytes, key: str, version: int, row: Sequence[Any]) -> bool:
    """Whether a row, its digest and then its `Row`, is what was written."""
    return hmac.compare_digest(row[0], digest(secret, key, version, Row(*row[1:])))


def rows_after(
    db: sqlite3.Connection, last: int, most: int, columns: str, *values: object
) -> list[Any]:
    """Return the id and some columns, with these values in them, of the next rows after one.

    The table is `t` there. A walk through the whole table takes no more at once, as whoever reads
    keeps others from writing. It ends, also through a damaged file: rows that are out of order are
    a DatabaseError.
    """
    rows = db.execute(
        f"select id, {columns} from models as t not indexed where id > ? order by id limit ?",  # noqa: S608
        [*values, last, most],
    ).fetchall()
    refuse_disorder([last, *(row[0] for row in rows)])
    return rows


def refuse_disorder(found: Sequence[Any]) -> None:
    """Refuse what a search has found if it is not in ascending order: DatabaseError."""
    if any(one >= other for one, other in pairwise(found)):
        raise sqlite3.DatabaseError("its rows are out of order")


def digest(secret: bytes, key: str, version: int, row: Row) -> bytes:
    """Return what a row is signed with, or checked by, where the secret is empty."""
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
