"""Reader of LIBSVM text, the usual format of sparse benchmark data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.errors import DataError
from drift.streams._convert import indicator
from drift.streams._files import read_text, sha256_of
from drift.streams._svmlight import parse
from drift.streams.documents import Documents

if TYPE_CHECKING:
    from drift.streams._files import PathLike

__all__ = ["read_libsvm"]


def read_libsvm(
    path: PathLike,
    topics: PathLike | Mapping[Any, str] | None = None,
    n_features: int | None = None,
) -> Documents:
    r"""Documents from LIBSVM text, with one label a line or several.

    A line reads ``label,label index:value index:value ...``. Labels are any tokens without space,
    comma or colon; a line that starts with a space or with a feature has none. Feature indices
    count from 1 and become columns 0, 1, ...; where one is 0, as scikit-learn writes it, they count
    from 0, and `Documents.notes` says so. A ``#`` at the start of a line or after a space starts a
    comment.

    Of two files of one data set, one may have a feature 0 and the other none: its columns are then
    off by one. Write both from 1, as ``dump_svmlight_file(..., zero_based=False)`` does.

    Parameters
    ----------
    path
        A plain file, or one that ends in .xz, .gz, .bz2 or .zip.
    topics
        Names of the labels: a mapping from label to name, or a tab separated file whose columns
        start with label and name, under one line of headings. Other labels are errors. None: the
        labels are the names, in order of first appearance.
    n_features
        Number of columns, and so the largest index allowed, from 1; None: the largest in the file.

    Returns
    -------
    Documents
        In the file's order; its `sha256` is that of the file.

    Raises
    ------
    DataError
        A line that is malformed, with its number, a file without any feature, or one that is
        missing or cut short: damaged compression, or a last line without newline. A compressed file
        that grows to more than 64 MiB and more than a hundred times its size.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from drift.streams import read_libsvm
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "news.svm")
    ...     _ = path.write_text("4 1:0.5 3:0.25\n 2:1\n")
    ...     documents = read_libsvm(path, topics={4: "C15", 59: "ECAT"})
    >>> list(documents)
    [({0: 0.5, 2: 0.25}, frozenset({'C15'})), ({1: 1.0}, frozenset())]
    """
    raw, text = read_text(path)
    heads, rows, numbers, first = parse(text, path, n_features)
    if heads and not rows.nnz and n_features is None:
        raise DataError(
            path,
            numbers[0],
            f"no line has a feature, index:value; the first is {heads[0]!r:.80}: a line of a "
            "LIBSVM file reads 'label index:value ...'; a CSV file is none",
        )
    codes = None if topics is None else _codes(topics)
    labels = dict.fromkeys(codes) if codes else {}
    columns = {label: column for column, label in enumerate(labels)}
    members = _members(zip(numbers, heads, strict=True), columns, path, closed=codes is not None)
    names = tuple(codes[label] for label in columns) if codes else tuple(columns)
    return Documents(
        rows=rows,
        topics=indicator(members, len(names)),
        topic_names=names,
        name=Path(path).name.partition(".")[0],
        sha256=sha256_of([raw]),
        notes=() if first else ("features count from 0, as one is 0",),
    )


def _codes(topics: PathLike | Mapping[Any, str]) -> dict[str, str]:
    if isinstance(topics, Mapping):
        return {str(label): name for label, name in topics.items()}
    _, text = read_text(topics)
    codes = {}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), start=1):
        fields = line.split("\t")
        if len(fields) < 2:
            raise DataError(topics, number, f"expected label, tab, name, but read {line!r}")
        codes[fields[0]] = fields[1]
    del codes[next(iter(codes))]  # the headings
    return codes


def _members(
    heads: Iterable[tuple[int, str]], columns: dict[str, int], path: PathLike, *, closed: bool
) -> list[list[int]]:
    """Columns of each line's labels. A new label gets the next column, unless the set is closed."""
    columns_of: dict[str, list[int]] = {"": []}
    members = []
    for number, head in heads:
        if head not in columns_of:
            labels = head.split(",")
            for label in labels:
                if not label or (closed and label not in columns):
                    raise DataError(path, number, f"label {label!r} of {head!r} is no known topic")
                columns.setdefault(label, len(columns))
            columns_of[head] = [columns[label] for label in labels]
        members.append(columns_of[head])
    return members
