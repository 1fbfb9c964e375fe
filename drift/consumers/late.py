"""A learner whose labels come later, on a topic of their own; see `drift.consumers.join`.

It has two cursors over the features: messages are predicted as they come, and learnt once their
labels have come. What lies between the two is kept, as far as the limit of what waits allows, or
read again.
"""

from __future__ import annotations

from collections import deque
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

from drift.consumers.codec import JsonCodec
from drift.consumers.crash_points import reached
from drift.consumers.dead_letters import dead_letter
from drift.consumers.join import FeatureMessage, Join, LabelMessage
from drift.consumers.learner import Learner, check_record
from drift.consumers.records import Message, Outgoing, Position
from drift.errors import CheckpointError, ConsumerError, MessageError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from drift.consumers.assignment import Place
    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.codec import Codec, Example
    from drift.consumers.metrics import Metrics
    from drift.consumers.options import WorkerOptions

__all__ = ["LateLearner", "check_codec", "settings", "time_of"]

#: Options on which it depends what is learnt.
_SETTINGS = ("labels", "max_age", "grace", "pending", "pending_bytes", "timestamps")


def check_codec(codec: Codec) -> None:
    """Refuse what cannot read labels of a topic of their own.

    Raises
    ------
    ParameterError
        If it has no method for them, or they could not be found.

    Examples
    --------
    >>> check_codec(JsonCodec(require_label=True))
    Traceback (most recent call last):
    drift.errors.ParameterError: require_label would refuse all features, whose labels come ...
    """
    if not hasattr(codec, "decode_label"):
        raise ParameterError(
            f"{type(codec).__name__} has no decode_label: labels of a topic of their own take one"
        )
    if not isinstance(codec, JsonCodec):
        return
    if codec.require_label:
        raise ParameterError(
            "require_label would refuse all features, whose labels come later: leave it out"
        )
    if codec.label is not None and codec.id is None:
        raise ParameterError("labels find their features by the id: say where it is, id in [codec]")


