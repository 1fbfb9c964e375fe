"""The arena's streams: a list that was fixed before the first run, and is not chosen by results."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drift.errors import ParameterError, UnavailableError
from drift.experiments.arena.fetched import covertype, of_openml, of_river, sms
from drift.experiments.river_models import river
from drift.streams import RCV1_TARGETS, ShiftingStream, load, read_stream
from drift.streams.stream import Drift, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from drift.streams import Documents

__all__ = ["ROWS", "STREAMS", "Entry"]

#: Rows of a stream at most; of Electricity all are taken.
ROWS = 20_000


class Entry(NamedTuple):
    """A stream of the arena."""

    make: Callable[[], Stream]
    #: Streams of one source count once where real streams are compared; empty: it is generated.
    source: str = ""
    #: Texts: rows of few features among many, of unit norm or counts, which nothing scales.
    sparse: bool = False
    #: Fetched over the network, and run where it is requested by name alone.
    fetched: bool = False
    #: `Stream.sha256` of what was measured, once it is known: another one is refused.
    sha256: str = ""


def _bundled(name: str) -> Stream:
    return Stream.of(river(f"datasets.{name}"), name, ROWS)


@cache
def _documents(name: str) -> Documents:
    documents, _ = load(name)
    return documents


def _topics(name: str, *topics: str) -> Stream:
    """Documents whose target is one topic after the other."""
    documents = _documents(name).head(ROWS)
    stream = ShiftingStream(documents, topics)
    pairs = zip(documents.features(), stream.y.tolist(), strict=True)
    return Stream(list(pairs), name, tuple(map(Drift, stream.shifts)))


def _table_of(name: str, target: str | None, rows: int | None = ROWS) -> Stream:
    """Rows with the zeros that their file leaves out: a scaler has to see them."""
    stream = read_stream(_documents(name), target, rows=rows)
    zeros = dict.fromkeys(sorted({feature for x, _ in stream for feature in x}), 0.0)
    return replace(stream, examples=[({**zeros, **x}, y) for x, y in stream])


#: Columns of a9a, each of one category a row: its 123 features are theirs, one after the other.
_ADULT = {
    "age": 5,
    "workclass": 8,
    "fnlwgt": 5,
    "education": 16,
    "education-num": 5,
    "marital-status": 7,
    "occupation": 14,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "capital-gain": 2,
    "capital-loss": 2,
    "hours-per-week": 5,
    "native-country": 41,
}


def _adult() -> Stream:
    """Rows of a9a by column, as `_ADULT` names them."""
    columns = [(name, str(k)) for name, count in _ADULT.items() for k in range(count)]
    stream = read_stream(_documents("a9a"), "+1", rows=ROWS)
    return replace(stream, examples=[(dict(columns[i] for i in x), y) for x, y in stream])


def _file(name: str, target: str) -> Stream:
    if "DRIFT_DATA" not in os.environ:
        raise ParameterError("set DRIFT_DATA to the folder of the data")
    return read_stream(Path(os.environ["DRIFT_DATA"], "streams", name), target, rows=ROWS)


def _synth(name: str, **parameters: Any) -> Any:
    return river(f"datasets.synth.{name}", **parameters)


def _abrupt(concepts: Sequence[Callable[[], Any]], noise: float = 0.0) -> Stream:
    """Concepts of equal length, one after the other; a share of the labels is drawn at random."""
    length = ROWS // len(concepts)
    pairs = [pair for make in concepts for pair in islice(make().take(length), length)]
    drifts = [Drift(length * k) for k in range(1, len(concepts))]
    return Stream(_noisy(pairs, noise), "", tuple(drifts))


def _gradual(before: Callable[[], Any], after: Callable[[], Any]) -> Stream:
    """A concept that gives way to another one around the middle, within a fifth of the rows."""
    width = ROWS // 5
    both = _synth(
        "ConceptDriftStream",
        stream=before(),
        drift_stream=after(),
        position=ROWS // 2,
        width=width,
        seed=0,
    )
    return Stream(list(both.take(ROWS)), "", (Drift((ROWS - width) // 2, width),))


def _throughout(make: Callable[[], Any]) -> Stream:
    """A target that moves all the time."""
    return Stream(list(make().take(ROWS)))


def _noisy(pairs: list[Any], noise: float) -> list[Any]:
    rng = np.random.default_rng(0)
    labels = sorted({label for _, label in pairs})
    drawn = rng.integers(len(labels), size=len(pairs)).tolist()
    changed = (rng.random(len(pairs)) < noise).tolist()
    return [
        (x, labels[k] if wrong else y)
        for (x, y), k, wrong in zip(pairs, drawn, changed, strict=True)
    ]


def _checkerboard(noise: float = 0.0) -> Stream:
    """A board of four by four squares that makes half a turn."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (ROWS, 2))
    angles = np.linspace(0, np.pi, ROWS)
    cos, sin = np.cos(angles), np.sin(angles)
    across = np.floor(2 * (cos * points[:, 0] - sin * points[:, 1]))
    along = np.floor(2 * (sin * points[:, 0] + cos * points[:, 1]))
    labels = ((across + along) % 2 == 1).tolist()
    examples = [
        ({"x": x, "y": y}, label) for (x, y), label in zip(points.tolist(), labels, strict=True)
    ]
    return Stream(_noisy(examples, noise))


def _concepts(name: str, parameter: str, *numbers: int) -> list[Callable[[], Any]]:
    return [partial(_synth, name, **{parameter: k}, seed=i) for i, k in enumerate(numbers)]


