"""Partitions and offsets of topics, and reading them without a group.

For the command line; `drift.consumers.worker` learns.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import kafka
import kafka.admin

from drift.consumers.client import consumer, workarounds
from drift.consumers.client.errors import (
    KafkaError,
    asking,
    check_partition,
    making_clients,
    missing,
    truncated,
)
from drift.consumers.records import check_topic
from drift.errors import ConsumerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from drift.consumers.records import Message

__all__ = [
    "Reader",
    "configs",
    "create",
    "known_options",
    "members",
]

log = logging.getLogger("drift.consumers")

#: What is said of a configuration that the broker does not show.
_UNSHOWN = "not known is whether topics are compacted, and for how long they keep messages"
#: Seconds to look for the coordinator of a group, and for what topics are configured by, which a
#: takeover waits for.
_GROUP, _CONFIGS = 15, 5


def known_options() -> dict[str, dict[str, Any]]:
    """Return kafka-python's options with their defaults: of all clients, and of each kind."""
    consumer, producer = kafka.KafkaConsumer.DEFAULT_CONFIG, kafka.KafkaProducer.DEFAULT_CONFIG
    shared = {name: consumer[name] for name in consumer if name in producer}
    return {"kafka": shared, "consumer": consumer, "producer": producer}


def create(topic: str, partitions: int, options: Mapping[str, Any]) -> None:
    """Create a topic, with the broker's own number of replicas, and wait until it is there.

    Parameters
    ----------
    topic
        Its name.
    partitions
        Number of its partitions.
    options
        Options of kafka-python.
    """
    with _admin(options) as admin:
        wanted = {"num_partitions": partitions, "replication_factor": -1}
        admin.create_topics({topic: wanted}, wait_for_metadata=True)


def configs(
    groups: Iterable[Iterable[str]], options: Mapping[str, Any]
) -> dict[str, dict[str, str]]:
    """Return the configuration of topics, as far as the broker shows it within some seconds.

    Parameters
    ----------
    groups
        Their names, by requests: a right that the user lacks for one hides all of its request.
    options
        Options of kafka-python.
    """
    kind = kafka.admin.ConfigResourceType.TOPIC
    found: dict[str, Any] = {}
    hasty = dict.fromkeys(("bootstrap_timeout_ms", "request_timeout_ms"), 1000 * _CONFIGS)
    try:
        with _admin({**options, **hasty}) as admin:
            for topics in groups:
                asked = [kafka.admin.ConfigResource(kind, topic) for topic in topics]
                if not asked:
                    continue
                found |= admin.describe_configs(asked, config_filter="all")["topic"]
    except (KafkaError, KeyError) as problem:
        log.info("%s: %s", _UNSHOWN, problem)
    if hidden := [topic for topic, of in found.items() if not of]:  # a right of its own
        log.info("%s: %s, for which this user may lack DescribeConfigs", _UNSHOWN, hidden)
    return {
        topic: {name: one["value"] for name, one in of.items() if one["value"] is not None}
        for topic, of in found.items()
    }


def members(group: str, options: Mapping[str, Any]) -> list[str]:
    """Return the members of a group: the instance or client of each, and its host.

    Parameters
    ----------
    group
        The group.
    options
        Options of kafka-python.

    Raises
    ------
    ConsumerError
        If the broker does not say it.
    UnavailableError
        If it does not answer.
    """
    patience = time.monotonic() + _GROUP
    with asking(), _admin(options) as admin:
        while True:
            try:
                described = admin.describe_groups([group])[group]
                passes = "Coordinator" in (described["error"] or "")  # returned, not raised
            except KafkaError as error:  # as of a coordinator that is not there yet
                if not error.retriable or time.monotonic() > patience:
                    raise
            else:
                if not passes or time.monotonic() > patience:
                    break
            time.sleep(0.2)
    if described["error"] and "GroupIdNotFound" not in described["error"]:
        raise ConsumerError(f"the broker does not say who is in {group}: {described['error']}")
    return [
        f"{member['group_instance_id'] or member['client_id']} "
        f"at {member['client_host'].lstrip('/')}"
        for member in described["members"]
    ]


