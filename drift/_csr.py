"""Sparse matrices of scipy, whose indices are checked before code follows them."""

from __future__ import annotations

from typing import Any

from drift.errors import ParameterError

__all__ = ["csr_of"]


def csr_of(matrix: Any) -> Any:
    """Return a sparse matrix of any kind as CSR of float64, or refuse it.

    scipy takes matrices whose indices lie outside of them. Its own code, and drift's, would follow
    them to memory that is not theirs.

    Raises
    ------
    ParameterError
        If an index is negative, too large or not whole, or the arrays do not fit each other.
    """
    _check_indices(matrix)
    csr = matrix.astype("float64", copy=False).tocsr()  # scipy has no float16
    if csr is not matrix:  # of a list of lists, for one, scipy makes it without a check
        _check_indices(csr)
    return csr


def _check_indices(matrix: Any) -> None:
    kind, (n, d) = getattr(matrix, "format", ""), matrix.shape
    if kind == "coo":
        sound = len(matrix.row) == len(matrix.col) == len(matrix.data)
        sound = sound and _all_below(n, matrix.row) and _all_below(d, matrix.col)
    elif kind in {"csr", "csc", "bsr"}:
        ends, indices, data = matrix.indptr, matrix.indices, matrix.data
        height, width = data.shape[1:] if kind == "bsr" else (1, 1)
        parts, places = (d, n) if kind == "csc" else (n // height, d // width)
        sound = (
            len(ends) == parts + 1
            and len(indices) == len(data)
            and ends[0] == 0
            and _all_below(len(indices) + 1, ends)
            and bool((ends[:-1] <= ends[1:]).all())
            and _all_below(places, indices[: ends[-1]])
        )
    else:
        return
    if not sound:
        raise ParameterError(
            f"the {kind} matrix of shape {matrix.shape} is damaged: its index arrays do not fit "
            "the shape or each other; build it again from rows, columns and values"
        )


def _all_below(size: int, places: Any) -> bool:
    """Whether all numbers of an array are whole and from 0 to `size` - 1."""
    whole = places.dtype.kind in "iu"
    return whole and not (len(places) and (places.min() < 0 or places.max() >= size))
