"""Streams by name, as the command line and the experiments ask for them."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.errors import MissingExtraError, ParameterError
from drift.streams.documents import Documents
from drift.streams.libsvm import read_libsvm
from drift.streams.rcv1v2 import RCV1_TARGETS, rcv1
from drift.streams.reuters import read_reuters21578
from drift.streams.simulator import NEWSWIRE_TARGETS, newswire
from drift.streams.synthetic import gaussians

if TYPE_CHECKING:
    from drift.streams._files import PathLike

__all__ = ["fetch_openml", "load", "segments"]

_NAMES = ("newswire", "rcv1", "reuters21578", "segments", "a9a", "gaussians")
_N_TARGETS = 4
_SOURCES = {
    "a9a": "Download it (csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html)",
    "rcv1": "Download the LYRL2004 files (jmlr.org/papers/volume5/lewis04a)",
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
    ``segments``      `segments`                               brickface, cement, foliage, grass
    ``a9a``           UCI Adult: `read_libsvm`                 -1 and +1
    ``gaussians``     `gaussians`, 10,000 unless `n` is given  +1 and -1
    a file's path     `read_libsvm`                            its four most frequent topics
    ================  =======================================  ==================================

    Parameters
    ----------
    stream
        A name of the table, or the path of a LIBSVM file.
    data
        For ``rcv1``, ``reuters21578`` and ``a9a``: the folder of their files. None: the folder of
        that name in the one that the environment variable DRIFT_DATA names.
    n
        Take the first `n` documents only; None: see the table, else all of them.
    seed
        Of ``newswire`` and ``gaussians``; the others are what they are.

    Returns
    -------
    documents : Documents
    targets : tuple of str
        Counted in the documents taken; fewer than four where there are no more.

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
    if n is not None and n < 1:
        raise ParameterError(f"n must be at least 1, not {n}")
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


def segments() -> Documents:
    """River's ImageSegments: 2,310 image regions, 18 raw features, 7 balanced classes.

    Real data that are always there. Features are not scaled; use a kernel with `normalize=True`.

    Examples
    --------
    >>> from drift.streams import segments
    >>> sorted(segments().topic_names)
    ['brickface', 'cement', 'foliage', 'grass', 'path', 'sky', 'window']
    """
    from river import datasets  # noqa: PLC0415 - takes 2 s to import

    images: Any = datasets.ImageSegments  # which River does not annotate
    return Documents.from_pairs(((x, [y]) for x, y in images()), name="segments")


def fetch_openml(
    name: str, version: int | str = "active", data_home: PathLike | None = None
) -> Documents:
    """Documents from a classification data set of openml.org, through scikit-learn.

    Downloads once, into scikit-learn's data home. Each class is a topic; categories among the
    features are numbered by scikit-learn, missing values are left out.

    Parameters
    ----------
    name
        The data set's name at openml.org, ``"covertype"`` say.
    version
        Its version there; ``"active"``: the oldest that is still active.
    data_home
        Where scikit-learn keeps its data; None: its default, ``~/scikit_learn_data``.

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
    try:
        from sklearn import datasets  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "data") from error
    home = None if data_home is None else str(data_home)
    # Not a frame: liac-arff reads it then, and pandas need not be there.
    bunch = datasets.fetch_openml(name, version=version, data_home=home, as_frame=False)
    return Documents.from_arrays(
        bunch.data, bunch.target, feature_names=bunch.feature_names, name=name
    )


def _read(stream: str, data: PathLike | None) -> Documents:
    if stream == "reuters21578":
        return read_reuters21578(_folder(stream, data))
    if stream == "a9a":
        return _a9a(_folder(stream, data))
    if not Path(stream).is_file():
        near = get_close_matches(stream, _NAMES, n=1)
        guess = f" (did you mean {near[0]!r}?)" if near else ""
        raise ParameterError(f"no stream {stream!r}{guess}: give {', '.join(_NAMES)} or a file")
    return read_libsvm(stream)


def _a9a(folder: Path) -> Documents:
    """Read the training part, whether or not it is compressed."""
    names = ("a9a", "a9a.xz", "a9a.gz", "a9a.bz2")
    found = [folder / name for name in names if (folder / name).is_file()]
    return read_libsvm(found[0] if found else folder / names[0], n_features=123)


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
