"""What a worker has of a model that it has claimed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from drift.consumers.attempts import Attempt
from drift.consumers.order import Runs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.feed import Feed
    from drift.consumers.learner import Learner
    from drift.consumers.records import Place

__all__ = ["ClaimedModel"]

log = logging.getLogger("drift.consumers")


class _Saving(NamedTuple):
    """A checkpoint that is being written, and what was taken between it and the one before."""

    written: Future[Checkpoint]
    offsets: Mapping[Place, int]
    runs: Runs
    taken: int


class ClaimedModel:
    """A learner, what comes for it, and its checkpoint that is being written.

    Parameters
    ----------
    feed
        What brings the learner its records.
    """

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.attempt: Attempt | None = None  # where messages are taken with care
        self._has_begun = False
        self.saving: _Saving | None = None

    @property
    def learner(self) -> Learner:
        """The learner."""
        return self.feed.learner

    def begin(self, folder: AnyPath) -> None:
        """Look, before the first message, how claims before this one have ended."""
        if self._has_begun or not isinstance(folder, Path):
            return
        self._has_begun = True
        attempt = Attempt(folder, self.learner.epoch, self.learner.offsets)
        if attempt.is_careful:
            self.attempt = attempt
            why = f"a worker died in message {attempt.suspect}, for the {attempt.deaths}. time"
            log.warning(
                "%s: %s: messages are taken one at a time until the next checkpoint",
                self.learner.key,
                why if attempt.suspect else f"{attempt.starts - 1} workers ended soon after this",
            )

    @property
    def is_written(self) -> bool:
        """Whether a checkpoint is written of which `end_saving` is to tell."""
        return self.saving is not None and self.saving.written.done()

    def begin_saving(self, written: Future[Checkpoint], offsets: Mapping[Place, int]) -> None:
        """Note that a checkpoint is being written, which has all that was taken."""
        learner = self.learner
        self.saving = _Saving(written, offsets, learner.runs, learner.since_checkpoint)
        learner.runs, learner.since_checkpoint = Runs(), 0

    def end_saving(self) -> Mapping[Place, int] | None:
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
        if self.attempt is not None:
            self.attempt.saved(saving.offsets)
            self.attempt = self.attempt if self.attempt.is_careful else None
        return saving.offsets
