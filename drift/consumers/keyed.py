"""A model for each key of the messages, as for each customer: many in memory, all in a store.

A topic is partitioned by its key, and the workers of a group share the partitions. Each partition
is a claim, with a checkpoint and a `drift.consumers.checkpoints.keyed_store.ModelStore` of its own.

With a prior, the topic's own model learns everything, and a key's model begins as a copy of it, at
the first example of the key that is learnt; until then it answers for the key. Without one a key's
model begins as one that has learnt nothing. So what is learnt depends on the log alone, and not on
which models happened to be in memory.

A model whose bytes cannot be read gives its key's messages to the dead letters; the other keys go
on. Where the store as a whole cannot be read or written, the worker ends.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from drift.consumers.checkpoints.checkpoint import decode_model, encode_model
from drift.consumers.learner import Learner
from drift.errors import CheckpointError, ConsumerError, FencedError, MessageError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from drift.consumers.checkpoints.keyed_store import Lineage, ModelStore
    from drift.consumers.codec import Codec, Example
    from drift.consumers.metrics import Metrics
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import Message, Outgoing
    from drift.types import Features, Label

__all__ = ["KeyedLearner", "KeyedModels"]


@dataclass
class _Unwritten:
    """What a checkpoint has that is not in the store yet."""

    version: int
    models: dict[str, Any]  # as they were, until they change
    rows: dict[str, tuple[bytes, str]]
    outdated: set[str]  # of which there is a later row

    def encode(self, key: str, encode: Callable[[Any], tuple[bytes, str]]) -> None:
        """Make a row of a model."""
        self.rows[key] = encode(self.models[key])
        del self.models[key]


class KeyedModels:
    """Models by key: the most recently used are in memory, the others in a store.

    One thread asks for models and changes them; another one may write a checkpoint meanwhile.

    Parameters
    ----------
    store
        Where those are that are not in memory, and all as of a checkpoint.
    most
        Number of models in memory.
    allow_pickle
        Pickle models that are not drift's own, and load pickles.

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
    ...     models.changed(key, model)
    >>> models.leave()
    >>> len(models), models.count, models.get("ann").n_supports, models.loads
    (1, 2, 1, 1)
    >>> models.close()
    """

    def __init__(self, store: ModelStore, most: int, *, allow_pickle: bool = False) -> None:
        self.most = most
        self.loads = 0
        self.count = store.count
        self._store = store
        self._encode = partial(encode_model, allow_pickle=allow_pickle, narrow=False)
        self._decode = partial(decode_model, allow_pickle=allow_pickle)
        self._live: OrderedDict[str, Any] = OrderedDict()  # the last one was asked for last
        self._dirty: set[str] = set()  # of those, what has changed since it was written
        self._left: dict[str, tuple[bytes, str]] = {}  # have left, and are to be written
        self._unwritten: _Unwritten | None = None
        self._lock = threading.Lock()  # of what is being saved

    def __len__(self) -> int:
        """Return how many are in memory."""
        return len(self._live)

    def get(self, key: str) -> Any:
        """Return the model of a key; None where it has none.

        Raises
        ------
        CheckpointError
            If it cannot be read.
        """
        model = self._live.get(key)
        if model is not None:
            self._live.move_to_end(key)
            if self._unwritten is not None:
                self._encode_first(key)
            return model
        stored = self._stored(key)
        if stored is None:
            return None
        model = self._live[key] = self._decode(*stored)
        self.loads += 1
        return model

    def changed(self, key: str, model: Any) -> None:
        """Note that the model of a key has changed, or is new."""
        if key not in self._live:
            self._live[key] = model
            self.count += 1
        self._dirty.add(key)

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
            key, model = self._live.popitem(last=False)
            if self._unwritten is not None:
                self._encode_first(key)
            if key in self._dirty:
                self._left[key] = self._encode(model)
                self._dirty.remove(key)
                if (unwritten := self._unwritten) is not None:
                    unwritten.outdated.add(key)
            self._write_left()
        self._write_left()  # what a checkpoint has given back, too

    def _write_left(self) -> None:
        while len(self._left) >= self._store.at_once:
            rows = dict(islice(self._left.items(), self._store.at_once))
            self._store.write(self._store.version, rows)
            for key in rows:
                del self._left[key]

    def _stored(self, key: str) -> tuple[bytes, str] | None:
        """Return the bytes of a model that is not in memory."""
        if key in self._left:
            return self._left[key]
        if (unwritten := self._unwritten) is not None:
            with self._lock:
                if key in unwritten.rows and key not in unwritten.outdated:
                    return unwritten.rows[key]
        return self._store.load(key)

    # --- checkpoints ---------------------------------------------------------------------------

    def state(self) -> Callable[[], Lineage]:
        """Return a function that writes the models as they are now, on any thread.

        It returns the lineage by which a checkpoint names them. The models go on meanwhile: one
        that is asked for before it was written is encoded first.
        """
        self._take_back()
        models = {key: self._live[key] for key in self._dirty}
        left = {key: row for key, row in self._left.items() if key not in models}
        self._unwritten = _Unwritten(self._store.advance(), models, left, set())
        self._dirty, self._left = set(), {}
        return partial(self._write, self._unwritten)

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

    def _write(self, unwritten: _Unwritten) -> Lineage:
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
        except UnavailableError as problem:
            raise CheckpointError(str(problem)) from problem
        with self._lock:
            if self._unwritten is unwritten:
                self._unwritten = None
        return lineage

    def _next_rows(self, unwritten: _Unwritten) -> dict[str, tuple[bytes, str]]:
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
        raise MessageError(_key_path(codec), "is absent: send the key there that has a model")
    return str(example.key)


def _key_path(codec: Codec) -> str:
    return str(getattr(codec, "key", "key"))


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
        self._own: Any = None  # the model of the key; None before it has learnt

    def take(self, message: Message) -> list[Outgoing]:
        """Predict and learn a message by the model of its key; see `Learner.take`."""
        answer = super().take(message)
        self.models.leave()
        return answer

    def models_state(self) -> Callable[[], Lineage]:
        """Return what writes the models, and returns their lineage."""
        return self.models.state()

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
        self.models.close()

    def _learn_example(self, message: Message, example: Example) -> list[Outgoing]:
        self._model_key = key_of(self.codec, example)
        try:
            self._own = self.models.get(self._model_key)
        except (FencedError, UnavailableError, ConsumerError):
            raise
        except CheckpointError as problem:
            raise MessageError(
                f"{_key_path(self.codec)} {self._model_key!r:.60}",
                f"has a model that cannot be read ({problem}): roll back, or delete its rows in "
                "models.sqlite, and it starts anew",
            ) from None
        return super()._learn_example(message, example)

    @property
    def _answering(self) -> Any:
        return self.model if self._own is None else self._own

    def _update(self, features: Features, label: Label, weight: float | None) -> bool:
        if self.options.prior:
            super()._update(features, label, weight)
        own = self._own
        if own is None and self.options.prior:
            own = deepcopy(self.model)  # which has learnt it
        else:
            if own is None:
                own = self.model.clone()
            else:
                self.models.changed(
                    self._model_key, own
                )  # before: one that raises may have changed
            own.learn_one(features, label, **({} if weight is None else {"w": weight}))
        self.models.changed(self._model_key, own)
        return True
