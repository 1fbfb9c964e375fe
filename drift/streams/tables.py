"""Streams from data frames and files.

| what | read by |
|---|---|
| ``.csv``, ``.tsv``, ``.txt`` and other separated text | pyarrow |
| ``.parquet`` | pyarrow |
| ``.jsonl``, ``.ndjson``, ``.json`` | `json`, as messages of a Kafka topic or flat |
| ``.arff`` | `drift.streams.arff` |
| ``.svm``, ``.libsvm``, ``.svmlight`` | `drift.streams.read_libsvm` |
| data frames | narwhals |

All may be compressed (``.gz``, ``.xz``, ``.bz2``, ``.zip``). What the columns are is decided in one
place, `drift.streams.columns`, whatever they came from.
"""

from __future__ import annotations

import codecs
import math
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from drift._checks import check_integer, counted
from drift._values import is_missing
from drift.errors import DataError, ParameterError
from drift.streams._files import COMPRESSED, open_bytes
from drift.streams.arff import ArffSource
from drift.streams.documents import Documents
from drift.streams.frames import ParquetSource, frame_source
from drift.streams.json_rows import JsonSource
from drift.streams.labels import classes_of, doubts
from drift.streams.libsvm import read_libsvm
from drift.streams.notes import named
from drift.streams.reading import Roles, read_table
from drift.streams.separated import TextSource
from drift.streams.stream import Stream
from drift.streams.texts import is_missing_text, plain_number

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Collection, Hashable, Iterator

    from drift.streams.source import Source

__all__ = ["read_stream"]

_LIBSVM = {".svm", ".libsvm", ".svmlight"}
_JSON = {".jsonl", ".ndjson", ".json"}
_TEXT = {".csv", ".tsv", ".tab", ".txt", ".dat", ".data"}
#: Examples of a data set that are looked at for numbers that are texts.
_TRIED = 1000
#: Formats that are refused, and what to do.
_OTHERS = {
    ".xlsx": "is a workbook: save the sheet as CSV UTF-8",
    ".xls": "is a workbook: save the sheet as CSV UTF-8",
    ".ods": "is a workbook: save the sheet as CSV",
    ".feather": "is a Feather file: read it as a data frame, or save it as Parquet",
    ".pkl": "is a pickle: read it as a data frame, or save it as Parquet",
    ".zst": "is compressed by zstd: decompress it",
    **dict.fromkeys((".tar", ".tgz", ".7z", ".rar"), "is an archive: unpack it"),
}


#: The same by their first bytes, in lower case.
_MARKS = {
    b"pk\x03\x04": "is a zip file or a workbook: let its name end in .zip, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "is a workbook: save the sheet as CSV UTF-8",
    b"\x1f\x8b": "is compressed: let its name end in .gz, or decompress it",
    b"bzh91ay": "is compressed: let its name end in .bz2, or decompress it",
    b"\xfd7zxz": "is compressed: let its name end in .xz, or decompress it",
    b"(\xb5/\xfd": "is compressed by zstd: decompress it",
    b"sqlite format 3": "is a database of SQLite: export the table as CSV",
    b"arrow1\0\0": "is an Arrow or Feather file: read it as a data frame, or save it as Parquet",
    b"<!doctype html": "is HTML, a page of the web: fetch the file itself",
    b"<html": "is HTML, a page of the web: fetch the file itself",
}
#: Why a source cannot use something that was given.
_IS_READ, _NO_COLUMNS = "was read already", "has no columns (make a data frame of it)"
_NO_TEXT, _NO_SEPARATOR = "is no text", "is no separated text"


