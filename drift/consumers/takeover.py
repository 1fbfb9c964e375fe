"""A model that is being taken over, on a thread of its own, while the worker polls.

To read waiting features again, or to open a slow folder, may take longer than a member of a group
may be silent: its partitions would go to another one, which begins anew, and so on without end.
"""

from __future__ import annotations

import logging
import time
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.consumers.checkpoints.agreement import advice, part
from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.consumers.keyed import KeyedLearner
from drift.consumers.keyed_models import KeyedModels
from drift.consumers.late import learner_of
from drift.consumers.metrics import Metrics
from drift.consumers.options import is_keyed
from drift.consumers.shadow import Shadow
from drift.errors import DriftError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.checkpoints.folder import CheckpointFolder
    from drift.consumers.codec import Codec
    from drift.consumers.learner import Learner
    from drift.consumers.metrics import WorkerMetrics
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import ClaimName, Logs, Message, TopicPartition

__all__ = ["Loader", "TakeOver"]

log = logging.getLogger("drift.consumers")

#: Seconds between two lines about how far one is.
_OFTEN = 10.0


class _AbandonedError(DriftError):
    """The partitions have gone."""


class TakeOver:
    """A takeover, and what the learner reads again through it.

    Parameters
    ----------
    claim_id
        What is claimed.
    source
        What is read again comes from it.
    metrics
        Count what was read.

    Attributes
    ----------
    learner : Future
        The learner, once it is taken over.
    """

    learner: Future[Learner]

    def __init__(self, claim_id: ClaimName, source: Logs, metrics: WorkerMetrics) -> None:
        self.claim_id = claim_id
        self._source, self._metrics = source, metrics
        self._began = self._said = time.monotonic()
        self._at = ""
        self._gone = Event()

    def __str__(self) -> str:
        """Say how long it has taken, and how far it is."""
        return f"{self.claim_id} is being taken over for {self.seconds:.0f} s{self._at}"

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._began

    def begin(self, executor: Executor, load: Callable[[Logs], Learner]) -> None:
        """Have another thread do it."""
        self.learner = executor.submit(load, self)

    def say(self) -> None:
        """Log how far it is, now and then."""
        if time.monotonic() - self._said >= _OFTEN:
            self._said = time.monotonic()
            log.info("%s", str(self))

    def abandon(self) -> None:
        """Have it end soon, as the partitions have gone."""
        self._gone.set()
        if not self.learner.cancel():
            self.learner.add_done_callback(_close)

    # --- as `drift.consumers.records.Logs` -----------------------------------------------------

    def reread(self, place: TopicPartition, offset: int) -> tuple[list[Message], int]:
        """Read a fetch from an offset before the position; return it and its end."""
        if self._gone.is_set():
            raise _AbandonedError(str(self))
        messages, end = self._source.reread(place, offset)
        self._metrics.reread += len(messages)
        self._at = f", has read {place[0]}:{place[1]} again up to offset {end}"
        return messages, end

    def bound(self, place: TopicPartition, start: str) -> int:
        """First offset of a partition ("earliest"), or its end ("latest")."""
        return self._source.bound(place, start)


def _close(taken: Future[Learner]) -> None:
    if taken.exception() is None:
        taken.result().close()


class Loader(NamedTuple):
    """What a worker takes over with.

    Attributes
    ----------
    folder
        The checkpoints.
    model, shadow
        As they are before they have learnt anything; `shadow` is None for none.
    codec, options
        The worker's.
    """

    folder: CheckpointFolder
    model: Any
    shadow: Any
    codec: Codec
    options: WorkerOptions

    def load(self, claim_id: ClaimName, identity: dict[str, str], source: Logs) -> Learner:
        """Claim a model and load it, whose topic and group have an identity.

        Raises
        ------
        CheckpointError
            If its checkpoint cannot be used.
        """
        epoch, checkpoint = self.folder.claim(claim_id, identity)
        learner = self._new_learner(claim_id, epoch, checkpoint)
        try:
            learner.epoch, learner.identity = epoch, identity
            self._restore(learner, checkpoint, source)
            self._set_shadow(learner)
            learner.note()
        except BaseException:
            learner.close()
            raise
        return learner

    def _new_learner(
        self, claim_id: ClaimName, epoch: int, checkpoint: Checkpoint | None
    ) -> Learner:
        model, codec, options, folder = self.model.clone(), self.codec, self.options, self.folder
        if not is_keyed(codec):
            return learner_of(model, codec, options)
        lineage = () if checkpoint is None else checkpoint.models or ()
        store = ModelStore(folder.folder(claim_id), epoch, lineage, secret=folder.secret)
        models = KeyedModels(
            store, options.max_models, allow_pickle=folder.allow_pickle, expire=options.expire
        )
        return KeyedLearner(model, codec, Metrics.of(options, claim_id[1]), options, models)

    def _restore(self, learner: Learner, checkpoint: Checkpoint | None, source: Logs) -> None:
        """Have a learner continue from a checkpoint, if there is one."""
        learner.configuration = dict(self.folder.configuration or {})
        if checkpoint is None or checkpoint.is_blank:
            learner.trial = []
        if checkpoint is None:
            return
        learner.restore(checkpoint)
        learner.read_again(source, self.folder.path)
        if not checkpoint.identity:
            log.warning(
                "%s: checkpoint %s names no topic and group, they are %s now",
                *(learner.claim_id, checkpoint.id, learner.identity),
            )
            learner.since_checkpoint = 1  # so that the next one names it

    def _set_shadow(self, learner: Learner) -> None:
        """Give a learner the shadow that it is to have, which is the checkpoint's or starts."""
        now = learner.configuration
        before = part(self.folder.configuration or {}, "model")
        is_old = bool(before) and part(now, "model") != before
        if is_old:
            log.warning(
                "%s: continues with the model that was promoted, not with that of [model]: %s",
                *(learner.claim_id, advice(now)),
            )
        if self.shadow is None:
            learner.shadow = None
        elif learner.shadow is None:
            is_first = is_old and part(now, "shadow") == before
            model = self.model if is_first else self.shadow
            learner.shadow = Shadow(model.clone(), learner.offsets)
            log.info("%s: the shadow begins, %s", learner.claim_id, type(model).__name__)
