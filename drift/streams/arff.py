"""Rows of ARFF files, as WEKA and MOA write them, and as they are found: dense and sparse."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from drift._checks import counted
from drift.errors import DataError
from drift.streams.decoding import lines_of
from drift.streams.source import ROWS, Source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from drift.streams.decoding import Open

__all__ = ["ArffSource"]

_NAME = r"""(?:'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s{]+))"""
_ATTRIBUTE = re.compile(rf"@attribute\s+{_NAME}\s*(?P<type>.*)", re.IGNORECASE).fullmatch
#: Other lines of a head; KEEL says which attributes are inputs.
_HEAD = {"@relation", "@inputs", "@input", "@outputs", "@output"}
_NUMERIC = {"numeric", "real", "integer"}
_TYPES = {*_NUMERIC, "string", "date"}
#: A quoted part of a line, with its quotes, a separator, or anything else.
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[,\t]|[^,\t'"]+|['"]""")
_ESCAPE = re.compile(r"\\(.)")
#: Parts of a format of dates in Java, as `strptime` has them.
_JAVA = {
    "yyyy": "%Y", "yy": "%y", "MMM": "%b", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d",
    "EEE": "%a", "HH": "%H", "H": "%H", "hh": "%I", "h": "%I", "a": "%p", "mm": "%M", "m": "%M",
    "ss": "%S", "s": "%S", "SSS": "%f", "Z": "%z", "X": "%z", "XXX": "%z",
}  # fmt: skip


class ArffSource(Source):
    """An ARFF file.

    Attributes of numbers hold numbers; nominal ones are categories, whatever their values; dates
    have their format; strings, and dates without a format, are read as texts of a CSV file are. A
    value of a sparse row that is not there is 0,
    or the first nominal value.

    Parameters
    ----------
    opened
        Opens the bytes.
    path
        For errors.
    name
        Of the stream.
    encoding
        Of the text; None: UTF-8, or UTF-16 with a byte order mark.

    Raises
    ------
    DataError
        A line that is none of ARFF's, or not in the encoding.
    """

    def __init__(self, opened: Open, path: Path, name: str, encoding: str | None) -> None:
        super().__init__(name)
        self._opened, self._path, self._encoding = opened, path, encoding
        #: The values of each nominal attribute, None for others.
        self._nominal: list[dict[str, None] | None] = []
        #: The format of each date that has one, as `strptime` wants it.
        self._formats: dict[int, str] = {}
        for number, line in self._lines():
            word = line.split(None, 1)[0].lower()
            if word == "@data":
                break
            if word == "@attribute":
                self._attribute(line, number)
            elif word not in _HEAD:
                problem = f"is no line of an ARFF file's head: {line!r:.60}"
                raise DataError(path, number, problem)
        else:
            raise DataError(path, None, "is no ARFF file: it has no line @data")
        if not self.names:
            raise DataError(path, None, "is no ARFF file: it has no attributes")
        nominal = zip(self.names, self._nominal, strict=True)
        self.categories = {one for one, values in nominal if values is not None}

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines that are no comments, with their numbers."""
        lines = lines_of(self._opened, self._path, self._encoding)
        return ((number, line) for number, line in lines if not line.startswith("%"))

    def _attribute(self, line: str, number: int) -> None:
        found = _ATTRIBUTE(line)
        if found is None:
            raise DataError(self._path, number, f"is no attribute: {line!r:.60}")
        inner = found["single"] if found["single"] is not None else found["double"]
        name = found["bare"] if inner is None else _ESCAPE.sub(r"\1", inner)
        kind = found["type"].strip()
        if kind.startswith("{"):
            self._nominal.append(dict.fromkeys(_values(kind[1:].rpartition("}")[0])))
        elif kind.partition(" ")[0].lower() in _TYPES:
            self._nominal.append(None)
            word, _, form = kind.partition(" ")
            if word.lower() == "date" and form.strip():
                self._formats[len(self.names)] = _format(_unquoted(form))
        else:
            problem = f"attribute {name!r} has no type that is known: {kind!r:.40}"
            raise DataError(self._path, number, problem)
        self.names.append(name.strip())

    def blocks(self, names: Sequence[str], spelled: Collection[str]) -> Iterator[list[Any]]:
        """Yield cells; see `drift.streams.source.Source`."""
        at_of = {name: at for at, name in enumerate(self.names)}
        places = [at_of[name] for name in names]
        lines = self._lines()
        while not next(lines)[1].lower().startswith("@data"):
            pass
        rows = (self._row(line, number) for number, line in lines)
        while block := list(islice(rows, ROWS)):
            yield [[row[at] for row in block] for at in places]

    def _row(self, line: str, number: int) -> list[Any]:
        if line.startswith("{"):
            return self._sparse(line, number)
        values = _values(line)
        if len(values) == len(self.names) + 1 and re.fullmatch(r"(\{.*\})?", values[-1]):
            self._note(values.pop(), number)
        if len(values) != len(self.names):
            found, wanted = counted(len(values), "value"), counted(len(self.names), "attribute")
            raise DataError(self._path, number, f"has {found} for {wanted}: mend the line")
        return [self._checked(at, value, number) for at, value in enumerate(values)]

    def _note(self, rest: str, number: int) -> None:
        """Say what stands behind the values: a weight, or MOA's last separator."""
        kind = "weights of rows, which are not used" if rest else "empty values at the end of rows"
        if not any(kind in note for note in self.notes):
            self.notes.append(f"left out: {kind}; the first, {rest!r}, is in line {number}")

    def _sparse(self, line: str, number: int) -> list[Any]:
        row: list[Any] = [
            "0" if values is None else next(iter(values), None) for values in self._nominal
        ]
        if weighted := re.fullmatch(r"(\{.*\})\s*,\s*(\{[^{}]*\})", line):
            line = weighted[1]
            self._note(weighted[2], number)
        for pair in _split(line[1:].rpartition("}")[0]):
            index, value = [*pair.split(None, 1), "", ""][:2]
            if not (index.isdecimal() and int(index) < len(row) and value.strip()):
                problem = f"{pair!r:.40} is no index and value: mend the line"
                raise DataError(self._path, number, problem)
            row[int(index)] = self._checked(int(index), _unquoted(value), number)
        return row

    def _checked(self, at: int, value: str, number: int) -> Any:
        if value == "?":
            return None
        if at in self._formats:
            try:
                return datetime.strptime(value, self._formats[at])  # noqa: DTZ007 - if it has none
            except ValueError as error:
                problem = f"{self.names[at]!r}: {error}: mend the line, or the attribute's format"
                raise DataError(self._path, number, problem) from None
        nominal = self._nominal[at]
        if nominal is not None and value not in nominal:
            raise DataError(
                self._path,
                number,
                f"{self.names[at]!r} is {value!r:.40}, none of its values "
                f"{', '.join(nominal)[:80]}: mend the line, or the attribute",
            )
        return value


def _format(java: str) -> str:
    """Return a format of dates as `strptime` wants it.

    Examples
    --------
    >>> _format("dd.MM.yyyy'T'HH:mm")
    '%d.%m.%YT%H:%M'
    """
    parts = re.finditer(r"'[^']*'|([A-Za-z])\1*|.", java)
    return "".join(_JAVA.get(part[0], part[0].strip("'")) for part in parts)


def _values(text: str) -> list[str]:
    r"""Split a line at commas, or tabs, outside of quotes, and take the quotes away.

    Examples
    --------
    >>> _values("1, 'a, b' ,\"it's\",?")
    ['1', 'a, b', "it's", '?']
    """
    return [_unquoted(part) for part in _split(text)]


def _split(text: str) -> list[str]:
    if not text.strip():
        return []
    separator = "\t" if "," not in text and "\t" in text else ","
    parts = [""]
    for token in _TOKEN.findall(text):
        if token == separator:
            parts.append("")
        else:
            parts[-1] += token
    return parts


def _unquoted(part: str) -> str:
    part = part.strip()
    if len(part) > 1 and part[0] == part[-1] and part[0] in "'\"":
        return _ESCAPE.sub(r"\1", part[1:-1]).strip()
    return part
