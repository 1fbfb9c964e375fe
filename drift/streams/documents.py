"""Documents with sets of topics: what every reader returns.

Experiments learn many binary targets (the topics C15, ECAT, ...) on the same stories. So documents
and topics are arrays that worker processes share, and a target is chosen later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse

from drift._checks import check_integer, counted, suggest
from drift._csr import csr_of
from drift.errors import ParameterError
from drift.streams._convert import (
    canonical,
    fingerprint,
    pairs_to_arrays,
    refuse_disagreement,
    topics_of,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from numpy.typing import ArrayLike, NDArray

__all__ = ["Documents"]


@dataclass(frozen=True, eq=False)
class Documents:
    """Sparse documents, in order, each with the set of its topics.

    Parameters
    ----------
    rows
        The documents, shape (n, d). Brought to canonical form: float64, indices sorted, no
        duplicates (they are added up), no explicit zeros.
    topics
        Which document has which topic: bool, shape (n, k).
    topic_names
        The k names of the columns of `topics`, all different.
    feature_names
        The d names of the columns of `rows`, all different. None: the columns are their own
        names, the ints 0, 1, 2, ...
    name
        Name of the data in results.
    sha256
        Hash of the files that were read, or of the arrays. `head` keeps it. Empty: computed from
        the arrays.
    notes
        What a reader says of the files.

    Raises
    ------
    ParameterError
        Shapes that do not agree, names that repeat, or a value which is not finite.

    Examples
    --------
    >>> from drift.streams import Documents
    >>> documents = Documents.from_pairs(
    ...     [({"oil": 1.0, "price": 0.5}, {"crude"}), ({"wheat": 2.0}, ["grain", "usa"])]
    ... )
    >>> len(documents), documents.n_features, documents.topic_names
    (2, 3, ('crude', 'grain', 'usa'))
    >>> documents.has("grain")
    array([False,  True])
    >>> list(documents)[0]
    ({'oil': 1.0, 'price': 0.5}, frozenset({'crude'}))
    """

    rows: csr_array
    topics: NDArray[np.bool_]
    topic_names: tuple[str, ...]
    feature_names: tuple[Hashable, ...] | None = None
    name: str = "documents"
    sha256: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._keep("rows", canonical(self.rows))
        self._keep("topics", np.asarray(self.topics, dtype=np.bool_))
        self._keep("topic_names", tuple(self.topic_names))
        refuse_disagreement(self.rows, self.topics, self.topic_names, self.feature_names)
        if not self.sha256:
            names = (self.topic_names, self.feature_names)
            self._keep("sha256", fingerprint(self.rows, self.topics, names))

    def _keep(self, field: str, value: object) -> None:
        # The dataclass is frozen for its users; the constructor may normalise its fields.
        object.__setattr__(self, field, value)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __repr__(self) -> str:
        n, d, k = *self.rows.shape, len(self.topic_names)
        return f"<Documents {self.name}: {n:,} x {d:,}, {counted(k, 'topic')}>"

    def __iter__(self) -> Iterator[tuple[dict[Hashable, float], frozenset[str]]]:
        names = np.array(self.topic_names, dtype=object)
        for i, features in enumerate(self.features()):
            yield features, frozenset(names[self.topics[i]])

    @property
    def n_features(self) -> int:
        """Number of columns, whether or not a document uses them."""
        return int(self.rows.shape[1])

    def features(self) -> Iterator[dict[Hashable, float]]:
        """Each document's features by name, in order, without the topics.

        Yields
        ------
        dict
            A new dict of Python floats, without the zeros.

        Examples
        --------
        >>> from drift.streams import Documents
        >>> list(Documents.from_arrays([[0.0, 2.0], [1.0, 0.0]], ["a", "b"]).features())
        [{1: 2.0}, {0: 1.0}]
        """
        names, rows = self.feature_names, self.rows
        for start, stop in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True):
            columns = rows.indices[start:stop].tolist()
            keys = columns if names is None else [names[column] for column in columns]
            yield dict(zip(keys, rows.data[start:stop].tolist(), strict=True))

    def has(self, topic: str) -> NDArray[np.bool_]:
        """Which documents carry a topic: bool, shape (n,).

        Parameters
        ----------
        topic
            One of `topic_names`.

        Raises
        ------
        ParameterError
            No such topic; the message names similar ones.
        """
        if topic not in self.topic_names:
            hint = suggest(topic, self.topic_names)
            raise ParameterError(f"{self.name} has no topic {topic!r}: {hint}")
        return self.topics[:, self.topic_names.index(topic)].copy()

    def classes(self) -> NDArray[np.intp]:
        """Return the column of each document's only topic, its class: shape (n,).

        Raises
        ------
        ParameterError
            A document has no topic or several.

        Examples
        --------
        >>> from drift.streams import Documents
        >>> Documents.from_arrays([[1], [2], [3]], ["a", "b", "a"]).classes()
        array([0, 1, 0])
        """
        if not (self.topics.sum(axis=1) == 1).all():
            topics = ", ".join(self.most_frequent(4))
            raise ParameterError(
                f"{self.name} has documents with no topic or several, which are no classes: name "
                f"one topic as the target, such as {topics}"
            )
        columns: NDArray[np.intp] = self.topics.argmax(axis=1)
        return columns

    def most_frequent(self, k: int, n: int | None = None) -> list[str]:
        """Names of the most frequent topics.

        Parameters
        ----------
        k
            Number of names at most. Topics without documents are omitted.
        n
            Count in the first `n` documents only; None: in all.

        Returns
        -------
        list of str
            The most frequent first; ties in the order of `topic_names`.

        Raises
        ------
        ParameterError
            `k` or `n` is negative, or no integer.

        Examples
        --------
        >>> from drift.streams import Documents
        >>> documents = Documents.from_arrays([[1], [2], [3]], ["a", "b", "b"])
        >>> documents.most_frequent(1), documents.most_frequent(5, n=1)
        (['b'], ['a'])
        """
        check_integer("k", k, least=0)
        counts = (self if n is None else self.head(n)).topics.sum(axis=0)
        order = np.argsort(-counts, kind="stable")[:k]
        return [self.topic_names[j] for j in order if counts[j]]

    def head(self, n: int) -> Documents:
        """Return the first documents, as views of the same memory.

        Parameters
        ----------
        n
            Number of documents, at least 0; all if there are fewer.

        Raises
        ------
        ParameterError
            `n` is negative, or no integer.
        """
        if check_integer("n", n, least=0) >= len(self):
            return self
        end = self.rows.indptr[n]
        # Slicing a csr_array copies it; its three arrays can be cut without.
        rows = csr_array(
            (self.rows.data[:end], self.rows.indices[:end], self.rows.indptr[: n + 1]),
            shape=(n, self.n_features),
            copy=False,
        )
        return replace(self, rows=rows, topics=self.topics[:n])

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[Mapping[Hashable, Any], object]], name: str = "pairs"
    ) -> Documents:
        """Documents from pairs of features and topics.

        Parameters
        ----------
        pairs
            Features by name, with their topics: a set, frozenset, list or tuple of labels, or one
            label alone. A topic's name is `str` of its label. NaN and 0 mean absent.
        name
            Name of the data.

        Raises
        ------
        FeatureTypeError
            A value is no number.
        FeatureError
            A value is infinite.

        Examples
        --------
        >>> from drift.streams import Documents
        >>> Documents.from_pairs([({"x": 1}, ["b", "a"]), ({"y": 2}, 7)]).topic_names
        ('b', 'a', '7')
        """
        rows, features, topics, topic_names = pairs_to_arrays(pairs)
        return cls(rows, topics, topic_names, features, name)

    @classmethod
    def from_arrays(  # noqa: PLR0913 - what documents are, by keyword
        cls,
        X: ArrayLike | csr_array,
        y: ArrayLike | csr_array,
        topic_names: Iterable[str] | None = None,
        feature_names: Iterable[Hashable] | None = None,
        name: str = "arrays",
        *,
        sha256: str = "",
    ) -> Documents:
        """Documents from a matrix and its labels, scikit-learn's data sets included.

        Parameters
        ----------
        X
            Dense or sparse, shape (n, d). NaN and 0 mean absent.
        y
            One label a row, shape (n,), or an indicator matrix of 0 and 1, dense or sparse,
            shape (n, k).
        topic_names
            Names of the columns of an indicator matrix, then required. For labels: leave it out;
            the topics are `str` of the sorted labels.
        feature_names
            Names of the columns of X; None: ints from 0.
        name
            Name of the data.
        sha256
            Hash of the files that they are from; empty: that of the arrays.

        Raises
        ------
        ParameterError
            Shapes that do not agree, an indicator without names, an infinite value.

        Examples
        --------
        >>> from drift.streams import Documents
        >>> documents = Documents.from_arrays([[1.0, 0.0], [0.0, 2.0]], [3, 1])
        >>> documents.topic_names, documents.has("3")
        (('1', '3'), array([ True, False]))
        """
        rows = csr_array(csr_of(X) if issparse(X) else np.asarray(X, dtype=np.float64), copy=True)
        rows.data[np.isnan(rows.data)] = 0
        topics, names = topics_of(y, topic_names)
        features = None if feature_names is None else tuple(feature_names)
        return cls(rows, topics, names, features, name, sha256)
