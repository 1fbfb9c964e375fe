"""The examples of a topic in a notebook, in the order in which a worker learns them."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from drift.consumers.client.consumer import LoneConsumer, largest_record
from drift.consumers.client.errors import check_partition, missing, truncated
from drift.consumers.fed import FedLearner
from drift.consumers.gaps import behind_deleted
from drift.consumers.json_codec import checked_codec
from drift.consumers.late import learner_of
from drift.consumers.options import WorkerOptions
from drift.consumers.preparing import check_reads_labels
from drift.consumers.records import Gap
from drift.errors import ConsumerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from drift.consumers.codec import Codec
    from drift.consumers.records import TopicPartition
    from drift.types import Features, Label

__all__ = ["read_topic"]


class _Listener:
    """A model that keeps what it is to learn."""

    def __init__(self) -> None:
        self.heard: list[tuple[Features, Label]] = []

    def learn_one(self, x: Features, y: Label, **_: Any) -> None:
        self.heard.append((x, y))

    def predict_one(self, _: Features) -> Label:
        return None


def read_topic(
    topic: str, kafka: Mapping[str, Any], *, codec: Codec | None = None, **options: Any
) -> Iterator[tuple[Features, Label]]:
    """Yield the labelled examples of a topic, in the order in which a worker learns them.

    Partitions are merged by the times of their records. With ``labels="frauds"`` the labels are in
    a topic of their own, and each example comes at the time of its label. The topics are read from
    their beginnings to the ends that they have now. No group is joined, and nothing is committed. A
    message that cannot be learnt is logged and left out, and so are those that are deleted before
    they are read.

    Parameters
    ----------
    topic
        The topic.
    kafka
        Options of kafka-python: ``bootstrap_servers``, security, ...
    codec
        What makes examples of messages; None for `JsonCodec`. Its weights are left out, and so are
        its keys: to evaluate a model for each key, group by a feature.
    options
        Those of `WorkerOptions` that say what is learnt: `labels`, `partition`, `max_age`, `grace`,
        `silence`, `after`, `timestamps`, `max_jump`, ...

    Yields
    ------
    tuple of dict and label
        Features and label, as River's ``progressive_val_score`` takes them.

    Raises
    ------
    ConsumerError
        If there is no such topic or partition, or the timestamps of late labels are those of
        producers; or if a log is truncated, or its topic recreated, while it is read.
    ParameterError
        If an option cannot be, or the codec cannot read labels.

    Examples
    --------
    ::

        from river import evaluate, metrics
        from drift.consumers import read_topic
        from drift.models import Tracker

        examples = read_topic("orders", {"bootstrap_servers": "localhost:9092"})
        print(evaluate.progressive_val_score(examples, Tracker(300), metrics.Accuracy()))
    """
    codec = checked_codec(codec)
    given = {"group": "-", "alarm_level": 0.0, "probabilities": False, **options}
    settings = WorkerOptions(topic=topic, **given)
    if settings.labels:
        check_reads_labels(codec, settings.silence)
    consumer = LoneConsumer(settings.topics, kafka, largest=largest_record(codec))
    try:
        yield from _read(consumer, codec, settings)
    finally:
        consumer.close()


def _read(
    consumer: LoneConsumer, codec: Codec, options: WorkerOptions
) -> Iterator[tuple[Features, Label]]:
    for name in options.topics:
        if not consumer.partitions(name):
            raise ConsumerError(missing(name))
        check_partition(name, options.partition, range(consumer.partitions(name)))
    places = [
        (name, number)
        for name in options.topics
        for number in range(consumer.partitions(name))
        if options.partition in {None, number}
    ]
    consumer.assign(places)
    identity = consumer.identity()
    ends = {place: consumer.bound(place, "latest") for place in places}
    listener = _Listener()
    learner = learner_of(listener, codec, options)
    learner.start({place: consumer.bound(place, "earliest") for place in places})
    fed = FedLearner(learner, consumer)
    for place in places:
        fed.start(place)

    def ended_at(place: TopicPartition) -> float:
        done = learner.offsets[place] >= ends[place]
        return math.inf if done else consumer.ended_at(place)

    while any(learner.offsets[place] < end for place, end in ends.items()):
        started = time.monotonic()
        batches = []
        try:
            batches = [*consumer.poll(1.0)]
        except Gap as gap:
            for place, offset in gap.offsets.items():
                first, other = consumer.bound(place, "earliest"), truncated(*place, offset)
                fed.skip(place, behind_deleted(place, offset, first, other))
        _refuse_changed_logs(consumer, learner.offsets, ends, identity)
        wanted = (
            (place, [message for message in messages if message.position.offset < ends[place]])
            for place, messages in batches
        )
        fed.read(wanted, time.monotonic() - started)
        for message in fed.order.take(ended_at):
            learner.take(message)
            yield from listener.heard
            listener.heard.clear()
        fed.resume()
    learner.close()


def _refuse_changed_logs(
    consumer: LoneConsumer,
    offsets: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    before: Mapping[str, str],
) -> None:
    """Refuse logs that have become others: what they lack would be waited for."""
    now = consumer.identity()
    is_another = any(now.get(name, known) != known for name, known in before.items())
    for place, end in ends.items():
        if offsets[place] >= end:
            continue
        seen = consumer.end(place)
        # A new leader may know a lower end at first. It does not tell that to who asks for it.
        is_short = seen is not None and seen < end and consumer.bound(place, "latest") < end
        if is_another or is_short:
            raise truncated(*place, offsets[place])
