"""The streams that the benchmarks run on, as sparse rows and as dicts, and rows drawn at random."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from drift.errors import DriftError
from drift.streams import load, tracking_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from drift.streams import Documents

Examples = list[tuple[dict[Any, float], bool]]


class Missing(Exception):  # noqa: N818 - no error: a scenario is skipped and says why
    """What a scenario or a contender needs is not there; the text says what."""


@dataclass(frozen=True)
class Stream:
    """Labelled rows in order; `names` are those of the columns in the dicts."""

    name: str
    rows: csr_array
    labels: NDArray[np.bool_]
    names: list[Any]

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, start: int, stop: int | None = None) -> Stream:
        """Rows from `start` up to `stop`."""
        chosen = slice(start, stop)
        return Stream(self.name, self.rows[chosen], self.labels[chosen], self.names)

    def examples(self) -> Iterator[tuple[dict[Any, float], bool]]:
        """Yield the rows as dicts, with their labels."""
        rows, names = self.rows, self.names
        for i, y in enumerate(self.labels.tolist()):
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            columns = rows.indices[part].tolist()
            yield dict(zip([names[j] for j in columns], rows.data[part].tolist(), strict=True)), y


def stories(n: int = 20_000) -> Stream:
    """RCV1 with seven shifts of the target, words as names; newswire without `DRIFT_DATA`."""
    name = "rcv1" if os.environ.get("DRIFT_DATA") else "newswire"
    documents, targets = load(name, n=n)
    shifting = tracking_groups(documents, targets, shifts=(7,), n_streams=1)[7][0]
    words = [f"word{j}" for j in range(documents.n_features)]
    return Stream(name, shifting.X, shifting.y, words)


def adults(n: int = 32_561) -> Stream:
    """a9a: 14 of 123 binary features, names as strings."""
    documents = _loaded("a9a", n)
    names = [f"feature{j}" for j in range(documents.n_features)]
    return Stream("a9a", documents.rows, documents.has("+1"), names)


def digits(n: int = 60_000, chunks: int = 8) -> Stream:
    """MNIST: pixels in [0, 1] by their number; asked for five digits, others in each chunk."""
    documents, rng = _loaded("mnist", n), random.Random(0)
    digit = documents.topics.argmax(axis=1)
    asked = [rng.sample(range(10), 5) for _ in range(chunks)]
    chunk = np.arange(len(digit)) * chunks // len(digit)
    labels = np.array([d in asked[c] for d, c in zip(digit.tolist(), chunk.tolist(), strict=True)])
    rows = documents.rows.copy()
    rows.data /= 255.0  # a sparse matrix over a number is it times the inverse, and rounds twice
    return Stream("mnist", rows, labels, list(range(784)))


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
    return Stream("drawn", matrix, scores > 0.0, [f"word{j}" for j in range(vocabulary)])
