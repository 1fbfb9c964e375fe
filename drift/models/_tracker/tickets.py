"""Tickets: the members' scores of examples that wait for their labels."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from drift.errors import CheckpointError
from drift.models._tracker.check import check_numbers
from drift.models._tracker.tables import DELAY_DECAY, DELAY_GROWTH, TICKET_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drift.models._tracker.layout import Shape

__all__ = ["Snapshot", "Tickets"]

#: Bytes of Python's objects for a ticket.
_OVERHEAD = 300
#: So many tickets more than the delay says make no difference.
_FEW = 64
#: So many labels in a row without a ticket make a warning.
_MISSED = 1000


_NO_TICKETS = (
    f"none of the last {_MISSED:,} labels has found the ticket of its prediction, so that the "
    "gates of a Tracker learn nothing. Where steps before it change features until the label "
    "comes, name the predictions: give predict_one and learn_one the same ticket"
)


class Tickets:
    """Tickets by key of their examples.

    Labels can get lost. So of several equal examples a label is for the one whose age is nearest to
    the longest delay of late. The labels of older ones should have come before: their tickets go.
    Only a lone ticket tells a delay for sure; its age counts, and that of the first one served.

    Tickets twice as old as the longest delay go, too, from time to time. A label without a ticket
    makes that delay longer, as its ticket may have gone too early. Their size is bounded: at the
    bound every second ticket is dropped, and only every second new one is kept from then on, so
    that long delays are still sampled.

    Parameters
    ----------
    most
        Largest size in bytes.
    """

    def __init__(self, most: int = TICKET_BYTES) -> None:
        self.most = most
        self.size = 0
        self.n_predicted = 0
        self.stride = 1  # one in so many is kept
        self.longest_delay = 0.0  # in predictions, decays by label
        self.missed = 0  # labels in a row without a ticket, since the process started
        #: Key and ticket of the last prediction, until an example is learnt.
        self.last: tuple[int, bytes] | None = None
        self._stored: dict[str, Any]  # of a restored state, until the tickets are built
        self._first: dict[int, tuple[int, bytes]] = {}
        self._others: dict[int, list[tuple[int, bytes]]] = {}  # later tickets of the same keys
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def put(self, key: int, ticket: bytes) -> None:
        """Keep a ticket, unless the stride leaves it out."""
        self.last = key, ticket
        self.n_predicted += 1
        if self.n_predicted % self.stride:
            return
        entry = self.n_predicted, ticket
        if key in self._first:
            self._others.setdefault(key, []).append(entry)
        else:
            self._first[key] = entry
        self._n += 1
        self.size += len(ticket) + _OVERHEAD
        if self.size > self.most:
            self._thin_out()
        elif self.longest_delay and self._n > 4.0 * self.longest_delay / self.stride + _FEW:
            self._set(self._recent())
        elif self.size < self.most // 4:
            self.stride = max(1, self.stride // 2)

    def last_ticket(self, key: int) -> bytes | None:
        """Return the ticket of an example if it was predicted last."""
        return self.last[1] if self.last is not None and self.last[0] == key else None

    def find(self, key: int) -> bytes | None:
        """Return the ticket of an example whose label has come; None if there is none."""
        if key not in self._first:
            return None
        place = self._place(key)
        return (self._first[key] if place < 0 else self._others[key][place])[1]

    def settle(self, key: int) -> None:
        """Drop the ticket that `find` returns, and older ones of the key: the label is learnt."""
        if key not in self._first:
            if self._n and self.stride == 1:
                longer = DELAY_GROWTH * self.longest_delay
                self.longest_delay = min(longer, float(self.n_predicted))
                self.missed += 1
                if self.missed == _MISSED:
                    warnings.warn(_NO_TICKETS, RuntimeWarning, stacklevel=2)
            return
        self.missed = 0
        place = self._place(key)
        first, others = self._first.pop(key), self._others.pop(key, [])
        gone, left = [first, *others[: place + 1]], others[place + 1 :]
        if left:
            self._first[key] = left[0]
        if len(left) > 1:
            self._others[key] = left[1:]
        self._n -= len(gone)
        self.size -= sum(len(ticket) + _OVERHEAD for _, ticket in gone)
        longest, delay = self.longest_delay, float(self.n_predicted - gone[-1][0])
        if not longest:
            self.longest_delay = delay
        elif not others:  # one label that comes far too late counts for little
            self.longest_delay = max(DELAY_DECAY * longest, min(delay, 2.0 * longest + _FEW))

    def _place(self, key: int) -> int:
        """Return which of the later tickets of a key is served; -1 for the first."""
        others = self._others.get(key, [])
        if not others or not self.longest_delay:
            return -1
        expected = self.n_predicted - self.longest_delay
        place = bisect_left(others, expected, key=itemgetter(0))
        if place == len(others):
            return place - 1
        older = others[place - 1] if place else self._first[key]
        return place - (expected - older[0] <= others[place][0] - expected)

    def _recent(self) -> list[tuple[int, int, bytes]]:
        """Entries up to twice the longest delay; all, before a label has come."""
        oldest = self.n_predicted - 2.0 * self.longest_delay if self.longest_delay else 0.0
        return [entry for entry in self._entries() if entry[1] >= oldest]

    def _thin_out(self) -> None:
        entries = self._recent()
        if sum(len(ticket) + _OVERHEAD for _, _, ticket in entries) > self.most // 2:
            entries = entries[1::2]
            self.stride *= 2
        self._set(entries)

    def _entries(self) -> Iterator[tuple[int, int, bytes]]:
        """Keys, numbers and tickets, in the order of the numbers."""
        others = ((key, *entry) for key, entries in self._others.items() for entry in entries)
        first = ((key, *entry) for key, entry in self._first.items())
        return iter(sorted(chain(first, others), key=lambda entry: entry[1]))

    def _set(self, entries: list[tuple[int, int, bytes]]) -> None:
        first: dict[int, tuple[int, bytes]] = {}
        others: dict[int, list[tuple[int, bytes]]] = {}
        for key, number, ticket in entries:
            if key in first:
                others.setdefault(key, []).append((number, ticket))
            else:
                first[key] = number, ticket
        self._first, self._others, self._n = first, others, len(entries)
        self.size = sum(len(ticket) + _OVERHEAD for _, _, ticket in entries)

    # --- state -----------------------------------------------------------------------------------

    def emptied(self) -> Self:
        """Return a new one, which expects the labels of tickets that wait here to find none."""
        empty = type(self)(self.most)
        empty.missed = -self.stride * len(self)
        return empty

    def copy(self) -> Self:
        """Return a copy."""
        copied = type(self)(self.most)
        others = {key: [*entries] for key, entries in self._others.items()}
        vars(copied).update(vars(self), _first=self._first.copy(), _others=others)
        return copied

    def state(self) -> dict[str, Any]:
        """Return the state as plain values and arrays."""
        # Columns rather than rows: 100,000 objects would set off garbage collections.
        keys, rows = [*self._first], [*self._first.values()]
        for key, entries in self._others.items():
            keys += [key] * len(entries)
            rows += entries
        numbers = np.fromiter(map(itemgetter(0), rows), np.int64, len(rows))
        order = np.argsort(numbers, kind="stable")
        ordered = [rows[i][1] for i in order.tolist()]
        sorted_keys = np.fromiter(keys, np.uint64, len(keys))[order]
        if self.last is not None:  # comes last, without a number
            sorted_keys = np.append(sorted_keys, np.uint64(self.last[0]))
            ordered.append(self.last[1])
        return {
            "keys": sorted_keys,
            "numbers": numbers[order],
            "sizes": np.fromiter(map(len, ordered), np.int64, len(ordered)),
            "tickets": np.frombuffer(b"".join(ordered), np.uint8),
            "n_predicted": self.n_predicted,
            "stride": self.stride,
            "longest_delay": self.longest_delay,
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Tickets:
        """Return the tickets of a checked state, which are built when one is asked for.

        A state that is only checked, as before it is written, needs none: 100,000 take 0.1 s.
        """
        restored = cls()
        restored.n_predicted, restored.stride = state["n_predicted"], state["stride"]
        restored.longest_delay = state["longest_delay"]
        if len(state["keys"]) > len(state["numbers"]):
            size = int(state["sizes"][-1])
            restored.last = int(state["keys"][-1]), state["tickets"][-size:].tobytes()
        for name in ("_first", "_others", "_n", "size"):
            delattr(restored, name)  # so that `__getattr__` is asked for it
        restored._stored = state
        return restored

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__.get("_stored")
        if state is None:
            raise AttributeError(name)
        numbers, sizes = state["numbers"].tolist(), state["sizes"][: len(state["numbers"])]
        keys, ends = state["keys"].tolist()[: len(numbers)], np.cumsum(sizes).tolist()
        data = state["tickets"].tobytes()
        tickets = [data[end - n : end] for end, n in zip(ends, sizes.tolist(), strict=True)]
        self._set(list(zip(keys, numbers, tickets, strict=True)))
        del self._stored
        return getattr(self, name)


class Snapshot(NamedTuple):
    """A tracker's state at one time. Its `state` takes longer, while the tracker learns on."""

    shape: Shape
    stored: dict[str, Any]
    tickets: Tickets | None

    def state(self) -> dict[str, Any]:
        """Return the state as plain values and arrays, on any thread.

        Raises
        ------
        CheckpointError
            If there are numbers in it of which no tracker could be restored; it names the array.
        """
        try:
            check_numbers(self.shape, self.stored)
        except ValueError as problem:
            raise CheckpointError(
                f"{problem}, so that it cannot be stored: continue from an earlier checkpoint, and "
                "report this"
            ) from None
        tickets = None if self.tickets is None else self.tickets.state()
        return self.stored | {"tickets": tickets}
