"""The partitions that a worker has, and how far it is with each."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.consumers.learner import Learner

__all__ = ["Assignment", "Key", "Place", "State"]

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
