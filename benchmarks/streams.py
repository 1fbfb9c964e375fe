"""The arena's streams, and those that it does not have: whole files, other names, other noise."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from drift.experiments.arena.streams import (
    REUTERS_TOPICS,
    ROWS,
    file_of,
    hyperplane,
    loaded,
    table_of,
    topics_of,
)
from drift.experiments.arena.streams import STREAMS as ARENA
from drift.streams import Stream, read_stream, tracking_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Maker = Callable[[], Stream]


def _documents(name: str, target: str | None = None, rows: int | None = None) -> Stream:
    """Rows of a data set as its file has them, without zeros."""
    documents, _ = loaded(name)
    return read_stream(documents, target, rows=rows)


def _rcv1(number: int) -> Stream:
    """Eight targets, one after the other, in the order of the tracking paper's permutations."""
    stream = tracking_groups(*loaded("rcv1"), shifts=(7,))[7][number]
    return _with(stream.documents.features(), stream.y.tolist())


def _with(rows: Any, labels: Sequence[Any]) -> Stream:
    return Stream(list(zip(rows, labels, strict=True)))


def _named(make: Maker, prefix: str = "f") -> Stream:
    """Features have texts as names where they have numbers: trees and ties depend on the order."""
    stream = make()
    rows = [{f"{prefix}{name}": value for name, value in x.items()} for x, _ in stream]
    return _with(rows, stream.labels)


def _noisy(make: Maker, skip: int = 0) -> Stream:
    """A fifth of the labels is drawn at random, after so many numbers a row of the same seed."""
    stream, rng = make(), np.random.default_rng(0)
    y = np.array(stream.labels)
    rng.random((len(y), skip))
    y = np.where(rng.random(len(y)) < 0.2, rng.choice(np.unique(y), len(y)), y)
    return _with([x for x, _ in stream], y.tolist())


def _first(make: Maker, rows: int = 10_000) -> Stream:
    return make().head(rows)


_led = partial(_named, ARENA["led abrupt"].make, "")
#: The arena's, but no label is drawn at random.
_clean_hyperplane = partial(hyperplane, noise_percentage=0)
#: By names that the arena does not have.
_OTHERS: dict[str, Maker] = {
    **{f"rcv1-{k}": partial(_named, partial(_rcv1, k)) for k in range(4)},
    "reuters earn whole": partial(topics_of, "reuters21578", "earn", whole=True),
    "reuters money-fx": partial(topics_of, "reuters21578", "money-fx", whole=True),
    "reuters shifts whole": partial(topics_of, "reuters21578", *REUTERS_TOPICS, whole=True),
    "a9a one-hot": partial(_named, partial(_documents, "a9a", "+1")),
    "ijcnn1 whole": partial(_named, partial(table_of, "ijcnn1", "+1", whole=True)),
    "insects whole": partial(file_of, "insects-gradual.csv.xz", "class", whole=True),
    "spam named": partial(_named, ARENA["spam"].make),
    "sea noisy": partial(_noisy, ARENA["sea abrupt"].make),
    "hyperplane clean": _clean_hyperplane,
    "hyperplane noisy": partial(_noisy, _clean_hyperplane),
    "moving rbf noisy": partial(_noisy, ARENA["moving rbf"].make),
    "led named": _led,
    "led noisy": partial(_noisy, _led),
    "agrawal noisy": partial(_noisy, ARENA["agrawal abrupt"].make),
    "checkerboard noisy": partial(_noisy, ARENA["checkerboard"].make, 2),
    "rialto 10k": partial(_first, ARENA["rialto"].make),
    "letter 10k": partial(_first, partial(_named, ARENA["letter"].make)),
    "usps": partial(_named, partial(_documents, "usps")),
    "mnist": partial(_documents, "mnist", None, ROWS),
    "mnist 10k": partial(_documents, "mnist", None, 10_000),
}
STREAMS: dict[str, Maker] = {name: entry.make for name, entry in ARENA.items()} | _OTHERS


def stream(name: str) -> Stream:
    """Return a stream by its name."""
    return replace(STREAMS[name](), name=name)


def matrix_of(stream: Stream) -> tuple[csr_array, NDArray[Any]]:
    """Return the rows as a sparse matrix, with a column for each name, and the labels."""
    columns = {name: j for j, name in enumerate(stream.features)}
    cells = [(columns[name], value) for x, _ in stream for name, value in x.items()]
    indices, values = zip(*cells, strict=True)
    ends = np.cumsum([0, *(len(x) for x, _ in stream)])
    matrix = csr_array((values, indices, ends), shape=(len(stream), len(columns)), dtype=float)
    matrix.sort_indices()
    return matrix, np.array(stream.labels)
