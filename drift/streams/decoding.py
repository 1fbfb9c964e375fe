"""Texts of bytes: their encoding, and their lines."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from drift.errors import DataError, ParameterError

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Open = Callable[[], io.BufferedIOBase]

__all__ = ["BYTES", "decoded", "lines_of"]

#: Bytes that are read at a time.
BYTES = 1 << 20
#: Encodings by their byte order marks; of UTF-32 one begins as one of UTF-16 does.
_MARKED = {
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}


def decoded(opened: Open, path: Path, encoding: str | None) -> Iterator[str]:
    """Yield a text in blocks; of no encoding: UTF-8, or UTF-16 with a byte order mark."""
    with opened() as file:
        start = file.read(BYTES)
        if encoding is None:
            marked = (name for name, marks in _MARKED.items() if start.startswith(marks))
            encoding = next(marked, "utf-8-sig")
            if b"\0" in start and encoding == "utf-8-sig":
                problem = "has bytes of zero, as UTF-16 has: name its encoding"
                raise DataError(path, None, f"{problem} (encoding=, --encoding), utf-16-le, say")
        try:
            decoder = codecs.getincrementaldecoder(encoding)()
        except LookupError:
            raise ParameterError(f"there is no encoding {encoding!r}: cp1252, say") from None
        lines = 1
        while True:
            try:
                text = decoder.decode(start, final=not start)
            except UnicodeDecodeError as error:
                line = lines + error.object[: error.start].count(b"\n")
                raise DataError(path, line, _of_another_encoding(error)) from None
            except UnicodeError as error:  # UTF-16 without its mark
                problem = f"cannot be read ({error}): name its encoding, utf-16-le, say"
                raise DataError(path, None, problem) from None
            yield text
            if not start:
                return
            lines += text.count("\n")
            start = file.read(BYTES)


def lines_of(opened: Open, path: Path, encoding: str | None) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that are not blank, without blanks around, with their numbers."""
    before, rest = 0, ""
    for block in decoded(opened, path, encoding):
        *lines, rest = (rest + block).split("\n")
        for number, line in enumerate(map(str.strip, lines), before + 1):
            if line:
                yield number, line
        before += len(lines)
    if rest := rest.strip():
        yield before + 1, rest


def _of_another_encoding(error: UnicodeDecodeError) -> str:
    byte, tried = error.object[error.start], error.encoding.upper().removesuffix("-SIG")
    return (
        f"is not in {tried} (byte 0x{byte:02x}): name its encoding (encoding=, --encoding), "
        "cp1252, latin-1 or utf-16, say"
    )
