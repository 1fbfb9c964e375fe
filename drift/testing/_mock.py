"""The broker inside the process: librdkafka's mock cluster, driven through its C interface."""

from __future__ import annotations

import ctypes
import time
from ctypes import POINTER, c_char_p, c_int, c_int16, c_int32, c_int64, c_size_t, c_void_p
from itertools import takewhile
from typing import Any, Self

from drift.errors import DriftError, ParameterError, needing
from drift.testing._assignor import patient_assignor

with needing("confluent-kafka", "demo"):
    from confluent_kafka import cimpl

__all__ = ["DISCONNECT", "REQUESTS", "MockKafka"]

#: Requests that can be made to fail, by their names in Kafka's protocol, with their numbers.
REQUESTS = {
    "Produce": 0,
    "Fetch": 1,
    "ListOffsets": 2,
    "Metadata": 3,
    "OffsetCommit": 8,
    "OffsetFetch": 9,
    "FindCoordinator": 10,
    "JoinGroup": 11,
    "Heartbeat": 12,
    "LeaveGroup": 13,
    "SyncGroup": 14,
    "ApiVersions": 18,
    "InitProducerId": 22,
}
#: Seconds without a sign after which a member is out, and for which its group's leader waits less.
_SESSION = 2.0
#: librdkafka's number for a connection that broke.
DISCONNECT = -195
#: The newest level of the protocol on which kafka-python 3 and the mock cluster agree.
API_VERSION = (2, 3)


