"""One worker process of a fault test: ``python -m tests.faults.runner '{"address": ...}'``."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from drift.consumers import CheckpointFolder
from drift.consumers._points import install
from drift.models import RBP
from tests.faults.examples import codec

__all__ = ["SESSION", "configuration", "folder", "main", "model"]

#: Session timeout, seconds.
SESSION = 2.0


def model() -> RBP:
    """Return the model that workers and plain loop start from."""
    return RBP(200, seed=11)


def configuration() -> dict[str, Any]:
    """Return what its checkpoints have to agree on."""
    return {"model": "RBP", "budget": 200, "seed": 11}


def folder(path: Path) -> CheckpointFolder:
    """Return the group's checkpoints."""
    return CheckpointFolder(path / "checkpoints", configuration(), keep=3)


def _fail_while_full(flag: Path) -> None:
    def handler() -> None:
        if flag.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for point in ("checkpoint.half-written", "checkpoint.written"):
        # One of the two may be where the process is to kill itself.
        if not os.environ.get("DRIFT_ABORT_AT", "").startswith(f"{point}:"):
            install(point, handler)


def main(text: str) -> None:
    """Work until SIGTERM."""
    from drift.consumers.worker import Worker  # noqa: PLC0415 - an extra

    options = json.loads(text)
    root = Path(options["root"])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("kafka").setLevel(options.get("level", "ERROR"))
    _fail_while_full(root / "full")
    Worker(
        model(),
        options["topic"],
        options["group"],
        folder(root),
        {
            "bootstrap_servers": options["address"],
            "reconnect_backoff_ms": 50,
            "reconnect_backoff_max_ms": 500,
        },
        start="earliest",
        predictions=options["predictions"],
        dead_letters=options["dead_letters"],
        codec=codec(),
        every_messages=400,
        every_seconds=1.0,
        consumer={
            "session_timeout_ms": int(1000 * SESSION),
            "heartbeat_interval_ms": int(1000 * SESSION / 5),
            "max_poll_records": 200,
        },
    ).run()


if __name__ == "__main__":
    main(sys.argv[1])
