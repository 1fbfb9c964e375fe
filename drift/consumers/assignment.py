"""The partitions that a worker has, how far it is with each, and where they begin."""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING

from drift.errors import ConsumerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.order import Place
    from drift.consumers.records import Source

__all__ = ["Assignment", "State", "first_offset", "offset_behind_gap"]

log = logging.getLogger("drift.consumers")


class State(Enum):
    """How far a worker is with a partition that is its own."""

    ASSIGNED = "given by the group: nothing is known of it yet"
    HELD = "taken back: the model was dropped, or could not be loaded or saved"
    BEGUN = "learnt: its messages come in"


class Assignment:
    """The states of a worker's partitions.

    ::

                     assign                  begin
        not its own ────────► ASSIGNED ───────────────► BEGUN
             ▲                    │        begin        │ ▲
             │                    └─────► HELD ─────────┼─┘
             │                  hold        ▲    hold   │
             │                              └───────────┘
             └──────────── lose, from each of these

    A partition that is assigned or held waits: nothing of it comes in, and at its next step the
    worker begins it.

    kafka-python assigns and takes away while the worker waits in its poll, so that no two threads
    are here at once.

    Examples
    --------
    >>> assignment = Assignment()
    >>> assignment.assign([("news", 0), ("news", 1)])
    >>> assignment.begin(("news", 0))
    >>> assignment.waiting()
    [('news', 1)]
    >>> assignment.lose([("news", 1)])
    >>> assignment.states
    {('news', 0): <State.BEGUN: 'learnt: its messages come in'>}
    """

    def __init__(self) -> None:
        self.states: dict[Place, State] = {}

    def begun(self) -> list[Place]:
        """Return the partitions whose messages come in."""
        return [place for place, state in self.states.items() if state is State.BEGUN]

    def waiting(self) -> list[Place]:
        """Return the partitions that are to be begun."""
        return [place for place, state in self.states.items() if state is not State.BEGUN]

    def assign(self, places: Iterable[Place]) -> None:
        """Note that the group has given partitions."""
        self.states |= dict.fromkeys(places, State.ASSIGNED)

    def begin(self, place: Place) -> None:
        """Note that a partition's messages come in."""
        self.states[place] = State.BEGUN

    def hold(self, places: Iterable[Place]) -> list[Place]:
        """Have partitions begun anew; return those that are still the worker's."""
        ours = [place for place in places if place in self.states]
        self.states |= dict.fromkeys(ours, State.HELD)
        return ours

    def lose(self, places: Iterable[Place]) -> None:
        """Note that the group has taken partitions away."""
        for place in places:
            self.states.pop(place, None)


def first_offset(
    broker: Source,
    place: Place,
    start: str | None,
    folder: AnyPath,
    *,
    added: bool,
) -> int:
    """Return the offset at which a partition begins that no checkpoint knows.

    Parameters
    ----------
    broker
        Which tells what the group has committed.
    place
        Topic and number.
    start
        What was asked for: "earliest", "latest" or nothing.
    folder
        Where a checkpoint was looked for.
    added
        Whether the model goes on from a checkpoint that does not know the partition: it was added,
        and begins at its beginning, whatever was committed for a model that is gone.

    Raises
    ------
    ConsumerError
        If it has been learnt elsewhere, or nothing was asked for.
    """
    if added:
        return broker.bound(place, "earliest")
    committed = broker.committed(place)
    if committed is not None:
        raise ConsumerError(
            f"{place[0]}:{place[1]} has been learnt up to {committed}, but {folder} has no "
            "checkpoint of it: give the folder that has, or another group to start anew"
        )
    if start is None:
        raise ConsumerError(
            f"{place[0]}:{place[1]} has no checkpoint: say where to start, --from earliest or "
            "--from latest, in Python start='earliest' or start='latest'"
        )
    first = broker.bound(place, start)
    if start == "latest" and (before := first - broker.bound(place, "earliest")):
        log.warning(
            "%s:%d begins at its end, %d, as was asked for: %d messages before it are not learnt",
            *(*place, first, before),
        )
    return first


def offset_behind_gap(
    broker: Source, place: Place, offset: int, on_gap: str, folder: AnyPath
) -> int:
    """Return where a partition goes on whose next message is gone, and say what is lost.

    Raises
    ------
    ConsumerError
        If that was not asked for, or the log is another one than the checkpoint's.
    """
    first, end = broker.bound(place, "earliest"), broker.bound(place, "latest")
    if offset >= first:
        what = "its log ends before that" if offset > end else "its log has other messages there"
        raise ConsumerError(
            f"{place[0]}:{place[1]} has messages from {first} to {end}, and its checkpoint goes on "
            f"at {offset}: {what}, it was truncated or made anew. Start with another folder and "
            f"group, or go on with it by drift checkpoint adopt {folder}"
        )
    if on_gap == "stop":
        raise ConsumerError(
            f"{place[0]}:{place[1]} begins at {first}, behind {offset}, where its checkpoint goes "
            f"on: {first - offset} messages were deleted before they were learnt. Go on without "
            "them with on_gap = 'skip', --on-gap skip, or start afresh with another folder and "
            "another group"
        )
    log.error("%s:%d: %d messages are gone, going on at %d", *place, first - offset, first)
    return first
