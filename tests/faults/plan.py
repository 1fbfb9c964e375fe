"""What happens when: drawn before it starts, so that a seed names it."""

from __future__ import annotations

import random
from typing import NamedTuple

__all__ = ["BROKER", "KINDS", "Fault", "plan"]

#: How often each kind of fault comes, relative to the others.
KINDS = {
    "kill": 5.0,  # SIGKILL, and a restart at once or after a pause
    "abort": 6.0,  # a kill between two steps of a checkpoint
    "freeze": 3.0,  # SIGSTOP past the session timeout, SIGCONT
    "zombie": 1.0,  # the same in the middle of a checkpoint, until others have what it had
    "add": 2.0,  # a worker more
    "remove": 2.0,  # a worker less, by SIGTERM
    "claim": 2.0,  # a kill, and of who claims what it had a freeze or a kill amid that
    "takeover": 2.0,  # a kill, and to take over what it had takes longer than one may be silent
    "tear": 2.0,  # a kill, and damage to the newest checkpoint of what the worker had
    "full": 2.0,  # no checkpoint can be written
    "slow": 2.0,  # what a poll brings takes longer to learn than a worker may be silent
    "errors": 2.0,  # the broker refuses outputs for a while, or has them and says otherwise
}
#: How often what happens to the broker.
BROKER = {
    "broker stop": 1.0,  # and a restart
    "broker kill": 1.0,  # the same after SIGKILL
    "broker freeze": 2.0,  # SIGSTOP, SIGCONT: outputs expire where that takes longer
}
#: Seconds from one fault of the workers to the next. Whatever happens to the one that learns stops
#: all learning until the group has agreed again.
_EVERY = 0.6, 4.4
#: Mean seconds between those, which take a few seconds each.
_BROKER_EVERY = 18.0


class Fault(NamedTuple):
    """One fault.

    Attributes
    ----------
    time
        Seconds from the start.
    kind
        One of `KINDS` or of `BROKER`.
    seconds
        How long it lasts, or until the restart.
    draw
        In [0, 1): picks the worker, among those there are then.
    """

    time: float
    kind: str
    seconds: float
    draw: float


def plan(
    seed: int,
    seconds: float,
    *,
    brokers: bool = True,
    session: float = 2.0,
    silence: float = 5.0,
) -> list[Fault]:
    """Draw the faults of a run; each kind comes once before any comes twice.

    Parameters
    ----------
    seed
        The same gives the same.
    seconds
        How long.
    brokers
        Whether things happen to the broker, too.
    session
        The workers' session timeout in seconds; a freeze takes longer.
    silence
        Seconds for which a worker may not poll; a takeover takes longer.
    """
    rng = random.Random(seed)
    first = rng.sample(list(KINDS), len(KINDS))
    faults = []
    now = rng.uniform(0.2, 1.0)
    while now < seconds:
        kind = first.pop() if first else rng.choices(list(KINDS), list(KINDS.values()))[0]
        lasts = rng.choice((0.0, rng.uniform(0.2, 2.5)))
        if kind in {"freeze", "claim"}:
            lasts = session + rng.uniform(1.0, 3.0)
        elif kind == "takeover":
            lasts = silence + rng.uniform(1.0, 3.0)
        elif kind in {"full", "slow", "errors"}:
            lasts = rng.uniform(1.0, 4.0)
        faults.append(Fault(now, kind, lasts, rng.random()))
        now += rng.uniform(*_EVERY)
    now = rng.uniform(0.25, 0.5) * _BROKER_EVERY
    while brokers and now < seconds:
        faults.append(
            Fault(now, rng.choices(list(BROKER), list(BROKER.values()))[0], rng.random(), 0.0)
        )
        now += rng.uniform(0.6, 1.4) * _BROKER_EVERY
    return sorted(faults)
