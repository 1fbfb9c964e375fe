"""Streams from what holds rows and columns: data frames and files of them, read by libraries.

| suffix | read by |
|---|---|
| ``.csv`` with commas or semicolons, ``.tsv``, also compressed | pandas, else polars |
| ``.parquet`` | pandas with pyarrow, else polars |
| ``.arff`` | `scipy.io.arff` |
| ``.svm``, ``.libsvm``, ``.svmlight``, also compressed | `drift.streams.read_libsvm` |
| ``.jsonl``, ``.ndjson``, also compressed | `json`, as messages of a Kafka topic or flat |

More than 300 lines, as a quarter of them say what `read_stream` takes.
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
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
from narwhals.exceptions import DuplicateError

from drift._checks import suggest
from drift.errors import DataError, MissingExtraError, ParameterError, one_line
from drift.streams._files import read_bytes, read_text
from drift.streams.documents import Documents
from drift.streams.libsvm import read_libsvm
from drift.streams.stream import Stream, is_missing, problem_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["read_stream"]

#: A column of more texts than so many, most of them in one row only, names rows and no categories.
_MANY = 100
_COMPRESSED: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
}
#: What readers raise of a file that is no such file, or is compressed and damaged.
_UNREADABLE = (
    *(ValueError, NotImplementedError, OSError, StopIteration),
    *(EOFError, zlib.error, lzma.LZMAError),
)
#: A number with a decimal comma between semicolons, and in how many lines one is looked for.
_COMMAS = re.compile(rb"(^|;) *-?\d*,\d+ *(;|\r?\n|$)")
_LINES = 1_000
_TIMES = "has times, which are no numbers: order by it (time=, --time), or make numbers of it"
#: What libraries call a first column without a name, as data frames are written with their index.
_NAMELESS = {"", "Unnamed: 0"}
_Columns = dict[str, list[Any]]


def read_stream(  # noqa: PLR0913 - how a source is read, by keyword
    source: Any,
    target: str | None = None,
    *,
    time: str | None = None,
    rows: int | None = None,
    encode: bool | None = None,
    name: str | None = None,
) -> Stream:
    r"""Read labelled examples from whatever has them.

    Numbers and bools are features as they are, what is missing is absent, and texts are categories:
    River's `OneHotEncoder` makes a feature of each, 1 where it is there and absent elsewhere.

    Parameters
    ----------
    source
        A data frame of a library that narwhals knows; a path to a CSV, Parquet, ARFF or LIBSVM file
        or to JSON lines, as a Kafka topic has them; `Documents`; a data set of River's or other
        pairs of features and label; or a `Stream`.
    target
        The column of the labels. Of `Documents` and LIBSVM files the topic that is the positive
        class; None: each has one topic, which is its class.
    time
        The column by which rows are ordered, numbers or dates, which is no feature then; None: as
        they come. Rows of the same time stay in their order.
    rows
        Take the first only.
    encode
        Whether texts become features of their categories. None: those of data frames and files do,
        and what comes as pairs stays as it is.
    name
        What to call it; None: as the file or the class of the data set.

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
        A column is left out: dates, which are no numbers, texts that differ from row to row, or the
        index of a data frame. Or lines of JSON are, which have no label.

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
    [({'shop_south': 1}, 'no'), ({'price': 9.5, 'shop_north': 1}, 'yes')]
    """
    if isinstance(source, Stream):
        found = source
    elif isinstance(source, str | PathLike):
        found = _read_file(Path(source), target, time)
        encode = encode is not False
    elif isinstance(source, Documents):
        found = _of_documents(source, target)
    elif (frame := _frame(source)) is not None:
        # Columns may have numbers for names.
        target, time = (None if one is None else str(one) for one in (target, time))
        found = _of_columns(_columns(frame), target, time, type(source).__name__)
        encode = encode is not False
    else:
        found = _of_pairs(source, rows)
    examples = found.head(rows)
    if encode:
        examples = _encoded(examples)
    return examples if name is None else replace(examples, name=name)


def _frame(source: Any) -> nw.DataFrame[Any] | None:
    """Return a data frame of any library; None for what is none."""
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
            f"{type(source).__name__} holds no examples: give pairs of features and label, a data "
            "frame or a file"
        ) from None


def _of_documents(documents: Documents, target: str | None) -> Stream:
    if target is not None:
        labels = documents.has(target).tolist()
        return Stream(list(zip(documents.features(), labels, strict=True)), documents.name)
    if not (documents.topics.sum(axis=1) == 1).all():
        known = ", ".join(documents.most_frequent(4))
        raise ParameterError(
            f"{documents.name} has documents with no topic or several, which are no classes: name "
            f"one topic as the target, such as {known}"
        )
    labels = [documents.topic_names[i] for i in documents.topics.argmax(axis=1)]
    return Stream(list(zip(documents.features(), labels, strict=True)), documents.name)


def _read_file(path: Path, target: str | None, time: str | None) -> Stream:
    suffixes = [suffix for suffix in path.suffixes if suffix not in _COMPRESSED]
    suffix = suffixes[-1].lower() if suffixes else ""
    name = path.name.partition(".")[0]
    if suffix in {".svm", ".libsvm", ".svmlight"}:
        return _of_documents(read_libsvm(path), target)
    if suffix in {".jsonl", ".ndjson"}:
        return _of_lines(path, target, time, name)
    if suffix not in _READERS:
        known = ", ".join([*_READERS, ".jsonl", ".ndjson", ".svm", ".libsvm", ".svmlight"])
        raise ParameterError(
            f"{path}: the suffix does not say what the file holds: use one of {known}"
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
    return _of_columns(columns, target, time, name)


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
        # Spreadsheets write so wherever the comma is the decimal one.
        options = {"decimal": ","} if library == "pandas" else {"decimal_comma": True}
    return _columns(nw.read_csv(str(path), backend=library, separator=separator, **options))


def _read_parquet(path: Path) -> _Columns:
    return _columns(nw.read_parquet(str(path), backend=_backend()))


def _read_arff(path: Path) -> _Columns:
    from scipy.io import arff  # noqa: PLC0415 - scipy.io takes a while to import

    _, text = read_text(path)
    data, about = arff.loadarff(StringIO(text.decode()))
    columns = {name: data[name].tolist() for name in about.names()}
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


def _of_lines(path: Path, target: str | None, time: str | None, name: str) -> Stream:
    """Messages of a topic, or flat objects, whose target is one of the fields."""
    _, text = read_bytes(path)
    rows = []
    for number, line in enumerate(text.removeprefix(codecs.BOM_UTF8).splitlines(), 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
            if isinstance(one.get("features"), dict):
                # The codec's other fields are no features; its label has the name of the target.
                label = one.get("label")
                when = {time: one.get(time)} if time is not None and time in one else {}
                one = {**one["features"], **when, target or "label": label}
        except (ValueError, AttributeError):
            raise DataError(path, number, "is no JSON object: delete the line") from None
        rows.append(one)
    target = target or "label"
    labelled = [row for row in rows if row.get(target) is not None]
    if rows and not labelled:
        raise DataError(path, None, f"no line has the label {target!r}: name another target")
    if missing := len(rows) - len(labelled):
        which = f"{missing:,} of the {len(rows):,} lines of {name}"
        problem = f"left out: {which}, which have no label {target!r}"
        warnings.warn(problem, RuntimeWarning, stacklevel=4)
    names = dict.fromkeys(name for row in labelled for name in row)
    columns = {name: [row.get(name) for row in labelled] for name in names}
    return _of_columns(columns, target, time, name)


def _of_columns(columns: _Columns, target: str | None, time: str | None, name: str) -> Stream:
    for option, column in (("target", target), ("time", time)):
        if column is None and option == "target":
            known = ", ".join(columns)
            raise ParameterError(f"{name}: name the target, one of {known}{_headless(columns)}")
        if column is not None and column not in columns:
            near = suggest(column, columns)
            raise ParameterError(f"{name} has no column {column!r}: {near}{_headless(columns)}")
    order = list(range(len(columns[str(target)])))
    if time is not None:
        moments = _moments(columns[time], f"{name}: {time}")
        order.sort(key=moments.__getitem__)
    labels = _labels(columns[str(target)], f"{name}: {target}")
    features = {
        column: _values(values, f"{name}: {column}", nameless=column in _NAMELESS)
        for column, values in columns.items()
        if column not in {target, time}
    }
    kept = [(column, values) for column, values in features.items() if values is not None]
    if not kept:
        raise ParameterError(f"{name}: no column is left to predict {target} by: add one")
    examples = [
        ({column: values[i] for column, values in kept if values[i] is not None}, labels[i])
        for i in order
    ]
    return Stream(examples, name)


def _headless(columns: _Columns) -> str:
    """What to say of names that are numbers, which may be the first row."""
    if not any(re.fullmatch(r"-?\d+(\.\d+)*", name) for name in columns):
        return ""
    return "; if these are values, put a line with the names of the columns before them"


def _labels(values: list[Any], where: str) -> list[Any]:
    for i, value in enumerate(values):
        if problem := problem_of(value):
            raise ParameterError(f"{where}: row {i} has {problem}")
    # A column of whole numbers is one of floats where a library reads it so.
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


def _values(values: list[Any], where: str, *, nameless: bool) -> list[Any] | None:
    """Return a column with None where it is missing; None for one that is left out."""
    found = [None if is_missing(value) else value for value in values]
    known = [value for value in found if value is not None]
    kinds = set(map(type, known))
    problem = ""
    if any(issubclass(kind, dt.date | dt.time | dt.timedelta) for kind in kinds):
        problem = _TIMES
    elif any(hasattr(kind, "__len__") and not issubclass(kind, str | bytes) for kind in kinds):
        problem = "has values of several parts: make a column of each part"
    elif nameless and _counts(values):
        problem = "has no name and counts the rows: name it to have it as a feature"
    elif all(issubclass(kind, bool | int | float) for kind in kinds):
        return found
    else:
        found = [None if value is None else str(value) for value in found]
        different = len(set(found))
        if different > max(_MANY, len(known) / 2):
            problem = f"has {different:,} different texts in {len(known):,} rows, no categories"
            with suppress(ValueError):
                dt.datetime.fromisoformat(found[0] or "")
                problem = _TIMES
    if problem:
        warnings.warn(f"left out: {where} {problem}", RuntimeWarning, stacklevel=5)
        return None
    return found


def _counts(values: list[Any]) -> bool:
    first = values[0] if values else None
    return isinstance(first, int) and values == list(range(first, first + len(values)))


def _encoded(stream: Stream) -> Stream:
    from river.preprocessing import OneHotEncoder  # noqa: PLC0415 - takes a second to import

    encoder: Any = OneHotEncoder(drop_zeros=True)
    examples = []
    for x, y in stream:
        texts = {name: value for name, value in x.items() if isinstance(value, str)}
        if texts:
            x = {name: value for name, value in x.items() if name not in texts}  # noqa: PLW2901
            x |= encoder.transform_one(texts)  # noqa: PLW2901
        examples.append((x, y))
    return replace(stream, examples=examples)
