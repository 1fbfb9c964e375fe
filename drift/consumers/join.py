"""Join late labels, on a separate topic, to their features by id.

Features wait for their label, and a label that comes first waits for its features. The outcome
depends only on the order in which both are read.

==========  =====================================================================================
outcome     of a label
==========  =====================================================================================
learnt      its features waited, or came within `grace`: they are learnt with it
duplicate   its id has a label already: nothing is learnt
orphan      its features have not come within `grace`, or are gone: nothing is learnt
corrected   its features were learnt as `silence`, and it differs: they are learnt again, by it
confirmed   its features were learnt as `silence`, and so it says: nothing is learnt
refused     its features cannot be learnt with it: they wait on, as for a label that is right
==========  =====================================================================================

Features are "expired" once the labels' time is `max_age` beyond them, "silent" where they are
learnt by their silence after `after`, "evicted" where there are too many, and "repeated" where
their id has come before.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from drift._options import Checked, option
from drift.consumers.checkpoints.join_state import as_columns, check_state, early_of, waiting_of
from drift.consumers.waiting import Classes
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from drift.consumers.records import Message, TopicPartition
    from drift.consumers.waiting import Early, Id, Waiting

__all__ = ["Join", "JoinOptions"]

_DAY = 86_400.0
#: Ids of a list of those that have their label.
_FULL = 1024
#: An option of the table [labels].
_option = partial(option, table="labels")


@dataclass(frozen=True, kw_only=True)
class JoinOptions(Checked):
    """How long features and labels wait for each other.

    Parameters
    ----------
    max_age
        Seconds that features wait for their label, and that their id is remembered after.
    grace
        Seconds that a label waits for its features.
    pending
        Most features that wait, most labels that wait, and most ids remembered.
    pending_bytes
        Most bytes of waiting features, headers included, of waiting labels, and of ids remembered.
    silence
        The label of features that have none after `after` seconds; None to learn nothing then.
    after
        Seconds that features wait before `silence` is their label.
    correct_for
        Seconds after that in which a label corrects it.

    Raises
    ------
    ParameterError
        If a value is out of range, or only one of `silence` and `after` is given.
    """

    max_age: float = _option("How long features wait for a label.", _DAY, least=0, duration=True)
    grace: float = _option("How long a label waits for its features.", 60.0, least=0, duration=True)
    pending: int = _option("Most features that wait, most labels, and most ids.", 100_000, least=1)
    pending_bytes: int = _option(
        "Most bytes of messages that wait, of labels, and of ids; not memory.", 64 << 20, least=1
    )
    silence: object | None = _option("Label that features get which have none after `after`.", None)
    after: float | None = _option(
        "How long features wait for a label before they get that of `silence`.",
        None,
        least=0,
        duration=True,
    )
    correct_for: float = _option(
        "How long, once `after` is over, a label may correct them.",
        90 * _DAY,
        least=0,
        duration=True,
    )

    def __post_init__(self) -> None:
        """Check the values."""
        super().__post_init__()
        if (self.silence is None) is not (self.after is None):
            raise ParameterError(
                "silence and after belong together: the label of features that get none, and the "
                "seconds after which they have it"
            )

    @property
    def patience(self) -> float:
        """Milliseconds that features wait."""
        return 1000 * (self.max_age if self.after is None else self.after)

    @property
    def needed(self) -> float:
        """Seconds for which the log has to have features: until no label can come to them."""
        return self.max_age if self.after is None else self.after + self.correct_for

    @property
    def memory(self) -> float:
        """Milliseconds that a labelled id is remembered."""
        return 1000 * max(self.max_age, self.correct_for * (self.after is not None))


class _Done:
    """Labelled ids with the times of their labels, in order.

    Full lists never change again, so a snapshot of 100,000 ids holds references to some hundred
    lists.
    """

    def __init__(self) -> None:
        self._known: set[Id] = set()
        self._bytes = 0  # of the ids
        self._columns: deque[tuple[list[Id], list[int]]] = deque([([], [])])
        self._gone = 0  # of the first list

    def __contains__(self, name: Id) -> bool:
        return name in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, name: Id, time: int) -> None:
        """Add an id that is not there."""
        names, times = self._columns[-1]
        if len(names) == _FULL:
            names, times = [], []
            self._columns.append((names, times))
        names.append(name)
        times.append(time)
        self._known.add(name)
        self._bytes += _size_of(name)

    def forget(self, oldest: float, most: int, most_bytes: int) -> None:
        """Forget the oldest ids beyond a time, a number or their bytes."""
        known = self._known
        while known and (
            len(known) > most
            or self._bytes > most_bytes
            or self._columns[0][1][self._gone] < oldest
        ):
            names, _ = self._columns[0]
            known.discard(names[self._gone])
            self._bytes -= _size_of(names[self._gone])
            self._gone += 1
            if self._gone == _FULL:
                self._gone = 0
                self._columns.popleft()
                if not self._columns:
                    self._columns.append(([], []))

    def snapshot(self) -> Callable[[], list[list[Any]]]:
        """Return a function that encodes the present ids and times, on any thread."""
        *full, (names, times) = self._columns
        columns, gone = [*full, (names[:], times[:])], self._gone
        return lambda: [
            [*islice(chain.from_iterable(column), gone, None)]
            for column in zip(*columns, strict=True)
        ]


def _size_of(name: Id) -> int:
    """Return the bytes of an id."""
    if not isinstance(name, str):
        return 8
    return len(name) if name.isascii() else len(name.encode())


class Join:
    """The waiting features, the early labels and the ids that have both.

    Parameters
    ----------
    options
        How long they wait.

    Attributes
    ----------
    counts : Counter
        Labels and features by what became of them; see the module.
    classes : Classes
        Those whose probabilities wait.

    Examples
    --------
    >>> join = Join(JoinOptions(grace=5))
    >>> from drift.consumers.waiting import Early, Waiting
    >>> join.features("a", Waiting(("orders", 0), 0, 900, predicted=False, size=2, value=b"{}"))
    >>> from drift.consumers.records import Message, Position
    >>> message = Message(Position("frauds", 0, 0), None, b"{}", timestamp=950)
    >>> kind, waiting = join.label("a", Early(message, True, None, 950))
    >>> kind, waiting.value, join.pending
    ('learnt', b'{}', 0)
    >>> join.label("a", Early(message, True, None, 960))
    ('duplicate', None)
    """

    def __init__(self, options: JoinOptions) -> None:
        self.options = options
        self.counts: Counter[str] = Counter()
        self.classes = Classes()
        self._patience, self._memory = options.patience, options.memory
        # Each in the order in which they came.
        self._waiting: OrderedDict[Id, Waiting] = OrderedDict()
        self._silent: OrderedDict[Id, Waiting] = OrderedDict()
        self._early: OrderedDict[Id, Early] = OrderedDict()
        self._done = _Done()
        self._missing: dict[tuple[TopicPartition, int], Id] = {}
        self._bytes = self._early_bytes = 0
        self._time = -1  # of the last features

    @property
    def pending(self) -> int:
        """Number of features that wait for their label."""
        return len(self._waiting)

    # --- what comes ----------------------------------------------------------------------------

    def features(
        self, name: Id, waiting: Waiting, learn: Callable[[Early], bool] = lambda _: True
    ) -> Early | None:
        """Let features wait, or have them be learnt with their label if it came first; return that.

        `learn` says whether they could be learnt: if not, they wait for another label.
        """
        early = self._early.pop(name, None)
        if early is not None:
            self._early_bytes -= early.size
            if learn(early):
                self._done.add(name, waiting.time)
                self.counts["learnt"] += 1
                return early
        elif name in self._waiting or name in self._done or name in self._silent:
            self.counts["repeated"] += 1
            return None
        self._waiting[name] = waiting
        self._bytes += waiting.size
        self._make_room()
        return early

    def label(
        self, name: Id, early: Early, learn: Callable[[str, Waiting], bool] = lambda *_: True
    ) -> tuple[str, Waiting | None]:
        """Return the outcome of a label, and the features that were learnt with it.

        Beside the outcomes of the module there is "early": it waits for its features. `learn` is
        given "learnt" or "corrected" and the features; it says whether they could be learnt.
        """
        kind, table = "learnt", self._waiting
        waiting = table.get(name)
        if waiting is None:
            table = self._silent
            waiting = table.get(name)
            kind = "confirmed" if early.label == self.options.silence else "corrected"
        if waiting is not None:
            if kind != "confirmed" and not learn(kind, waiting):
                return "refused", None
            del table[name]
            self._bytes -= waiting.size
            self._done.add(name, early.time)
        elif name in self._done or name in self._early:
            kind = "duplicate"
        else:
            self._early[name] = early
            self._early_bytes += early.size
            return "early", None
        self.counts[kind] += 1
        return kind, None if kind == "confirmed" else waiting

    def _make_room(self) -> None:
        options = self.options
        while (
            self._bytes > options.pending_bytes
            or len(self._waiting) + len(self._silent) > options.pending
        ):
            # What was learnt by its silence is the oldest, and the least loss.
            which = self._silent or self._waiting
            self.counts["evicted"] += which is self._waiting
            self._bytes -= which.popitem(last=False)[1].size

    # --- what becomes too old ------------------------------------------------------------------

    def orphans(self, time: int | None = None) -> list[Early]:
        """Forget and return the labels that waited for too long, or have no room.

        Parameters
        ----------
        time
            That of features that come; None where a label came.
        """
        if time is not None:
            self._time = time
        orphans = []
        while self._early:
            name, early = next(iter(self._early.items()))
            latest = self._time - 1000 * self.options.grace
            has_room = (
                len(self._early) <= self.options.pending
                and self._early_bytes <= self.options.pending_bytes
            )
            if early.time >= latest and has_room:
                break
            del self._early[name]
            self._early_bytes -= early.size
            self.counts["orphan"] += 1
            orphans.append(early)
        return orphans

    def silent(self, time: int) -> Iterator[Waiting]:
        """Yield the features that get the label silence by this time.

        Older features and ids expire. Features behind younger ones, of a partition whose time is
        ahead, stay until these go.
        """
        options = self.options
        oldest = time - self._patience
        while self._waiting and (first := next(iter(self._waiting.values()))).time < oldest:
            name, _ = self._waiting.popitem(last=False)
            if options.silence is None:
                self.counts["expired"] += 1
                self._bytes -= first.size
            else:
                self.counts["silent"] += 1
                self._silent[name] = first
                yield first
        oldest -= 1000 * options.correct_for
        while self._silent and next(iter(self._silent.values())).time < oldest:
            self._bytes -= self._silent.popitem(last=False)[1].size
        self._done.forget(time - self._memory, options.pending, options.pending_bytes)

    # --- checkpoints ---------------------------------------------------------------------------

    def snapshot(self) -> Callable[[], tuple[dict[str, Any], bytes]]:
        """Return a function that encodes the join as it is now: JSON columns, and values.

        Values of the oldest features are stored, up to 4 MiB, as they may be few among many
        messages. Newer ones, most of which still wait, are read again from the log. The result may
        be called on another thread while this join changes.
        """
        ids, rows = (
            [*self._silent, *self._waiting],
            [*self._silent.values(), *self._waiting.values()],
        )
        done, early = self._done.snapshot(), ([*self._early], [*self._early.values()])
        state = {
            "time": self._time,
            "silent": len(self._silent),
            "counts": dict(self.counts),
            "classes": [*self.classes.labels],
        }
        return lambda: as_columns(state, ids, rows, done, early)

    @classmethod
    def restore(
        cls,
        state: Mapping[str, Any],
        values: bytes,
        options: JoinOptions,
        offsets: Mapping[TopicPartition, int],
    ) -> Join:
        """Return the join of a `snapshot`, under the same options.

        `missing` lists features whose values are not stored, until `supply` has them. `offsets`
        are the next ones: what waits was read before them.
        """
        check_state(state, values, offsets)
        join = cls(options)
        join._time = state["time"]
        join.counts.update(state["counts"])
        join.classes = Classes(state["classes"])
        for name, time in zip(*state["done"], strict=True):
            join._done.add(name, time)
        for name, early in early_of(state):
            join._early[name] = early
            join._early_bytes += early.size
        for i, (name, waiting) in enumerate(waiting_of(state, values)):
            (join._silent if i < state["silent"] else join._waiting)[name] = waiting
            join._bytes += waiting.size
            if i >= len(state["lengths"]):
                join._missing[waiting.place, waiting.offset] = name
        return join

    def missing(self) -> dict[TopicPartition, int]:
        """Return the first offset of each partition whose features have to be read again."""
        first: dict[TopicPartition, int] = {}
        for place, offset in self._missing:
            first[place] = min(offset, first.get(place, offset))
        return first

    def supply(self, message: Message, id_of: Callable[[Message], Id | None] | None = None) -> None:
        """Fill in the value of waiting features from a message that was read again.

        Where `id_of` gives it another id they are still missing: the log was made anew.
        """
        topic, partition, offset = message.position
        name = self._missing.get(((topic, partition), offset))
        if name is None or (id_of is not None and id_of(message) != name):
            return
        del self._missing[(topic, partition), offset]
        table = self._silent if name in self._silent else self._waiting
        table[name] = table[name]._replace(
            value=message.value or b"",
            headers=message.headers,
            key=message.key,
            timestamp=message.timestamp,
        )

    def drop(self, place: TopicPartition, before: int) -> int:
        """Drop features that the log no longer has; return how many."""
        gone = [at for at in self._missing if at[0] == place and at[1] < before]
        for at in gone:
            name = self._missing.pop(at)
            table = self._silent if name in self._silent else self._waiting
            self._bytes -= table.pop(name).size
            self.counts["evicted"] += table is self._waiting
        return len(gone)
