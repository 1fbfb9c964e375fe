"""The worker: poll, decode, predict, learn, publish, checkpoint, for months."""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from drift.consumers.assignment import Assignment, State, first_offset, offset_behind_gap
from drift.consumers.client.consumer import GroupConsumer, SingleAssignor
from drift.consumers.client.producer import Producer, UnsentError
from drift.consumers.client.topics import refuse_compacted
from drift.consumers.client.workarounds import LARGEST
from drift.consumers.codec import JsonCodec
from drift.consumers.crash_points import reached
from drift.consumers.late import LateLearner
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics, WorkerMetrics
from drift.consumers.options import check_codec, check_model
from drift.consumers.records import Gap
from drift.errors import CheckpointError, FencedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from drift.consumers.assignment import Key, Place
    from drift.consumers.checkpoints.folder import CheckpointFolder
    from drift.consumers.codec import Codec
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import Message

__all__ = ["Worker"]

log = logging.getLogger("drift.consumers")

#: Seconds of learning after which a worker polls again, so that slow models stay in the group; and
#: for which folder or broker may be out of reach as a partition is taken over.
_PATIENCE = 30.0
#: Seconds without a partition after which a rebalance leaves a line.
_LONG = 10.0
#: Seconds for which features are read again before what is new is predicted, and for which that is
#: waited for meanwhile.
_SLICE, _SHORT = 0.5, 0.05


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
        Any River classifier or pipeline that has learnt nothing. Where labels have a topic of their
        own a `Tracker` gets ``late=True``, unless it was given `late` or is a part of another.
    folder
        The checkpoints, local or shared by all workers of the group.
    kafka
        Options of kafka-python for all clients: ``bootstrap_servers``, security, ...
    options
        Topics, group, where to begin, when to save.
    codec
        What makes examples of messages; None for `JsonCodec`.
    consumer, producer
        More options of kafka-python for the one or the other.

    Attributes
    ----------
    metrics : WorkerMetrics
        What is counted.

    Raises
    ------
    ParameterError
        If the model is no classifier, or kafka-python refuses its options.
    CheckpointError
        If the model cannot be stored in `folder`.

    Examples
    --------
    ::

        options = WorkerOptions(topic="news", group="readers", start="earliest")
        kafka = {"bootstrap_servers": "localhost:9092"}
        Worker(Tracker(300), CheckpointFolder("checkpoints"), kafka, options).run()
    """

    def __init__(  # noqa: PLR0913
        self,
        model: Any,
        folder: CheckpointFolder,
        kafka: Mapping[str, Any],
        options: WorkerOptions,
        *,
        codec: Codec | None = None,
        consumer: Mapping[str, Any] | None = None,
        producer: Mapping[str, Any] | None = None,
    ) -> None:
        self.codec = JsonCodec() if codec is None else codec
        check_model(model, self.codec)
        if options.labels:
            check_codec(self.codec)
            folder.configuration = {**(folder.configuration or {}), **options.settings()}
            if getattr(model, "late", False) is None:
                model = model.clone({"late": True})
        folder.check(model)
        self.model = model
        self.folder = folder
        folder.owner = f"{folder.owner}, of the group {options.group},"
        self.options = options
        self.metrics = WorkerMetrics()
        self.assignment = Assignment(options.topic, single=options.single)
        self._learners = self.assignment.learners
        self._stopping = threading.Event()
        self._saved = time.monotonic()
        self._refused: float | None = None  # since when a partition cannot be taken over
        self._served: dict[Place, float] = {}
        self._empty = time.monotonic()  # since when there is no partition
        self._complained = False  # that there is none
        receiving = {**kafka, **(consumer or {}), "group_id": options.group}
        if options.single:
            receiving.setdefault("partition_assignment_strategy", [SingleAssignor()])
        largest = getattr(self.codec, "max_bytes", LARGEST) + (1 << 20)  # with key and headers
        self._receiving = receiving
        self._producer = Producer({**kafka, **(producer or {})}, hurry=self._stopping.is_set)
        try:
            self._consumer = GroupConsumer(
                [*filter(None, (options.topic, options.labels))],
                *(receiving, self.assignment, self._save_leaving, largest),
            )
        except BaseException:
            self._producer.close()
            raise
        # A worker that is silent for longer is out of the group.
        self.metrics.silence = self._consumer.longest_silence
        self.metrics.connections = self._consumer.connections
        self._patience = min(_PATIENCE, self.metrics.silence / 4)

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
        UnavailableError
            If broker or folder are out of reach for longer than a worker waits, unless it is told
            to stop.
        """
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self.stop)
        options = self.options
        outputs = options.predictions, options.dead_letters, options.orphans
        try:
            self._producer.check(filter(None, outputs))
            if options.labels:
                refuse_compacted((options.topic, options.labels), self._receiving)
            while not self._stopping.is_set():
                self.step()
            self._save_all()
        except Exception as problem:
            passes = self._stopping.is_set() and isinstance(problem, UnavailableError)
            if not isinstance(problem, UnsentError):
                self._save_what_is_left()
            if not passes:
                raise
            log.warning("%s: what was learnt since the checkpoints is learnt again", problem)
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
        self._consumer.close()
        self._producer.close()

    def step(self, seconds: float = 1.0) -> int:
        """Wait for messages up to so many seconds, learn them; return their number."""
        started = time.monotonic()
        try:
            # Nothing is waited for where more can be learnt of what was read before.
            behind = any(learner.wanted is not None for learner in self._late())
            batches = list(self._consumer.poll(min(seconds, _SHORT) if behind else seconds))
        except Gap as gap:
            self._skip(gap)
            batches = []
        for learner in self._learners.values():
            self._check_topic(learner)
        self._note_poll(started)
        try:
            self._begin_waiting()
            taken = self._take(batches)
            self._go_on()
            self._save_due()
        except UnsentError as problem:
            if self._stopping.is_set():
                raise
            log.warning("%s: going back to the checkpoints", problem)
            self._producer.forget()
            for key in list(self._learners):
                self._drop(key)
            return 0
        return taken

    def _note_poll(self, started: float) -> None:
        """Note that the worker is alive, and say so once it has had no partition for long."""
        now = time.monotonic()
        self.metrics.poll_seconds += now - started
        self.metrics.polled = now
        waited = now - self._empty
        if self.assignment.states:
            if waited > _LONG:
                log.warning(
                    "partitions of %s: %d, after %.0f s without any, in which the group rebalanced",
                    *(self.options.topic, len(self.assignment.states), waited),
                )
            self._empty, self._complained = now, False
        elif waited > _PATIENCE and not self._complained:
            self._complained = True
            log.warning(
                "no partition of %s for %d s: the others of %s have them all, or it is still "
                "agreeing on them",
                *(self.options.topic, _PATIENCE, self.options.group),
            )

    def _take(self, batches: list[tuple[Place, list[Message]]]) -> int:
        """Learn messages, and note how far each partition is; return their number."""
        taken = 0
        until = time.monotonic() + self._patience
        # Where time was up, those have waited longest that were not reached.
        for place, messages in sorted(batches, key=lambda batch: self._served.get(batch[0], 0.0)):
            learner = self.assignment.learner(place)
            if learner is None:
                continue  # it went while these were on their way
            learner.check(messages)
            may_wait, now = place != learner.key, time.monotonic()
            with self._whole(learner):
                for message in messages:
                    if (taken and now > until) or (may_wait and learner.waits):
                        break
                    for outgoing in learner.take(message):
                        self._producer.send(outgoing)
                    taken += 1
                    self._served[place] = now = time.monotonic()
                    if self._stopping.is_set():
                        return taken
            if may_wait and learner.waits:
                self._consumer.block(place)
            elif learner.offsets[place] <= messages[-1].position.offset:
                self._begin(learner, place)  # the rest comes again
        for learner in self._learners.values():
            self._note_position(learner)
            learner.note()
        return taken

    def _advance(self, learner: LateLearner) -> None:
        """Have a learner go on with the label that was begun, and send its answer."""
        with self._whole(learner):
            for outgoing in learner.advance():
                self._producer.send(outgoing)

    @contextmanager
    def _whole(self, learner: Learner) -> Iterator[None]:
        """Drop a learner that an error leaves amid a message."""
        try:
            yield
        except UnsentError:
            raise
        except BaseException:
            self._drop(learner.key)
            raise

    def _note_position(self, learner: Learner) -> None:
        """Pass over the marks of transactions, and note how many messages are left."""
        lags = []
        for place, offset in learner.offsets.items():
            position = self._consumer.position(place)
            if position is None:
                continue
            if position[0] > offset and self.assignment.learner(place) is learner:
                learner.pass_over(place, *position)
            lags.append(self._consumer.lag(place, learner.offsets[place]))
        known = [lag for lag in lags if lag is not None]
        learner.metrics.lag = sum(known) if known else None

    def _skip(self, gap: Gap) -> None:
        """Go on behind messages that are gone, if that is what was asked for."""
        self._consumer.refresh()
        for place, offset in gap.offsets.items():
            learner = self.assignment.learner(place)
            if learner is not None:
                self._check_topic(learner)
                first = offset_behind_gap(
                    self._consumer, place, offset, self.options.on_gap, self.folder.path
                )
                learner.pass_over(place, first)
                self._begin(learner, place)

    # --- labels that come later ----------------------------------------------------------------

    def _late(self) -> list[LateLearner]:
        return [one for one in self._learners.values() if isinstance(one, LateLearner)]

    def _go_on(self) -> None:
        """Go on with labels that were begun, by features that came or have to be read again."""
        until = time.monotonic() + _SLICE
        waiting = [learner for learner in self._late() if learner.waits]
        # Where time was up, those have waited longest that were not reached.
        for learner in sorted(waiting, key=lambda one: self._served.get(one.labels, 0.0)):
            if (now := time.monotonic()) < until:
                self._served[learner.labels] = now
            for _ in learner.go_on(self._consumer, self.folder.path, until):
                self._advance(learner)
            if learner.waits and learner.gives_up(self._consumer):
                if not self._save(learner.key):
                    self._drop(learner.key)
                    continue
                self._advance(learner)
            if not learner.waits:
                self._begin(learner, learner.labels)

    # --- partitions ----------------------------------------------------------------------------

    def _begin_waiting(self) -> None:
        """Take over what was assigned while the worker was in `poll`, and go on with it."""
        waiting = self.assignment.waiting()
        if waiting:
            self._consumer.refresh()
        for key, places in waiting.items():
            try:
                self._begin_all(key, places)
            except UnsentError:
                raise
            except (CheckpointError, UnavailableError) as error:
                self._endure(key, error)
                self._consumer.hold(places)
        held = self.assignment.waiting()
        if not held:
            self._refused = None
        self.metrics.trouble = {  # but for those that were begun, or are gone
            key: why
            for key, why in self.metrics.trouble.items()
            if key in held or (key in self._learners and key not in waiting)
        }
        self.metrics.models = [learner.metrics for learner in self._learners.values()]
        topic, states = self.options.topic, self.assignment.states
        self.metrics.partitions = sum(
            place[0] == topic and state is State.BEGUN for place, state in states.items()
        )

    def _begin_all(self, key: Key, places: list[Place]) -> None:
        """Begin partitions of one model, which is loaded where it is not here."""
        if self.options.labels and len({p for p in self.assignment.states if p[1] == key[1]}) < 2:
            self._consumer.check_counts()
            return  # the group is about to agree anew
        learner = self._learners.get(key) or self._take_over(key)
        learner.look(self._consumer, self.folder.path)
        later = self.options.single and learner.checkpoint is not None
        first = {
            place: first_offset(
                self._consumer, place, self.options.start, self.folder.path, came_later=later
            )
            for place in places
            if place not in learner.offsets
        }
        if first:
            learner.start(first)
            if not self._save(key):  # so that "latest" is decided once
                for place in first:
                    del learner.offsets[place]
                self._consumer.hold(places)
                return
        for place in places:
            self._begin(learner, place)
            self.metrics.rebalances += place[0] == self.options.topic

    def _begin(self, learner: Learner, place: Place) -> None:
        self._consumer.begin(place, learner.offsets[place], learner.leader_epochs.get(place, -1))

    def _endure(self, key: Key, error: CheckpointError | UnavailableError) -> None:
        """Raise an error of a claim, unless it may pass, as those of saves may."""
        if isinstance(error, CheckpointError) and not isinstance(error.__cause__, OSError):
            raise error
        now = time.monotonic()
        self._note_trouble(key, str(error))
        if self._refused is None:
            log.warning("%s; tried again for %d s", error, _PATIENCE)
            self._refused = now
        elif now > self._refused + _PATIENCE:
            if isinstance(error.__cause__, PermissionError):
                raise error  # somebody has to grant the right
            raise UnavailableError(str(error)) from error

    def _note_trouble(self, key: Key, why: str | None = None) -> None:
        """Have the metrics show why a model has no checkpoint; None where it has one."""
        others = {k: one for k, one in self.metrics.trouble.items() if k != key}
        self.metrics.trouble = others if why is None else {**others, key: why}

    def _identity(self) -> dict[str, str]:
        """What tells the topics, and the group that learns them, from others."""
        return {**self._consumer.identity(), "group": self.options.group}

    def _take_over(self, key: Key) -> Learner:
        identity = self._identity()
        epoch, checkpoint = self.folder.claim(key, identity)
        kind = LateLearner if self.options.labels else Learner
        learner = kind(self.model.clone(), self.codec, Metrics(*key), self.options)
        learner.epoch, learner.identity = epoch, identity
        if checkpoint is not None:
            learner.restore(checkpoint)
            if not checkpoint.identity:
                log.warning(
                    "%s: checkpoint %s names no topic and group, they are %s now",
                    *(key, checkpoint.id, identity),
                )
                learner.since_checkpoint = 1  # so that the next one names it
        learner.note()
        log.info(
            "%s: epoch %d, checkpoint %s, offsets %s",
            *(key, epoch, learner.checkpoint, learner.offsets),
        )
        self._learners[key] = learner
        return learner

    def _drop(self, key: Key) -> None:
        """Drop a model; what the worker still has of it at the next step is taken over anew."""
        self._consumer.hold(self.assignment.drop(key))

    def _save_leaving(self, places: list[Place]) -> None:
        """Save models before they go; on kafka-python's thread, while the worker waits in `poll`.

        What goes wrong here must not end the poll. A model that was not saved is dropped: whoever
        has the partition next learns from the checkpoint before.
        """
        for key in dict.fromkeys(map(self.assignment.key, places)):
            learner = self._learners.get(key)
            try:
                if learner is not None and learner.since_checkpoint:
                    self._save(key)
            except Exception:
                log.exception("%s: not saved before it went", key)

    def _check_topic(self, learner: Learner) -> None:
        """Raise CheckpointError once the broker has said that the topic is another one."""
        now = self._identity()
        self.folder.check_identity(learner.key, learner.identity, now)
        learner.identity = {**now, **learner.identity}  # an outage may have kept it back

    # --- checkpoints ---------------------------------------------------------------------------

    def _save_due(self) -> None:
        due = time.monotonic() - self._saved >= self.options.checkpoint_seconds
        self._save_all(1 if due else self.options.checkpoint_every)
        if due:
            self._saved = time.monotonic()

    def _save_all(self, messages: int = 1) -> None:
        """Save the models that have taken so many messages since their checkpoint.

        One that cannot be saved keeps none of the others from it.
        """
        waiting = [k for k, one in self._learners.items() if one.since_checkpoint >= messages]
        if waiting:
            # A topic that was made anew is seen before what was read of it is in a checkpoint.
            self._consumer.refresh()
        problems = []
        for key in waiting:
            try:
                self._save(key)
            except UnsentError:
                raise
            except Exception as problem:  # noqa: BLE001 - raised below
                problems.append(problem)
        if problems:
            raise problems[0]

    def _save(self, key: Key) -> bool:
        """Write a checkpoint, once the broker has all that was sent because of what is in it.

        Whoever is refused takes over anew what it still has after the next poll. A worker that was
        frozen finds out there that it has nothing; one that it fenced, as it claimed on waking what
        was not its own any more, is the only one to go on.
        """
        learner = self._learners[key]
        self._check_topic(learner)
        self._producer.flush()
        reached("outputs.flushed")
        offsets = dict(learner.offsets)
        try:
            written = self.folder.save(
                key,
                learner.epoch,
                learner.model,
                offsets,
                learner.metrics.state(),
                identity=learner.identity,
                leader_epochs=learner.leader_epochs,
                join=learner.join_state(),
            )
        except FencedError as error:
            log.warning("%s: %s", key, error)
            self._drop(key)
            return False
        except CheckpointError as error:  # a full disk: the one before is as it was
            log.error("%s: no checkpoint, the next is tried later: %s", key, error)  # noqa: TRY400
            self._note_trouble(key, str(error))
            return False
        learner.checkpoint, learner.since_checkpoint = written.id, 0
        learner.metrics.checkpointed()
        self._note_trouble(key)
        self._consumer.commit(offsets)
        log.info("%s", learner.metrics.line(), extra={"metrics": learner.metrics})
        return True
