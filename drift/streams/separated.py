"""Rows of CSV, TSV and other text whose cells are separated by one character, read by pyarrow.

pyarrow gives cells as they are written, names the row that has too few or too many, and reads
blocks. So what a column is can be decided after all of its cells were seen.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from drift._checks import counted
from drift.errors import DataError, ParameterError, one_line
from drift.streams import decoding
from drift.streams._files import Blocks
from drift.streams.decoding import decoded
from drift.streams.source import Source, is_beyond, pyarrow
from drift.streams.spelled import written
from drift.streams.texts import plain_number

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from drift.streams.decoding import Open

__all__ = ["TextSource"]

#: One row of a text may have so many bytes.
_LONGEST = 1 << 24
#: Letters of a block that are looked at again with the next one.
_OVERLAP = 1000
#: Rows that separators are looked for in.
_SNIFFED = 50
_SEPARATORS = (",", ";", "\t", "|")


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
        self._arrow, self._csv = pyarrow("pyarrow"), pyarrow("pyarrow.csv")
        self._compute = pyarrow("pyarrow.compute")
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
                self._csv.ReadOptions(
                    use_threads=False, column_names=given, block_size=decoding.BYTES
                ),
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
        separator = re.escape(self._separator)
        end = rf'(?<=\\)"[^"\s{separator}]'
        may_be, wrong = re.compile(end), re.compile(rf'[{separator}\r\n]"[^"]*(?:""[^"]*)*{end}')
        seen = ""
        for text in texts:
            seen = seen[-_OVERLAP:] + text  # a cell may begin in the block before
            may_be_wrong = not self._unquoted and '\\"' in seen and may_be.search(seen)
            if may_be_wrong and (found := wrong.search(seen)):  # in a quoted cell
                self._unquoted = True
                slash = found.end() - 3
                start = max(seen.rfind("\n", 0, slash) + 1, slash - 20)
                shown = seen[start : found.end()]
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
            if finite and not is_beyond(values) and (found := written(column, values)):
                return found
        return column.to_pylist()

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
