"""What an operator may ask of the models of keys, and do with them, while workers go on."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.consumers.checkpoints.keyed_store import (
    FILE,
    database_errors,
    hashed,
    load_row,
    newest_of,
    opened,
)
from drift.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drift.consumers.checkpoints.files import PartitionFolder
    from drift.consumers.checkpoints.keyed_store import Lineage, Row

__all__ = ["KeyFacts", "StoredKeys"]

#: Keys that are read at once: whoever reads keeps the worker from writing.
_AT_ONCE = 1000

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
    partition
        The files of its checkpoints.
    lineage
        What its newest checkpoint names; None where that has one model for all keys.

    Raises
    ------
    CheckpointError
        If it has no models of keys.
    """

    def __init__(self, partition: PartitionFolder, lineage: Lineage | None) -> None:
        self.path = partition.path / FILE
        if lineage is None or not self.path.is_file():
            raise CheckpointError(f"{partition.path} has no models of keys")
        self._lineage = lineage

    def __iter__(self) -> Iterator[KeyFacts]:
        """Yield what is known of each key, in their order; last, those that are no texts any more.

        Raises
        ------
        ConsumerError
            If the file is damaged so that they are not in their order.
        """
        first = b""
        while rows := self._rows(_PAGE, first, _AT_ONCE):
            with database_errors(self.path):
                if min(key for key, *_ in rows) < first:  # else it might never end
                    raise sqlite3.DatabaseError("its keys are out of order")
            yield from self._facts(rows)
            first = rows[-1][0] + b"\0"  # the next text after this one
        yield from self._facts(self._rows("typeof(key) != 'text'"))

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
        with self._db() as db:
            db.execute("begin immediate")
            deleted = db.execute("delete from models where key = ?", [key]).rowcount
            now = int(1000 * time.time())
            db.execute("insert or replace into deleted values (?, ?, 0)", [hashed(key), now])
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
        with database_errors(self.path), closing(opened(self.path)) as db:
            yield db
