"""A model for each key of the messages, as for each customer: many in memory, all in a store.

A topic is partitioned by its key, and the workers of a group share the partitions. Each partition
is a claim, with a checkpoint and a `drift.consumers.checkpoints.keyed_store.ModelStore` of its own.

With a prior, the topic's own model learns everything, and a key's model begins as a copy of it, at
the first example of the key that is learnt; until then it answers for the key. Without one a key's
model begins as one that has learnt nothing. So what is learnt depends on the log alone, and not on
which models happened to be in memory.

A key that `drift keys` deletes is dropped at the next checkpoint. What was sent of it before is not
learnt again; after that it begins as a new one. So does a key that has learnt nothing for `expire`
seconds of the log.

A model whose bytes cannot be read gives its key's messages to the dead letters; the other keys go
on. Where the store as a whole cannot be read or written, the worker ends.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from drift._checks import counted
from drift.consumers.checkpoints.checkpoint import decode_model, encode_model
from drift.consumers.checkpoints.keyed_store import Row
from drift.consumers.learner import Learner
from drift.consumers.replay import sent_first
from drift.errors import CheckpointError, ConsumerError, FencedError, MessageError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from drift.consumers.checkpoints.keyed_store import Lineage, ModelStore
    from drift.consumers.codec import Codec, Example
    from drift.consumers.metrics import Metrics
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import Message, Outgoing
    from drift.types import Features, Label

__all__ = ["KeyedLearner", "KeyedModels"]

log = logging.getLogger("drift.consumers")

#: Keys that have expired are removed once in so many parts of `expire`.
_PARTS = 30


@dataclass(slots=True)
class _Kept:
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
    models: dict[str, _Kept]  # as they were, until they change
    rows: dict[str, Row]
    outdated: set[str]  # of which there is a later row

    def encode(self, key: str, encode: Callable[[Any], tuple[bytes, str]]) -> None:
        """Make a row of a model."""
        self.rows[key] = self.models[key].encode(key, encode)
        del self.models[key]


class KeyedModels:
    """Models by key: the most recently used are in memory, the others in a store.

    One thread asks for models and changes them; another one may write a checkpoint meanwhile. What
    changes is written at the next checkpoint, and before only if it leaves the memory. A model that
    changes or leaves before the checkpoint has written it is encoded first, and its bytes wait.

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
    >>> models.leave()
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
        self._next_sweep: float = -math.inf
        self._is_recounted = True
        self._encode = partial(encode_model, allow_pickle=allow_pickle, narrow=False)
        self._decode = partial(decode_model, allow_pickle=allow_pickle)
        self._live: OrderedDict[str, _Kept] = OrderedDict()  # the last one was asked for last
        self._dirty: set[str] = set()  # of those, what has changed since it was written
        self._left: dict[str, Row] = {}  # have left, and are to be written
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
        kept = self._live.get(key)
        if kept is not None:
            self._live.move_to_end(key)
            self._encode_first(key)
        else:
            row = self._stored(key)
            if row is None:
                return None
            model = self._decode(row.state, row.kind)
            kept = self._live[key] = _Kept(model, row.examples, row.time)
            self.loads += 1
        is_over = self._expire is not None and kept.time < now - self._expire
        return None if is_over else kept.model

    def changed(self, key: str, model: Any, time: int | None = None) -> None:
        """Note that the model of a key has changed, or is new.

        Parameters
        ----------
        key, model
            The key and its model.
        time
            That of the example that it has learnt; None if it may have changed without.
        """
        kept = self._live.get(key)
        if kept is None or kept.model is not model:
            self.count += kept is None
            kept = self._live[key] = _Kept(model, 0, -1)
        if time is not None:
            kept.examples += 1
            kept.time = time
        self._dirty.add(key)

    def is_deleted(self, key: str, time: int) -> bool:
        """Whether a message of a key, sent at a time, came before the key was deleted."""
        return self._store.is_deleted(key, time)

    @property
    def any_deleted(self) -> bool:
        """Whether any key was."""
        return bool(self._store.deleted)

    def leave(self) -> None:
        """Have what is too much leave the memory.

        Raises
        ------
        FencedError
            If somebody has claimed the models since.
        UnavailableError
            If they cannot be written now.
        """
        while len(self._live) > self.most:
            key, kept = self._live.popitem(last=False)
            self._encode_first(key)
            if key in self._dirty:
                self._left[key] = kept.encode(key, self._encode)
                self._dirty.remove(key)
                if (unwritten := self._unwritten) is not None:
                    unwritten.outdated.add(key)
            self._write_left()

    def _write_left(self) -> None:
        while len(self._left) >= self._store.at_once:
            rows = dict(islice(self._left.items(), self._store.at_once))
            self._store.write(self._store.version, rows)
            for key in rows:
                del self._left[key]

    def _stored(self, key: str) -> Row | None:
        """Return a model that is not in memory."""
        if key in self._left:
            return self._left[key]
        if (unwritten := self._unwritten) is not None:
            with self._lock:
                if key in unwritten.rows and key not in unwritten.outdated:
                    return unwritten.rows[key]
        return self._store.load(key)

    # --- checkpoints ---------------------------------------------------------------------------

    def state(self, now: int = -1) -> Callable[[], Lineage]:
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
            If the store cannot be read, or written where keys are deleted or others have left.
        """
        self._take_back()
        try:
            expired = self._drop(now)
            self._write_left()  # else it would grow by each that fails
            if not self._is_recounted:
                self.count = self._store.count({*self._live, *self._left})
                self._is_recounted = True
        except UnavailableError as problem:
            raise CheckpointError(str(problem)) from problem
        models = {key: self._live[key] for key in self._dirty}
        left = {key: row for key, row in self._left.items() if key not in models}
        self._unwritten = _Unwritten(self._store.advance(), models, left, set())
        self._dirty, self._left = set(), {}
        return partial(self._write, self._unwritten, expired)

    def _drop(self, now: int) -> int | None:
        """Drop the keys that were deleted or have expired; return since when these are idle."""
        gone: set[str] = set()
        if self._store.has_orders():
            gone = self._store.obey(now, {*self._live, *self._left})
            log.info("%s: %s dropped", self._store.path, counted(len(gone), "deleted key"))
            self._is_recounted = False
        before = None
        # By the time of the checkpoint before: a crash returns to that.
        if self._expire is not None and self._now is not None and self._now >= self._next_sweep:
            before = self._now - self._expire
            self._next_sweep = self._now + self._expire / _PARTS
            gone |= {key for key, kept in self._live.items() if kept.time < before}
            gone |= {key for key, row in self._left.items() if row.time < before}
        self._now = now
        for key in gone:
            self._live.pop(key, None)
            self._left.pop(key, None)
            self._dirty.discard(key)
            self._is_recounted = False
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
                self._left[key] = row

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
                self._is_recounted = False
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


def key_of(codec: Codec, example: Example) -> str:
    """Return the key of an example that has a model of its own, or refuse one without."""
    if example.key is None:
        raise MessageError(str(codec.key), "is absent: send the key there that has a model")
    return str(example.key)


class KeyedLearner(Learner):
    """A learner with a model for each key.

    Parameters
    ----------
    model
        The topic's own, which learns all where there is a prior; else what new keys begin as.
    codec, metrics, options
        As of `Learner`; examples have a key.
    models
        The models of the keys.
    """

    def __init__(
        self,
        model: Any,
        codec: Codec,
        metrics: Metrics,
        options: WorkerOptions,
        models: KeyedModels,
    ) -> None:
        super().__init__(model, codec, metrics, options)
        self.models = models
        self._model_key = ""
        self._time = -1
        self._own: Any = None  # the model of the key; None before it has learnt

    def take(self, message: Message) -> list[Outgoing]:
        """Predict and learn a message by the model of its key; see `Learner.take`."""
        answer = super().take(message)
        self.models.leave()
        return answer

    def models_state(self) -> Callable[[], Lineage]:
        """Return what writes the models, and returns their lineage."""
        now = max((clock.time for clock in self.clocks.values()), default=-1)
        return self.models.state(now)

    def note(self) -> None:
        """Have the metrics show how far it is."""
        self.metrics.keyed = {
            "models": self.models.count,
            "models_in_memory": len(self.models),
            "model_loads": self.models.loads,
        }
        super().note()

    def close(self) -> None:
        """Close the store of the models."""
        super().close()
        self.models.close()

    def _learn(self, message: Message, time: int) -> list[Outgoing]:
        self._time = time
        return super()._learn(message, time)

    def _learn_example(self, message: Message, example: Example) -> list[Outgoing]:
        self._model_key = key_of(self.codec, example)
        try:
            self._own = self.models.get(self._model_key, self._time)
        except (FencedError, UnavailableError, ConsumerError):
            raise
        except CheckpointError as problem:
            raise MessageError(
                f"{self.codec.key} {self._model_key!r:.60}",
                f"has a model that cannot be read ({problem}): roll back, or delete its rows in "
                "models.sqlite, and it starts anew",
            ) from None
        if self.models.any_deleted and self.models.is_deleted(self._model_key, sent_first(message)):
            example = example._replace(label=None)  # predicted, but not learnt again
        return super()._learn_example(message, example)

    @property
    def _predictor(self) -> Any:
        return self.model if self._own is None else self._own

    def _update(
        self, features: Features, label: Label, weight: float | None, ticket: Hashable
    ) -> bool:
        if self.options.prior:
            super()._update(features, label, weight, ticket)
        own = self._own
        if own is None and self.options.prior:
            own = deepcopy(self.model)  # which has learnt it
        else:
            if own is None:
                own = self.model.clone()
            else:
                # Before it learns, as one that raises may have changed.
                self.models.changed(self._model_key, own)
            own.learn_one(features, label, **({} if weight is None else {"w": weight}))
        self.models.changed(self._model_key, own, self._time)
        return True
