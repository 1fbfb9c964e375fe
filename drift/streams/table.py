"""Examples as a table of numbers: one array of bytes, in memory or mapped from a file.

Dicts are made row by row, when they are asked for. So a stream takes 8 bytes a cell, once for all
processes that read it.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import pickle
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import NDArray

    from drift.types import Features, Label

__all__ = ["Column", "Table", "Writer", "forget"]

#: Rows that are turned into dicts at a time.
_BLOCK = 512
#: A table of more bytes is kept in a file.
_IN_MEMORY = 1 << 26
#: What the bytes of a table end with, which no pickle does; before it, in as many bytes, the length
#: of the description of the columns.
_END = b"a table\n"


@dataclass(frozen=True)
class Column:
    """A feature of a table.

    Parameters
    ----------
    name
        Of the feature.
    at
        Its column in the array of values.
    texts
        The categories that the values number; None: the values are numbers.
    """

    name: str
    at: int
    texts: tuple[str, ...] | None = None


class Writer:
    """Collects the rows of a table, in memory as long as they are few.

    Parameters
    ----------
    width
        Values in a row.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._blocks: list[Any] = []
        self._size = 0
        self._file: Any = None

    def append(self, rows: NDArray[np.float64]) -> None:
        """Add rows, of shape (n, width); NaN is missing."""
        self._put(np.ascontiguousarray(rows, dtype=np.float64).tobytes())

    def _put(self, block: bytes) -> None:
        self._size += len(block)
        if self._file is None and self._size > _IN_MEMORY:
            self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115 - table and discard close it
                prefix="drift-", suffix=".table", delete=False
            )
            self._file.write(b"".join(self._blocks))
            self._blocks = []
        if self._file is None:
            self._blocks.append(block)
        else:
            self._file.write(block)

    def values(self) -> NDArray[np.float64]:
        """Return all rows, to be changed in place; nothing may be added after this."""
        if self._file is None:
            whole = np.frombuffer(bytearray(b"".join(self._blocks)), dtype=np.float64)
            self._blocks = [whole.data]
        else:
            self._file.flush()
            whole = np.memmap(self._file.name, dtype=np.float64, mode="r+")
        return whole.reshape(-1, self.width)

    def table(
        self, columns: Sequence[Column], codes: NDArray[np.int32], classes: Sequence[Label]
    ) -> Table:
        """Return the table of these rows.

        Parameters
        ----------
        columns
            Its features.
        codes
            The number of each row's class.
        classes
            The classes.
        """
        about = pickle.dumps((self.width, len(codes), tuple(columns), tuple(classes)), protocol=5)
        for block in (codes.tobytes(), about, len(about).to_bytes(len(_END), "little"), _END):
            self._put(block)
        if self._file is None:
            return Table(np.frombuffer(b"".join(self._blocks), dtype=np.uint8))
        self._file.close()
        table = Table(np.memmap(self._file.name, dtype=np.uint8, mode="r"))
        weakref.finalize(table, _remove, self._file.name)
        self._file = None
        return table

    def discard(self) -> None:
        """Remove the file, if there is one."""
        if self._file is not None:
            self._file.close()
            _remove(self._file.name)


def _remove(name: str) -> None:
    # Elsewhere than on POSIX a file that is mapped stays.
    with contextlib.suppress(OSError):
        Path(name).unlink()


class Table(Sequence["tuple[Features, Label]"]):
    """Examples, a pair of features and label each.

    Parameters
    ----------
    packed
        Bytes as of `Writer.table`.

    Examples
    --------
    >>> import numpy as np
    >>> from drift.streams.table import Column, Writer
    >>> writer = Writer(2)
    >>> writer.append(np.array([[1.5, 0.0], [np.nan, 1.0]]))
    >>> columns = [Column("price", 0), Column("shop", 1, ("north", "south"))]
    >>> table = writer.table(columns, np.array([1, 0], dtype=np.int32), ["no", "yes"])
    >>> list(table)
    [({'price': 1.5, 'shop': 'north'}, 'yes'), ({'shop': 'south'}, 'no')]
    """

    def __init__(self, packed: NDArray[np.uint8]) -> None:
        self.packed = packed
        end = len(packed) - 2 * len(_END)
        start = end - int.from_bytes(packed[end : -len(_END)].tobytes(), "little")
        self._width, n, self.columns, self.classes = pickle.loads(packed[start:end].tobytes())
        plain = np.asarray(packed)
        self.codes: NDArray[np.int32] = plain[start - 4 * n : start].view(np.int32)
        cells = plain[: 8 * self._width * n].view(np.float64)
        self.values: NDArray[np.float64] = cells.reshape(n, self._width)

    @staticmethod
    def is_packed(packed: NDArray[np.uint8]) -> bool:
        """Whether bytes are those of a table."""
        return packed[-len(_END) :].tobytes() == _END

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self.packed,)

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[tuple[Features, Label]]:
        for start in range(0, len(self), _BLOCK):
            yield from self._examples(start, start + _BLOCK)
            forget(self.packed)

    @overload
    def __getitem__(self, key: int) -> tuple[Features, Label]: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...
    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            return self.take(np.arange(len(self))[key])
        row = range(len(self))[key]
        return self._examples(row, row + 1)[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def take(self, rows: NDArray[Any]) -> Table:
        """Return the table of some rows, in this order."""
        writer = Writer(self._width)
        for start in range(0, len(rows), _BLOCK):
            writer.append(self.values[rows[start : start + _BLOCK]])
        return writer.table(self.columns, self.codes[rows], self.classes)

    @property
    def labels(self) -> list[Label]:
        """The label of each row."""
        return list(map(self.classes.__getitem__, self.codes.tolist()))

    @property
    def categories(self) -> dict[Hashable, int]:
        """Number of categories of each feature that has some."""
        return {one.name: len(one.texts) for one in self.columns if one.texts is not None}

    def fingerprint(self) -> str:
        """Return SHA-256 of the examples, whatever they were read from."""
        named = [(one.name, one.texts) for one in self.columns]
        digest = hashlib.sha256(
            repr((named, self.classes, len(self))).encode("utf-8", "surrogatepass")
        )
        used = [one.at for one in self.columns]
        for start in range(0, len(self), _BLOCK):
            block = self.values[start : start + _BLOCK, used].astype("<f8")
            block[np.isnan(block)] = np.nan  # of several NaNs one
            digest.update(
                block.tobytes() + self.codes[start : start + _BLOCK].astype("<i4").tobytes()
            )
            forget(self.packed)
        return digest.hexdigest()

    def _examples(self, start: int, stop: int) -> list[tuple[Features, Label]]:
        block = self.values[start:stop]
        columns = [_cells(block[:, one.at].tolist(), one.texts) for one in self.columns]
        names = [one.name for one in self.columns]
        labels = map(self.classes.__getitem__, self.codes[start:stop].tolist())
        return [
            ({name: v for name, v in zip(names, row, strict=True) if v == v}, y)
            for row, y in zip(zip(*columns, strict=True), labels, strict=True)
        ]


def forget(array: NDArray[Any]) -> None:
    """Give back memory of an array that is mapped from a file: it is read again when needed."""
    base: Any = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = getattr(base, "base", None)
    if base is not None and hasattr(base, "madvise"):
        base.madvise(mmap.MADV_DONTNEED)


def _cells(values: list[float], texts: Sequence[str] | None) -> Iterable[Any]:
    """Values, or the texts that they number; NaN stays."""
    return values if texts is None else [texts[int(v)] if v == v else v for v in values]
