"""Labels that come later, on a topic of their own, joined to the messages that they belong to.

What is learnt is a function of two logs, that of the features and that of the labels, and of
nothing else: not of the clock, of how much a fetch brings, or of where a worker was started again.

The labels are taken in their order. For each, features are read until the label's id is among
them, or until their log is `grace` beyond the label. Features wait for their label until the log of
labels is `max_age` beyond them, or until there are too many: then the lowest offset goes first.
Times are those of the logs, and in each the latest so far, so that they never go back.

==========  =====================================================================================
outcome     of a label
==========  =====================================================================================
learnt      its features were there: they are learnt with it, and their id is done
duplicate   its id is done already: nothing is learnt
orphan      its id has not come in time, or is gone: nothing is learnt
refused     it has no id, as what cannot be read: nothing is learnt
==========  =====================================================================================
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from drift._options import check_options, option
from drift.consumers.records import as_json
from drift.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drift.consumers.records import Message
    from drift.types import Label

__all__ = ["Ahead", "FeatureMessage", "Join", "JoinOptions", "LabelMessage", "Outcome"]


#: Labels that were given up of which a checkpoint tells.
_GIVEN_UP = 1_000


class FeatureMessage(NamedTuple):
    """A message of the first log; one that cannot be joined, as poison, has no id.

    `time` is that of the log, in milliseconds; `size` the bytes that it takes while it waits. The
    join hands `features` on as they are: any value but None, of JSON's types where `Join.state` is
    to be stored.
    """

    offset: int
    time: int
    id: str | int | None
    features: Any
    size: int = 0


class LabelMessage(NamedTuple):
    """A message of the second log; one that cannot be joined has no id."""

    offset: int
    time: int
    id: str | int | None
    label: Label
    weight: float | None = None


class Outcome(NamedTuple):
    """What became of a label; where it is learnt its features, and the seconds that they waited."""

    kind: str
    features: Any = None
    waited: float = 0.0


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    """How long features and labels wait for each other.

    Parameters
    ----------
    max_age
        Seconds for which features wait for their label, and their id is known afterwards.
    grace
        Seconds by which a label may come before its features.
    pending
        Number of ids that are kept, waiting or done.
    pending_bytes
        Bytes that features take while they wait, their headers too.
    """

    max_age: float = option("Seconds for which features wait for a label.", 86_400.0, least=0)
    grace: float = option("Seconds by which a label may precede its features.", 60.0, least=0)
    pending: int = option("Largest number of ids kept, waiting or learnt.", 100_000, least=1)
    pending_bytes: int = option("Largest number of bytes of features that wait.", 64 << 20, least=1)

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        check_options(self)


class _Kept(NamedTuple):
    """An id that came; without features once it is done."""

    offset: int
    time: float
    features: Any
    size: int


class Join:
    """The state of one partition's join; see the module.

    A label is begun, then features are read while it `waits`, and then it is finished. A state that
    is stored while a label waits has that label begun again, which drops nothing more: of features
    that were read for it, some may be too old for it by now.

    Parameters
    ----------
    options
        How long features and labels wait.

    Attributes
    ----------
    features, labels : int
        Next offsets of the two logs.
    pending : int
        Number of features that wait for their label.
    counts : Counter
        Labels by outcome; features that "expired", were "evicted" for others, or "repeated" an id.
    given_up : list of (int, int)
        Labels that were given up before their time, with the features' next offset then: the last
        1,000, which is what a checkpoint has of them. The orphans have them all.

    Examples
    --------
    >>> join = Join(JoinOptions(grace=5))
    >>> join.begin(LabelMessage(offset=0, time=1_000, id="b", label=True))
    >>> join.waits
    True
    >>> join.read(FeatureMessage(offset=0, time=900, id="a", features={"x": 1.0}))
    >>> join.read(FeatureMessage(offset=1, time=950, id="b", features={"x": 2.0}))
    >>> join.waits
    False
    >>> join.finish()
    Outcome(kind='learnt', features={'x': 2.0}, waited=0.05)
    """

    def __init__(self, options: JoinOptions) -> None:
        self.options = options
        self.features = self.labels = self.pending = 0
        self.counts: Counter[str] = Counter()
        self.given_up: list[tuple[int, int]] = []
        self._features_time = self._labels_time = -math.inf
        # In the order of their offsets; the first of a dict is looked for behind all that are gone.
        self._kept: OrderedDict[str | int, _Kept] = OrderedDict()
        self._bytes = 0
        self._label: LabelMessage | None = None
        self._begun = -1  # offset of the last label that was

    @property
    def waits(self) -> bool:
        """Whether the label that was begun needs more features."""
        label = self._label
        return (
            label is not None
            and label.id is not None
            and label.id not in self._kept
            and (label.offset, self.features) not in self.given_up[-1:]
            and self._features_time <= label.time + 1000 * self.options.grace
        )

    def begin(self, label: LabelMessage) -> None:
        """Take the next label; features that are too old for it are dropped."""
        self._label = label
        if label.offset == self._begun:
            return
        self.labels = self._begun = label.offset
        self._labels_time = max(self._labels_time, label.time)
        oldest = self._labels_time - 1000 * self.options.max_age
        while self._kept and next(iter(self._kept.values())).time < oldest:
            self._pop("expired")

    def read(self, message: FeatureMessage) -> None:
        """Take the next features."""
        self.features = message.offset + 1
        self._features_time = max(self._features_time, message.time)
        if message.id is None:
            return
        if message.id in self._kept:
            self.counts["repeated"] += 1
            return
        self._kept[message.id] = _Kept(
            message.offset, self._features_time, message.features, message.size
        )
        self._bytes += message.size
        self.pending += 1
        while len(self._kept) > self.options.pending or self._bytes > self.options.pending_bytes:
            self._pop("evicted")

    def give_up(self) -> None:
        """Wait no longer for the features of a label: a decision that a replay has to be told."""
        if self._label is not None and self.waits:
            self.given_up.append((self._label.offset, self.features))
            del self.given_up[:-_GIVEN_UP]

    def finish(self) -> Outcome:
        """Return what becomes of the label; the next one may be begun.

        Raises
        ------
        ParameterError
            If no label was begun.
        """
        label, self._label = self._label, None
        if label is None:
            raise ParameterError("no label was begun: begin one before it is finished")
        self.labels = label.offset + 1
        kept = None if label.id is None else self._kept.get(label.id)
        if kept is None:
            outcome = Outcome("refused" if label.id is None else "orphan")
        elif kept.features is None:
            outcome = Outcome("duplicate")
        else:
            outcome = Outcome("learnt", kept.features, (label.time - kept.time) / 1000)
            self._kept[label.id] = _Kept(kept.offset, kept.time, None, 0)  # type: ignore[index]
            self._bytes -= kept.size
            self.pending -= 1
        self.counts[outcome.kind] += 1
        return outcome

    def _pop(self, why: str) -> None:
        """Drop what has the lowest offset."""
        _, kept = self._kept.popitem(last=False)
        if kept.features is not None:
            self._bytes -= kept.size
            self.pending -= 1
            self.counts[why] += 1

    # --- checkpoints ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that the join is, in JSON's own types."""
        times = (self._features_time, self._labels_time)
        return {
            "offsets": [self.features, self.labels, self._begun],
            "times": [None if time == -math.inf else time for time in times],
            "kept": [[name, *kept] for name, kept in self._kept.items()],
            "counts": dict(sorted(self.counts.items())),
            "given_up": [list(one) for one in self.given_up],
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any], options: JoinOptions) -> Join:
        """Return the join of which `state` returned this, under the same options."""
        join = cls(options)
        join.features, join.labels, join._begun = state["offsets"]
        times = [-math.inf if time is None else time for time in state["times"]]
        join._features_time, join._labels_time = times
        join._kept.update((name, _Kept(*kept)) for name, *kept in state["kept"])
        waiting = [kept for kept in join._kept.values() if kept.features is not None]
        join.pending, join._bytes = len(waiting), sum(kept.size for kept in waiting)
        join.counts.update(state["counts"])
        join.given_up = [(label, features) for label, features in state["given_up"]]
        return join


