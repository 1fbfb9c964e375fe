"""Binary streams whose target topic changes, as in the tracking paper.

All streams share one set of documents; a stream defines the target of each chunk.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from river.datasets.base import BINARY_CLF, Dataset

from drift._checks import check_integer
from drift.errors import ParameterError
from drift.streams.documents import Documents

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from scipy.sparse import csr_array

__all__ = ["ShiftingStream", "tracking_groups"]


class ShiftingStream(Dataset):
    """Documents whose target is one topic after another.

    The documents are split, in order, into as many equal chunks as there are targets; in chunk i
    the label is True where the story has the topic `targets[i]`. Documents left over at the end,
    fewer than there are targets, are dropped. A River dataset: iterate over it, any number of
    times, for pairs of features and bool.

    Parameters
    ----------
    documents
        The stories, in the order of time.
    targets
        One topic for each chunk; topics may repeat.

    Attributes
    ----------
    chunk_size : int
        Documents in each chunk.
    shifts : tuple of int
        Index of the first document of each chunk whose target differs from the chunk before it.
    y : ndarray of bool, shape (n_samples,)
        The labels.

    Raises
    ------
    ParameterError
        No targets, more targets than documents, or a topic that the documents lack.

    References
    ----------
    .. [1] Cavallanti, G., Cesa-Bianchi, N., Gentile, C. (2007). Tracking the best hyperplane with
       a simple budget Perceptron. Machine Learning 69, 143-167. Section 4.

    Examples
    --------
    >>> from drift.streams import Documents, ShiftingStream
    >>> documents = Documents.from_pairs(
    ...     [
    ...         ({"oil": 1}, "crude"),
    ...         ({"gas": 1}, "fuel"),
    ...         ({"oil": 2}, "crude"),
    ...         ({"gas": 2}, "fuel"),
    ...     ]
    ... )
    >>> stream = ShiftingStream(documents, ["crude", "fuel"])
    >>> [label for features, label in stream], stream.shifts
    ([True, False, False, True], (2,))
    >>> next(iter(stream.take(1)))
    ({'oil': 1.0}, True)
    """

    def __init__(self, documents: Documents, targets: Sequence[str]) -> None:
        if not isinstance(documents, Documents):
            raise ParameterError(
                f"documents must be drift.streams.Documents, not {type(documents).__name__}: see "
                "Documents.from_pairs and Documents.from_arrays"
            )
        self.targets = (targets,) if isinstance(targets, str) else tuple(targets)
        if not 0 < len(self.targets) <= len(documents):
            raise ParameterError(
                f"{len(self.targets)} targets for {len(documents)} documents: "
                "every chunk needs a target and at least one document: give fewer targets, or more "
                "documents"
            )
        self.chunk_size = len(documents) // len(self.targets)
        init: Any = super().__init__  # which River does not annotate
        init(
            task=BINARY_CLF,
            n_features=documents.n_features,
            n_samples=self.chunk_size * len(self.targets),
            sparse=True,
        )
        self.documents = documents.head(self.n_samples)
        has = {topic: self.documents.has(topic) for topic in set(self.targets)}
        self.y = np.concatenate(
            [
                has[topic][i * self.chunk_size : (i + 1) * self.chunk_size]
                for i, topic in enumerate(self.targets)
            ]
        )
        self.shifts = tuple(
            i * self.chunk_size
            for i in range(1, len(self.targets))
            if self.targets[i] != self.targets[i - 1]
        )

    @property
    def X(self) -> csr_array:  # noqa: N802 - a matrix, named as in scikit-learn
        """The documents as a matrix, shape (n_samples, n_features), not copied.

        Its columns are the features 0, 1, 2, ...; the stream's dicts have the documents' feature
        names, if any. Use one form for learning and predicting.
        """
        return self.documents.rows

    def __iter__(self) -> Iterator[tuple[dict[Hashable, float], bool]]:
        yield from zip(self.documents.features(), self.y.tolist(), strict=True)


def tracking_groups(
    documents: Documents,
    targets: Sequence[str],
    shifts: Sequence[int] = (0, 1, 3, 7),
    n_streams: int = 4,
    seed: int = 0,
) -> dict[int, list[ShiftingStream]]:
    """Shifting streams, grouped by their number of shifts, as the tracking paper draws them.

    No shift: one stream for each target, in their order. With s shifts a stream has s + 1 chunks.
    Their targets are drawn without replacement. If there are fewer than s + 1 targets, a random
    permutation of all is repeated.

    Parameters
    ----------
    documents
        The stories, in the order of time.
    targets
        The topics to draw from, all different. The paper has four.
    shifts
        Number of shifts of each group.
    n_streams
        Streams in each group with shifts.
    seed
        Seed of the draws. A group's draws do not depend on the other groups.

    Returns
    -------
    dict
        From the number of shifts to the group's streams.

    Raises
    ------
    ParameterError
        Targets that are repeated, missing, or too few to shift between; a negative number of
        shifts; no streams; more chunks than documents.

    References
    ----------
    .. [1] Cavallanti, G., Cesa-Bianchi, N., Gentile, C. (2007). Tracking the best hyperplane with
       a simple budget Perceptron. Machine Learning 69, 143-167. Section 4, "Datasets".

    Examples
    --------
    >>> from drift.streams import NEWSWIRE_TARGETS, newswire, tracking_groups
    >>> groups = tracking_groups(newswire(400), NEWSWIRE_TARGETS)
    >>> {shifts: len(streams) for shifts, streams in groups.items()}
    {0: 4, 1: 4, 3: 4, 7: 4}
    >>> groups[7][0].targets[:4] == groups[7][0].targets[4:]
    True
    """
    _refuse(len(documents), targets, shifts, n_streams)
    return {
        count: [
            ShiftingStream(documents, drawn) for drawn in _draw(targets, count, n_streams, seed)
        ]
        for count in shifts
    }


def _refuse(n: int, targets: Sequence[str], shifts: Sequence[int], n_streams: int) -> None:
    repeated = [topic for topic, times in Counter(targets).items() if times > 1]
    if repeated or not targets:
        raise ParameterError(f"targets must be different topics, at least one: {list(targets)}")
    for count in shifts:
        if check_integer("the number of shifts", count, least=0) >= n:
            raise ParameterError(
                f"{count} shifts take {count + 1} chunks, of one document or more: there are {n}"
            )
        if count and len(targets) < 2:
            raise ParameterError(
                f"{count} shifts need two targets to shift between: {targets[0]!r}"
            )
    check_integer("n_streams", n_streams)


def _draw(targets: Sequence[str], shifts: int, n_streams: int, seed: int) -> list[list[str]]:
    if shifts == 0:
        return [[topic] for topic in targets]
    rng = random.Random(f"{seed}, {shifts} shifts")
    chunks, k = shifts + 1, len(targets)
    rounds = -(-chunks // k)
    return [(rng.sample(list(targets), min(chunks, k)) * rounds)[:chunks] for _ in range(n_streams)]
