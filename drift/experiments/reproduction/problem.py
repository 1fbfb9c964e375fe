"""A data set as a model is to learn it: what is asked, at what scale, and what it is tested on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from drift.errors import ParameterError
from drift.experiments.learning import WINDOWS

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from drift.experiments.jobs import Record
    from drift.streams import Documents, ShiftingStream

__all__ = ["Part", "Problem"]


@dataclass(frozen=True, eq=False)
class Problem:
    """What a model learns, and what it is tested on.

    Parameters
    ----------
    documents
        The examples.
    target
        The topic whose documents are the positive examples; None: each document has one topic,
        which is its class.
    test
        Rows to test on, with the same columns; None: none.
    factor
        What every value is multiplied by.

    Raises
    ------
    ParameterError
        A document with no topic or several, where topics are classes; columns that differ.

    Examples
    --------
    >>> from drift.experiments import Problem
    >>> from drift.streams import segments
    >>> Problem(segments()).y[[0, 700]].tolist()
    ['path', 'window']
    >>> Problem(segments(), target="path").y[[0, 700]].tolist()
    [True, False]
    """

    documents: Documents
    target: str | None = None
    test: Documents | None = None
    factor: float = 1.0
    #: Windows of equal length that errors and supports are recorded in.
    windows: ClassVar[int] = 50

    def __post_init__(self) -> None:
        if self.test is not None and self.test.n_features != self.documents.n_features:
            raise ParameterError(
                f"{self.test.name} has {self.test.n_features} columns and {self.documents.name} "
                f"{self.documents.n_features}: they must be the same"
            )
        for part in (self.documents, self.test):
            if self.target is None and part is not None:
                part.classes()

    def _labels(self, documents: Documents) -> NDArray[Any]:
        if self.target is not None:
            return documents.has(self.target)
        names = np.array(documents.topic_names)
        # Strings even of digits: the models take the labels 0 and 1 for a binary problem.
        labels: NDArray[Any] = names[documents.classes()]
        return labels

    @cached_property
    def y(self) -> NDArray[Any]:
        """Labels, shape (n,): bool, or the names of the classes."""
        return self._labels(self.documents)

    @cached_property
    def rows(self) -> csr_array:
        """Examples as they are learnt, shape (n, d)."""
        return self._scaled(self.documents.rows)

    @property
    def span(self) -> tuple[int, int]:
        """First row that is learnt, and that after the last."""
        return 0, len(self.documents)

    @cached_property
    def test_part(self) -> tuple[csr_array, NDArray[Any]] | None:
        """Rows and labels to test on."""
        if self.test is None:
            return None
        return self._scaled(self.test.rows), self._labels(self.test)

    def _scaled(self, rows: csr_array) -> csr_array:
        return rows if self.factor == 1.0 else rows * self.factor

    @property
    def identity(self) -> Record:
        """Everything that results depend on."""
        test = self.test
        return {
            "stream": self.documents.name,
            "sha256": self.documents.sha256,
            "rows": len(self.documents),
            "target": self.target,
            "factor": self.factor,
            "test": None if test is None else [test.name, test.sha256, len(test)],
        }


@dataclass(frozen=True, eq=False)
class Part:
    """A stream whose target shifts, or one chunk of it, to be learnt in its own order.

    Parameters
    ----------
    shifting
        The stream.
    index
        Its number among those with as many shifts.
    chunk
        Number of the one chunk to learn; None: the whole stream.

    Examples
    --------
    >>> from drift.experiments.reproduction import Part
    >>> from drift.streams import ShiftingStream, segments
    >>> Part(ShiftingStream(segments(), ["sky", "grass"]), 0, chunk=1).span
    (1155, 2310)
    """

    shifting: ShiftingStream
    index: int
    chunk: int | None = None
    windows: ClassVar[int] = WINDOWS
    test_part: ClassVar[None] = None

    @property
    def y(self) -> NDArray[Any]:
        """Labels of the whole stream: workers cut their part, so that all are sent the same."""
        return self.shifting.y

    @property
    def rows(self) -> csr_array:
        """Examples of the whole stream."""
        return self.shifting.documents.rows

    @property
    def span(self) -> tuple[int, int]:
        """First row that is learnt, and that after the last."""
        size = self.shifting.chunk_size
        if self.chunk is None:
            return 0, len(self.y)
        return self.chunk * size, (self.chunk + 1) * size

    @property
    def identity(self) -> Record:
        """Everything that results depend on."""
        targets, (start, stop) = self.shifting.targets, self.span
        return {
            "stream": self.shifting.documents.name,
            "sha256": self.shifting.documents.sha256,
            "shifts": len(targets) - 1,
            "index": self.index,
            "targets": list(
                targets if self.chunk is None else targets[self.chunk : self.chunk + 1]
            ),
            "start": start,
            "stop": stop,
        }