def _library() -> ctypes.CDLL:
    """librdkafka, with the signatures of what is used of it."""
    # The extension is linked against librdkafka, wherever its wheel keeps that.
    library = ctypes.CDLL(cimpl.__file__)
    signatures: dict[str, tuple[Any, ...]] = {
        "conf_new": (c_void_p,),
        "conf_set": (c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
        "new": (c_void_p, c_int, c_void_p, c_char_p, c_size_t),
        "destroy": (None, c_void_p),
        "err2str": (c_char_p, c_int),
        "mock_cluster_new": (c_void_p, c_void_p, c_int),
        "mock_cluster_destroy": (None, c_void_p),
        "mock_cluster_bootstraps": (c_char_p, c_void_p),
        "mock_topic_create": (c_int, c_void_p, c_char_p, c_int, c_int),
        "mock_group_initial_rebalance_delay_ms": (None, c_void_p, c_int32),
        "mock_broker_set_down": (c_int, c_void_p, c_int32),
        "mock_broker_set_up": (c_int, c_void_p, c_int32),
        "mock_broker_set_rtt": (c_int, c_void_p, c_int32, c_int),
        "mock_partition_delete_records": (c_int, c_void_p, c_char_p, c_int32, c_int64),
        "mock_push_request_errors_array": (None, c_void_p, c_int16, c_size_t, POINTER(c_int)),
        "mock_clear_request_errors": (None, c_void_p, c_int16),
        "mock_start_request_tracking": (None, c_void_p),
        "mock_get_requests": (POINTER(c_void_p), c_void_p, POINTER(c_size_t)),
        "mock_request_api_key": (c_int16, c_void_p),
        "mock_request_destroy_array": (None, POINTER(c_void_p), c_size_t),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class MockKafka:
    """A Kafka cluster inside this process, gone with it.

    Parameters
    ----------
    brokers
        Number of brokers, numbered from 1.
    rebalance_delay
        Seconds for which a group's first member waits for others.

    Attributes
    ----------
    address : str
        ``host:port`` of each broker, with commas between.

    Raises
    ------
    ParameterError
        There is less than one broker.
    MissingExtraError
        confluent-kafka is not installed.

    Examples
    --------
    >>> from drift.testing import MockKafka, consume, produce
    >>> with MockKafka() as broker:
    ...     broker.create_topic("examples", partitions=3)
    ...     produce(broker, "examples", [b"one", b"two"], partition=1)
    ...     [(record.offset, record.value) for record in consume(broker, "examples", 2)]
    [(0, b'one'), (1, b'two')]
    """

    def __init__(self, brokers: int = 1, rebalance_delay: float = 0.1) -> None:
        if brokers < 1:
            raise ParameterError(f"brokers = {brokers}, but a cluster has at least one")
        self._closed = True
        self._library = _library()
        problem = ctypes.create_string_buffer(512)
        settings = self._library.rd_kafka_conf_new()
        # Brokers that go down on purpose would fill the error stream with it.
        self._library.rd_kafka_conf_set(settings, b"log_level", b"0", problem, len(problem))
        self._handle = self._library.rd_kafka_new(0, settings, problem, len(problem))
        if not self._handle:
            raise DriftError(f"librdkafka does not start: {problem.value.decode()}")
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._handle, brokers)
        self._closed = False
        self._library.rd_kafka_mock_group_initial_rebalance_delay_ms(
            self._cluster, round(1000 * rebalance_delay)
        )
        self.address: str = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the cluster; close its clients before."""
        if not self._closed:
            self._closed = True
            self._library.rd_kafka_mock_cluster_destroy(self._cluster)
            self._library.rd_kafka_destroy(self._handle)

    @property
    def client_args(self) -> dict[str, Any]:
        """What every client of kafka-python has to be given.

        Returns
        -------
        dict
            ``bootstrap_servers`` and ``api_version``.
        """
        return {"bootstrap_servers": self.address.split(","), "api_version": API_VERSION}

    @property
    def group_args(self) -> dict[str, Any]:
        """What a member of a consumer group has to be given.

        Returns
        -------
        dict
            `client_args`, an assignor that lets the other members be first, and short timeouts so
            that a member that is gone is missed after two seconds.
        """
        self._library.rd_kafka_mock_start_request_tracking(self._cluster)
        return self.client_args | {
            "partition_assignment_strategy": [patient_assignor(0.75 * _SESSION, self._asked)],
            "session_timeout_ms": round(1000 * _SESSION),
            "heartbeat_interval_ms": 200,
        }

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic.

        Parameters
        ----------
        name
            Its name.
        partitions
            Number of its partitions.

        Raises
        ------
        DriftError
            There is one of that name.
        """
        self._do("mock_topic_create", name.encode(), partitions, 1)

    def down(self, broker: int = -1) -> None:
        """Take one broker down, or all of them: connections break, and none can be made."""
        self._do("mock_broker_set_down", broker)

    def up(self, broker: int = -1) -> None:
        """Bring one broker up again, or all of them, with the records that they had."""
        self._do("mock_broker_set_up", broker)

    def slow(self, seconds: float, broker: int = -1) -> None:
        """Have one broker, or all of them, answer so much later; 0 ends it."""
        self._do("mock_broker_set_rtt", broker, round(1000 * seconds))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Delete a partition's records below an offset, as a topic's retention does."""
        self._do("mock_partition_delete_records", topic.encode(), partition, before)

    def fail(self, request: str, *errors: int) -> None:
        """Have the next requests of one kind fail, one for each error.

        Parameters
        ----------
        request
            Its name, such as ``"Fetch"``; see `REQUESTS`.
        errors
            Numbers of Kafka's errors, such as 6 (NOT_LEADER_OR_FOLLOWER), or `DISCONNECT`. None
            at all takes back those that have not happened yet.

        Raises
        ------
        ParameterError
            No request has that name.
        """
        if request not in REQUESTS:
            raise ParameterError(f"request = {request!r}, but there is {', '.join(REQUESTS)}")
        key, count = REQUESTS[request], len(errors)
        if errors:
            self._library.rd_kafka_mock_push_request_errors_array(
                self._cluster, key, count, (ctypes.c_int * count)(*errors)
            )
        else:
            self._library.rd_kafka_mock_clear_request_errors(self._cluster, key)

    def _asked(self) -> int:
        """Count the members that have sent SyncGroup since the last one joined."""
        count = ctypes.c_size_t()
        requests = self._library.rd_kafka_mock_get_requests(self._cluster, ctypes.byref(count))
        kind = self._library.rd_kafka_mock_request_api_key
        keys = [kind(requests[number]) for number in range(count.value)]
        self._library.rd_kafka_mock_request_destroy_array(requests, count.value)
        groups = [key for key in keys if key in (REQUESTS["JoinGroup"], REQUESTS["SyncGroup"])]
        return len(list(takewhile(REQUESTS["SyncGroup"].__eq__, reversed(groups))))

    def _do(self, function: str, *arguments: object) -> None:
        error = getattr(self._library, f"rd_kafka_{function}")(self._cluster, *arguments)
        # What is asked while the cluster's thread still ends this, it sleeps through: for a second.
        time.sleep(0.001)
        if error:
            text = self._library.rd_kafka_err2str(error).decode()
            raise DriftError(f"{function}{arguments}: {text}")
