"""The text format ``head index:value index:value ...`` that LIBSVM and LYRL2004 files share.

RCV1 has millions of pairs, so numpy parses regular blocks at once. Other blocks are parsed line by
line, which accepts tabs and unordered indices, and names a bad line.
"""

from __future__ import annotations

import math
import re
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from drift.errors import DataError
from drift.streams.texts import plain_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from drift.streams._files import PathLike

    _Columns = tuple[NDArray[np.int64], NDArray[np.float64], list[int]]

__all__ = ["parse"]

# Lines at a time: enough to keep numpy busy, few enough to keep the split text small.
_BLOCK = 10_000
# Possessive, so that there is no backtracking. A match may still be no number ("1.2.3").
_REGULAR = re.compile(rb"(?:[0-9]++:[-+.0-9eE]++ ?+)*+").fullmatch
# A larger index means a damaged file; scipy's error would not name the line.
_MAX_INDEX = 2**31 - 1
_INDEX = re.compile(r"[0-9]{1,18}").fullmatch
_COMMENT = re.compile(rb"(?:^|\s)#.*", re.DOTALL)


def parse(
    text: bytes, path: PathLike, n_features: int | None = None
) -> tuple[list[str], csr_array, list[int], int]:
    """Heads (the part of a line before its features) and rows of a text.

    What follows a ``#`` at the start of a line or after a space is a comment, as in svmlight.

    Parameters
    ----------
    text
        Complete lines; features count from 1 and become columns 0, 1, .... Where one is 0, as
        scikit-learn writes it, they count from 0.
    path
        The file, for errors.
    n_features
        Number of columns, and so the largest index allowed, from 1; None: the largest that occurs.

    Returns
    -------
    heads
        One a line; "" where the line starts with a space or with a feature.
    rows
        One a line.
    numbers
        Line numbers of these rows, from 1; lines of comments are omitted.
    first
        What features count from, 0 or 1.

    Raises
    ------
    DataError
        A line is empty. A feature has no colon, an index that is too small, too large or repeated,
        or a value that is no finite number. There are only comments.
    """
    heads, tails, numbers = _split(text, path)
    if not heads:
        raise DataError(path, None, "holds comments only: give a file with examples")
    blocks = []
    for at in range(0, len(tails), _BLOCK):
        part = slice(at, at + _BLOCK)
        known = range(n_features is not None, (n_features or _MAX_INDEX) + 1)
        block = _parse_fast(tails[part], known)
        blocks.append(block or _parse_slowly(tails[part], numbers[part], path, known))
    indices = np.concatenate([block[0] for block in blocks])
    values = np.concatenate([block[1] for block in blocks])
    indptr = np.cumsum([0, *chain.from_iterable(block[2] for block in blocks)])
    first = int(indices.min(initial=1))
    columns = indices - first
    shape = (len(heads), n_features or int(columns.max(initial=-1)) + 1)
    return heads, csr_array((values, columns, indptr), shape=shape), numbers, first


def _split(text: bytes, path: PathLike) -> tuple[list[str], list[bytes], list[int]]:
    heads, tails, numbers = [], [], []
    for at, full in enumerate(text.splitlines(), start=1):
        line = _COMMENT.sub(b"", full) if b"#" in full else full
        if b"#" in full and not line.strip():
            continue
        head, *rest = line.split(None, 1) or [b""]
        if b":" in head or line[:1].isspace():
            head, rest = b"", [line]
        tail = rest[0].strip() if rest else b""
        if not head and not tail:
            raise DataError(path, at, "the line is empty: delete it")
        try:
            heads.append(head.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise DataError(path, at, f"{head!r:.80} is not UTF-8 text") from error
        tails.append(tail)
        numbers.append(at)
    return heads, tails, numbers


def _parse_fast(tails: list[bytes], known: range) -> _Columns | None:
    """Columns of lines that are all regular; None if one is not."""
    if not all(map(_REGULAR, tails)):
        return None
    try:
        numbers = np.array(b" ".join(tails).replace(b":", b" ").split(), dtype=np.float64)
    except ValueError:
        return None
    lengths = [tail.count(b":") for tail in tails]
    indices, values = numbers[::2], numbers[1::2]
    rising = np.diff(indices, prepend=0) > 0
    first = np.cumsum([0, *lengths])[:-1]
    rising[first[np.array(lengths) > 0]] = True
    legal = rising.all() and np.all((indices >= known.start) & (indices < known.stop))
    good = legal and np.isfinite(values).all()
    return (indices.astype(np.int64), values, lengths) if good else None


def _parse_slowly(tails: list[bytes], lines: list[int], path: PathLike, known: range) -> _Columns:
    rows = [_row(tail, line, path, known) for tail, line in zip(tails, lines, strict=True)]
    pairs = list(chain.from_iterable(sorted(row.items()) for row in rows))
    indices = np.array([index for index, _ in pairs], dtype=np.int64)
    values = np.array([value for _, value in pairs], dtype=np.float64)
    return indices, values, [len(row) for row in rows]


def _row(tail: bytes, line: int, path: PathLike, known: range) -> dict[int, float]:
    row: dict[int, float] = {}
    for pair in tail.decode("utf-8", "replace").split():
        key, colon, text = pair.partition(":")
        if not colon:
            raise DataError(path, line, f"no ':' in feature {pair!r:.80}: expected index:value")
        if not (_INDEX(key) and int(key) in known):
            span = f"from {known[0]} to {known[-1]}"
            problem = f"feature index {key!r:.80} is not a whole number {span}"
            raise DataError(path, line, problem)
        if int(key) in row:
            raise DataError(path, line, f"feature {key} occurs twice: keep one")
        row[int(key)] = _value(key, text, line, path)
    return row


def _value(key: str, text: str, line: int, path: PathLike) -> float:
    value = plain_number(text)
    if value is None:
        raise DataError(path, line, f"feature {key} holds {text!r:.80}, which is not a number")
    if not math.isfinite(value):
        raise DataError(path, line, f"feature {key} holds {text!r:.80}: values must be finite")
    return value
