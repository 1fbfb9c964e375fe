"""The partitions that a worker has, how far it is with each, and where they begin."""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from drift.errors import ConsumerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.learner import Learner
    from drift.consumers.records import Source

__all__ = ["Assignment", "Key", "Place", "State", "first_offset", "offset_behind_gap"]

log = logging.getLogger("drift.consumers")

#: A partition: topic and number.
Place: TypeAlias = tuple[str, int]
#: What a model learns: a partition, or with None all partitions of a topic.
Key: TypeAlias = tuple[str, int | None]


class State(Enum):
    """How far a worker is with a partition that is its own."""

    ASSIGNED = "given by the group: nothing is known of it yet"
    HELD = "taken back: its model was dropped, or could not be loaded or saved"
    BEGUN = "learnt: its messages come in"
    BLOCKED = "labels that come later: the next one waits for its features"


class Assignment:
    """The states of a worker's partitions, and the models that learn them.

    ::

                     assign                 begin          block
        not its own ────────► ASSIGNED ──────────────► BEGUN ─────► BLOCKED
             ▲                    │       begin         │ ▲  begin     │
             │                    └─────► HELD ─────────┼─┴────────────┤
             │                  hold        ▲    hold   │     hold     │
             │                              └───────────┴──────────────┘
             └──────────── lose, from each of these

    A partition that is assigned or held waits: nothing of it comes in, and at its next step the
    worker claims its checkpoints and begins it. A model is there from its claim until it is
    dropped, which holds its partitions, or until they are lost. Where labels have a topic of their
    own, a model has a partition of each.

    kafka-python assigns and takes away while the worker waits in its poll, so that no two threads
    are here at once.

    Parameters
    ----------
    topic
        The topic to learn, by which models are called.
    single
        Whether one model learns all partitions.

    Attributes
    ----------
    learners : dict
        The models by what they learn.

    Examples
    --------
    >>> assignment = Assignment("news", single=False)
    >>> assignment.assign([("news", 0), ("news", 1)])
    >>> assignment.begin(("news", 0))
    >>> assignment.waiting()
    {('news', 1): [('news', 1)]}
    >>> assignment.lose([("news", 1)])
    >>> assignment.states
    {('news', 0): <State.BEGUN: 'learnt: its messages come in'>}
    """

    def __init__(self, topic: str, *, single: bool) -> None:
        self.topic = topic
        self.single = single
        self.states: dict[Place, State] = {}
        self.learners: dict[Key, Learner] = {}

    def key(self, place: Place) -> Key:
        """Return what the model of a partition learns."""
        return self.topic, None if self.single else place[1]

    def learner(self, place: Place) -> Learner | None:
        """Return the model of a partition that has begun."""
        if self.states.get(place) is not State.BEGUN:
            return None
        return self.learners.get(self.key(place))

    def waiting(self) -> dict[Key, list[Place]]:
        """Return the partitions that are to be begun, by their models."""
        found: dict[Key, list[Place]] = {}
        for place, state in self.states.items():
            if state in {State.ASSIGNED, State.HELD}:
                found.setdefault(self.key(place), []).append(place)
        return found

    def assign(self, places: Iterable[Place]) -> None:
        """Note that the group has given partitions."""
        self.states |= dict.fromkeys(places, State.ASSIGNED)

    def begin(self, place: Place) -> None:
        """Note that a partition's messages come in."""
        self.states[place] = State.BEGUN

    def block(self, place: Place) -> None:
        """Note that nothing comes of labels until the features of the next one have come."""
        self.states[place] = State.BLOCKED

    def hold(self, places: Iterable[Place]) -> list[Place]:
        """Have partitions begun anew; return those that are still the worker's."""
        ours = [place for place in places if place in self.states]
        self.states |= dict.fromkeys(ours, State.HELD)
        return ours

    def drop(self, key: Key) -> list[Place]:
        """Drop a model; return its partitions, which are held."""
        self.learners.pop(key, None)
        return self.hold([place for place in self.states if self.key(place) == key])

    def lose(self, places: Iterable[Place]) -> None:
        """Note that the group has taken partitions away, and drop their models."""
        for place in places:
            self.states.pop(place, None)
        for key in set(map(self.key, places)):
            self.drop(key)


def first_offset(
    broker: Source,
    place: Place,
    start: str | None,
    folder: AnyPath,
    *,
    came_later: bool,
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
    came_later
        Whether one model learns it with others, and went on from a checkpoint of those: one that
        went back to before this one came has learnt nothing of it, whatever a later one had.

    Raises
    ------
    ConsumerError
        If it has been learnt elsewhere, or nothing was asked for.
    """
    committed = broker.committed(place)
    if committed is not None and not (came_later and start == "earliest"):
        raise ConsumerError(
            f"{place[0]}:{place[1]} has been learnt up to {committed}, but {folder} has no "
            "checkpoint of it: give the folder that has, or another group to start anew"
            + (", or start at the earliest message, as the model has none of it" * came_later)
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
