"""What a worker has of a model that it has claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from drift.consumers.order import Runs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.feed import Feed
    from drift.consumers.learner import Learner
    from drift.consumers.records import Place

__all__ = ["ClaimedModel"]


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
        self.saving: _Saving | None = None

    @property
    def learner(self) -> Learner:
        """The learner."""
        return self.feed.learner

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
        return saving.offsets
