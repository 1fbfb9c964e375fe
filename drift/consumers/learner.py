"""What a worker does with a message, without a word of Kafka: predict, learn, answer."""

from __future__ import annotations

import logging
import marshal
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any
from zlib import crc32

from drift._late import ticket_for
from drift.consumers._json import check_kind, plain
from drift.consumers.answers import UNSEEN, Answer, Answering
from drift.consumers.checkpoints.agreement import advice, swapped, written
from drift.consumers.checkpoints.checkpoint import Checkpoint
from drift.consumers.codec import codec_settings, is_keyed
from drift.consumers.crash_points import reached
from drift.consumers.dead_letters import NO_FAULT_OF_IT, caught, dead_letter
from drift.consumers.order import BY_HAND, Clock, Runs, sort_key
from drift.consumers.outputs import alarm_event, prediction
from drift.consumers.records import ClaimId, CutValue, Message, Outgoing, RawName
from drift.consumers.shadow import Shadow, promotion
from drift.consumers.skip import AbsentError
from drift.consumers.trouble_log import TroubleLog
from drift.errors import (
    CheckpointError,
    ConfigurationError,
    MessageError,
    SkippedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from drift.consumers.checkpoints.keyed_file import Lineage
    from drift.consumers.checkpoints.objects import AnyPath
    from drift.consumers.codec import Codec, Example
    from drift.consumers.metrics import Metrics
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import Logs, Position, TopicPartition
    from drift.types import Features, Label

__all__ = ["ONE_KIND", "Learner", "decoded"]

log = logging.getLogger("drift.consumers")

#: A format of `marshal` that is the same for the same values.
_MARSHAL = 2
#: One example in so many goes into the digest, which takes as long as a tenth of an example.
_DIGESTED = 8

#: What to do about labels of two kinds.
ONE_KIND = "send one kind; classes = [true, false] in [codec] refuses the other"

#: Messages without a label after which it is said that none has had one: labels may be rare.
_UNLABELLED = 1000

_START = Clock()


def decoded(decode: Callable[..., Example], message: Message) -> Example:
    """Return what a codec's method makes of a message, unless no codec can read its record."""
    for name, _ in message.headers:
        if isinstance(name, RawName):
            raise MessageError(f"headers[{name!r}]", "is no UTF-8: name it in UTF-8")
    if isinstance(message.value, CutValue):
        raise MessageError("value", f"has {message.value.size} bytes, too many to be read")
    return decode(message.value, message.headers)


def _as_label(predicted: Any) -> Label | None:
    """Return a prediction of a shadow as a label, which can be compared and stored."""
    predicted = plain(predicted)
    if predicted is not None:
        kinds = (bool, int, float, str)
        check_kind(predicted, "prediction", kinds, "a string, true, false or a number")
    return predicted


class Learner:
    """A model and how far it has learnt: the same messages in the same order give the same model.

    Parameters
    ----------
    model
        Any River classifier or pipeline; it predicts, then learns, one message after the other.
    codec
        What makes examples of messages.
    metrics
        What is counted.
    options
        What is sent where.

    Attributes
    ----------
    claim_id : ClaimId
        What it learns: topic, and partition or None for all of them.
    offsets : dict
        Next offset to learn by topic and partition.
    checkpoint : str or None
        Identifier of the checkpoint that the model comes from, for the predictions.
    epoch : int
        Number of the claim of its checkpoints.
    leader_epochs : dict
        Leader epoch of the last message by topic and partition; -1 where it is not known.
    identity : dict
        What tells the topic from another one of its name.
    clocks : dict
        Time by topic and partition; see `drift.consumers.order`.
    runs : Runs
        In which order messages were taken since the last checkpoint, and which were left out.
    shadow : Shadow or None
        A second model that learns and predicts the same, and sends nothing.
    promotions : list
        When a shadow took the model's place.
    configuration : dict
        What the checkpoints say of model and shadow.
    skips : dict
        Messages that are not to be learnt, and why.
    trial : list or None
        Of a group that has learnt nothing: the messages so far that cannot be learnt, and why. They
        become dead letters, and there is something to save, once one can be. None from then on.
    answering : Answering
        How its answers are made.
    sends : bool
        Whether what is to be sent is sent, for the log: a replica sends nothing.
    digest : int
        Of every eighth example that was learnt, and what the model predicted of it: models with
        another digest differ, though they learnt the same messages.

    Examples
    --------
    >>> from drift.consumers.json_codec import JsonCodec
    >>> from drift.consumers.records import Message, Position
    >>> from drift.consumers.metrics import Metrics
    >>> from drift.consumers.options import WorkerOptions
    >>> from drift.models import LBP
    >>> options = WorkerOptions(topic="news", group="readers")
    >>> learner = Learner(LBP(budget=9), JsonCodec(), Metrics("news", 0), options)
    >>> learner.start({("news", 0): 5})
    >>> value = b'{"features": {"rain": 1.0}, "label": true}'
    >>> learner.take(Message(Position("news", 0, 5), key=None, value=value))
    []
    >>> learner.offsets, learner.metrics.examples, learner.model.n_supports
    ({('news', 0): 6}, 1, 1)
    """

    def __init__(self, model: Any, codec: Codec, metrics: Metrics, options: WorkerOptions) -> None:
        self.model = model
        self.codec = codec
        self.metrics = metrics
        self.options = options
        self.checkpoint: str | None = None
        self.offsets: dict[TopicPartition, int] = {}
        self.claim_id = ClaimId(metrics.topic, metrics.partition)
        self.epoch = 0
        self.leader_epochs: dict[TopicPartition, int] = {}
        self.identity: dict[str, str] = {}
        self.since_checkpoint = 0
        self.clocks: dict[TopicPartition, Clock] = {}
        self.runs = Runs()
        self.shadow: Shadow | None = None
        self.promotions: list[dict[str, Any]] = []
        self.configuration: dict[str, Any] = {}
        self.digest = 0
        self.skips: dict[Position, str] = {}
        self.trial: list[tuple[Message, Exception]] | None = None
        self.sends = True
        self._kinds: set[type] = set()  # of labels
        self._jump = 1000 * options.max_jump
        self.trouble = TroubleLog(log)
        self.answering = Answering(options, self.trouble)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint; of one without any message, at its offsets alone.

        Raises
        ------
        ConfigurationError
            If it has labels from a topic of their own, and this one has not, or the other way.
        """
        self.checkpoint, self.offsets = checkpoint.id, dict(checkpoint.offsets)
        self.leader_epochs = dict(checkpoint.leader_epochs)
        self.clocks = dict(checkpoint.clocks)
        self.identity = {**checkpoint.identity, **self.identity}
        self.skips = dict.fromkeys(checkpoint.skips, BY_HAND)
        self.metrics.checkpointed(checkpoint.time)
        if not checkpoint.is_blank:
            self._restore_model(checkpoint)
        elif self.model is None:
            self.model = checkpoint.model

    def _restore_model(self, checkpoint: Checkpoint) -> None:
        if (checkpoint.models is not None) != is_keyed(self.codec):
            models = "one model" if checkpoint.models is None else "a model for each key"
            raise ConfigurationError(
                f"checkpoint {checkpoint.id} has {models}: continue so, or start with another "
                "folder and group"
            )
        if (checkpoint.join is None) != (self.join_state() is None):
            raise ConfigurationError(
                f"checkpoint {checkpoint.id} was learnt with{'out' * (checkpoint.join is None)} "
                "labels from a topic of their own: continue so, or start with another folder and "
                "group"
            )
        self.model, self.digest = checkpoint.model, checkpoint.digest
        self.configuration = dict(checkpoint.configuration)
        if "codec" not in self.configuration:
            self.configuration |= codec_settings(self.codec)
            self.save_soon()  # as that one names it
            log.warning(
                "%s: checkpoint %s names no codec: it continues with this one, [codec] %s",
                *(self.claim_id, checkpoint.id, written(self.configuration, "codec")),
            )
        self.promotions = [dict(promotion) for promotion in checkpoint.promotions]
        if checkpoint.shadow is not None:
            try:
                self.shadow = Shadow.restore(checkpoint.shadow[1], checkpoint.shadow[0])
            except (AttributeError, KeyError, TypeError, ValueError) as problem:
                raise CheckpointError(
                    f"checkpoint {checkpoint.id} has no state of a shadow: {problem!r:.80}"
                ) from problem
        if checkpoint.metrics:  # none of a model that was trained elsewhere
            self.metrics.restore(dict(checkpoint.metrics))
            self.answering.restore(checkpoint.answering)

    def save_soon(self) -> None:
        """Have a checkpoint be due at its time, though nothing may be learnt until then."""
        self.since_checkpoint += 1

    def snapshot(self) -> Checkpoint:
        """Return what a checkpoint has of it now, except late labels and models of keys.

        The model is not copied: see `drift.consumers.checkpoints.checkpoint.encoding`.
        """
        return Checkpoint(
            self.model,
            dict(self.offsets),
            self.epoch,
            configuration=self.configuration,
            metrics=self.metrics.state(),
            answering=self.answering.state(),
            identity=dict(self.identity),
            leader_epochs=dict(self.leader_epochs),
            clocks=dict(self.clocks),
            shadow=self.shadow_state(),
            promotions=self.promotions,
            digest=self.digest,
            skips=[at for at in self.skips if at.offset >= self.offsets.get(at[:2], 0)],
            is_blank=self.trial is not None,
        )

    def take(self, message: Message) -> list[Outgoing]:
        """Predict and learn a message; return what is to be sent because of it.

        A message before the next offset has been learnt and is skipped. A message that cannot
        be learnt, whatever error that makes, becomes a dead letter.
        """
        topic, partition, offset = message.position
        place = topic, partition
        if offset < self.offsets.get(place, 0):
            return []
        started = perf_counter()
        clock = self.clocks.get(place, _START).after(message.time, self._jump)
        if clock.far is not None:
            self.metrics.jumps += 1
        answer = self._age(message, clock.time)
        why = self.skips.pop(message.position, None) if self.skips else None
        try:
            if why is None:
                sent = self._learn(message, clock.time)
                answer += sent if self.trial is None else self.end_trial() + sent
            else:
                answer += self._give_up(message, MessageError("message", why))
        except NO_FAULT_OF_IT:
            raise
        except Exception as error:  # noqa: BLE001 - as in `caught`, without its call
            answer += self._give_up(message, error)
        if self.metrics.raised:
            answer += self._alarm(message)
        self.metrics.learn_seconds += perf_counter() - started
        self.offsets[place] = offset + 1
        self.clocks[place] = clock
        self.runs.note(sort_key(clock.time, place, self.options.labels), place, offset)
        if why is not None:
            self.runs.skips[message.position] = why
        self.leader_epochs[place] = message.leader_epoch
        self.since_checkpoint += self.trial is None
        reached("message.taken")
        return answer

    def learn_history(self, example: Example, number: int) -> None:
        """Predict and learn an example that is in no log, the one of this number."""
        answer = self._answer(example.features, number)
        answer = self._shadowed(answer, example.features)
        self._learn_by(example.features, example.label, example.weight, answer)

    def skip_to(self, place: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Continue at an offset, with nothing to learn before it, and save that."""
        self.offsets[place] = offset
        self.leader_epochs[place] = leader_epoch
        self.since_checkpoint += self.trial is None

    def end_trial(self) -> list[Outgoing]:
        """Return the dead letters of the messages that came before the first learnt."""
        failures, self.trial = self.trial or [], None
        return [letter for message, error in failures for letter in self._give_up(message, error)]

    def start(self, first: Mapping[TopicPartition, int]) -> None:
        """Start partitions that no checkpoint knows."""
        self.offsets.update(first)
        self.runs.first.update(first)

    def forget(self, places: Iterable[TopicPartition]) -> None:
        """Forget partitions that were started, of which nothing was learnt."""
        for place in places:
            del self.offsets[place], self.runs.first[place]

    def check(self, messages: Iterable[Message]) -> None:
        """Refuse messages that it cannot be meant to learn, before any is taken."""

    def note(self) -> None:
        """Have the metrics show how far it is."""
        self.trouble.say_again()
        shadow = {} if self.shadow is None else {"promotions": 0, **self.shadow.values()}
        if self.promotions:
            shadow["promotions"] = self.promotions[-1]["number"]
        self.metrics.shadow = shadow
        self.metrics.counts_of(self.model, **self._late())

    def _late(self) -> dict[str, float]:
        """Return the counts of labels that come later, by their names in the log."""
        return {}

    def shadow_state(self) -> tuple[Any, dict[str, Any]] | None:
        """Return the second model and what a checkpoint keeps beside it; None where is none."""
        return None if self.shadow is None else (self.shadow.model, self.shadow.state())

    def join_state(self) -> Callable[[], tuple[dict[str, Any], bytes]] | None:
        """Return what gives what a checkpoint keeps of late labels; None where there are none."""
        return None

    def prepare_models(self) -> Callable[[], Lineage] | None:
        """Return what writes the models of keys, and returns their lineage; None without."""
        return None

    def share_memory(self, learners: int) -> None:
        """Have no more models of keys in memory than one of so many learners may."""

    def close(self) -> None:
        """Let go of what is open, and say what is left to say."""
        self.trouble.say_again(at_once=True)

    def read_again(self, source: Logs, folder: AnyPath) -> None:
        """Read what a checkpoint has not stored of what waits."""
        for _ in self.rereading(source, folder):
            pass

    def rereading(self, _source: Logs, _folder: AnyPath) -> Iterator[str]:
        """Do so a fetch at a time; yield, before each, what is read."""
        yield from ()

    def _age(self, message: Message, time: int) -> list[Outgoing]:
        """Return what is to be sent because of the time of a message, whatever it holds."""
        return []

    def _learn(self, message: Message, time: int) -> list[Outgoing]:
        return self._learn_example(message, decoded(self.codec.decode, message))

    def _learn_example(self, message: Message, example: Example) -> list[Outgoing]:
        # Of a message without a label none comes later, so that it leaves no ticket.
        answer, sent = self._predict(message, example, ticket=example.label is not None)
        if example.label is None:
            self.metrics.unlabelled += 1
            if self.sends and self.metrics.unlabelled == _UNLABELLED and not self.metrics.examples:
                log.warning(
                    "%s: none of %d messages so far has a label, and nothing is learnt yet: say "
                    "where it is, label in [codec], or which topic has them, topic in [labels]",
                    *(self.claim_id, _UNLABELLED),
                )
        else:
            answer = self._shadowed(answer, example.features)
            self._learn_by(example.features, example.label, example.weight, answer)
        return sent

    def _learn_by(
        self,
        features: Features,
        label: Label,
        weight: float | None,
        answer: Answer,
        delay: float | None = None,
    ) -> None:
        """Learn a predicted example, by the shadow, too, and count it."""
        if type(label) not in self._kinds:
            self._note_kind(label)
        learns = self._update(features, label, weight, answer.ticket)
        if self.metrics.examples % _DIGESTED == 0:
            self._note_learnt(features, label, weight, answer.predicted)
        self.metrics.learnt(label, answer, features, delay)
        if absent := self.answering.learn_label(label, answer):
            log.warning("%s: %s", self.claim_id, absent)
        if self.shadow is None or answer.shadowed is UNSEEN:
            return
        wins = self.shadow.compare(label, answer if learns else answer._replace(shadowed=None))
        at = self.options.promote
        if at is not None and wins and self.shadow.test.second_is_better >= at:
            self.promote(f"e >= {at:g}")

    def _note_kind(self, label: Label) -> None:
        """Warn once where labels are texts and something else."""
        was_mixed = str in self._kinds and len(self._kinds) > 1
        self._kinds.add(type(label))
        if str in self._kinds and len(self._kinds) > 1 and not was_mixed:
            log.warning(
                '%s: some labels are strings and others are not, as %r. "true" and true are two '
                'classes, and so are "1" and 1: %s',
                self.claim_id,
                label,
                ONE_KIND,
            )

    def _note_learnt(self, *what: Any) -> None:
        """Take into the digest what was learnt, and what the model had predicted."""
        try:
            data = marshal.dumps(what, _MARSHAL)
        except ValueError:  # something else than Python's own types
            data = repr(what).encode(errors="surrogatepass")
        self.digest = crc32(data, self.digest)

    def _update(
        self, features: Features, label: Label, weight: float | None, ticket: Hashable
    ) -> bool:
        """Learn an example; say whether the shadow, if there is one, has learnt it, too."""
        more = {} if weight is None else {"w": weight}
        self.model.learn_one(features, label, **more, **ticket_for(self.model, ticket))
        if self.shadow is None:
            return True
        shadow = self.shadow.model
        learn = partial(shadow.learn_one, **more, **ticket_for(shadow, ticket))
        _, error = caught(learn, features, label)
        return error is None or self._excuse(error)

    # --- the shadow ----------------------------------------------------------------------------

    def _shadowed(self, answer: Answer, features: Features) -> Answer:
        """Return an answer with what the shadow predicts; None, which no label is, if it raises."""
        if self.shadow is None:
            return answer
        model = self.shadow.model
        more = ticket_for(model, answer.ticket)
        predicted, error = caught(lambda: _as_label(model.predict_one(features, **more)))
        if error is not None:
            self._excuse(error)
        return answer._replace(shadowed=predicted)

    def _excuse(self, error: Exception) -> bool:
        """Continue after an exception of the shadow, which counts as its mistake."""
        assert self.shadow is not None  # noqa: S101 - it has raised
        self.shadow.errors += 1
        line = f"the shadow raises, which counts as a mistake of it: {error}"
        self.trouble.say(logging.WARNING, ("shadow", type(error)), line)
        return False

    def promote(self, by: str) -> None:
        """Have the shadow answer from the next example on, and the model be its shadow."""
        assert self.shadow is not None  # noqa: S101 - it has been compared
        self.promotions = promotion(
            self.promotions,
            configuration=self.configuration,
            shadow=self.shadow.state(),
            counts=self.metrics.state(),
            by=by,
        )
        self.model, shadow = self.shadow.model, self.model
        self.shadow = Shadow(shadow, self.offsets)
        self.configuration = swapped(self.configuration)
        line = (
            f"{self.claim_id}: promoted, {by}: the shadow answers from now on, the model is its "
            "shadow"
        )
        log.warning("; ".join(filter(None, (line, advice(self.configuration)))))
        reached("model.promoted")

    @property
    def _predictor(self) -> Any:
        """The model that predicts."""
        return self.model

    def _answer(self, features: Features, ticket: Hashable = True) -> Answer:  # noqa: FBT002
        """Return what is predicted, and have the features be known to those that come next."""
        options = self.options
        label_only = options.predictions is None and not options.probabilities
        answer = self.answering.answer(self._predictor, features, ticket, label_only=label_only)
        self.answering.learn_features(features)
        return answer

    def _predict(
        self,
        message: Message,
        example: Example,
        ticket: Hashable,
    ) -> tuple[Answer, list[Outgoing]]:
        """Return what is predicted, and what is to be sent of it."""
        answer = self._answer(example.features, ticket)
        to = self.options.predictions
        if to is None:
            return answer, []
        sent = prediction(
            to,
            message,
            example,
            answer,
            options=self.options,
            checkpoint=self.checkpoint,
            beside=self.answering.beside,
        )
        return answer, [sent]

    def _alarm(self, message: Message) -> list[Outgoing]:
        """Say which measures have risen by a message, and return that for the topic of events."""
        raised, self.metrics.raised = self.metrics.raised, []
        sent, to = [], self.options.events
        for alarm in raised:
            moved = ", ".join(f"{name} ({distance:.2f})" for name, distance in alarm.features)
            log.warning(
                "%s: %s rose from %.4g to %.4g in the last %d examples%s",
                *(message.position, alarm.measure, alarm.before, alarm.now, alarm.examples),
                f"; moved most: {moved}" if moved else "",
            )
            if to is not None:
                sent.append(alarm_event(to, alarm, message, self.options, self.model))
        return sent

    def _give_up(self, message: Message, error: Exception) -> list[Outgoing]:
        if isinstance(error, SkippedError):
            self.metrics.skipped += 1
            if isinstance(error, AbsentError):
                meant = f"if that is meant, write '{error.field} = null' before this rule"
                line = f"{message.position} is left out: {error}; {meant}"
                self.trouble.say(logging.WARNING, error.field, line)
            return []
        if self.trial is not None:
            if not self.trial:
                log.warning(
                    "%s cannot be learnt: %s. Nothing is sent or saved until a message can be",
                    *(message.position, error),
                )
            self.trial.append((message, error))
            return []
        self.metrics.dead_letters += 1
        level, what = logging.WARNING, f"goes to {self.options.dead_letters}"
        if not self.sends:
            what = "is left out, as by the worker"
        elif self.options.dead_letters is None:
            level, what = logging.ERROR, "is left out, without a topic for it"
        kind = type(error), getattr(error, "field", "").partition("[")[0]
        self.trouble.say(level, kind, f"{message.position} {what}: {error}")
        if self.options.dead_letters is None:
            return []
        return [dead_letter(message, error, self.options.dead_letters)]
