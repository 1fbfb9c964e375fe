"""Rows of JSON lines and JSON arrays: flat objects, nested ones, or messages of a topic."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

from drift.errors import DataError
from drift.streams.decoding import decoded, lines_of
from drift.streams.source import ROWS, Source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from drift.streams.decoding import Open

__all__ = ["JsonSource"]

#: Fields of a message that the consumer reads; see `drift.consumers.JsonCodec`.
_MESSAGE = {"features", "label", "id", "timestamp"}


class JsonSource(Source):
    """JSON lines or a JSON array: flat objects, or messages of a topic.

    Parameters
    ----------
    opened
        Opens the bytes.
    path
        For errors.
    name
        Of the stream.
    target
        What the label of a message becomes.
    times
        Fields of a message beside its features that are columns, too.
    rows
        How many rows with a label will be read; None: all.
    encoding
        Of the text; None: UTF-8, or UTF-16 with a byte order mark.
    """

    def __init__(  # noqa: PLR0913 - what tells how messages are read
        self,
        opened: Open,
        path: Path,
        name: str,
        *,
        target: str,
        times: Collection[str],
        rows: int | None,
        encoding: str | None,
    ) -> None:
        super().__init__(name)
        self._opened, self._path, self._encoding = opened, path, encoding
        self._target, self._times = target, set(times)
        #: Fields that stand beside the features of messages, and are none.
        self._beside: dict[str, None] = {}
        names: dict[str, None] = {}
        count = 0
        for count, row in enumerate(self._rows(), 1):  # noqa: B007 - used behind the loop
            names.update(dict.fromkeys(row))
            if rows is not None and row.get(target) is not None:
                rows -= 1
                if rows == 0:
                    break
        if not names:
            raise DataError(path, None, "is empty: give a file with an object in each line")
        self.names = list(names)
        if count == 1:
            self.hint = "; the file holds one object: write one for each example, in a line each"
        if self._beside:
            fields = ", ".join(map(repr, self._beside))
            self.notes.append(f"left out: {fields}, beside the features of messages")

    def blocks(self, names: Sequence[str], spelled: Collection[str]) -> Iterator[list[Any]]:
        """Yield cells; see `Source`."""
        rows = self._rows()
        while block := list(islice(rows, ROWS)):
            yield [[row.get(name) for row in block] for name in names]

    def _rows(self) -> Iterator[dict[str, Any]]:
        text = self._opened, self._path, self._encoding
        if next(decoded(*text)).lstrip().startswith("["):
            rows = self._loaded("".join(decoded(*text)), None)
            if rows is None:
                raise DataError(self._path, None, "is no JSON: an array of objects, or one a line")
            for at, row in enumerate(rows, 1):
                if not isinstance(row, dict):
                    raise DataError(self._path, None, f"element {at} is no object: delete it")
                yield self._flat(row, None)
            return
        for number, line in lines_of(*text):
            row = self._loaded(line, number)
            if not isinstance(row, dict):
                problem = "is no JSON object: mend the line, or delete it"
                raise DataError(self._path, number, problem)
            yield self._flat(row, number)

    def _loaded(self, text: str, number: int | None) -> Any:
        """Return what a JSON text holds; None: it is none."""
        try:
            # The first reading, of the names, also looks for names that are there twice.
            return json.loads(text, object_pairs_hook=None if self.names else _object)
        except _TwiceError as error:
            raise self._twice(str(error), number) from None
        except ValueError:
            return None

    def _twice(self, name: str, number: int | None) -> DataError:
        return DataError(self._path, number, f"has two values for {name!r}: rename one")

    def _flat(self, row: dict[str, Any], number: int | None) -> dict[str, Any]:
        features = row.get("features")
        if isinstance(features, dict) and (self._target == "label" or self._target not in row):
            # The codec's other fields are no features; the label is renamed to the target.
            others = {name: row[name] for name in self._times if name in row}
            others[self._target] = row.get("label")
            if both := features.keys() & others.keys():
                raise self._twice(min(both), number)
            beside = row.keys() - _MESSAGE - self._times
            self._beside.update(dict.fromkeys(name for name in row if name in beside))
            row = {**features, **others}
        if not any(isinstance(value, dict) for value in row.values()):
            return row
        entries = list(_entries(row))
        flat = dict(entries)
        if len(flat) < len(entries):
            raise self._twice(_repeated(entries), number)
        return flat


class _TwiceError(ValueError):
    """One object has a name twice."""


def _object(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(entries)
    if len(made) < len(entries):
        raise _TwiceError(_repeated(entries))
    return made


def _repeated(entries: list[tuple[str, Any]]) -> str:
    return next(name for name, n in Counter(name for name, _ in entries).items() if n > 1)


def _entries(row: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _entries(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
