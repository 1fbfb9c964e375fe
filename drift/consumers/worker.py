"""The worker: poll, decode, predict, learn, publish, checkpoint, for months."""

from __future__ import annotations

import logging
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from drift.consumers.assignment import Assignment, first_offset, offset_behind_gap
from drift.consumers.checkpoints.agreement import advice, part
from drift.consumers.client.consumer import GroupConsumer
from drift.consumers.client.producer import Producer, UnsentError
from drift.consumers.client.topics import refuse_compacted
from drift.consumers.client.workarounds import LARGEST
from drift.consumers.codec import JsonCodec
from drift.consumers.crash_points import reached
from drift.consumers.late import LateLearner
from drift.consumers.learner import Learner
from drift.consumers.metrics import Metrics, WorkerMetrics
from drift.consumers.options import prepared, prepared_shadow
from drift.consumers.order import Clock, Order, Runs
from drift.consumers.records import Gap
from drift.consumers.shadow import Shadow
from drift.errors import CheckpointError, FencedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.checkpoints.folder import CheckpointFolder
    from drift.consumers.codec import Codec
    from drift.consumers.options import WorkerOptions
    from drift.consumers.order import Place
    from drift.consumers.records import Message

__all__ = ["Worker"]

log = logging.getLogger("drift.consumers")

#: Seconds of learning after which a worker polls again, so that slow models stay in the group; and
#: for which folder or broker may be out of reach as a partition is taken over.
_PATIENCE = 30.0
#: Seconds without a partition after which a rebalance leaves a line.
_LONG = 10.0
#: Seconds of a poll while records wait for those of other partitions.
_SHORT = 0.05


class _Saving(NamedTuple):
    """A checkpoint that is being written, and what was taken between it and the one before."""

    written: Future[Checkpoint]
    offsets: dict[Place, int]
    runs: Runs
    taken: int


