"""Bytes of a data file. A truncated file is an error, never a shorter stream."""

from __future__ import annotations

import bz2
import codecs
import hashlib
import io
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from drift.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "PathLike",
    "find_one",
    "find_path",
    "open_bytes",
    "read_bytes",
    "read_text",
    "sha256_of",
]

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
        raise _unreadable(path, error) from error
    new = _DECOMPRESSORS.get(path.suffix.lower())
    content = raw if new is None else b"".join(_decompressed(io.BytesIO(raw), len(raw), new, path))
    if not content:
        raise DataError(path, None, "the file is empty: fetch it again")
    return raw, content


def open_bytes(path: PathLike) -> io.BufferedIOBase:
    """Open a file for its bytes after decompression, which are not all in memory.

    Parameters
    ----------
    path
        A plain file, one whose suffix is .xz, .gz or .bz2, or a .zip with one file in it.

    Raises
    ------
    DataError
        The file cannot be read, or as of `read_bytes`, some of them only while it is read.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    try:
        if suffix == ".zip":
            return _open_zipped(path)
        file = path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from error
    if (new := _DECOMPRESSORS.get(suffix)) is None:
        return file
    size = path.stat().st_size
    return io.BufferedReader(Blocks(_decompressed(file, size, new, path), file), _BLOCK)


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(path, None, f"cannot be read ({error.strerror}): check the path")


def _open_zipped(path: Path) -> io.BufferedIOBase:
    try:
        archive = zipfile.ZipFile(path)
        files = [
            one
            for one in archive.infolist()
            if not one.is_dir() and not one.filename.startswith("__MACOSX/")
        ]
        if len(files) != 1:
            names = ", ".join(one.filename for one in files[:5])
            raise DataError(path, None, f"holds {len(files)} files, not one ({names}): unpack it")
        return io.BufferedReader(archive.open(files[0]))  # type: ignore[type-var]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise DataError(path, None, f"is no zip file that can be read: {error}") from error


class Blocks(io.RawIOBase):
    """Blocks of bytes as a file.

    Parameters
    ----------
    blocks
        Its content.
    source
        The file that they come from, which is closed with this one; None: nothing is.
    """

    def __init__(self, blocks: Iterator[bytes], source: BinaryIO | None = None) -> None:
        super().__init__()
        self._blocks, self._source, self._rest = blocks, source, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = block
        n = min(len(buffer), len(self._rest))
        buffer[:n], self._rest = self._rest[:n], self._rest[n:]
        return n

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
        super().close()


def _decompressed(file: BinaryIO, size: int, new: Callable[[], Any], path: Path) -> Iterator[bytes]:
    """Contents of all concatenated compressed streams, as `cat` and pbzip2 write them.

    Python's own functions ignore a damaged stream after a good one, as trailing garbage.
    """
    most = max(_ALWAYS_ALLOWED, _RATIO * size)
    room, start = most, 0
    rest = file.read(_BLOCK)
    while rest:
        stream = new()
        while not stream.eof:
            try:
                if not rest:
                    raise EOFError("it ends too early")  # noqa: TRY301 - as damaged as the others
                part = stream.decompress(rest, room + 1)
            except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
                problem = (
                    f"the compressed file is cut short or damaged: from byte {start} on there is "
                    f"no complete stream ({error}); fetch it again, or cut off what does not belong"
                )
                raise DataError(path, None, problem) from error
            room -= len(part)
            if room < 0:
                problem = (
                    f"the compressed file of {size:,} bytes holds more than {most:,} bytes, "
                    "more than a hundred times its size: if you trust it, decompress it yourself"
                )
                raise DataError(path, None, problem)
            if part:
                yield part
            rest = stream.unused_data if stream.eof else file.read(_BLOCK)
        rest = rest.lstrip(b"\0")  # padding
        while not rest and (block := file.read(_BLOCK)):
            rest = block.lstrip(b"\0")
        start = file.tell() - len(rest)


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
