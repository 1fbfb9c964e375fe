"""Runs in, records out: computes them on all cores, and never one twice.

An experiment is a list of runs; everything about processes, resuming and progress is here.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from joblib import delayed
from rich import progress as bars
from rich.console import Console
from threadpoolctl import ThreadpoolController

from drift.errors import ParameterError
from drift.experiments import cluster
from drift.experiments.folder import locked_folder
from drift.experiments.jobs import count_in
from drift.experiments.results import Results

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from drift.experiments.folder import RunFolder
    from drift.experiments.jobs import Record, Run
    from drift.experiments.results import ExperimentKind

__all__ = ["How", "run_all", "run_experiment"]

#: Seconds between two looks at how far the runs are.
_LOOKING = 0.5


class How(TypedDict, total=False):
    """How runs are computed, by keyword: see `run_all`."""

    jobs: int
    backend: str
    address: str | None
    progress: bool


def run_all(  # noqa: PLR0913 - what to run, and how, by keyword
    runs: Sequence[Run],
    *,
    folder: RunFolder | None = None,
    jobs: int = -1,
    backend: str = "loky",
    address: str | None = None,
    progress: bool = False,
) -> list[Record]:
    """Compute the runs that the folder lacks, the longest first, and return the records of all.

    Each record is in the folder as soon as its run ends: what breaks off, by Ctrl-C say, loses the
    runs in flight only, and the same call later does the rest.

    Parameters
    ----------
    runs
        What to run; those with equal keys run once.
    folder
        Where runs are looked up and appended; None: neither.
    jobs
        Processes at a time; -1: one for each core, 1: none but this one. Of a Dask cluster that is
        there already all cores are used.
    backend
        Where they run: ``loky``, on this machine; ``dask`` or ``ray``, on such a cluster, for which
        drift has extras of these names. Records do not depend on it, apart from their times.
    address
        Of the cluster, as its scheduler or its head printed it; None: the one that this process is
        connected to, else one of this machine, which is stopped at the end.
    progress
        Show a bar with the stream and the time left, on stderr.

    Returns
    -------
    list of dict
        One a run, in their order: its identity, its key and what came out.

    Raises
    ------
    ParameterError
        `jobs` is 0, no such backend, nothing answers at `address`, a parameter that a model
        refuses, or a folder that another call is writing to; nothing has run then. Or the folder
        cannot be written any more.
    DataError
        A line of the folder's runs is none, or not as it was written.
    MissingExtraError
        The backend is not installed.
    """
    cluster.refuse(backend, address)
    if jobs == 0:
        raise ParameterError("jobs must be a number of processes or -1 for all cores, not 0")
    settings = {repr((run.identity["model"], run.identity["parameters"])): run for run in runs}
    for run in settings.values():
        run.make()  # what cannot be made is refused before anything runs
    with locked_folder(folder):
        done = folder.read() if folder is not None else {}
        missing = {run.key: run for run in runs if run.key not in done}
        queue = sorted(missing.values(), key=lambda run: -run.n_examples)
        with _bar(queue, shown=progress) as (counters, ended):
            # A cluster's processes see no file of this machine.
            path = counters if backend == "loky" else None
            with closing(_results(queue, jobs, backend, address, path)) as arriving:
                for key, result in arriving:
                    predictions = result.pop("predictions_made", None)
                    record = {**missing[key].identity, "key": key, **result}
                    if folder is not None:
                        folder.append(record, predictions)
                    done[key] = record
                    ended(key)
    return [done[run.key] for run in runs]


def run_experiment(
    kind: ExperimentKind,
    stages: Callable[[list[Record]], Iterable[Iterable[tuple[str, Run]]]],
    streams: Mapping[str, Record],
    settings: Mapping[str, Any],
    output: str | PathLike[str] | RunFolder | None,
    **how: Unpack[How],
) -> Results:
    """Run an experiment, and save its results where there is a folder.

    Parameters
    ----------
    kind
        What its results show.
    stages
        Yields contenders' names and runs, stage after stage. It is given the list of records, to
        which each stage adds its own.
    streams
        What is known of each stream, by name, once all stages are through.
    settings
        The settings of the experiment.
    output
        Folder that keeps the runs: those that it has are not computed. None: nothing is kept.
    **how
        As for `run_all`.
    """
    started = time.perf_counter()
    with locked_folder(output) as folder:
        if folder is not None:
            folder.check_data(streams)
        records: list[Record] = []
        for stage in stages(records):
            pairs = list(stage)
            done = run_all([run for _, run in pairs], folder=folder, **how)
            records += [
                {"contender": name, **record} for (name, _), record in zip(pairs, done, strict=True)
            ]
        seconds = time.perf_counter() - started
        results = Results(kind, records, streams, settings, seconds, folder and folder.path)
        if folder is not None:
            results.save(folder)
    return results


@contextmanager
def _bar(
    queue: Sequence[Run], *, shown: bool
) -> Iterator[tuple[str | None, Callable[[str], None]]]:
    """Show a bar; give the file in which runs count their examples, and what is told who ended."""
    if not (shown and queue):
        yield None, lambda _: None
        return
    columns = (
        bars.TextColumn("{task.description}", markup=False),
        bars.TextColumn("{task.fields[runs]:>5} of {task.fields[n_runs]} runs"),
        bars.BarColumn(bar_width=20),
        bars.TaskProgressColumn(),
        bars.TimeRemainingColumn(),
    )
    streams = list(dict.fromkeys(run.identity["stream"] for run in queue))
    name = streams[0] if len(streams) == 1 else f"{len(streams)} streams"
    sizes = np.array([run.n_examples for run in queue])
    numbers = {run.key: number for number, run in enumerate(queue)}
    with (
        tempfile.TemporaryDirectory() as folder,
        bars.Progress(*columns, console=Console(stderr=True)) as bar,
    ):
        path = Path(folder, "counters")
        np.zeros(len(queue), dtype=np.int64).tofile(path)
        task = bar.add_task(name, total=int(sizes.sum()), runs=0, n_runs=len(queue))
        over = np.zeros(len(queue), dtype=np.bool_)
        stop = threading.Event()

        def look() -> None:
            counted = np.minimum(np.fromfile(path, dtype=np.int64), sizes)
            completed = int(np.where(over, sizes, counted).sum())
            bar.update(task, completed=completed, runs=int(over.sum()))

        def watch() -> None:
            while not stop.wait(_LOOKING):
                look()

        def ended(key: str) -> None:
            over[numbers[key]] = True
            look()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield str(path), ended
        finally:
            stop.set()
            watcher.join()


def _results(
    queue: Sequence[Run], jobs: int, backend: str, address: str | None, counters: str | None
) -> Generator[tuple[str, Record]]:
    """Results as they come, with their runs' keys."""
    if not queue:
        return
    # The terminal sends Ctrl-C to the processes of this machine, too; a cluster has its own ways.
    parent = os.getpid() if backend == "loky" else None
    with cluster.backend(backend, address, jobs):
        # A flat list: of arrays in it joblib's backends know that they have sent them already.
        tasks = (
            delayed(_run)(run.key, parent, counters, number, run.make(), run.learn, *run.arguments)
            for number, run in enumerate(queue)
        )
        yield from cluster.gathered(tasks, backend, jobs)


def _run(  # noqa: PLR0913, PLR0917 - all that a worker is sent
    key: str,
    parent: int | None,
    counters: str | None,
    number: int,
    model: Any,
    function: Callable[..., Record],
    *arguments: Any,
) -> tuple[str, Record]:
    if parent is not None and os.getpid() != parent:
        # The parent alone answers Ctrl-C, and ends these.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    count_in(counters, number)
    with one_thread():
        return key, function(model, *arguments)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Find BLAS and OpenMP in this process: 10 ms, so only once more modules are imported."""
    del modules
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Have BLAS and OpenMP use one thread, so that processor time is a model's time.

    Threads that wait for one another spin: with two of them scikit-learn's boosting took 54 times
    the processor time on a stream of 1,066 rows.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    # Libraries that are loaded meanwhile read these.
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        with _libraries(len(sys.modules)).limit(limits=1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
