"""Streams by name, as the command line and the experiments ask for them."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from drift._checks import check_integer, suggest
from drift.errors import ParameterError, needing
from drift.streams._files import find_one
from drift.streams.documents import Documents
from drift.streams.electricity import read_elec
from drift.streams.handwriting import letter, mnist, usps
from drift.streams.libsvm import read_libsvm
from drift.streams.rcv1v2 import RCV1_TARGETS, rcv1
from drift.streams.reuters import read_reuters21578
from drift.streams.simulator import NEWSWIRE_TARGETS, newswire
from drift.streams.synthetic import gaussians

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from drift.streams._files import PathLike

__all__ = ["fetch_openml", "load", "load_split", "segments"]

_N_TARGETS = 4


class _Named(NamedTuple):
    """What is known of a stream by its name.

    Attributes
    ----------
    read
        Yields its documents: all, or the training part and then the test part. Takes the folder,
        None where there are no files, `seed` and, if it is given, `n`.
    source
        How to get its files; empty: it has none.
    targets
        Of experiments; empty: its four most frequent topics.
    tested
        Whether it has a test part.
    openml
        Its name at openml.org, and how many of the rows there are for training: the first ones.
    """

    read: Callable[..., Iterable[Documents]]
    source: str = ""
    targets: tuple[str, ...] = ()
    tested: bool = False
    openml: tuple[str, int] | None = None


def _libsvm(*files: str, n_features: int | None = None, signs: bool = False) -> Any:
    """Return what reads files of LIBSVM's format, one after the other.

    With `signs` the labels are -1 and +1, which some packers write as 1, some as +1, some as 1.0.
    """

    def read(folder: Path, **_: int) -> Iterator[Documents]:
        for file in files:
            documents = read_libsvm(find_one(folder, file), n_features=n_features)
            if signs:
                names = tuple(f"{float(label):+g}" for label in documents.topic_names)
                documents = replace(documents, topic_names=names)
            yield documents

    return read


_SITE = "Download it (csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_STREAMS = {
    "newswire": _Named(lambda _, **how: [newswire(**how)], targets=NEWSWIRE_TARGETS),
    "rcv1": _Named(
        lambda folder, n=None, **_: [rcv1(folder) if n is None else rcv1(folder, n)],
        "Download the LYRL2004 files (jmlr.org/papers/volume5/lewis04a)",
        RCV1_TARGETS,
    ),
    "reuters21578": _Named(
        lambda folder, **_: [read_reuters21578(folder)],
        "Download it (kdd.ics.uci.edu/databases/reuters21578) and unpack it",
    ),
    "elec": _Named(
        lambda folder, **_: [read_elec(folder)],
        "Download elec.csv (github.com/scikit-multiflow/streaming-datasets)",
    ),
    "segments": _Named(
        lambda _, **__: [segments()], targets=("brickface", "cement", "foliage", "grass")
    ),
    "gaussians": _Named(lambda _, **how: [gaussians(**how)], targets=("+1", "-1")),
    "a9a": _Named(
        _libsvm("a9a", "a9a.t", n_features=123, signs=True),
        f"{_SITE}/binary.html, a9a and a9a.t)",
        tested=True,
    ),
    "ijcnn1": _Named(
        _libsvm("ijcnn1", "ijcnn1.t", n_features=22, signs=True),
        f"{_SITE}/binary.html, ijcnn1 and ijcnn1.t)",
        tested=True,
    ),
    "news20": _Named(
        _libsvm("news20.binary", n_features=1_355_191, signs=True),
        f"{_SITE}/binary.html, news20.binary)",
    ),
    "vehicle": _Named(
        _libsvm("combined", "combined.t", n_features=100),
        f"{_SITE}/multiclass.html, vehicle (combined))",
        tested=True,
    ),
    "timit": _Named(
        _libsvm("timit", "timit.t", n_features=351),
        "Buy the corpus (catalog.ldc.upenn.edu/LDC93S1), make LIBSVM files timit and timit.t",
        tested=True,
    ),
    "mnist": _Named(
        lambda folder, **_: mnist(folder),
        "Download its four idx files (yann.lecun.com/exdb/mnist)",
        tested=True,
        openml=("mnist_784", 60_000),
    ),
    "usps": _Named(
        lambda folder, **_: usps(folder),
        f"{_SITE}/multiclass.html, usps and usps.t)",
        tested=True,
        openml=("USPS", 7_291),
    ),
    "letter": _Named(
        lambda folder, **_: letter(folder),
        "Download it (archive.ics.uci.edu/dataset/59, letter-recognition.data)",
        tested=True,
        openml=("letter", 16_000),
    ),
}


def load(
    stream: str, data: PathLike | None = None, n: int | None = None, seed: int = 0
) -> tuple[Documents, tuple[str, ...]]:
    """Documents and target topics of a stream, by its name or its file.

    ================  =======================================  ==================================
    stream            documents                                targets
    ================  =======================================  ==================================
    ``newswire``      `newswire`, 8,000 unless `n` is given    `NEWSWIRE_TARGETS`
    ``rcv1``          `rcv1`, 20,000 unless `n` is given       `RCV1_TARGETS`
    ``reuters21578``  `read_reuters21578`                      its four most frequent topics
    ``elec``          `read_elec`                              0 and 1
    ``segments``      `segments`                               brickface, cement, foliage, grass
    ``gaussians``     `gaussians`, 10,000 unless `n` is given  +1 and -1
    ``a9a``           UCI Adult: `read_libsvm`                 -1 and +1
    ``ijcnn1``        LIBSVM's ijcnn1: `read_libsvm`           -1 and +1
    ``news20``        LIBSVM's news20.binary: `read_libsvm`    -1 and +1
    ``vehicle``       SensIT Vehicle, combined: `read_libsvm`  its three classes
    ``timit``         phonemes: `read_libsvm`                  its four most frequent topics
    ``mnist``         `mnist`, the training part               its four most frequent topics
    ``usps``          `usps`, the training part                its four most frequent topics
    ``letter``        `letter`, the training part              its four most frequent topics
    a file's path     `read_libsvm`                            its four most frequent topics
    ================  =======================================  ==================================

    Parameters
    ----------
    stream
        A name of the table, or the path of a LIBSVM file.
    data
        Folder with the stream's files, if it has any. None: the folder with the stream's name in
        the folder DRIFT_DATA, an environment variable. ``"openml"``: download ``mnist``, ``usps``
        or ``letter`` by `fetch_openml`.
    n
        Number of documents, from the first; None: as in the table, or all.
    seed
        Seed of ``newswire`` and ``gaussians``; the others have none.

    Returns
    -------
    documents : Documents
    targets : tuple of str
        At most four topics, the most frequent ones among these documents.

    Raises
    ------
    ParameterError
        No such stream, `n` below 1, no data folder, or one for a stream that has no files; the
        message says how to get the data.
    DataError
        Files that are missing, malformed or cut short.

    Examples
    --------
    >>> from drift.streams import load
    >>> load("segments")
    (<Documents segments: 2,310 x 18, 7 topics>, ('brickface', 'cement', 'foliage', 'grass'))
    """
    first = {} if n is None else {"n": check_integer("n", n)}
    if stream in _STREAMS:
        documents, *_ = islice(_parts(stream, data, seed=seed, **first), 1)
        targets = _STREAMS[stream].targets
    elif not Path(stream).is_file():
        raise ParameterError(f"no stream {stream!r}: {suggest(stream, [*_STREAMS, 'a file'])}")
    else:
        _refuse_folder(stream, data)
        documents, targets = read_libsvm(stream), ()
    documents = documents if n is None else documents.head(n)
    return documents, targets or tuple(documents.most_frequent(_N_TARGETS))


def load_split(
    stream: str, data: PathLike | None = None, n: int | None = None, n_test: int | None = None
) -> tuple[Documents, Documents]:
    """Training and test documents, as published.

    Parameters
    ----------
    stream
        ``mnist``, ``usps``, ``letter``, ``a9a``, ``ijcnn1``, ``vehicle`` or ``timit``.
    data
        As for `load`.
    n, n_test
        Number of documents of each part, from the first; None: all.

    Raises
    ------
    ParameterError
        No such stream, or one without a test part; no data folder.
    DataError
        Files that are missing, malformed or cut short.
    """
    tested = [name for name, named in _STREAMS.items() if named.tested]
    if stream not in tested:
        raise ParameterError(f"{stream!r} has no test part: choose among {', '.join(tested)}")
    training, test = _parts(stream, data, seed=0)
    return (
        training if n is None else training.head(n),
        test if n_test is None else test.head(n_test),
    )


def segments() -> Documents:
    """River's ImageSegments: 2,310 image regions, 18 raw features, 7 balanced classes.

    Real data that need no download. Features are not scaled; use a kernel with `normalize=True`.

    Examples
    --------
    >>> from drift.streams import segments
    >>> sorted(segments().topic_names)
    ['brickface', 'cement', 'foliage', 'grass', 'path', 'sky', 'window']
    """
    from river import datasets  # noqa: PLC0415 - 2 s to import

    images: Any = datasets.ImageSegments  # which River does not annotate
    return Documents.from_pairs(((x, [y]) for x, y in images()), name="segments")


def fetch_openml(
    name: str, version: int | str = "active", data_home: PathLike | None = None
) -> Documents:
    """Documents from a classification data set of openml.org, through scikit-learn.

    Downloads once, into scikit-learn's data home. Each class is a topic; categories among the
    features are numbered by scikit-learn, missing values are omitted.

    Parameters
    ----------
    name
        The data set's name at openml.org, for example ``"covertype"``.
    version
        Its version there; ``"active"``: the oldest that is still active.
    data_home
        Folder of scikit-learn's data; None: its default, ``~/scikit_learn_data``.

    Raises
    ------
    MissingExtraError
        scikit-learn is not installed.

    Examples
    --------
    >>> from drift.streams import fetch_openml
    >>> fetch_openml("electricity", version=1)  # doctest: +SKIP
    <Documents electricity: 45,312 x 8, 2 topics>
    """
    with needing("scikit-learn", "data"):
        from sklearn import datasets  # noqa: PLC0415 - optional
    home = None if data_home is None else str(data_home)
    # as_frame=False parses with liac-arff, which does not need pandas.
    bunch = datasets.fetch_openml(name, version=version, data_home=home, as_frame=False)
    return Documents.from_arrays(
        bunch.data, bunch.target, feature_names=bunch.feature_names, name=name
    )


def _parts(stream: str, data: PathLike | None, **how: int) -> Iterable[Documents]:
    """Return its documents, or its training and its test part."""
    named = _STREAMS[stream]
    if named.openml is not None and str(data) == "openml":
        name, n = named.openml
        documents = fetch_openml(name)
        rest = replace(documents, rows=documents.rows[n:], topics=documents.topics[n:])
        return documents.head(n), rest
    if not named.source:
        _refuse_folder(stream, data)
    return named.read(_folder(stream, data) if named.source else None, **how)


def _refuse_folder(stream: str, data: PathLike | None) -> None:
    if data is not None:
        raise ParameterError(f"{stream} is not read from a folder: leave data out")


def _folder(stream: str, data: PathLike | None) -> Path:
    if data is None and "DRIFT_DATA" in os.environ:
        data = Path(os.environ["DRIFT_DATA"], stream)
    if data is None or not Path(data).is_dir():
        missing = "no data folder is given" if data is None else f"the folder {data} does not exist"
        raise ParameterError(
            f"{stream}: {missing}. {_STREAMS[stream].source}, then give the folder as `data` "
            f"or as {stream} inside the folder that DRIFT_DATA names"
        )
    return Path(data)
