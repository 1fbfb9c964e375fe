"""What the cells of a column are, counted block by block, and which decimal separator they have."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from drift._values import is_missing, number
from drift.streams import texts
from drift.streams.source import EXACT, Seconds, Written

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drift.streams.source import Source

__all__ = ["Found", "Tally", "is_usable", "point_of", "value_of"]

#: Beyond it models take no value: its square, times a few, is finite.
_LARGEST = 1e150
#: Texts that are looked at for numbers, before all are.
_TRIED = 100


def value_of(cell: Any) -> float | None:
    """Return a cell that is no text as a number, a span of time in seconds; None: it is none."""
    if isinstance(cell, dt.timedelta):
        return cell.total_seconds()
    try:
        return number(cell)
    except (TypeError, ValueError):
        return None
    except OverflowError:
        return math.inf


def is_usable(value: float | None) -> bool:
    """Whether a number is there, and models take it."""
    return value is not None and abs(value) <= _LARGEST


@dataclass
class Found:
    """How often numbers of some spelling were found, and the first of them."""

    times: int = 0
    first: str = ""

    def add(self, text: str, times: int) -> None:
        """Count one that occurs so many times."""
        self.times += times
        self.first = self.first or text


@dataclass
class Tally:
    """What the cells of a column are."""

    #: Numbers and bools of a library, and texts that are plain numbers.
    numbers: int = 0
    bools: int = 0
    #: Spans of time among the numbers, each its seconds.
    spans: int = 0
    #: Times of a library, and how many of them that stand beside texts have a zone.
    seconds: int = 0
    zoned: int = 0
    #: A zone other than UTC, or a time of one.
    offset: str = ""
    #: Values of several parts.
    parts: int = 0
    #: Plain numbers with a decimal point, and those whose point may stand between thousands; of
    #: numbers that were no texts, fractions.
    points: int = 0
    grouped: Found = field(default_factory=Found)
    #: Plain numbers with zeros in front.
    padded: Found = field(default_factory=Found)
    #: Whole numbers that are another as a float.
    rounded: Found = field(default_factory=Found)
    #: Numbers such as 12e5.
    exponents: Found = field(default_factory=Found)
    #: All other cells, as texts without blanks around; blank ones are not counted.
    texts: Counter[str] = field(default_factory=Counter)
    #: Whether all cells so far came as arrays.
    ready: bool = True

    @property
    def plain(self) -> int:
        """Number of cells that are numbers as they stand."""
        return self.numbers + self.bools

    @property
    def codes(self) -> Found:
        """Numbers that are likelier codes: 12e5 among whole numbers."""
        rare = 2 * self.exponents.times < self.numbers
        return self.exponents if rare and not self.points and not self.grouped.times else Found()

    @property
    def is_empty(self) -> bool:
        """Whether no cell has a value."""
        return not (self.plain or self.seconds or self.parts or self.texts)

    # --- counting --------------------------------------------------------------------------------

    def add(self, cells: Any) -> Any:
        """Count cells; return them as numbers or seconds if they came as such, else NaN.

        Parameters
        ----------
        cells
            As a block of a `drift.streams.source.Source` has them.
        """
        if isinstance(cells, Seconds):
            self.seconds += int(np.isfinite(cells.values).sum())
            self.offset = "" if cells.zone in {None, "UTC"} else str(cells.zone)
            return cells.values
        if isinstance(cells, Written):
            self.numbers += int((~np.isnan(cells.values)).sum())
            self.points += int(cells.points.sum())
            if cells.grouped.any():
                first = cells.values[cells.grouped.argmax()]
                self.grouped.add(f"{first:.3f}", int(cells.grouped.sum()))
            return cells.values
        if isinstance(cells, np.ndarray):
            usable = np.abs(cells) <= _LARGEST
            self.numbers += int(usable.sum())
            self.points += int((usable & (np.floor(cells) != cells)).sum())
            self.texts.update(f"{v:g}" for v in cells[~usable & ~np.isnan(cells)].tolist())
            return np.where(usable, cells, np.nan)
        self.ready = False
        if set(map(type, cells)) <= {str, NoneType}:
            for text, times in Counter(cells).items():
                if text is not None:
                    self._count(text, times)
        else:
            for cell in cells:
                self._see(cell)
        return np.nan

    def _see(self, cell: Any) -> None:
        """Count a cell of any kind."""
        if is_missing(cell):
            return
        if isinstance(cell, str):
            self._count(cell)
        elif isinstance(cell, bool | np.bool_):
            self.bools += 1
        elif isinstance(cell, dt.date):
            self.seconds += 1
            self.zoned += getattr(cell, "tzinfo", None) is not None
            if isinstance(cell, dt.datetime) and cell.utcoffset():
                self.offset = self.offset or str(cell)
        elif hasattr(cell, "__len__") and not isinstance(cell, bytes):
            self.parts += 1
        elif (value := value_of(cell)) is None:
            self._count(texts.text_of(cell))
        else:
            self._see_number(cell, value)

    def _see_number(self, cell: Any, value: float) -> None:
        if not is_usable(value):
            self.texts[f"{value:g}"] += 1
            return
        self.numbers += 1
        if isinstance(cell, dt.timedelta):
            self.spans += 1
        elif isinstance(cell, int | np.integer):
            self._check_digits(int(cell), value)
        else:
            self.points += value != math.floor(value)

    def _count(self, text: str, times: int = 1) -> None:
        """Count a text."""
        text = text.strip()
        value = texts.plain_number(text)
        if value is not None and is_usable(value):
            self.numbers += times
            self._spell(text, value, times)
        elif text:
            self.texts[text] += times

    def _spell(self, text: str, value: float, times: int) -> None:
        """Count how a plain number is written."""
        if text.lstrip("+-").isdecimal():
            self._check_digits(int(text), value, times)
        if texts.is_padded(text):
            self.padded.add(text, times)
        if texts.is_grouped(text):
            self.grouped.add(text, times)
        elif "." in text:
            self.points += times
        elif texts.is_code(text):
            self.exponents.add(text, times)

    def _check_digits(self, whole: int, value: float, times: int = 1) -> None:
        if abs(value) >= EXACT and whole != int(value):
            self.rounded.add(str(whole), times)

    # --- the decimal separator -------------------------------------------------------------------

    def votes(self) -> dict[str, int]:
        """Count the numbers that can have one decimal separator alone, by it.

        A column of texts has none but those that are numbers as they stand.
        """
        votes = {".": self.points}
        if not any(map(_is_number, islice(self.texts, _TRIED))):
            return votes
        numbers = sum(n for text, n in self.texts.items() if _is_number(text))
        if 2 * numbers <= sum(self.texts.values()) - self.plain:
            return votes
        return Counter(votes) + Counter(texts.votes_of(self.texts))

    @property
    def has_both_marks(self) -> bool:
        """Whether a point stands, or may stand, between thousands where commas are decimal."""
        return self.grouped.times > 0 or any(
            "." in text and texts.votes_of({text: 1})[","] for text in self.texts if "," in text
        )


def _is_number(text: str) -> bool:
    """Whether a text is a number by itself, of points or of commas."""
    points, commas = texts.Numbers(".", letters=True), texts.Numbers(",", letters=True)
    return points.read(text) is not None or ("," in text and commas.read(text) is not None)


def point_of(tallies: Iterable[Tally], source: Source) -> str:
    """Return the decimal separator that most numbers of a table can have alone.

    Empty: no number tells, and it may be the comma.
    """
    votes, voters = Counter({".": 0, ",": 0}), []
    for tally in tallies:
        told = tally.votes()
        votes.update(told)
        if told.get(","):
            voters.append(tally)
    if 0 < len(voters) < source.voters and not voters[0].has_both_marks:
        return "."
    [(point, most), (_, least)] = votes.most_common()
    return point if most > least else "" if source.commas else "."
