"""One worker process of a fault test: ``python -m tests.faults.runner '{"address": ...}'``."""

from __future__ import annotations

import ctypes
import errno
import json
import logging
import os
import random
import signal
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any

from kafka.errors import NotLeaderForPartitionError
from kafka.producer.sender import Sender

from drift.consumers import CheckpointFolder, WorkerOptions
from drift.consumers.checkpoints.files import ModelFolder, ModelObjects
from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.consumers.client.consumer import GroupConsumer
from drift.consumers.crash_points import install
from drift.consumers.worker import Worker
from drift.errors import DriftError, UnavailableError
from drift.models import LBP, RBP, Tracker
from tests.crash_points import CHECKPOINT_POINTS, CLAIM_POINTS, MODELS_POINTS
from tests.faults.examples import PARTITIONS, codec

__all__ = [
    "DENIED",
    "PLACE",
    "REFUSED",
    "SESSION",
    "SILENCE",
    "claim_steps",
    "claims",
    "clock",
    "end_with",
    "folder",
    "journal",
    "main",
    "model",
    "shadow",
    "steps",
    "worker_options",
]

log = logging.getLogger(__name__)

#: Variable of the environment that names a store for the checkpoints, instead of a folder.
PLACE = "DRIFT_FAULTS_CHECKPOINTS"
#: What a worker says whose outputs are not taken, or are said not to be.
REFUSED, DENIED = "outputs are refused", "outputs are denied"
#: Linux' option of a process: the signal that it gets as its parent ends.
_PDEATHSIG = 1
#: Session timeout, seconds.
SESSION = 2.0
#: Seconds for which a worker may not poll.
SILENCE = 5.0
#: Seconds after which an output that the broker has not taken is given up.
_DELIVERY = 4.0
#: Seconds of learning after which a worker polls again, and what a message takes of a slow model.
_SLICE, _SLOW = 0.2, 0.02
#: Messages that come again wherever a partition is started, as Kafka may have it.
_AGAIN = 7
#: Where a disk is full.
_WRITES = {
    *(f"checkpoint.{step}" for step in ("order-half-written", "half-written", "written")),
    "models.half-written",
}
#: Share of requests with outputs that are refused while that lasts, and of answers that tell of an
#: error though the broker has the outputs.
_REFUSED, _DENIED = 0.4, 0.4
#: The e-value at which a shadow takes the model's place: by chance, too, so that it comes often.
_PROMOTE = 2.0
#: Of models of keys: how many are in memory and how many leave it at once.
_MODELS, _LEAVE = 30, 10


def steps(*, keyed: bool) -> list[str]:
    """Return where workers kill or freeze themselves as they save."""
    return ["outputs.flushed", *(MODELS_POINTS[1:] if keyed else ()), *CHECKPOINT_POINTS]


def claim_steps(*, keyed: bool) -> list[str]:
    """Return where they do so as they claim."""
    return [*CLAIM_POINTS, *(MODELS_POINTS[:1] if keyed else ())]


def claims(topic: str, *, keyed: bool) -> list[tuple[str, int | None]]:
    """Return what is claimed by one worker each."""
    return [(topic, number) for number in range(PARTITIONS)] if keyed else [(topic, None)]


def model(seed: int, *, late: bool = False) -> Any:
    """Return the model that workers and twin start from: another one with each seed."""
    return (Tracker(100, seed=11, late=late or None), RBP(200, seed=11), LBP(200))[seed % 3]


def shadow(seed: int, *, late: bool = False) -> Any:
    """Return the model beside it, where there is one."""
    return model(seed + 1, late=late)


def _configuration(seed: int, *, shadowed: bool) -> dict[str, Any]:
    """Return what its checkpoints have to agree on."""
    named = {"model": type(model(seed)).__name__, "seed": seed}
    return named | ({"shadow": type(shadow(seed)).__name__} if shadowed else {})


