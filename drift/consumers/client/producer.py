"""A producer of kafka-python: each record in its partition's order, once unless it expires.

It is idempotent: the broker drops a batch that is sent again and was there, and takes them in order
alone. A batch that is not acknowledged within ``delivery_timeout_ms`` expires, and nobody knows
whether the broker has it. kafka-python then loses others, so `Producer.forget` opens another
producer, by which all is sent again since the last flush that returned.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import kafka
from kafka.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumberError,
    RecordListTooLargeError,
    UnknownProducerIdError,
)

from drift._checks import counted
from drift.consumers.client import workarounds
from drift.consumers.client.batches import Batches
from drift.consumers.client.errors import KafkaError, asking, making_clients, missing
from drift.consumers.dead_letters import shortened
from drift.errors import ConsumerError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from drift.consumers.client.batches import Batch
    from drift.consumers.records import Outgoing

__all__ = ["DEFAULTS", "Producer", "UnsentError"]

log = logging.getLogger("drift.consumers")

#: Unacknowledged records; to send more waits for the oldest.
_UNANSWERED = 10_000
#: Bytes of a batch: half of what topics take by default.
_BATCH = 512 << 10
#: Seconds until a batch expires and to wait for the broker's answers; and while the worker stops.
_PATIENCE, _HURRY = 60.0, 5.0
#: What producers have instead of kafka-python's defaults, unless it is given.
DEFAULTS: dict[str, Any] = {
    **workarounds.RECONNECT,
    "acks": "all",
    "enable_idempotence": True,
    "delivery_timeout_ms": int(1000 * _PATIENCE),
    # All of 20 ms in one batch: each is a request, and a thread that wants the GIL.
    "linger_ms": 20,
    "batch_size": _BATCH,
}
#: Seconds to wait for a topic that the broker may create.
_TOPIC = 10.0


class UnsentError(UnavailableError):
    """The broker does not answer: records since the last flush may be lost."""


class Producer:
    """A producer that counts what the broker has acknowledged.

    Parameters
    ----------
    options
        Options of kafka-python.
    hurry
        Whether to wait for no more than a few seconds.

    Attributes
    ----------
    confirmed : int
        Records that the broker has confirmed.
    """

    def __init__(
        self, options: Mapping[str, Any], hurry: Callable[[], bool] = lambda: False
    ) -> None:
        self._hurry = hurry
        self._unanswered: deque[Batch] = deque()
        self._waiting = 0  # records in them
        self._counts: dict[str, int] = {}  # partitions by topic
        self._gone: set[str] = set()  # topics that are no longer there
        self.confirmed = 0
        given = {**DEFAULTS, "request_timeout_ms": 30_000, **options}
        shortest = given["linger_ms"] + given["request_timeout_ms"] + 1
        self._options = {
            **DEFAULTS,
            "delivery_timeout_ms": max(DEFAULTS["delivery_timeout_ms"], shortest),
            "batch_size": min(_BATCH, options.get("max_request_size", _BATCH)),
            **options,
        }
        self._open()

    def _open(self) -> None:
        with making_clients(self._options):
            self.producer = kafka.KafkaProducer(**self._options)
        self.producer._metadata.add_listener(self._look)  # noqa: SLF001
        self._batches = Batches(self.producer)
        self._failed = False  # so that another one has to be opened

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def check(self, topics: Iterable[str]) -> None:
        """Require topics, or let the broker create them.

        Raises
        ------
        ConsumerError
            If there is none of that name.
        UnsentError
            If the broker does not answer.
        """
        for topic in topics:
            with workarounds.not_logged(topic):
                self._counts[topic] = self._count(topic)
        # One that is deleted from now on would come back with the broker's number of partitions.
        workarounds.make_no_topics(self.producer)

    def _count(self, topic: str) -> int:
        """Return the number of a topic's partitions."""
        started = time.monotonic()
        while True:
            with suppress(KafkaTimeoutError):
                if partitions := self.producer._wait_on_metadata(topic, 1000):  # noqa: SLF001
                    return len(partitions)
            now = time.monotonic()
            answered = self.producer._metadata._last_successful_refresh_ms / 1000  # noqa: SLF001
            if answered > started and now - started > _TOPIC:
                raise ConsumerError(
                    f"there is no topic {topic}, the broker makes none, or this user may not see "
                    "it: create it, or send nothing there"
                )
            if now - started > self._patience():
                raise UnsentError(f"the broker does not answer, not even whether there is {topic}")

    def _look(self, cluster: Any) -> None:
        """Say which topics are gone, on kafka-python's thread: what is sent there waits long."""
        counts = dict(self._counts)
        gone = {topic for topic in counts if not cluster.partitions_for_topic(topic)}
        for topic in gone - self._gone:
            log.warning(
                "%s: what is sent there is tried again for %d s. Create it, with %s",
                *(missing(topic), self._patience(), counted(counts[topic], "partition")),
            )
        self._gone = gone

    def _patience(self) -> float:
        if self._hurry():
            return _HURRY
        return max(_PATIENCE, float(self.producer.config["delivery_timeout_ms"]) / 1000)

    def _unsent(self, why: str) -> UnsentError:
        """Return the error after which this producer of kafka-python is not to be used."""
        self._failed = True
        return UnsentError(why)

    def send(self, outgoing: Outgoing) -> None:
        """Buffer a record, which is sent before the next `flush` returns; else UnsentError."""
        if self._waiting >= _UNANSWERED:
            self._settle(_UNANSWERED // 2)
        topic, key, value, headers, partition = outgoing
        if topic not in self._counts:
            self.check([topic])
        try:
            # Hashing a key in Python takes as long as a score.
            place = topic, partition % self._counts[topic]
            batch = self._batches.add(place, key, value, headers)
        except MessageSizeTooLargeError as error:  # for the producer's limit
            self._send_shorter(outgoing, error)
        except KafkaTimeoutError as error:
            self.check([topic])  # it may be gone
            raise self._unsent(f"the broker takes nothing ({error})") from error
        except ValueError:  # of a partition that is gone: the topic was recreated
            self._counts.pop(topic)
            raise self._unsent(f"{topic} has other partitions than it had") from None
        else:
            self._waiting += 1
            if batch is not None:
                self._unanswered.append(batch)

    def flush(self) -> None:
        """Wait until the broker has acknowledged all records.

        Raises
        ------
        UnsentError
            If it does not answer.
        KafkaError, ConsumerError
            If it refuses any.
        """
        if self._unanswered:
            self._wait()
            self._settle(0)

    def forget(self) -> None:
        """Stop waiting for answers: the records will be sent again.

        After an `UnsentError` what was not sent is dropped.
        """
        self._unanswered.clear()
        self._batches.forget()
        self._waiting = 0
        if self._failed:
            workarounds.force_close(self.producer, _HURRY)
            # Known, it need not be asked for: the broker may still be away.
            self._options["api_version"] = self.producer.config["api_version"]
            self._counts.clear()  # the new one's first metadata has no topic
            self._open()
            workarounds.make_no_topics(self.producer)

    def close(self) -> None:
        """Close the producer; an outage is no error."""
        try:
            self.producer.close(timeout=_HURRY)
        except KafkaError as error:
            log.warning("close: %s", error)
            workarounds.force_close(self.producer)

    def _wait(self) -> None:
        started = time.monotonic()
        while True:
            try:
                self.producer.flush(timeout=1.0)
            except (KafkaTimeoutError, workarounds.SPLIT) as error:
                self._raise_failed()
                if time.monotonic() - started > self._patience():
                    raise self._unsent(f"the broker does not answer ({error})") from error
            else:
                return

    def _raise_failed(self) -> None:
        """Raise what a batch has failed with, while others may be lost: see `force_close`."""
        for batch in self._unanswered:
            for future in batch.futures:
                if future.failed():
                    self._wait_for(future, batch)

    def _settle(self, left: int) -> None:
        """Wait for answers to the oldest batches until at most that many records are left."""
        while self._waiting > left:
            batch = self._unanswered[0]
            for future in batch.futures:  # more come only before the first is answered
                self._wait_for(future, batch)
            self._unanswered.popleft()
            self._waiting -= batch.record_count
            self.confirmed += batch.record_count

    def _wait_for(self, future: Any, batch: Batch) -> None:
        try:
            with asking(self._unsent):
                future.get(timeout=_PATIENCE)
        except (OutOfOrderSequenceNumberError, UnknownProducerIdError) as error:
            raise self._unsent(f"the broker lacks what was sent before ({error})") from error
        except (InvalidRecordError, InvalidTimestampError) as error:
            why = f"{batch.topic_partition.topic} refuses a record ({error}): "
            if "imestamp" not in str(error):
                why += "if it is compacted, set cleanup.policy=delete"
                raise ConsumerError(why) from None
            raise UnavailableError(
                f"{why}the clock of this machine is ahead of the broker's, by more than the topic "
                "takes, message.timestamp.after.max.ms. Correct it"
            ) from None
        except (MessageSizeTooLargeError, RecordListTooLargeError) as error:
            # With it kafka-python gives up all that is on its way: one of these is the culprit.
            size, topic = max(
                (batch.max_record_size, batch.topic_partition.topic) for batch in self._unanswered
            )
            raise ConsumerError(
                f"{topic} does not take a record of {size} bytes ({error}): set the producer's "
                "max_request_size to the topic's max.message.bytes, or raise that"
            ) from None
        except KafkaError as error:
            if type(error) is not KafkaError:
                raise
            # As a frozen broker has not numbered the producer: kafka-python's sends nothing more.
            raise self._unsent(f"the broker does not know the producer ({error})") from error

    def _send_shorter(self, outgoing: Outgoing, error: KafkaError) -> None:
        """Send a dead letter truncated, until the broker accepts it."""
        shorter = shortened(outgoing)
        if shorter is None:
            raise ConsumerError(
                f"{outgoing.topic}: {(outgoing.key or b'')[:80]!r} is too large ({error}): raise "
                "the producer's max_request_size and the topic's max.message.bytes"
            ) from None
        self.send(shorter)