def read_stream(  # noqa: PLR0913 - how a source is read, by keyword
    source: Any,
    target: str | None = None,
    *,
    time: str | None = None,
    moment: str | None = None,
    delay: str | None = None,
    rows: int | None = None,
    drop: Collection[str] | str = (),
    calendar: Collection[str] | str = (),
    name: str | None = None,
    encoding: str | None = None,
    separator: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Stream:
    r"""Read labelled examples from a file, data frame or data set.

    A column of a file or data frame is numbers, categories or times, decided once for all rows that
    are read. Numbers are floats, bools 0 and 1. Categories are texts: `compare` encodes them for
    each model; in a loop of your own, put an encoder before a model that needs numbers. Missing
    values are omitted.

    Parameters
    ----------
    source
        A data frame of a library that narwhals supports; a path to a CSV, Parquet, ARFF or LIBSVM
        file or to JSON lines, as in a Kafka topic, or ``"-"`` for the standard input; `Documents`;
        a River data set or other pairs of features and label; or a `Stream`.
    target
        The column of labels. Of `Documents` and LIBSVM files: the topic that is the positive
        class; None: each document has one topic, its class.
    time
        The column of numbers or times by which rows are ordered; it is no feature then. The sort
        is stable. None: keep the order.
    moment, delay
        The column of when a row comes, in times or numbers, and that of when its label does: times,
        or how long after the row, in seconds beside a moment, else in rows. They are no features;
        `Stream.moments` and `Stream.delays` have them. Milliseconds since 1970 become seconds.
    rows
        Number of examples to read, at least 1, the first by `moment` or `time`; None: all.
    drop
        Columns of data frames and files that are no features, such as an id; or one.
    calendar
        Columns of times whose hour and weekday (0, Monday) are features; or one.
    name
        Name of the stream; None: the file's or the data set's class.
    encoding
        Of a file of text; None: UTF-8, or UTF-16 with a byte order mark.
    separator
        Of cells in a file of text; None: comma, semicolon, tab or bar, as the file has it.
    progress
        Is called with the number of rows that were read so far.

    Raises
    ------
    ParameterError
        No such column, a target of fractions, a source that holds no examples, or one that cannot
        use what is given: pairs and a `Stream` have no target and no columns to name, LIBSVM files
        and `Documents` only a target; `encoding` and `separator` are for text.
    DataError
        A file that cannot be read, or a row that has more or fewer cells than there are names.
    MissingExtraError
        pyarrow is not installed, and the file needs it.

    Warns
    -----
    RuntimeWarning
        For each thing that was read otherwise than it stands, counted as missing or left out: it is
        quoted. Also if a column counts the rows or equals the label. `Stream.notes` has these, too.

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
    rows = None if rows is None else check_integer("rows", rows)
    clocks = {
        role: str(one)
        for role, one in {"time": time, "moment": moment, "delay": delay}.items()
        if one is not None
    }
    of_columns: dict[str, Any] = {**clocks, "drop": _names(drop), "calendar": _names(calendar)}
    of_text = {"encoding": encoding, "separator": separator}

    def table(made: Source) -> Stream:
        if target is None:
            names = ", ".join(name or "''" for name in made.names)
            raise ParameterError(f"{made.name}: name the target, one of {names}{made.hint}")
        roles = Roles(str(target), clocks, of_columns["drop"], of_columns["calendar"])
        read = read_table(made, roles, rows, progress or (lambda _: None))
        return Stream(
            read.table, made.name, notes=read.notes, moments=read.moments, delays=read.delays
        )

    if isinstance(source, Stream):
        _refuse(source.name, _IS_READ, {"target": target} | of_columns | of_text)
        stream = source
    elif isinstance(source, str | PathLike):
        file = _File(source)
        with file.unchanged():
            if file.kind in _LIBSVM:
                _refuse(file.path, _NO_COLUMNS, of_columns | of_text)
                stream = _of_documents(read_libsvm(file.path), target)
            elif file.kind in _JSON:
                _refuse(file.path, _NO_SEPARATOR, {"separator": separator})
                target = target or "label"
                first = rows if time is None and moment is None else None
                stream = table(file.json(target, clocks.values(), first, encoding))
            else:
                stream = table(file.source(encoding, separator))
    elif isinstance(source, Documents):
        _refuse(source.name, _NO_COLUMNS, of_columns | of_text)
        stream = _of_documents(source, target)
    elif (frame := frame_source(source)) is not None:
        _refuse(frame.name, _NO_TEXT, of_text)
        stream = table(frame)
    else:
        stream = _of_pairs(source, rows)
        _refuse(stream.name, _NO_COLUMNS, {"target": target} | of_columns | of_text)
    for note in () if stream is source else stream.notes:
        warnings.warn(f"{stream.name}: {note}", RuntimeWarning, stacklevel=2)
    stream = stream.head(rows)
    return stream if name is None else replace(stream, name=name)


def has_columns(source: Any) -> bool:
    """Whether a source is a file or a data frame, so that columns can be named."""
    return isinstance(source, str | PathLike) or frame_source(source) is not None


def _names(given: Collection[str] | str) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(dict.fromkeys(map(str, given)))


def _refuse(name: object, why: str, given: Mapping[str, Any]) -> None:
    """Refuse what is given, as it cannot be used: to drop it may leave the label in the data."""
    names = [one for one, value in given.items() if value not in {None, ()}]
    if names:
        raise ParameterError(f"{name} {why}, so it cannot use {', '.join(names)}: leave that out")


def _of_pairs(source: Any, rows: int | None) -> Stream:
    kind = type(source).__name__
    if hasattr(source, "collect"):
        raise ParameterError(f"{kind} is no data frame yet: collect() it")
    if isinstance(source, Mapping) or hasattr(source, "__array__"):
        raise ParameterError(f"{kind} has no names of columns: make a data frame of it")
    try:
        stream = Stream.of(source, rows=rows)
    except TypeError:
        raise ParameterError(
            f"{kind} has no examples: give pairs of features and label, a data frame or a file"
        ) from None
    notes = _doubts(stream)
    if names := _numbers_as_texts(stream):
        notes.append(
            f"texts of {named(names)} are numbers, and count as categories: convert them if they "
            "are amounts, as converters= of River's iter_csv does"
        )
    gone = [names for x, _ in stream if (names := [n for n, v in x.items() if _is_no_value(v)])]
    if gone:
        features = named(list(dict.fromkeys(chain(*gone))))
        notes.append(
            f"{len(gone):,} of {counted(len(stream), 'row')} have missing or infinite values, of "
            f"{features}: leave these features out of such rows, as most models cannot learn them"
        )
    return replace(stream, notes=tuple(notes))


def _numbers_as_texts(stream: Stream) -> list[Hashable]:
    """Return the features of texts that are all numbers, and likelier amounts than codes.

    They are where one has a fraction or a sign, or nothing but texts was read, as by `csv`.
    """
    likelier: dict[Hashable, bool] = {}
    words: set[Hashable] = set()
    numbers = False
    for x, _ in islice(stream, _TRIED):
        for name, value in x.items():
            if not isinstance(value, str):
                numbers = True
            elif plain_number(value) is not None:
                likelier[name] = likelier.get(name, False) or not value.strip().isdecimal()
            elif not is_missing_text(value):
                words.add(name)
    return [name for name, sure in likelier.items() if name not in words and (sure or not numbers)]


def _doubts(stream: Stream) -> list[str]:
    number = {label: k for k, label in enumerate(stream.classes)}
    return doubts(list(number), np.array([number[label] for label in stream.labels]))


def _is_no_value(value: Any) -> bool:
    return is_missing(value) or (isinstance(value, float) and math.isinf(value))


def _of_documents(documents: Documents, target: str | None) -> Stream:
    if target is not None:
        labels = documents.has(target).tolist()
        examples = list(zip(documents.features(), labels, strict=True))
        return Stream(examples, documents.name, notes=documents.notes)
    columns = documents.classes()
    classes, notes = classes_of(documents.topic_names)
    labels = [classes[i] for i in columns]
    examples = list(zip(documents.features(), labels, strict=True))
    stream = Stream(examples, documents.name)
    return replace(stream, notes=(*documents.notes, *notes, *_doubts(stream)))


# --- files ---------------------------------------------------------------------------------------


class _File:
    """A file and its format, by its suffix or else by its first bytes."""

    def __init__(self, given: str | PathLike[str]) -> None:
        self.path = Path(given)
        if "://" in str(given):
            raise ParameterError(f"{given} is no file: fetch it first")
        self.name = self.path.name.partition(".")[0]
        self.opened: Callable[[], io.BufferedIOBase] = lambda: open_bytes(self.path)
        if str(given) == "-":
            self.name, self.opened = "stdin", _copy_of(sys.stdin.buffer)
        elif self.path.is_fifo():  # as of a shell's <(...): it can be read once
            with self.path.open("rb") as pipe:
                self.name, self.opened = "stdin", _copy_of(pipe)
        self.kind = self._kind()

    def _kind(self) -> str:
        """Return the format, as the suffix that it should have."""
        suffixes = [one.lower() for one in self.path.suffixes]
        while suffixes and suffixes[-1] in COMPRESSED:
            suffixes.pop()
        suffix = suffixes[-1] if suffixes else ""
        if suffix in _OTHERS:
            raise DataError(self.path, None, _OTHERS[suffix])
        known = {".parquet", ".arff", *_LIBSVM, *_JSON}
        if suffix and suffix not in known | _TEXT:
            raise ParameterError(
                f"{self.path}: the suffix {suffix} does not tell the format: if it is one of these,"
                f" use its suffix, {', '.join(sorted(known | _TEXT))}; else read it as a data frame"
            )
        if self.path.is_dir():
            problem = "is a folder: name one file in it, or read them as a data frame"
            raise DataError(self.path, None, problem)
        with self.opened() as file:
            start = file.read(1 << 12)
        if not start:
            raise DataError(self.path, None, "is empty: give a file with names and rows")
        for mark, problem in _MARKS.items():
            if start.lower().startswith(mark):
                raise DataError(self.path, None, problem)
        return suffix if suffix in known else _by_content(start) or suffix or ".csv"

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse a file that was written to meanwhile: it is read more than once."""
        before = self._written()
        try:
            yield
        finally:
            if self._written() != before:
                problem = "was written to while it was read: give a copy of it"
                raise DataError(self.path, None, problem)

    def _written(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except OSError:  # the standard input, or the file is gone
            return None
        if self.path.is_fifo():
            return None
        return status.st_size, status.st_mtime_ns

    def json(
        self, target: str, clocks: Collection[str], rows: int | None, encoding: str | None
    ) -> Source:
        about = self.opened, self.path, self.name
        return JsonSource(*about, target=target, times=clocks, rows=rows, encoding=encoding)

    def source(self, encoding: str | None, separator: str | None) -> Source:
        about = self.opened, self.path, self.name
        if self.kind == ".parquet":
            _refuse(self.path, _NO_TEXT, {"encoding": encoding, "separator": separator})
            if self.path.suffix.lower() in COMPRESSED:
                problem = "is a compressed Parquet file: decompress it, as Parquet is by itself"
                raise DataError(self.path, None, problem)
            return ParquetSource(*about)
        if self.kind == ".arff":
            _refuse(self.path, _NO_SEPARATOR, {"separator": separator})
            return ArffSource(*about, encoding)
        tabs = self.kind in {".tsv", ".tab"}
        return TextSource(*about, encoding=encoding, separator=separator, tabs=tabs)


def _copy_of(pipe: BinaryIO) -> Callable[[], io.BufferedIOBase]:
    """Return what opens a copy of a pipe's content, as often as wanted."""
    copy = tempfile.NamedTemporaryFile()  # noqa: SIM115 - it lives as long as what is returned
    shutil.copyfileobj(pipe, copy)
    copy.flush()
    return lambda: open(copy.name, "rb")  # noqa: PTH123


def _by_content(start: bytes) -> str:
    """Tell a format that has a mark from separated text."""
    if start.startswith(b"PAR1"):
        return ".parquet"
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if text[:1] in {b"{", b"["}:
        return ".jsonl"
    return ".arff" if re.match(rb"(?:%[^\n]*\n\s*)*@relation\b", text, re.IGNORECASE) else ""
