"""Rows of data frames, by narwhals, and of Parquet files, by pyarrow."""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.dependencies import is_pyarrow_table
from narwhals.exceptions import DuplicateError

from drift.errors import DataError, MissingExtraError, ParameterError, one_line
from drift.streams.source import ROWS, Seconds, Source, is_beyond, pyarrow
from drift.streams.texts import text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from drift.streams.decoding import Open

__all__ = ["FrameSource", "ParquetSource", "frame_source"]

_BEYOND_NUMPY = {nw.Decimal, nw.Int128, nw.UInt128}


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
    return column.to_list() if kind.is_integer() and is_beyond(values) else values


def _listed(column: nw.Series[Any]) -> list[Any]:
    """Return cells as a list; bytes, as SciPy reads ARFF, are texts."""
    cells = column.to_list()
    if bytes in set(map(type, cells)):
        return [text_of(cell) if isinstance(cell, bytes) else cell for cell in cells]
    return cells


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
        arrow = pyarrow("pyarrow")
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
        parquet = pyarrow("pyarrow.parquet")
        try:
            with self._opened() as file:
                yield parquet.ParquetFile(file)
        except (OSError, ValueError) as error:
            problem = f"is not a valid parquet file: {one_line(str(error))}"
            raise DataError(self._path, None, problem) from error

    def blocks(self, names: Sequence[str], spelled: Collection[str]) -> Iterator[list[Any]]:
        """Yield cells; see `Source`."""
        arrow, start = pyarrow("pyarrow"), 0
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
