"""Bytes of a data file, whole or not at all: a short file must never become a short stream."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from drift.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PathLike", "find_one", "find_path", "read_bytes", "read_text", "sha256_of"]

PathLike = str | Path

_SUFFIXES = ("", ".xz", ".gz", ".bz2")
_DECOMPRESS = {".xz": lzma.decompress, ".gz": gzip.decompress, ".bz2": bz2.decompress}


def read_bytes(path: PathLike) -> tuple[bytes, bytes]:
    """Return a file's bytes as they lie on the disk, and after decompression.

    Parameters
    ----------
    path
        A plain file, or one whose suffix is .xz, .gz or .bz2.

    Raises
    ------
    DataError
        The file is missing, empty or damaged: a compressed one that does not end where its format
        says.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(path, None, f"cannot be read ({error.strerror}): check the path") from error
    try:
        content = _DECOMPRESS.get(path.suffix, bytes)(raw)
    except (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error) as error:
        problem = f"the compressed file is cut short or damaged ({error}): fetch it again"
        raise DataError(path, None, problem) from error
    if not content:
        raise DataError(path, None, "the file is empty: fetch it again")
    return raw, content


def read_text(path: PathLike) -> tuple[bytes, bytes]:
    """Return a text file's bytes as `read_bytes` does.

    Parameters
    ----------
    path
        A plain file, or one whose suffix is .xz, .gz or .bz2.

    Raises
    ------
    DataError
        As of `read_bytes`, and if the last line lacks its newline.
    """
    raw, text = read_bytes(path)
    if not text.endswith(b"\n"):
        line = text.count(b"\n") + 1
        raise DataError(path, line, "the last line lacks its newline, so the file is cut short")
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
        Neither is there.
    """
    path = find_path(folder, name)
    if path is None:
        raise DataError(folder, None, f"holds no {name}, plain or as .xz, .gz or .bz2")
    return path


def sha256_of(parts: Iterable[bytes]) -> str:
    """Fingerprint of the parts one after the other, as `cat parts | sha256sum` prints it."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
