"""The worker: poll, decode, predict, learn, publish, checkpoint, for months."""

from __future__ import annotations

import logging
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from drift._checks import check_integer, check_number
from drift.consumers.client.consumer import Gap, GroupConsumer, SingleAssignor
from drift.consumers.client.producer import Producer, UnsentError
from drift.consumers.codec import JsonCodec
from drift.consumers.crash_points import reached
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics, WorkerMetrics
from drift.consumers.starts import first_offset, offset_behind_gap
from drift.errors import CheckpointError, FencedError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.consumers.checkpoints.folder import CheckpointFolder
    from drift.consumers.codec import Codec
    from drift.consumers.records import Message

__all__ = ["Worker"]

log = logging.getLogger("drift.consumers")

Place = tuple[str, int]

#: Seconds of learning after which a worker polls again, so that slow models stay in the group; and
#: for which a folder may be one that cannot be written, as a partition is taken over.
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
    on_gap
        What to do where the broker has deleted messages before they were learnt: ``"stop"``, or
        ``"skip"`` them and say so in the log.
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
        If `start` or `on_gap` is none of these, topics are the same, a checkpoint is to be written
        never, or kafka-python refuses its options.
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
        on_gap: str = "stop",
        predictions: str | None = None,
        dead_letters: str | None = None,
        codec: Codec | None = None,
        single: bool = False,
        every_messages: int = 20_000,
        every_seconds: float = 10.0,
        consumer: Mapping[str, Any] | None = None,
        producer: Mapping[str, Any] | None = None,
    ) -> None:
        check_integer("every_messages", every_messages)
        check_number("every_seconds", every_seconds)
        if on_gap not in {"stop", "skip"}:
            raise ParameterError(f"on_gap must be 'stop' or 'skip', not {on_gap!r}")
        topics = [name for name in (topic, predictions, dead_letters) if name is not None]
        if len(set(topics)) < len(topics):
            raise ParameterError(
                f"{', '.join(topics)}: what is learnt, predictions and dead letters need a topic "
                "each, or what is sent is learnt again"
            )
        if start not in {None, "earliest", "latest"}:
            raise ParameterError(f"start must be 'earliest', 'latest' or None, not {start!r}")
        folder.check(model)
        self.model = model
        self.topic = topic
        self.folder = folder
        self.start = start
        self.on_gap = on_gap
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
        self._unwritable: float | None = None  # since when
        options = {**kafka, **(consumer or {})}
        if single:
            options.setdefault("partition_assignment_strategy", [SingleAssignor()])
        sending = {**kafka, **(producer or {})}
        self._sender = Producer(sending, hurry=self._stopping.is_set)
        try:
            self._broker = GroupConsumer(topic, group, options, self._leave)
        except BaseException:
            self._sender.close()
            raise

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
            self._sender.check(filter(None, self._outputs.values()))
            while not self._stopping.is_set():
                self.step()
            self._save_all()
        except UnsentError as problem:  # while it stops
            log.warning("%s: what was learnt since the checkpoints is learnt again", problem)
        except Exception:
            self._save_what_is_left()
            raise
        finally:
            self._learners.clear()  # or closing, which gives the partitions up, saves them
            self._close()

    def _save_what_is_left(self) -> None:
        """Save the models that an error has left whole."""
        self._stopping.set()  # so that nothing waits for more than a few seconds
        try:
            self._save_all()
        except Exception as problem:  # noqa: BLE001 - the one that ends the worker counts
            log.warning("%s: what was learnt since the checkpoints is learnt again", problem)

    def _close(self) -> None:
        self._broker.close()
        self._sender.close()

    def step(self, seconds: float = 1.0) -> int:
        """Wait for messages up to so many seconds, learn them; return their number."""
        started = time.monotonic()
        try:
            batches = list(self._broker.poll(seconds))
        except Gap as gap:
            self._skip(gap)
            batches = []
        for learner in self._learners.values():
            self._check_topic(learner)
        self.metrics.poll_seconds += time.monotonic() - started
        try:
            self._begin_assigned()
            taken = self._take(batches)
            self._save_due()
        except UnsentError as problem:
            if self._stopping.is_set():
                raise
            log.warning("%s: going back to the checkpoints", problem)
            self._sender.forget()
            for key in list(self._learners):
                self._drop(key)
            return 0
        return taken

    def _take(self, batches: list[tuple[Place, list[Message]]]) -> int:
        """Learn messages, and note how far each partition is; return their number."""
        taken = 0
        patience = time.monotonic() + _PATIENCE
        for place, messages in batches:
            key = self._key(place)
            learner = self._learners.get(key)
            if learner is None:
                continue  # it went while these were on their way
            for message in messages:
                self._learn(key, message)
                taken += 1
                if self._stopping.is_set():
                    return taken
                if time.monotonic() > patience:
                    break
            if learner.offsets[place] <= messages[-1].position.offset:
                self._begin(learner, place)  # the rest comes again
        for learner in self._learners.values():
            self._note_position(learner)
            learner.metrics.counts_of(learner.model)
        return taken

    def _learn(self, key: tuple[str, int | None], message: Message) -> None:
        try:
            for outgoing in self._learners[key].take(message):
                self._sender.send(outgoing)
        except UnsentError:
            raise
        except BaseException:
            # In the middle of a message, or its answer was not sent: not to be saved.
            del self._learners[key]
            raise

    def _note_position(self, learner: Learner) -> None:
        """Pass over the marks of transactions, and note how many messages are left."""
        lags = []
        for place, offset in learner.offsets.items():
            position = self._broker.position(place)
            if position is None:
                continue
            if position[0] > offset:
                learner.pass_over(place, *position)
            lags.append(self._broker.lag(place, learner.offsets[place]))
        known = [lag for lag in lags if lag is not None]
        learner.metrics.lag = sum(known) if known else None

    def _skip(self, gap: Gap) -> None:
        """Go on behind messages that are gone, if that is what was asked for."""
        self._broker.refresh()
        for place, offset in gap.offsets.items():
            learner = self._learners.get(self._key(place))
            if learner is not None:
                self._check_topic(learner)
                first = offset_behind_gap(
                    self._broker, place, offset, self.on_gap, self.folder.path
                )
                learner.pass_over(place, first)
                self._begin(learner, place)

    def _check_topic(self, learner: Learner) -> None:
        """Raise CheckpointError once the broker has said that the topic is another one."""
        key = learner.metrics.topic, learner.metrics.partition
        now = self._broker.identity()
        self.folder.check_identity(key, learner.identity, now)
        learner.identity = {**now, **learner.identity}  # an outage may have kept it back

    def _begin(self, learner: Learner, place: Place) -> None:
        self._broker.begin(place, learner.offsets[place], learner.leader_epochs.get(place, -1))

    def _drop(self, key: tuple[str, int | None]) -> None:
        """Drop a model; what the worker still has of it after the next poll is taken over anew."""
        self._broker.hold(self._learners.pop(key).offsets)

    def _key(self, place: Place) -> tuple[str, int | None]:
        return (place[0], None) if self.single else place

    def _begin_assigned(self) -> None:
        """Take over what was assigned while the worker was in `poll`, and go on with it."""
        waiting = self._broker.assigned
        if waiting:
            self._broker.refresh()
        for key in dict.fromkeys(map(self._key, waiting)):
            places = [place for place in waiting if self._key(place) == key]
            waiting[:] = [place for place in waiting if place not in places]
            try:
                learner = self._learners.get(key) or self._take_over(key)
            except CheckpointError as error:
                self._endure(error)
                self._broker.hold(places)
                continue
            later = self.single and learner.checkpoint is not None
            first = {
                place: first_offset(
                    self._broker, place, self.start, self.folder.path, came_later=later
                )
                for place in places
                if place not in learner.offsets
            }
            if first:
                learner.offsets.update(first)
                if not self._save(key):  # so that "latest" is decided once
                    for place in first:
                        del learner.offsets[place]
                    self._broker.hold(places)
                    continue
            for place in places:
                self._begin(learner, place)
                self.metrics.rebalances += 1
        if not waiting:
            self._unwritable = None
        self.metrics.models = [learner.metrics for learner in self._learners.values()]

    def _endure(self, error: CheckpointError) -> None:
        """Raise an error of a claim, unless it may pass, as those of saves may."""
        now = time.monotonic()
        since = now if self._unwritable is None else self._unwritable
        if not isinstance(error.__cause__, OSError) or now > since + _PATIENCE:
            raise error
        if self._unwritable is None:
            log.warning("%s; tried again for %d s", error, _PATIENCE)
        self._unwritable = since

    def _take_over(self, key: tuple[str, int | None]) -> Learner:
        identity = self._broker.identity()
        epoch, checkpoint = self.folder.claim(key, identity)
        metrics = Metrics(*key)
        model, offsets, name = self.model.clone(), {}, None
        if checkpoint is not None:
            model, name = checkpoint.model, checkpoint.id
            offsets = dict(checkpoint.offsets)
            if checkpoint.metrics:  # none of a model that was trained elsewhere
                metrics.restore(dict(checkpoint.metrics))
            metrics.checkpointed(checkpoint.time)
        metrics.counts_of(model)
        log.info("%s: epoch %d, checkpoint %s, offsets %s", key, epoch, name, offsets)
        self._epochs[key] = epoch
        self._learners[key] = learner = Learner(
            model, self.codec, metrics, offsets, checkpoint=name, **self._outputs
        )
        learner.identity = identity
        if checkpoint is not None:
            learner.identity = {**checkpoint.identity, **identity}
            learner.leader_epochs = dict(checkpoint.leader_epochs)
            if identity and not checkpoint.identity:
                log.warning("%s: checkpoint %s names no topic, it is %s now", key, name, identity)
                learner.since_checkpoint = 1  # so that the next one names it
        return learner

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
        self._save_all(1 if due else self.every_messages)
        if due:
            self._saved = time.monotonic()

    def _save_all(self, messages: int = 1) -> None:
        """Save the models that have taken so many messages since their checkpoint."""
        waiting = [k for k, one in self._learners.items() if one.since_checkpoint >= messages]
        if waiting:
            # A topic that was made anew is seen before what was read of it is in a checkpoint.
            self._broker.refresh()
        for key in waiting:
            self._save(key)

    def _save(self, key: tuple[str, int | None]) -> bool:
        """Write a checkpoint, once the broker has all that was sent because of what is in it.

        Whoever is refused takes over anew what it still has after the next poll. A worker that was
        frozen finds out there that it has nothing; one that it fenced, as it claimed on waking what
        was not its own any more, is the only one to go on.
        """
        learner = self._learners[key]
        self._check_topic(learner)
        self._sender.flush()
        reached("outputs.flushed")
        offsets = dict(learner.offsets)
        try:
            written = self.folder.save(
                key,
                self._epochs[key],
                learner.model,
                offsets,
                learner.metrics.state(),
                identity=learner.identity,
                leader_epochs=learner.leader_epochs,
            )
        except FencedError as error:
            log.warning("%s: %s", key, error)
            self._drop(key)
            return False
        except CheckpointError as error:  # a full disk: the one before is as it was
            log.error("%s: no checkpoint, the next is tried later: %s", key, error)  # noqa: TRY400
            return False
        learner.checkpoint, learner.since_checkpoint = written.id, 0
        learner.metrics.checkpointed()
        self._broker.commit(offsets)
        log.info("%s", learner.metrics.line(), extra={"metrics": learner.metrics})
        return True
