"""Topics of a benchmark's broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka import KafkaAdminClient

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["make_topics"]


def make_topics(
    address: str, names: Iterable[str], *, partitions: int = 1, log_times: bool = False
) -> None:
    """Make those topics that a broker does not have; `log_times`: times are those of its log."""
    admin = KafkaAdminClient(bootstrap_servers=address)
    wanted: dict[str, Any] = {"num_partitions": partitions, "replication_factor": 1}
    if log_times:
        wanted["configs"] = {"message.timestamp.type": "LogAppendTime"}
    if missing := set(names) - set(admin.list_topics()):
        admin.create_topics(dict.fromkeys(missing, wanted), wait_for_metadata=True)
    admin.close()
