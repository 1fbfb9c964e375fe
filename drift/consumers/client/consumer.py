"""A consumer of kafka-python, and facts about it.

- drift decodes bytes itself: a deserializer that raises would make the next poll hang.
- Listeners run on kafka-python's own thread while the worker waits in `poll`. They may only seek
  and pause; requests to the broker have to wait until after the poll.
- Offsets in Kafka are informative. A model continues at the offsets of its checkpoint.
"""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Any

import kafka
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import FencedInstanceIdError
from kafka.structs import OffsetAndMetadata

from drift.consumers.client import workarounds
from drift.consumers.client.assignor import LeadAssignor
from drift.consumers.client.errors import (
    GONE,
    UNREADABLE,
    KafkaError,
    asking,
    check_partition,
    making_clients,
    missing,
)
from drift.consumers.records import Gap, Position
from drift.errors import ConsumerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from drift.consumers.assignment import Assignment
    from drift.consumers.codec import Codec
    from drift.consumers.records import Message, TopicPartition

__all__ = [
    "DEFAULTS",
    "WORKER_DEFAULTS",
    "GroupConsumer",
    "LogConsumer",
    "LoneConsumer",
    "connect",
    "identity",
    "largest_record",
    "read",
]

log = logging.getLogger("drift.consumers")

#: Seconds to wait for metadata, and for offsets.
_METADATA, _OFFSETS = 2, 10
#: What consumers have instead of kafka-python's defaults, unless it is given.
DEFAULTS: dict[str, Any] = {
    **workarounds.RECONNECT,
    **workarounds.CONSUMER,
    # Messages of aborted transactions are no examples.
    "isolation_level": "read_committed",
    # A broker that creates topics on request gives them one partition.
    "allow_auto_create_topics": False,
}
#: And those of workers and replicas.
WORKER_DEFAULTS: dict[str, Any] = {
    "max_poll_records": 500,
    # Partitions that are added are seen within a minute, and not within five.
    "metadata_max_age_ms": 60_000,
    # Partitions are read side by side: large fetches of one keep others from theirs.
    "max_partition_fetch_bytes": 256 << 10,
}


def largest_record(codec: Codec) -> int:
    """Return the bytes of the largest record that is read for a codec: value, key and headers."""
    return (codec.max_bytes or workarounds.LARGEST) + (1 << 20)


def connect(options: Mapping[str, Any], largest: int = workarounds.LARGEST) -> Any:
    """Return a consumer of kafka-python that never commits by itself, and creates no topic.

    Parameters
    ----------
    options
        Options of kafka-python.
    largest
        Bytes of the largest record that is read out of a compressed batch.
    """
    with making_clients(options):
        made = kafka.KafkaConsumer(**{**DEFAULTS, **options, "enable_auto_commit": False})
    made.drift_fetches = workarounds.patch(made, largest)
    return made


def read(consumer: Any, seconds: float) -> Iterator[tuple[TopicPartition, list[Message]]]:
    """Wait for messages of what `connect` returned; by partition, in the order of their offsets."""
    for place, messages in consumer.poll(timeout_ms=int(1000 * seconds)).items():
        if messages:  # else the poll was woken
            yield tuple(place), messages


def identity(consumer: Any, topic: str | None, labels: str | None = None) -> dict[str, str]:
    """Return the identity of topics, as far as the broker has it.

    Parameters
    ----------
    consumer
        One of kafka-python.
    topic, labels
        The topic to learn, and that of the labels; None for one that is not asked for.
    """
    cluster = consumer._cluster  # noqa: SLF001
    topics = {"topic_id": topic, "labels_topic_id": labels}
    ids = {name: cluster.topic_id(one) for name, one in topics.items() if one is not None}
    known = {name: str(one) for name, one in ids.items() if one and one.int}  # 0: none
    return known | ({"cluster_id": cluster.cluster_id} if cluster.cluster_id else {})


