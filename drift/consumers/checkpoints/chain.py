"""Models of keys in a store of objects: a chain of them, of what changed from one to the next.

A claim's models are rows of a temporary database, which goes with the process. Each checkpoint puts
those that changed since the one before, in parts of some megabytes that are never changed, and
names all that its models are in::

    models-00000003-0000000017-0000.drift    epoch, version, part

    8 bytes    size of the frame
    frame      of `drift._format`: the index, JSON, signed if there is a key
    bytes of the models, one after the other

What is put takes in those before it that have less than twice as many models that still count. So
each link of a chain is twice as large as the next one, a chain has few links, and a model is
written again at most as often as there are links. Links are removed once no checkpoint names them.
Who claims the models reads the chain of the checkpoint that it goes on from.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from drift import _format
from drift.consumers.checkpoints.file_format import check_signature, load, naming
from drift.consumers.checkpoints.rows import ModelStore
from drift.consumers.crash_points import reached
from drift.errors import CheckpointError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from drift.consumers.checkpoints.files import PartitionObjects
    from drift.consumers.checkpoints.rows import Lineage, Row

__all__ = ["ModelObjects"]

#: Bytes of models from which on a part is put.
_PART = 16 << 20

_SIZE = struct.Struct("<Q")
#: Of an entry of the index: key, version, how it is stored, bytes, digest.
_TYPES = [str, int, str, int, bytes]
_REMEDY = (
    "bring it back from a copy of the store, roll back to a checkpoint of before, or start with "
    "another folder and group"
)


class ModelObjects(ModelStore):
    """Those in objects beside the checkpoints of their claim."""

    width = 3
    where = "the temporary file of models (SQLITE_TMPDIR)"
    repair = "start the worker again"
    remedy = _REMEDY

    _files: PartitionObjects

    def _open(self) -> str:
        return ""  # a file that SQLite removes as it opens it

    def _begin(self, lineage: Lineage) -> list[list[int]]:
        """Read the objects of a chain."""
        self._chain = [[*link] for link in lineage]
        before = 0
        for epoch, version, parts in self._chain:
            for part in range(parts):
                rows = self._read((epoch, version, part), before)
                with self._transaction() as db:
                    self._insert(db, rows)
                    older = "delete from models where key = ? and version < ?"
                    db.executemany(older, (row[:2] for row in rows))
            before = version
        return [[1, before + 1]]

    def _read(self, name: tuple[int, int, int], before: int) -> list[Row]:
        """Return the rows of an object, all later than a version."""
        file = self._files.models(*name)
        with naming(file):
            try:
                data = load(file)
            except FileNotFoundError:
                raise CheckpointError(
                    f"is gone, and the newest checkpoint names it: {_REMEDY}"
                ) from None
            try:
                return _unpack(data, name, before, self._secret or None)
            except CheckpointError as problem:
                raise type(problem)(f"{problem}: {_REMEDY}") from None

    def _named(self) -> list[Lineage]:
        return []

    def _enter(self, db: sqlite3.Connection, version: int) -> None:
        """Do nothing: the database is this claim's alone."""

    def finish(self, version: int) -> Lineage:
        """Put what changed since the last link."""
        reached("models.written")
        count = "select key, max(version) from models where version <= ? group by key"
        with self._lock, self._saying_why():
            newest = dict(self._db.execute(count, [version]).fetchall())
        chain = _shortened(self._chain, sorted(newest.values()))
        last = chain[-1][1] if chain else 0
        parts = 0
        for rows in self._parts([one for one in newest.items() if one[1] > last]):
            data = _pack((self._epoch, version, parts), rows, self._secret or None)
            self._files.write_models(self._epoch, version, parts, data)
            reached("models.put")
            parts += 1
        if parts:
            chain.append([self._epoch, version, parts])
        self._chain = chain
        reached("models.saved")
        return [*chain]

    def _parts(self, which: Sequence[tuple[str, int]]) -> Iterator[list[Row]]:
        """Yield rows, as many as a part may have."""
        found = (
            "select key, version, kind, cast(state as blob), cast(digest as blob) from models "
            "where key = ? and version = ?"
        )
        rows: list[Row] = []
        size = 0
        for one in which:
            with self._lock, self._saying_why():
                rows += self._db.execute(found, one)
            size += len(rows[-1][3])
            if size >= _PART:
                yield rows
                rows, size = [], 0
        if rows:
            yield rows

    def sweep(self) -> None:
        """Remove the links that no checkpoint names.

        A checkpoint whose put was given up may be there later: links of this claim stay until a
        later one than theirs is there.
        """
        own = [chain for (epoch, _), chain in self._known.items() if epoch == self._epoch]
        if self._kept is None or not own:
            return
        upto = own[-1][-1][1] if own[-1] else 0
        chains = [*self._known.values(), self._chain]
        needed = {(link[0], link[1]) for chain in chains for link in chain}
        self._files.remove_models(
            (epoch, version, part)
            for epoch, version, part in self._files.owned(self._epoch).models
            if (epoch, version) not in needed and (epoch < self._epoch or version <= upto)
        )


def _shortened(chain: Sequence[list[int]], newest: Sequence[int]) -> list[list[int]]:
    """Return the links that stay as those behind them are put together with what is new.

    Parameters
    ----------
    chain
        The links: epoch, version, parts.
    newest
        The version of each model, in ascending order.

    Examples
    --------
    >>> _shortened([[1, 1, 1], [1, 4, 1], [1, 5, 1]], [*[1] * 8, 2, 3, 5, 6])
    [[1, 1, 1]]
    """
    links = [*chain]
    while links:
        last = bisect_right(newest, links[-1][1])
        before = bisect_right(newest, links[-2][1]) if len(links) > 1 else 0
        if last - before >= 2 * (len(newest) - last):
            break
        links.pop()
    return links


def _pack(name: Sequence[int], rows: Sequence[Row], secret: bytes | None) -> bytes:
    """Return the object of some rows."""
    index = {
        "name": [*name],
        "rows": [[*row[:3], len(row[3]), row[4].hex()] for row in rows],
    }
    head = _format.seal(json.dumps(index).encode(), [], secret)
    return b"".join([_SIZE.pack(len(head)), head, *(row[3] for row in rows)])


def _unpack(data: bytes, name: Sequence[int], before: int, secret: bytes | None) -> list[Row]:
    """Return the rows of an object, whose bytes are checked as they are loaded.

    Raises
    ------
    CheckpointError
        If its index is damaged, not signed with the key, or another one's.
    """
    at = _SIZE.size + int.from_bytes(data[: _SIZE.size], "little")
    frame = _format.unseal("object of models", data[_SIZE.size : at])
    check_signature(frame, secret)
    rows = []
    for key, version, kind, size, digest in _entries(frame.header, [*name], before):
        rows.append((key, version, kind, data[at : at + size], digest))
        at += size
    return rows


def _entries(header: bytes, name: list[int], before: int) -> list[tuple[Any, ...]]:
    """Return the entries of an index; CheckpointError if it is none of this object."""
    try:
        index = json.loads(header)
        entries = [(*entry[:4], bytes.fromhex(entry[4])) for entry in index["rows"]]
        is_right = index["name"] == name and all(
            [*map(type, entry)] == _TYPES and before < entry[1] <= name[1] and entry[3] >= 0
            for entry in entries
        )
    except (ValueError, LookupError, TypeError, RecursionError):
        is_right = False
    if not is_right:
        raise CheckpointError("its index is not one of this object")
    return entries
