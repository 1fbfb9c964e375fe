"""A learner whose labels come later, on a separate topic; see `drift.consumers.join`."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from drift._checks import counted, is_text
from drift._durations import shown
from drift.consumers._json import check_kind, plain
from drift.consumers.answers import UNSEEN, Answer
from drift.consumers.dead_letters import NO_FAULT_OF_IT, caught, dead_letter
from drift.consumers.gaps import offset_behind_gap
from drift.consumers.join import Join
from drift.consumers.learner import Learner, decoded
from drift.consumers.metrics import Metrics
from drift.consumers.preparing import is_compacted
from drift.consumers.records import Gap, Message, Outgoing
from drift.consumers.unmatched import Unmatched
from drift.consumers.waiting import Early, Waiting
from drift.errors import (
    CheckpointError,
    ConsumerError,
    MessageError,
    SkippedError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from drift.consumers.checkpoints.checkpoint import Checkpoint
    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.codec import Codec, Example
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import Logs, TopicPartition
    from drift.consumers.waiting import Id
    from drift.types import Label

__all__ = ["LateLearner", "check_configs", "identified", "learner_of"]

log = logging.getLogger("drift.consumers")

#: Outcomes that metrics have under the same name.
_COUNTED = "repeated", "expired", "evicted", "silent", "corrected"


def check_configs(
    configs: Mapping[str, Mapping[str, str]], options: WorkerOptions, partitions: int
) -> None:
    """Refuse compacted topics, and warn if features are deleted while they wait for a label.

    Parameters
    ----------
    configs
        The configuration of the topics of messages and labels, as far as it is known.
    options
        The worker's.
    partitions
        How many the topic of messages has; 0 where that is not known.

    Raises
    ------
    ConsumerError
        By the name of the first that is compacted.
    """
    for topic in options.topics:
        if is_compacted(configs, topic):
            raise ConsumerError(
                f"{topic} is compacted: what is deleted depends on the time, and what is learnt "
                "then, too. Set cleanup.policy=delete"
            )
    topic, config = options.topic, configs.get(options.topic, {})
    needed, why = options.needed, "max_age" if options.after is None else "after and correct_for"
    if options.partition is not None:
        partitions = 1
    texts = [config.get(name, "") for name in ("retention.ms", "retention.bytes")]
    kept, size = (int(text) if text.isdecimal() else -1 for text in texts)  # -1: no bound
    gone = "at a restart those that it needs may be gone, which ends a worker. Set"
    if 0 <= kept <= 1000 * needed:
        log.warning(
            "%s keeps messages for %s (retention.ms), and they wait for a label for %s (%s): %s "
            "retention.ms of %s to more than %d",
            *(topic, shown(kept / 1000), shown(needed), why, gone, topic, 1000 * needed),
        )
    if partitions and 0 <= size * partitions < options.pending_bytes:
        log.warning(
            "%s keeps %d bytes of messages in %s (retention.bytes), and %d may wait for a label "
            "(pending_bytes): %s retention.bytes of %s to more than %d",
            *(topic, size * partitions, counted(partitions, "partition"), options.pending_bytes),
            *(gone, topic, options.pending_bytes // partitions),
        )


def identified(decode: Callable[..., Example], message: Message) -> Example:
    """Return the example that a codec's method decodes, with an id that survives a checkpoint."""
    example = decoded(decode, message)
    name = plain(example.id)
    if name is not None:
        check_kind(name, "id", (str, int), "a string or an integer of 64 bits")
        if type(name) is str and not is_text(name):
            raise MessageError("id", "holds half of a surrogate pair: fix the text")
    return example if name is example.id else example._replace(id=name)


