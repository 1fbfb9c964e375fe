"""The worker: poll, decode, predict, learn, publish, checkpoint, for months."""

from __future__ import annotations

import logging
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from drift.consumers._points import reached
from drift.consumers.kafka import Broker, SingleAssignor
from drift.consumers.learner import Learner
from drift.consumers.messages import JsonCodec
from drift.consumers.metrics import Metrics, WorkerMetrics
from drift.errors import CheckpointError, ConsumerError, FencedError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.consumers.folder import CheckpointFolder
    from drift.consumers.messages import Codec

__all__ = ["Worker"]

log = logging.getLogger("drift.consumers")

Place = tuple[str, int]

#: Seconds of learning after which a worker polls again, so that slow models stay in the group.
_PATIENCE = 30.0


class Worker:
    """Learns the examples of a topic, each exactly once, and publishes what it predicted before.

    Each partition that the group gives to the worker has a model of its own, a clone of `model`,
    which goes on where its newest checkpoint ends. A checkpoint holds the model together with the
    next offset, so that no crash can part them: what came after it is read and learnt again by a
    model that has not learnt it. Predictions and dead letters are sent at least once, with
    ``topic:partition:offset`` for the key of a prediction.

    Parameters
    ----------
    model
        Any River classifier or pipeline that has learnt nothing.
    topic
        The topic to learn.
    group
        The consumer group; start more workers of it to share the partitions.
    folder
        The checkpoints, local or shared by all workers of the group.
    kafka
        Options of kafka-python for all clients: ``bootstrap_servers``, security, ...
    start
        Where a partition without checkpoint and without committed offset begins: ``"earliest"``,
        ``"latest"``, or None to refuse.
    predictions, dead_letters
        Topics to send to; None for none.
    codec
        What makes examples of messages; None for `JsonCodec`.
    single
        One model over all partitions, in one worker of the group; the others stand by.
    every_messages, every_seconds
        A checkpoint is written after so many messages or seconds, whichever comes first.
    consumer, producer
        More options of kafka-python for the one or the other.

    Attributes
    ----------
    metrics : WorkerMetrics
        What is counted.

    Raises
    ------
    ParameterError
        If `start` is none of the three.
    CheckpointError
        If the model cannot be stored in `folder`.
    """

    def __init__(  # noqa: PLR0913
        self,
        model: Any,
        topic: str,
        group: str,
        folder: CheckpointFolder,
        kafka: Mapping[str, Any],
        *,
        start: str | None = None,
        predictions: str | None = None,
        dead_letters: str | None = None,
        codec: Codec | None = None,
        single: bool = False,
        every_messages: int = 20_000,
        every_seconds: float = 10.0,
        consumer: Mapping[str, Any] | None = None,
        producer: Mapping[str, Any] | None = None,
    ) -> None:
        if start not in {None, "earliest", "latest"}:
            raise ParameterError(f"start must be 'earliest', 'latest' or None, not {start!r}")
        folder.check(model)
        self.model = model
        self.topic = topic
        self.folder = folder
        self.start = start
        self.codec = JsonCodec() if codec is None else codec
        self.single = single
        self.every_messages = every_messages
        self.every_seconds = every_seconds
        self.metrics = WorkerMetrics()
        self._outputs = {"predictions": predictions, "dead_letters": dead_letters}
        self._learners: dict[tuple[str, int | None], Learner] = {}
        self._epochs: dict[tuple[str, int | None], int] = {}
        self._stopping = threading.Event()
        self._saved = time.monotonic()
        options = dict(consumer or {})
        if single:
            options.setdefault("partition_assignment_strategy", [SingleAssignor()])
        self._broker = Broker(topic, group, kafka, options, producer or {}, self._leave)

    # --- life ----------------------------------------------------------------------------------

    def stop(self, *_signal: object) -> None:
        """Finish the message at hand, write checkpoints and leave the group; from any thread."""
        self._stopping.set()

    def run(self, *, signals: bool = True) -> None:
        """Work until `stop`, SIGTERM or SIGINT.

        Parameters
        ----------
        signals
            Listen to these signals; only in the main thread.

        Raises
        ------
        ConsumerError
            If the worker cannot go on without losing or doubling examples: there is no telling
            where to start, or the broker no longer has what comes next.
        CheckpointError
            If a checkpoint cannot be used.
        """
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self.stop)
        try:
            while not self._stopping.is_set():
                self.step()
            self._save_all()
        except BaseException:
            # Closing gives the partitions up, which saves their models: one of them may be in the
            # middle of a message, or the answer to it was not sent.
            self._learners.clear()
            raise
        finally:
            self._broker.close()

    def step(self, seconds: float = 1.0) -> int:
        """Wait for messages up to so many seconds, learn them; return their number."""
        started = time.monotonic()
        batches = list(self._broker.poll(seconds))
        self.metrics.poll_seconds += time.monotonic() - started
        self._begin_assigned()
        taken = 0
        patience = time.monotonic() + _PATIENCE
        for place, messages in batches:
            learner = self._learners.get(self._key(place))
            if learner is None:
                continue  # it went while these were on their way
            for message in messages:
                for outgoing in learner.take(message):
                    self._broker.send(outgoing)
                taken += 1
                if self._stopping.is_set():
                    return taken
                if time.monotonic() > patience:
                    break
            if learner.offsets[place] <= messages[-1].position.offset:
                self._broker.begin(place, learner.offsets[place])  # the rest comes again
            learner.metrics.lag = self._broker.lag(place, learner.offsets[place])
        self._save_due()
        return taken

    # --- partitions ----------------------------------------------------------------------------

    def _key(self, place: Place) -> tuple[str, int | None]:
        return (place[0], None) if self.single else place

    def _begin_assigned(self) -> None:
        """Take over what was assigned while the worker was in `poll`, and go on with it."""
        assigned = self._broker.assigned[:]
        self._broker.assigned.clear()  # what is held again waits for the next poll
        for key in dict.fromkeys(map(self._key, assigned)):
            places = [place for place in assigned if self._key(place) == key]
            learner = self._learners.get(key) or self._take_over(key)
            first = {p: self._first_offset(p, learner) for p in places if p not in learner.offsets}
            if first:
                learner.offsets.update(first)
                if not self._save(key):  # so that "latest" is decided once
                    for place in first:
                        del learner.offsets[place]
                    self._broker.hold(places)
                    continue
            for place in places:
                self._broker.begin(place, learner.offsets[place])
                self.metrics.rebalances += 1
        self.metrics.models = [learner.metrics for learner in self._learners.values()]

    def _take_over(self, key: tuple[str, int | None]) -> Learner:
        epoch, checkpoint = self.folder.claim(key)
        metrics = Metrics(*key)
        model, offsets, name = self.model.clone(), {}, None
        if checkpoint is not None:
            model, name = checkpoint.model, checkpoint.id
            offsets = dict(checkpoint.offsets)
            if checkpoint.metrics:  # none of a model that was trained elsewhere
                metrics.restore(dict(checkpoint.metrics))
            metrics.checkpointed(checkpoint.time)
        log.info("%s: epoch %d, checkpoint %s, offsets %s", key, epoch, name, offsets)
        self._epochs[key] = epoch
        self._learners[key] = learner = Learner(
            model, self.codec, metrics, offsets, checkpoint=name, **self._outputs
        )
        return learner

    def _first_offset(self, place: Place, learner: Learner) -> int:
        committed = self._broker.committed(place)
        if committed is not None:
            # One model over all partitions that went back to a checkpoint from before this one came
            # has learnt nothing of it, whatever a later one had.
            came_later = self.single and learner.checkpoint is not None
            if came_later and self.start == "earliest":
                return self._broker.bound(place, "earliest")
            raise ConsumerError(
                f"{place[0]}:{place[1]} has been learnt up to {committed}, but {self.folder.path} "
                "has no checkpoint of it: give the folder that has, or another group to start anew"
                + (", or start at the earliest message, as the model has none of it" * came_later)
            )
        if self.start is None:
            raise ConsumerError(
                f"{place[0]}:{place[1]} has no checkpoint: say where to start, earliest or latest"
            )
        return self._broker.bound(place, self.start)

    def _leave(self, places: list[Place], *, save: bool) -> None:
        """Give partitions up; on kafka-python's thread, while the worker waits in `poll`.

        What goes wrong here must not end the poll. A model that was not saved is dropped: whoever
        has the partition next learns from the checkpoint before.
        """
        for key in dict.fromkeys(map(self._key, places)):
            if key in self._learners:
                try:
                    if save and self._learners[key].since_checkpoint:
                        self._save(key)
                except Exception:
                    log.exception("%s: not saved before it went", key)
                self._learners.pop(key, None)
        self._broker.assigned[:] = [p for p in self._broker.assigned if p not in places]

    # --- checkpoints ---------------------------------------------------------------------------

    def _save_due(self) -> None:
        due = time.monotonic() - self._saved >= self.every_seconds
        for key, learner in list(self._learners.items()):
            if learner.since_checkpoint >= (1 if due else self.every_messages):
                self._save(key)
        if due:
            self._saved = time.monotonic()

    def _save_all(self) -> None:
        for key, learner in list(self._learners.items()):
            if learner.since_checkpoint:
                self._save(key)

    def _save(self, key: tuple[str, int | None]) -> bool:
        """Write a checkpoint, once the broker has all that was sent because of what is in it.

        Whoever is refused takes over anew what it still has after the next poll. A worker that was
        frozen finds out there that it has nothing; one that it fenced, as it claimed on waking what
        was not its own any more, is the only one to go on.
        """
        learner = self._learners[key]
        self._broker.flush()
        reached("outputs.flushed")
        offsets = dict(learner.offsets)
        learner.metrics.supports = getattr(learner.model, "n_supports", None)
        learner.metrics.updates = getattr(learner.model, "n_updates", None)
        try:
            written = self.folder.save(
                key, self._epochs[key], learner.model, offsets, learner.metrics.state()
            )
        except FencedError as error:
            log.warning("%s: %s", key, error)
            del self._learners[key]
            self._broker.hold(offsets)
            return False
        except CheckpointError as error:  # a full disk: the one before is as it was
            log.error("%s: no checkpoint, the next is tried later: %s", key, error)  # noqa: TRY400
            return False
        learner.checkpoint, learner.since_checkpoint = written.id, 0
        learner.metrics.checkpointed()
        self._broker.commit(offsets)
        log.info("%s", learner.metrics.line(), extra={"metrics": learner.metrics})
        return True
