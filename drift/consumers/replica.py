"""A replica of a worker's model, which answers where the decision is made.

It follows the checkpoints of a group and reads the logs after them, in the order of
`drift.consumers.order`, with the worker's own learner: so it has the worker's model, and not that
of the last checkpoint. It is in no group, writes nothing and sends nothing.

At the live edge the order depends on what arrived first, and may be another one here than there.
Beside each checkpoint is written in which order its records were learnt. Where they were learnt in
that order here, the replica continues as it is; where not, it learns again from the checkpoint on,
and answers by the model that it has until the new one is as far.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

from drift.consumers.checkpoints.journal import read_journal
from drift.consumers.client.consumer import LoneConsumer, largest_record
from drift.consumers.course import Course, Found
from drift.consumers.json_codec import checked_codec
from drift.consumers.late import learner_of
from drift.consumers.preparing import prepare_folder, refuse_keyed, refuse_shadow
from drift.consumers.records import ClaimId, Gap, written_offsets
from drift.errors import CheckpointError, ConsumerError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from drift.consumers.answers import Answer
    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.checkpoints.folder import CheckpointFolder
    from drift.consumers.codec import Codec
    from drift.consumers.options import WorkerOptions
    from drift.types import Features

__all__ = ["Replica"]

log = logging.getLogger("drift.consumers")

#: Seconds between two looks for a newer checkpoint.
_EVERY = 1.0
#: Seconds between two times that its own order is put right: to load a checkpoint costs answers.
_APART = 30.0
#: Seconds for which records are waited for that a newer checkpoint knows, before it is taken.
_PATIENCE = 5.0
#: Seconds of a poll while records wait for those of other partitions.
_SHORT = 0.02


class _Following:
    """When a newer checkpoint is loaded, and when it is compared once more with what was learnt."""

    def __init__(self) -> None:
        self._seen: str | None = None  # the newest checkpoint
        self._again = math.inf  # when it is to be compared once more
        self._loaded = -math.inf
        self._behind = math.inf  # since when a newer checkpoint has more than was learnt

    def is_due(self, newest: str) -> bool:
        """Whether the newest checkpoint is to be compared."""
        return newest != self._seen or time.monotonic() >= self._again

    def next(self, newest: str, found: Found) -> Literal["load", "keep", "wait"]:
        """Return what to do about the newest checkpoint.

        One that has more may be reached soon, and is waited for. One that has something else costs
        answers, and is not loaded again and again.
        """
        now = time.monotonic()
        self._seen, self._again = newest, math.inf
        if found.kind == "same":
            self._behind = math.inf
            return "keep"
        if found.kind == "more":
            self._behind = min(self._behind, now)
            until, again = self._behind + _PATIENCE, now
        elif found.kind == "other":
            until = again = self._loaded + _APART
        else:
            return "load"
        if now >= until:
            return "load"
        self._again = again
        return "wait"

    def loaded(self) -> None:
        """Note that a checkpoint was loaded."""
        self._loaded, self._behind = time.monotonic(), math.inf

    def hurry(self) -> None:
        """Load what is newer at once, as nothing more can be learnt here."""
        self._behind = self._loaded = -math.inf

    def retry(self) -> None:
        """Look once more, as the folder was away."""
        self._again = time.monotonic()


class Replica:
    """A model that learns what a worker learns, to answer requests.

    `fetch` waits for what comes, on any thread; `learn` takes it, and `answer` predicts, both on
    one thread. No call of `fetch` and `learn` starts before the one before has ended.

    Parameters
    ----------
    folder
        The checkpoints of the group.
    kafka
        Options of kafka-python: ``bootstrap_servers``, security, ...
    options
        The worker's.
    codec
        The worker's; None for `JsonCodec`.
    consumer
        More options of kafka-python.

    Attributes
    ----------
    starts : int
        Checkpoints from which it has learnt: the first, and those of another order than its own.
    trouble : str or None
        Why the newest checkpoint is not followed, or nothing more is learnt.
    differs : str or None
        In what its model differs from the worker's, though it learnt the same messages.

    Raises
    ------
    ParameterError
        If kafka-python refuses its options, or the codec cannot read labels.

    Examples
    --------
    ::

        options = WorkerOptions(topic="news", group="readers")
        kafka = {"bootstrap_servers": "localhost:9092"}
        with Replica(CheckpointFolder("checkpoints"), kafka, options) as replica:
            while replica.staleness > 1:
                replica.step()
            print(replica.answer({"rain": 1.0}).predicted, replica.version)
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        kafka: Mapping[str, Any],
        options: WorkerOptions,
        *,
        codec: Codec | None = None,
        consumer: Mapping[str, Any] | None = None,
    ) -> None:
        self.codec = checked_codec(codec)
        refuse_keyed(self.codec, "serving")
        prepare_folder(folder, options, self.codec)
        folder.follows = True
        self.folder = folder
        # Whether a shadow is promoted, the worker decides: its next checkpoint says so.
        self.options = replace(options, predictions=None, orphans=None, alarm_level=0, promote=None)
        self.claim_id = ClaimId(options.topic, options.partition)
        self.starts = 0
        self.trouble: str | None = None
        self.differs: str | None = None
        self._course: Course | None = None  # which learns; `fetch` alone sets it
        # Which answers: the same, or the one before; `learn` alone sets it, between two answers.
        self._serving: Course | None = None
        self._starting: Iterator[str] | None = None  # the next course, until it can begin
        self._rereads = ""  # what is read before that
        self._following = _Following()
        self._looked = -math.inf
        self._consumer = LoneConsumer(
            options.topics,
            {**kafka, **(consumer or {})},
            largest=largest_record(self.codec),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    # --- what it is asked ----------------------------------------------------------------------

    def answer(self, features: Features) -> Answer:
        """Return the answer that the worker would give.

        Nothing of the model changes.

        Raises
        ------
        UnavailableError
            If there is no model yet.
        """
        if self._serving is None:
            raise UnavailableError(
                f"{self.folder.folder(self.claim_id)} has no checkpoint yet: start a worker"
            )
        learner = self._serving.learner
        return learner.answering.answer(learner.model, features, ticket=False)

    def beside(self, answer: Answer) -> dict[str, Any]:
        """Return what stands beside an answer, as in predictions: threshold and explanation."""
        return {} if self._serving is None else self._serving.learner.answering.beside(answer)

    @property
    def version(self) -> dict[str, Any]:
        """Which model answers: the checkpoint that it comes from, and the next offsets to learn."""
        if self._serving is None:
            return {"checkpoint": None, "offsets": {}}
        learner = self._serving.learner
        offsets: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in learner.offsets.items():
            offsets.setdefault(topic, {})[str(partition)] = offset
        return {"checkpoint": learner.checkpoint, "offsets": offsets}

    @property
    def staleness(self) -> float:
        """Seconds since the model that answers had learnt all that the logs had; inf before."""
        if self._serving is None:
            return math.inf
        return time.monotonic() - self._serving.fresh()

    @property
    def waits(self) -> str | None:
        """What is read again, or which partition is waited for, where that takes long."""
        if self._starting is not None:
            return self._rereads
        return None if self._course is None else self._course.trouble

    # --- what comes ----------------------------------------------------------------------------

    def step(self, seconds: float = 1.0) -> None:
        """Wait for what comes for so long, and learn it."""
        self.fetch(seconds)
        while self.learn():
            pass

    def fetch(self, seconds: float = 1.0) -> None:
        """Wait for records up to so many seconds, and for newer checkpoints; learn nothing.

        Raises
        ------
        ConsumerError
            If the logs are not those of the checkpoint, or a message cannot be read.
        CheckpointError
            If the first checkpoint cannot be used.
        """
        self._look(seconds)
        is_busy = self._starting is not None
        if self._course is None:
            if not is_busy:
                time.sleep(seconds)
            return
        course, started = self._course, time.monotonic()
        is_busy = is_busy or bool(course.order)
        try:
            batches = list(self._consumer.poll(min(seconds, _SHORT) if is_busy else seconds))
        except Gap as gap:
            places = ", ".join(f"{topic}:{number}" for topic, number in gap.offsets)
            self._complain(
                f"the broker has not what comes next of {places}: waiting for a newer checkpoint"
            )
            self._following.hurry()
            time.sleep(seconds)
            return
        course.read(batches, time.monotonic() - started)

    def learn(self, seconds: float = math.inf) -> bool:
        """Learn what has come, for about so many seconds; return whether there is more."""
        course = self._course
        if course is None:
            return False
        if course.went_back:
            self._serving = course
        until = time.monotonic() + seconds
        for message in course.in_turn():
            course.learn(message)
            if time.monotonic() > until:
                return True
        course.resume()
        for place in course.order:
            if not course.order.buffered(place):
                course.ends[place] = max(course.ends[place], self._consumer.ended_at(place))
        if course is not self._serving:
            self._switch(course)
        return False

    def _switch(self, course: Course) -> None:
        """Answer by a course once it has learnt all that the one has that answers now."""
        before = self._serving
        if before is not None:
            if course.is_behind(before):
                return
            for place, end in course.ends.items():
                course.ends[place] = max(end, before.ends.get(place, -math.inf))
        self._serving = course

    # --- checkpoints ---------------------------------------------------------------------------

    def _look(self, seconds: float) -> None:
        """Follow a newer checkpoint; ignore one that cannot be used, unless it is the first.

        What has to be read again is read for so many seconds. The rest is left to the next look,
        so that the present model learns on meanwhile, and a stop ends it.
        """
        now, course = time.monotonic(), self._course
        is_due = now >= self._looked + _EVERY
        if is_due:
            self._looked = now
            if course is not None:
                identity = course.learner.identity
                self.folder.check_identity(self.claim_id, identity, self._identity())
        try:
            if is_due and self._starting is None:
                self._starting, self._rereads = self._follow(), ""
            for what in self._starting or ():
                self._rereads = what
                if time.monotonic() >= now + seconds:
                    return
            self._starting = None
        except (CheckpointError, ConsumerError, UnavailableError) as problem:
            self._starting = None
            passes = isinstance(problem, UnavailableError) or isinstance(problem.__cause__, OSError)
            if passes:
                self._following.retry()
            elif course is None:
                raise
            self._complain(str(problem))

    def _identity(self) -> dict[str, str]:
        return {**self._consumer.identity(), "group": self.options.group}

    def _complain(self, trouble: str) -> None:
        if trouble != self.trouble:
            log.warning("%s", trouble)
        self.trouble = trouble

    def _follow(self) -> Iterator[str] | None:
        """Continue if a newer checkpoint has the order that was learnt here; else start from it."""
        newest, course = self.folder.newest_id(self.claim_id), self._course
        if newest is None or not self._following.is_due(newest):
            return None
        if not self._consumer.knows_topics():
            return None
        found = Found("unknown") if course is None else self._compare(course, newest)
        step = self._following.next(newest, found)
        if step == "keep":
            self.trouble = None
        if step != "load":
            return None
        checkpoint = self.folder.newest(self.claim_id, self._identity())
        if checkpoint is None or (course and course.learner.checkpoint == checkpoint.id):
            return None
        return self._start(checkpoint)

    def _compare(self, course: Course, newest: str) -> Found:
        folder, since = self.folder.folder(self.claim_id), course.learner.checkpoint
        try:
            journal = read_journal(folder, newest, since)
        except CheckpointError:  # it comes from elsewhere, or is in a store of objects
            return Found("unknown")
        found = course.follow(newest, journal)
        if found.models_agree:
            self.differs = None
        elif found.models_agree is False:
            self._differ(newest)
        return found

    def _differ(self, newest: str) -> None:
        """Say that something else was learnt of the messages up to a checkpoint."""
        if self.differs is None:
            self.differs = (
                f"this replica has learnt something else than its worker of the messages up to "
                f"checkpoint {newest}: give both the same drift, River and numpy, and the same "
                "code of the codec and the model"
            )
            log.error("%s", self.differs)

    def _start(self, checkpoint: Checkpoint) -> Iterator[str]:
        """Learn what comes after a checkpoint; yield what is read again before that can begin."""
        learner = learner_of(None, self.codec, self.options)
        learner.sends = False
        learner.restore(checkpoint)
        if learner.shadow is not None:
            kind = type(learner.shadow.model).__name__
            refuse_shadow(self.options, f"checkpoint {checkpoint.id} has a shadow, {kind}")
        for what in learner.rereading(self._consumer, self.folder.path):
            yield f"reads again what waits for a label in checkpoint {checkpoint.id}, {what}"
        # A partition that was adopted, and is gone, would be waited for.
        gone = [place for place in learner.offsets if self._consumer.lacks(place)]
        for place in gone:
            del learner.offsets[place]
        course = Course(learner, self._consumer)
        before = self._course
        if before is not None:
            is_unserved = before.went_back and before is not self._serving
            course.went_back = is_unserved or course.begins_before(before)
        self._consumer.assign(learner.offsets)
        for place in learner.offsets:
            course.start(place)
        self._course = course
        self.starts += 1
        log.info(
            "%s: from checkpoint %s, %s",
            *(self.claim_id, checkpoint.id, written_offsets(learner.offsets)),
        )
        self._following.loaded()
        self.trouble = None
