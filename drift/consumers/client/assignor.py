"""How the workers of one model agree on which of them reads the partitions."""

from __future__ import annotations

import json
import logging
from typing import Any, NamedTuple

from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

__all__ = ["LeadAssignor"]

log = logging.getLogger("drift.consumers")


class LeadAssignor(RangePartitionAssignor):  # type: ignore[misc]
    """Assigns all partitions to one member for as long as it stays; the others are standbys.

    The active member keeps its partitions while the group rebalances (cooperative). Another member
    gets them only once it is no longer in the group. If it was frozen and comes back, two members
    say that they have had them: the one of the later generation is the active one.

    The assignment says what the active member reads. A member that wants to read something else
    warns.

    Parameters
    ----------
    partition
        The partition of each topic that this member is to read; None for all of them.
    """

    name = "drift-cooperative"

    def __init__(self, partition: int | None = None) -> None:
        self._partition = partition
        self._led = 0  # the generation in which this member last had them
        self._wanted = ""  # what this member is to read

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Have members keep their partitions while the group rebalances."""
        return [RebalanceProtocol.COOPERATIVE]

    def assign(self, cluster: Any, members: Any) -> Any:
        """Assign everything to the member that had it last, else to the first by its instance."""
        told = {member.member_id: _Told.of(member) for member in members}

        def rank(member: Any) -> tuple[int, str, str]:
            return -told[member.member_id].led, member.group_instance_id or "", member.member_id

        first = min(members, key=rank)
        _, partition, wanted = told[first.member_id]
        made = dict(super().assign(cluster, [first]))
        topics = [
            (topic, [n for n in numbers if partition in {None, n}])
            for topic, numbers in made[first.member_id].assigned_partitions
        ]
        return {
            member.member_id: ConsumerProtocolAssignment(
                self.version, topics if member is first else [], wanted.encode()
            )
            for member in members
        }

    def metadata(self, topics: Any) -> Any:
        """Send the group's leader when this member had the partitions, and what it is to read."""
        self._wanted = " and ".join(sorted(topics))
        if self._partition is not None:
            self._wanted = f"partition {self._partition} of {self._wanted}"
        told = _Told(self._led, self._partition, self._wanted)
        return ConsumerProtocolSubscription(self.version, list(topics), json.dumps(told).encode())

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """Store the generation in which this member has them."""
        self._led = generation if assignment.partitions() else 0
        read = bytes(assignment.user_data or b"").decode()
        if read != self._wanted:
            log.warning(
                "the active worker of the group reads %s, this one is to read %s: nothing is read "
                "here while that one stays. Give this one its own group and checkpoint folder",
                *(read, self._wanted),
            )


class _Told(NamedTuple):
    """What a member with a `LeadAssignor` tells the leader of its group.

    When it last had the partitions, as a generation, 0 for never; and what it is to read.
    """

    led: int
    partition: int | None
    wanted: str

    @classmethod
    def of(cls, member: Any) -> _Told:
        """Return what a member has told."""
        return cls(*json.loads(bytes(member.metadata.user_data)))
