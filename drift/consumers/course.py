"""What a replica has learnt since a checkpoint, and how a newer one compares with it."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from drift.consumers.checkpoints.journal import which_models
from drift.consumers.fed import FedLearner
from drift.consumers.order import sort_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.consumers.checkpoints.journal import Journal
    from drift.consumers.fed import Feed
    from drift.consumers.learner import Learner
    from drift.consumers.order import Run
    from drift.consumers.records import Message, TopicPartition

__all__ = ["Course", "Found", "Taken"]

#: Records whose order is kept until there is a checkpoint of them; 28 bytes each.
_KEPT = 1_000_000


class Taken:
    """Records in the order in which they were learnt, since a checkpoint.

    Examples
    --------
    >>> taken = Taken(labels=None)
    >>> for time, place, offset in [(5, ("a", 0), 0), (7, ("a", 1), 0), (9, ("a", 1), 1)]:
    ...     taken.note(time, place, offset, digest=0)
    >>> taken.match([{("a", 0): 1, ("a", 1): 1}])
    (2, False)
    >>> taken.match([{("a", 0): 1, ("a", 1): 3}])
    (3, True)
    >>> print(taken.match([{("a", 1): 1}, {("a", 0): 1}]))
    None
    """

    def __init__(self, labels: str | None) -> None:
        self._labels = labels
        self._numbers: dict[TopicPartition, int] = {}
        self._times, self._offsets, self._places = array("q"), array("q"), array("i")
        self._digests = array("Q")
        self._are_all = True

    def note(self, time: int, place: TopicPartition, offset: int, digest: int) -> None:
        """Record the next one, and the learner's digest after it."""
        if len(self._times) == _KEPT:
            self.forget(_KEPT)
            self._are_all = False
        self._times.append(time)
        self._offsets.append(offset)
        self._digests.append(digest)
        self._places.append(self._numbers.setdefault(place, len(self._numbers)))

    def forget(self, count: int) -> None:
        """Forget the first ones."""
        for column in (self._times, self._offsets, self._places, self._digests):
            del column[:count]

    def digest(self, count: int) -> int | None:
        """Return the learner's digest after the first ones; None where that is not known."""
        return self._digests[count - 1] if count else None

    def match(self, runs: Iterable[Run]) -> tuple[int, bool] | None:
        """Count the records of these runs, and say whether some of the runs are still missing.

        None if the order differs, or other records came before.
        """
        ends: dict[TopicPartition, list[int]] = {}  # where each run ends that moved a partition
        numbers: dict[TopicPartition, list[int]] = {}  # which runs these are
        for number, run in enumerate(runs):
            for place, end in run.items():
                ends.setdefault(place, []).append(end)
                numbers.setdefault(place, []).append(number)
        missing = {place: offsets[-1] for place, offsets in ends.items()}
        places = [*self._numbers]
        before: tuple[Any, ...] = (-1,)
        count = 0
        for stamp, which, offset in zip(self._times, self._places, self._offsets, strict=True):
            place = places[which]
            at = bisect_right(ends.get(place, ()), offset)
            if at == len(ends.get(place, ())):  # it comes after all of them
                if missing:
                    return None
                continue
            now = numbers[place][at], sort_key(stamp, place, self._labels)
            if now < before:
                return None
            before = now
            if offset + 1 == missing[place]:
                del missing[place]
            count += 1
        return (count, bool(missing)) if self._are_all else None


class Found(NamedTuple):
    """What a newer checkpoint has, beside what was learnt here.

    Attributes
    ----------
    kind
        "same", "more" of the same, or something "other"; "unknown" where only loading it can tell.
    models_agree
        Whether the models agree after the same records; None where that is not known.
    """

    kind: Literal["same", "more", "other", "unknown"]
    models_agree: bool | None = None


class Course(FedLearner):
    """A learner on its way from a checkpoint, and how far it is known to be.

    Parameters
    ----------
    learner, consumer
        As of `FedLearner`.

    Attributes
    ----------
    went_back : bool
        Whether somebody went back to its checkpoint, and wants no answers of what came after.
    ends : dict
        When each partition was known to have been learnt to its end, as `time.monotonic` has it.
    """

    def __init__(self, learner: Learner, consumer: Feed) -> None:
        super().__init__(learner, consumer)
        self.went_back = False
        self.ends: dict[TopicPartition, float] = dict.fromkeys(learner.offsets, -math.inf)
        self._taken = Taken(learner.options.labels)
        self._first_offsets = dict(learner.offsets)  # those of the checkpoint

    def learn(self, message: Message) -> None:
        """Learn a message."""
        self.learner.take(message)
        self.learner.runs.forget()  # as `_taken` has the order, and not for ever
        topic, partition, offset = message.position
        place = topic, partition
        self._taken.note(self.learner.clocks[place].time, place, offset, self.learner.digest)

    def fresh(self) -> float:
        """Return when all that there was had been learnt, as `time.monotonic` has it; or -inf."""
        return min(self.ends.values(), default=-math.inf)

    def is_behind(self, other: Course) -> bool:
        """Whether it has not learnt all that another one has."""
        offsets = self.learner.offsets
        return any(offsets.get(place, 0) < end for place, end in other.learner.offsets.items())

    def begins_before(self, other: Course) -> bool:
        """Whether its checkpoint is of before that of another one."""
        first = self._first_offsets
        return any(first.get(place, 0) < offset for place, offset in other._first_offsets.items())

    def follow(self, newest: str, journal: Journal) -> Found:
        """Compare a newer checkpoint with what was learnt here; if it is the same, go on from it.

        Parameters
        ----------
        newest
            Its identifier.
        journal
            What it has learnt since the checkpoint that this one comes from.
        """
        runs, digest, models = journal
        ends = {place: end for run in runs for place, end in run.items()}
        # A partition was added; a message was left out; or a shadow has begun or was promoted.
        left_out = runs.skips.keys() - self.learner.runs.skips.keys()
        if ends.keys() - self.ends.keys() or left_out or models != self._models():
            return Found("unknown")
        match = self._taken.match(runs)
        if match is None:
            return Found("other")
        count, has_more = match
        if has_more:
            return Found("more")
        own = self._taken.digest(count)
        agree = None if own is None or digest is None else own == digest
        if agree is False:
            return Found("other", agree)
        self._taken.forget(count)
        self._first_offsets.update(ends)
        self.learner.checkpoint = newest
        return Found("same", agree)

    def _models(self) -> list[int | None]:
        """Return which models it has now, as the journal has it."""
        _, state = self.learner.shadow_state() or (None, None)
        return which_models(self.learner.promotions, state)
