"""Rows of files and data frames, block by block, as `drift.streams.reading` asks for them.

| what | read by |
|---|---|
| CSV, TSV and other separated text | pyarrow, in blocks |
| Parquet | pyarrow, in blocks |
| JSON lines, JSON | `json` |
| data frames | narwhals |

pyarrow gives cells of CSV as they are written, names the row that has too few or too many, and
reads blocks. So what a column is can be decided after all of its cells were seen.
"""

from __future__ import annotations

import base64
import codecs
import csv
import io
import json
import math
import re
from collections import Counter
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.dependencies import is_pyarrow_table
from narwhals.exceptions import DuplicateError

from drift._checks import counted
from drift.errors import DataError, MissingExtraError, ParameterError, one_line
from drift.streams._files import Blocks
from drift.streams.texts import plain_number, text_of, votes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Open = Callable[[], io.BufferedIOBase]

__all__ = [
    "EXACT",
    "ROWS",
    "FrameSource",
    "JsonSource",
    "ParquetSource",
    "Seconds",
    "Source",
    "TextSource",
    "frame_source",
    "is_fraction",
    "lines_of",
]

#: Rows of a block.
ROWS = 1 << 14
#: Beyond it floats lose digits of whole numbers.
EXACT = 1 << 53
#: Bytes that are read at a time.
_BYTES = 1 << 20
#: One row of a text may have so many bytes.
_LONGEST = 1 << 24
#: Rows that separators are looked for in.
_SNIFFED = 50
#: Encodings by their byte order marks; of UTF-32 one begins as one of UTF-16 does.
_MARKED = {
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
_SEPARATORS = (",", ";", "\t", "|")
#: Fields of a message that the consumer reads; see `drift.consumers.JsonCodec`.
_MESSAGE = {"features", "label", "id", "timestamp"}
_BEYOND_NUMPY = {nw.Decimal, nw.Int128, nw.UInt128}


class Seconds(NamedTuple):
    """Times as a library reads them, in seconds since 1970, and the zone that they are of."""

    values: NDArray[np.float64]
    zone: str | None = None


class Source:
    """Rows that can be read more than once.

    Parameters
    ----------
    name
        In results and errors.

    Attributes
    ----------
    names
        Of the columns.
    categories
        Columns that the source declares to be categories.
    commas
        Whether decimal commas are likely.
    voters
        How many columns of decimal commas tell that points of the other columns may stand between
        thousands. Where commas may have separated cells, one column may be of pairs such as "1,75".
    hint
        What to say, too, where a column is not there.
    notes
        On the source itself.
    """

    commas = False
    voters = 2
    hint = ""

    def __init__(self, name: str) -> None:
        self.name = name
        self.names: list[str] = []
        self.categories: Collection[str] = ()
        self.notes: list[str] = []

    def blocks(self, names: Sequence[str], spelled: Collection[str]) -> Iterator[list[Any]]:
        """Yield the cells of these columns, block by block.

        Parameters
        ----------
        names
            Of the columns.
        spelled
            Those whose texts are wanted as they are written, even if all are numbers.

        Yields
        ------
        list
            Of each column an array of numbers, with NaN for what is missing, `Seconds`, or a list
            of anything.
        """
        raise NotImplementedError


def _pyarrow(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError("pyarrow", "compare") from None


def frame_source(given: Any) -> FrameSource | None:
    """Return the source of a data frame; None: it is none.

    Raises
    ------
    ParameterError
        Two columns have one name.
    """
    name = type(given).__name__
    index = getattr(getattr(given, "index", None), "names", ())
    if any(one is not None for one in index):
        if twice := [one for one in index if one in given]:
            raise ParameterError(
                f"{name}: its index and a column are called {str(twice[0])!r}: rename one"
            )
        given = given.reset_index()  # of pandas: an index with a name is a column
    try:
        frame: nw.DataFrame[Any] = nw.from_native(_with_periods(given), eager_only=True)
    except TypeError:
        return None
    except DuplicateError as error:
        raise ParameterError(f"{one_line(str(error))}: rename all but one") from None
    source = FrameSource(frame, name)
    if index and type(given.index).__name__ != "RangeIndex":
        source.hint = "; its index has no name: with one it is a column (rename_axis('time'), say)"
        if given.index.nlevels > 1 or given.index.dtype.kind not in "iu":
            source.notes.append(
                "left out: the index, which has no name: with one it is a column "
                "(rename_axis('time'), say)"
            )
    return source


class FrameSource(Source):
    """A data frame of a library that narwhals supports."""

    def __init__(self, frame: nw.DataFrame[Any], name: str) -> None:
        super().__init__(name)
        self._frame = frame
        self.names = [str(one) for one in frame.columns]
        self._column = dict(zip(self.names, frame.columns, strict=True))
        self.categories = _declared(frame)

    def blocks(self, names: Sequence[str], spelled: Collection[str]) -> Iterator[list[Any]]:
        """Yield cells; see `Source`."""
        for start in range(0, len(self._frame), ROWS):
            block = self._frame[start : start + ROWS]
            columns = {name: block.get_column(self._column[name]) for name in names}
            yield [_cells(columns[name], spelled=name in spelled) for name in names]


def _with_periods(table: Any) -> Any:
    """Return a table of pyarrow with the texts of pandas' periods, which it keeps as numbers."""
    if not is_pyarrow_table(table):
        return table
    for at, column in enumerate(table.schema):
        about = column.metadata or {}
        name = getattr(column.type, "extension_name", about.get(b"ARROW:extension:name"))
        if name not in {"pandas.period", b"pandas.period"}:
            continue
        freq = getattr(column.type, "freq", None)
        if freq is None:  # pandas was not there to read it
            freq = json.loads(about[b"ARROW:extension:metadata"])["freq"]
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise MissingExtraError("pandas", "compare") from None
        numbers = table.column(at).cast("int64")
        texts = pandas.PeriodIndex.from_ordinals(numbers.fill_null(0).to_numpy(), freq=freq)
        gone = numbers.is_null().to_pylist()
        cells = [None if is_gone else str(one) for one, is_gone in zip(texts, gone, strict=True)]
        table = table.set_column(at, column.name, [cells])
    return table


def _declared(frame: nw.DataFrame[Any]) -> set[str]:
    kinds = (nw.Categorical, nw.Enum)
    return {str(name) for name, kind in frame.schema.items() if isinstance(kind, kinds)}


def _cells(column: nw.Series[Any], *, spelled: bool) -> Any:
    kind = column.dtype
    if spelled:
        return _listed(column)
    if kind == nw.Date:
        return Seconds(_floats(column.cast(nw.Datetime("us")).dt.timestamp("us")) / 1e6)
    if kind == nw.Datetime:
        return Seconds(_floats(column.dt.timestamp("us")) / 1e6, getattr(kind, "time_zone", None))
    is_number = kind == nw.Boolean or (kind.is_numeric() and kind not in _BEYOND_NUMPY)
    if not is_number:
        return _listed(column)
    values = _floats(column)
    return column.to_list() if kind.is_integer() and _is_beyond(values) else values


def _listed(column: nw.Series[Any]) -> list[Any]:
    """Return cells as a list; bytes, as SciPy reads ARFF, are texts."""
    cells = column.to_list()
    if bytes in set(map(type, cells)):
        return [text_of(cell) if isinstance(cell, bytes) else cell for cell in cells]
    return cells


def _is_beyond(values: NDArray[np.float64]) -> bool:
    """Whether there are numbers so large that whole ones may have lost digits."""
    return bool((np.abs(values) >= EXACT).any())


def is_fraction(values: NDArray[np.float64]) -> bool:
    """Whether one of the numbers, none of them whole, is as no version is: 1.05 or -1.5."""
    return bool((values < np.floor(values) + 0.0995).any() or (values < 0).any())


def _floats(column: nw.Series[Any]) -> NDArray[np.float64]:
    """Return numbers as an array; NaN where there is none."""
    gone = column.is_null().to_numpy().astype(bool)
    values = np.full(len(column), np.nan)
    # Libraries have forms of their own for what is missing; all have the others as numbers.
    values[~gone] = column.drop_nulls().to_numpy().astype(np.float64)
    return values


class ParquetSource(Source):
    """A Parquet file."""

    def __init__(self, opened: Open, path: Path, name: str) -> None:
        super().__init__(name)
        self._path, self._opened = path, opened
        arrow = _pyarrow("pyarrow")
        with self._file() as file:
            schema = written = file.schema_arrow
            if stored := (file.metadata.metadata or {}).get(b"ARROW:schema"):
                # Parquet itself knows dictionaries of texts alone; this has those of numbers, too.
                written = arrow.ipc.read_schema(arrow.BufferReader(base64.b64decode(stored)))
        pandas = schema.pandas_metadata or {"index_columns": [], "columns": []}
        #: An index that counts, which pandas writes as its start and step alone.
        self._ranges = {
            str(one["name"]): one
            for one in pandas["index_columns"]
            if isinstance(one, dict) and one["name"] is not None
        }
        index = [*self._ranges, *(one for one in pandas["index_columns"] if isinstance(one, str))]
        self.names = [*index, *(one for one in schema.names if one not in index)]
        self._first = schema.names[:1]
        self.categories = {one.name for one in written if arrow.types.is_dictionary(one.type)} | {
            one["name"] for one in pandas["columns"] if one["pandas_type"] == "categorical"
        }

    @contextmanager
    def _file(self) -> Iterator[Any]:
        parquet = _pyarrow("pyarrow.parquet")
        try:
            with self._opened() as file:
                yield parquet.ParquetFile(file)
        except (OSError, ValueError) as error:
            problem = f"is not a valid parquet file: {one_line(str(error))}"
            raise DataError(self._path, None, problem) from error

    def blocks(self, names: Sequence[str], spelled: Collection[str]) -> Iterator[list[Any]]:
        """Yield cells; see `Source`."""
        arrow, start = _pyarrow("pyarrow"), 0
        stored = list(dict.fromkeys(name for name in names if name not in self._ranges))
        with self._file() as file:
            for batch in file.iter_batches(ROWS, columns=stored or self._first):
                read = _with_periods(arrow.Table.from_batches([batch]))
                frame = nw.from_native(read, eager_only=True)
                rows = start + np.arange(len(frame), dtype=np.float64)
                start += len(frame)
                yield [
                    self._ranges[name]["start"] + self._ranges[name]["step"] * rows
                    if name in self._ranges
                    else _cells(frame.get_column(name), spelled=name in spelled)
                    for name in names
                ]


# --- text ----------------------------------------------------------------------------------------


def decoded(opened: Open, path: Path, encoding: str | None) -> Iterator[str]:
    """Yield a text in blocks; of no encoding: UTF-8, or UTF-16 with a byte order mark."""
    with opened() as file:
        start = file.read(_BYTES)
        if encoding is None:
            marked = (name for name, marks in _MARKED.items() if start.startswith(marks))
            encoding = next(marked, "utf-8-sig")
            if b"\0" in start and encoding == "utf-8-sig":
                problem = "has bytes of zero, as UTF-16 has: name its encoding"
                raise DataError(path, None, f"{problem} (encoding=, --encoding), utf-16-le, say")
        try:
            decoder = codecs.getincrementaldecoder(encoding)()
        except LookupError:
            raise ParameterError(f"there is no encoding {encoding!r}: cp1252, say") from None
        lines = 1
        while True:
            try:
                text = decoder.decode(start, final=not start)
            except UnicodeDecodeError as error:
                line = lines + error.object[: error.start].count(b"\n")
                raise DataError(path, line, _of_another_encoding(error)) from None
            except UnicodeError as error:  # UTF-16 without its mark
                problem = f"cannot be read ({error}): name its encoding, utf-16-le, say"
                raise DataError(path, None, problem) from None
            yield text
            if not start:
                return
            lines += text.count("\n")
            start = file.read(_BYTES)


def lines_of(opened: Open, path: Path, encoding: str | None) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that are not blank, without blanks around, with their numbers."""
    before, rest = 0, ""
    for block in decoded(opened, path, encoding):
        *lines, rest = (rest + block).split("\n")
        for number, line in enumerate(map(str.strip, lines), before + 1):
            if line:
                yield number, line
        before += len(lines)
    if rest := rest.strip():
        yield before + 1, rest


def _of_another_encoding(error: UnicodeDecodeError) -> str:
    byte, tried = error.object[error.start], error.encoding.upper().removesuffix("-SIG")
    return (
        f"is not in {tried} (byte 0x{byte:02x}): name its encoding (encoding=, --encoding), "
        "cp1252, latin-1 or utf-16, say"
    )


# --- separated text ------------------------------------------------------------------------------


class TextSource(Source):
    """Rows of text, whose cells are separated by one character.

    Parameters
    ----------
    opened
        Opens the bytes.
    path
        For errors.
    name
        Of the stream.
    encoding
        Of the text; None: UTF-8, or UTF-16 with a byte order mark.
    separator
        Of cells; None: the one of comma, semicolon, tab and bar that gives all rows equally many.
    tabs
        Whether it is the tab, if there is one in the first line.
    """

    def __init__(  # noqa: PLR0913 - all that tells how a text is written
        self,
        opened: Open,
        path: Path,
        name: str,
        *,
        encoding: str | None,
        separator: str | None,
        tabs: bool,
    ) -> None:
        super().__init__(name)
        self._opened, self._path = opened, path
        self._arrow, self._csv = _pyarrow("pyarrow"), _pyarrow("pyarrow.csv")
        self._compute = _pyarrow("pyarrow.compute")
        self._encoding = encoding
        head = self._head()
        first, _, rest = head.partition("\n")
        own = re.fullmatch(r'\s*"?sep=(.)"?\s*', first, re.IGNORECASE)  # a spreadsheet's own line
        self._skips = own is not None
        if own:
            separator, head = separator or own[1], rest
        if separator == "\\t":  # as shells hand it on
            separator = "\t"
        if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
            raise ParameterError(f"separator must be one character, no quote, not {separator!r}")
        if separator is None:
            separator = "\t" if tabs and "\t" in head.partition("\n")[0] else _separator(head)
        self._separator = separator
        self.commas = self._separator == ";"
        self.voters = 2 if self._separator == "," else 1
        rows = _records(head, self._separator)
        if not rows:
            raise DataError(path, None, "is empty: give a file with a line of names and rows")
        #: Columns with a cell that may be several rows; whether one has escapes, also of quotes.
        self._joined: set[str] = set()
        self._escaped = self._unquoted = False
        #: Whether points may stand between thousands, as where commas are decimal.
        self._may_group = self.commas or votes_of(Counter(chain(*rows)))[","] > 0
        self._in_head = len(rows[0])
        self._named = sum(bool(name.strip()) for name in rows[0])
        self.names, self._width = self._header(rows)
        self.notes += _doubtful(self.names)

    def _header(self, rows: list[list[str]]) -> tuple[list[str], int]:
        """Return the names of the columns, and the number of cells in a row."""
        names, *rows = rows
        width = len(names)
        # A first column without a name may be an index.
        names = [
            name.strip() or (f"column {at}" if at > 1 else "") for at, name in enumerate(names, 1)
        ]
        self._usual = Counter(map(len, rows)).most_common(1)[0][0] if rows else width
        widths = set(map(len, rows))
        if len(widths) == 1 and self._usual > width > 1:
            if any(cell.strip() for row in rows for cell in row[width:]):
                raise DataError(
                    self._path,
                    None,
                    f"has {counted(width, 'name')} in the first line and {self._usual} cells in "
                    f"each row, {', '.join(rows[0])!r:.60} in the first: name each cell; where the "
                    "first is the row's name, as R writes it, put a name in front of the others",
                )
            self.notes.append("left out: empty cells at the end of each row, behind a separator")
            return names, self._usual
        return names, width

    @cached_property
    def hint(self) -> str:  # type: ignore[override]
        """Advice if the first line may not be the names, or another separator may be theirs."""
        if any(re.fullmatch(r"[+-]?\d+([.,]\d+)*", name) for name in self.names):
            return "; if these are values, put a line with the names of the columns before them"
        if self._named == 1 < self._usual:
            lines = f"; other lines have {self._usual} cells"
            return f"{lines}: delete the lines above the names, or name each cell"
        if self._in_head == 1:
            return (
                "; if cells are separated otherwise than usual, say how (separator=, --separator)"
            )
        return ""

    def _head(self) -> str:
        text = ""
        for block in decoded(self._opened, self._path, self._encoding):
            text += block
            if text.count("\n") > _SNIFFED or len(text) > _LONGEST:
                break
        lines = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        return (
            "\n".join(lines.split("\n")[: _SNIFFED + 1]) if text.count("\n") > _SNIFFED else lines
        )

    def blocks(self, names: Sequence[str], spelled: Collection[str]) -> Iterator[list[Any]]:
        """Yield cells; see `Source`."""
        given = [str(at) for at in range(self._width)]
        given_of = dict(zip(self.names, given, strict=False))
        wanted = [given_of[name] for name in names]
        bad: list[Any] = []

        def refused(row: Any) -> str:
            if row.number == 1:  # the names, where each row has a cell more
                return "skip"
            bad.append(row)
            return "error"

        texts = self._looked_at(decoded(self._opened, self._path, self._encoding))
        if self._skips:
            texts = _without_a_line(texts)
        try:
            reader = self._csv.open_csv(
                Blocks(text.encode("utf-8", "surrogatepass") for text in texts),
                self._csv.ReadOptions(use_threads=False, column_names=given, block_size=_BYTES),
                self._csv.ParseOptions(
                    delimiter=self._separator, newlines_in_values=True, invalid_row_handler=refused
                ),
                self._csv.ConvertOptions(
                    include_columns=list(dict.fromkeys(wanted)),
                    column_types=dict.fromkeys(given, self._arrow.string()),
                    strings_can_be_null=True,
                    null_values=[""],
                ),
            )
            named = self._width == self._in_head
            for batch in reader:
                rows = batch.slice(1) if named else batch  # without the names
                named = False
                for name, one in zip(names, wanted, strict=True):
                    self._look_for_joined(name, rows.column(one))
                    self._look_for_escapes(name, rows.column(one))
                yield [
                    self._cells(rows.column(one), spelled=name in spelled)
                    for name, one in zip(names, wanted, strict=True)
                ]
        except (DataError, ParameterError):
            raise
        except (ValueError, OSError) as error:
            raise self._refusal(error, bad) from error

    def _looked_at(self, texts: Iterator[str]) -> Iterator[str]:
        """Yield a text in blocks, and note a quote that a backslash escapes, as Spark writes it."""
        wrong = re.compile(rf'\\"[^"\s{re.escape(self._separator)}]')
        for text in texts:
            if not self._unquoted and "\\" in text and (found := wrong.search(text)):
                self._unquoted = True
                start = max(text.rfind("\n", 0, found.start()) + 1, found.start() - 20)
                shown = text[start : found.end()]
                self.notes.append(
                    f"a quote behind a backslash ends its text, in {shown!r}: double the quotes "
                    "in texts"
                )
            yield text

    def _look_for_joined(self, name: str, column: Any) -> None:
        """Note a cell with line breaks and as many separators as so many rows have.

        A data base that writes tabs does not quote texts: of two that begin with a quote one cell
        is made. Commas stand in texts, too, and who writes them between cells does quote.
        """
        c = self._compute
        if self._separator == "," or name in self._joined:
            return
        broken = column.filter(c.match_substring(column, "\n"))
        for text in broken.to_pylist():
            if text.count(self._separator) == text.count("\n") * (self._width - 1):
                self._joined.add(name)
                self.notes.append(
                    f"a cell of {name!r} may be several rows, joined by a quote that is not closed:"
                    f" {text!r:.60}: double the quotes in texts, and put quotes around these"
                )
                return

    def _look_for_escapes(self, name: str, column: Any) -> None:
        """Note a tab or line break that is written as a data base does, or a path of Windows."""
        if self._separator != "\t" or self._escaped:
            return
        escaped = column.filter(self._compute.match_substring_regex(column, r"\\[tnr\\]"))
        if len(escaped):
            self._escaped = True
            self.notes.append(
                f"texts such as {escaped[0].as_py()!r:.60} of {name!r} stay as they are: if a data "
                "base wrote them, their backslashes stand for other signs"
            )

    def _cells(self, column: Any, *, spelled: bool) -> Any:
        if not spelled:
            try:
                numbers = column.cast(self._arrow.float64())
            except ValueError:
                return column.to_pylist()
            values = numbers.to_numpy(zero_copy_only=False)
            finite = (
                numbers.null_count == int(np.isnan(values).sum()) and not np.isinf(values).any()
            )
            if finite and not _is_beyond(values) and not self._tells(column, values):
                return values
        return column.to_pylist()

    def _tells(self, column: Any, values: NDArray[np.float64]) -> bool:
        """Whether numbers are written as codes or versions are, or with points between thousands.

        `drift.streams.tally` says which, of the column.
        """
        c = self._compute
        there = values[~np.isnan(values)]
        fractions = there[there != np.floor(there)]
        if not len(fractions):
            marks = (c.match_substring(column, mark) for mark in "eE")
            padded = c.match_substring_regex(column, "^[+-]?0[0-9]")
            return any(c.any(found).as_py() for found in (padded, *marks))
        if not is_fraction(fractions):
            ends = column.filter(c.ends_with(column, "0"))  # 1.10 of a version, 1.00 of a price
            cut = c.match_substring_regex(ends, "[.][1-9][0-9]*0$")
            if c.any(cut).as_py() and not c.any(c.match_substring_regex(ends, "[.]00")).as_py():
                return True
        points = c.sum(c.match_substring(column, ".")).as_py() if self._may_group else 0
        grouped = r"^\s*[+-]?[1-9][0-9]{0,2}[.][0-9]{3}\s*$"
        return bool(points) and points == c.sum(c.match_substring_regex(column, grouped)).as_py()

    def _refusal(self, error: Exception, bad: list[Any]) -> DataError:
        if bad:
            row = bad[0]
            remedy = "add what it lacks, cells or the end of a quote, or delete it"
            if row.actual_columns > row.expected_columns:
                remedy = (
                    f"mend it, or quote the cell that has {self._separator!r} in it (without a "
                    "blank before the quote)"
                )
            problem = (
                f"row {row.number - 1} has {counted(row.actual_columns, 'cell')}, the line of "
                f"names {row.expected_columns}: {row.text!r:.120}; {remedy}"
            )
            return DataError(self._path, None, problem)
        text = one_line(str(error))
        if "straddl" in text or "parser" in text:
            problem = "a quote is not closed, or one row is longer than 1 MB: mend the quotes"
            return DataError(self._path, None, f"{problem} ({text})")
        return DataError(self._path, None, f"cannot be read: {text}")


def _doubtful(names: Sequence[str]) -> list[str]:
    """Say that names are numbers that do not count up or down, as a first line of values has."""
    numbers = [name for name in names if plain_number(name) is not None]
    if numbers == sorted(numbers, key=float) or _has_equal_steps(list(map(float, numbers))):
        return []
    found = f"the names of columns {numbers[0]!r} and {numbers[1]!r} are numbers"
    return [f"{found}: if the first line has values, put a line of names before it"]


def _has_equal_steps(numbers: Sequence[float]) -> bool:
    """Whether more than two numbers have equal steps, as wavenumbers have; these may be rounded."""
    mean = (numbers[-1] - numbers[0]) / (len(numbers) - 1)
    steps = (after - before for before, after in pairwise(numbers))
    return len(numbers) > 2 and all(math.isclose(step, mean, rel_tol=0.05) for step in steps)


def _without_a_line(texts: Iterator[str]) -> Iterator[str]:
    """Yield a text in blocks without its first line."""
    start = ""
    for text in texts:
        start += text
        if "\n" in start:
            yield start.partition("\n")[2]
            break
    yield from texts


def _records(text: str, separator: str) -> list[list[str]]:
    """Return the first rows of a text, blank lines left out."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return [row for row in islice(rows, _SNIFFED) if row]
    except csv.Error:
        return [text.partition("\n")[0].split(separator)]


def _separator(text: str) -> str:
    """Return the separator that gives most rows as many cells as the first, and more than one."""
    best, most = ",", (0.0, 0)
    for one in _SEPARATORS:
        widths = [len(row) for row in _records(text, one)]
        if not widths or widths[0] < 2:
            continue
        share = sum(width in {widths[0], widths[0] + 1} for width in widths) / len(widths)
        if (share, widths[0]) > most:
            best, most = one, (share, widths[0])
    return best


# --- JSON ----------------------------------------------------------------------------------------


class JsonSource(Source):
    """JSON lines or a JSON array: flat objects, or messages of a topic.

    Parameters
    ----------
    opened
        Opens the bytes.
    path
        For errors.
    name
        Of the stream.
    target
        What the label of a message becomes.
    times
        Fields of a message beside its features that are columns, too.
    rows
        How many rows with a label will be read; None: all.
    encoding
        Of the text; None: UTF-8, or UTF-16 with a byte order mark.
    """

    def __init__(  # noqa: PLR0913 - what tells how messages are read
        self,
        opened: Open,
        path: Path,
        name: str,
        *,
        target: str,
        times: Collection[str],
        rows: int | None,
        encoding: str | None,
    ) -> None:
        super().__init__(name)
        self._opened, self._path, self._encoding = opened, path, encoding
        self._target, self._times = target, set(times)
        #: Fields that stand beside the features of messages, and are none.
        self._beside: dict[str, None] = {}
        names: dict[str, None] = {}
        count = 0
        for count, row in enumerate(self._rows(), 1):  # noqa: B007 - used behind the loop
            names.update(dict.fromkeys(row))
            if rows is not None and row.get(target) is not None:
                rows -= 1
                if rows == 0:
                    break
        if not names:
            raise DataError(path, None, "is empty: give a file with an object in each line")
        self.names = list(names)
        if count == 1:
            self.hint = "; the file holds one object: write one for each example, in a line each"
        if self._beside:
            fields = ", ".join(map(repr, self._beside))
            self.notes.append(f"left out: {fields}, beside the features of messages")

    def blocks(self, names: Sequence[str], spelled: Collection[str]) -> Iterator[list[Any]]:
        """Yield cells; see `Source`."""
        rows = self._rows()
        while block := list(islice(rows, ROWS)):
            yield [[row.get(name) for row in block] for name in names]

    def _rows(self) -> Iterator[dict[str, Any]]:
        text = self._opened, self._path, self._encoding
        if next(decoded(*text)).lstrip().startswith("["):
            rows = self._loaded("".join(decoded(*text)), None)
            if rows is None:
                raise DataError(self._path, None, "is no JSON: an array of objects, or one a line")
            for at, row in enumerate(rows, 1):
                if not isinstance(row, dict):
                    raise DataError(self._path, None, f"element {at} is no object: delete it")
                yield self._flat(row, None)
            return
        for number, line in lines_of(*text):
            row = self._loaded(line, number)
            if not isinstance(row, dict):
                problem = "is no JSON object: mend the line, or delete it"
                raise DataError(self._path, number, problem)
            yield self._flat(row, number)

    def _loaded(self, text: str, number: int | None) -> Any:
        """Return what a JSON text holds; None: it is none."""
        try:
            # The first reading, of the names, also looks for names that are there twice.
            return json.loads(text, object_pairs_hook=None if self.names else _object)
        except _TwiceError as error:
            raise self._twice(str(error), number) from None
        except ValueError:
            return None

    def _twice(self, name: str, number: int | None) -> DataError:
        return DataError(self._path, number, f"has two values for {name!r}: rename one")

    def _flat(self, row: dict[str, Any], number: int | None) -> dict[str, Any]:
        features = row.get("features")
        if isinstance(features, dict) and (self._target == "label" or self._target not in row):
            # The codec's other fields are no features; the label is renamed to the target.
            others = {name: row[name] for name in self._times if name in row}
            others[self._target] = row.get("label")
            if both := features.keys() & others.keys():
                raise self._twice(min(both), number)
            beside = row.keys() - _MESSAGE - self._times
            self._beside.update(dict.fromkeys(name for name in row if name in beside))
            row = {**features, **others}
        if not any(isinstance(value, dict) for value in row.values()):
            return row
        entries = list(_entries(row))
        flat = dict(entries)
        if len(flat) < len(entries):
            raise self._twice(_repeated(entries), number)
        return flat


class _TwiceError(ValueError):
    """One object has a name twice."""


def _object(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(entries)
    if len(made) < len(entries):
        raise _TwiceError(_repeated(entries))
    return made


def _repeated(entries: list[tuple[str, Any]]) -> str:
    return next(name for name, n in Counter(name for name, _ in entries).items() if n > 1)


def _entries(row: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _entries(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
