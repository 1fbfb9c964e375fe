"""A leader of kafka-python's that the mock cluster can keep up with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from drift.errors import needing

with needing("kafka-python", "kafka"):
    from kafka.coordinator.assignors import range as ranges

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["patient_assignor"]


def patient_assignor(
    seconds: float = 0.3, asked: Callable[[], int] | None = None, *, of: Any = None
) -> Any:
    """Have an assignor of kafka-python wait before it assigns.

    The mock cluster refuses a member that asks for its partitions after the leader has set them, so
    the leader lets the others ask first. Against a real broker it only costs time.

    Parameters
    ----------
    seconds
        How long it waits where there are other members.
    asked
        Tells how many of them have asked. It then waits for the last of them only, and for so many
        seconds at most; `MockKafka.group_args` has one that knows.
    of
        The assignor; None for the one by ranges.

    Returns
    -------
    AbstractPartitionAssignor
        One for ``partition_assignment_strategy``.
    """
    patient = ranges.RangePartitionAssignor() if of is None else of
    assign_at_once = patient.assign

    def assign(cluster: Any, members: Any) -> Any:
        others = len(members) - 1
        end = time.monotonic() + seconds
        while others and time.monotonic() < end and (asked is None or asked() < others):
            time.sleep(0.01)
        return assign_at_once(cluster, members)

    patient.assign = assign
    return patient