class Ahead:
    """Features that were predicted and not yet joined, without a gap, as far as there is room.

    Parameters
    ----------
    options
        How many there may be.

    Attributes
    ----------
    end : int
        Where they end: the offset from which on features have to be read again.

    Examples
    --------
    >>> from drift.consumers.records import Message, Position
    >>> ahead = Ahead(JoinOptions(pending=1))
    >>> two = [Message(Position("orders", 0, i), None, b"{}", timestamp=9) for i in (0, 1)]
    >>> [ahead.keep(one, "a") for one in two]
    [True, False]
    >>> ahead.end, ahead.take()
    (1, FeatureMessage(offset=0, time=9, id='a', features='{}', size=2))
    """

    def __init__(self, options: JoinOptions) -> None:
        self.options = options
        self.end = 0
        self._entries: deque[FeatureMessage] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, message: Message, id: str | int | None) -> bool:  # noqa: A002
        """Have features wait for the learning cursor; say whether there is room."""
        size, options = message.size, self.options
        if self._entries and (
            len(self) >= options.pending or self._bytes + size > options.pending_bytes
        ):
            return False
        entry = FeatureMessage(message.position.offset, message.time, id, None, 0)
        if id is not None:
            # As they came, which takes a tenth of the memory of what they are decoded to.
            entry = entry._replace(features=as_json(message), size=size)
        self._entries.append(entry)
        self._bytes += entry.size
        self.end = entry.offset + 1
        return True

    def take(self) -> FeatureMessage:
        """Take the next ones away."""
        entry = self._entries.popleft()
        self._bytes -= entry.size
        return entry
