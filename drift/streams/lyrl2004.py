"""Reader of RCV1-v2 as its editors publish it, the LYRL2004 collection.

The vectors and the topics come in separate files that share document ids; the ids are in the
order of time, which is what makes RCV1 a stream.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, vstack

from drift.errors import DataError
from drift.streams._convert import indicator
from drift.streams._files import read_text, sha256_of
from drift.streams._svmlight import parse
from drift.streams.documents import Documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drift.streams._files import PathLike

__all__ = ["read_lyrl2004"]

_N_FEATURES = 47_236
_ID = re.compile(r"[0-9]{1,18}").fullmatch


def read_lyrl2004(vectors: PathLike | Sequence[PathLike], qrels: PathLike) -> Documents:
    r"""Stories of the LYRL2004 collection, in the order of their document ids, which is by time.

    Parameters
    ----------
    vectors
        One vector file or several (``lyrl2004_vectors_train.dat``, ``..._test_pt0.dat``, ...),
        plain or compressed. Lines read ``docid  feature:value feature:value ...``.
    qrels
        The topics, ``rcv1-v2.topics.qrels``. Lines read ``CCAT 2286 1``; documents that are not
        among the vectors are ignored.

    Returns
    -------
    Documents
        47,236 columns. Topics are in order of first appearance in `qrels`. The `sha256` is that
        of the vector files and then `qrels`, one after the other.

    Raises
    ------
    DataError
        A malformed line, a document that occurs twice or has no topics, or a file that is
        missing or cut short.

    References
    ----------
    .. [1] Lewis, D. D., Yang, Y., Rose, T. G., Li, F. (2004). RCV1: A new benchmark collection
       for text categorization research. Journal of Machine Learning Research 5, 361-397.
       Appendices B.12 and B.13.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from drift.streams import read_lyrl2004
    >>> with TemporaryDirectory() as folder:
    ...     vectors, qrels = Path(folder, "vectors.dat"), Path(folder, "topics.qrels")
    ...     _ = vectors.write_text("2287  5:0.25\n2286  1:0.5 4:0.5\n")
    ...     _ = qrels.write_text("ECAT 2286 1\nCCAT 2286 1\nMCAT 2287 1\n")
    ...     documents = read_lyrl2004(vectors, qrels)
    >>> [sorted(topics) for features, topics in documents]
    [['CCAT', 'ECAT'], ['MCAT']]
    """
    paths = [vectors] if isinstance(vectors, (str, Path)) else list(vectors)
    raws, blocks = [], []
    place: dict[int, tuple[PathLike, int]] = {}
    for path in paths:
        raw, text = read_text(path)
        heads, rows, numbers, _ = parse(text, path, _N_FEATURES)
        for number, head in zip(numbers, heads, strict=True):
            _register(head, (path, number), place)
        raws.append(raw)
        blocks.append(rows)
    raw, text = read_text(qrels)
    topics, members = _members(text, qrels, place)
    order = np.argsort(np.fromiter(place, dtype=np.int64))
    return Documents(
        rows=csr_array(vstack(blocks))[order],
        topics=indicator(members, len(topics))[order],
        topic_names=topics,
        name="rcv1",
        sha256=sha256_of([*raws, raw]),
    )


def _register(
    head: str, here: tuple[PathLike, int], place: dict[int, tuple[PathLike, int]]
) -> None:
    if not _ID(head):
        raise DataError(*here, f"{head!r:.80} is not a document id: expected a whole number first")
    document = int(head)
    if document in place:
        path, number = place[document]
        raise DataError(*here, f"document {document} is already at {path}, line {number}")
    place[document] = here


def _members(
    text: bytes, path: PathLike, place: dict[int, tuple[PathLike, int]]
) -> tuple[tuple[str, ...], list[list[int]]]:
    """Topic names, and the columns of the topics of each document, in the order of `place`."""
    topics: dict[str, int] = {}
    members: dict[int, list[int]] = {document: [] for document in place}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), start=1):
        fields = line.split()
        if len(fields) != 3 or not _ID(fields[1]) or fields[2] != "1":
            raise DataError(
                path, number, f"expected topic, document id and 1, but read {line!r:.80}"
            )
        if (columns := members.get(int(fields[1]))) is not None:
            columns.append(topics.setdefault(fields[0], len(topics)))
    for document, columns in members.items():
        if not columns:
            raise DataError(*place[document], f"document {document} has no topics in {path}")
    return tuple(topics), list(members.values())
