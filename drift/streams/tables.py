"""Streams from data frames and table files, which libraries read.

| suffix | read by |
|---|---|
| ``.csv`` with commas or semicolons, ``.tsv``, also compressed | pandas, else polars |
| ``.parquet`` | pandas with pyarrow, else polars |
| ``.arff`` | `scipy.io.arff` |
| ``.svm``, ``.libsvm``, ``.svmlight``, also compressed | `drift.streams.read_libsvm` |
| ``.jsonl``, ``.ndjson``, also compressed | `json`, as messages of a Kafka topic or flat |
"""

from __future__ import annotations

import bz2
import codecs
import datetime as dt
import gzip
import json
import lzma
import re
import warnings
import zlib
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from io import StringIO
from itertools import islice, pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
from narwhals.exceptions import DuplicateError
from scipy.io import arff

from drift._checks import counted, suggest
from drift.errors import DataError, MissingExtraError, ParameterError, one_line
from drift.streams._files import read_bytes, read_text
from drift.streams.documents import Documents
from drift.streams.libsvm import read_libsvm
from drift.streams.stream import Stream, are_categories, is_missing, problem_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["read_stream"]

#: With fewer rows a column may count up, or equal the label, by chance.
_FEW = 100
_COMPRESSED: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
}
#: What readers raise if a file has another format, or is compressed and damaged.
_UNREADABLE = (
    *(ValueError, NotImplementedError, OSError, StopIteration),
    *(EOFError, zlib.error, lzma.LZMAError),
)
#: A number with a decimal comma between semicolons, and the number of lines searched for one.
_COMMAS = re.compile(rb"(^|;) *-?\d*,\d+ *(;|\r?\n|$)")
_LINES = 1_000
_TIMES = "has times, which are no numbers: order by it (time=, --time), or convert it to numbers"
#: Names that libraries give to a nameless first column, such as the index of a data frame.
_NAMELESS = {"", "Unnamed: 0"}
_Columns = dict[str, list[Any]]


def read_stream(  # noqa: PLR0913 - how a source is read, by keyword
    source: Any,
    target: str | None = None,
    *,
    time: str | None = None,
    rows: int | None = None,
    drop: Collection[str] = (),
    name: str | None = None,
) -> Stream:
    r"""Read labelled examples from a file, data frame or data set.

    Numbers, bools and texts become features unchanged; missing values are omitted. `compare`
    encodes texts for each model. In a loop of your own, put an encoder before a model that needs
    numbers.

    Parameters
    ----------
    source
        A data frame of a library that narwhals supports; a path to a CSV, Parquet, ARFF or LIBSVM
        file or to JSON lines, as in a Kafka topic; `Documents`; a River data set or other pairs of
        features and label; or a `Stream`.
    target
        The column of labels. Of `Documents` and LIBSVM files: the topic that is the positive
        class; None: each document has one topic, its class.
    time
        The column of numbers or dates by which rows are ordered; it is no feature then. The sort
        is stable. None: keep the order.
    rows
        Number of examples to read; None: all.
    drop
        Columns of data frames and files that are no features, such as an id.
    name
        Name of the stream; None: the file's or the data set's class.

    Raises
    ------
    ParameterError
        No such column, a target of fractions, or a source that holds no examples.
    DataError
        A file that cannot be read.
    MissingExtraError
        Neither pandas nor polars is installed.

    Warns
    -----
    RuntimeWarning
        A column is dropped: dates, texts that differ from row to row, or the index of a data
        frame. Rows without a label are dropped. A column counts the rows or equals the label.
        `Stream.notes` has these, too.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from drift.streams import read_stream
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "sales.csv")
    ...     _ = path.write_text("day,shop,price,sold\n2,north,9.5,yes\n1,south,,no\n")
    ...     stream = read_stream(path, "sold", time="day")
    >>> list(stream)
    [({'shop': 'south'}, 'no'), ({'shop': 'north', 'price': 9.5}, 'yes')]
    """
    if isinstance(source, Stream):
        stream = source
    elif isinstance(source, str | PathLike):
        stream = _read_file(Path(source), target, time, drop)
    elif isinstance(source, Documents):
        stream = _of_documents(source, target)
    elif (frame := _frame(source)) is not None:
        # Columns may have numbers for names.
        target, time = (None if one is None else str(one) for one in (target, time))
        stream = _of_columns(_columns(frame), target, time, drop, type(source).__name__)
    else:
        stream = _of_pairs(source, rows)
    for note in () if stream is source else stream.notes:
        warnings.warn(f"{stream.name}: {note}", RuntimeWarning, stacklevel=2)
    stream = stream.head(rows)
    return stream if name is None else replace(stream, name=name)


def _frame(source: Any) -> nw.DataFrame[Any] | None:
    """Return a narwhals data frame; None if the source is no data frame."""
    try:
        frame: nw.DataFrame[Any] = nw.from_native(source, eager_only=True)
    except TypeError:
        return None
    except DuplicateError as error:
        raise ParameterError(f"{one_line(str(error))}: rename all but one") from None
    return frame


