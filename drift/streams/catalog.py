"""Streams by name, as the command line and the experiments ask for them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from drift.streams._files import PathLike

__all__ = ["fetch_openml", "load", "load_split", "segments"]

#: Sets in LIBSVM's format: files of the training and of the test part, and columns.
_LIBSVM = {
    "a9a": ("a9a", "a9a.t", 123),
    "ijcnn1": ("ijcnn1", "ijcnn1.t", 22),
    "news20": ("news20.binary", None, 1_355_191),
    "vehicle": ("combined", "combined.t", 100),
    "timit": ("timit", "timit.t", 351),
}
#: Those with two classes, whose labels some packers write as 1, some as +1 and some as 1.0.
_TWO_CLASSES = ("a9a", "ijcnn1", "news20")
_SPLITS = {"mnist": mnist, "usps": usps, "letter": letter}
#: Their names at openml.org, and how many of the rows there are for training: the first ones.
_OPENML = {"mnist": ("mnist_784", 60_000), "usps": ("USPS", 7_291), "letter": ("letter", 16_000)}
_NAMES = ("newswire", "rcv1", "reuters21578", "elec", "segments", "gaussians", *_LIBSVM, *_SPLITS)
_N_TARGETS = 4
_SITE = "Download it (csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_SOURCES = {
    "a9a": f"{_SITE}/binary.html, a9a and a9a.t)",
    "ijcnn1": f"{_SITE}/binary.html, ijcnn1 and ijcnn1.t)",
    "news20": f"{_SITE}/binary.html, news20.binary)",
    "vehicle": f"{_SITE}/multiclass.html, vehicle (combined))",
    "timit": "Buy the corpus (catalog.ldc.upenn.edu/LDC93S1), make LIBSVM files timit and timit.t",
    "mnist": "Download its four idx files (yann.lecun.com/exdb/mnist)",
    "usps": f"{_SITE}/multiclass.html, usps and usps.t)",
    "letter": "Download it (archive.ics.uci.edu/dataset/59, letter-recognition.data)",
    "rcv1": "Download the LYRL2004 files (jmlr.org/papers/volume5/lewis04a)",
    "elec": "Download elec.csv (github.com/scikit-multiflow/streaming-datasets)",
    "reuters21578": "Download it (kdd.ics.uci.edu/databases/reuters21578) and unpack it",
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
        No such stream, `n` below 1, or no data folder; the message says how to get the data.
    DataError
        Files that are missing, malformed or cut short.

    Examples
    --------
    >>> from drift.streams import load
    >>> load("segments")
    (<Documents segments: 2,310 x 18, 7 topics>, ('brickface', 'cement', 'foliage', 'grass'))
    """
    if n is not None:
        check_integer("n", n)
    if stream == "newswire":
        return newswire(seed=seed) if n is None else newswire(n, seed), NEWSWIRE_TARGETS
    if stream == "gaussians":
        return gaussians(seed=seed) if n is None else gaussians(n, seed), ("+1", "-1")
    if stream == "rcv1":
        folder = _folder(stream, data)
        return rcv1(folder) if n is None else rcv1(folder, n), RCV1_TARGETS
    if stream == "segments":
        documents = segments()
        targets = sorted(documents.topic_names)[:_N_TARGETS]
    else:
        documents = _read(stream, data)
        targets = documents.most_frequent(_N_TARGETS, n)
    return documents if n is None else documents.head(n), tuple(targets)


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
    if stream in _SPLITS:
        training, test = _split(stream, data)
    elif stream in _LIBSVM and _LIBSVM[stream][1] is not None:
        folder = _folder(stream, data)
        training, test = (_libsvm(stream, folder, part) for part in (0, 1))
    else:
        names = [name for name, files in _LIBSVM.items() if files[1]] + list(_SPLITS)
        raise ParameterError(f"{stream!r} has no test part: choose among {', '.join(names)}")
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


def _read(stream: str, data: PathLike | None) -> Documents:
    if stream == "reuters21578":
        return read_reuters21578(_folder(stream, data))
    if stream == "elec":
        return read_elec(_folder(stream, data))
    if stream in _SPLITS:
        return _split(stream, data)[0]
    if stream in _LIBSVM:
        return _libsvm(stream, _folder(stream, data), 0)
    if not Path(stream).is_file():
        hint = suggest(stream, [*_NAMES, "a file"])
        raise ParameterError(f"no stream {stream!r}: {hint}")
    return read_libsvm(stream)


def _split(stream: str, data: PathLike | None) -> tuple[Documents, Documents]:
    if str(data) != "openml":
        return _SPLITS[stream](_folder(stream, data))
    name, n = _OPENML[stream]
    documents = fetch_openml(name)
    rest = replace(documents, rows=documents.rows[n:], topics=documents.topics[n:])
    return documents.head(n), rest


def _libsvm(stream: str, folder: Path, part: int) -> Documents:
    """Read the training part (0) or the test part (1) of a set, whether or not it is compressed."""
    *files, n_features = _LIBSVM[stream]
    documents = read_libsvm(find_one(folder, str(files[part])), n_features=int(n_features or 0))
    if stream not in _TWO_CLASSES:
        return documents
    signs = tuple(f"{float(label):+g}" for label in documents.topic_names)
    return replace(documents, topic_names=signs)


def _folder(stream: str, data: PathLike | None) -> Path:
    if data is None and "DRIFT_DATA" in os.environ:
        data = Path(os.environ["DRIFT_DATA"], stream)
    if data is None or not Path(data).is_dir():
        missing = "no data folder is given" if data is None else f"the folder {data} does not exist"
        raise ParameterError(
            f"{stream}: {missing}. {_SOURCES[stream]}, then give the folder as `data` "
            f"or as {stream} inside the folder that DRIFT_DATA names"
        )
    return Path(data)
