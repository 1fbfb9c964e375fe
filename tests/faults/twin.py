"""What must have been learnt, from the logs and the lines of the order alone, by lists.

It shares no code with `drift.consumers`, so that no error is in both. What it knows of records is
their topic, partition, offset, timestamp, value and headers, and of examples the JSON.
"""

from __future__ import annotations

import json
import math
from collections import Counter, deque
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["Order", "Twin", "read_order"]

Place: TypeAlias = tuple[str, int]

#: What `JSON` of a fault test is at most.
_MAX_BYTES = 200_000


@dataclass
class Order:
    """The runs that led to a checkpoint, and what else the files say."""

    runs: list[dict[Place, int]] = field(default_factory=list)
    lines: int = 0  # that led to it
    given_up: int = 0  # lines of checkpoints that it does not come from
    torn: int = 0
    falls: int = 0  # how often the order fell back in time between two checkpoints

    def count(self, other: Order) -> None:
        """Add the counts of another one."""
        self.lines += other.lines
        self.given_up += other.given_up
        self.torn += other.torn
        self.falls += other.falls


def read_order(folder: Path, checkpoint: str) -> Order:
    """Return what the files of the order say of a checkpoint; KeyError where a line is missing."""
    order, output = Order(), {}
    for file in sorted(folder.glob("order-*.jsonl")):
        for text in file.read_bytes().split(b"\n"):
            try:
                line = json.loads(text)
            except ValueError:
                order.torn += bool(text)
            else:
                order.given_up += 1
                output[line["checkpoint"]] = line  # one that was tried again is the later one
    chain = []
    while checkpoint is not None:
        chain.append(output.pop(checkpoint))
        checkpoint = chain[-1]["previous"]
    for line in reversed(chain):
        places = [tuple(place) for place in line["places"]]
        order.falls += max(0, len(line["runs"]) - 1)
        order.runs += [{places[number]: upto for number, upto in run} for run in line["runs"]]
    order.lines = len(chain)
    order.given_up -= len(chain)
    return order


def _times(stamps: Iterable[int], jump: float) -> Iterator[int]:
    """Yield the time after each stamp: it never falls, and jumps where two in a row say so."""
    now: int | None = None
    far: int | None = None
    for stamp in stamps:
        if now is None:
            now = stamp
        elif abs(stamp - now) <= jump:
            now, far = max(now, stamp), None
        elif far is not None and (far > now) is (stamp > now):
            now, far = (min if stamp > now else max)(far, stamp), None
        else:
            far = stamp
        yield now


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _read(value: bytes | None, *, with_features: bool) -> dict[str, Any] | None:
    """Return the object of a message; None where it cannot be learnt."""
    try:
        tree = json.loads((value or b"").decode(), parse_constant=_refuse)
        is_right = len(value or b"") <= _MAX_BYTES and (tree.get("label") in {True, False, None})
        if with_features:
            is_right &= all(math.isfinite(one) for one in tree["features"].values())
        else:
            is_right &= tree["label"] is not None and tree["id"] is not None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return tree if is_right else None


class _Bettor:
    """Who bets on each example that one of the two models alone has right that it is the shadow.

    Each pot has ten shares, of which the half, a quarter and so on are staked each time. A second
    pot is opened after 64 bets, the next ones after twice as many each.
    """

    def __init__(self) -> None:
        self.won = self.lost = 0
        self._pots, self._idle = [[0.05] * 10], 0.5

    def bet(self, *, wins: bool) -> None:
        self.won += wins
        self.lost += not wins
        for pot in self._pots:
            for k, share in enumerate(pot):
                pot[k] += (share if wins else -share) / 2 ** (k + 1)
        number = len(self._pots)
        if self.won + self.lost == 64 * 2 ** (number - 1):
            self._pots.append([0.05 / (number * (number + 1))] * 10)
            self._idle -= sum(self._pots[-1])

    @property
    def money(self) -> float:
        return self._idle + sum(map(sum, self._pots))


class _Kept(NamedTuple):
    """Features that wait: of which record, from when, with what was predicted."""

    place: Place
    offset: int
    time: int
    features: dict[str, float]
    predicted: Any
    size: int
    guess: Any  # the shadow's

    @property
    def ticket(self) -> str:
        return f"{self.place[1]}:{self.offset}"


def _named(model: Any, ticket: str | bool) -> dict[str, Any]:  # noqa: FBT001
    """Return by which name a Tracker keeps what it predicts until its label comes."""
    return {"ticket": ticket} if getattr(model, "late", False) else {}


