"""The arena's streams, on two lists that are not chosen by results: development and held out.

On the first, constants of the Tracker were chosen. On the second none was, and none may be.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from river import datasets
from river.datasets import synth

from drift.errors import DataError, ParameterError, needing
from drift.streams import RCV1_TARGETS, ShiftingStream, load, read_stream
from drift.streams.stream import Drift, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from drift.streams import Documents

__all__ = [
    "GROUPS",
    "KINDS",
    "REUTERS_TOPICS",
    "ROWS",
    "STREAMS",
    "Entry",
    "file_of",
    "hyperplane",
    "loaded",
    "table_of",
    "topics_of",
]

#: Rows of a stream at most; of Electricity all are taken.
ROWS = 20_000
#: Kinds of streams, as tables have them; the last two are the development streams.
KINDS = ("held-out", "real", "generated")
#: Topics of Reuters-21578 that take turns as the target.
REUTERS_TOPICS = ("earn", "acq", "money-fx", "crude")
#: The lists.
GROUPS = ("development", "held-out")


class Entry(NamedTuple):
    """A stream of the arena."""

    make: Callable[[], Stream]
    #: Streams of one source count once where real streams are compared; empty: it is generated.
    source: str = ""
    #: Texts: rows of few features among many, of unit norm or counts, which nothing scales.
    sparse: bool = False
    #: No constant was chosen on it, nor may be.
    heldout: bool = False

    @property
    def group(self) -> str:
        """The list that it is on, one of `GROUPS`."""
        return GROUPS[self.heldout]

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return KINDS[0] if self.heldout else KINDS[1] if self.source else KINDS[2]


def _bundled(data: Callable[[], Iterable[Any]]) -> Stream:
    return Stream.of(data(), "", ROWS)


@cache
def loaded(name: str) -> tuple[Documents, Sequence[str]]:
    """Return the documents of a data set, and its targets, loaded once."""
    return load(name)


def topics_of(name: str, *topics: str, whole: bool = False) -> Stream:
    """Return documents of a data set, whose target is one topic after the other."""
    documents, _ = loaded(name)
    stream = ShiftingStream(documents if whole else documents.head(ROWS), topics)
    pairs = zip(stream.documents.features(), stream.y.tolist(), strict=True)
    return Stream(list(pairs), name, tuple(map(Drift, stream.shifts)))


def table_of(name: str, target: str | None, *, whole: bool = False) -> Stream:
    """Return rows of a data set, with zeros where its file has none: a scaler has to see them."""
    stream = read_stream(loaded(name)[0], target, rows=None if whole else ROWS)
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
    stream = read_stream(loaded("a9a")[0], "+1", rows=ROWS)
    return replace(stream, examples=[(dict(columns[i] for i in x), y) for x, y in stream])


def _path(*names: str) -> Path:
    if "DRIFT_DATA" not in os.environ:
        raise ParameterError("set DRIFT_DATA to the folder of the data")
    return Path(os.environ["DRIFT_DATA"], *names)


def file_of(name: str, target: str, *, whole: bool = False) -> Stream:
    """Return rows of a file."""
    return read_stream(_path("streams", name), target, rows=None if whole else ROWS)


def _arrays(name: str) -> dict[str, NDArray[Any]]:
    path = _path("heldout", f"{name}.npz")
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError) as error:
        raise DataError(path, None, f"is no file of arrays ({error})") from error


def _columns(name: str, target: str | None = None) -> Stream:
    """Rows of numbers, and of codes of categories, which are texts here; NaN is missing."""
    arrays = _arrays(name)
    names, is_text = arrays["names"].tolist(), arrays["cat"].tolist()
    pairs = []
    for row, label in zip(arrays["X"][:ROWS].tolist(), arrays["y"].tolist(), strict=False):
        cells = zip(names, row, is_text, strict=True)
        x = {
            key: str(int(value)) if text else value for key, value, text in cells if value == value
        }
        pairs.append((x, label if target is None else label == target))
    return Stream(pairs)


def _words(name: str, target: str | None = None) -> Stream:
    """Texts as numbers by word."""
    arrays = _arrays(name)
    ends, words = arrays["indptr"].tolist(), arrays["vocab"][arrays["indices"]].tolist()
    values, labels = arrays["data"].tolist(), arrays["y"][:ROWS]
    labels = (labels if target is None else labels == target).tolist()
    rows = zip(ends, ends[1:], labels, strict=False)
    return Stream([(dict(zip(words[i:j], values[i:j], strict=True)), y) for i, j, y in rows])


def _decided(data: Callable[[], Iterable[Any]], label: Callable[[Any], bool]) -> Stream:
    """One of River's data sets of regression or of several labels, with one label made of those."""
    return Stream([(x, label(y)) for x, y in data()])


