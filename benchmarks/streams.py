"""The arena's streams, and those that it does not have: whole files, other names, other noise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from river.datasets import synth
from scipy.sparse import csr_array

from drift.experiments.arena.streams import ROWS, _path
from drift.experiments.arena.streams import STREAMS as ARENA
from drift.streams import ShiftingStream, Stream, load, read_stream, tracking_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Maker = Callable[[], Stream]


@cache
def _loaded(name: str) -> Any:
    return load(name)


def _file(name: str, target: str | None = None, rows: int | None = None) -> Stream:
    documents, _ = _loaded(name)
    return read_stream(documents, target, rows=rows)


def _rcv1(number: int) -> Stream:
    """Eight targets, one after the other, in the order of the tracking paper's permutations."""
    documents, targets = _loaded("rcv1")
    return _shifting(tracking_groups(documents, targets, shifts=(7,))[7][number])


def _reuters(*topics: str) -> Stream:
    documents, _ = _loaded("reuters21578")
    return _shifting(ShiftingStream(documents, topics))


def _shifting(stream: ShiftingStream) -> Stream:
    return _with(stream.documents.features(), stream.y.tolist())


def _with(rows: Any, labels: Sequence[Any]) -> Stream:
    return Stream(list(zip(rows, labels, strict=True)))


def _insects() -> Stream:
    return read_stream(_path("streams", "insects-gradual.csv.xz"), "class")


def _ijcnn1() -> Stream:
    """All rows, with the zeros that the file leaves out."""
    stream = _file("ijcnn1", "+1")
    zeros = dict.fromkeys(sorted(stream.features), 0.0)
    return _with([{**zeros, **x} for x, _ in stream], stream.labels)


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


def _hyperplane() -> Stream:
    """The arena's, but no label is drawn at random."""
    made = synth.Hyperplane(seed=1, n_drift_features=10, mag_change=0.001, noise_percentage=0)
    return Stream.of(made, rows=ROWS)


def _first(make: Maker, rows: int = 10_000) -> Stream:
    return make().head(rows)


_led = partial(_named, ARENA["led abrupt"].make, "")
#: By names that the arena does not have.
_OTHERS: dict[str, Maker] = {
    **{f"rcv1-{k}": partial(_named, partial(_rcv1, k)) for k in range(4)},
    "reuters earn whole": partial(_reuters, "earn"),
    "reuters money-fx": partial(_reuters, "money-fx"),
    "reuters shifts whole": partial(_reuters, "earn", "acq", "money-fx", "crude"),
    "a9a one-hot": partial(_named, partial(_file, "a9a", "+1")),
    "ijcnn1 whole": partial(_named, _ijcnn1),
    "insects whole": _insects,
    "spam named": partial(_named, ARENA["spam"].make),
    "sea noisy": partial(_noisy, ARENA["sea abrupt"].make),
    "hyperplane clean": _hyperplane,
    "hyperplane noisy": partial(_noisy, _hyperplane),
    "moving rbf noisy": partial(_noisy, ARENA["moving rbf"].make),
    "led named": _led,
    "led noisy": partial(_noisy, _led),
    "agrawal noisy": partial(_noisy, ARENA["agrawal abrupt"].make),
    "checkerboard noisy": partial(_noisy, ARENA["checkerboard"].make, 2),
    "rialto 10k": partial(_first, ARENA["rialto"].make),
    "letter 10k": partial(_first, partial(_named, ARENA["letter"].make)),
    "usps": partial(_named, partial(_file, "usps")),
    "mnist": partial(_file, "mnist", None, ROWS),
    "mnist 10k": partial(_file, "mnist", None, 10_000),
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
