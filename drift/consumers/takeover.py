"""A model that is being taken over, on a thread of its own, while the worker polls.

To read waiting features again, or to open a slow folder, may take longer than a member of a group
may be silent: its partitions would go to another one, which begins anew, and so on without end.
"""

from __future__ import annotations

import logging
import time
from threading import Event
from typing import TYPE_CHECKING

from drift.errors import DriftError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

    from drift.consumers.checkpoints.folder import ClaimId
    from drift.consumers.learner import Learner
    from drift.consumers.metrics import WorkerMetrics
    from drift.consumers.records import Logs, Message, TopicPartition

__all__ = ["TakeOver"]

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

    def __init__(self, claim_id: ClaimId, source: Logs, metrics: WorkerMetrics) -> None:
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

    def begin(self, executor: Executor, take_over: Callable[[TakeOver], Learner]) -> None:
        """Have another thread do it."""
        self.learner = executor.submit(take_over, self)

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
