"""Batches of examples: their rows, labels and weights, and results in the form that came in."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_pandas_series

from drift._checks import counted, weight_of
from drift._csr import csr_of
from drift._values import is_missing
from drift.errors import FeatureTypeError, LabelError, ParameterError, naming_row
from drift.models._base.rows import Rows
from drift.models._batch.frames import Frame, column_of
from drift.models._store import built

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from drift.models._batch.column_kinds import Columns
    from drift.types import Features, Label

__all__ = ["Batch", "labels_of", "refuse_another_order", "rows_of", "weights_of"]

#: `Rows` numbers columns by int32. Those of a wider sparse matrix, such as hashes of 64 bits, get
#: their numbers as names.
_MAX_COLUMNS = 2**31


def rows_of(matrix: Any, names: Sequence[Hashable] | None = None) -> Rows:
    """Return a 2-d array, which is not copied if it has floats, or a sparse matrix as rows."""
    if isinstance(matrix, np.ndarray):
        if matrix.shape[1] > _MAX_COLUMNS:
            raise ParameterError(
                f"X has {matrix.shape[1]} columns, and an array may have 2^31: pass a sparse matrix"
            )
        native = matrix.dtype in {np.dtype(np.float64), np.dtype(np.float32)}
        values = np.asarray(matrix if native else matrix.astype(np.float64))
        return Rows(values, values.shape[1], names=names)
    csr = csr_of(matrix)
    if not _ascend(csr.indices, csr.indptr):
        csr = csr.copy()  # which forgets whether scipy has ever found the arrays canonical
        csr.sum_duplicates()
    width, indices = csr.shape[1], csr.indices
    if width > _MAX_COLUMNS:
        used, indices = np.unique(indices, return_inverse=True)
        names, width = used.tolist(), len(used)
    return Rows(
        np.ascontiguousarray(csr.data),
        width,
        np.ascontiguousarray(csr.indptr, dtype=np.int64),
        np.ascontiguousarray(indices, dtype=np.int32),
        names,
    )


def _ascend(indices: Any, ends: Any) -> bool:
    """Whether the columns of each row ascend, so that none occurs twice."""
    ascends = np.ones(len(indices) + 1, dtype=bool)
    np.less(indices[:-1], indices[1:], out=ascends[1:-1])
    ascends[ends] = True
    return bool(ascends.all())


class Batch:
    """A batch of examples.

    Parameters
    ----------
    X
        DataFrame, list of dicts, 2-d numpy array or scipy sparse matrix.

    Attributes
    ----------
    rows : Rows or list of mappings
        The examples: ``rows[i]`` is one.

    Raises
    ------
    FeatureTypeError
        If `X` is none of these.
    ParameterError
        If two columns of a DataFrame have the same name.
    """

    def __init__(self, X: Any) -> None:
        self._frame: Frame | None = None
        self._width = 0  # of an array or sparse matrix
        self.rows: Rows | list[Features]
        if isinstance(X, (list, tuple)) and _are_mappings(X):
            self.rows = list(X)
        elif isinstance(X, np.ndarray) or hasattr(X, "tocsr"):
            self._width = X.shape[-1]
            self.rows = rows_of(_matrix(X))
        else:
            others = ", a list of dicts, a 2-d numpy array or a scipy sparse matrix"
            frame = self._frame = Frame(X, others)
            known = frame.matrix is not None
            self.rows = rows_of(frame.matrix, frame.names) if known else frame.dicts()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def columns(self) -> Columns:
        """The columns of a data frame or array that has rows; none of dicts, which may differ."""
        if not len(self):
            return frozenset()
        if self._frame is not None:
            return frozenset(self._frame.names)
        return range(self._width)

    def check(self, read: Callable[[Features], None], largest: float) -> None:
        """Let a model read every row that it might refuse; its error then names the row.

        It never refuses a row of plain numbers whose sum of squares is at most `largest`.
        """
        i = 0
        with naming_row(lambda: i):
            for i in built.rows_to_check(self.rows, largest):
                read(self.rows[i])

    def make_series(self, values: Sequence[Label], name: str | None = None) -> Any:
        """Return one value per row, as a Series of the library that came in or as an array."""
        return column_of(values) if self._frame is None else self._frame.make_series(values, name)

    def make_frame(self, columns: Mapping[Label, Sequence[float]]) -> Any:
        """Return several values per row, as a DataFrame of the library that came in or an array."""
        if self._frame is not None:
            return self._frame.make_frame(columns)
        scores = np.array(list(columns.values()), dtype=np.float64)
        return scores.reshape(len(columns), len(self)).T


def _are_mappings(X: Sequence[Any]) -> bool:
    return {*map(type, X)} <= {dict} or all(isinstance(x, Mapping) for x in X)


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
    labels, series = _as_list(y, "labels")
    if series is not None and series.dtype == nw.Object:
        _check_types(labels)
    return labels, None if series is None else series.name


def _as_list(values: Any, what: str) -> tuple[list[Any], Any]:
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


def refuse_another_order(X: Any, column: Any, name: str) -> None:
    """Refuse a Series that has the rows of `X` in another order, as they are matched one by one.

    Raises
    ------
    ParameterError
        Both have the same index, in different orders: one was shuffled or sorted alone.
    """
    if not (is_pandas_series(column) and is_pandas_dataframe(X)):
        return
    rows, others = X.index, column.index
    if rows is others or rows.equals(others) or len(rows) != len(others):
        return
    if rows[0] in others and rows.is_unique and others.is_unique and rows.isin(others).all():
        raise ParameterError(
            f"{name} has the index of X in another order: pass {name}.loc[X.index], or "
            f"{name}.to_numpy() if its order is right"
        )


def weights_of(w: Any, rows: int) -> list[float] | None:
    """Return a weight for each row, from a number, a Series, an array or a list; None for 1."""
    if w is None:
        return None
    if isinstance(w, Real):
        return [weight_of(w)] * rows
    values, _ = _as_list(w, "weights")
    if len(values) != rows:
        raise ParameterError(f"X has {counted(rows, 'row')} and w {counted(len(values), 'weight')}")
    weights: list[float] = []
    with naming_row(weights.__len__):
        for value in values:
            weights.append(weight_of(value))  # noqa: PERF401 - their number names the row
    return weights


def _check_types(labels: Sequence[Label]) -> None:
    """Refuse a column of labels of several types, which mostly is a mistake in reading it."""
    before = None
    for i, label in enumerate(labels):
        if type(label) is type(before) or is_missing(label):
            continue
        if not is_missing(before):
            raise LabelError(
                f"row {i}: label {label!r:.80} is of type {type(label).__name__}, the one before "
                f"of type {type(before).__name__}: cast the column, or pass a list of the labels"
            )
        before = label
