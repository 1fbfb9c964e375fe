"""What an operator may ask of the models of keys, and do with them, while workers go on."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from drift._checks import counted
from drift.consumers.checkpoints.keyed_file import (
    BEFORE_ALL,
    CONTENT,
    FILE,
    REPAIR,
    database_errors,
    hashed,
    is_whole,
    load_row,
    newest_of,
    opened,
    opened_to_read,
    refuse_disorder,
    rows_after,
)
from drift.errors import CheckpointError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

    from drift.consumers.checkpoints.files import ModelFolder
    from drift.consumers.checkpoints.keyed_file import Lineage, Row

__all__ = ["KeyFacts", "StoredKeys"]

#: Keys that are read at once: whoever reads keeps the worker from writing.
_AT_ONCE = 1000
#: Models, likewise.
_MODELS = 50

# As bytes, as a damaged key is no text.
_ROWS = (
    "select cast(key as blob), version, examples, time, size from models where {} "
    "order by key, version"
)
_TEXTS = "typeof(key) = 'text' and key >= cast(?1 as text)"
_PAGE = (
    f"{_TEXTS} and key <= (select max(key) from "  # noqa: S608
    f"(select distinct key from models where {_TEXTS} order by key limit ?2))"
)
# The time may be later already: that of a log whose clock is ahead.
_DELETED = (
    "insert into deleted values (?, ?, 0) on conflict (name) do update "
    "set time = max(time, excluded.time), obeyed = 0"
)
# Whether a search finds a row in the index, as it is in the table.
_IS_FOUND = """
typeof(key) = 'text' and exists (
    select 1 from models as i indexed by newest where i.key = t.key and i.version = t.version
    and i.examples = t.examples and i.time = t.time and i.size = t.size and i.id = t.id
)
"""
# The key of a row, and that. For one key the rows of others pass: their damage is not its own.
_CHECKED = f"cast(key as blob), {_IS_FOUND}"
_CHECKED_OF_KEY = (
    "cast(key as blob), "
    f"case when cast(key as blob) is not cast(? as blob) then 1 else {_IS_FOUND} end"
)


class KeyFacts(NamedTuple):
    """What is stored of a key.

    `examples` is how many its model has learnt, `time` that of the last one, in milliseconds since
    1970. The file has `versions` of it, those of kept checkpoints, of `size` bytes together.
    """

    key: str
    examples: int
    time: int
    size: int
    versions: int


class StoredKeys:
    """The models of a partition's keys, as of its newest checkpoint.

    Parameters
    ----------
    files
        The files of its checkpoints.
    lineage
        What its newest checkpoint names; None where that has one model for all keys.
    warn
        Called with a line for each row that is damaged, or that no search finds.

    Raises
    ------
    CheckpointError
        If it has no models of keys.
    """

    def __init__(
        self,
        files: ModelFolder,
        lineage: Lineage | None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.path = files.path / FILE
        self._warn = warn
        if lineage is None or not self.path.is_file():
            raise CheckpointError(f"{files.path} has no models of keys")
        self._lineage = lineage

    def __iter__(self) -> Iterator[KeyFacts]:
        """Yield what the index has of each key, in their order; `check` says if these are all.

        Raises
        ------
        ConsumerError
            If the file is damaged so that they are not in their order.
        """
        seen: list[bytes] = []  # the last one
        while rows := self._rows(_PAGE, seen[0] + b"\0" if seen else b"", _AT_ONCE):
            keys = [key for key, _ in groupby(rows, itemgetter(0))]
            with database_errors(self.path):
                refuse_disorder([*seen, *keys])
            yield from self._facts(rows)
            seen = keys[-1:]

    def check(self, key: str | None = None) -> None:
        """Warn of each row that is not as the index has it: one of the two is damaged.

        All rows are looked at, as no search finds these. The models themselves are not read: see
        `verify`.

        Parameters
        ----------
        key
            The key whose rows are checked; None for all.

        Raises
        ------
        CheckpointError
            If there are such rows.
        ConsumerError
            If the file is damaged so that rows are not in their order.
        """
        rows = (
            self._walk(_CHECKED, _AT_ONCE)
            if key is None
            else self._walk(_CHECKED_OF_KEY, _AT_ONCE, key)
        )
        damaged = 0
        for number, name, is_found in rows:
            if not is_found:
                damaged += 1
                self._warn_of(number, name)
        if damaged:
            raise CheckpointError(f"{self.path}: {counted(damaged, 'row')} that no search finds")

    def verify(self, secret: bytes | None) -> tuple[int, int]:
        """Warn of each row whose model is not what was written, too; count all and the damaged.

        Raises
        ------
        ConsumerError
            If the file is damaged so that rows are not in their order.
        """
        count = damaged = 0
        for number, key, is_found, version, *row in self._walk(f"{_CHECKED}, {CONTENT}", _MODELS):
            count += 1
            if not (
                is_found and is_whole(secret or b"", key.decode(errors="replace"), version, row)
            ):
                damaged += 1
                self._warn_of(number, key)
        return count, damaged

    def _walk(self, columns: str, most: int, *values: object) -> Iterator[Any]:
        """Yield id and columns, with these values in them, of all rows, so many read at once."""
        rows: list[Any] = [(BEFORE_ALL,)]
        while rows:
            with self._db() as db:
                rows = rows_after(db, rows[-1][0], most, columns, *values)
            yield from rows

    def _warn_of(self, number: int, key: bytes | None) -> None:
        name = None if key is None else key.decode(errors="replace")
        self._warn(
            f"{self.path}: row {number}, of {name!r:.60}: it is damaged, or its entry in the index "
            f"is, and a worker may take the key for a new one: {REPAIR}"
        )

    def facts(self, key: str) -> KeyFacts | None:
        """Return what is known of a key; None where the newest checkpoint has no model of it."""
        return next(self._facts(self._rows("key = ?", key)), None)

    def load(self, key: str, secret: bytes | None) -> Row | None:
        """Return the model of a key; None where there is none.

        Raises
        ------
        CheckpointError
            If it is damaged, or signed with another key than `secret`.
        """
        try:
            with self._db() as db:
                return load_row(db, key, self._lineage, secret or b"")
        except CheckpointError as problem:
            raise CheckpointError(
                f"{self.path}: the model of {key!r:.60}: {problem}: give the file of the key, "
                "--key-file, or roll back"
            ) from None

    def delete(self, key: str) -> int:
        """Delete a key from all checkpoints; return how many versions of its model there were.

        Its hash and the time stay. The worker drops its model at its next checkpoint, and learns
        none of its messages that were sent up to now.
        """
        with database_errors(self.path), closing(opened(self.path)) as db:
            db.execute("begin immediate")
            deleted = db.execute("delete from models where key = ?", [key]).rowcount
            now = int(1000 * time.time())
            db.execute(_DELETED, [hashed(key), now])
            db.execute("commit")
        return deleted

    def _rows(self, which: str, *values: object) -> list[Any]:
        with self._db() as db:
            return db.execute(_ROWS.format(which), values).fetchall()

    def _facts(self, rows: list[Any]) -> Iterator[KeyFacts]:
        for name, group in groupby(rows, itemgetter(0)):
            versions = {
                version: rest
                for _, version, *rest in group
                if all(isinstance(number, int) for number in (version, *rest))
            }
            newest = newest_of([*versions], self._lineage)
            if newest is not None:
                examples, at, _ = versions[newest]
                sizes = [size for *_, size in versions.values()]
                key = name.decode(errors="replace")
                yield KeyFacts(key, examples, at, sum(sizes), len(sizes))

    @contextmanager
    def _db(self) -> Iterator[sqlite3.Connection]:
        with database_errors(self.path), closing(opened_to_read(self.path)) as db:
            yield db
