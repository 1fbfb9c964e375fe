"""Data frames of any library that narwhals knows: their rows, and columns of the same library.

Frames of pandas, polars and pyarrow are read and made by their own methods, because the way through
narwhals takes as long as a few hundred predictions.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table
from narwhals.exceptions import DuplicateError
from river.utils import dataframe

from drift.errors import FeatureTypeError, LabelError, ParameterError, one_line
from drift.models._batch.distinct import once_per_distinct

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from drift.types import Features, Label

__all__ = ["Frame", "column_of", "frame_of", "with_columns"]


def frame_of(X: Any, others: str = "") -> nw.DataFrame[Any]:
    """Return a narwhals data frame, or refuse `X`.

    `others` continues the error's list of what a batch may be, after "a DataFrame".
    """
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        what = f"a batch is a DataFrame{others}, not a {type(X).__name__}"
        raise FeatureTypeError(what) from None
    except DuplicateError as error:
        raise ParameterError(f"{one_line(str(error))}: rename all but one") from None


def with_columns(frame: nw.DataFrame[Any], columns: Mapping[Any, Sequence[float]]) -> Any:
    """Return the frame with added columns, as a data frame of its own library."""
    added = []
    for name, values in columns.items():
        series = dataframe.to_native_series(values, name=name, like=frame)
        added.append(dataframe.into_series(series).alias(name))  # an Arrow series has no name yet
    return frame.with_columns(*added).to_native()


class Frame:
    """A data frame.

    Parameters
    ----------
    X
        The data frame.
    others
        What else a batch may be, for the error.

    Attributes
    ----------
    names : list
        The columns' names.
    matrix : ndarray, sparse matrix or None
        The numbers, where all columns have numbers or bools; NaN where one is missing.

    Raises
    ------
    FeatureTypeError
        If `X` is not a data frame.
    ParameterError
        If two columns have the same name.
    """

    def __init__(self, X: Any, others: str) -> None:
        self._X = X
        self._others = others
        self.names: list[Hashable] = []
        self.matrix: Any = None
        if is_pandas_dataframe(X):
            self._read_pandas()
        elif is_polars_dataframe(X):
            self._read_polars()
        elif is_pyarrow_table(X):
            self._read_arrow()
        if self.matrix is None:
            self._read_any()

    def _read_pandas(self) -> None:
        X, dtypes = self._X, {*self._X.dtypes}
        if not X.columns.is_unique or not dtypes:
            return
        self.names = X.columns.tolist()
        if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes):
            self.matrix = X.to_numpy() if len(dtypes) == 1 else X.to_numpy(np.float64)
        elif all("Sparse" in str(dtype) for dtype in dtypes):
            coo = all(dtype.fill_value == 0 for dtype in dtypes)  # to_coo needs the fill value 0
            self.matrix = X.sparse.to_coo() if coo else X.to_numpy(np.float64)

    def _read_polars(self) -> None:
        boolean = sys.modules["polars"].Boolean
        if self._X.width and all(t.is_numeric() or t == boolean for t in self._X.dtypes):
            self.names = self._X.columns
            self._fill(self._X.get_columns())

    def _read_arrow(self) -> None:
        X, types = self._X, sys.modules["pyarrow"].types
        names = X.column_names
        if len({*names}) == len(names) and names and all(map(types.is_floating, X.schema.types)):
            self.names = names
            self._fill(X.columns)

    def _fill(self, columns: Sequence[Any]) -> None:
        """Copy the columns, of polars or Arrow, into the matrix."""
        self.matrix = np.empty((len(self._X), len(columns)), order="F")
        for k, column in enumerate(columns):
            self.matrix[:, k] = column.to_numpy()

    def _read_any(self) -> None:
        frame = self.wrapped
        self.names = list(frame.columns)
        if all(t.is_numeric() or t == nw.Boolean for t in frame.schema.values()):
            self.matrix = dataframe.to_numpy(frame)

    @property
    def wrapped(self) -> nw.DataFrame[Any]:
        """The frame of narwhals."""
        return frame_of(self._X, self._others)

    def dicts(self) -> list[Features]:
        """Return the rows as dicts."""
        return [dict(zip(self.names, row, strict=True)) for row in self.wrapped.iter_rows()]

    def make_series(self, values: Sequence[Label], name: str | None) -> Any:
        """Return one value per row as a Series; an array where Arrow has no type for them."""
        column: Any = column_of(values)
        if is_pandas_dataframe(self._X):
            return sys.modules["pandas"].Series(column, index=self._X.index, name=name)
        if column.dtype.kind in "biuf" and is_polars_dataframe(self._X):
            return sys.modules["polars"].Series(name or "", column)
        if column.dtype.kind in "biuf" and is_pyarrow_table(self._X):
            return sys.modules["pyarrow"].chunked_array([column])
        frame = self.wrapped
        if column.dtype == object and not frame.implementation.is_pandas_like():
            given = column_of([value for value in values if value is not None])
            if given.dtype.kind in "iu":  # True beside 2 is the class 1
                column = [value if value is None else int(value) for value in values]
            elif given.dtype != object:
                column = list(values)  # the library writes None as null
            elif frame.implementation.is_pyarrow():
                return column  # labels of several kinds, for which Arrow has no type
        return dataframe.to_native_series(column, name=name, like=frame)

    def make_frame(self, columns: Mapping[Label, Sequence[float]]) -> Any:
        """Return several values per row as a data frame."""
        frame, names = self.wrapped, dict[str, "Label"]()
        if not frame.implementation.is_pandas_like():  # pandas columns may have any names
            for label in columns:
                if (other := names.setdefault(str(label), label)) is not label:
                    raise LabelError(
                        f"labels {other!r} and {label!r} would be one column: learn labels of one "
                        "kind, or ask with a data frame of pandas"
                    )
        arrays = {label: np.array(values) for label, values in columns.items()}
        return dataframe.to_native_frame(arrays, like=frame)


def column_of(values: Sequence[Label]) -> NDArray[Any]:
    """Return labels as an array of their type; of objects if there are several types.

    A False that was predicted before any 0 or 1 was learnt becomes a 0 beside them.
    """
    return once_per_distinct(values, _column_of)


def _column_of(values: Sequence[Label]) -> NDArray[Any]:
    types = {type(value) for value in values}
    if not types:
        return np.empty(0, dtype=bool)
    whole = all(issubclass(one, (int, np.integer, np.bool_)) for one in types)
    if whole or (len(types) == 1 and issubclass(types.pop(), (float, str, np.generic))):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
