"""The options of `drift consume`: keys of ``[worker]`` and of the command line."""

from __future__ import annotations

from dataclasses import dataclass

from drift._options import option
from drift.consumers.options import WorkerOptions

__all__ = ["ConsumeOptions"]


@dataclass(frozen=True, kw_only=True)
class ConsumeOptions(WorkerOptions):
    """What the command is told of its worker."""

    checkpoints: str = option(
        "Folder of the checkpoints, shared by the group's workers, or s3://bucket/prefix."
    )
    keep: int = option("Checkpoints kept.", 3, least=1)
    metrics_port: int = option("Port for Prometheus; 0 for none.", 0, least=0, most=65535)
    metrics_address: str = option("Address for Prometheus.", "127.0.0.1")
    key_file: str | None = option("File of the key that signs checkpoints.", None)
    allow_pickle: bool = option("Allow pickle, for models that are not drift's.", default=False)
    log_json: bool = option("Log JSON objects.", default=False)
