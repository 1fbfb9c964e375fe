"""Cells in, records out: runs a grid of models and streams on all cores, and never runs one twice.

An experiment is a list of cells, each a `Cell` of the tracking experiment or a `Trial` of a
comparison; everything about processes, resuming and progress is here.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import delayed

import drift
from drift.errors import ParameterError
from drift.experiments import cluster
from drift.experiments.jobs import Rows, code_fingerprint, fingerprint, float64_columns
from drift.experiments.progress import bar
from drift.kernels import DEFAULT_KERNEL
from drift.models import MODELS, OneVsRest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from drift.experiments.folder import Record, RunFolder
    from drift.experiments.jobs import Job
    from drift.kernels import Kernel
    from drift.models import KernelClassifier
    from drift.streams import ShiftingStream

__all__ = ["WINDOWS", "Cell", "learn", "run_cells", "updates"]

#: Windows of equal length that a run's error is recorded in: every 1250 of 20,000 examples.
WINDOWS = 16


@dataclass(frozen=True, eq=False)
class Cell:
    """One model on one stream, or on one chunk of it.

    Parameters
    ----------
    model
        A name in `drift.models.MODELS`.
    parameters
        The model's parameters other than kernel and seed.
    stream
        What it learns.
    index
        Number of the stream among those with as many shifts.
    kernel
        Kernel between examples; None for the model's default.
    seed
        Of a model that draws at random; None for the others.
    chunk
        Number of the one chunk to learn, afresh; None for the whole stream.

    Examples
    --------
    >>> from drift.experiments import Cell
    >>> from drift.streams import ShiftingStream, segments
    >>> stream = ShiftingStream(segments(), ["sky", "grass"])
    >>> cell = Cell("LBP", {"budget": 10}, stream, index=0, chunk=1)
    >>> cell.start, cell.stop, cell.targets
    (1155, 2310, ('grass',))
    """

    model: str
    parameters: dict[str, Any]
    stream: ShiftingStream
    index: int
    kernel: Kernel | None = None
    seed: int | None = None
    chunk: int | None = None

    @property
    def start(self) -> int:
        """Index of the first example."""
        return 0 if self.chunk is None else self.chunk * self.stream.chunk_size

    @property
    def stop(self) -> int:
        """Index after the last example."""
        return len(self.stream.y) if self.chunk is None else self.start + self.stream.chunk_size

    @property
    def n_examples(self) -> int:
        """Number of examples to be learnt."""
        return self.stop - self.start

    @property
    def targets(self) -> tuple[str, ...]:
        """The topics asked for, one a chunk."""
        targets: tuple[str, ...] = self.stream.targets
        return targets if self.chunk is None else (targets[self.chunk],)

    @cached_property
    def identity(self) -> Record:
        """Everything that the result depends on."""
        return {
            "model": self.model,
            "parameters": self.parameters,
            "seed": self.seed,
            "kernel": repr(self.kernel or DEFAULT_KERNEL),
            "columns": "float64",
            "drift": drift.__version__,
            "code": code_fingerprint(),
            "stream": self.stream.documents.name,
            "sha256": self.stream.documents.sha256,
            "shifts": len(self.stream.targets) - 1,
            "index": self.index,
            "targets": list(self.targets),
            "start": self.start,
            "stop": self.stop,
        }

    @cached_property
    def key(self) -> str:
        """Fingerprint of the identity: 16 hexadecimal digits."""
        return fingerprint(self.identity)

    def make(self) -> KernelClassifier:
        """Make the model, which has learnt nothing and keeps its supports in float64.

        Raises
        ------
        ParameterError
            A parameter that the model refuses.
        """
        seed = {} if self.seed is None else {"seed": self.seed}
        with float64_columns():
            return MODELS[self.model](kernel=self.kernel, **self.parameters, **seed)

    def task(self) -> tuple[Callable[..., Record], tuple[Any, ...]]:
        """Return what a worker calls with the model, and the arguments that come after it."""
        # Workers cut their part themselves: parts cut here would be so many more arrays to send.
        rows = Rows.of(self.stream.documents.rows)
        return _learn_part, (self.start, self.stop, self.stream.y, *rows)


@float64_columns()
def _learn_part(
    model: KernelClassifier, start: int, stop: int, y: NDArray[np.bool_], *rows: Any
) -> Record:
    return learn(model, Rows(*rows).part(start, stop), y[start:stop])


def updates(model: Any) -> int:
    """Number of examples that changed a model; over all classes, that of `OneVsRest`."""
    models = model.models.values() if isinstance(model, OneVsRest) else [model]
    return sum(one.n_updates for one in models)


def learn(model: Any, X: csr_array, y: NDArray[Any], windows: int = WINDOWS) -> Record:
    """Test, then train, on every example in turn.

    Parameters
    ----------
    model
        It learns: any of `drift.models`.
    X
        Examples, shape (n_samples, n_features).
    y
        Labels, shape (n_samples,).
    windows
        Number of equal parts of the stream that errors and supports are recorded in.

    Returns
    -------
    dict
        ``n_samples``; ``mistakes``, the wrong predictions; ``supports`` held at the end;
        ``updates``; ``seconds`` of processor time, for all examples; ``window_errors``, the share
        of mistakes in each part of the stream, and ``window_supports``, those held at its end.

    Examples
    --------
    >>> import numpy as np
    >>> from drift.experiments import learn
    >>> from drift.models import Perceptron
    >>> result = learn(Perceptron(), np.array([[1.0, 0], [0, 1.0], [1, 1]]), np.array([1, 0, 0]))
    >>> result["mistakes"], result["window_supports"], result["window_errors"]
    (2, [1, 2, 3], [1.0, 1.0, 0.0])
    """
    edges = np.linspace(0, len(y), min(windows, len(y)) + 1).round().astype(int).tolist()
    mistakes, supports = [], []
    seconds = 0.0
    for start, stop in pairwise(edges):
        part = X[start:stop]
        started = time.process_time()
        predictions = model.predict_learn_many(part, y[start:stop])
        seconds += time.process_time() - started
        mistakes.append(int((predictions != y[start:stop]).sum()))
        supports.append(model.n_supports)
    lengths = np.diff(edges).tolist()
    return {
        "n_samples": len(y),
        "mistakes": sum(mistakes),
        "supports": model.n_supports,
        "updates": updates(model),
        "seconds": round(seconds, 6),
        "window_errors": [
            round(wrong / length, 6) for wrong, length in zip(mistakes, lengths, strict=True)
        ],
        "window_supports": supports,
    }


def run_cells(  # noqa: PLR0913 - what to run, and how, by keyword
    cells: Sequence[Job],
    *,
    folder: RunFolder | None = None,
    jobs: int = -1,
    backend: str = "loky",
    address: str | None = None,
    progress: bool = False,
) -> list[Record]:
    """Run the cells that the folder lacks, the longest first, and return the records of all.

    Each record is in the folder as soon as its run ends: what breaks off, by Ctrl-C say, loses the
    runs in flight only, and the same call later does the rest.

    Parameters
    ----------
    cells
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
        Show a bar with the time left, on stderr.

    Returns
    -------
    list of dict
        One a cell, in their order: its identity, its key and what came out.

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
    for point in {_setting(cell): cell for cell in cells}.values():
        point.make()
    with nullcontext() if folder is None else folder.alone():
        done = folder.read() if folder is not None else {}
        missing = {cell.key: cell for cell in cells if cell.key not in done}
        queue = sorted(missing.values(), key=lambda cell: -cell.n_examples)
        results = closing(_results(queue, jobs, backend, address))
        with results as arriving, bar(queue, progress) as advance:
            for key, result in arriving:
                record = {**missing[key].identity, "key": key, **result}
                if folder is not None:
                    folder.append(record)
                done[key] = record
                advance(missing[key].n_examples)
    return [done[cell.key] for cell in cells]


def _setting(cell: Job) -> str:
    """What decides whether a model can be made."""
    return repr([cell.identity["model"], cell.identity["parameters"]])


def _results(
    queue: Sequence[Job], jobs: int, backend: str, address: str | None
) -> Generator[tuple[str, Record]]:
    """Results as they come, with their cells' keys."""
    if not queue:
        return
    # The terminal sends Ctrl-C to the processes of this machine, too; a cluster has its own ways.
    parent = os.getpid() if backend == "loky" else None
    with cluster.backend(backend, address, jobs):
        tasks = (delayed(_run)(cell.key, parent, cell.make(), *_flat(cell)) for cell in queue)
        yield from cluster.gathered(tasks, backend, jobs)


def _flat(cell: Job) -> tuple[Any, ...]:
    function, arguments = cell.task()
    return function, *arguments


def _run(
    key: str, parent: int | None, model: Any, function: Callable[..., Record], *arguments: Any
) -> tuple[str, Record]:
    if parent is not None and os.getpid() != parent:
        # The parent alone answers Ctrl-C, and ends these.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return key, function(model, *arguments)
