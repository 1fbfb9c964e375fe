"""Labels: which rows have one, which classes they are, and which of these may be slips."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from drift._checks import counted
from drift._values import is_missing
from drift.errors import ParameterError
from drift.streams import texts
from drift.streams.notes import QUOTED, named, quoted, twins
from drift.streams.stream import problem_of
from drift.streams.tally import value_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from drift.types import Label

__all__ = ["FEW", "Labels", "classes_of", "doubts", "row_number"]

#: With fewer rows a class may have one by chance, as a column may count up or equal the label.
FEW = 100
#: Beyond so many classes the labels are likelier numbers or texts.
_CLASSES = 100


class Labels:
    """Labels by number, as they come, and the classes that they are, once all have come."""

    def __init__(self, where: str, kept: list[NDArray[np.bool_]], *, declared: bool) -> None:
        self._where, self._kept, self._declared = where, kept, declared
        self._numbers: dict[Any, int] = {}
        self._first: list[int] = []
        self._blocks: list[NDArray[np.int32]] = []
        self.missing: Counter[str] = Counter()
        self.rows = 0

    def present(
        self, cells: list[Any], most: int | None, names: Collection[int]
    ) -> NDArray[np.bool_]:
        """Return which rows are the first `most` that have a label; None: all that have one.

        Those whose numbers are in `names` have the names of the columns in its place.
        """
        try:  # of labels few differ
            gone = {cell for cell in set(cells) if self._no_label(cell)}
            which = np.array([cell not in gone for cell in cells], dtype=np.bool_)
        except TypeError:  # one is a list, say
            which = np.array([not self._no_label(cell) for cell in cells], dtype=np.bool_)
        which[list(names)] = False
        if most is not None and which.sum() >= most:
            which[np.flatnonzero(which)[most - 1] + 1 :] = False
            cells = cells[: int(np.flatnonzero(which)[-1]) + 1]
        self.missing.update(
            cell if isinstance(cell, str) else ""
            for cell, present in zip(cells, which.tolist(), strict=False)
            if not present
        )
        return which

    def _no_label(self, cell: Any) -> bool:
        if not isinstance(cell, str):
            return is_missing(cell)
        return not cell.strip() or (not self._declared and texts.is_missing_text(cell))

    def add(self, cells: list[Any]) -> None:
        """Number the labels of rows that have one."""
        codes = np.empty(len(cells), dtype=np.int32)
        for i, cell in enumerate(cells):
            key: Any = cell if type(cell) is str else (type(cell), cell)
            try:
                code = self._numbers.get(key)
            except TypeError:
                row, problem = row_number(self._kept, self.rows + i), problem_of(cell)
                raise ParameterError(f"{self._where}: row {row} has {problem}") from None
            if code is None:
                code = self._numbers[key] = len(self._first)
                self._first.append(self.rows + i)
            codes[i] = code
        self._blocks.append(codes)
        self.rows += len(cells)

    def note(self) -> list[str]:
        """Say how many rows have no label."""
        gone = sum(self.missing.values())
        if not gone:
            return []
        words = {text: n for text, n in self.missing.items() if text.strip()}
        column, total = self._where.rpartition(": ")[2], self.rows + gone
        shown = f": {quoted(words)}" if words else ""
        return [f"left out: {gone:,} of {total:,} rows, without a label in {column!r}{shown}"]

    def classes(self) -> tuple[NDArray[np.int32], list[Any], list[str]]:
        """Return the class of each row by number, the classes, and notes."""
        raw = [key if type(key) is str else key[1] for key in self._numbers]
        labels, notes = classes_of(raw)
        for first, value, label in zip(self._first, raw, labels, strict=True):
            if isinstance(label, float):
                raise ParameterError(
                    f"{self._where}: row {row_number(self._kept, first)} has the label "
                    f"{str(value).strip()}: classes are texts or whole numbers, no fractions"
                )
        known: dict[Any, int] = {}
        numbers = np.array([known.setdefault(one, len(known)) for one in labels], dtype=np.int32)
        codes = numbers[np.concatenate([*self._blocks, np.empty(0, dtype=np.int32)])]
        return codes, list(known), notes


def doubts(classes: Sequence[Label], codes: NDArray[np.int32]) -> list[str]:
    """Say what labels are unlikely: too many, of one row, all but alike, or sorted.

    Parameters
    ----------
    classes
        All of them.
    codes
        The number of each row's class, in the order of the stream.

    Examples
    --------
    >>> import numpy as np
    >>> from drift.streams.labels import doubts
    >>> doubts(["no", "yes", "Yes"], np.array([0, 2, 1, 0]))
    ["'yes' and 'Yes' are different classes: write them alike if they are one"]
    >>> doubts(["no", "yes"], np.repeat([0, 1], 50))
    ['rows are sorted by their labels: shuffle them, or order them by a time (time=, --time)']
    """
    rows, notes = len(codes), []
    counts = np.bincount(codes, minlength=len(classes)).tolist()
    once = [label for label, n in zip(classes, counts, strict=True) if n == 1]
    if len(classes) > _CLASSES:
        notes.append(
            f"there are {len(classes):,} different labels in {counted(rows, 'row')}, each a class "
            "of its own: amounts and free text are no classes"
        )
    elif once and rows >= FEW:
        has = "each has the labels" if once[1:] else "has the label"
        notes.append(
            f"one row of {rows:,} {has} {named(once)}: mend or delete such rows if they are "
            "mistakes"
        )
    gone = {
        label: n
        for label, n in zip(classes, counts, strict=True)
        if isinstance(label, str) and _is_blank(label, classes)
    }
    if gone:
        notes.append(
            f"{quoted(gone)} {'is a class' if len(gone) == 1 else 'are classes'}: leave such rows "
            "out if they have no label"
        )
    notes += twins(classes, _likeness, "classes")
    if rows >= FEW and not once and 1 < len(classes) == 1 + np.count_nonzero(np.diff(codes)):
        notes.append(
            "rows are sorted by their labels: shuffle them, or order them by a time (time=, --time)"
        )
    return notes


def _is_blank(label: str, classes: Sequence[Label]) -> bool:
    """Whether a label says that there is none: NA, or a dash that is no minus beside a plus."""
    dash = texts.is_missing_number(label) and not any(map(str.isalnum, label))
    return texts.is_missing_text(label) or (dash and "+" not in classes)


def _likeness(label: Label) -> Any:
    """Return what a label has in common with other spellings of it."""
    if isinstance(label, bool | np.bool_):
        return str(label).casefold()
    if not isinstance(label, str):
        return label
    number = texts.plain_number(label)
    return texts.likeness(label) if number is None else number


def classes_of(raw: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """Return the class that each label is, and notes on those that are one.

    Texts that are true and false, or whole numbers, are the same classes as these are. Beside whole
    numbers true and false are 1 and 0.

    Examples
    --------
    >>> from drift.streams.labels import classes_of
    >>> classes_of(["+1", "-1", "1.0"])
    ([1, -1, 1], ["'+1', '1.0' are one class, 1"])
    """
    labels = _as_classes(raw)
    together: dict[Any, list[str]] = {}
    for value, label in zip(raw, labels, strict=True):
        together.setdefault(label, []).append(str(value).strip())
    merged = [
        f"{', '.join(map(repr, written[:QUOTED]))} are one class, {label!r}"
        for label, written in together.items()
        if len(set(written)) > 1
    ]
    codes = [
        f"{first!r} is the class {label!r}"
        for label, [first, *others] in together.items()
        if not others and type(label) is int and (texts.is_padded(first) or "e" in first.lower())
    ]
    return labels, [_together(said) for said in (merged, codes) if said]


def _together(said: Sequence[str]) -> str:
    """Make one note of several that say the same of other classes."""
    rest = len(said) - QUOTED
    more = [f"the same of {counted(rest, 'other')}"] if rest > 0 else []
    return "; ".join([*said[:QUOTED], *more])


def _as_classes(raw: Sequence[Any]) -> list[Any]:
    """Return labels as bools or whole numbers if all are, else as texts.

    A float among the results is a fraction, which is no class.
    """
    written = [cell.strip() if isinstance(cell, str) else cell for cell in raw]
    if all(isinstance(one, bool | np.bool_) or one in texts.BOOLS for one in written):
        return [texts.BOOLS[one] if isinstance(one, str) else bool(one) for one in written]
    values = [_number(one) if isinstance(one, str) else value_of(one) for one in written]
    if any(value is None for value in values):
        return [one if isinstance(one, str) else texts.text_of(one) for one in written]
    return [_whole(one, value) for one, value in zip(written, values, strict=True)]


def _number(text: str) -> float | None:
    truth = texts.BOOLS.get(text)
    return texts.plain_number(text) if truth is None else float(truth)


def _whole(cell: Any, value: Any) -> Any:
    """Return a number as an integer, exactly; a fraction stays a float."""
    if not math.isfinite(value) or value != int(value):
        return float(value)
    if isinstance(cell, str):
        return int(cell) if cell.lstrip("+-").isdecimal() else int(value)
    return int(value if isinstance(cell, dt.timedelta) else cell)


def row_number(kept: Sequence[NDArray[np.bool_]], at: int) -> int:
    """Return the number that a row has in its source, from 1, of the rows that were kept."""
    return int(np.flatnonzero(np.concatenate(kept))[at]) + 1