def settings(options: WorkerOptions) -> dict[str, Any]:
    """Return the settings that must be the same for a model to go on, by their names."""
    names = {name: name if name == "labels" else f"labels.{name}" for name in _SETTINGS}
    return {names[name]: getattr(options, name) for name in _SETTINGS}


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
    idle_since : float or None
        Since when the next label waits for features that have not come, as `time.monotonic` has
        it; None where it does not.
    is_told : bool
        Whether the log says so.

    Examples
    --------
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
        sent = {"predictions": options.predictions, "dead_letters": options.dead_letters}
        super().__init__(model, codec, metrics, {}, **sent)
        self.options = options
        number = metrics.partition
        assert number is not None and options.labels is not None  # noqa: PT018, S101
        self.features: Place = (metrics.topic, number)
        self.labels: Place = (options.labels, number)
        self.join = Join(options)
        self.idle_since: float | None = None
        self.is_told = False
        self._begun: tuple[Message, LabelMessage] | None = None
        self._refusal: Exception | None = None  # why that label cannot be learnt
        self._id: str | int | None = None  # of the features at hand
        self._ahead: deque[FeatureMessage] = deque()  # between the two cursors, without a gap
        self._ahead_bytes = 0
        self._until = 0  # where these end
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
        self._until, self.labels_learnt = self.join.features, self.join.labels

    def start(self, first: Mapping[Place, int]) -> None:
        """Begin partitions that no checkpoint knows."""
        super().start(first)
        self._until = self.join.features = first.get(self.features, self._until)
        self.labels_learnt = self.join.labels = first.get(self.labels, self.join.labels)

    def skip(self, offset: int) -> None:
        """Learn nothing of features before an offset, as they are gone."""
        self._until = self.join.features = offset

    def pass_over(self, place: Place, offset: int, leader_epoch: int = -1) -> None:
        """Go on at an offset with nothing to be learnt before it, and have that saved."""
        if place == self.labels:
            self.join.labels = self.labels_learnt = offset
        elif self._until == self.offsets[place]:
            self._until = offset
        super().pass_over(place, offset, leader_epoch)

    # --- messages ------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether a label was begun that is not finished."""
        return self._begun is not None

    @property
    def wanted(self) -> int | None:
        """The offset from which on features have to be read again; None where they need not."""
        if self._begun is None or self._ahead or self._until >= self.offsets[self.features]:
            return None
        return self._until

    @property
    def lowest(self) -> int | None:
        """The offset from which on features were predicted and not learnt; None without these."""
        offset = self.join.features
        return offset if offset < self.offsets.get(self.features, 0) else None

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
        if self._until == before:
            self._keep(message)
        return answer

    def supply(self, messages: Iterable[Message], end: int) -> None:
        """Take features that were read again, from `wanted` up to an offset."""
        for message in messages:
            self._id = None
            try:
                self._id = self._decode(message).id
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001, S110 - it was given up when it was predicted
                pass
            if not self._keep(message):
                return
        self._until = max(end, self._until)

    def _keep(self, message: Message) -> bool:
        """Have features wait for the learning cursor, unless there are too many."""
        size, options = len(message.value or b""), self.options
        if self._ahead and (
            len(self._ahead) >= options.pending or self._ahead_bytes + size > options.pending_bytes
        ):
            return False
        entry = FeatureMessage(message.position.offset, time_of(message), self._id, None, 0)
        if self._id is not None:
            # As they came, which takes a tenth of the memory of what they are decoded to, and is
            # what a checkpoint can hold.
            text = (message.value or b"").decode("latin-1")
            headers = [[name, value and value.decode("latin-1")] for name, value in message.headers]
            entry = entry._replace(features=[text, headers] if headers else text, size=size)
        self._ahead.append(entry)
        self._ahead_bytes += entry.size
        self._until = entry.offset + 1
        return True

    def _learn(self, message: Message) -> list[Outgoing]:
        """Predict a message of the features."""
        example = self._decode(message)
        self._id = example.id
        _, answer = self._predict(message, example)
        self.metrics.unlabelled += 1
        return answer

    def _read_label(self, message: Message) -> LabelMessage:
        offset, time = message.position.offset, time_of(message)
        self._refusal = None
        try:
            example = self._decode(message)
        except MemoryError:
            raise
        except Exception as refusal:  # noqa: BLE001 - whatever a codec of the user's raises
            self._refusal = refusal
            return LabelMessage(offset, time, None, None)
        return LabelMessage(offset, time, example.id, example.label, example.weight)

    def _decode(self, message: Message) -> Any:
        if message.position.topic != self.labels[0]:
            return super()._decode(message)
        check_record(message)
        return self.codec.decode_label(message.value, message.headers)  # type: ignore[attr-defined]

    def advance(self) -> list[Outgoing]:
        """Go on with the label that was begun, as far as features are there."""
        join, ahead = self.join, self._ahead
        while join.waits and ahead:
            features = ahead.popleft()
            self._ahead_bytes -= features.size
            join.read(features)
            self.idle_since = None
        if self._begun is None or join.waits:
            return []
        started = perf_counter()
        answer = self._finish(*self._begun)
        self.metrics.learn_seconds += perf_counter() - started
        self._begun = self.idle_since = None
        self.since_checkpoint += 1
        reached("message.taken")
        return answer

    def _finish(self, message: Message, label: LabelMessage) -> list[Outgoing]:
        given_up = self.join.given_up[-1:] == [(label.offset, self.join.features)]
        outcome = self.join.finish()
        self.offsets[self.labels] = self.labels_learnt = self.join.labels
        self.leader_epochs[self.labels] = message.leader_epoch
        if self._refusal is not None:
            return self._give_up(message, self._refusal)
        if outcome.kind == "orphan":
            return self._orphan(message, label, given_up=given_up)
        if outcome.kind == "learnt":
            self._waited = outcome.waited
            try:
                example = self._example(outcome.features, label)
                self._update(example, self.model.predict_one(example.features))
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - a model of the user's may raise anything
                return self._give_up(message, error)
        return []

    def _example(self, stored: Any, label: LabelMessage) -> Example:
        text, headers = (stored, ()) if isinstance(stored, str) else stored
        given = [(name, value and value.encode("latin-1")) for name, value in headers]
        example = self.codec.decode(text.encode("latin-1"), given)
        return example._replace(label=label.label, weight=label.weight)

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
        metrics = self.metrics
        metrics.counts_of(self.model, self.join.counts)
        metrics.pending, metrics.join_delay = self.join.pending, self._waited
        metrics.blocked = 0.0 if self.idle_since is None else monotonic() - self.idle_since


def time_of(message: Message) -> int:
    """Return the time of a message for a join; -1 where it has none."""
    return -1 if message.timestamp is None else message.timestamp
