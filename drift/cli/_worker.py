"""The options of a worker: keys of ``[worker]`` and of the command line."""

from __future__ import annotations

from dataclasses import dataclass

from drift._options import option

__all__ = ["CodecOptions", "WorkerOptions"]


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """What `drift consume` is told of its worker."""

    topic: str = option("The topic to learn.", argument=True)
    group: str = option("Consumer group.")
    checkpoints: str = option("Folder of the checkpoints, shared by the group's workers.")
    start: str | None = option(
        "Where to start without checkpoint.", None, choices=("earliest", "latest"), name="from"
    )
    on_gap: str = option(
        "Where messages were deleted before they were learnt.", "stop", choices=("stop", "skip")
    )
    predictions: str | None = option("Topic for predictions.", None)
    dead_letters: str | None = option("Topic for messages that cannot be learnt.", None)
    single: bool = option("One model over all partitions.", default=False)
    checkpoint_every: int = option("Messages between checkpoints.", 20_000, least=1)
    checkpoint_seconds: float = option("Seconds between checkpoints.", 10.0, least=0)
    keep: int = option("Checkpoints kept.", 3, least=1)
    metrics_port: int = option("Port for Prometheus; 0 for none.", 0, least=0, most=65535)
    metrics_address: str = option("Address for Prometheus.", "127.0.0.1")
    key_file: str | None = option("File of the key that signs checkpoints.", None)
    allow_pickle: bool = option("For models that are not drift's.", default=False)
    log_json: bool = option("Log JSON objects.", default=False)


@dataclass(frozen=True, kw_only=True)
class CodecOptions:
    """Parameters of `drift.consumers.JsonCodec`."""

    labels: list[object] | None = option("The labels that there are.", None)
    require_label: bool = option("Refuse messages without a label.", default=False)
    raw: bool = option("Leave strings and null to a pipeline.", default=False)
    max_bytes: int = option("Size of the largest value.", 1 << 20, least=1)
