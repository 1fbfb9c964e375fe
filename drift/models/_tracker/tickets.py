"""Tickets: the members' scores of examples that wait for their labels."""

from __future__ import annotations

from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from drift.models._tracker.tables import DELAY_DECAY, TICKET_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Snapshot", "Tickets"]

#: Bytes of Python's objects for a ticket.
_OVERHEAD = 300


class Tickets:
    """Tickets by key of their examples; equal examples are served in order.

    Their size is bounded. At the bound, tickets are dropped that are twice as old as any whose
    label came lately. If more than half remain, every second one is dropped, and only every second
    new one is kept from then on, so that long delays are still sampled.

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
        self.longest_delay = 0.0  # in predictions, decays
        #: Key and ticket of the last prediction, until an example is learnt.
        self.last: tuple[int, bytes] | None = None
        self._first: dict[int, tuple[int, bytes]] = {}
        self._others: dict[int, list[tuple[int, bytes]]] = {}  # later tickets of the same keys

    def __len__(self) -> int:
        return len(self._first) + sum(map(len, self._others.values()))

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
        self.size += len(ticket) + _OVERHEAD
        if self.size > self.most:
            self._thin_out()

    def last_ticket(self, key: int) -> bytes | None:
        """Return the ticket of an example if it was predicted last."""
        return self.last[1] if self.last is not None and self.last[0] == key else None

    def find(self, key: int) -> bytes | None:
        """Return the first ticket of an example."""
        entry = self._first.get(key)
        return None if entry is None else entry[1]

    def drop(self, key: int) -> None:
        """Drop the first ticket of an example that was learnt."""
        number, ticket = self._first.pop(key)
        if key in self._others:
            self._first[key] = self._others[key].pop(0)
            if not self._others[key]:
                del self._others[key]
        self.size -= len(ticket) + _OVERHEAD
        delay = float(self.n_predicted - number)
        self.longest_delay = max(DELAY_DECAY * self.longest_delay, delay)

    def _thin_out(self) -> None:
        oldest = self.n_predicted - 2 * self.longest_delay
        entries = [entry for entry in self._entries() if entry[1] >= oldest]
        if not self.longest_delay:  # no label has come yet
            entries = list(self._entries())
        if sum(len(ticket) + _OVERHEAD for _, _, ticket in entries) > self.most // 2:
            entries = entries[1::2]
            self.stride *= 2
        else:
            self.stride = max(1, self.stride // 2)
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
        self._first, self._others = first, others
        self.size = sum(len(ticket) + _OVERHEAD for _, _, ticket in entries)

    # --- state -----------------------------------------------------------------------------------

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
        """Return the tickets of a checked state."""
        restored = cls()
        restored.n_predicted, restored.stride = state["n_predicted"], state["stride"]
        restored.longest_delay = state["longest_delay"]
        data, sizes = state["tickets"].tobytes(), state["sizes"].tolist()
        ends = np.cumsum(state["sizes"]).tolist()
        tickets = [data[end - n : end] for end, n in zip(ends, sizes, strict=True)]
        keys, numbers = state["keys"].tolist(), state["numbers"].tolist()
        if len(keys) > len(numbers):
            restored.last = keys.pop(), tickets.pop()
        restored._set(list(zip(keys, numbers, tickets, strict=True)))
        return restored


class Snapshot(NamedTuple):
    """A tracker's state at one time. Its `state` takes longer, while the tracker learns on."""

    stored: dict[str, Any]
    tickets: Tickets | None

    def state(self) -> dict[str, Any]:
        """Return the state as plain values and arrays, on any thread."""
        tickets = None if self.tickets is None else self.tickets.state()
        return self.stored | {"tickets": tickets}
