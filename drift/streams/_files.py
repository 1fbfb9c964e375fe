"""Bytes of a data file. A truncated file is an error, never a shorter stream."""

from __future__ import annotations

import bz2
import codecs
import hashlib
import lzma
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["PathLike", "find_one", "find_path", "read_bytes", "read_text", "sha256_of"]

PathLike = str | Path

_SUFFIXES = ("", ".xz", ".gz", ".bz2")
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".xz": lzma.LZMADecompressor,
    ".gz": lambda: zlib.decompressobj(16 + zlib.MAX_WBITS),  # that is, with gzip's header
    ".bz2": bz2.BZ2Decompressor,
}
#: Bytes of a compressed file that are read at a time.
_BLOCK = 1 << 18
#: A compressed file may grow to this size, or by this factor. Published data grow up to 30 times;
#: a decompression bomb grows thousands of times.
_ALWAYS_ALLOWED, _RATIO = 1 << 26, 100
_PADDING = re.compile(rb"\0*")


def read_bytes(path: PathLike) -> tuple[bytes, bytes]:
    """Return a file's bytes as stored, and after decompression.

    Parameters
    ----------
    path
        A plain file, or one whose suffix is .xz, .gz or .bz2.

    Raises
    ------
    DataError
        The file is missing, empty or truncated, or decompresses to more than 64 MiB and more than
        a hundred times its size.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(path, None, f"cannot be read ({error.strerror}): check the path") from error
    new = _DECOMPRESSORS.get(path.suffix)
    content = raw if new is None else _decompress(raw, new, path)
    if not content:
        raise DataError(path, None, "the file is empty: fetch it again")
    return raw, content


def _decompress(raw: bytes, new: Callable[[], Any], path: Path) -> bytes:
    """Contents of all concatenated compressed streams, as `cat` and pbzip2 write them.

    Python's own functions ignore a damaged stream after a good one, as trailing garbage.
    """
    parts, start, most = [], 0, max(_ALWAYS_ALLOWED, _RATIO * len(raw))
    room = most
    while start < len(raw):
        stream, at = new(), start
        while not stream.eof:
            try:
                if at >= len(raw):
                    raise EOFError("it ends too early")  # noqa: TRY301 - as damaged as the others
                parts.append(stream.decompress(raw[at : at + _BLOCK], room + 1))
            except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
                problem = (
                    f"the compressed file is cut short or damaged: from byte {start} on there is "
                    f"no complete stream ({error}); fetch it again, or cut off what does not belong"
                )
                raise DataError(path, None, problem) from error
            at += _BLOCK
            room -= len(parts[-1])
            if room < 0:
                problem = (
                    f"the compressed file of {len(raw):,} bytes holds more than {most:,} bytes, "
                    "more than a hundred times its size: if you trust it, decompress it yourself"
                )
                raise DataError(path, None, problem)
        end = min(at, len(raw)) - len(stream.unused_data)
        padding = _PADDING.match(raw, end)
        start = padding.end() if padding else end
    return b"".join(parts)


def read_text(path: PathLike) -> tuple[bytes, bytes]:
    """Return a text file's bytes as `read_bytes` does, without a byte order mark of UTF-8.

    Parameters
    ----------
    path
        A plain file, or one whose suffix is .xz, .gz or .bz2.

    Raises
    ------
    DataError
        As of `read_bytes`, or the last line has no newline.
    """
    raw, text = read_bytes(path)
    text = text.removeprefix(codecs.BOM_UTF8)
    if not text.endswith(b"\n"):
        line = text.count(b"\n") + 1
        problem = "the last line has no newline, so the file may be cut short"
        raise DataError(path, line, f"{problem}: fetch it again, or add the newline")
    return raw, text


def find_path(folder: PathLike, name: str) -> Path | None:
    """Path of a file in a folder, plain or compressed; None if there is none."""
    paths = (Path(folder) / f"{name}{suffix}" for suffix in _SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def find_one(folder: PathLike, name: str) -> Path:
    """Path of a file in a folder, plain or compressed.

    Raises
    ------
    DataError
        There is none.
    """
    path = find_path(folder, name)
    if path is None:
        raise DataError(folder, None, f"holds no {name}, plain or as .xz, .gz or .bz2")
    return path


def sha256_of(parts: Iterable[bytes]) -> str:
    """Hash of the concatenated parts, as `cat parts | sha256sum` prints it."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