def _of_pairs(source: Any, rows: int | None) -> Stream:
    try:
        return Stream.of(source, rows=rows)
    except TypeError:
        raise ParameterError(
            f"{type(source).__name__} has no examples: give pairs of features and label, a data "
            "frame or a file"
        ) from None


def _of_documents(documents: Documents, target: str | None) -> Stream:
    if target is not None:
        labels = documents.has(target).tolist()
        return Stream(list(zip(documents.features(), labels, strict=True)), documents.name)
    if not (documents.topics.sum(axis=1) == 1).all():
        topics = ", ".join(documents.most_frequent(4))
        raise ParameterError(
            f"{documents.name} has documents with no topic or several, which are no classes: name "
            f"one topic as the target, such as {topics}"
        )
    labels = [documents.topic_names[i] for i in documents.topics.argmax(axis=1)]
    return Stream(list(zip(documents.features(), labels, strict=True)), documents.name)


def _read_file(path: Path, target: str | None, time: str | None, drop: Collection[str]) -> Stream:
    suffixes = [suffix for suffix in path.suffixes if suffix not in _COMPRESSED]
    suffix = suffixes[-1].lower() if suffixes else ""
    name = path.name.partition(".")[0]
    if suffix in {".svm", ".libsvm", ".svmlight"}:
        return _of_documents(read_libsvm(path), target)
    if suffix in {".jsonl", ".ndjson"}:
        return _of_columns(_read_lines(path, target, time), target or "label", time, drop, name)
    if suffix not in _READERS:
        suffixes = [*_READERS, ".jsonl", ".ndjson", ".svm", ".libsvm", ".svmlight"]
        raise ParameterError(
            f"{path}: the suffix does not tell the format: use one of {', '.join(suffixes)}"
        )
    if not path.is_file():
        missing = "it is a folder" if path.is_dir() else "there is no such file"
        raise DataError(path, None, f"cannot be read ({missing}): check the path")
    try:
        columns = _READERS[suffix](path)
    except UnicodeDecodeError as error:
        raise DataError(path, None, f"is not in UTF-8: save it in that ({error})") from error
    except _UNREADABLE as error:
        problem = f"is not a valid {suffix[1:]} file: {one_line(str(error))}"
        raise DataError(path, None, problem) from error
    return _of_columns(columns, target, time, drop, name)


def _backend() -> Any:
    for library in ("pandas", "polars"):
        if find_spec(library) is not None:
            return library
    raise MissingExtraError("pandas", "compare")


def _read_csv(path: Path, separator: str = "") -> _Columns:
    if not separator:
        with _COMPRESSED.get(path.suffix, Path.open)(path, mode="rb") as file:
            header, *lines = [*islice(file, _LINES)] or [b""]
        separator = ";" if b";" in header and b"," not in header else ","
    library = _backend()
    options: dict[str, Any] = {}
    if separator == ";" and any(map(_COMMAS.search, lines)):
        # Spreadsheets write this in locales with a decimal comma.
        options = {"decimal": ","} if library == "pandas" else {"decimal_comma": True}
    return _columns(nw.read_csv(str(path), backend=library, separator=separator, **options))


def _read_parquet(path: Path) -> _Columns:
    return _columns(nw.read_parquet(str(path), backend=_backend()))


def _read_arff(path: Path) -> _Columns:
    _, text = read_text(path)
    data, meta = arff.loadarff(StringIO(text.decode()))
    columns = {name: data[name].tolist() for name in meta.names()}
    return {name: [_arff_value(value) for value in column] for name, column in columns.items()}


def _arff_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return None if value == b"?" else value.decode()
    return value


_READERS: dict[str, Callable[[Path], _Columns]] = {
    ".csv": _read_csv,
    ".tsv": lambda path: _read_csv(path, "\t"),
    ".parquet": _read_parquet,
    ".arff": _read_arff,
}


def _columns(frame: nw.DataFrame[Any]) -> _Columns:
    return {str(name): frame.get_column(name).to_list() for name in frame.columns}


