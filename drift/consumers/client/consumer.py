"""kafka-python as drift reads from it, and what was learnt about it.

- Bytes are polled and decoded by drift: a deserializer that raises would make the next poll hang.
- Listeners run on kafka-python's own thread while the worker waits in `poll`. They may seek and
  pause, and nothing else that talks to the broker; what has to be asked is asked after the poll.
- Offsets in Kafka are informative. Where a model goes on is written in its checkpoint.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import kafka
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import FencedInstanceIdError
from kafka.structs import OffsetAndMetadata

from drift.consumers.client import workarounds
from drift.consumers.client.errors import GONE, UNREADABLE, KafkaError, asking, making_clients
from drift.consumers.records import Gap, Message, Position
from drift.errors import ConsumerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from drift.consumers.assignment import Assignment

__all__ = ["GroupConsumer", "SingleAssignor", "connect", "read"]

log = logging.getLogger("drift.consumers")

#: Seconds to wait for what the broker knows of a topic, and of offsets.
_METADATA, _OFFSETS = 2, 10


def connect(options: Mapping[str, Any], largest: int = workarounds.LARGEST) -> Any:
    """Return a consumer of kafka-python that never commits by itself, nor makes a topic.

    Parameters
    ----------
    options
        Options of kafka-python.
    largest
        Bytes of the largest record that is read out of a compressed batch.
    """
    with making_clients(options):
        made = kafka.KafkaConsumer(
            **{
                **workarounds.CONSUMER,
                # Examples of transactions that were given up are none.
                "isolation_level": "read_committed",
                # A broker that makes topics for whoever asks gives them one partition.
                "allow_auto_create_topics": False,
                **options,
                "enable_auto_commit": False,
            }
        )
    workarounds.mend(made, largest)
    return made


def read(consumer: Any, seconds: float) -> Iterator[tuple[tuple[str, int], list[Message]]]:
    """Wait for messages; by partition, in the order of their offsets."""
    for place, records in consumer.poll(timeout_ms=int(1000 * seconds)).items():
        yield (
            tuple(place),
            [
                Message(
                    Position(r.topic, r.partition, r.offset),
                    r.key,
                    r.value,
                    r.headers,
                    r.timestamp,
                    r.leader_epoch,
                    r.timestamp_type == 1,
                )
                for r in records
            ],
        )


class SingleAssignor(RangePartitionAssignor):  # type: ignore[misc]
    """Gives one member all partitions; the others stand by."""

    name = "drift-single"

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> Any:
        """Assign everything to the first member, by its instance and its identifier."""
        first = min(members, key=lambda m: (m.group_instance_id or "", m.member_id))
        assignment = dict(super().assign(cluster, [first]))
        empty = type(next(iter(assignment.values())))(
            version=cls.version, assigned_partitions=[], user_data=b""
        )
        return {member.member_id: assignment.get(member.member_id, empty) for member in members}


class GroupConsumer(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """A consumer of a group, as the worker uses it.

    Parameters
    ----------
    topics
        The topic to learn, and that of the labels where they have their own.
    options
        Options of kafka-python: ``group_id``, ``bootstrap_servers``, security, timeouts, ...
    assignment
        What is told of partitions that come.
    save
        Called on kafka-python's thread, while the worker waits in `poll`, with partitions that will
        go, while their models may still be saved.
    largest
        Bytes of the largest record that is read out of a compressed batch.

    Attributes
    ----------
    longest_silence : float
        Seconds between two polls after which the group takes a member for gone.
    """

    def __init__(
        self,
        topics: Sequence[str],
        options: Mapping[str, Any],
        assignment: Assignment,
        save: Callable[[list[tuple[str, int]]], None],
        largest: int = workarounds.LARGEST,
    ) -> None:
        self.topics = topics
        self.assignment = assignment
        self._save = save
        self._subscribed = self._waiting = False
        self._largest = largest
        self._options = {
            "max_poll_records": 500,
            # Partitions that are added are seen within a minute, and not within five.
            "metadata_max_age_ms": 60_000,
            **options,
            "auto_offset_reset": "none",
        }
        if len(topics) > 1:
            # Gives one member the same partitions of each. And what is given up is in no log.
            self._options["partition_assignment_strategy"] = [RangePartitionAssignor]
            self._options["isolation_level"] = "read_committed"
        self.consumer = connect(self._options, largest)
        self._second: Any = None  # reads what was read before
        self.longest_silence: float = self.consumer.config["max_poll_interval_ms"] / 1000

    def connections(self) -> int:
        """Return the number of brokers that are connected."""
        return sum(one.connected for one in list(self.consumer._manager._conns.values()))  # noqa: SLF001

    # --- messages ------------------------------------------------------------------------------

    def poll(self, seconds: float) -> Iterator[tuple[tuple[str, int], list[Message]]]:
        """Wait for messages; by partition, in the order of their offsets."""
        try:
            if not self._subscribed and not self._subscribe():
                time.sleep(min(seconds, 1.0))
                return
            workarounds.join_again(self.consumer)
            yield from list(read(self.consumer, seconds))
        except FencedInstanceIdError:
            name = self.consumer.config["group_instance_id"]
            raise ConsumerError(
                f"another worker has joined the group as {name}, and goes on in place of this one: "
                "give each a group_instance_id of its own"
            ) from None
        except GONE as error:
            raise Gap(self._gone(error)) from None
        except UNREADABLE as error:
            raise ConsumerError(
                f"kafka-python cannot read a message ({error}), the first after one of "
                f"{', '.join(self._positions())}: install what it lacks, or delete what is damaged "
                "from the topic and go on with on_gap='skip'"
            ) from None
        except KafkaError as error:
            if not error.retriable:
                raise
            log.warning("poll: %s", error)

    def _gone(self, error: Any) -> dict[Any, int]:
        """Return the offsets that the broker does not have, or not behind their leader epoch."""
        truncated = getattr(error, "divergent_offsets", None)
        if truncated is None:
            return dict(error.args[0])
        position = self.consumer._subscription.position  # noqa: SLF001
        return {place: position(place).offset for place in truncated}

    def _subscribe(self) -> bool:
        """Join the group once there is the topic: kafka-python looks for it every five minutes."""
        for topic in self.topics:
            if not self.consumer.partitions_for_topic(topic):
                if not self._waiting:
                    self._waiting = True
                    log.warning(
                        "there is no topic %s, or this user may not see it: waiting for it", topic
                    )
                return False
        self.check_counts()
        self.consumer.subscribe(list(self.topics), listener=self)
        self.refresh()  # or a leader may assign what it knew before, and have all join once more
        self._subscribed = True
        return True

    def check_counts(self) -> None:
        """Refuse topics of which one has more partitions than the other."""
        counts = {t: len(self.consumer.partitions_for_topic(t) or ()) for t in self.topics}
        if len(set(counts.values())) > 1:
            said = " and ".join(f"{topic} has {count}" for topic, count in counts.items())
            raise ConsumerError(
                f"{said} partitions: a label is in the partition of its features, so that both "
                "need as many. Stop the workers to add partitions, and add them to both"
            )

    def again(self, place: tuple[str, int], offset: int) -> tuple[list[Message], int]:
        """Read once more what was read before, from an offset on: a fetch, and where it ends."""
        partition = kafka.TopicPartition(*place)
        if self._second is None:
            alone = {k: v for k, v in self._options.items() if k != "group_instance_id"}
            self._second = connect({**alone, "group_id": None}, self._largest)
        with asking():
            if self._second.assignment() != {partition}:
                self._second.assign([partition])
                self._second.seek(partition, offset)
            elif self._second.position(partition) != offset:
                self._second.seek(partition, offset)
            try:
                fetched = [one for _, messages in read(self._second, 1.0) for one in messages]
            except GONE as error:
                raise Gap({place: offset}) from error
            return fetched, self._second.position(partition)

    # --- what kafka-python calls on its own thread ---------------------------------------------

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Hold partitions back until the worker knows where to go on."""
        for place in assigned:
            self.consumer.pause(place)
            self.consumer.seek(place, 0)  # it has to be sought here
            self.assignment.assign([tuple(place)])

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Have models saved, and let their partitions go."""
        self._save([tuple(place) for place in revoked])
        self.on_partitions_lost(revoked)

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        """Let partitions go that others may have by now."""
        self.assignment.lose([tuple(place) for place in lost])

    # --- partitions ----------------------------------------------------------------------------

    def begin(self, place: tuple[str, int], offset: int, leader_epoch: int = -1) -> None:
        """Go on with a partition at an offset.

        If the leader epoch of the message before is known, `poll` raises `Gap` where that one is
        not in the log any more.
        """
        workarounds.seek(self.consumer, place, offset, leader_epoch)
        self.consumer.resume(kafka.TopicPartition(*place))
        self.assignment.begin(place)

    def hold(self, places: Iterable[tuple[str, int]]) -> None:
        """Let nothing more come of partitions, and have them begun anew."""
        for place in self.assignment.hold(places):
            self.consumer.pause(kafka.TopicPartition(*place))

    def block(self, place: tuple[str, int]) -> None:
        """Let nothing more come of labels until they are begun again."""
        self.consumer.pause(kafka.TopicPartition(*place))
        self.assignment.block(place)

    def committed(self, place: tuple[str, int]) -> int | None:
        """Offset that the group has committed, None without."""
        with asking():
            offset: int | None = self.consumer.committed(
                kafka.TopicPartition(*place), timeout_ms=1000 * _OFFSETS
            )
        return offset

    def bound(self, place: tuple[str, int], start: str) -> int:
        """First offset of a partition ("earliest") or the one behind its last ("latest")."""
        partition = kafka.TopicPartition(*place)
        ask = self.consumer.beginning_offsets if start == "earliest" else self.consumer.end_offsets
        with asking():
            return int(ask([partition], timeout_ms=1000 * _OFFSETS)[partition])

    def position(self, place: tuple[str, int]) -> tuple[int, int] | None:
        """Offset of what comes next, behind the marks of transactions, which are no messages.

        With the leader epoch of what is before it; None where the partition is not ours.
        """
        if place not in self.consumer.assignment():
            return None
        position = self.consumer._subscription.position(kafka.TopicPartition(*place))  # noqa: SLF001
        return position.offset, position.leader_epoch

    def _positions(self) -> list[str]:
        places = sorted(self.consumer.assignment() - self.consumer.paused())
        return [f"{p.topic}:{p.partition}:{(self.position(p) or '?')[0]}" for p in places]

    def refresh(self) -> None:
        """Have the broker say anew what it knows of the topic; an outage is no error."""
        consumer = self.consumer
        asked = consumer._cluster.request_update()  # noqa: SLF001
        try:
            consumer._net.run(consumer._manager.wait_for, asked, 1000 * _METADATA)  # noqa: SLF001
        except KafkaError as error:
            log.info("metadata: %s", error)

    def identity(self) -> dict[str, str]:
        """What tells the topics from others of their names, as far as the broker has said it."""
        cluster = self.consumer._cluster  # noqa: SLF001
        ids = [cluster.topic_id(topic) for topic in self.topics]
        known = dict(zip(("topic_id", "labels_topic_id"), ids, strict=False))
        said = {name: str(one) for name, one in known.items() if one and one.int}  # 0: none
        return said | ({"cluster_id": cluster.cluster_id} if cluster.cluster_id else {})

    def lag(self, place: tuple[str, int], offset: int) -> int | None:
        """Messages between an offset and the end, as of the last fetch; None before one."""
        end = self.consumer.highwater(kafka.TopicPartition(*place))
        return None if end is None else max(0, end - offset)

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Tell Kafka how far it is, for whoever looks at the group's lag."""
        try:
            self.consumer.commit_async(
                {
                    kafka.TopicPartition(*place): OffsetAndMetadata(offset, "", -1)
                    for place, offset in offsets.items()
                }
            )
        except KafkaError as error:
            log.info("commit: %s", error)

    def close(self) -> None:
        """Leave the group and close the client; an outage then is no error any more."""
        for consumer in filter(None, (self.consumer, self._second)):
            try:
                consumer.close(timeout_ms=5000)
            except KafkaError as error:
                log.warning("close: %s", error)
