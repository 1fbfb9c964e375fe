"""Test Kafka consumers without Kafka: a broker inside the process, and faults where you want them.

`MockKafka` is a cluster that speaks Kafka's protocol on 127.0.0.1 and keeps its topics in memory,
up in milliseconds: librdkafka's mock cluster, out of the wheel of confluent-kafka. Clients of any
kind connect to it, also from other processes, and `produce` and `consume` are kafka-python's in one
line. `Abort` and `Pause` stop a worker between two of its steps.

What the cluster is not: transactions have no effect, a partition drops its oldest records past 5
MiB, and a group's member that asks for its partitions after the leader has set them is refused, for
which `client_args` and `group_args` make up.
"""

from drift.testing._assignor import patient_assignor
from drift.testing._clients import consume, produce
from drift.testing._faults import Abort, Aborted, Pause
from drift.testing._mock import DISCONNECT, REQUESTS, MockKafka

__all__ = [
    "DISCONNECT",
    "REQUESTS",
    "Abort",
    "Aborted",
    "MockKafka",
    "Pause",
    "consume",
    "patient_assignor",
    "produce",
]
