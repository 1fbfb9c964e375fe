"""The streams that the benchmarks run on, as sparse rows and as dicts, and rows drawn at random."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from drift.errors import DriftError
from drift.streams import load, tracking_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from drift.streams import Documents

Examples = list[tuple[dict[Any, float], bool]]


class Missing(Exception):  # noqa: N818 - no error: a scenario is skipped and says why
    """What a scenario or a contender needs is not there; the text says what."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Labelled rows in order: an array where features are dense, else a sparse matrix."""

    X: Any
    y: NDArray[Any]
    names: Sequence[Any]
    shifts: tuple[int, ...] = ()
    name: str = ""

    def __len__(self) -> int:
        return len(self.y)

    @property
    def dense(self) -> bool:
        """Whether every row has every feature."""
        return isinstance(self.X, np.ndarray)

    def __iter__(self) -> Iterator[tuple[dict[Any, float], Any]]:
        for i in range(len(self)):
            yield self.row(i), self.label(i)

    def row(self, i: int) -> dict[Any, float]:
        """Return a row as a dict, zeros included where features are dense."""
        if self.dense:
            return dict(zip(self.names, self.X[i].tolist(), strict=True))
        part = slice(self.X.indptr[i], self.X.indptr[i + 1])
        names = [self.names[j] for j in self.X.indices[part].tolist()]
        return dict(zip(names, self.X.data[part].tolist(), strict=True))

    def label(self, i: int) -> Any:
        """Return a row's label, a Python object."""
        return self.y[i].item()

    def part(self, start: int, stop: int | None = None) -> Stream:
        """Return the rows from `start` up to `stop`."""
        start, stop, _ = slice(start, stop).indices(len(self))
        shifts = tuple(shift - start for shift in self.shifts if start < shift < stop)
        return replace(self, X=self.X[start:stop], y=self.y[start:stop], shifts=shifts)


def stories(n: int = 20_000) -> Stream:
    """RCV1 with seven shifts of the target, words as names; newswire without `DRIFT_DATA`."""
    name = "rcv1" if os.environ.get("DRIFT_DATA") else "newswire"
    documents, targets = load(name, n=n)
    shifting = tracking_groups(documents, targets, shifts=(7,), n_streams=1)[7][0]
    words = [f"word{j}" for j in range(documents.n_features)]
    return Stream(shifting.X, shifting.y, words, shifting.shifts, name)


def adults(n: int = 32_561) -> Stream:
    """a9a: 14 of 123 binary features, names as strings."""
    documents = _loaded("a9a", n)
    names = [f"feature{j}" for j in range(documents.n_features)]
    return Stream(documents.rows, documents.has("+1"), names, name="a9a")


def digits(n: int = 60_000, chunks: int = 8) -> Stream:
    """MNIST: pixels in [0, 1] by their number; five digits are positive, others in each chunk."""
    documents, rng = _loaded("mnist", n), random.Random(0)
    digit = documents.topics.argmax(axis=1)
    asked = [rng.sample(range(10), 5) for _ in range(chunks)]
    chunk = np.arange(len(digit)) * chunks // len(digit)
    labels = np.array([d in asked[c] for d, c in zip(digit.tolist(), chunk.tolist(), strict=True)])
    rows = documents.rows.copy()
    rows.data /= 255.0  # a sparse matrix over a number is it times the inverse, and rounds twice
    return Stream(rows, labels, list(range(784)), name="mnist")


def _loaded(name: str, n: int) -> Documents:
    if not os.environ.get("DRIFT_DATA"):
        raise Missing(f"DRIFT_DATA names no folder, and so none with {name}")
    try:
        documents, _ = load(name, n=n)
    except DriftError as error:
        raise Missing(str(error)) from None
    return documents


def drawn(n: int, nonzeros: int, vocabulary: int, seed: int = 0) -> Stream:
    """Rows of unit norm with log-uniform ranks of words, as in text; labels by a noisy rule."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        ranks: NDArray[Any] = np.zeros(0, dtype=np.int64)
        while len(ranks) < nonzeros:
            more = vocabulary ** rng.random(2 * nonzeros)
            ranks = np.union1d(ranks, more.astype(np.int64) - 1)
        rows.append(np.sort(rng.choice(ranks, nonzeros, replace=False)))
    values = rng.random((n, nonzeros)) + 0.1
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    pointers = np.arange(0, n * nonzeros + 1, nonzeros)
    matrix = csr_array((values.ravel(), np.concatenate(rows), pointers), shape=(n, vocabulary))
    scores = matrix @ rng.normal(size=vocabulary) + 0.1 * rng.normal(size=n)
    return Stream(matrix, scores > 0.0, [f"word{j}" for j in range(vocabulary)], name="drawn")