class Twin:
    """What becomes of logs in the order of runs.

    Parameters
    ----------
    logs
        The records by topic and partition.
    runs
        As of `read_order`.
    options
        Topic of the labels, and how long they wait.
    model
        One that has learnt nothing.
    shadow
        Another one beside it; None for none.
    keyed
        Whether each key has a model of its own.
    """

    def __init__(
        self,
        logs: Mapping[Place, list[Any]],
        runs: Iterable[Mapping[Place, int]],
        options: Any,
        model: Any,
        shadow: Any = None,
        *,
        keyed: bool = False,
    ) -> None:
        self.options, self.model, self.keyed = options, model, keyed
        self.shadow = deepcopy(shadow)
        self.bettor = _Bettor()  # since the last promotion
        self.promotions = 0
        self._next: dict[Place, int] = {}  # offsets
        self._since: dict[Place, int] = {}  # where they were at the last promotion
        self.own: dict[str, Any] = {}  # models by key
        self._first = deepcopy(model)
        self.predictions: dict[str, dict[str, Any]] = {}
        self.poison: dict[tuple[str, int, int], bytes | None] = {}
        self.orphans: dict[tuple[str, int, int], bytes | None] = {}
        self.learnt = self.mistakes = self.unlabelled = 0
        self.counts: Counter[str] = Counter()
        self.waiting: dict[Any, _Kept] = {}
        self.silent: dict[Any, _Kept] = {}
        self.early: dict[Any, tuple[int, bool, Any]] = {}  # time, label, record
        self.done: dict[Any, int] = {}
        self._seen = -1  # the time of the last features
        jump = 1000 * options.max_jump
        self.left = {
            place: deque(zip(_times([r.timestamp for r in log], jump), log, strict=True))
            for place, log in logs.items()
        }
        for run in runs:
            for time, record in self._of(run):
                self._take(time, record)
                self._next[record.topic, record.partition] = record.offset + 1

    def _of(self, run: Mapping[Place, int]) -> list[tuple[int, Any]]:
        """Return the records of a run in their order: features before a label of their time."""
        taken = []
        for place, upto in run.items():
            left = self.left[place]
            while left and left[0][1].offset < upto:
                taken.append(left.popleft())
        labels = self.options.labels
        return sorted(
            taken, key=lambda at: (at[0], at[1].topic == labels, *at[1][:2], at[1].offset)
        )

    def _take(self, time: int, record: Any) -> None:
        if self.options.labels is None:
            self._whole(record)
        elif record.topic == self.options.labels:
            self._age(time)
            self._label(time, record)
            self._give_up_early()
        else:
            self._seen = time
            self._give_up_early()
            self._features(time, record)

    # --- labels in the messages ----------------------------------------------------------------

    def _whole(self, record: Any) -> None:
        tree = _read(record.value, with_features=True)
        if tree is None or (self.keyed and not isinstance(tree.get("key"), str)):
            self.poison[record.topic, record.partition, record.offset] = record.value
            return
        predicted, label = self._predict(record, tree), tree.get("label")
        if label is None:
            self.unlabelled += 1
        elif self.keyed:
            self._learn_own(tree["key"], tree["features"], label, predicted)
        else:
            self._learn(tree["features"], label, predicted, self._guess(tree["features"]))

    def _predict(self, record: Any, tree: dict[str, Any]) -> Any:
        x, model = tree["features"], self.own.get(tree.get("key", ""), self.model)
        has_id = tree.get("id") is not None  # else no label finds its ticket
        named = _named(model, has_id and f"{record.partition}:{record.offset}")
        predicted, chances = model.predict_one(x, **named), model.predict_proba_one(x, **named)
        self.predictions[f"{record.topic}:{record.partition}:{record.offset}"] = {
            "id": tree.get("id"),
            "predicted": predicted,
            "probabilities": {str(label).lower(): share for label, share in chances.items()},
            "label": tree.get("label"),
            **({"key": tree["key"]} if self.keyed else {}),
        }
        return predicted

    def _guess(self, x: dict[str, float], ticket: str = "") -> Any:
        if self.shadow is None:
            return None
        return self.shadow.predict_one(x, **_named(self.shadow, ticket))

    def _learn(
        self,
        x: dict[str, float],
        label: bool,  # noqa: FBT001
        predicted: Any,
        guess: Any,
        *,
        ticket: str = "",
        knew: bool = True,
    ) -> None:
        """Learn by both, and let them change places; `knew` is whether the shadow has guessed."""
        self._update(x, label, ticket)
        self.learnt += 1
        self.mistakes += predicted != label
        if self.shadow is None or not knew or (predicted == label) is (guess == label):
            return
        self.bettor.bet(wins=guess == label)
        if guess == label and self.bettor.money >= self.options.promote:
            self.model, self.shadow = self.shadow, self.model
            self.bettor, self._since = _Bettor(), dict(self._next)
            self.promotions += 1

    def _update(self, x: dict[str, float], label: bool, ticket: str | bool) -> None:  # noqa: FBT001
        self.model.learn_one(x, label, **_named(self.model, ticket))
        if self.shadow is not None:
            self.shadow.learn_one(x, label, **_named(self.shadow, ticket))

    def _learn_kept(self, kept: _Kept, label: bool) -> None:  # noqa: FBT001
        knew = kept.offset >= self._since.get(kept.place, 0)
        x, ticket = kept.features, kept.ticket
        self._learn(x, label, kept.predicted, kept.guess, ticket=ticket, knew=knew)

    def _learn_own(self, key: str, x: dict[str, float], label: bool, predicted: Any) -> None:  # noqa: FBT001
        """Learn by the model of a key, which begins as the topic's where that learns, too."""
        prior = self.options.prior
        if key not in self.own:
            self.own[key] = deepcopy(self.model if prior else self._first)
        self.own[key].learn_one(x, label)
        if prior:
            self.model.learn_one(x, label)
        self.learnt += 1
        self.mistakes += predicted != label

    # --- labels that come later ----------------------------------------------------------------

    def _features(self, time: int, record: Any) -> None:
        tree = _read(record.value, with_features=True)
        if tree is None:
            self.poison[record.topic, record.partition, record.offset] = record.value
            return
        predicted = self._predict(record, tree)
        self.unlabelled += 1
        name, x = tree.get("id"), tree["features"]
        if name is None:
            return
        size = len(record.value) + len(record.key or b"")
        size += sum(len(k) + len(v) for k, v in record.headers)
        place = record.topic, record.partition
        kept = _Kept(place, record.offset, time, x, predicted, size, None)
        kept = kept._replace(guess=self._guess(x, kept.ticket))
        if name in self.early:
            _, label, _ = self.early.pop(name)
            self.done[name] = time
            self.counts["learnt"] += 1
            self._learn_kept(kept, label)
        elif name in self.waiting or name in self.silent or name in self.done:
            self.counts["repeated"] += 1
        else:
            self.waiting[name] = kept
            self._evict()

    def _evict(self) -> None:
        while True:
            sizes = [one.size for one in (*self.silent.values(), *self.waiting.values())]
            if len(sizes) <= self.options.pending and sum(sizes) <= self.options.pending_bytes:
                return
            if self.silent:
                del self.silent[next(iter(self.silent))]
            else:
                del self.waiting[next(iter(self.waiting))]
                self.counts["evicted"] += 1

    def _label(self, time: int, record: Any) -> None:
        tree = _read(record.value, with_features=False)
        if tree is None:
            self.poison[record.topic, record.partition, record.offset] = record.value
            return
        name, label = tree["id"], tree["label"]
        if name in self.waiting:
            kept = self.waiting.pop(name)
            self.done[name] = time
            self.counts["learnt"] += 1
            self._learn_kept(kept, label)
        elif name in self.silent:
            kept = self.silent.pop(name)
            self.done[name] = time
            if label is self.options.silence:
                self.counts["confirmed"] += 1
            else:
                self.counts["corrected"] += 1
                self._update(kept.features, label, ticket=False)  # counted once, by its silence
        elif name in self.done or name in self.early:
            self.counts["duplicate"] += 1
        else:
            self.early[name] = time, label, record

    def _give_up_early(self) -> None:
        """Orphans are those that wait for more than the grace, in the order in which they came."""
        while self.early:
            name, (time, _, record) = next(iter(self.early.items()))
            is_old = time < self._seen - 1000 * self.options.grace
            if not is_old and len(self.early) <= self.options.pending:
                return
            del self.early[name]
            self.counts["orphan"] += 1
            self.orphans[record.topic, record.partition, record.offset] = record.value

    def _age(self, now: int) -> None:
        """What the time of a label makes of those that wait, in the order in which they came."""
        options = self.options
        is_told = options.after is not None
        until = now - 1000 * (options.after if is_told else options.max_age)
        while self.waiting:
            name, kept = next(iter(self.waiting.items()))
            if kept.time >= until:
                break
            del self.waiting[name]
            self.counts["silent" if is_told else "expired"] += 1
            if is_told:
                self.silent[name] = kept
                self._learn_kept(kept, options.silence)
        until -= 1000 * options.correct_for
        while self.silent and next(iter(self.silent.values())).time < until:
            del self.silent[next(iter(self.silent))]
        until = now - 1000 * max(options.max_age, options.correct_for if is_told else 0)
        while self.done and (
            len(self.done) > options.pending or next(iter(self.done.values())) < until
        ):
            del self.done[next(iter(self.done))]

    # --- what a checkpoint has of it -----------------------------------------------------------

    def differences(self, state: Mapping[str, Any]) -> Iterator[str]:
        """Yield what in the state of a join, as a checkpoint has it, is not what waits here."""
        kept = [*self.silent.items(), *self.waiting.items()]
        places = [tuple(place) for place in state["places"]]
        pairs = {
            "counts": (+Counter(state["counts"]), +self.counts),
            "ids": (state["ids"], [name for name, _ in kept]),
            "silent": (state["silent"], len(self.silent)),
            "places": ([places[i] for i in state["place"]], [one.place for _, one in kept]),
            "offsets": (state["offsets"], [one.offset for _, one in kept]),
            "times": (state["times"], [one.time for _, one in kept]),
            "predicted": (state["predicted"], [one.predicted for _, one in kept]),
            "sizes": (state["sizes"], [one.size for _, one in kept]),
            "done": (state["done"], [[*self.done], [*self.done.values()]]),
            "early": (
                [[name, label, time] for name, label, _, time, _ in state["early"]],
                [[name, label, time] for name, (time, label, _) in self.early.items()],
            ),
        }
        yield from (name for name, (theirs, ours) in pairs.items() if theirs != ours)
