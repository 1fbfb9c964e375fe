"""The reference, `reference.py`, under the contract of the compiled core."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._store.class_labels import check_class
from drift.models._store.guard import Guard
from drift.models._store.rows import Row
from drift.models._tracker import tables as c
from drift.models._tracker.check import check_state
from drift.models._tracker.reference import (
    FAMILIES,
    Reading,
    State,
    back_of,
    new_state,
    reading,
    ticket_of,
    told_by,
    updated,
)
from drift.models._tracker.reference_scales import note
from drift.models._tracker.room import no_room
from drift.models._tracker.tickets import Moment, Tickets

if TYPE_CHECKING:
    from collections.abc import Hashable

    from drift.models._store.rows import Rows
    from drift.models._tracker.plan import Plan
    from drift.types import Features, Label

__all__ = ["TrackerCore"]

#: What a state has beside its arrays and supports.
_BESIDE = ("free", "classes", "names", "pairs", "auto", "sparse", "draws")


class TrackerCore:
    """State of a tracker, and how it learns.

    Parameters
    ----------
    plan
        Its parameters.
    scale
        ``"auto"``, ``"dense"`` or ``"sparse"``.
    seed
        Of the draws, any integer.
    """

    def __init__(self, plan: Plan, scale: str, seed: int) -> None:
        self.guard, self.plan = Guard(), plan
        self._state = new_state(plan, auto=scale == "auto", sparse=scale == "sparse")
        self._state.draws = seed % 2**64
        self._found: Reading | None = None  # of the example read last
        self.tickets = Tickets() if plan.late else None

    @property
    def classes(self) -> list[Label]:
        """The classes met, in their order."""
        classes: list[Label] = self._state.classes
        return classes

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse."""
        sparse: bool = self._state.sparse
        return sparse

    @property
    def n_learnt(self) -> int:
        """Number of examples learnt."""
        return int(self._state.sums[c.LEARNT])

    def read(self, x: Features) -> None:
        """Take an example as the one that `score` is about; FeatureError changes nothing."""
        self.guard.run(self._read, x)

    def _read(self, x: Features) -> Reading:
        found = reading(self._state, x)
        ticket = None if self.tickets is None else self.tickets.asked_for(found.point.key)
        if ticket is not None:  # the running means have taken it in since
            found = reading(self._state, x, back_of(self._state, ticket))
        self._found = found
        return found

    def _note(self) -> None:
        """Keep a ticket of the example that was predicted, one however often it is asked for."""
        assert self._found is not None  # noqa: S101
        key = self._found.point.key
        if self.tickets is None or self.tickets.asked_for(key) is not None:
            return
        self.tickets.put(key, ticket_of(self._state, self._found))
        note(self._state, self._found.point)

    def score(self) -> tuple[int, list[float]]:
        """Number of the class that is predicted, -1 before any was met, and all probabilities."""
        assert self._found is not None  # noqa: S101
        self._note()
        return self._found.prediction, self._found.chances.tolist()

    def peek(self, x: Features) -> tuple[int, list[float]]:
        """Return what `score` does, and note nothing."""
        found: Reading = self.guard.run(self._read, x)
        return found.prediction, found.chances.tolist()

    def predict(self, x: Features, notes: bool = True) -> int:  # noqa: FBT001, FBT002
        """Return the number of the class that is predicted; -1 before anything was learnt."""
        prediction: int = self.guard.run(self._predict, x, notes)
        return prediction

    def _predict(self, x: Features, notes: bool) -> int:  # noqa: FBT001
        prediction = self._read(x).prediction
        if notes:
            self._note()
        return prediction

    def learn(self, x: Features, y: Label, w: float) -> int:
        """Learn an example; return the number of the class that was predicted before."""
        prediction: int = self.guard.run(self._learn, x, y, w)
        return prediction

    def _learn(self, x: Features, y: Label, w: float) -> int:
        check_class(y)
        before = self._state
        found = self._read(x)
        key, waiting = found.point.key, bool(self.tickets)
        ticket = self.tickets.find(key) if self.tickets is not None else None
        told = told_by(before, ticket, waiting=waiting)
        if ticket is not None:
            found = reading(before, x, back_of(before, ticket))
        try:
            after = updated(before, found, y, w, told)
        except MemoryError:
            if y in before.classes:
                raise
            size = sum(getattr(before, family.weights[0])[0].nbytes for family in FAMILIES)
            raise no_room(y, len(before.classes) + 1, size) from None
        self._state, self._found = after, None
        if self.tickets is not None:
            self.tickets.asked = None
        if before.sparse != after.sparse and self.tickets is not None:
            self.tickets = Tickets()  # those were of examples on another scale
        elif ticket is not None and self.tickets is not None:
            self.tickets.drop(key)
        return found.prediction

    def learn_rows(self, rows: Rows, predictions: list[Label], labels: list[Label] | None) -> None:
        """Predict rows, from the one whose number is that of the predictions; learn with labels."""
        for i in range(len(predictions), len(rows)):
            x = Row(rows, i)
            number = self.predict(x) if labels is None else self.learn(x, labels[i], 1.0)
            predictions.append(None if number < 0 else self.classes[number])

    # --- what there is ---------------------------------------------------------------------------

    @property
    def n_supports(self) -> int:
        """Number of supports held."""
        n: int = len(self._state.supports) - (self._state.free >= 0)
        return n

    def supports(self) -> list[dict[Hashable, float]]:
        """Return the supports, by name; those of sparse rows by hash."""
        s = self._state
        held = [support for slot, support in enumerate(s.supports) if slot != s.free]
        name = (lambda j: j) if s.sparse else s.names.__getitem__
        return [dict(zip(map(name, own.tolist()), v.tolist(), strict=True)) for own, v in held]

    def record(self) -> dict[str, Any]:
        """Return what the members did so far: the gates' weights, their mistakes and losses."""
        s = self._state
        found = {name: getattr(s, name).copy() for name in ("gates", "maps", "errors", "losses")}
        return found | {"total": float(s.sums[c.TOTAL]), "sparse": s.sparse}

    def state(self) -> dict[str, Any]:
        """Return all that a tracker is, as plain values and arrays."""
        return self.moment().state()

    def moment(self) -> Moment:
        """Return what gives the state as it is now, on any thread."""
        s = self._state.copy()
        numbers, values = zip(*s.supports, strict=True) if s.supports else ([], [])
        stored = {
            "arrays": {name: getattr(s, name) for name, array in c.ARRAYS.items() if array.stored},
            "supports": {
                "sizes": np.array([len(own) for own in numbers], np.int32),
                "numbers": np.concatenate([*numbers, []]).astype(np.int32),
                "values": np.concatenate([*values, []]).astype(np.float32),
            },
            **{name: getattr(s, name) for name in _BESIDE},
        }
        return Moment(stored, None if self.tickets is None else self.tickets.copy())

    def restore(self, state: dict[str, Any]) -> None:
        """Be the tracker that gave `state`; ValueError if that is none."""
        check_state(self.plan, state)
        supports, s = state["supports"], State(**state["arrays"], plan=self.plan).copy()
        vars(s).update({name: copy(state[name]) for name in _BESIDE})
        ends = np.cumsum(supports["sizes"]).tolist()
        slots = [slice(end - n, end) for end, n in zip(ends, supports["sizes"], strict=True)]
        s.supports = [
            (supports["numbers"][slot].copy(), supports["values"][slot].astype(float))
            for slot in slots
        ]
        self._state, self._found = s, None
        self.tickets = Tickets.restored(state["tickets"]) if self.plan.late else None
