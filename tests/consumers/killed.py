"""Processes that are killed at a point, forked from one that has imported what they use."""

import multiprocessing
import os
import signal

from drift.consumers import CheckpointFolder, crash_points
from drift.consumers.checkpoints.checkpoint import Checkpoint
from drift.consumers.checkpoints.files import files_in
from drift.consumers.checkpoints.keyed_store import ModelStore
from drift.consumers.checkpoints.objects import as_path
from drift.consumers.checkpoints.rollback import plan
from drift.consumers.keyed_models import KeyedModels
from drift.models import LBP
from tests.models.streams import drifting_stream

__all__ = ["kill_at", "roll_back", "save", "save_models"]

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    [
        "drift.consumers.checkpoints.folder",
        "drift.consumers.checkpoints.keyed_store",
        "drift.consumers.checkpoints.rollback",
        "drift.consumers.keyed_models",
        "drift.models.budget",
        "scipy.sparse",  # of the streams
        "pytest",  # Each process imports the program that the first one runs.
    ]
)


def kill_at(point, function, *arguments):
    """Call a function in another process, and see SIGKILL end that at the point."""
    environment = dict(os.environ)  # The server keeps the one that it was started with.
    given = point, environment, function, arguments
    process = _PROCESSES.Process(target=_run, args=given, daemon=True)  # ends with us if it hangs
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL, process


def _run(point, environment, function, arguments):
    os.environ.update(environment)
    crash_points._obey(point)
    function(*arguments)


def save(path):
    """Claim a partition of a folder, and save a model of 20 examples."""
    key, folder, model = ("news", 0), CheckpointFolder(path, {"budget": 5}), LBP(5)
    epoch, _ = folder.claim(key)
    for x, y in list(drifting_stream(60))[:20]:
        model.learn_one(x, y)
    folder.save(key, epoch, model, {key: 20}, {"examples": 20})


def save_models(path):
    """Claim a partition, and save models of five keys; memory holds one model at a time."""
    key, folder = ("t", 0), CheckpointFolder(path)
    epoch, checkpoint = folder.claim(key)
    models = KeyedModels(ModelStore(folder.folder(key), epoch, checkpoint.models), 1)
    for name in "abcde":
        models.changed(name, models.get(name) or checkpoint.model)
        models.evict()
    saved = Checkpoint(checkpoint.model, {key: 0}, epoch)
    folder.prepare(key, saved, keyed=models.prepare())()


def roll_back(folder, keep_offsets):
    """Roll a partition's folder back to its first checkpoint."""
    plan(files_in(as_path(folder)), "1-1", keep_offsets=keep_offsets).write(None)