class Worker:
    """Learns the examples of a topic, each exactly once, and publishes what it predicted before.

    A group has one model, a clone of `model`, and one worker that learns all partitions; the others
    stand by. A checkpoint holds the model together with the next offsets, so that no crash can part
    them: what came after it is read and learnt again by a model that has not learnt it. Predictions
    and dead letters are sent at least once, with ``topic:partition:offset`` for the key of a
    prediction. Records are learnt in the order of their times: see `drift.consumers.order`.

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
    shadow
        A second model, which learns and predicts the same and sends nothing, until it takes the
        first one's place: see `drift.consumers.shadow`. None for none. Another one than before
        begins anew; `folder` knows it by what its configuration says under ``shadow``.

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
        shadow: Any = None,
    ) -> None:
        self.codec = JsonCodec() if codec is None else codec
        self.model = prepared(model, folder, options, self.codec)
        self.shadow = prepared_shadow(shadow, folder, options, self.codec)
        self.folder = folder
        folder.owner = f"{folder.owner}, of the group {options.group},"
        self.options = options
        self.metrics = WorkerMetrics()
        self.key = options.topic, options.partition
        self.assignment = Assignment()
        self._learner: Learner | None = None
        self._order = Order(options.labels, options.max_jump, options.max_idle)
        self.metrics.forced_steps = lambda: self._order.forced
        self._paused: set[Place] = set()  # those of which too many wait for their turn
        self._in_time = True  # whether all was taken whose turn had come
        self._writer = ThreadPoolExecutor(1, "drift-checkpoint")
        self._saving: _Saving | None = None
        self._stopping = threading.Event()
        self._saved = time.monotonic()
        self._refused: float | None = None  # since when the model cannot be taken over
        self._empty = time.monotonic()  # since when there is no partition
        self._complained = False  # that there is none
        receiving = {**kafka, **(consumer or {}), "group_id": options.group}
        largest = getattr(self.codec, "max_bytes", LARGEST) + (1 << 20)  # with key and headers
        self._receiving = receiving
        self._producer = Producer({**kafka, **(producer or {})}, hurry=self._stopping.is_set)
        try:
            self._consumer = GroupConsumer(
                [*filter(None, (options.topic, options.labels))],
                *(receiving, self.assignment),
                leave=self._leave,
                lose=self._lose,
                largest=largest,
                partition=options.partition,
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
        try:
            self._producer.check(filter(None, options.outputs))
            if options.labels:
                refuse_compacted((options.topic, options.labels), self._receiving)
            while not self._stopping.is_set():
                self.step()
            self._consumer.refresh()
            self._save_new()
        except Exception as problem:
            passes = self._stopping.is_set() and isinstance(problem, UnavailableError)
            if not isinstance(problem, UnsentError):
                self._save_what_is_left()
            if not passes:
                raise
            log.warning("%s: what was learnt since the checkpoint is learnt again", problem)
        finally:
            self._learner = None  # or closing, which gives the partitions up, saves it
            self._close()

    def _save_what_is_left(self) -> None:
        """Save the model where an error has left it whole."""
        self._stopping.set()  # so that nothing waits for more than a few seconds
        try:
            self._save_new()
        except Exception as problem:  # noqa: BLE001 - the one that ends the worker counts
            log.warning("%s: what was learnt since the checkpoint is learnt again", problem)

    def _close(self) -> None:
        self._writer.shutdown()
        self._consumer.close()
        self._producer.close()

    def step(self, seconds: float = 1.0) -> int:
        """Wait for messages up to so many seconds, learn them; return their number."""
        started = time.monotonic()
        # Nothing is waited for where more can be learnt of what was read before.
        waits = min(seconds, _SHORT) if self._order or not self._in_time else seconds
        try:
            batches = list(self._consumer.poll(waits))
        except Gap as gap:
            self._skip(gap)
            batches = []
        self._check_topic()
        self._note_poll(started)
        try:
            self._read(batches, time.monotonic() - started)
            self._begin_waiting()
            taken = self._take()
            self._save_due()
        except UnsentError as problem:
            if self._stopping.is_set():
                raise
            log.warning("%s: going back to the checkpoint", problem)
            self._producer.forget()
            self._drop()
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

    def _read(self, batches: list[tuple[Place, list[Message]]], seconds: float) -> None:
        """Have records wait for their turn; `seconds` is how long they were polled for."""
        order, learner = self._order, self._learner
        for place, messages in batches:
            if learner is None or place not in order:
                continue  # it went while these were on their way
            learner.check(messages)
            order.add(place, messages, self._consumer.read_at(place))
            if order.is_ahead(place):
                self._consumer.pause(place)
                self._paused.add(place)
        order.idle(seconds)

    def _take(self) -> int:
        """Learn the records whose turn has come; return their number."""
        learner, taken = self._learner, 0
        if learner is None:
            return 0
        until = time.monotonic() + self._patience
        self._in_time = True
        with self._whole():
            for message in self._order.take(self._consumer.ended_at):
                for outgoing in learner.take(message):
                    self._producer.send(outgoing)
                taken += 1
                if self._stopping.is_set() or time.monotonic() > until:
                    self._in_time = False
                    break
        for place in list(self._paused):
            if self._order.is_near(place):
                self._paused.remove(place)
                self._read_on(place)
        self._note_positions(learner)
        learner.note()
        return taken

    def _read_on(self, place: Place) -> None:
        """Fetch a partition behind what was read of it."""
        learner, waiting = self._learner, self._order.buffered(place)
        assert learner is not None  # noqa: S101 - it has records
        if waiting:
            last, _ = waiting[-1]
            self._consumer.begin(place, last.position.offset + 1, last.leader_epoch)
        else:
            epoch = learner.leader_epochs.get(place, -1)
            self._consumer.begin(place, learner.offsets[place], epoch)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Drop a model that an error leaves amid a message."""
        try:
            yield
        except UnsentError:
            raise
        except BaseException:
            self._drop()
            raise

    def _note_positions(self, learner: Learner) -> None:
        """Pass over the marks of transactions, and note how many messages are left."""
        lags = []
        for place in self.assignment.begun():
            position = self._consumer.position(place)
            if position is None:
                continue
            if position[0] > learner.offsets[place] and not self._order.buffered(place):
                learner.pass_over(place, *position)
            lags.append(self._consumer.lag(place, learner.offsets[place]))
        known = [lag for lag in lags if lag is not None]
        learner.metrics.lag = sum(known) if known else None

    def _skip(self, gap: Gap) -> None:
        """Go on behind messages that are gone, if that is what was asked for."""
        self._consumer.refresh()
        learner = self._learner
        for place, offset in gap.offsets.items():
            if learner is None or place not in self._order:
                continue
            self._check_topic()
            first = offset_behind_gap(
                self._consumer, place, offset, self.options.on_gap, self.folder.path
            )
            if not self._order.buffered(place):
                learner.pass_over(place, first)
            self._consumer.begin(place, first)

    # --- partitions ----------------------------------------------------------------------------

    def _begin_waiting(self) -> None:
        """Take over what was assigned while the worker was in `poll`, and go on with it."""
        places = self.assignment.waiting()
        if places:
            self._consumer.refresh()
            try:
                self._begin_all(places)
            except UnsentError:
                raise
            except (CheckpointError, UnavailableError) as error:
                self._retry(error)
                self._consumer.hold(places)
        if not self.assignment.waiting():
            self._refused = None
        if not self.assignment.states:
            self._note_trouble()
        self.metrics.models = [] if self._learner is None else [self._learner.metrics]
        begun = self.assignment.begun()
        self.metrics.partitions = sum(place[0] == self.options.topic for place in begun)

    def _begin_all(self, places: list[Place]) -> None:
        """Begin partitions of the model, which is loaded where it is not here."""
        learner = self._learner or self._take_over()
        added = learner.checkpoint is not None
        first = {
            place: first_offset(
                self._consumer, place, self.options.start, self.folder.path, added=added
            )
            for place in places
            if place not in learner.offsets
        }
        if first:
            learner.start(first)
            if not self._save():  # so that "latest" is decided once
                self._drop()
                return
        for place in places:
            self._order.begin(place, learner.clocks.get(place, Clock()))
            self._read_on(place)
            self.metrics.rebalances += place[0] == self.options.topic
        self._note_trouble()

    def _retry(self, error: CheckpointError | UnavailableError) -> None:
        """Raise an error of a claim, unless it may pass, as those of saves may."""
        if isinstance(error, CheckpointError) and not isinstance(error.__cause__, OSError):
            raise error
        now = time.monotonic()
        self._note_trouble(str(error))
        if self._refused is None:
            log.warning("%s; tried again for %d s", error, _PATIENCE)
            self._refused = now
        elif now > self._refused + _PATIENCE:
            if isinstance(error.__cause__, PermissionError):
                raise error  # somebody has to grant the right
            raise UnavailableError(str(error)) from error

    def _note_trouble(self, why: str | None = None) -> None:
        """Have the metrics show why the model has no checkpoint; None where it has one."""
        self.metrics.trouble = {} if why is None else {self.key: why}

    def _identity(self) -> dict[str, str]:
        """What tells the topics, and the group that learns them, from others."""
        return {**self._consumer.identity(), "group": self.options.group}

    def _take_over(self) -> Learner:
        identity = self._identity()
        epoch, checkpoint = self.folder.claim(self.key, identity)
        kind = LateLearner if self.options.labels else Learner
        learner = kind(self.model.clone(), self.codec, Metrics.of(self.options), self.options)
        learner.epoch, learner.identity = epoch, identity
        learner.configuration = dict(self.folder.configuration or {})
        if checkpoint is not None:
            learner.restore(checkpoint)
            learner.read_again(self._consumer, self.folder.path)
            if not checkpoint.identity:
                log.warning(
                    "%s: checkpoint %s names no topic and group, they are %s now",
                    *(self.key, checkpoint.id, identity),
                )
                learner.since_checkpoint = 1  # so that the next one names it
        self._set_shadow(learner)
        learner.note()
        log.info(
            "%s: epoch %d, checkpoint %s, offsets %s",
            *(self.key, epoch, learner.checkpoint, learner.offsets),
        )
        self._learner = learner
        return learner

    def _set_shadow(self, learner: Learner) -> None:
        """Give a learner the shadow that it is to have, which is the checkpoint's or begins."""
        now = learner.configuration
        before = now if self.folder.configuration is None else self.folder.configuration
        is_old = part(now, "model") != part(before, "model")
        if is_old:
            log.warning(
                "%s: goes on with the model that was promoted, not with that of [model]: %s",
                *(self.key, advice(now)),
            )
        if self.shadow is None:
            learner.shadow = None
        elif learner.shadow is None:
            is_first = is_old and part(now, "shadow") == part(before, "model")
            model = self.model if is_first else self.shadow
            learner.shadow = Shadow(model.clone(), learner.offsets)
            log.info("%s: the shadow begins, %s", self.key, type(model).__name__)

    def _drop(self) -> None:
        """Drop the model; at the next step it is taken over anew, if there are partitions."""
        if self._saving is not None:
            wait([self._saving.written])
        self._learner = self._saving = None
        self._order.clear()
        self._paused.clear()
        self._consumer.hold(list(self.assignment.states))

    def _leave(self) -> None:
        """Save the model before it goes; on kafka-python's thread, while the worker is in `poll`.

        What goes wrong here must not end the poll: whoever has the partitions next learns from the
        checkpoint before.
        """
        try:
            self._save_new()
        except Exception:
            log.exception("%s: not saved before it went", self.key)

    def _lose(self, places: list[Place]) -> None:
        """Drop the model as partitions go, with which another worker may go on."""
        self.assignment.revoke(places)
        self._drop()

    def _check_topic(self) -> None:
        """Raise CheckpointError once the broker has said that the topic is another one."""
        if (learner := self._learner) is not None:
            now = self._identity()
            self.folder.check_identity(self.key, learner.identity, now)
            learner.identity = {**now, **learner.identity}  # an outage may have kept it back

    # --- checkpoints ---------------------------------------------------------------------------

    def _save_due(self) -> None:
        """Begin a checkpoint every so many messages or seconds; it is written while others come."""
        if self._saving is not None and self._saving.written.done():
            self._end_save()
        learner = self._learner
        if learner is None:
            return
        due = time.monotonic() - self._saved >= self.options.checkpoint_seconds
        if learner.since_checkpoint >= (1 if due else self.options.checkpoint_every):
            # A topic that was made anew is seen before what was read of it is in a checkpoint.
            self._consumer.refresh()
            self._begin_save()
        if due:
            self._saved = time.monotonic()

    def _save_new(self) -> None:
        """Save the model if it has taken a message since its checkpoint."""
        self._end_save()
        if self._learner is not None and self._learner.since_checkpoint:
            self._save()

    def _save(self) -> bool:
        """Write a checkpoint; say whether it is there."""
        return self._begin_save() and self._end_save()

    def _begin_save(self) -> bool:
        """Begin a checkpoint, once the broker has all that was sent because of what is in it."""
        if not self._end_save():
            return False
        learner = self._learner
        assert learner is not None  # noqa: S101 - there is something to be saved
        self._check_topic()
        self._producer.flush()
        reached("outputs.flushed")
        offsets = dict(learner.offsets)
        try:
            write = self.folder.prepare(
                self.key,
                learner.epoch,
                learner.model,
                offsets,
                learner.metrics.state(),
                identity=learner.identity,
                leader_epochs=learner.leader_epochs,
                clocks=learner.clocks,
                join=learner.join_state(),
                runs=learner.runs.all(),
                previous=learner.checkpoint,
                configuration=learner.configuration,
                shadow=learner.shadow_state(),
                promotions=learner.promotions,
            )
        except CheckpointError as error:
            return self._refuse_save(error)
        self._saving = _Saving(
            self._writer.submit(write), offsets, learner.runs, learner.since_checkpoint
        )
        learner.runs, learner.since_checkpoint = Runs(), 0
        return True

    def _end_save(self) -> bool:
        """Wait for the checkpoint that is being written; say whether it is there, or none was.

        Whoever is refused takes over anew what it still has after the next poll. A worker that was
        frozen finds out there that it has nothing; one that it fenced, as it claimed on waking what
        was not its own any more, is the only one to go on.
        """
        saving, self._saving = self._saving, None
        learner = self._learner
        if saving is None or learner is None:
            return True
        try:
            written = saving.written.result()
        except BaseException as error:
            learner.runs = saving.runs + learner.runs
            learner.since_checkpoint += saving.taken
            if not isinstance(error, CheckpointError):
                raise
            return self._refuse_save(error)
        learner.checkpoint = written.id
        learner.metrics.checkpointed()
        self._note_trouble()
        self._consumer.commit(saving.offsets)
        log.info("%s", learner.metrics.line(), extra={"metrics": learner.metrics})
        return True

    def _refuse_save(self, error: CheckpointError) -> bool:
        """Go on without a checkpoint, as on a full disk, but not where others have the model."""
        if isinstance(error, FencedError):
            log.warning("%s: %s", self.key, error)
            self._drop()
            return False
        log.error("%s: no checkpoint, the next is tried later: %s", self.key, error)
        self._note_trouble(str(error))
        return False