class LogConsumer:
    """Reads partitions of topics, each from where it is started.

    Parameters
    ----------
    topics
        The topic to learn, and that of the labels where they have their own.
    options
        Options of kafka-python: ``bootstrap_servers``, security, timeouts, ...
    largest
        Bytes of the largest record that is read out of a compressed batch.
    """

    def __init__(self, topics: Sequence[str], options: Mapping[str, Any], largest: int) -> None:
        self.topics = topics
        self._largest = largest
        self._options = {**WORKER_DEFAULTS, **options, "auto_offset_reset": "none"}
        if len(topics) > 1:
            # Aborted messages are in no log.
            self._options["isolation_level"] = "read_committed"
        self.consumer = connect(self._options, largest)
        self._second: Any = None  # reads what was read before

    # --- messages ------------------------------------------------------------------------------

    def poll(self, seconds: float) -> Iterator[tuple[TopicPartition, list[Message]]]:
        """Wait for messages; by partition, in the order of their offsets."""
        try:
            if self._is_ready(seconds):
                yield from list(read(self.consumer, seconds))
        except GONE as error:
            raise Gap(self._gone(error)) from None
        except UNREADABLE as error:
            raise _unreadable(error, self._positions()) from None
        except KafkaError as error:
            if not error.retriable:
                raise
            log.warning("poll: %s", error)

    def _is_ready(self, seconds: float) -> bool:
        """Whether there is something to poll; wait where there is not."""
        return True

    def _gone(self, error: Any) -> dict[Any, int]:
        """Return the offsets that the broker lacks, or has under another leader epoch."""
        truncated = getattr(error, "divergent_offsets", None)
        if truncated is None:
            return dict(error.args[0])
        position = self.consumer._subscription.position  # noqa: SLF001
        return {place: position(place).offset for place in truncated}

    def reread(self, place: TopicPartition, offset: int) -> tuple[list[Message], int]:
        """Read a fetch from an offset before the position; return it and its end."""
        if self.lacks(place):
            raise ConsumerError(
                f"{place[0]} no longer has the partition {place[1]}, of which features wait for "
                "labels: it was recreated. Start with another folder and group"
            )
        partition = kafka.TopicPartition(*place)
        with asking():
            if self._second is None:
                alone = {k: v for k, v in self._options.items() if k != "group_instance_id"}
                given = {"bootstrap_timeout_ms": 1000 * _OFFSETS, **alone, "group_id": None}
                self._second = connect(given, self._largest)
            if self._second.assignment() != {partition}:
                self._second.assign([partition])
                self._second.seek(partition, offset)
            elif self._second.position(partition) != offset:
                self._second.seek(partition, offset)
            try:
                fetched = [
                    message for _, messages in read(self._second, 1.0) for message in messages
                ]
            except GONE as error:
                raise Gap({place: offset}) from error
            except UNREADABLE as error:
                raise _unreadable(error, [str(Position(*place, offset))]) from None
            return fetched, self._second.position(partition)

    # --- partitions ----------------------------------------------------------------------------

    def start(self, place: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Start a partition at an offset.

        If the leader epoch of the message before is known, `poll` raises `Gap` if the log no longer
        has that message.
        """
        workarounds.seek(self.consumer, place, offset, leader_epoch)
        self.consumer.resume(kafka.TopicPartition(*place))

    def pause(self, place: TopicPartition) -> None:
        """Pause fetching of a partition."""
        self.consumer.pause(kafka.TopicPartition(*place))

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        with asking():
            return len(workarounds.partitions(self.consumer, topic, _OFFSETS))

    def lacks(self, place: TopicPartition) -> bool:
        """Whether a topic has no such partition, as one that was recreated with fewer."""
        return 0 < self.partitions(place[0]) <= place[1]

    def bound(self, place: TopicPartition, start: str) -> int:
        """First offset of a partition ("earliest"), or its end ("latest")."""
        partition = kafka.TopicPartition(*place)
        ask = self.consumer.beginning_offsets if start == "earliest" else self.consumer.end_offsets
        with asking():
            return int(ask([partition], timeout_ms=1000 * _OFFSETS)[partition])

    def position(self, place: TopicPartition) -> tuple[int, int] | None:
        """The next offset, after markers of transactions, which are no messages.

        With the leader epoch of the message before; None for a partition that is not assigned.
        """
        partition, subscription = kafka.TopicPartition(*place), self.consumer._subscription  # noqa: SLF001
        if not subscription.is_assigned(partition):
            return None
        position = subscription.position(partition)
        return position.offset, position.leader_epoch

    def _positions(self) -> list[str]:
        places = sorted(self.consumer.assignment() - self.consumer.paused())
        return [f"{p.topic}:{p.partition}:{(self.position(p) or '?')[0]}" for p in places]

    def refresh(self) -> None:
        """Refresh the metadata of the topic; an outage is no error."""
        consumer = self.consumer
        asked = consumer._cluster.request_update()  # noqa: SLF001
        try:
            consumer._net.run(consumer._manager.wait_for, asked, 1000 * _METADATA)  # noqa: SLF001
        except KafkaError as error:
            log.info("metadata: %s", error)

    def identity(self) -> dict[str, str]:
        """Return the identity of the topics, as far as the broker has it."""
        return identity(self.consumer, *self.topics)

    def read_at(self, place: TopicPartition) -> float:
        """Return the time of the last fetch of a partition; -inf before one."""
        return self.consumer.drift_fetches.read.get(place, -math.inf)  # type: ignore[no-any-return]

    def ended_at(self, place: TopicPartition) -> float:
        """Return when a partition had last been read to its end; -inf if it has more.

        By its position, as transactions leave markers that are no messages. The end is that of
        what may be read: an open transaction is behind it.
        """
        position, end = self.position(place), self.end(place)
        if position is None or end is None or position[0] < end:
            return -math.inf
        return self.read_at(place)

    def end(self, place: TopicPartition) -> int | None:
        """The end of what may be read, as of the last fetch; None before one."""
        return self.consumer.drift_fetches.ends.get(place)  # type: ignore[no-any-return]

    def lag(self, place: TopicPartition, offset: int) -> int | None:
        """Messages between an offset and the end, as of the last fetch; None before one."""
        end = self.consumer.highwater(kafka.TopicPartition(*place))
        return None if end is None else max(0, end - offset)

    def close(self) -> None:
        """Leave the group and close the client; an outage is no error."""
        for consumer in filter(None, (self.consumer, self._second)):
            try:
                consumer.close(timeout_ms=5000)
            except KafkaError as error:
                log.warning("close: %s", error)


def _unreadable(error: KafkaError, places: Iterable[str]) -> ConsumerError:
    """Return the error of a message that comes after one of these places."""
    return ConsumerError(
        f"kafka-python cannot read a message ({error}), the first after one of "
        f"{', '.join(places)}: install what it lacks, or delete what is damaged from the topic and "
        "continue with on_gap='skip'"
    )


class LoneConsumer(LogConsumer):
    """A consumer without a group, for replicas: it reads the partitions it is given."""

    def __init__(self, topics: Sequence[str], options: Mapping[str, Any], *, largest: int) -> None:
        alone = {k: v for k, v in options.items() if k != "group_instance_id"}
        # Records come a few at a time, and each fetch takes the processor for a millisecond.
        fetch = {"fetch_min_bytes": 64 << 10, "fetch_max_wait_ms": 20}
        super().__init__(topics, {**fetch, **alone, "group_id": None}, largest)

    def knows_topics(self) -> bool:
        """Whether the broker has the topics, which then have an identity."""
        with asking():
            return all(workarounds.partitions(self.consumer, one, _METADATA) for one in self.topics)

    def assign(self, places: Iterable[TopicPartition]) -> None:
        """Read these partitions, each from the offset of `start`."""
        self.consumer.assign([kafka.TopicPartition(*place) for place in places])


class GroupConsumer(LogConsumer, kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """A consumer of a group, as the worker uses it.

    Parameters
    ----------
    topics
        The topic to learn, and that of the labels where they have their own.
    options
        As of `LogConsumer`, with ``group_id``.
    assignment
        Gets new partitions.
    leave
        Called on kafka-python's thread, while the worker waits in `poll`, before partitions go,
        while the model may still be saved.
    lose
        Called likewise with partitions that have gone.
    largest
        Bytes of the largest record that is read out of a compressed batch.
    partition
        The partition of each topic that is wanted; None for all.
    shared
        Whether the members share the partitions, instead of one having them all.

    Attributes
    ----------
    longest_silence : float
        Seconds between two polls after which the group takes a member for gone.
    session : float
        Seconds likewise while the group rebalances, as kafka-python sends no heartbeat then.
    """

    def __init__(  # noqa: PLR0913
        self,
        topics: Sequence[str],
        options: Mapping[str, Any],
        assignment: Assignment,
        *,
        leave: Callable[[], None],
        lose: Callable[[list[TopicPartition]], None],
        largest: int = workarounds.LARGEST,
        partition: int | None = None,
        shared: bool = False,
    ) -> None:
        assignor = CooperativeStickyAssignor() if shared else LeadAssignor(partition)
        super().__init__(topics, {"partition_assignment_strategy": [assignor], **options}, largest)
        self.assignment = assignment
        self.partition = partition
        self._leave, self._lose = leave, lose
        self._subscribed = self._waiting = False
        config = self.consumer.config
        self.longest_silence: float = config["max_poll_interval_ms"] / 1000
        self.session: float = config["session_timeout_ms"] / 1000

    def connections(self) -> int:
        """Return the number of brokers that are connected."""
        connections = list(self.consumer._manager._conns.values())  # noqa: SLF001
        return sum(connection.connected for connection in connections)

    def gone(self) -> list[str]:
        """Return the topics that are not there, as of the last metadata."""
        there = self.consumer._cluster.partitions_for_topic  # noqa: SLF001
        return [topic for topic in self.topics if not there(topic)]

    def poll(self, seconds: float) -> Iterator[tuple[TopicPartition, list[Message]]]:
        """Wait for messages; by partition, in the order of their offsets."""
        try:
            yield from super().poll(seconds)
        except FencedInstanceIdError:
            name = self.consumer.config["group_instance_id"]
            raise ConsumerError(
                f"another worker has joined the group as {name}, and replaces this one: "
                "give each a group_instance_id of its own"
            ) from None

    def _is_ready(self, seconds: float) -> bool:
        if not self._subscribed and not self._subscribe():
            time.sleep(min(seconds, 1.0))
            return False
        workarounds.join_again(self.consumer)
        return True

    def _subscribe(self) -> bool:
        """Join the group once the topic exists: kafka-python looks only every five minutes."""
        for topic in self.topics:
            if not workarounds.partitions(self.consumer, topic, _METADATA):
                if not self._waiting:
                    self._waiting = True
                    log.warning("%s: waiting for it", missing(topic))
                return False
        for topic in self.topics:
            numbers = workarounds.partitions(self.consumer, topic, _METADATA)
            check_partition(topic, self.partition, numbers)
        self.consumer.subscribe(list(self.topics), listener=self)
        self.refresh()  # or a leader may assign what it knew before, and have all rejoin
        self._subscribed = True
        return True

    def wake(self) -> None:
        """End the poll that waits, from any thread or signal; without one, the next.

        It sees that once a fetch is answered.
        """
        self.consumer.drift_fetches.woken = True

    # --- what kafka-python calls on its own thread ---------------------------------------------

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Pause new partitions until the worker knows their offsets, for which the poll ends."""
        for place in assigned:
            self.consumer.pause(place)
            self.consumer.seek(place, 0)  # it has to be sought here
            self.assignment.assign([tuple(place)])
            self.wake()

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Save the model, and release the partitions."""
        self._leave()
        self.on_partitions_lost(revoked)

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        """Release partitions that others may have by now."""
        self._lose([tuple(place) for place in lost])

    # --- partitions ----------------------------------------------------------------------------

    def start(self, place: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Start a partition at an offset; see `LogConsumer.start`."""
        super().start(place, offset, leader_epoch)
        self.assignment.start(place)

    def hold(self, places: Iterable[TopicPartition]) -> None:
        """Pause partitions until they start again."""
        ours = self.consumer.assignment()  # not those that are just being revoked
        for place in self.assignment.hold(places):
            if place in ours:
                self.pause(place)

    def committed(self, place: TopicPartition) -> int | None:
        """Return the group's committed offset, or None."""
        with asking():
            offset: int | None = self.consumer.committed(
                kafka.TopicPartition(*place), timeout_ms=1000 * _OFFSETS
            )
        return offset

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets, so that tools show the group's lag."""
        try:
            self.consumer.commit_async(
                {
                    kafka.TopicPartition(*place): OffsetAndMetadata(offset, "", -1)
                    for place, offset in offsets.items()
                    if place in self.assignment.places
                }
            )
        except KafkaError as error:
            log.info("commit: %s", error)
