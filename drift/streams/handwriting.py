"""Handwritten digits and letters: the multiclass sets of the papers, each with its test part."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from drift.errors import DataError, needing
from drift.streams._files import find_one, find_path, read_bytes, read_text, sha256_of
from drift.streams.documents import Documents
from drift.streams.libsvm import read_libsvm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.streams._files import PathLike

    Split = tuple[Documents, Documents]

__all__ = ["letter", "mnist", "usps"]

_MNIST = (("train", "train"), ("t10k", "test"))
_IMAGES, _LABELS = 2051, 2049  # magic numbers of the idx files
#: Rows of letter that are for training, in the order of the file; the other 4,000 are for tests.
_LETTERS = 16_000
_LETTER_FIELDS = 17
_COUNT = re.compile(r"[0-9]{1,2}").fullmatch


def mnist(folder: PathLike) -> Split:
    """MNIST's digits: 60,000 images to train on and 10,000 to test, of 28 x 28 pixels.

    Parameters
    ----------
    folder
        With the four idx files, ``train-images-idx3-ubyte`` and so on, plain or compressed.

    Returns
    -------
    training, test : Documents
        Pixels from 0 to 255, and the digit as the topic.

    Raises
    ------
    DataError
        Files that are missing, cut short, or something else.
    """
    return _mnist_part(Path(folder), *_MNIST[0]), _mnist_part(Path(folder), *_MNIST[1])


def _mnist_part(folder: Path, prefix: str, name: str) -> Documents:
    images = find_one(folder, f"{prefix}-images-idx3-ubyte")
    labels = find_one(folder, f"{prefix}-labels-idx1-ubyte")
    (raw_images, pixels), (raw_labels, digits) = _idx(images, _IMAGES), _idx(labels, _LABELS)
    if len(pixels) != len(digits):
        raise DataError(images, None, f"holds {len(pixels)} images for {len(digits)} labels")
    sha256 = sha256_of([raw_images, raw_labels])
    return Documents.from_arrays(
        pixels.reshape(len(pixels), -1), digits, name=f"mnist-{name}", sha256=sha256
    )


def _idx(path: Path, magic: int) -> tuple[bytes, NDArray[np.uint8]]:
    """Bytes of an idx file as stored, and its array of unsigned bytes."""
    raw, content = read_bytes(path)
    dimensions = magic % 256
    end = 4 * (1 + dimensions)
    header = [int.from_bytes(content[at : at + 4]) for at in range(0, end, 4)]
    if len(content) < end or header[0] != magic:
        raise DataError(path, None, f"is no idx file of {dimensions} dimensions: fetch it again")
    values = np.frombuffer(content, dtype=np.uint8, offset=end)
    if len(values) != np.prod(header[1:]):
        raise DataError(path, None, "does not match its header: fetch it again")
    return raw, values.reshape(header[1:])


def usps(folder: PathLike) -> Split:
    """USPS's digits: 7,291 images to train on and 2,007 to test, of 16 x 16 pixels.

    Parameters
    ----------
    folder
        With ``usps.h5`` (pixels from 0 to 1) or with LIBSVM's ``usps`` and ``usps.t`` (from -1 to
        1, digits plus 1), plain or compressed.

    Returns
    -------
    training, test : Documents
        Values as the files have them, and the label as the topic.

    Raises
    ------
    DataError
        Files that are missing, damaged, or something else.
    MissingExtraError
        The file is HDF5 and h5py is not installed.
    """
    if find_path(folder, "usps") is not None:
        return (
            read_libsvm(find_one(folder, "usps"), n_features=256),
            read_libsvm(find_one(folder, "usps.t"), n_features=256),
        )
    return _usps_hdf5(Path(folder) / "usps.h5")


def _usps_hdf5(path: Path) -> Split:
    with needing("h5py", "data"):
        import h5py  # noqa: PLC0415 - optional
    if not path.is_file():
        raise DataError(path.parent, None, "holds neither usps.h5 nor LIBSVM's usps and usps.t")
    sha256 = sha256_of([path.read_bytes()])
    try:
        with h5py.File(path) as file:
            parts = {
                name: (file[f"{name}/data"][:], file[f"{name}/target"][:])
                for name in ("train", "test")
            }
    except (OSError, KeyError) as error:
        raise DataError(path, None, f"is no HDF5 file of USPS ({error}): fetch it again") from error
    return (
        Documents.from_arrays(*parts["train"], name="usps-train", sha256=sha256),
        Documents.from_arrays(*parts["test"], name="usps-test", sha256=sha256),
    )


def letter(folder: PathLike) -> Split:
    """UCI's letters: 26 capitals, 16 counts each, 16,000 examples to train on and 4,000 to test.

    Parameters
    ----------
    folder
        With ``letter-recognition.data``, plain or compressed: the letter and 16 numbers a line.

    Returns
    -------
    training, test : Documents
        Counts from 0 to 15 as the file has them, and the letter as the topic.

    Raises
    ------
    DataError
        The file is missing, cut short, or something else.
    """
    path = find_one(folder, "letter-recognition.data")
    raw, text = read_text(path)
    lines = [line.split(",") for line in text.decode("utf-8", "replace").splitlines()]
    for number, fields in enumerate(lines, start=1):
        if len(fields) != _LETTER_FIELDS or not all(map(_COUNT, fields[1:])):
            raise DataError(path, number, "expected a letter and 16 counts between commas")
    letters = np.array([fields[0] for fields in lines])
    counts = np.array([fields[1:] for fields in lines], dtype=np.float64)
    sha256 = sha256_of([raw])
    if len(lines) <= _LETTERS:
        raise DataError(path, None, f"has {len(lines)} lines, and the first {_LETTERS} train")
    return (
        Documents.from_arrays(
            counts[:_LETTERS], letters[:_LETTERS], name="letter-train", sha256=sha256
        ),
        Documents.from_arrays(
            counts[_LETTERS:], letters[_LETTERS:], name="letter-test", sha256=sha256
        ),
    )
