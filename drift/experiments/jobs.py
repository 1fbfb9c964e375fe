"""What a run is to those who run it, and the rows of a data set as every worker gets them."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from drift.models import column_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

__all__ = [
    "Record",
    "Rows",
    "Run",
    "count_in",
    "edges_of",
    "fingerprint",
    "float64_columns",
    "tell",
]

#: One run: what identifies it, its `key`, and what came out.
Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Run:
    """One model that learns one thing once: what identifies it, and how it is done.

    Parameters
    ----------
    identity
        Everything that the result depends on.
    make
        Makes the model, which has learnt nothing.
    learn
        What a worker calls with the model, and the arguments after it; returns what came out.
    arguments
        Large arrays are arguments of their own, the same objects in all runs on a data set: so
        every backend of joblib hands them to a worker once.
    n_examples
        Number of examples to learn, for the order of runs and the progress bar.
    """

    identity: Record
    make: Callable[[], Any]
    learn: Callable[..., Record]
    arguments: tuple[Any, ...]
    n_examples: int

    @cached_property
    def key(self) -> str:
        """Fingerprint of the identity: 16 hexadecimal digits."""
        return fingerprint(self.identity)


def fingerprint(identity: Record) -> str:
    """Return 16 hexadecimal digits that tell an identity from all others.

    Examples
    --------
    >>> from drift.experiments.jobs import fingerprint
    >>> fingerprint({"model": "LBP", "seed": 1}) == fingerprint({"seed": 1, "model": "LBP"})
    True
    """
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


#: A file of counters that all processes see, and the one of the run in this process.
_counter: list[NDArray[np.int64]] = []


def count_in(path: str | None, at: int) -> None:
    """Have `tell` count in a file, which has 8 bytes for each run; None: nowhere.

    Parameters
    ----------
    path
        Of the file.
    at
        The run's number.
    """
    _counter[:] = [] if path is None else [np.memmap(path, np.int64, "r+", 8 * at, (1,))]


def tell(examples: int) -> None:
    """Say how many examples the run in this process has learnt so far."""
    for counter in _counter:
        counter[0] = examples


def edges_of(n: int, windows: int) -> list[int]:
    """Return the rows at which equal parts of a stream begin, and its end.

    Parameters
    ----------
    n
        Rows of the stream.
    windows
        How many parts, at most one a row.
    """
    edges: list[int] = np.linspace(0, n, min(windows, n) + 1).round().astype(int).tolist()
    return edges


_before: list[str] = []
_inside = threading.Lock()


@contextmanager
def float64_columns() -> Iterator[None]:
    """Have the models made meanwhile keep their supports in float64.

    What float32 rounds changes mistakes by more than some differences that experiments decide. The
    type is the process's: of the threads that a Dask worker may run these in, the last one out puts
    back what the first one found.
    """
    with _inside:
        _before.append(column_type("float64"))
    try:
        yield
    finally:
        with _inside:
            column_type(_before.pop())


class Rows(NamedTuple):
    """A CSR matrix in its parts, which are the arguments that workers are sent."""

    data: NDArray[np.float64]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    width: int

    @classmethod
    def of(cls, matrix: csr_array) -> Rows:
        """Take a matrix apart, not copied."""
        return cls(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])

    def part(self, start: int | None = None, stop: int | None = None) -> csr_array:
        """Rows from `start` to `stop`, not copied; all of them where neither is given."""
        start, stop, _ = slice(start, stop).indices(len(self.indptr) - 1)
        indptr = self.indptr[start : stop + 1]
        entries = slice(indptr[0], indptr[-1])
        arrays = self.data[entries], self.indices[entries], indptr - indptr[0]
        return csr_array(arrays, shape=(stop - start, self.width), copy=False)
