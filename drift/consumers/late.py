"""A learner whose labels come later, on a topic of their own; see `drift.consumers.join`.

It has two cursors over the features: messages are predicted as they come, and learnt once their
labels have come. What lies between the two is kept, as far as the limit of what waits allows, or
read again.
"""

from __future__ import annotations

import logging
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

from drift.consumers._json import check_kind, is_text, plain
from drift.consumers.assignment import Place, offset_behind_gap
from drift.consumers.crash_points import reached
from drift.consumers.dead_letters import dead_letter
from drift.consumers.join import Ahead, Join, LabelMessage
from drift.consumers.learner import Learner, attempt, decoded, predict_then_learn
from drift.consumers.records import Gap, Message, Outgoing, Position, from_json
from drift.errors import CheckpointError, ConsumerError, MessageError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.codec import Codec, Example
    from drift.consumers.metrics import Metrics
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import Source

__all__ = ["LateLearner", "identified"]

log = logging.getLogger("drift.consumers")

#: Seconds after which it is said that a label waits and no features come.
_PATIENCE = 30.0


def identified(decode: Callable[..., Example], message: Message) -> Example:
    """Return what a codec's method makes of a message, with an id that a checkpoint gives back."""
    example = decoded(decode, message)
    name = plain(example.id)
    if name is not None:
        check_kind(name, "id", (str, int), "a string or an integer of 64 bits")
        if type(name) is str and not is_text(name):
            raise MessageError("id", "holds half of a surrogate pair: mend the text")
    return example if name is example.id else example._replace(id=name)