def labelled(decode: Callable[..., Example], message: Message) -> Example:
    """Return the decoded label message, with a label that survives a checkpoint.

    Raises
    ------
    MessageError
        If it is none.
    SkippedError
        If it is a heartbeat, which has nothing. It moves the time, as each message does.
    """
    if not message.value and message.key is None and not message.headers:
        raise SkippedError("value", "is empty, as are key and headers: a heartbeat")
    example = identified(decode, message)
    label, weight = plain(example.label), plain(example.weight)
    if example.id is None:
        raise MessageError("id", "is absent: no features can be found for the label")
    check_kind(label, "label", (bool, int, float, str), "a string, true, false or a number")
    if type(label) is str and not is_text(label):
        raise MessageError("label", "holds half of a surrogate pair: fix the text")
    if weight is not None:
        check_kind(weight, "weight", (int, float), "a number")
    if label is example.label and weight is example.weight:
        return example
    return example._replace(label=label, weight=weight)


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
    join : Join
        Which features wait, and which ids are done.

    Examples
    --------
    >>> from drift.consumers.json_codec import JsonCodec
    >>> from drift.consumers.metrics import Metrics
    >>> from drift.consumers.options import WorkerOptions
    >>> from drift.models import LBP
    >>> options = WorkerOptions(topic="orders", group="g", labels="frauds")
    >>> learner = LateLearner(LBP(budget=9), JsonCodec(), Metrics("orders", 0), options)
    >>> from drift.consumers.records import Position
    >>> label = Message(Position("frauds", 3, 0), None, b'{"id": 7, "label": true}', timestamp=5)
    >>> learner.take(label), learner.metrics.examples
    ([], 0)
    >>> value = b'{"id": 7, "features": {"sum": 1.0}}'
    >>> learner.take(Message(Position("orders", 0, 0), None, value, timestamp=9))
    []
    >>> learner.offsets, learner.metrics.examples
    ({('frauds', 3): 1, ('orders', 0): 1}, 1)
    """

    def __init__(self, model: Any, codec: Codec, metrics: Metrics, options: WorkerOptions) -> None:
        super().__init__(model, codec, metrics, options)
        self.join = Join(options)
        self._unmatched = Unmatched(codec, options)
        self._has_ignored = False  # a label in a message of features

    # --- checkpoints ---------------------------------------------------------------------------

    def join_state(self) -> Callable[[], tuple[dict[str, Any], bytes]]:
        """Return a function that encodes the join for a checkpoint."""
        return self.join.snapshot()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore a checkpoint; `rereading` reads the features that it does not store."""
        super().restore(checkpoint)
        if checkpoint.is_blank:
            return
        state, values = checkpoint.join or ({}, b"")
        try:
            self.join = Join.restore(state, values, self.options, self.offsets)
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as problem:
            raise CheckpointError(
                f"checkpoint {checkpoint.id} has no state of labels: {problem!r:.80}"
            ) from problem

    def rereading(self, source: Logs, folder: AnyPath) -> Iterator[str]:
        """Read from the log the waiting features that the checkpoint does not store."""
        options = self.options
        for place, first in self.join.missing().items():
            offset, end = first, self.offsets[place]
            while offset < end:
                yield f"{place[0]}:{place[1]} from {offset} on"
                try:
                    messages, after = source.reread(place, offset)
                except Gap:
                    what = "the first message whose features wait for a label"
                    offset = offset_behind_gap(source, place, offset, options, folder, what=what)
                    self.join.drop(place, offset)
                    self.since_checkpoint += 1
                    continue
                for message in messages:
                    self.join.supply(message, self._id_of)
                if after == offset and _ends_before(source, place, end):
                    offset_behind_gap(source, place, end, options, folder)  # which says so
                offset = after
            if lost := self.join.drop(place, end):
                log.warning(
                    "%s:%d no longer has %d of the features that wait, or has others at their "
                    "offsets: their labels will find none",
                    *(*place, lost),
                )
                self.since_checkpoint += 1

    def _id_of(self, message: Message) -> Id | None:
        """Return the id of features; None for a message without."""
        example, _ = caught(identified, self.codec.decode, message)
        return example and example.id  # type: ignore[no-any-return]

    # --- messages ------------------------------------------------------------------------------

    def check(self, messages: Iterable[Message]) -> None:
        """Refuse producers' timestamps, unless timestamps = "create"."""
        for message in messages:
            if not message.appended and self.options.timestamps != "create":
                raise ConsumerError(
                    f"{message.position} has the time of its producer, not of the log, and keeps "
                    "it: take it as it is with timestamps = 'create', --timestamps create; or set "
                    "message.timestamp.type=LogAppendTime for the topic, and start another group "
                    "and folder with --from latest"
                )

    def _age(self, message: Message, time: int) -> list[Outgoing]:
        """Send orphans, and learn features whose label is silence."""
        if message.position.topic != self.options.labels:
            return self._orphans(time)
        answer = []
        for waiting in self.join.silent(time):
            error = self._learn_waiting(waiting, self.options.silence, None)
            answer += [] if error is None else self._give_up(waiting.message, error)
        return answer

    def _learn(self, message: Message, time: int) -> list[Outgoing]:
        if message.position.topic == self.options.labels:
            return self._learn_label(message, time)
        example = identified(self.codec.decode, message)
        if example.label is not None and not self._has_ignored:
            self._has_ignored = True
            log.warning(
                "%s has a label, which is ignored, as labels come from %s: to learn it, leave "
                "topic in [labels] out",
                *(message.position, self.options.labels),
            )
        place, offset = message.position[:2], message.position.offset
        # No label finds features without an id.
        ticket = example.id is not None and _ticket(place, offset)
        answer, sent = self._predict(message, example, ticket)
        self.metrics.unlabelled += 1
        if example.id is None:
            return sent
        self._unmatched.note_features(example.id, time)
        answer = self._shadowed(answer, example.features)
        shadowed = None if self.shadow is None else answer.shadowed
        kept = message.whole_size, message.value or b"", message.headers
        own = message.key, message.timestamp
        chances = self.join.classes.pack(answer.chances)
        refused = []

        def learn(early: Early) -> bool:
            learn_by = partial(self._learn_by, answer=answer, delay=0.0)
            _, error = caught(learn_by, example.features, early.label, early.weight)
            if error is not None:
                refused.extend(self._give_up(early.message, error))
            return error is None

        waiting = Waiting(place, offset, time, answer.predicted, *kept, chances, shadowed, *own)
        self.join.features(example.id, waiting, learn)
        return sent + refused

    def _learn_label(self, message: Message, time: int) -> list[Outgoing]:
        example = labelled(self.codec.decode_label, message)
        self._unmatched.note_label(example.id, time)
        label = Early(message, example.label, example.weight, time)
        refused = []

        def learn(kind: str, waiting: Waiting) -> bool:
            error = self._learn_waiting(
                waiting,
                label.label,
                label.weight,
                delay=(time - waiting.time) / 1000,
                is_counted=kind == "corrected",
            )
            if error is not None:
                refused.extend(self._give_up(message, error))
            return error is None

        self.join.label(example.id, label, learn)  # type: ignore[arg-type]
        return self._orphans() + refused

    def _learn_waiting(
        self,
        waiting: Waiting,
        label: Label,
        weight: float | None,
        *,
        delay: float | None = None,
        is_counted: bool = False,
    ) -> Exception | None:
        """Learn features that waited; return the error where that fails."""
        try:
            features = self.codec.decode(waiting.value, waiting.headers).features
            if is_counted:
                self._update(features, label, weight, ticket=False)
                self._note_learnt(features, label, weight)
            else:
                shadow, where = self.shadow, (waiting.place, waiting.offset)
                knew = shadow is not None and shadow.has_predicted(*where)
                chances = self.join.classes.unpack(waiting.chances, label)
                shadowed = waiting.shadowed if knew else UNSEEN
                ticket = _ticket(waiting.place, waiting.offset)
                answer = Answer(waiting.predicted, chances, shadowed, ticket=ticket)
                self._learn_by(features, label, weight, answer, delay)
        except NO_FAULT_OF_IT:
            raise
        except Exception as error:  # noqa: BLE001 - as in `caught`, without its calls
            return error
        return None

    def _orphans(self, time: int | None = None) -> list[Outgoing]:
        orphans = self.join.orphans(time)
        if not orphans or self.options.orphans is None:
            return []
        why = f"no features have it within {self.options.grace:g} s"
        return [
            dead_letter(early.message, MessageError("id", why), self.options.orphans)
            for early in orphans
        ]

    def _late(self) -> dict[str, float]:
        counts = self.join.counts
        return {
            "pending": self.join.pending,
            "orphans": counts["orphan"],
            "duplicates": counts["duplicate"],
            **{name: counts[name] for name in _COUNTED},
        }

    def note(self) -> None:
        """Update the metrics, and warn if labels find no features."""
        super().note()
        if not self.join.counts["learnt"]:
            self._unmatched.warn()


def _ends_before(source: Logs, place: TopicPartition, offset: int) -> bool:
    """Whether a log ends before an offset, and its broker is not just away."""
    try:
        return source.bound(place, "latest") < offset
    except UnavailableError:
        return False


def _ticket(place: TopicPartition, offset: int) -> str:
    """Return the name of a prediction's ticket, which no other message has."""
    return f"{place[1]}:{offset}"


def learner_of(model: Any, codec: Codec, options: WorkerOptions) -> Learner:
    """Return the learner of one model, by labels in its messages or from a topic of their own."""
    kind = LateLearner if options.labels else Learner
    return kind(model, codec, Metrics.of(options), options)
