"""The streams that the Tracker is measured on: real ones whole, generated ones of 20,000 rows."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from river.datasets import synth

from benchmarks.data import Stream
from drift.experiments.arena.streams import ROWS
from drift.experiments.arena.streams import STREAMS as ARENA
from drift.streams import ShiftingStream, load, read_libsvm, tracking_groups
from drift.streams import Stream as Examples

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def _sparse(documents: Any, y: NDArray[Any], shifts: tuple[int, ...] = ()) -> Stream:
    named = documents.feature_names or [f"f{j}" for j in range(documents.n_features)]
    return Stream(documents.rows, y, tuple(map(str, named)), shifts)


def _shifting(stream: ShiftingStream) -> Stream:
    return _sparse(stream.documents, stream.y, stream.shifts)


@cache
def _documents(name: str) -> Any:
    return load(name)


def _rcv1(index: int) -> Stream:
    documents, targets = _documents("rcv1")
    return _shifting(tracking_groups(documents, targets, shifts=(7,))[7][index])


def _reuters(*topics: str) -> Stream:
    documents, _ = _documents("reuters21578")
    return _shifting(ShiftingStream(documents, topics))


def _libsvm(name: str, target: str = "+1", *, dense: bool = True) -> Stream:
    documents, _ = _documents(name)
    stream = _sparse(documents, documents.has(target))
    return replace(stream, X=stream.X.toarray()) if dense else stream


def _pixels(name: str) -> Stream:
    """Return rows of handwriting, zeros left out where most are."""
    documents, _ = _documents(name)
    stream = _sparse(documents, documents.topics.argmax(axis=1))
    return replace(stream, X=stream.X.toarray()) if name == "letter" else stream


def _columns(name: str) -> Stream:
    table = pd.read_csv(Path(_data(), "streams", f"{name}.csv.xz"))
    y = table.pop("class").to_numpy()
    return Stream(table.to_numpy(dtype=float), y, tuple(table.columns))


def _spam() -> Stream:
    documents = read_libsvm(Path(_data(), "streams", "spam.svm.xz"))
    return _sparse(documents, documents.has("+1"))


def _data() -> str:
    if "DRIFT_DATA" not in os.environ:
        raise FileNotFoundError("set DRIFT_DATA to the folder of the real data")
    return os.environ["DRIFT_DATA"]


def _generated(name: str, noise: float = 0.0) -> Stream:
    """Return a stream of the arena's as arrays, with a share of the labels drawn at random."""
    made = _GENERATORS[name]()
    X = np.array([list(x.values()) for x, _ in made], dtype=float)
    y = np.array([int(label) for _, label in made])
    rng = np.random.default_rng(0)
    if name == "checkerboard":  # the points come from the same generator
        rng.random(X.shape)
    y = np.where(rng.random(len(y)) < noise, rng.choice(np.unique(y), len(y)), y)
    names = tuple(map(str, made.examples[0][0]))
    return Stream(X, y, names, tuple(drift.row for drift in made.drifts))


def _hyperplane() -> Examples:
    """Return the arena's, but that no label is drawn at random."""
    made = synth.Hyperplane(seed=1, n_drift_features=10, mag_change=0.001, noise_percentage=0)
    return Examples.of(made, rows=ROWS)


#: Abrupt shifts in four parts, or a drift that continues throughout.
_GENERATORS: dict[str, Callable[[], Examples]] = {
    "sea": ARENA["sea abrupt"].make,
    "hyperplane": _hyperplane,
    "moving-rbf": ARENA["moving rbf"].make,
    "led": ARENA["led abrupt"].make,
    "agrawal": ARENA["agrawal abrupt"].make,
    "checkerboard": ARENA["checkerboard"].make,
}

#: Real streams, whole. The four of RCV1 go through one random permutation of the targets each.
REAL: dict[str, Callable[[], Stream]] = {
    **{f"rcv1-{k}": lambda k=k: _rcv1(k) for k in range(4)},
    "reuters-earn": lambda: _reuters("earn"),
    "reuters-money-fx": lambda: _reuters("money-fx"),
    "reuters-shifts": lambda: _reuters("earn", "acq", "money-fx", "crude"),
    "electricity": lambda: _libsvm("elec", "1"),
    "a9a": lambda: _libsvm("a9a", dense=False),
    "ijcnn1": lambda: _libsvm("ijcnn1"),
    "insects": lambda: _columns("insects-gradual"),
    "weather": lambda: _columns("weather"),
    "outdoor": lambda: _columns("outdoor"),
    "spam": _spam,
}

GENERATED: dict[str, Callable[[], Stream]] = {
    f"{name}{'-noise' * (noise > 0)}": lambda name=name, noise=noise: _generated(name, noise)
    for name in _GENERATORS
    for noise in (0.0, 0.2)
}

STREAMS = REAL | GENERATED

#: Of many classes, for the constants of the Tracker: its tables do not have them.
MORE: dict[str, Callable[[], Stream]] = {
    "rialto": lambda: _columns("rialto"),
    **{name: lambda name=name: _pixels(name) for name in ("letter", "usps", "mnist")},
}


@cache
def stream(name: str, rows: int | None = None) -> Stream:
    """Return a stream by its name, or its first rows."""
    return (STREAMS | MORE)[name]().part(0, rows)
