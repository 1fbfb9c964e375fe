"""The worker: poll, decode, predict, learn, publish, checkpoint, for months."""

from __future__ import annotations

import logging
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from drift.consumers.assignment import Assignment
from drift.consumers.checkpoints.folder import this_process
from drift.consumers.claim import ClaimedModel, skipping
from drift.consumers.client.consumer import GroupConsumer, largest_record
from drift.consumers.client.errors import missing
from drift.consumers.client.producer import Producer, UnsentError
from drift.consumers.client.topics import configs
from drift.consumers.codec import is_keyed
from drift.consumers.crash_points import reached
from drift.consumers.gaps import first_offset, offset_behind_gap
from drift.consumers.json_codec import checked_codec
from drift.consumers.keyed import name_unused
from drift.consumers.late import check_configs
from drift.consumers.metrics import WorkerMetrics
from drift.consumers.preparing import prepared, prepared_shadow, warn_of_compaction
from drift.consumers.records import ClaimId, Gap, written_offsets
from drift.consumers.takeover import Loader, TakeOver
from drift.errors import (
    CheckpointError,
    FencedError,
    NothingLearntError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from drift.consumers.checkpoints.folder import CheckpointFolder
    from drift.consumers.codec import Codec
    from drift.consumers.learner import Learner
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import Logs, Message, TopicPartition

__all__ = ["Worker"]

log = logging.getLogger("drift.consumers")

#: Seconds of learning after which a worker polls again, so that slow models stay in the group.
_SLICE = 30.0
#: Seconds for which folder or broker may be out of reach as a partition is taken over.
_OUTAGE = 30.0
#: Seconds without a partition: of a rebalance that is logged once it is over, and of a wait that is
#: logged while it lasts.
_LONG, _TOO_LONG = 10.0, 30.0
#: A new group stops if it can learn none of its first messages, this many.
_TRIAL = 100
#: Seconds of a poll while records wait for those of other partitions, or a model is taken over.
_SHORT = 0.05
#: Seconds after which a partition is started again whose start could not be saved.
_LATER = 10.0
#: Seconds for which takeovers are waited for before the worker polls again.
_SOON = 0.2


class Worker:
    """Learns the examples of a topic, each exactly once, and publishes what it predicted before.

    A group has one model, a clone of `model`, and one worker that learns all partitions; the others
    stand by. A checkpoint holds the model together with the next offsets, so that no crash can part
    them: what came after it is read and learnt again by a model that has not learnt it. Predictions
    and dead letters are sent at least once, with ``topic:partition:offset`` for the key of a
    prediction. Records are learnt in the order of their times: see `drift.consumers.order`.

    Where the codec has a `key`, each key has its own model, and each partition its own
    checkpoint. The workers of the group share the partitions: see `drift.consumers.keyed`.

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
        Topics, group, where to start, when to save.
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
        self.codec = checked_codec(codec)
        model = prepared(model, folder, options, self.codec)
        shadow = prepared_shadow(shadow, folder, options, self.codec)
        self._loader = Loader(folder, model, shadow, self.codec, options)
        self.folder = folder
        folder.owner = f"{this_process()}, of the group {options.group},"
        self.options = options
        self.metrics = WorkerMetrics(options.group, options.topic)
        self.assignment = Assignment()
        self._claims: dict[ClaimId, ClaimedModel] = {}
        self._taking: dict[ClaimId, TakeOver] = {}
        self._taker = ThreadPoolExecutor(1, "drift-takeover")
        self._has_looked = False  # at the topics
        self._forced = 0  # steps of claims that are gone
        self.metrics.forced_steps = self._forced_steps
        self._caught_up = True  # whether all was taken whose turn had come
        self._writer = ThreadPoolExecutor(1, "drift-checkpoint")
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._saved = time.monotonic()
        self._refused: dict[ClaimId, float] = {}  # since when models cannot be taken over
        self._empty: float | None = None  # since when there is no partition
        self._complained = False  # that there is none
        receiving = {**kafka, **(consumer or {}), "group_id": options.group}
        self._receiving = receiving
        self._producer = Producer({**kafka, **(producer or {})}, hurry=self._stopping.is_set)
        try:
            self._consumer = GroupConsumer(
                options.topics,
                receiving,
                self.assignment,
                leave=self._leave,
                lose=self._lose,
                largest=largest_record(self.codec),
                partition=options.partition,
                shared=is_keyed(self.codec),
            )
        except BaseException:
            self._producer.close()
            raise
        # A worker that is silent for longer is out of the group.
        self.metrics.silence = self._consumer.longest_silence
        self.metrics.connections = self._consumer.connections
        self._slice = min(_SLICE, self.metrics.silence / 4, self._consumer.session / 4)

    # --- life ----------------------------------------------------------------------------------

    def stop(self, *_signal: object) -> None:
        """Finish the message at hand, write checkpoints and leave the group; from any thread."""
        self._stopping.set()
        self._consumer.wake()

    def run(self, *, signals: bool = True) -> None:
        """Work until `stop`, SIGTERM or SIGINT.

        Parameters
        ----------
        signals
            Listen to these signals; only in the main thread.

        Raises
        ------
        ConsumerError
            If the worker cannot continue without losing or doubling examples: there is no telling
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
        threading.Thread(target=self._watch, name="drift-watch", daemon=True).start()
        try:
            self._producer.check(filter(None, options.outputs))
            if options.dead_letters is None:
                log.warning(
                    "no topic for dead letters: what cannot be learnt is logged, counted and lost; "
                    "dead_letters in [worker] names one"
                )
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
            self.close()

    def _save_what_is_left(self) -> None:
        """Save the model where an error has left it whole."""
        self._stopping.set()  # so that nothing waits for more than a few seconds
        try:
            self._save_new()
        except Exception as problem:  # noqa: BLE001 - the one that ends the worker counts
            log.warning("%s: what was learnt since the checkpoint is learnt again", problem)

    def close(self) -> None:
        """Leave the group and close the clients; `run` does so at its end, and saves before."""
        # Or the group's client, which gives the partitions up as it closes, saves the models.
        self._lose([*self.assignment.places])
        self._ended.set()
        self._taker.shutdown()
        self._writer.shutdown()
        self._consumer.close()
        self._producer.close()

    def _watch(self) -> None:
        """Say in which message the worker hangs, on a thread of its own."""
        while not self._ended.wait(self.metrics.silence / 10):
            self._name_hang()

    def _name_hang(self) -> None:
        """Log and note, once, the message that the worker is in for too long."""
        at = self.metrics.at
        claim = None if at is None else self._claims.get(self._claim_id(at[:2]))
        if at is None or claim is None or claim.blamed == at or self.metrics.is_alive():
            return
        claim.blamed = at
        log.error(
            "%s has kept the worker for %d s, and would keep the next one, too. Kill this one: at "
            "the third time the message is left out; sooner by %s",
            *(at, self.metrics.silence, skipping(claim.folder, at)),
        )
        if claim.notes is not None:
            claim.notes.note_while(lambda: self.metrics.at == at, at)

    def step(self, seconds: float = 1.0) -> int:
        """Wait for messages up to so many seconds, learn them; return their number."""
        started = time.monotonic()
        # Nothing is waited for where more can be learnt of what was read before.
        waiting = (
            not self._caught_up
            or bool(self._taking)
            or any(claim.order for claim in self._claims.values())
        )
        try:
            batches = list(self._consumer.poll(min(seconds, _SHORT) if waiting else seconds))
        except Gap as gap:
            self._skip(gap)
            batches = []
        self._check_topic()
        self._note_poll(started)
        try:
            self._read(batches, time.monotonic() - started)
            self._start_waiting()
            self._show()
            learnt = self._take()
            self._save_due()
        except UnsentError as problem:
            if self._stopping.is_set():
                raise
            log.warning("%s: going back to the checkpoint", problem)
            self._producer.forget()
            self._drop_all()
            return 0
        return learnt

    def _note_poll(self, started: float) -> None:
        """Note that the worker is alive, and say so once it has had no partition for long."""
        now = time.monotonic()
        self.metrics.poll_seconds += now - started
        self.metrics.polled = now
        waited = None if self._empty is None else now - self._empty
        if self.assignment.places:
            if waited is not None and waited > _LONG:
                log.warning(
                    "partitions of %s: %d, after %.0f s without any, in which the group rebalanced",
                    *(self.options.topic, len(self.assignment.places), waited),
                )
            self._empty, self._complained = None, False
        elif waited is None:
            self._empty = started
        elif waited > _TOO_LONG and not self._complained:
            self._complained = True
            why = (
                f"the others of {self.options.group} have them all, or it is still agreeing on them"
            )
            if gone := self._consumer.gone():
                why = f"{missing(gone[0])}. If it was deleted, create it again, or stop the workers"
            log.warning("no partition of %s for %d s: %s", self.options.topic, _TOO_LONG, why)

    def _read(self, batches: list[tuple[TopicPartition, list[Message]]], seconds: float) -> None:
        """Have records wait for their turn; `seconds` is how long they were polled for."""
        # Their partitions may have gone while records were on their way.
        for claim in self._claims.values():
            claim.read([batch for batch in batches if batch[0] in claim.order], seconds)

    def _take(self) -> int:
        """Learn the records whose turn has come; return their number."""
        self._caught_up = True
        return sum(self._take_of(claim) for claim in list(self._claims.values()))

    def _take_of(self, claim: ClaimedModel) -> int:
        learner, learnt = claim.learner, 0
        until = time.monotonic() + self._slice / len(self._claims)
        try:
            with self._whole(claim):
                if claim.order:
                    claim.begin()
                for message in claim.in_turn():
                    if claim.suspects(message) and not self._save_before(claim):
                        return learnt
                    for outgoing in claim.take(message):
                        self._producer.send(outgoing)
                    learnt += 1
                    if learner.trial is not None:
                        self._judge(learner)
                    if self._stopping.is_set() or time.monotonic() > until:
                        self._caught_up = False
                        break
        except FencedError as error:  # of the models of keys, which some messages have written
            log.warning("%s: %s", learner.claim_id, error)
            return learnt
        claim.resume()
        learner.metrics.lags = claim.lags()
        learner.note()
        return learnt

    def _judge(self, learner: Learner) -> None:
        """Refuse to go on where nothing can be learnt, unless another partition's messages can."""
        if learner.trial is None or len(learner.trial) < _TRIAL:
            return
        if all(claim.learner.trial is not None for claim in self._claims.values()):
            raise NothingLearntError(self.options.topic, learner.trial)
        for outgoing in learner.end_trial():
            self._producer.send(outgoing)

    @contextmanager
    def _whole(self, claim: ClaimedModel) -> Iterator[None]:
        """Drop a model that an error leaves amid a message."""
        try:
            yield
        except UnsentError:
            raise
        except BaseException:
            self._drop(claim.learner.claim_id)
            raise

    def _save_before(self, claim: ClaimedModel) -> bool:
        """Save what came before a suspect, or it is sent again; say whether the model is there."""
        if claim.learner.since_checkpoint:
            self._save(claim)
        return claim.learner.claim_id in self._claims

    def _skip(self, gap: Gap) -> None:
        """Continue after messages that were deleted, if that was requested."""
        self._consumer.refresh()
        for place, offset in gap.offsets.items():
            claim = self._claims.get(self._claim_id(place))
            if claim is None or place not in claim.order:
                continue
            self._check_topic()
            try:
                first = offset_behind_gap(
                    self._consumer, place, offset, self.options, self.folder.path
                )
            except UnavailableError as problem:
                log.warning("%s:%d: %s", *place, problem)
                return  # the next poll finds the gap again
            claim.skip(place, first)

    def _forced_steps(self) -> int:
        return self._forced + sum(claim.order.forced for claim in [*self._claims.values()])

    # --- partitions ----------------------------------------------------------------------------

    def _claim_id(self, place: TopicPartition) -> ClaimId:
        """Return what the model is claimed as that learns a partition."""
        if is_keyed(self.codec):
            return ClaimId(*place)
        return ClaimId(self.options.topic, self.options.partition)

    def _start_waiting(self) -> None:
        """Take over what was assigned while the worker was in `poll`, and continue with it."""
        places = [place for place in self.assignment.waiting() if not self._starts_later(place)]
        claim_ids = dict.fromkeys(map(self._claim_id, places))
        if claim_ids.keys() - self._taking.keys():
            self._consumer.refresh()
        until = time.monotonic() + _SOON
        for claim_id in claim_ids:
            ready = [place for place in places if self._claim_id(place) == claim_id]
            try:
                if self._take_over(claim_id, until):
                    self._start_all(self._claims[claim_id], ready)
            except UnsentError:
                raise
            except FencedError as error:  # frozen between the claim and the models
                log.warning("%s: %s", claim_id, error)
                self._drop(claim_id)
            except (CheckpointError, UnavailableError) as error:
                self._retry(claim_id, error)
                self._consumer.hold(ready)
        waiting = set(map(self._claim_id, self.assignment.waiting()))
        self._refused = {name: since for name, since in self._refused.items() if name in waiting}
        for claim in self._claims.values():
            claim.learner.share_memory(len(self._claims))

    def _starts_later(self, place: TopicPartition) -> bool:
        """Whether a partition waits until its start may be saved, as of a full disk."""
        claim = self._claims.get(self._claim_id(place))
        return claim is not None and time.monotonic() < claim.starts_again

    def _show(self) -> None:
        """Have the metrics show which models the worker has, and what it waits for."""
        metrics, claims = self.metrics, self._claims.values()
        metrics.models = [claim.learner.metrics for claim in claims]
        metrics.held = max((claim.order.held for claim in claims), default=0.0)
        metrics.waits = [claim.trouble for claim in claims if claim.trouble]
        metrics.takeovers = [*map(str, self._taking.values())]
        metrics.takeover_seconds = max((one.seconds for one in self._taking.values()), default=0.0)
        started = self.assignment.started()
        metrics.partitions = sum(place[0] == self.options.topic for place in started)
        ours = set(map(self._claim_id, self.assignment.places))
        metrics.trouble = {name: why for name, why in metrics.trouble.items() if name in ours}

    def _start_all(self, claim: ClaimedModel, places: list[TopicPartition]) -> None:
        """Start partitions of a model."""
        learner = claim.learner
        claim_id = learner.claim_id
        added = learner.checkpoint is not None or self._is_younger(claim_id)
        first = {
            place: first_offset(
                self._consumer, place, self.options.start, self.folder.path, added=added
            )
            for place in places
            if place not in learner.offsets
        }
        if learner.trial and first:  # what failed before is read again
            self._drop(claim_id)
            return
        if first and not self._save_start(claim, first):
            is_here = claim_id in self._claims
            places = [place for place in places if is_here and place not in first]
        else:
            self._note_trouble(claim_id)
            if first and added and is_keyed(self.codec):
                log.warning(
                    "%s was added after the first start: keys whose messages come there now begin "
                    "anew, as their models are those of other partitions",
                    claim_id,
                )
        for place in places:
            claim.start(place)
            self.metrics.taken_over += place[0] == self.options.topic

    def _save_start(self, claim: ClaimedModel, first: dict[TopicPartition, int]) -> bool:
        """Save where partitions start, so that "latest" is decided once; say whether that is there.

        Where it cannot be saved they start later, and the model goes on with the others.
        """
        learner = claim.learner
        learner.start(first)
        try:
            is_saved = self._save(claim)
        except UnavailableError:
            learner.forget(first)
            raise
        if is_saved:
            return True
        learner.forget(first)
        claim.starts_again = time.monotonic() + _LATER
        if not learner.offsets:
            self._drop(learner.claim_id)
        return False

    def _is_younger(self, claim_id: ClaimId) -> bool:
        """Whether a partition with models of its own was added after its group had started."""
        if not is_keyed(self.codec):
            return False
        topic, number = claim_id
        count = self._consumer.partitions(topic)
        if not count:  # by its last metadata; else 0 would be noted
            raise UnavailableError(missing(topic))
        first = self.folder.first_partitions(topic, count)
        return number is not None and number >= first

    def _retry(self, claim_id: ClaimId, error: CheckpointError | UnavailableError) -> None:
        """Have a claim be tried again later; raise what cannot pass, or has not for long."""
        if isinstance(error, CheckpointError) and not isinstance(error.__cause__, OSError):
            raise error
        now = time.monotonic()
        self._note_trouble(claim_id, str(error))
        if claim_id not in self._refused:
            log.warning("%s; tried again for %d s", error, _OUTAGE)
            self._refused[claim_id] = now
        elif now > self._refused[claim_id] + _OUTAGE:
            if isinstance(error.__cause__, PermissionError):
                raise error  # somebody has to grant the right
            raise UnavailableError(str(error)) from error

    def _note_trouble(self, claim_id: ClaimId, why: str | None = None) -> None:
        """Have the metrics show why a model has no checkpoint; None where it has one."""
        others = {name: text for name, text in self.metrics.trouble.items() if name != claim_id}
        self.metrics.trouble = others if why is None else {**others, claim_id: why}

    def _identity(self) -> dict[str, str]:
        """What tells the topics, and the group that learns them, from others."""
        return {**self._consumer.identity(), "group": self.options.group}

    def _take_over(self, claim_id: ClaimId, until: float) -> bool:
        """Claim a model on another thread; say whether it is here, at the latest at a time."""
        if claim_id in self._claims:
            return True
        taking = self._taking.get(claim_id)
        if taking is None:
            partitions = self._consumer.partitions(self.options.topic)  # may be out of reach
            load = partial(self._load, claim_id, self._identity(), partitions)
            taking = TakeOver(claim_id, self._consumer, self.metrics)
            taking.begin(self._taker, load)
            self._taking[claim_id] = taking
        wait([taking.loading], max(0.0, until - time.monotonic()))
        if not taking.loading.done():
            taking.say()
            return False
        del self._taking[claim_id]
        learner = taking.loading.result()
        since = "a new model"
        if learner.checkpoint is not None:
            since = f"from checkpoint {learner.checkpoint}, {written_offsets(learner.offsets)}"
        log.info("%s: epoch %d, %s", claim_id, learner.epoch, since)
        folder = self.folder.folder(claim_id)
        self._claims[claim_id] = ClaimedModel(learner, self._consumer, folder, self.metrics)
        return True

    def _load(
        self, claim_id: ClaimId, identity: dict[str, str], partitions: int, source: Logs
    ) -> Learner:
        """Load a model, on another thread; at first look at the topics, which are there now."""
        if not self._has_looked and not self._stopping.is_set():
            options = self.options
            asked = configs([options.topics, [*filter(None, options.outputs)]], self._receiving)
            warn_of_compaction(asked, options)
            if options.labels is not None:
                check_configs(asked, options, partitions)
            if is_keyed(self.codec):
                name_unused(self.folder, options.topic, partitions)
            self._has_looked = True
        return self._loader.load(claim_id, identity, source)

    def _drop(self, claim_id: ClaimId) -> None:
        """Drop a model; at the next step it is taken over anew, if there are partitions."""
        taking = self._taking.pop(claim_id, None)
        if taking is not None:
            taking.abandon()
        claim = self._claims.pop(claim_id, None)
        if claim is not None:
            saving = claim.saving
            if saving is not None and (error := saving.written.exception()) is not None:
                log.warning("%s: %s", claim_id, error)
            claim.end()
            self._forced += claim.order.forced
        self._consumer.hold(
            [place for place in self.assignment.places if self._claim_id(place) == claim_id]
        )

    def _drop_all(self) -> None:
        for claim_id in list(self._claims):
            self._drop(claim_id)

    def _leave(self) -> None:
        """Save the models before they go; on kafka-python's thread, while the worker is in `poll`.

        What goes wrong here must not end the poll: whoever has the partitions next learns from the
        checkpoint before.
        """
        try:
            self._save_new()
        except Exception:
            log.exception("%s: not saved before it went", self.options.topic)

    def _lose(self, places: list[TopicPartition]) -> None:
        """Drop the models of partitions that go, with which another worker may continue."""
        self.assignment.revoke(places)
        for claim_id in set(map(self._claim_id, places)):
            self._drop(claim_id)

    def _check_topic(self) -> None:
        """Raise CheckpointError once the broker reports that the topic is another one."""
        now = self._identity()
        for claim_id, claim in self._claims.items():
            learner = claim.learner
            self.folder.check_identity(claim_id, learner.identity, now)
            learner.identity = {**now, **learner.identity}  # an outage may have kept it back

    # --- checkpoints ---------------------------------------------------------------------------

    def _save_due(self) -> None:
        """Start a checkpoint every so many messages or seconds; it is written while others come."""
        for claim in list(self._claims.values()):
            if claim.is_written:
                self._end_save(claim)
        if not self._claims:
            return
        due = time.monotonic() - self._saved >= self.options.checkpoint_seconds
        least = 1 if due else self.options.checkpoint_every
        saved = [
            claim for claim in self._claims.values() if claim.learner.since_checkpoint >= least
        ]
        if saved:
            # A topic that was made anew is seen before what was read of it is in a checkpoint.
            self._consumer.refresh()
        for claim in saved:
            self._begin_save(claim)
        if due:
            self._saved = time.monotonic()

    def _save_new(self) -> None:
        """Save the models that have taken a message since their checkpoint."""
        for claim_id, claim in list(self._claims.items()):
            self._end_save(claim)
            if claim_id in self._claims and claim.learner.since_checkpoint:
                self._save(claim)

    def _save(self, claim: ClaimedModel) -> bool:
        """Write a checkpoint; say whether it is there."""
        return self._begin_save(claim) and self._end_save(claim)

    def _begin_save(self, claim: ClaimedModel) -> bool:
        """Start a checkpoint, once the broker has all that was sent because of what is in it."""
        if not self._end_save(claim):
            return False
        self._check_topic()
        self._producer.flush()
        reached("outputs.flushed")
        try:
            claim.begin_saving(self.folder, self._writer)
        except CheckpointError as error:
            return self._refuse_save(claim, error)
        return True

    def _end_save(self, claim: ClaimedModel) -> bool:
        """Wait for the checkpoint that is being written; say whether it is there, or none was.

        A worker that is fenced drops the model, and claims it again after the next poll if it still
        has partitions of it. One that was frozen has none by then. One that was fenced by it, as it
        woke up and claimed what it had no longer, has them and continues.
        """
        try:
            offsets = claim.end_saving()
        except CheckpointError as error:
            return self._refuse_save(claim, error)
        if offsets is not None:
            self._note_trouble(claim.learner.claim_id)
            if claim.learner.trial is None:
                self._consumer.commit(offsets)
            metrics = claim.learner.metrics
            if log.isEnabledFor(logging.INFO):  # It takes longer than an example.
                log.info("%s", metrics.line(), extra={"metrics": metrics})
        return True

    def _refuse_save(self, claim: ClaimedModel, error: CheckpointError) -> bool:
        """Continue without a checkpoint, as on a full disk, unless another worker has the model."""
        claim_id = claim.learner.claim_id
        if isinstance(error, FencedError):
            log.warning("%s: %s", claim_id, error)
            self._drop(claim_id)
            return False
        log.error("%s: no checkpoint, the next is tried later: %s", claim_id, error)
        self._note_trouble(claim_id, str(error))
        return False
