"""A model that a worker has claimed: what ends it, and its checkpoint that is being written."""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from drift._checks import counted
from drift.consumers.fed import FedLearner
from drift.consumers.order import Runs
from drift.consumers.poison import DEATHS, PoisonNotes, folder_of_notes
from drift.consumers.records import Position
from drift.errors import DriftError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Executor, Future

    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.checkpoints.folder import CheckpointFolder
    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.fed import Feed
    from drift.consumers.learner import Learner
    from drift.consumers.metrics import WorkerMetrics
    from drift.consumers.records import Message, Outgoing, TopicPartition

__all__ = ["ClaimedModel", "skipping"]

log = logging.getLogger("drift.consumers")


def skipping(folder: AnyPath, position: Position) -> str:
    """Return the command that leaves a message out."""
    return f"drift checkpoint skip {folder} {position}"


def _from(offsets: Mapping[TopicPartition, int]) -> list[str]:
    """Return the first messages of partitions, of the first five."""
    first = [str(Position(*place, offset)) for place, offset in islice(offsets.items(), 5)]
    return [*first, *(["..."] * (len(offsets) > len(first)))]


class _Saving(NamedTuple):
    """A checkpoint that is being written, and what was taken between it and the one before."""

    written: Future[Checkpoint]
    offsets: Mapping[TopicPartition, int]
    runs: Runs
    taken: int


class ClaimedModel(FedLearner):
    """A model that a worker has claimed, with its checkpoint that is being written.

    Parameters
    ----------
    learner, consumer
        As of `FedLearner`.
    folder
        That of its checkpoints.
    metrics
        Show which message is taken.
    """

    def __init__(
        self, learner: Learner, consumer: Feed, folder: AnyPath, metrics: WorkerMetrics
    ) -> None:
        super().__init__(learner, consumer)
        self.folder = folder
        self._metrics = metrics
        self.notes: PoisonNotes | None = None  # once it has begun, where it can be noted
        self.blamed: Position | None = None  # the last message that has hung
        self.starts_again = 0.0  # when partitions may start whose start could not be saved
        self._has_begun = False
        self.saving: _Saving | None = None

    def begin(self) -> None:
        """Look, before the first message, how claims before this one have ended."""
        if self._has_begun:
            return
        self._has_begun = True
        where = folder_of_notes(self.folder)
        if where is None:
            return
        offsets = self.learner.offsets
        self.notes = notes = PoisonNotes(where, self.learner.epoch, offsets)
        if notes.suspect is not None:
            log.warning(
                "%s: a worker died in message %s, %d of the %d times after which it is left out; "
                "sooner by %s",
                *(self.learner.claim_id, notes.suspect, notes.deaths, DEATHS),
                skipping(self.folder, notes.suspect),
            )
        elif notes.is_careful:
            log.warning(
                "%s: a worker died %s among the messages from %s on: they are taken one at a time "
                "until the next checkpoint, so that the next start can name it",
                self.learner.claim_id,
                counted(notes.starts - 1, "time"),
                ", ".join(_from(offsets)),
            )

    def suspects(self, message: Message) -> bool:
        """Whether a claim before this one died in a message."""
        return self.notes is not None and self.notes.suspect == message.position

    def take(self, message: Message) -> list[Outgoing]:
        """Have the learner take a message; note it where it ends the worker, or may."""
        position, notes = message.position, self.notes
        if notes is not None and notes.is_careful:
            if notes.is_given_up(position):
                self.learner.skips[position] = f"has ended the worker {notes.deaths} times"
            notes.note(position)
        self._metrics.at = position
        try:
            answer = self.learner.take(message)
        except BaseException as error:
            self._metrics.at = None  # from now on the watch does not note it
            self._blame(position, error)
            raise
        self._metrics.at = None
        if notes is not None and notes.at is not None:
            notes.note(None)
        return answer

    def _blame(self, position: Position, error: BaseException) -> None:
        """Note, and say, which message has raised what ends the worker, if it is its fault."""
        at: Position | None = position
        if isinstance(error, DriftError) or not isinstance(error, Exception):
            at = None
        else:
            command = skipping(self.folder, position)
            log.error("%s ends the worker: %r. %s leaves it out", position, error, command)
        if self.notes is not None and self.notes.at != at:
            self.notes.note(at)

    def end(self) -> None:
        """Let go of it, and note that no message has ended it."""
        if self.notes is not None:
            self.notes.end()
        self.learner.close()

    @property
    def is_written(self) -> bool:
        """Whether a checkpoint is written of which `end_saving` is to tell."""
        return self.saving is not None and self.saving.written.done()

    def begin_saving(self, folder: CheckpointFolder, writer: Executor) -> None:
        """Have a checkpoint be written, on another thread, which has all that was taken.

        Raises
        ------
        CheckpointError
            As `CheckpointFolder.prepare` does; nothing is written then.
        """
        learner = self.learner
        checkpoint = learner.snapshot()
        write = folder.prepare(
            learner.claim_id,
            checkpoint,
            join=learner.join_state(),
            keyed=learner.prepare_models(),
            runs=learner.runs.all(),
            previous=learner.checkpoint,
        )
        self.saving = _Saving(
            writer.submit(write), checkpoint.offsets, learner.runs, learner.since_checkpoint
        )
        learner.runs, learner.since_checkpoint = Runs(), 0

    def end_saving(self) -> Mapping[TopicPartition, int] | None:
        """Wait for the checkpoint that is being written; return its offsets, None where none was.

        If writing failed, raise its error; the next checkpoint includes these runs.
        """
        saving, self.saving = self.saving, None
        if saving is None:
            return None
        learner = self.learner
        try:
            written = saving.written.result()
        except BaseException:
            learner.runs = saving.runs + learner.runs
            learner.since_checkpoint += saving.taken
            raise
        learner.checkpoint = written.id
        learner.metrics.checkpointed()
        if self.notes is not None:
            self.notes.saved(saving.offsets)
        return saving.offsets