def _read_lines(path: Path, target: str | None, time: str | None) -> _Columns:
    """Messages of a topic, or flat objects, whose target is one of the fields."""
    _, text = read_bytes(path)
    rows = []
    for number, line in enumerate(text.removeprefix(codecs.BOM_UTF8).splitlines(), 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
            if isinstance(one.get("features"), dict):
                # The codec's other fields are no features; the label is renamed to the target.
                label = one.get("label")
                when = {time: one.get(time)} if time is not None and time in one else {}
                one = {**one["features"], **when, target or "label": label}
        except (ValueError, AttributeError):
            raise DataError(path, number, "is no JSON object: delete the line") from None
        rows.append(one)
    target = target or "label"
    if rows and all(row.get(target) is None for row in rows):
        raise DataError(path, None, f"no line has the label {target!r}: name another target")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _of_columns(
    columns: _Columns, target: str | None, time: str | None, drop: Collection[str], name: str
) -> Stream:
    for option, column in (("target", target), ("time", time), *(("drop", one) for one in drop)):
        if column is None and option == "target":
            names = ", ".join(columns)
            raise ParameterError(f"{name}: name the target, one of {names}{_headless(columns)}")
        if column is not None and column not in columns:
            near = suggest(column, columns)
            raise ParameterError(f"{name} has no column {column!r}: {near}{_headless(columns)}")
    target = str(target)
    columns, notes = _labelled(columns, target, name)
    labels = _labels(columns[target], f"{name}: {target}")
    order = list(range(len(labels)))
    if time is not None:
        moments = _moments(columns[time], f"{name}: {time}")
        order.sort(key=moments.__getitem__)
    features = {}
    for column in (one for one in columns if one not in {target, time, *drop}):
        values = [None if is_missing(value) else value for value in columns[column]]
        if problem := _problem_of(values, nameless=column in _NAMELESS):
            notes.append(f"left out: {column!r} {problem}")
            continue
        features[column] = _as_texts(values)
        if leak := _leak(values, labels):
            notes.append(f"{column!r} {leak}: drop it if a model would not have it in time")
    if not features:
        why = f" ({'; '.join(notes)})" if notes else ""
        raise ParameterError(f"{name}: no column is a feature for {target}: add one{why}")
    examples = [
        ({column: values[i] for column, values in features.items() if values[i] is not None}, y)
        for i, y in zip(order, map(labels.__getitem__, order), strict=True)
    ]
    return Stream(examples, name, notes=tuple(notes))


def _labelled(columns: _Columns, target: str, name: str) -> tuple[_Columns, list[str]]:
    """Rows that have a label, and a note on those that have none."""
    total = len(columns[target])
    labelled = [i for i, label in enumerate(columns[target]) if not is_missing(label)]
    if len(labelled) == total:
        return columns, []
    if not labelled:
        raise ParameterError(f"{name}: no row has a label in {target}: name another target")
    rows = {column: [values[i] for i in labelled] for column, values in columns.items()}
    return rows, [
        f"left out: {total - len(labelled):,} of {total:,} rows, without a label in {target!r}"
    ]


def _as_texts(values: list[Any]) -> list[Any]:
    """Values as they are if all are numbers, else as texts."""
    if all(value is None or isinstance(value, bool | int | float) for value in values):
        return values
    return [None if value is None else str(value) for value in values]


def _headless(columns: _Columns) -> str:
    """Advice if names are numbers, since the first row may have been read as the header."""
    if not any(re.fullmatch(r"-?\d+(\.\d+)*", name) for name in columns):
        return ""
    return "; if these are values, put a line with the names of the columns before them"


def _labels(values: list[Any], where: str) -> list[Any]:
    for i, value in enumerate(values):
        if problem := problem_of(value):
            raise ParameterError(f"{where}: row {i} has {problem}")
    # Some libraries read a column of integers as floats.
    return [int(value) if isinstance(value, float) else value for value in values]


def _moments(values: list[Any], where: str) -> list[Any]:
    if any(is_missing(value) for value in values):
        raise ParameterError(f"{where} is missing in row {[*map(is_missing, values)].index(True)}")
    if isinstance(values[0], str):
        try:
            return [dt.datetime.fromisoformat(value) for value in values]
        except (ValueError, TypeError):
            raise ParameterError(
                f"{where} orders by numbers, dates or texts such as 2026-01-31 13:45, "
                f"not {values[0]!r}"
            ) from None
    return values


def _problem_of(values: list[Any], *, nameless: bool) -> str:
    """Why a column is no feature; empty: it is one."""
    present = [value for value in values if value is not None]
    kinds = set(map(type, present))
    if any(issubclass(kind, dt.date | dt.time | dt.timedelta) for kind in kinds):
        return _TIMES
    if any(hasattr(kind, "__len__") and not issubclass(kind, str | bytes) for kind in kinds):
        return "has values of several parts: make a column of each part"
    if nameless and _counts(values):
        return "has no name and counts the rows: name it to have it as a feature"
    if all(issubclass(kind, bool | int | float) for kind in kinds):
        return ""
    return _problem_of_texts([str(value) for value in present])


def _problem_of_texts(texts: list[str]) -> str:
    different = len(set(texts))
    if are_categories(different, len(texts)):
        return ""
    with suppress(ValueError):
        dt.datetime.fromisoformat(texts[0])
        return _TIMES
    return f"has {different:,} different texts in {counted(len(texts), 'row')}, no categories"


def _counts(values: list[Any]) -> bool:
    """Whether integers rise from row to row, or fall."""
    if len(values) < 2 or not all(type(value) is int for value in values):
        return False
    steps = {later > value for value, later in pairwise(values) if later != value}
    return len(steps) == 1 and len(set(values)) == len(values)


def _leak(values: list[Any], labels: list[Any]) -> str:
    """How a column leaks the label or the row number; empty: it does not, or too few rows."""
    if len(values) < _FEW:
        return ""
    if _counts(values):
        return "counts up or down, as an id does"
    pairs = set(zip(values, labels, strict=True))
    if len(pairs) == len(set(values)) == len(set(labels)) > 1:
        return "equals the label, value by value"
    return ""
