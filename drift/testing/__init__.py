"""Test Kafka consumers without Kafka: a broker inside the process, and faults where you want them.

`MockKafka` is a cluster that speaks Kafka's protocol on 127.0.0.1 and keeps its topics in memory,
up in milliseconds: librdkafka's mock cluster, out of the wheel of confluent-kafka. Clients of any
kind connect to it, also from other processes, and `produce` and `consume` are kafka-python's in one
line. `Abort` and `Pause` stop a worker between two of its steps.

What the cluster is not: transactions have no effect, a partition drops its oldest records past 5
MiB, and a group's member that asks for its partitions after the leader has set them is refused, for
which `client_args` and `group_args` make up.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

#: Loaded on first use: faults need no extra.
_HOMES = {
    **dict.fromkeys(("Abort", "Aborted", "Pause"), "_faults"),
    **dict.fromkeys(("DISCONNECT", "REQUESTS", "MockKafka"), "_mock"),
    **dict.fromkeys(("consume", "produce"), "_clients"),
    "patient_assignor": "_assignor",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
