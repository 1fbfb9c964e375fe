"""The partitions assigned to a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.consumers.records import TopicPartition

__all__ = ["Assignment"]


class Assignment:
    """The partitions that the group has assigned to a worker, and which of them have started.

    Only what has started delivers anything. The others wait until their model is taken over, at
    first or after it was dropped.

    kafka-python assigns and revokes while the worker waits in its poll, so no two threads are here
    at once.

    Attributes
    ----------
    places : dict
        Whether it has started, by topic and partition.

    Examples
    --------
    >>> assignment = Assignment()
    >>> assignment.assign([("news", 0), ("news", 1)])
    >>> assignment.start(("news", 0))
    >>> assignment.waiting()
    [('news', 1)]
    >>> assignment.revoke([("news", 1)])
    >>> assignment.places
    {('news', 0): True}
    """

    def __init__(self) -> None:
        self.places: dict[TopicPartition, bool] = {}

    def started(self) -> list[TopicPartition]:
        """Return the partitions that are processed."""
        return [place for place, has_started in self.places.items() if has_started]

    def waiting(self) -> list[TopicPartition]:
        """Return the partitions that have to start."""
        return [place for place, has_started in self.places.items() if not has_started]

    def assign(self, places: Iterable[TopicPartition]) -> None:
        """Add partitions that the group has assigned."""
        self.places |= dict.fromkeys(places, False)

    def start(self, place: TopicPartition) -> None:
        """Start a partition."""
        self.places[place] = True

    def hold(self, places: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Pause partitions until they start again; return those still assigned."""
        ours = [place for place in places if place in self.places]
        self.places |= dict.fromkeys(ours, False)
        return ours

    def revoke(self, places: Iterable[TopicPartition]) -> None:
        """Remove partitions that the group has revoked."""
        for place in places:
            self.places.pop(place, None)
