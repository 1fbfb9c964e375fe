"""The reference, `reference.py`, under the contract of the compiled core."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.models._base.guard import Guard
from drift.models._base.labels import check_class
from drift.models._tracker import tables as c
from drift.models._tracker.check import check_state
from drift.models._tracker.layout import Shape, arrays_of, layout_of
from drift.models._tracker.names import hash_of
from drift.models._tracker.reference import (
    FAMILIES,
    Prediction,
    State,
    evidence_of,
    make_ticket,
    new_state,
    predict,
    ticket_deviations,
    update,
)
from drift.models._tracker.reference_scales import read, update_context
from drift.models._tracker.room import no_room
from drift.models._tracker.tickets import Snapshot, Tickets

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from drift.models._base.rows import Rows
    from drift.models._tracker.plan import Plan
    from drift.models._tracker.reference_scales import Point
    from drift.types import Features, Label

    Array = NDArray[Any]

__all__ = ["TrackerCore"]

#: Parts of a state other than its arrays and supports.
_FIELDS = ("free", "classes", "names", "sparse", "draws")


class TrackerCore:
    """A tracker's state and updates.

    Parameters
    ----------
    plan
        Its parameters.
    scale
        ``"auto"``, ``"dense"`` or ``"sparse"``.
    seed
        Seed of the draws, any integer.
    state
        What `state` returned, to go on from; ValueError for anything else.
    """

    def __init__(self, plan: Plan, scale: str, seed: int, state: Any = None) -> None:
        self.guard, self.plan = Guard(), plan
        self._prediction: Prediction | None = None  # of the example read last
        if state is not None:
            self._restore(state, auto=scale == "auto")
            return
        self._state = new_state(plan, seed, auto=scale == "auto", sparse=scale == "sparse")
        self.tickets = Tickets() if plan.late else None

    @property
    def classes(self) -> list[Label]:
        """The classes, in the order of their first examples."""
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

    def read(self, x: Features, ticket: Hashable = True) -> None:  # noqa: FBT002
        """Read the example that `score` answers for; FeatureError changes nothing."""
        self.guard.run(self._read, x, ticket)

    def _read(self, x: Features, ticket: Hashable = True) -> Prediction:  # noqa: FBT002
        self._prediction = predict(self._state, self._point(x, ticket, learnt=False))
        return self._prediction

    def _point(self, x: Features, name: Hashable, *, learnt: bool) -> Point:
        """Return an example as it was predicted last, or as it was first if its label comes.

        The key of its ticket is that of the name, or with a bool of its content.
        """
        tickets = self.tickets
        if tickets is None:
            return read(self._state, x)
        named = None if isinstance(name, bool) else hash_of(name)

        def recall(key: int) -> Array | None:
            key = key if named is None else named
            found = tickets.find(key) if learnt and name is not False else None
            ticket = found or tickets.last_ticket(key)
            return None if ticket is None else ticket_deviations(self._state, ticket)

        point = read(self._state, x, recall)
        return point if named is None else point._replace(key=named)

    def _issue_ticket(self) -> None:
        """Keep one ticket of the example, however often it is predicted in a row."""
        assert self._prediction is not None  # noqa: S101
        key = self._prediction.point.key
        if self.tickets is None or self.tickets.last_ticket(key) is not None:
            return
        self.tickets.put(key, make_ticket(self._state, self._prediction))
        update_context(self._state, self._prediction.point)

    def score(self) -> tuple[int, list[float]]:
        """Return the number of the predicted class, -1 without any, and all probabilities."""
        assert self._prediction is not None  # noqa: S101
        self._issue_ticket()
        return self._prediction.number, self._prediction.probabilities.tolist()

    def peek(self, x: Features) -> tuple[int, list[float]]:
        """Return the result of `score`, and issue no ticket."""
        prediction: Prediction = self.guard.run(self._read, x)
        return prediction.number, prediction.probabilities.tolist()

    def predict(self, x: Features, ticket: Hashable = True) -> int:  # noqa: FBT002
        """Return the number of the predicted class; -1 without any."""
        number: int = self.guard.run(self._predict, x, ticket)
        return number

    def _predict(self, x: Features, ticket: Hashable) -> int:
        number = self._read(x, ticket).number
        if ticket is not False:
            self._issue_ticket()
        return number

    def learn(self, x: Features, y: Label, w: float, ticket: Hashable = True) -> int:  # noqa: FBT002
        """Learn an example; return the number of the class predicted before."""
        number: int = self.guard.run(self._learn, x, y, w, ticket)
        return number

    def _learn(self, x: Features, y: Label, w: float, name: Hashable) -> int:
        check_class(y)
        before, point = self._state, self._point(x, name, learnt=True)
        key, waiting = point.key, bool(self.tickets)
        tickets = None if name is False else self.tickets
        ticket = None if tickets is None else tickets.find(key)
        evidence = evidence_of(before, ticket, waiting=waiting)
        prediction = predict(before, point)
        try:
            after = update(before, prediction, y, w, evidence)
        except MemoryError:
            if y in before.classes:
                raise
            arrays = [name for family in FAMILIES for name in family.weights]
            size = sum(getattr(before, name)[0].nbytes for name in arrays)
            raise no_room(y, len(before.classes) + 1, size) from None
        self._state, self._prediction = after, prediction
        if self.tickets is not None:
            self.tickets.last = None
        if before.sparse != after.sparse and self.tickets is not None:
            self.tickets = self.tickets.emptied()  # the scores of the others are on another scale
        elif tickets is not None:
            tickets.settle(key)
        return prediction.number

    def learn_rows(
        self, rows: Rows | list[Features], predictions: list[Label], labels: list[Label] | None
    ) -> None:
        """Predict the rows that lack a prediction, and learn them if there are labels."""
        for i in range(len(predictions), len(rows)):
            x = rows[i]
            number = self.predict(x) if labels is None else self.learn(x, labels[i], 1.0)
            predictions.append(None if number < 0 else self.classes[number])

    # --- contents --------------------------------------------------------------------------------

    @property
    def n_supports(self) -> int:
        """Number of supports."""
        n: int = len(self._state.supports) - (self._state.free >= 0)
        return n

    def supports(self) -> list[dict[Hashable, float]]:
        """Return the supports, by name; those of sparse rows by hash."""
        s = self._state
        used = [support for slot, support in enumerate(s.supports) if slot != s.free]
        name = (lambda j: j) if s.sparse else s.names.__getitem__
        return [dict(zip(map(name, j.tolist()), v.tolist(), strict=True)) for j, v in used]

    def record(self) -> dict[str, Any]:
        """Return the gates' weights, and the members' mistakes and losses so far."""
        s = self._state
        copied = {name: getattr(s, name).copy() for name in ("gates", "maps", "errors", "losses")}
        return copied | {"total": float(s.sums[c.TOTAL]), "sparse": s.sparse}

    def state(self) -> dict[str, Any]:
        """Return the tracker's state as plain values and arrays."""
        return self.snapshot().state()

    def arrays(self) -> dict[str, Any]:
        """Return copies of the state's arrays, by name."""
        return arrays_of(self.plan, self.state())

    def snapshot(self) -> Snapshot:
        """Return the state of now, to be read on any thread."""
        s, plan = self._state.copy(), self.plan
        sizes = len(s.classes), len(s.supports), len(s.common)
        trees, windows = len(s.tree_forest) > 0, (len(s.tree_labels), len(s.context_tree_labels))
        shape = Shape(plan.n_members, plan.n_kernel_members, *sizes, s.sparse, trees, windows)
        numbers, values = zip(*s.supports, strict=True) if s.supports else ([], [])
        supports = (
            [*map(len, numbers)],
            np.concatenate([*numbers, []]),
            np.concatenate([*values, []]),
        )
        stored = {
            "arrays": layout_of(shape).grouped(vars(s), supports),
            "slots": len(s.supports),
            "values": len(supports[-1]),
            "windows": list(windows),
            **{name: getattr(s, name) for name in _FIELDS},
        }
        return Snapshot(shape, stored, None if self.tickets is None else self.tickets.copy())

    def _restore(self, state: dict[str, Any], *, auto: bool) -> None:
        layout = check_state(self.plan, state)
        s = State(**layout.arrays(state["arrays"]), plan=self.plan, auto=auto).copy()
        vars(s).update({name: copy(state[name]) for name in _FIELDS})
        sizes, numbers, values = layout.supports(state["arrays"])
        slots = [slice(end - n, end) for end, n in zip(np.cumsum(sizes), sizes, strict=True)]
        s.supports = [(numbers[slot].copy(), values[slot].astype(float)) for slot in slots]
        self._state = s
        self.tickets = Tickets.restored(state["tickets"]) if self.plan.late else None
