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
    "COMPRESSED",
    "PathLike",
    "find_one",
    "find_path",
    "open_bytes",
    "read_bytes",
    "read_text",
    "sha256_of",
]

PathLike = str | Path

_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".xz": lzma.LZMADecompressor,
    ".gz": lambda: zlib.decompressobj(16 + zlib.MAX_WBITS),  # that is, with gzip's header
    ".bz2": bz2.BZ2Decompressor,
}
#: Suffixes of compressed files.
COMPRESSED = (*_DECOMPRESSORS, ".zip")
#: Bytes of a compressed file that are read at a time.
_BLOCK = 1 << 18
#: What `zipfile` raises: of damaged, encrypted and unknown content.
_UNZIPPING = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError),
    *(OSError, ValueError, RuntimeError),
)
#: A compressed file may grow to this size, or by this factor. Published data grow up to 30 times;
#: a decompression bomb grows thousands of times.
_ALWAYS_ALLOWED, _RATIO = 1 << 26, 100


def read_bytes(path: PathLike) -> tuple[bytes, bytes]:
    """Return a file's bytes as stored, and after decompression.

    Parameters
    ----------
    path
        A plain file, one whose suffix is .xz, .gz or .bz2, or a .zip with one file in it.

    Raises
    ------
    DataError
        The file is missing, empty or truncated, or decompresses to more than 64 MiB and more than
        a hundred times its size.
    """
    path = Path(path)
    with _opened(path) as file:
        raw = file.read()
    parts = _unpacked(io.BytesIO(raw), len(raw), path)
    content = raw if parts is None else b"".join(parts)
    if not content:
        raise DataError(path, None, "the file is empty: fetch it again")
    return raw, content


def open_bytes(path: PathLike) -> io.BufferedIOBase:
    """Open a file for its bytes after decompression, which are not all in memory.

    Parameters
    ----------
    path
        As of `read_bytes`.

    Raises
    ------
    DataError
        The file cannot be read, or as of `read_bytes`, some of them only while it is read.
    """
    path = Path(path)
    file = _opened(path)
    parts = _unpacked(file, path.stat().st_size, path)
    return file if parts is None else io.BufferedReader(Blocks(parts, file), _BLOCK)


def _opened(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(path, None, f"cannot be read ({error.strerror}): check the path") from error


def _unpacked(file: BinaryIO, size: int, path: Path) -> Iterator[bytes] | None:
    """Return the content of a compressed file, in parts; None: it is not compressed."""
    suffix = path.suffix.lower()
    if suffix not in COMPRESSED:
        return None
    most = max(_ALWAYS_ALLOWED, _RATIO * size)
    new = _DECOMPRESSORS.get(suffix)
    parts = _unzipped(file, path) if new is None else _decompressed(file, new, most + 1, path)
    return _up_to(most, parts, size, path)


def _up_to(most: int, parts: Iterator[bytes], size: int, path: Path) -> Iterator[bytes]:
    room = most
    for part in parts:
        room -= len(part)
        if room < 0:
            problem = (
                f"the compressed file of {size:,} bytes holds more than {most:,} bytes, "
                "more than a hundred times its size: if you trust it, decompress it yourself"
            )
            raise DataError(path, None, problem)
        yield part


def _unzipped(file: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        archive = zipfile.ZipFile(file)
        with archive, archive.open(_only_one(archive, path)) as content:
            while part := content.read(_BLOCK):
                yield part
    except DataError:
        raise
    except _UNZIPPING as error:
        problem = (
            f"is no zip file that can be read ({error}): fetch it again, or unpack it yourself"
        )
        raise DataError(path, None, problem) from error


def _only_one(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    # A Mac adds files that it hides, such as .DS_Store and __MACOSX/._name.
    files = [
        one
        for one in archive.infolist()
        if not one.is_dir() and not Path(one.filename).name.startswith(".")
    ]
    if len(files) != 1:
        names = ", ".join(one.filename for one in files[:5])
        raise DataError(path, None, f"holds {len(files)} files, not one ({names}): unpack it")
    return files[0]


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
        self._blocks, self._source, self._rest = blocks, source, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # Fill the buffer: pyarrow refuses a row that a short read cuts.
        room = memoryview(buffer)
        while room:
            if not self._rest:
                block = next(self._blocks, None)
                if block is None:
                    break
                self._rest = memoryview(block)
            n = min(len(room), len(self._rest))
            room[:n], room, self._rest = self._rest[:n], room[n:], self._rest[n:]
        return len(buffer) - len(room)

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
        super().close()


def _decompressed(file: BinaryIO, new: Callable[[], Any], most: int, path: Path) -> Iterator[bytes]:
    """Contents of all concatenated compressed streams, as `cat` and pbzip2 write them.

    A part that has `most` bytes, or more, is cut there: the caller refuses it.
    Python's own functions ignore a damaged stream after a good one, as trailing garbage.
    """
    start = 0
    rest = file.read(_BLOCK)
    while rest:
        stream = new()
        while not stream.eof:
            try:
                if not rest:
                    raise EOFError("it ends too early")  # noqa: TRY301 - as damaged as the others
                part = stream.decompress(rest, most)
            except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
                problem = (
                    f"the compressed file is cut short or damaged: from byte {start} on there is "
                    f"no complete stream ({error}); fetch it again, or cut off what does not belong"
                )
                raise DataError(path, None, problem) from error
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
        As of `read_bytes`.

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
    paths = (Path(folder) / f"{name}{suffix}" for suffix in ("", *COMPRESSED))
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
        raise DataError(
            folder, None, f"holds no {name}, plain or compressed ({', '.join(COMPRESSED)})"
        )
    return path


def sha256_of(parts: Iterable[bytes]) -> str:
    """Hash of the concatenated parts, as `cat parts | sha256sum` prints it."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
