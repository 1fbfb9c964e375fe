"""Reader of Electricity, the stream that most papers on concept drift have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drift.errors import DataError
from drift.streams._files import find_one, read_text, sha256_of
from drift.streams.documents import Documents
from drift.streams.texts import plain_number

if TYPE_CHECKING:
    from drift.streams._files import PathLike

__all__ = ["read_elec"]

_COLUMNS = ("period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")
_HEADER = ",".join((*_COLUMNS, "class"))


def read_elec(folder: PathLike) -> Documents:
    r"""Electricity: the market of New South Wales, a row each half hour from 1996 to 1998.

    Parameters
    ----------
    folder
        With ``elec.csv``, plain or compressed: a header line, then six numbers and the class.

    Returns
    -------
    Documents
        45,312 rows in the order of time: half hour of the day, prices and demands in New South
        Wales and in Victoria, and transfer between them, as the file has them, from 0 to 1. The
        topic is the class: 1 where the price is above its mean over the last 24 hours, else 0.

    Raises
    ------
    DataError
        The file is missing, cut short, or something else.

    References
    ----------
    .. [1] M. Harries, "SPLICE-2 comparative evaluation: electricity pricing", technical report,
       University of New South Wales (1999).

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from drift.streams import read_elec
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "elec.csv").write_text(
    ...         "period,nswprice,nswdemand,vicprice,vicdemand,transfer,class\n"
    ...         "0.0,0.05,0.4,0.003,0.4,0.41,1\n"
    ...     )
    ...     (row,) = read_elec(folder)
    >>> row[0]["nswprice"], row[1]
    (0.05, frozenset({'1'}))
    """
    path = find_one(folder, "elec.csv")
    raw, text = read_text(path)
    header, *lines = text.decode("utf-8", "replace").splitlines()
    if header != _HEADER or not lines:
        raise DataError(path, 1, f"expected the line {_HEADER} and then rows")
    rows = np.array([_row(path, number, line) for number, line in enumerate(lines, start=2)])
    return Documents.from_arrays(
        rows[:, :-1],
        rows[:, -1].astype(int),
        feature_names=_COLUMNS,
        name="elec",
        sha256=sha256_of([raw]),
    )


def _row(path: PathLike, number: int, line: str) -> list[float]:
    values = [value for field in line.split(",") if (value := plain_number(field)) is not None]
    good = len(values) == line.count(",") + 1 == 1 + len(_COLUMNS) and np.isfinite(values).all()
    if not good or values[-1] not in {0.0, 1.0}:
        raise DataError(path, number, "expected six numbers and the class, 0 or 1, between commas")
    return values