def _abrupt(concepts: Sequence[Callable[[], Any]], noise: float = 0.0) -> Stream:
    """Concepts of equal length, one after the other; a share of the labels is drawn at random."""
    length = ROWS // len(concepts)
    pairs = [pair for make in concepts for pair in islice(make().take(length), length)]
    drifts = [Drift(length * k) for k in range(1, len(concepts))]
    return Stream(_noisy(pairs, noise), "", tuple(drifts))


def _gradual(before: Callable[[], Any], after: Callable[[], Any]) -> Stream:
    """A concept that gives way to another one around the middle, within a fifth of the rows."""
    width = ROWS // 5
    both = synth.ConceptDriftStream(
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


def hyperplane(**more: Any) -> Stream:
    """Return a plane that turns all the time."""
    turning: dict[str, Any] = {"seed": 1, "n_drift_features": 10, "mag_change": 0.001}
    return _throughout(partial(synth.Hyperplane, **turning, **more))


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


def _turning_moons() -> Stream:
    """Two half moons of scikit-learn's that make a whole turn."""
    points, labels = _sklearn("make_moons", n_samples=ROWS, noise=0.25)
    angles = np.linspace(0, 2 * np.pi, ROWS)
    cos, sin = np.cos(angles), np.sin(angles)
    x, y = points[:, 0] - 0.5, points[:, 1] - 0.25
    return _of_arrays(np.column_stack([cos * x - sin * y, sin * x + cos * y]), labels)


def _clusters() -> Stream:
    """Four problems of scikit-learn's, one after the other: clusters of four classes."""
    about = {"n_features": 20, "n_informative": 8, "n_classes": 4}
    parts = [
        _sklearn("make_classification", n_samples=ROWS // 4, seed=seed, **about)
        for seed in range(4)
    ]
    X, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    drifts = tuple(Drift(ROWS // 4 * k) for k in (1, 2, 3))
    return replace(_of_arrays(X, y), drifts=drifts)


def _spheres() -> Stream:
    """Whether a point in ten dimensions is outside of a sphere: nothing drifts."""
    return _of_arrays(*_sklearn("make_hastie_10_2", n_samples=ROWS))


def _sklearn(name: str, seed: int = 0, **parameters: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    with needing("scikit-learn", "data"):
        from sklearn import datasets  # noqa: PLC0415 - optional
    made: tuple[NDArray[Any], NDArray[Any]]
    made = getattr(datasets, name)(random_state=seed, **parameters)
    return made


def _of_arrays(X: NDArray[Any], y: NDArray[Any]) -> Stream:
    labels = y.astype(int) if len(np.unique(y)) > 2 else y > 0
    rows = zip(X.tolist(), labels.tolist(), strict=True)
    return Stream([({f"x{k}": v for k, v in enumerate(row)}, label) for row, label in rows])


def _friedman() -> Stream:
    """Whether a function of Friedman's, whose terms change twice, is above its usual mean."""
    changes = tuple(ROWS * part // 20 for part in (7, 14, 18))
    made = synth.FriedmanDrift(drift_type="lea", position=changes, seed=0)
    return Stream([(x, y > 14) for x, y in made.take(ROWS)], "", tuple(map(Drift, changes)))


def _concepts(data: Callable[..., Any], parameter: str, *numbers: int) -> list[Callable[[], Any]]:
    return [partial(data, **{parameter: k}, seed=i) for i, k in enumerate(numbers)]


_sea = partial(_concepts, synth.SEA, "variant")
_agrawal = partial(_concepts, synth.Agrawal, "classification_function")
_mixed = partial(_concepts, synth.Mixed, "classification_function")
_stagger = partial(_concepts, synth.STAGGER, "classification_function")
_sine = partial(_concepts, synth.Sine, "classification_function")
_text = partial(Entry, sparse=True)

_REAL: dict[str, Entry] = {
    "electricity": Entry(partial(table_of, "elec", "1", whole=True), "electricity"),
    "weather": Entry(partial(file_of, "weather.csv.xz", "class"), "weather"),
    "insects": Entry(partial(file_of, "insects-gradual.csv.xz", "class"), "insects"),
    "rialto": Entry(partial(file_of, "rialto.csv.xz", "class"), "rialto"),
    "outdoor": Entry(partial(file_of, "outdoor.csv.xz", "class"), "outdoor"),
    "ijcnn1": Entry(partial(table_of, "ijcnn1", "+1"), "ijcnn1"),
    "a9a": Entry(_adult, "a9a"),
    "letter": Entry(partial(table_of, "letter", None), "letter"),
    "rcv1 GCAT": _text(partial(topics_of, "rcv1", "GCAT"), "rcv1"),
    "rcv1 shifts": _text(partial(topics_of, "rcv1", *RCV1_TARGETS, *RCV1_TARGETS), "rcv1"),
    "reuters earn": _text(partial(topics_of, "reuters21578", "earn"), "reuters"),
    "reuters shifts": _text(partial(topics_of, "reuters21578", *REUTERS_TOPICS), "reuters"),
    "spam": _text(partial(file_of, "spam.svm.xz", "+1"), "spam"),
    "phishing": Entry(partial(_bundled, datasets.Phishing), "phishing"),
    "bananas": Entry(partial(_bundled, datasets.Bananas), "bananas"),
    "segments": Entry(partial(_bundled, datasets.ImageSegments), "segments"),
    "shuttle": Entry(partial(_bundled, datasets.Shuttle), "shuttle"),
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
            partial(synth.LEDDrift, seed=k, irrelevant_features=True, n_drift_features=k)
            for k in (1, 3, 5, 7)
        ],
    ),
    "hyperplane": hyperplane,
    "moving rbf": partial(
        _throughout,
        partial(
            synth.RandomRBFDrift,
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


_HELDOUT: dict[str, Entry] = {
    "steel": Entry(partial(_columns, "steel"), "steel"),
    "turbofan": Entry(partial(_columns, "turbofan", "1"), "turbofan"),
    "shoppers": Entry(partial(_columns, "shoppers", "1"), "shoppers"),
    "nslkdd": Entry(partial(_columns, "nslkdd"), "nslkdd"),
    "unsw": Entry(partial(_columns, "unsw"), "unsw"),
    "tweets": _text(partial(_words, "tweets"), "tweets"),
    "sms": _text(partial(_words, "sms", "spam"), "sms"),
    "flares": Entry(
        partial(_decided, datasets.SolarFlare, lambda flares: flares["c-class-flares"] > 0),
        "flares",
    ),
    "yeast": Entry(partial(_decided, datasets.Yeast, lambda classes: classes["Class1"]), "yeast"),
    "stocks": Entry(partial(_decided, datasets.SP500Stocks, lambda index: index > 0), "stocks"),
    "stagger abrupt": Entry(partial(_abrupt, _stagger(0, 1, 2, 0))),
    "sine recurring": Entry(partial(_abrupt, _sine(0, 1, 0, 1))),
    "sine gradual": Entry(partial(_gradual, _sine(2)[0], _sine(2, 3)[1])),
    "trees abrupt": Entry(
        partial(
            _abrupt,
            [partial(synth.RandomTree, seed_tree=k, seed_sample=k, n_classes=3) for k in range(4)],
        )
    ),
    "waveform": Entry(partial(_throughout, partial(synth.Waveform, seed=0, has_noise=True))),
    "friedman abrupt": Entry(_friedman),
    "clusters abrupt": Entry(_clusters),
    "moons turning": Entry(_turning_moons),
    "spheres": Entry(_spheres),
}


def _made(name: str, entry: Entry) -> Stream:
    return replace(entry.make(), name=name)


_ALL = _REAL | {name: Entry(make) for name, make in _GENERATED.items()}
_ALL |= {name: entry._replace(heldout=True) for name, entry in _HELDOUT.items()}
#: By name: the real ones of development, the generated ones, and those held out.
STREAMS: dict[str, Entry] = {
    name: entry._replace(make=partial(_made, name, entry)) for name, entry in _ALL.items()
}
