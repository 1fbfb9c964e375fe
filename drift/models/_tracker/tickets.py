"""Tickets: what the members said of examples whose labels have not come yet."""

from __future__ import annotations

from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from drift.models._tracker.tables import TICKETS, TICKETS_KEPT

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Moment", "Tickets"]

#: Bytes that Python takes for a ticket beside its own.
_BESIDE = 300


class Tickets:
    """Tickets by what their examples are; of equal examples the first is taken first.

    They take a bounded number of bytes. When that is reached, those go that are twice as old as any
    whose label came lately; if that leaves more than half, every second one goes, and every second
    new one is kept from then on, so that long delays are still sampled.

    Parameters
    ----------
    most
        Bytes that they may take.
    """

    def __init__(self, most: int = TICKETS) -> None:
        self.most = most
        self.size = 0
        self.number = 0  # of examples that were predicted
        self.stride = 1  # one in so many is kept
        self.oldest = 0.0  # age of the tickets that were taken, the longest of the last thousands
        #: Key and ticket of the example that was predicted last, until one is learnt.
        self.asked: tuple[int, bytes] | None = None
        self._held: dict[int, tuple[int, bytes]] = {}
        self._more: dict[int, list[tuple[int, bytes]]] = {}  # of keys that are held

    def __len__(self) -> int:
        return len(self._held) + sum(map(len, self._more.values()))

    def put(self, key: int, ticket: bytes) -> None:
        """Keep a ticket, unless it is one of those that are left out."""
        self.asked = key, ticket
        self.number += 1
        if self.number % self.stride:
            return
        entry = self.number, ticket
        if key in self._held:
            self._more.setdefault(key, []).append(entry)
        else:
            self._held[key] = entry
        self.size += len(ticket) + _BESIDE
        if self.size > self.most:
            self._thin_out()

    def asked_for(self, key: int) -> bytes | None:
        """Return the ticket of an example if it is the one that was predicted last."""
        return self.asked[1] if self.asked is not None and self.asked[0] == key else None

    def find(self, key: int) -> bytes | None:
        """Return the first ticket of an example, which stays."""
        entry = self._held.get(key)
        return None if entry is None else entry[1]

    def drop(self, key: int) -> None:
        """Drop the first ticket of an example, whose label has come."""
        number, ticket = self._held.pop(key)
        if key in self._more:
            self._held[key] = self._more[key].pop(0)
            if not self._more[key]:
                del self._more[key]
        self.size -= len(ticket) + _BESIDE
        self.oldest = max(TICKETS_KEPT * self.oldest, float(self.number - number))

    def _thin_out(self) -> None:
        entries = [entry for entry in self._entries() if entry[1] >= self.number - 2 * self.oldest]
        if not self.oldest:  # no label has come yet
            entries = list(self._entries())
        if sum(len(ticket) + _BESIDE for _, _, ticket in entries) > self.most // 2:
            entries = entries[1::2]
            self.stride *= 2
        else:
            self.stride = max(1, self.stride // 2)
        self._take(entries)

    def _entries(self) -> Iterator[tuple[int, int, bytes]]:
        """Keys, numbers and tickets, in the order of the numbers."""
        more = ((key, *entry) for key, entries in self._more.items() for entry in entries)
        held = ((key, *entry) for key, entry in self._held.items())
        return iter(sorted(chain(held, more), key=lambda entry: entry[1]))

    def _take(self, entries: list[tuple[int, int, bytes]]) -> None:
        held: dict[int, tuple[int, bytes]] = {}
        more: dict[int, list[tuple[int, bytes]]] = {}
        for key, number, ticket in entries:
            if key in held:
                more.setdefault(key, []).append((number, ticket))
            else:
                held[key] = number, ticket
        self._held, self._more = held, more
        self.size = sum(len(ticket) + _BESIDE for _, _, ticket in entries)

    # --- what is stored --------------------------------------------------------------------------

    def copy(self) -> Self:
        """Return others with the same tickets."""
        own = type(self)(self.most)
        more = {key: [*entries] for key, entries in self._more.items()}
        vars(own).update(vars(self), _held=self._held.copy(), _more=more)
        return own

    def state(self) -> dict[str, Any]:
        """Return them as plain values and arrays."""
        # Columns rather than rows: an object for each of 100,000 takes garbage collections.
        keys, rows = [*self._held], [*self._held.values()]
        for key, entries in self._more.items():
            keys += [key] * len(entries)
            rows += entries
        numbers = np.fromiter(map(itemgetter(0), rows), np.int64, len(rows))
        order = np.argsort(numbers, kind="stable")
        ordered = [rows[i][1] for i in order.tolist()]
        sorted_keys = np.fromiter(keys, np.uint64, len(keys))[order]
        if self.asked is not None:  # behind the others, without a number
            sorted_keys = np.append(sorted_keys, np.uint64(self.asked[0]))
            ordered.append(self.asked[1])
        return {
            "keys": sorted_keys,
            "numbers": numbers[order],
            "sizes": np.fromiter(map(len, ordered), np.int64, len(ordered)),
            "tickets": np.frombuffer(b"".join(ordered), np.uint8),
            "number": self.number,
            "stride": self.stride,
            "oldest": self.oldest,
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Tickets:
        """Return the tickets that gave a state, which was checked."""
        own = cls()
        own.number, own.stride, own.oldest = state["number"], state["stride"], state["oldest"]
        data, sizes = state["tickets"].tobytes(), state["sizes"].tolist()
        ends = np.cumsum(state["sizes"]).tolist()
        tickets = [data[end - n : end] for end, n in zip(ends, sizes, strict=True)]
        keys, numbers = state["keys"].tolist(), state["numbers"].tolist()
        if len(keys) > len(numbers):
            own.asked = keys.pop(), tickets.pop()
        own._take(list(zip(keys, numbers, tickets, strict=True)))
        return own


class Moment(NamedTuple):
    """What a tracker is at a moment, while it goes on; the rest of `state` takes much longer."""

    stored: dict[str, Any]
    tickets: Tickets | None

    def state(self) -> dict[str, Any]:
        """Return it as plain values and arrays, on any thread."""
        tickets = None if self.tickets is None else self.tickets.state()
        return self.stored | {"tickets": tickets}
