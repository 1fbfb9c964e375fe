"""Cells in, records out: runs a grid of models and streams on all cores, and never runs one twice.

An experiment is a list of cells; everything about processes, resuming and progress is here.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_array

import drift
from drift.errors import ParameterError
from drift.experiments._progress import bar
from drift.kernels import DEFAULT_KERNEL
from drift.models import MODELS, KernelClassifier, column_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from drift.experiments.records import Record, RunFolder
    from drift.kernels import Kernel
    from drift.streams import Documents, ShiftingStream

__all__ = ["WINDOWS", "Cell", "learn", "run_cells"]

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
    permutation
        Seed of a random order of the examples; None for the stream's own order.

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
    permutation: int | None = None

    @property
    def start(self) -> int:
        """Index of the first example."""
        return 0 if self.chunk is None else self.chunk * self.stream.chunk_size

    @property
    def stop(self) -> int:
        """Index after the last example."""
        return len(self.stream.y) if self.chunk is None else self.start + self.stream.chunk_size

    @property
    def part(self) -> slice:
        """The examples, as a slice of the stream."""
        return slice(self.start, self.stop)

    @property
    def targets(self) -> tuple[str, ...]:
        """The topics asked for, one a chunk."""
        targets: tuple[str, ...] = self.stream.targets
        return targets if self.chunk is None else (targets[self.chunk],)

    @cached_property
    def identity(self) -> Record:
        """Everything that the result depends on."""
        identity = {
            "model": self.model,
            "parameters": self.parameters,
            "seed": self.seed,
            "kernel": repr(self.kernel or DEFAULT_KERNEL),
            "columns": column_type(),
            "drift": drift.__version__,
            "stream": self.stream.documents.name,
            "sha256": self.stream.documents.sha256,
            "shifts": len(self.stream.targets) - 1,
            "index": self.index,
            "targets": list(self.targets),
            "start": self.start,
            "stop": self.stop,
        }
        if self.permutation is not None:
            identity["permutation"] = self.permutation
        return identity

    @cached_property
    def key(self) -> str:
        """Fingerprint of the identity: 16 hexadecimal digits."""
        text = json.dumps(self.identity, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def make(self) -> KernelClassifier:
        """Make the model, which has learnt nothing.

        Raises
        ------
        ParameterError
            A parameter that the model refuses.
        """
        seed = {} if self.seed is None else {"seed": self.seed}
        return MODELS[self.model](kernel=self.kernel, **self.parameters, **seed)


def learn(model: KernelClassifier, X: csr_array, y: NDArray[np.bool_]) -> Record:
    """Test, then train, on every example in turn.

    Parameters
    ----------
    model
        It learns.
    X
        Examples, shape (n_samples, n_features).
    y
        Labels, shape (n_samples,).

    Returns
    -------
    dict
        ``n_samples``; ``mistakes``, the wrong predictions; ``supports`` held at the end;
        ``updates``; ``seconds``, for all examples; ``window_errors``, the share of mistakes in each
        of `WINDOWS` equal parts of the stream.

    Examples
    --------
    >>> import numpy as np
    >>> from drift.experiments import learn
    >>> from drift.models import Perceptron
    >>> result = learn(Perceptron(), np.array([[1.0, 0], [0, 1.0], [1, 1]]), np.array([1, 0, 0]))
    >>> result["mistakes"], result["supports"], result["window_errors"]
    (2, 3, [1.0, 1.0, 0.0])
    """
    started = time.perf_counter()
    predictions = model.predict_learn_many(X, y)
    seconds = time.perf_counter() - started
    wrong = predictions != y
    edges = np.linspace(0, len(y), min(WINDOWS, len(y)) + 1).round().astype(int)
    windows = [wrong[start:stop].mean() for start, stop in pairwise(edges)]
    return {
        "n_samples": len(y),
        "mistakes": int(wrong.sum()),
        "supports": model.n_supports,
        "updates": model.n_updates,
        "seconds": round(seconds, 6),
        "window_errors": [round(float(error), 6) for error in windows],
    }


def run_cells(
    cells: Sequence[Cell],
    documents: Documents,
    *,
    folder: RunFolder | None = None,
    jobs: int = -1,
    progress: bool = False,
) -> list[Record]:
    """Run the cells that the folder lacks, the longest first, and return the records of all.

    Each record is in the folder as soon as its run ends: what breaks off, by Ctrl-C say, loses the
    runs in flight only, and the same call later does the rest.

    Parameters
    ----------
    cells
        What to run; those with equal keys run once.
    documents
        What all of the cells' streams are made of.
    folder
        Where runs are looked up and appended; None: neither.
    jobs
        Processes at a time; -1: one for each core, 1: none but this one.
    progress
        Show a bar with the time left, on stderr.

    Returns
    -------
    list of dict
        One a cell, in their order: `Cell.identity`, `Cell.key` and what `learn` returns.

    Raises
    ------
    ParameterError
        `jobs` is 0, or a parameter that a model refuses; nothing has run then.
    """
    if jobs == 0:
        raise ParameterError("jobs must be a number of processes or -1 for all cores, not 0")
    for point in {(cell.model, *cell.parameters.items()): cell for cell in cells}.values():
        point.make()
    done = folder.read() if folder is not None else {}
    missing = {cell.key: cell for cell in cells if cell.key not in done}
    queue = sorted(missing.values(), key=lambda cell: cell.start - cell.stop)
    with bar(queue, progress) as advance:
        for key, result in _results(queue, documents, jobs):
            record = {**missing[key].identity, "key": key, **result}
            if folder is not None:
                folder.append(record)
            done[key] = record
            advance(record["n_samples"])
    return [done[cell.key] for cell in cells]


class _Rows(NamedTuple):
    """What every worker needs; joblib hands the arrays over as one memory map."""

    data: NDArray[np.float64]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    width: int
    parent: int

    def part(self, start: int, stop: int) -> csr_array:
        """Rows from `start` to `stop`, not copied."""
        indptr = self.indptr[start : stop + 1]
        entries = slice(indptr[0], indptr[-1])
        arrays = self.data[entries], self.indices[entries], indptr - indptr[0]
        return csr_array(arrays, shape=(stop - start, self.width), copy=False)


def _results(
    queue: Sequence[Cell], documents: Documents, jobs: int
) -> Iterator[tuple[str, Record]]:
    """Results as they come, with their cells' keys."""
    matrix = documents.rows
    # Workers cut their part themselves: parts cut here would be so many more memory maps.
    rows = _Rows(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1], os.getpid())
    tasks = (
        delayed(_run)(
            cell.key, cell.make(), rows, cell.start, cell.stream.y[cell.part], cell.permutation
        )
        for cell in queue
    )
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)


def _run(  # noqa: PLR0913, PLR0917 - what a worker is sent
    key: str,
    model: KernelClassifier,
    rows: _Rows,
    start: int,
    y: NDArray[np.bool_],
    permutation: int | None,
) -> tuple[str, Record]:
    if os.getpid() != rows.parent:
        # The terminal sends Ctrl-C to every process; the parent alone answers, and ends these.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    X = rows.part(start, start + len(y))
    if permutation is not None:
        order = np.random.default_rng(permutation).permutation(len(y))
        X, y = X[order], y[order]
    return key, learn(model, X, y)
