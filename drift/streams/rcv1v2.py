"""RCV1, the newswire collection of the tracking paper, from wherever the user has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from drift._checks import check_integer
from drift.errors import DataError, needing
from drift.streams._files import find_one, find_path
from drift.streams.documents import Documents
from drift.streams.libsvm import read_libsvm
from drift.streams.lyrl2004 import read_lyrl2004

if TYPE_CHECKING:
    from drift.streams._files import PathLike

__all__ = ["RCV1_TARGETS", "fetch_rcv1", "rcv1"]

#: The tracking paper's targets: the 2nd to 5th most frequent topics of the first 20,000 stories.
RCV1_TARGETS = ("GCAT", "MCAT", "C15", "ECAT")

_TRAIN = "lyrl2004_vectors_train.dat"
# The training file holds the 23,149 oldest stories, all that the papers' experiments use.
_N_TRAIN = 23_149
_TEST = tuple(f"lyrl2004_vectors_test_pt{part}.dat" for part in range(4))


def rcv1(folder: PathLike, n: int = 20_000) -> Documents:
    """Return the first stories of RCV1 from a folder.

    Parameters
    ----------
    folder
        Holds ``rcv1_topics.svm`` and ``topics.tsv`` (LIBSVM text with ids of topics), or else the
        official LYRL2004 files: ``lyrl2004_vectors_train.dat``, for more than 23,149 stories also
        the four ``lyrl2004_vectors_test_pt*.dat``, and ``rcv1-v2.topics.qrels``. Each plain or
        compressed.
    n
        How many stories, at least 1; all, where there are fewer.

    Raises
    ------
    DataError
        The folder holds neither, or a file is malformed or cut short.
    ParameterError
        `n` is below 1.

    See Also
    --------
    fetch_rcv1 : The same stories through scikit-learn, downloaded once.
    read_lyrl2004 : What is read from the official files.

    Examples
    --------
    >>> from drift.streams import rcv1
    >>> rcv1("data/rcv1").n_features  # doctest: +SKIP
    47236
    """
    check_integer("n", n)
    sample = find_path(folder, "rcv1_topics.svm")
    if sample is not None:
        documents = read_libsvm(sample, find_one(folder, "topics.tsv"), n_features=47_236)
    elif find_path(folder, _TRAIN) is not None:
        names = (_TRAIN,) if n <= _N_TRAIN else (_TRAIN, *_TEST)
        qrels = find_one(folder, "rcv1-v2.topics.qrels")
        documents = read_lyrl2004([find_one(folder, name) for name in names], qrels)
    else:
        problem = (
            f"holds neither rcv1_topics.svm nor {_TRAIN}: put the files of LYRL2004 there "
            "(jmlr.org/papers/volume5/lewis04a), or call drift.streams.fetch_rcv1()"
        )
        raise DataError(Path(folder), None, problem)
    # The name does not depend on which files were read.
    return replace(documents, name="rcv1").head(n)


def fetch_rcv1(n: int = 20_000, data_home: PathLike | None = None) -> Documents:
    """Return the first stories of RCV1, in the order of time, through scikit-learn.

    Downloads about 650 MB once, into scikit-learn's data home.

    Parameters
    ----------
    n
        How many stories, at least 1, by document id.
    data_home
        Folder of scikit-learn's data; None: its default, ``~/scikit_learn_data``.

    Raises
    ------
    MissingExtraError
        scikit-learn is not installed.
    ParameterError
        `n` is below 1.

    Examples
    --------
    >>> from drift.streams import fetch_rcv1
    >>> fetch_rcv1()  # doctest: +SKIP
    <Documents rcv1: 20,000 x 47,236, 103 topics>
    """
    check_integer("n", n)
    with needing("scikit-learn", "data"):
        from sklearn import datasets  # noqa: PLC0415 - optional
    bunch = datasets.fetch_rcv1(data_home=None if data_home is None else str(data_home))
    oldest = np.argsort(bunch.sample_id, kind="stable")[:n]
    return Documents.from_arrays(
        bunch.data[oldest], bunch.target[oldest], topic_names=bunch.target_names, name="rcv1"
    )
