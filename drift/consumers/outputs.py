"""What is sent because of a message: its prediction, and the alarms that it has raised.

What is sent of a message that cannot be learnt is in `drift.consumers.dead_letters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drift._late import final_step
from drift.consumers._json import as_json
from drift.consumers.answers import by_text, largest
from drift.consumers.records import Outgoing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drift.consumers.alarms import Alarm
    from drift.consumers.answers import Answer
    from drift.consumers.codec import Example
    from drift.consumers.options import WorkerOptions
    from drift.consumers.records import Message

__all__ = ["alarm_event", "prediction"]


def prediction(  # noqa: PLR0913
    to: str,
    message: Message,
    example: Example,
    answer: Answer,
    *,
    options: WorkerOptions,
    checkpoint: str | None,
    beside: Callable[[Answer], Mapping[str, Any]],
) -> Outgoing:
    """Return the prediction of a message; its key is the text of the message's position.

    Parameters
    ----------
    to
        The topic of predictions.
    message, example
        What was predicted, as it came and as it was read.
    answer
        What the model said.
    options
        The worker's: which headers, and how many probabilities and scores.
    checkpoint
        The one that the model comes from.
    beside
        `drift.consumers.answers.Answering.beside`.
    """
    topic, partition, offset = message.position
    most = options.top_probabilities
    body = {
        "id": example.id,
        "timestamp": example.timestamp,
        "predicted": answer.predicted,
        "score": largest(answer.score, most),
        "probabilities": by_text(answer.chances, most),
        "label": example.label,
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "checkpoint": checkpoint,
        **beside(answer),
    }
    if example.key is not None:
        body["key"] = example.key
    key = f"{topic}:{partition}:{offset}".encode()  # the text of the position
    headers = [header for header in message.headers if header[0] in options.headers]
    return Outgoing(to, key, as_json(body), headers, partition)


def alarm_event(
    to: str, alarm: Alarm, message: Message, options: WorkerOptions, model: Any
) -> Outgoing:
    """Return the event of an alarm.

    Parameters
    ----------
    to
        The topic of events.
    alarm
        Which measure has risen, and how.
    message
        The last one before it rose.
    options
        The worker's: its group, and the level of its alarms.
    model
        What predicts, whose class is named.
    """
    topic, partition, offset = message.position
    body = {
        "event": "alarm",
        "measure": alarm.measure,
        "before": alarm.before,
        "now": alarm.now,
        "examples": alarm.examples,
        "features": [{"name": name, "distance": distance} for name, distance in alarm.features],
        "level": options.alarm_level,
        "model": type(final_step(model)).__name__,
        "group": options.group,
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": message.timestamp,
    }
    key = f"alarm:{alarm.measure}:{message.position}".encode()
    return Outgoing(to, key, as_json(body), [], partition)
