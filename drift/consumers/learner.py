"""What a worker does with a message, without a word of Kafka: predict, learn, answer."""

from __future__ import annotations

import json
import logging
from time import perf_counter
from typing import TYPE_CHECKING, Any

from drift.consumers._json import library
from drift.consumers.crash_points import reached
from drift.consumers.dead_letters import dead_letter
from drift.consumers.records import CutValue, Message, Outgoing, RawName
from drift.errors import MessageError

if TYPE_CHECKING:
    from drift.consumers.codec import Codec, Example
    from drift.consumers.metrics import Metrics

__all__ = ["Learner"]

log = logging.getLogger("drift.consumers")

_, _dumps = library()


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
    offsets
        Next offset to learn by topic and partition.
    predictions
        Topic of the predictions; None for none.
    dead_letters
        Topic of the messages that cannot be learnt; None to leave them out, with an error in the
        log.
    checkpoint
        Identifier of the checkpoint that the model comes from, for the predictions.

    Attributes
    ----------
    leader_epochs : dict
        Leader epoch of the last message by topic and partition; -1 where it is not known.
    identity : dict
        What tells the topic from another one of its name.

    Examples
    --------
    >>> from drift.consumers.codec import JsonCodec, Message, Position
    >>> from drift.consumers.metrics import Metrics
    >>> from drift.models import LBP
    >>> learner = Learner(LBP(budget=9), JsonCodec(), Metrics("news", 0), {("news", 0): 5})
    >>> value = b'{"features": {"rain": 1.0}, "label": true}'
    >>> learner.take(Message(Position("news", 0, 5), key=None, value=value))
    []
    >>> learner.offsets, learner.metrics.examples, learner.model.n_supports
    ({('news', 0): 6}, 1, 1)
    """

    def __init__(  # noqa: PLR0913
        self,
        model: Any,
        codec: Codec,
        metrics: Metrics,
        offsets: dict[tuple[str, int], int],
        *,
        predictions: str | None = None,
        dead_letters: str | None = None,
        checkpoint: str | None = None,
    ) -> None:
        self.model = model
        self.codec = codec
        self.metrics = metrics
        self.offsets = offsets
        self.predictions = predictions
        self.dead_letters = dead_letters
        self.checkpoint = checkpoint
        self.leader_epochs: dict[tuple[str, int], int] = {}
        self.identity: dict[str, str] = {}
        self.since_checkpoint = 0

    def take(self, message: Message) -> list[Outgoing]:
        """Predict and learn a message; return what is to be sent because of it.

        A message before the next offset has been learnt and is passed over. A message that cannot
        be learnt, whatever error that makes, becomes a dead letter.
        """
        place = message.position[:2]
        if message.position.offset < self.offsets.get(place, 0):
            return []
        started = perf_counter()
        try:
            answer = self._learn(message)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a model of the user's may raise anything
            answer = self._give_up(message, error)
        self.metrics.learn_seconds += perf_counter() - started
        self.offsets[place] = message.position.offset + 1
        self.leader_epochs[place] = message.leader_epoch
        self.since_checkpoint += 1
        reached("message.taken")
        return answer

    def pass_over(self, place: tuple[str, int], offset: int, leader_epoch: int = -1) -> None:
        """Go on at an offset with nothing to be learnt before it, and have that saved."""
        self.offsets[place] = offset
        self.leader_epochs[place] = leader_epoch
        self.since_checkpoint += 1

    def _learn(self, message: Message) -> list[Outgoing]:
        for name, _ in message.headers:
            if isinstance(name, RawName):
                raise MessageError(f"headers[{name!r}]", "is no UTF-8: name it in UTF-8")
        if isinstance(message.value, CutValue):
            raise MessageError("value", f"has {message.value.size} bytes, too many to be read")
        example = self.codec.decode(message.value, message.headers)
        features = example.features
        predicted = self.model.predict_one(features)
        answer = self._prediction(message, example, predicted)
        if example.label is None:
            self.metrics.unlabelled += 1
            return answer
        self.model.learn_one(features, example.label)
        self.metrics.learnt(predicted != example.label)
        return answer

    def _prediction(self, message: Message, example: Example, predicted: Any) -> list[Outgoing]:
        if self.predictions is None:
            return []
        score = getattr(self.model, "decision_function_one", None)
        body = {
            "id": example.id,
            "timestamp": example.timestamp,
            "predicted": predicted,
            "score": None if score is None else score(example.features),
            "label": example.label,
            **message.position._asdict(),
            "checkpoint": self.checkpoint,
        }
        try:
            value = _dumps(body)
        except TypeError:  # a label that JSON does not know, as numpy's
            value = json.dumps(body, default=str).encode()
        key, lane = str(message.position).encode(), message.position.partition
        return [Outgoing(self.predictions, key, value, [], lane)]

    def _give_up(self, message: Message, error: Exception) -> list[Outgoing]:
        self.metrics.dead_letters += 1
        if self.dead_letters is None:
            log.error("%s is left out, without a topic for it: %s", message.position, error)
            return []
        log.warning("%s goes to %s: %s", message.position, self.dead_letters, error)
        return [dead_letter(message, error, self.dead_letters)]
