"""Models by key: the most recently used are in memory, the others in a store.

Of a key, the newest model is in the first of these that has it:

1. `_live`: in memory. Of these, `_dirty` have changed since they were written.
2. `_evicted`: rows that have left the memory, and are not written yet.
3. `_unwritten`: what a checkpoint has that is not written yet. A row counts unless it is outdated:
   a later one has been evicted since.
4. The store.

One thread asks for models, changes and evicts them; another one may write a checkpoint meanwhile.
Both change `_unwritten`, under the lock. A model of the checkpoint that is to change or to leave
before it was written is encoded first.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from drift._checks import counted
from drift.consumers.checkpoints.checkpoint import decode_model, encode_model
from drift.consumers.checkpoints.keyed_file import Row
from drift.errors import CheckpointError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from drift.consumers.checkpoints.keyed_file import Lineage
    from drift.consumers.checkpoints.keyed_store import ModelStore

__all__ = ["KeyedModels"]

log = logging.getLogger("drift.consumers")

#: Keys that have expired are removed once in so many parts of `expire`.
_PARTS = 30


@dataclass(slots=True)
class _Live:
    """A model in memory, how many examples it has learnt of its key, and the time of the last."""

    model: Any
    examples: int
    time: int

    def encode(self, key: str, encode: Callable[[Any], tuple[bytes, str]]) -> Row:
        """Make a row of it."""
        try:
            return Row(*encode(self.model), self.examples, self.time)
        except CheckpointError as problem:  # it could not be read again
            raise CheckpointError(f"the model of the key {key!r:.60}: {problem}") from problem


@dataclass
class _Unwritten:
    """What a checkpoint has that is not in the store yet."""

    version: int
    models: dict[str, _Live]  # as they were, until they change
    rows: dict[str, Row]
    outdated: set[str]  # keys that have a later row

    def encode(self, key: str, encode: Callable[[Any], tuple[bytes, str]]) -> None:
        """Make a row of a model."""
        self.rows[key] = self.models[key].encode(key, encode)
        del self.models[key]


class KeyedModels:
    """Models by key: some in memory, all as of a checkpoint in a store.

    What changes is written at the next checkpoint, and before only if it leaves the memory.

    Parameters
    ----------
    store
        Where those are that are not in memory, and all as of a checkpoint.
    most
        Number of models in memory. The bytes of as many, and of two transactions, may wait there
        to be written.
    allow_pickle
        Pickle models that are not drift's own, and load pickles.
    expire
        Seconds of the log after which a key is dropped that learns nothing; None for never.

    Attributes
    ----------
    loads : int
        Models that were loaded.
    count : int
        Models that there are.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from drift.consumers.checkpoints.keyed_store import ModelStore
    >>> from drift.models import LBP
    >>> models = KeyedModels(ModelStore(Path(tempfile.mkdtemp()), epoch=1), most=1)
    >>> for key in ("ann", "bob"):
    ...     model = LBP(budget=3)
    ...     model.learn_one({"rain": 1.0}, True)
    ...     models.changed(key, model, time=0)
    >>> models.evict()
    >>> len(models), models.count, models.get("ann").n_supports, models.loads
    (1, 2, 1, 1)
    >>> models.close()
    """

    def __init__(
        self,
        store: ModelStore,
        most: int,
        *,
        allow_pickle: bool = False,
        expire: float | None = None,
    ) -> None:
        self.most = most
        self.loads = 0
        self.count = store.count()
        self._store = store
        self._expire = None if expire is None else int(1000 * expire)
        self._now: int | None = None  # the time of the log, at the last checkpoint
        self._next_expiry: float = -math.inf
        self._must_recount = False
        self._encode = partial(encode_model, allow_pickle=allow_pickle, narrow=False)
        self._decode = partial(decode_model, allow_pickle=allow_pickle)
        self._live: OrderedDict[str, _Live] = OrderedDict()  # the last was asked for last
        self._dirty: set[str] = set()
        self._evicted: dict[str, Row] = {}
        self._unwritten: _Unwritten | None = None
        self._lock = threading.Lock()  # of what is being saved

    def __len__(self) -> int:
        """Return how many are in memory."""
        return len(self._live)

    def get(self, key: str, now: int = -1) -> Any:
        """Return the model of a key; None where it has none, or had learnt nothing for too long.

        Parameters
        ----------
        key
            The key.
        now
            The time of the log, in milliseconds since 1970.

        Raises
        ------
        CheckpointError
            If it cannot be read.
        """
        live = self._live.get(key)
        if live is not None:
            self._live.move_to_end(key)
            self._encode_first(key)
        else:
            row = self._stored(key)
            if row is None:
                return None
            model = self._decode(row.state, row.kind)
            live = self._live[key] = _Live(model, row.examples, row.time)
            self.loads += 1
        is_over = self._expire is not None and live.time < now - self._expire
        return None if is_over else live.model

    def changed(self, key: str, model: Any, time: int | None = None) -> None:
        """Note that the model of a key has changed, or is new.

        Parameters
        ----------
        key, model
            The key and its model.
        time
            That of the example that it has learnt; None if it may have changed without.
        """
        live = self._live.get(key)
        if live is None or live.model is not model:
            self.count += live is None
            live = self._live[key] = _Live(model, 0, -1)
        if time is not None:
            live.examples += 1
            live.time = time
        self._dirty.add(key)

    def is_deleted(self, key: str, time: int) -> bool:
        """Whether a message of a key, sent at a time, came before the key was deleted."""
        return self._store.is_deleted(key, time)

    @property
    def any_deleted(self) -> bool:
        """Whether any key was."""
        return bool(self._store.deleted)

    def evict(self) -> None:
        """Have the models that are too many leave the memory.

        Raises
        ------
        FencedError
            If somebody has claimed the models since.
        UnavailableError
            If they cannot be written now.
        """
        while len(self._live) > self.most:
            key, live = self._live.popitem(last=False)
            self._encode_first(key)
            if key in self._dirty:
                self._evicted[key] = live.encode(key, self._encode)
                self._dirty.remove(key)
                if (unwritten := self._unwritten) is not None:
                    unwritten.outdated.add(key)
            self._write_evicted()

    def _write_evicted(self) -> None:
        while len(self._evicted) >= self._store.at_once:
            rows = dict(islice(self._evicted.items(), self._store.at_once))
            self._store.write(self._store.version, rows)
            for key in rows:
                del self._evicted[key]

    def _stored(self, key: str) -> Row | None:
        """Return a model that is not in memory."""
        if key in self._evicted:
            return self._evicted[key]
        if (unwritten := self._unwritten) is not None:
            with self._lock:
                if key in unwritten.rows and key not in unwritten.outdated:
                    return unwritten.rows[key]
        return self._store.load(key)

    # --- checkpoints ---------------------------------------------------------------------------

    def prepare(self, now: int = -1) -> Callable[[], Lineage]:
        """Return a function that writes the models as they are now, on any thread.

        It returns the lineage by which a checkpoint names them. The models go on meanwhile: one
        that is asked for before it was written is encoded first.

        Parameters
        ----------
        now
            The time of the log, in milliseconds since 1970.

        Raises
        ------
        CheckpointError
            If the store cannot be read, or written where keys are deleted or others were evicted.
        """
        self._take_back()
        try:
            expired = self._drop(now)
            self._write_evicted()  # else it would grow by each that fails
            if self._must_recount:
                self.count = self._store.count({*self._live, *self._evicted})
                self._must_recount = False
        except UnavailableError as problem:
            raise CheckpointError(str(problem)) from problem
        models = {key: self._live[key] for key in self._dirty}
        rows = {key: row for key, row in self._evicted.items() if key not in models}
        self._unwritten = _Unwritten(self._store.advance(), models, rows, set())
        self._dirty, self._evicted = set(), {}
        return partial(self._write, self._unwritten, expired)

    def _drop(self, now: int) -> int | None:
        """Drop the keys that were deleted or have expired; return since when these are idle."""
        gone: set[str] = set()
        if self._store.has_deletions():
            gone = self._store.drop_deleted(now, {*self._live, *self._evicted})
            log.info("%s: %s dropped", self._store.path, counted(len(gone), "deleted key"))
            self._must_recount = True
        before = None
        # By the time of the checkpoint before: a crash returns to that.
        if self._expire is not None and self._now is not None and self._now >= self._next_expiry:
            before = self._now - self._expire
            self._next_expiry = self._now + self._expire / _PARTS
            gone |= {key for key, live in self._live.items() if live.time < before}
            gone |= {key for key, row in self._evicted.items() if row.time < before}
        self._now = now
        for key in gone:
            self._live.pop(key, None)
            self._evicted.pop(key, None)
            self._dirty.discard(key)
            self._must_recount = True
        return before

    def _take_back(self) -> None:
        """Have what was not written, as the disk was full, written for the next checkpoint."""
        unwritten, self._unwritten = self._unwritten, None
        if unwritten is None:
            return
        self._dirty |= unwritten.models.keys() & self._live.keys()
        for key, row in unwritten.rows.items():
            if key in self._live:
                self._dirty.add(key)
            elif key not in unwritten.outdated:
                self._evicted[key] = row

    def _encode_first(self, key: str) -> None:
        """Encode a model that may change, or leave, before it was written."""
        unwritten = self._unwritten
        if unwritten is not None and key in unwritten.models:
            with self._lock:
                if key in unwritten.models:
                    unwritten.encode(key, self._encode)

    def _write(self, unwritten: _Unwritten, expired: int | None) -> Lineage:
        store = self._store
        try:
            store.refresh()
            while rows := self._next_rows(unwritten):
                store.write(unwritten.version, rows)
                with self._lock:
                    for key in rows:
                        del unwritten.rows[key]
            lineage = store.finish(unwritten.version)
            store.sweep()
            if expired is not None and store.expire(expired):
                self._must_recount = True
        except UnavailableError as problem:
            raise CheckpointError(str(problem)) from problem
        with self._lock:
            if self._unwritten is unwritten:
                self._unwritten = None
        return lineage

    def _next_rows(self, unwritten: _Unwritten) -> dict[str, Row]:
        while unwritten.models and len(unwritten.rows) < self._store.at_once:
            with self._lock:
                if unwritten.models:
                    unwritten.encode(next(iter(unwritten.models)), self._encode)
        with self._lock:
            return dict(islice(unwritten.rows.items(), self._store.at_once))

    def close(self) -> None:
        """Close the store."""
        self._store.close()