_sea = partial(_concepts, "SEA", "variant")
_agrawal = partial(_concepts, "Agrawal", "classification_function")
_mixed = partial(_concepts, "Mixed", "classification_function")
_text = partial(Entry, sparse=True)

_REAL: dict[str, Entry] = {
    "electricity": Entry(partial(_table_of, "elec", "1", None), "electricity"),
    "weather": Entry(partial(_file, "weather.csv.xz", "class"), "weather"),
    "insects": Entry(partial(_file, "insects-gradual.csv.xz", "class"), "insects"),
    "rialto": Entry(partial(_file, "rialto.csv.xz", "class"), "rialto"),
    "outdoor": Entry(partial(_file, "outdoor.csv.xz", "class"), "outdoor"),
    "ijcnn1": Entry(partial(_table_of, "ijcnn1", "+1"), "ijcnn1"),
    "a9a": Entry(_adult, "a9a"),
    "letter": Entry(partial(_table_of, "letter", None), "letter"),
    "rcv1 GCAT": _text(partial(_topics, "rcv1", "GCAT"), "rcv1"),
    "rcv1 shifts": _text(partial(_topics, "rcv1", *RCV1_TARGETS, *RCV1_TARGETS), "rcv1"),
    "reuters earn": _text(partial(_topics, "reuters21578", "earn"), "reuters"),
    "reuters shifts": _text(
        partial(_topics, "reuters21578", "earn", "acq", "money-fx", "crude"), "reuters"
    ),
    "spam": _text(partial(_file, "spam.svm.xz", "+1"), "spam"),
    "phishing": Entry(partial(_bundled, "Phishing"), "phishing"),
    "bananas": Entry(partial(_bundled, "Bananas"), "bananas"),
    "segments": Entry(partial(_bundled, "ImageSegments"), "segments"),
    "shuttle": Entry(partial(_bundled, "Shuttle"), "shuttle"),
}
#: Beside the list: whether these can be fetched is not the arena's to say. Those that others have
#: published results on are whole, but that covertype has 100,000 rows, as in `published`.
_FETCHED: dict[str, Entry] = {
    "insects abrupt": Entry(
        lambda: of_river("Insects", ROWS, variant="abrupt_balanced"), "insects", fetched=True
    ),
    "keystroke": Entry(lambda: of_river("Keystroke", ROWS), "keystroke", fetched=True),
    "sms": _text(lambda: sms(ROWS), "sms", fetched=True),
    "covertype": Entry(partial(covertype, 100_000), "covertype", fetched=True),
    "elecNormNew": Entry(partial(of_openml, "elecNormNew", 151), "electricity", fetched=True),
    "airlines": Entry(partial(of_openml, "airlines", 1169), "airlines", fetched=True),
    "nomao": Entry(partial(of_openml, "nomao", 1486), "nomao", fetched=True),
    "gas-drift": Entry(partial(of_openml, "gas-drift", 1476), "gas-drift", fetched=True),
}
_GENERATED: dict[str, Callable[[], Stream]] = {
    "sea abrupt": partial(_abrupt, _sea(0, 1, 2, 3)),
    "sea noise": partial(_abrupt, _sea(0, 1, 2, 3), 0.2),
    "sea recurring": partial(_abrupt, _sea(0, 3, 0, 3)),
    "sea gradual": partial(_gradual, _sea(0)[0], _sea(0, 3)[1]),
    "agrawal abrupt": partial(_abrupt, _agrawal(0, 1, 2, 3)),
    "agrawal recurring": partial(_abrupt, _agrawal(2, 4, 2, 4)),
    "agrawal gradual": partial(_gradual, _agrawal(2)[0], _agrawal(2, 4)[1]),
    "mixed abrupt": partial(_abrupt, _mixed(0, 1)),
    "mixed recurring": partial(_abrupt, _mixed(0, 1, 0, 1)),
    "mixed gradual": partial(_gradual, _mixed(0)[0], _mixed(0, 1)[1]),
    "led abrupt": partial(
        _abrupt,
        [
            partial(_synth, "LEDDrift", seed=k, irrelevant_features=True, n_drift_features=k)
            for k in (1, 3, 5, 7)
        ],
    ),
    "hyperplane": partial(
        _throughout,
        partial(_synth, "Hyperplane", seed=1, n_drift_features=10, mag_change=0.001),
    ),
    "moving rbf": partial(
        _throughout,
        partial(
            _synth,
            "RandomRBFDrift",
            seed_model=1,
            seed_sample=1,
            n_classes=4,
            change_speed=0.001,
            n_drift_centroids=50,
        ),
    ),
    "checkerboard": _checkerboard,
    "checkerboard noise": partial(_checkerboard, 0.2),
}


def _named(name: str, entry: Entry) -> Stream:
    stream = replace(entry.make(), name=name)
    if entry.sha256 not in {"", stream.sha256}:
        raise UnavailableError(
            f"{name} is not what was measured: its sha256 is {stream.sha256}, not {entry.sha256}. "
            "Delete the file that was fetched, and have it fetched again"
        )
    return stream


_ALL = _REAL | _FETCHED | {name: Entry(make) for name, make in _GENERATED.items()}
#: By name, the real ones first.
STREAMS: dict[str, Entry] = {
    name: entry._replace(make=partial(_named, name, entry)) for name, entry in _ALL.items()
}