@contextmanager
def _admin(options: Mapping[str, Any]) -> Iterator[Any]:
    known = kafka.KafkaAdminClient.DEFAULT_CONFIG
    with making_clients():
        admin = kafka.KafkaAdminClient(**{k: v for k, v in options.items() if k in known})
    try:
        yield admin
    finally:
        admin.close()


class Reader:
    """Reads all partitions of a topic from their first offsets, without a group.

    Parameters
    ----------
    topic
        The topic.
    options
        Options of kafka-python.

    Attributes
    ----------
    partitions : list of int
        Numbers of its partitions; empty where there is no such topic.

    Raises
    ------
    ParameterError
        If no topic can have that name.
    """

    def __init__(self, topic: str, options: Mapping[str, Any]) -> None:
        check_topic(topic)
        self.topic = topic
        # A member's identity is for its group alone.
        given = {name: value for name, value in options.items() if name != "group_instance_id"}
        # Else it would be five minutes until partitions that were added are seen.
        defaults = {"metadata_max_age_ms": 10_000}
        # What is deleted meanwhile is skipped.
        ours = {"auto_offset_reset": "earliest"}
        self._consumer = consumer.connect({**defaults, **given, **ours})
        self.partitions: list[int] = []
        self.refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._consumer.close(timeout_ms=1000)

    def refresh(self) -> None:
        """Refresh the metadata: the topic may be there now, or have more partitions."""
        numbers = sorted(self._consumer.partitions_for_topic(self.topic) or ())
        new = [self._place(number) for number in numbers if number not in self.partitions]
        if new:
            self.partitions = numbers
            self._consumer.assign([self._place(number) for number in numbers])
            self._consumer.seek_to_beginning(*new)

    def require(self, partition: int | None = None) -> None:
        """Raise ConsumerError where there is no such topic, or not this partition of it."""
        if not self.partitions:
            raise ConsumerError(missing(self.topic))
        check_partition(self.topic, partition, self.partitions)

    def ends(self) -> dict[int, int]:
        """Return the end offset of each partition."""
        offsets = self._consumer.end_offsets([self._place(number) for number in self.partitions])
        return {place.partition: offset for place, offset in offsets.items()}

    def starts(self, start: str | float) -> dict[int, int]:
        """Return the offset of each partition where learning starts.

        Parameters
        ----------
        start
            ``"earliest"``, ``"latest"``, or seconds since 1970: at the first message of that time
            or later, or at the end where there is none.
        """
        if start == "earliest":
            return self.beginnings()
        ends = self.ends()
        if isinstance(start, str):
            return ends
        asked = {self._place(number): int(1000 * start) for number in self.partitions}
        offsets = self._consumer.offsets_for_times(asked)
        first = {
            place.partition: found.offset for place, found in offsets.items() if found is not None
        }
        return ends | first

    def identity(self, *, of_labels: bool = False) -> dict[str, str]:
        """The identity of the topic, which may be that of the labels, as far as it is known."""
        topic, labels = (None, self.topic) if of_labels else (self.topic, None)
        return consumer.identity(self._consumer, topic, labels)

    def committed(self) -> dict[int, int]:
        """Return the group's committed offsets by partition; empty if none."""
        offsets = {
            number: self._consumer.committed(self._place(number)) for number in self.partitions
        }
        return {number: offset for number, offset in offsets.items() if offset is not None}

    def beginnings(self) -> dict[int, int]:
        """Return the offset of the first message of each partition."""
        offsets = self._consumer.beginning_offsets(
            [self._place(number) for number in self.partitions]
        )
        return {place.partition: offset for place, offset in offsets.items()}

    def poll(self, seconds: float) -> Iterator[Message]:
        """Wait for messages, in the order of each partition."""
        for _, messages in consumer.read(self._consumer, seconds):
            yield from messages

    def read(
        self,
        ends: Mapping[int, int],
        beginnings: Mapping[int, int] | None = None,
        seconds: float = 30,
    ) -> Iterator[Message]:
        """Yield the messages of partitions up to their ends, in the order of each.

        Another read may begin and end meanwhile.

        Parameters
        ----------
        ends
            The end offset to read to, by partition, as of `ends`.
        beginnings
            First offsets, where they differ from those of the log.
        seconds
            For how long the broker may say nothing.

        Raises
        ------
        ConsumerError
            If the broker does not answer in `seconds`, or a log is truncated while it is read.
        """
        first = self._consumer.beginning_offsets([self._place(number) for number in ends])
        positions = {
            number: max(first[self._place(number)], (beginnings or {}).get(number, 0))
            for number in ends
        }
        others = [self._place(number) for number in self.partitions if number not in ends]
        try:
            yield from self._read(ends, positions, others, seconds)
        finally:
            self._consumer.resume(*others)

    def _read(
        self, ends: Mapping[int, int], positions: dict[int, int], others: list[Any], seconds: float
    ) -> Iterator[Message]:
        mine = {number: self._place(number) for number in ends}
        waited = 0.0  # in polls alone: who takes the messages may do so slowly
        while any(positions[number] < end for number, end in ends.items()):
            # Each time, as another read may have changed this meanwhile.
            self._consumer.resume(*mine.values())
            self._consumer.pause(*others)
            for place in mine.values():
                workarounds.seek(self._consumer, place, positions[place.partition])
            began = time.monotonic()
            messages = [*self.poll(0.5)]
            waited += time.monotonic() - began
            # The last offset may be none of a message: of a transaction's end, or compacted away.
            now = {number: self._consumer.position(place) for number, place in mine.items()}
            for number, offset in [*now.items(), *(one.position[1:] for one in messages)]:
                # kafka-python has gone back to the first, as the log lacks what comes next.
                if offset < positions.get(number, 0):
                    raise truncated(self.topic, number, positions[number])
            for message in messages:
                if message.position.offset < ends.get(message.position.partition, 0):
                    yield message
            if now != positions:
                waited = 0.0
            elif waited > seconds:
                raise ConsumerError(f"{self.topic} cannot be read to its end: try again")
            positions = now

    def sample(
        self, count: int, start: str | None = None, partition: int | None = None
    ) -> list[Message]:
        """Return the first messages of the log in the order of their times, or the last.

        Parameters
        ----------
        count
            How many at most.
        start
            ``"latest"`` for the last ones, anything else for the first.
        partition
            The partition to read; None for all.
        """
        is_end = start == "latest"
        begins, ends = self.beginnings(), self.ends()
        chosen = [number for number in ends if partition in {None, number}]
        longest = max((ends[n] - begins[n] for n in chosen), default=0)
        width = count
        while True:
            first = {n: max(begins[n], ends[n] - width) if is_end else begins[n] for n in chosen}
            upto = {n: ends[n] if is_end else min(ends[n], begins[n] + width) for n in chosen}
            found = sorted(self.read(upto, first), key=lambda one: (one.time, one.position))
            if len(found) >= count or width >= longest:
                return found[-count:] if is_end else found[:count]
            width *= 4  # many offsets have no message: of transactions, or of what was compacted

    def at(self, partition: int, offset: int, seconds: float = 10.0) -> Message | None:
        """Return the message at an offset; None where there is none, or no longer.

        Raises
        ------
        ConsumerError
            If the broker does not answer in `seconds`.
        """
        place = self._place(partition)
        if self._consumer.beginning_offsets([place])[place] > offset:
            return None
        self._consumer.assign([place])
        self._consumer.seek(place, offset)
        for message in self.poll(seconds):
            return message if message.position.offset == offset else None
        if self._consumer.position(place) > offset:  # a transaction's end
            return None
        raise ConsumerError(f"{self.topic}:{partition}:{offset} cannot be read: try again")

    def _place(self, partition: int) -> Any:
        return kafka.TopicPartition(self.topic, partition)
