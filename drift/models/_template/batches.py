"""Batches of examples: the only module that knows data frames and arrays.

DataFrames, lists of dicts, numpy arrays and sparse matrices come in, rows go to the model, and
results go out in the library that came in.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from river.utils import dataframe
from scipy import sparse

from drift._checks import counted, weight_of
from drift._values import is_missing
from drift.errors import DriftError, FeatureTypeError, LabelError, ParameterError, one_line
from drift.models._base.rows import Row, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from drift.types import Features, Label

__all__ = ["Table", "frame_of", "in_common", "labels_of", "rows_of", "weights_of", "widened"]


#: The square of what is smaller, and sums of many such squares, are finite.
_MODERATE = 1e100


def rows_of(matrix: Any, names: Sequence[Hashable] | None = None, *, zeros: bool = False) -> Rows:
    """Return a 2-d array or sparse matrix as rows, which keep the zeros of an array on demand."""
    matrix = matrix.astype(np.float64, copy=False)  # scipy has no float16
    if isinstance(matrix, np.ndarray) and matrix.size and (zeros or matrix.all()):
        n, width = matrix.shape
        return Rows(
            np.arange(0, n * width + 1, width, dtype=np.int64),
            np.tile(np.arange(width, dtype=np.int32), n),
            np.array(matrix, order="C").reshape(-1),
            width,
            names,
        )
    csr = sparse.csr_array(matrix)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return Rows(
        np.ascontiguousarray(csr.indptr, dtype=np.int64),
        np.ascontiguousarray(csr.indices, dtype=np.int32),
        np.ascontiguousarray(csr.data),
        csr.shape[1],
        names,
    )


def frame_of(X: Any, others: str = "") -> nw.DataFrame[Any]:
    """Return a narwhals data frame; refuse anything else, and name the method `others`."""
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        what = f"a batch is a DataFrame{others}, not a {type(X).__name__}"
        raise FeatureTypeError(what) from None
    except DuplicateError as error:
        raise ParameterError(f"{one_line(str(error))}: rename all but one") from None


def widened(frame: nw.DataFrame[Any], columns: Mapping[Any, Sequence[float]]) -> Any:
    """Return a data frame, of the library that it is of, with columns more."""
    added = []
    for name, values in columns.items():
        series = dataframe.to_native_series(values, name=name, like=frame)
        added.append(dataframe.into_series(series).alias(name))  # those of Arrow have no name yet
    return frame.with_columns(*added).to_native()


def in_common(one: range | frozenset[Hashable], other: range | frozenset[Hashable]) -> bool:
    """Whether numbers of columns, a range, are among names.

    Examples
    --------
    >>> from drift.models._template.batches import in_common
    >>> in_common(range(3), frozenset(["a", 2])), in_common(range(3), frozenset(["0"]))
    (True, False)
    """
    numbers, names = (one, other) if isinstance(one, range) else (other, one)
    return any(isinstance(name, int) and name in numbers for name in names)


class Table:
    """A batch of examples.

    Parameters
    ----------
    X
        DataFrame, list of dicts, 2-d numpy array or scipy sparse matrix.
    zeros
        Rows have the zeros of arrays and numeric DataFrames; what is sparse has none to keep.

    Raises
    ------
    FeatureTypeError
        If `X` is none of these.
    ParameterError
        If two columns of a DataFrame have the same name.
    """

    def __init__(self, X: Any, *, zeros: bool = False) -> None:
        self._zeros = zeros
        self._frame: nw.DataFrame[Any] | None = None
        self._rows: Rows | None = None
        self._dicts: list[Features] | None = None
        if isinstance(X, (list, tuple)) and all(isinstance(x, Mapping) for x in X):
            self._dicts = list(X)
        elif isinstance(X, np.ndarray) or hasattr(X, "tocsr"):
            self._rows = rows_of(_matrix(X), zeros=zeros)
        else:
            self._frame = frame_of(
                X, ", a list of dicts, a 2-d numpy array or a scipy sparse matrix"
            )
            self._read_frame(X)

    def _read_frame(self, X: Any) -> None:
        assert self._frame is not None  # noqa: S101
        names: list[Hashable] = list(self._frame.columns)
        if names and hasattr(X, "dtypes") and all("Sparse" in str(dtype) for dtype in X.dtypes):
            coo = all(dtype.fill_value == 0 for dtype in X.dtypes)  # or there is no such matrix
            matrix = X.sparse.to_coo() if coo else X.to_numpy(float)
            self._rows = rows_of(matrix, names, zeros=self._zeros)
        elif all(t.is_numeric() or t == nw.Boolean for t in self._frame.schema.values()):
            self._rows = rows_of(dataframe.to_numpy(self._frame), names, zeros=self._zeros)
        else:
            self._dicts = [dict(zip(names, row, strict=True)) for row in self._frame.iter_rows()]

    def __len__(self) -> int:
        return len(self._rows if self._rows is not None else self._dicts or ())

    @property
    def features(self) -> range | frozenset[Hashable]:
        """The features of a data frame or array with rows; nothing of dicts, which differ."""
        if not len(self):
            return frozenset()
        if self._frame is not None:
            return frozenset(self._frame.columns)
        return range(0 if self._rows is None else self._rows.width)

    @property
    def array(self) -> Rows | None:
        """The rows, where the features are the columns' numbers; None otherwise."""
        return self._rows if self._rows is not None and self._rows.names is None else None

    def row(self, i: int) -> Features:
        """Return one example."""
        if self._rows is not None:
            return Row(self._rows, i) if self._rows.names is None else self._rows.row(i)
        assert self._dicts is not None  # noqa: S101
        return self._dicts[i]

    def __iter__(self) -> Iterator[Features]:
        return (self.row(i) for i in range(len(self)))

    def check(self, read: Callable[[Features], None]) -> None:
        """Let a model check every row that it might refuse; its error then names the row."""
        for i in self._suspects():
            try:
                read(self.row(i))
            except DriftError as error:
                error.args = (f"row {i}: {error}",)
                raise

    def _suspects(self) -> Sequence[int]:
        """Rows whose refusal has to be ruled out: of an array, the infinite and the largest one."""
        if self._rows is None or not len(self):
            return range(len(self))
        data, indptr = self._rows.data, self._rows.indptr
        if len(data) and data.min() > -_MODERATE and data.max() < _MODERATE:  # and no NaN
            return [self._largest(data * data)]
        infinite = np.flatnonzero(np.isinf(data))
        if len(infinite):
            return [int(np.searchsorted(indptr, infinite[0], side="right")) - 1]
        with np.errstate(over="ignore"):
            return [self._largest(np.nan_to_num(data) ** 2)]

    def _largest(self, squares: NDArray[np.float64]) -> int:
        """Row with the largest sum."""
        assert self._rows is not None  # noqa: S101
        indptr = self._rows.indptr
        if not len(squares):
            return 0
        norms = np.add.reduceat(squares, np.minimum(indptr[:-1], len(squares) - 1))
        norms[indptr[:-1] == indptr[1:]] = 0.0  # what reduceat makes of an empty row
        return int(norms.argmax())

    def series(self, values: Sequence[Label], name: str | None = None) -> Any:
        """Return one value a row, as a Series of the library that came in or as an array."""
        column: Any = _column(values)
        if self._frame is None:
            return column
        if column.dtype == object and not self._frame.implementation.is_pandas_like():
            given = _column([value for value in values if value is not None])
            if given.dtype.kind in "iu":  # True beside 2 is the class 1
                column = [value if value is None else int(value) for value in values]
            elif given.dtype != object:
                column = list(values)  # null is None here
            elif self._frame.implementation.is_pyarrow():
                return column  # labels of several kinds, for which Arrow has no type
        return dataframe.to_native_series(column, name=name, like=self._frame)

    def frame(self, columns: Mapping[Label, Sequence[float]]) -> Any:
        """Return some values a row, as a DataFrame of the library that came in or as an array."""
        if self._frame is None:
            scores = np.array(list(columns.values()), dtype=np.float64)
            return scores.reshape(len(columns), len(self)).T
        names: dict[str, Label] = {}
        if not self._frame.implementation.is_pandas_like():  # whose columns have any names
            for label in columns:
                if (other := names.setdefault(str(label), label)) is not label:
                    raise LabelError(
                        f"labels {other!r} and {label!r} would be one column: learn labels of one "
                        "kind, or ask with a data frame of pandas"
                    )
        return dataframe.to_native_frame(
            {label: np.array(values) for label, values in columns.items()}, like=self._frame
        )


