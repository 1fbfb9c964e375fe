"""Conversion of pairs, label arrays and text to the matrices of `Documents`."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse

from drift._checks import counted
from drift._csr import csr_of
from drift._values import number
from drift.errors import FeatureError, FeatureTypeError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "canonical",
    "fingerprint",
    "indicator",
    "pairs_to_arrays",
    "refuse_disagreement",
    "topics_of",
]


def canonical(rows: csr_array) -> csr_array:
    """Rows as float64, sorted, without duplicates or zeros; the argument is not changed."""
    result = csr_array(csr_of(rows))
    if not np.isfinite(result.data).all():
        at = int(np.flatnonzero(~np.isfinite(result.data))[0])
        row = int(np.searchsorted(result.indptr, at, side="right")) - 1
        raise ParameterError(
            f"row {row}, column {result.indices[at]} holds {result.data[at]}: values must be finite"
        )
    if not (result.has_canonical_format and np.all(result.data)):
        result = result.copy()
        result.sum_duplicates()
        result.eliminate_zeros()
    if max(result.nnz, result.shape[1]) <= np.iinfo(np.int32).max:
        # Half the memory of the indices; every kernel of the models reads these.
        result.indices = result.indices.astype(np.int32, copy=False)
        result.indptr = result.indptr.astype(np.int32, copy=False)
    return result


def refuse_disagreement(
    rows: csr_array,
    topics: NDArray[np.bool_],
    topic_names: tuple[str, ...],
    feature_names: tuple[Hashable, ...] | None,
) -> None:
    """Raise ParameterError if shapes and names do not match."""
    n, d = rows.shape
    if topics.shape != (n, len(topic_names)):
        raise ParameterError(
            f"topics has shape {topics.shape}, but {counted(n, 'row')} and "
            f"{counted(len(topic_names), 'topic name')} need {(n, len(topic_names))}"
        )
    if feature_names is not None and len(feature_names) != d:
        given = counted(len(feature_names), "feature name")
        raise ParameterError(f"{given} for {counted(d, 'column')}")
    for field, names in (("topic", topic_names), ("feature", feature_names or ())):
        if len(set(names)) < len(names):
            twice = next(name for name, times in Counter(names).items() if times > 1)
            raise ParameterError(f"the {field} name {twice!r} occurs twice: rename one")


def fingerprint(rows: csr_array, topics: NDArray[np.bool_], names: object) -> str:
    """SHA-256 of a matrix, its topics and the names of both."""
    digest = hashlib.sha256(repr((rows.shape, names)).encode())
    for array_ in (rows.data, rows.indices, rows.indptr):
        # One width for all platforms, whatever index type scipy chose.
        digest.update(array_.astype("<f8" if array_.dtype.kind == "f" else "<i8").tobytes())
    digest.update(np.packbits(topics).tobytes())
    return digest.hexdigest()


def pairs_to_arrays(
    pairs: Iterable[tuple[Mapping[Hashable, Any], object]],
) -> tuple[csr_array, tuple[Hashable, ...], NDArray[np.bool_], tuple[str, ...]]:
    """Rows, feature names, topics and topic names; names in order of first appearance."""
    columns: dict[Hashable, int] = {}
    names: dict[str, int] = {}
    data, indices, indptr = array("d"), array("q"), array("q", [0])
    members: list[list[int]] = []
    for features, labels in pairs:
        for feature, value in features.items():
            v = _number(feature, value)
            if v:
                data.append(v)
                indices.append(columns.setdefault(feature, len(columns)))
        indptr.append(len(data))
        members.append([names.setdefault(label, len(names)) for label in _labels(labels)])
    rows = csr_array(
        (np.array(data), np.array(indices), np.array(indptr)), shape=(len(members), len(columns))
    )
    return rows, tuple(columns), indicator(members, len(names)), tuple(names)


def indicator(members: list[list[int]], n_topics: int) -> NDArray[np.bool_]:
    """Bool matrix from each document's list of columns."""
    topics = np.zeros((len(members), n_topics), dtype=np.bool_)
    lengths = [len(columns) for columns in members]
    flat = np.fromiter((j for columns in members for j in columns), dtype=np.int64)
    topics[np.repeat(np.arange(len(members)), lengths), flat] = True
    return topics


def topics_of(
    y: ArrayLike | csr_array, topic_names: Iterable[str] | None
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Topics and their names from labels, one a row, or from an indicator matrix."""
    labels = csr_of(y).toarray() if issparse(y) else np.asarray(y)
    if labels.ndim == 1:
        if topic_names is not None:
            raise ParameterError(
                "topic_names belong to an indicator matrix, but y is 1-d: drop them"
            )
        values, codes = np.unique(labels, return_inverse=True)
        return codes[:, None] == np.arange(len(values)), tuple(map(str, values.tolist()))
    if labels.ndim > 2 or not np.isin(labels, (0, 1)).all():
        raise ParameterError("y must be one label a row or a 2-d indicator of 0 and 1")
    if topic_names is None:
        raise ParameterError("an indicator matrix needs topic_names, one for each of its columns")
    return labels.astype(np.bool_), tuple(topic_names)


def _number(feature: Hashable, value: Any) -> float:
    """Value as a float; 0 for NaN, which means absent."""
    try:
        v = number(value)
    except OverflowError:
        v = math.inf
    except (TypeError, ValueError):
        raise FeatureTypeError(
            f"feature {feature!r} holds {value!r}, which is not a number: encode it first, "
            "for example with river.preprocessing.OneHotEncoder"
        ) from None
    if math.isinf(v):
        raise FeatureError(f"feature {feature!r} is infinite: leave it out or clip it")
    return 0.0 if math.isnan(v) else v


def _labels(labels: object) -> list[str]:
    if isinstance(labels, (set, frozenset)):
        return sorted(map(str, labels))  # the order of a set changes from run to run
    return [str(label) for label in labels] if isinstance(labels, (list, tuple)) else [str(labels)]