class LateLearner(Learner):
    """A learner that predicts the messages of one topic and learns them by labels of another.

    Parameters
    ----------
    model, codec, metrics
        As of `Learner`; the codec reads labels by `decode_label`.
    options
        The topic of the labels, how long they are waited for, and what is sent where.

    Attributes
    ----------
    features, labels : tuple
        The two partitions.
    join : Join
        Which features wait, and which ids are done.

    Examples
    --------
    >>> from drift.consumers.codec import JsonCodec
    >>> from drift.consumers.metrics import Metrics
    >>> from drift.consumers.options import WorkerOptions
    >>> from drift.models import LBP
    >>> options = WorkerOptions(topic="orders", group="g", labels="frauds", timestamps="create")
    >>> learner = LateLearner(LBP(budget=9), JsonCodec(), Metrics("orders", 0), options)
    >>> learner.start({("orders", 0): 0, ("frauds", 0): 0})
    >>> label = Message(Position("frauds", 0, 0), None, b'{"id": 7, "label": true}', timestamp=5)
    >>> learner.take(label), learner.waits
    ([], True)
    >>> value = b'{"id": 7, "features": {"sum": 1.0}}'
    >>> learner.take(Message(Position("orders", 0, 0), None, value, timestamp=9))
    []
    >>> learner.advance(), learner.waits, learner.offsets, learner.metrics.examples
    ([], False, {('orders', 0): 1, ('frauds', 0): 1}, 1)
    """

    def __init__(self, model: Any, codec: Codec, metrics: Metrics, options: WorkerOptions) -> None:
        super().__init__(model, codec, metrics, options)
        number = metrics.partition
        assert number is not None and options.labels is not None  # noqa: PT018, S101
        self.features: Place = (metrics.topic, number)
        self.labels: Place = (options.labels, number)
        self.join = Join(options)
        self._idle_since: float | None = None  # since when a label waits and no features come
        self._is_told = False
        self._begun: tuple[Message, LabelMessage] | None = None
        self._refusal: Exception | None = None  # why that label cannot be learnt
        self._id: str | int | None = None  # of the features at hand
        self._ahead = Ahead(options)
        self._waited = 0.0

    # --- checkpoints ---------------------------------------------------------------------------

    def join_state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps of the join."""
        return self.join.state()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint: the features that lie between the cursors are read again."""
        super().restore(checkpoint)
        try:
            self.join = Join.restore(checkpoint.join or {}, self.options)
        except (KeyError, TypeError, ValueError) as problem:
            raise CheckpointError(
                f"checkpoint {checkpoint.id} has no state of labels: {problem!r:.80}"
            ) from problem
        self._ahead.end = self.join.features

    def start(self, first: Mapping[Place, int]) -> None:
        """Begin partitions that no checkpoint knows."""
        super().start(first)
        self._ahead.end = self.join.features = first.get(self.features, self._ahead.end)
        self.join.labels = first.get(self.labels, self.join.labels)

    def pass_over(self, place: Place, offset: int, leader_epoch: int = -1) -> None:
        """Go on at an offset with nothing to be learnt before it, and have that saved."""
        if place == self.labels:
            self.join.labels = offset
        elif self._ahead.end == self.offsets[place]:
            self._ahead.end = offset
        super().pass_over(place, offset, leader_epoch)

    # --- messages ------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether a label was begun that is not finished."""
        return self._begun is not None

    @property
    def wanted(self) -> int | None:
        """The offset from which on features have to be read again; None where they need not."""
        end = self._ahead.end
        behind = self._begun is not None and not self._ahead and end < self.offsets[self.features]
        return end if behind else None

    def check(self, messages: Iterable[Message]) -> None:
        """Refuse messages whose timestamp is that of a producer, unless that was asked for."""
        for message in messages:
            if not message.appended and self.options.timestamps != "create":
                raise ConsumerError(
                    f"{message.position} has the time of its producer, not of the log: set "
                    "message.timestamp.type=LogAppendTime for the topic, or take it as it is with "
                    "timestamps = 'create', --timestamps create"
                )

    def take(self, message: Message) -> list[Outgoing]:
        """Predict the message, or learn by it if it is a label; return what is to be sent.

        A label whose features have not come is begun: `advance` goes on with it.
        """
        place, before = message.position[:2], self.offsets[message.position[:2]]
        if message.position.offset < before:
            return []
        if place == self.labels:
            self._begun = message, self._read_label(message)
            self.join.begin(self._begun[1])
            return self.advance()
        self._id = None
        answer = super().take(message)
        if self._ahead.end == before:
            self._ahead.keep(message, self._id)
        return answer

    def supply(self, messages: Iterable[Message], end: int) -> None:
        """Take features that were read again, from `wanted` up to an offset."""
        for message in messages:
            # Where it cannot be read it was given up when it was predicted.
            example, _ = attempt(identified, self.codec.decode, message)
            if not self._ahead.keep(message, example and example.id):
                return
        self._ahead.end = max(end, self._ahead.end)

    def _learn(self, message: Message) -> list[Outgoing]:
        """Predict a message of the features."""
        example = identified(self.codec.decode, message)
        self._id = example.id
        _, answer = self._predict(message, example, labels_learnt=self.join.labels)
        self.metrics.unlabelled += 1
        return answer

    def _read_label(self, message: Message) -> LabelMessage:
        decode = self.codec.decode_label  # type: ignore[attr-defined]
        example, self._refusal = attempt(identified, decode, message)
        said = (None, None) if example is None else (example.id, example.label, example.weight)
        return LabelMessage(message.position.offset, message.time, *said)

    def advance(self) -> list[Outgoing]:
        """Go on with the label that was begun, as far as features are there."""
        join, ahead = self.join, self._ahead
        while join.waits and ahead:
            join.read(ahead.take())
            self._idle_since = None
        if self._begun is None or join.waits:
            return []
        started = perf_counter()
        answer = self._finish(*self._begun)
        self.metrics.learn_seconds += perf_counter() - started
        self._begun = self._idle_since = None
        self.since_checkpoint += 1
        reached("message.taken")
        return answer

    def _finish(self, message: Message, label: LabelMessage) -> list[Outgoing]:
        given_up = self.join.given_up[-1:] == [(label.offset, self.join.features)]
        outcome = self.join.finish()
        self.offsets[self.labels] = self.join.labels
        self.leader_epochs[self.labels] = message.leader_epoch
        error = self._refusal
        if outcome.kind == "orphan":
            return self._orphan(message, label, given_up=given_up)
        if outcome.kind == "learnt":
            self._waited = outcome.waited
            _, error = attempt(self._learn_by, outcome.features, label)
        return [] if error is None else self._give_up(message, error)

    def _learn_by(self, stored: Any, label: LabelMessage) -> None:
        """Learn features, as they were kept, by their label."""
        features, *_ = self.codec.decode(*from_json(stored))
        predicted = predict_then_learn(self.model, features, label.label, label.weight)
        self.metrics.learnt(predicted != label.label)

    def _orphan(self, message: Message, label: LabelMessage, *, given_up: bool) -> list[Outgoing]:
        if self.options.orphans is None:
            return []
        upto = Position(*self.features, self.join.features)
        why = "given up, as nothing came after" if given_up else "no features have it up to"
        return [
            dead_letter(
                message, MessageError(repr(label.id), f"{why} {upto}"), self.options.orphans
            )
        ]

    def note(self) -> None:
        """Have the metrics show how far it is."""
        since, counts = self._idle_since, self.join.counts
        self.metrics.counts_of(
            self.model,
            pending=self.join.pending,
            join_delay_seconds=self._waited,
            blocked_seconds=0.0 if since is None else monotonic() - since,
            orphans=counts["orphan"],
            duplicates=counts["duplicate"],
        )

    # --- from the broker -----------------------------------------------------------------------

    def look(self, source: Source, folder: AnyPath) -> None:
        """Refuse to go on where features are gone that were predicted and not learnt."""
        offset = self.join.features
        if source.bound(self.features, "earliest") > offset < self.offsets.get(self.features, 0):
            self._skip(source, offset, folder)

    def go_on(self, source: Source, folder: AnyPath, until: float) -> Iterator[None]:
        """Read features again for the label that was begun; yield where `advance` may go on."""
        yield
        place = self.features
        while (offset := self.wanted) is not None and monotonic() < until:
            try:
                messages, end = source.again(place, offset)
            except UnavailableError as error:
                log.info("%s:%d: %s", *place, error)
                return
            except Gap:
                self._skip(source, offset, folder)
            else:
                predicted = self.offsets[place]
                old = (m for m in messages if m.position.offset < predicted)
                self.supply(old, min(end, predicted))
            yield

    def _skip(self, source: Source, offset: int, folder: AnyPath) -> None:
        """Learn nothing of features that are gone, if that is what was asked for."""
        self._ahead.end = self.join.features = offset_behind_gap(
            source, self.features, offset, self.options.on_gap, folder
        )
        self.since_checkpoint += 1

    def gives_up(self, source: Source) -> bool:
        """Give up a label that has waited for too long; say once that one waits while none come.

        What is predicted from now on depends on it: it is to be saved before.
        """
        if self.wanted is not None:
            return False
        now, limit = monotonic(), self.options.idle_timeout
        if self._idle_since is None:
            self._idle_since, self._is_told = now, False
        waited = now - self._idle_since
        if waited > _PATIENCE and not self._is_told:
            self._is_told = True
            log.warning(
                "%s:%d: nothing is learnt for %d s: the features of label %d have not come, and "
                "there are no others after %s:%d:%d",
                *(*self.labels, waited, self.offsets[self.labels]),
                *(*self.features, self.offsets[self.features]),
            )
        if limit is None or waited <= limit or not self._is_at_end(source):
            return False
        self.join.give_up()
        return True

    def _is_at_end(self, source: Source) -> bool:
        """Say whether the broker has no features beyond those that came."""
        position = source.position(self.features)
        try:
            end = source.bound(self.features, "latest")
        except UnavailableError:
            return False
        return position is not None and position[0] >= end