def _column(values: Sequence[Label]) -> NDArray[Any]:
    """Return labels as an array of their type; of objects if there are several types.

    What was predicted before any 0 or 1 was learnt, False, goes with them as a 0.
    """
    kinds = {type(value) for value in values}
    if not kinds:
        return np.empty(0, dtype=bool)
    whole = all(issubclass(kind, (int, np.integer, np.bool_)) for kind in kinds)
    if whole or (len(kinds) == 1 and issubclass(kinds.pop(), (float, str, np.generic))):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _matrix(X: Any) -> Any:
    if X.ndim != 2:
        raise ParameterError(
            f"an array of examples has two dimensions, not the shape {X.shape}: reshape it to a "
            "row for each example"
        )
    if X.dtype.kind not in "biuf":
        raise FeatureTypeError(
            f"an array of examples holds numbers, not {X.dtype}: encode it first"
        )
    return np.ma.filled(X.astype(float), np.nan) if isinstance(X, np.ma.MaskedArray) else X


def labels_of(y: Any) -> tuple[list[Label], str | None]:
    """Return labels from a Series, an array or a list, and their name where they have one."""
    labels, series = _listed(y, "labels")
    if series is not None and series.dtype == nw.Object:
        _check_types(labels)
    return labels, None if series is None else series.name


def _listed(values: Any, what: str) -> tuple[list[Any], Any]:
    """Return a column as a list, and as a Series where it came as one."""
    if isinstance(values, (list, tuple)):
        return list(values), None
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ParameterError(
                f"{what} have one dimension, not the shape {values.shape}: pass one column"
            )
        return values.tolist(), None
    try:
        series = nw.from_native(values, series_only=True)
    except TypeError:
        raise ParameterError(
            f"{what} are a Series, a 1-d array or a list, not a {type(values).__name__}"
        ) from None
    return series.to_list(), series


def weights_of(w: Any, rows: int) -> list[float] | None:
    """Return a weight for each row, from a number, a Series, an array or a list; None for 1."""
    if w is None:
        return None
    if isinstance(w, Real):
        return [weight_of(w)] * rows
    values, _ = _listed(w, "weights")
    if len(values) != rows:
        raise ParameterError(f"X has {counted(rows, 'row')} and w {counted(len(values), 'weight')}")
    weights = []
    for i, value in enumerate(values):
        try:
            weights.append(weight_of(value))
        except ParameterError as error:
            raise ParameterError(f"row {i}: {error}") from None
    return weights


def _check_types(labels: Sequence[Label]) -> None:
    """Refuse a column of labels of several types, which mostly is a mistake in reading it."""
    for i, (before, label) in enumerate(pairwise(labels), start=1):
        if type(label) is not type(before) and not (is_missing(before) or is_missing(label)):
            raise LabelError(
                f"row {i}: label {label!r:.80} is of type {type(label).__name__}, the one before "
                f"of type {type(before).__name__}: cast the column, or pass a list of the labels"
            )