def clock(seed: int) -> str:
    """Return whose the time of a record is; producers' are late, and sometimes far off."""
    return ("log", "create")[seed // 2 % 2]


def worker_options(options: dict[str, Any]) -> WorkerOptions:
    """Return a worker's options; it waits for few late labels, and not long.

    With half of the seeds features have a label if none comes, and keys begin with nothing.
    """
    names = ("topic", "group", "predictions", "dead_letters", "labels", "orphans")
    seed = options["seed"]
    silence: dict[str, Any] = {"silence": False, "after": 2.0, "correct_for": 6.0}
    return WorkerOptions(
        **{name: options[name] for name in names if name in options},
        **(silence if "labels" in options and seed % 2 else {}),
        promote=_PROMOTE if options["shadow"] else None,
        prior=not seed % 2,
        max_models=_MODELS,
        timestamps=clock(seed),
        start="earliest",
        checkpoint_every=400,
        checkpoint_seconds=1.0,
        grace=5.0,
        max_age=10.0,
        pending=1_000,
        pending_bytes=1 << 20,
    )


def folder(path: Path, seed: int, *, shadowed: bool = False) -> CheckpointFolder:
    """Return the group's checkpoints."""
    place = os.environ.get(PLACE, path / "checkpoints")
    return CheckpointFolder(place, _configuration(seed, shadowed=shadowed), keep=3)


def journal(path: Path, checkpoints: CheckpointFolder, claim: tuple[str, int | None]) -> Path:
    """Return the folder with the order; a store has none, so that a test keeps it beside."""
    kept = checkpoints.folder(claim)
    return path / "order" / kept.name if PLACE in os.environ else Path(kept)


def _keep_order(path: Path) -> None:
    """Have the order of checkpoints in a store written to a folder."""

    def append(self: ModelObjects, *line: Any) -> None:
        beside = path / self.path.name
        beside.mkdir(parents=True, exist_ok=True)
        ModelFolder(beside).append_order(*line)

    ModelObjects.append_order = append  # type: ignore[method-assign]


def _obey(root: Path, points: list[str]) -> None:
    """Do as files say: have no disk space, learn or take over slowly, send oneself a signal.

    A file "full", "slow" or "takeover" counts while it is there. A file "signal-" and the pid holds
    its number and the step.
    """
    full, slow, asked = root / "full", root / "slow", root / f"signal-{os.getpid()}"
    takeover = root / "takeover"

    def handler(point: str) -> None:
        while takeover.exists() and point == "claim.loaded":
            time.sleep(0.05)
        if full.exists() and point in _WRITES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        wish = asked.read_text(encoding="utf-8") if asked.exists() else ""
        number, _, step = wish.partition(" ")
        if step == point:
            asked.unlink(missing_ok=True)
            os.kill(os.getpid(), int(number))

    for point in points:
        install(point, partial(handler, point))
    install("message.taken", lambda: time.sleep(_SLOW) if slow.exists() else None)


def _redeliver() -> None:
    """Have a partition start with messages that were learnt already."""
    start = GroupConsumer.start

    def early(self: GroupConsumer, place: tuple[str, int], offset: int, *leader_epoch: int) -> None:
        start(self, place, max(0, offset - _AGAIN), *leader_epoch)

    GroupConsumer.start = early  # type: ignore[method-assign]


def _refuse(root: Path) -> None:
    """Have requests with outputs fail by errors that pass, while a file "errors" is there.

    Of a request that is refused the broker has nothing, of an answer that is denied it has all. A
    file that is not empty has all requests refused.
    """
    create, complete = Sender._create_produce_requests, Sender._complete_batch
    errors, draw = root / "errors", random.Random(os.getpid())

    def is_hit(share: float) -> bool:
        return errors.exists() and (draw.random() < share or errors.stat().st_size > 0)

    def requests(self: Sender, collated: dict[int, list[Any]]) -> Any:
        refused = [node for node, batches in collated.items() if batches and is_hit(_REFUSED)]
        for batch in (batch for node in refused for batch in collated.pop(node)):
            log.info(REFUSED)
            self._complete_batch_with_exception(batch, NotLeaderForPartitionError("refused"))
        return create(self, collated)

    def answer(self: Sender, batch: Any, response: Any) -> None:
        if response.error_code == 0 and is_hit(_DENIED):
            log.info(DENIED)
            response.error_code = NotLeaderForPartitionError.errno
        complete(self, batch, response)

    Sender._create_produce_requests, Sender._complete_batch = requests, answer


def end_with(parent: int) -> None:
    """End with the process that started this one, however that ends, and though this is frozen."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        sys.exit(0)


def main(text: str) -> None:
    """Work until SIGTERM."""
    options = json.loads(text)
    end_with(options["parent"])
    root, seed = Path(options["root"]), options["seed"]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("kafka").setLevel(options.get("level", "ERROR"))
    is_keyed = options["keyed"]
    _obey(root, [*steps(keyed=is_keyed), *claim_steps(keyed=is_keyed)])
    _refuse(root)
    _redeliver()
    _keep_order(root / "order")
    ModelStore.at_once = _LEAVE
    worker = Worker(
        model(seed),
        folder(root, seed, shadowed=options["shadow"]),
        {
            "bootstrap_servers": options["address"],
            "reconnect_backoff_ms": 50,
            "reconnect_backoff_max_ms": 500,
        },
        worker_options(options),
        codec=codec(keyed=is_keyed),
        shadow=shadow(seed) if options["shadow"] else None,
        consumer={
            "session_timeout_ms": int(1000 * SESSION),
            "heartbeat_interval_ms": int(1000 * SESSION / 5),
            "max_poll_interval_ms": int(1000 * SILENCE),
            "max_poll_records": 200,
        },
        # Unless the worker waits for its outputs, a kill after the checkpoint loses some.
        producer={
            "linger_ms": 300,
            "request_timeout_ms": int(750 * _DELIVERY),
            "delivery_timeout_ms": int(1000 * _DELIVERY),
        },
    )
    worker._slice = _SLICE
    try:
        worker.run()
    except DriftError as error:  # as the command line ends
        traceback.print_exc()
        sys.exit(1 if isinstance(error, UnavailableError) else 2)


if __name__ == "__main__":
    main(sys.argv[1])
