"""From the rows of a source to examples: which rows, what each column is, and what to say of it.

A first pass over the rows counts what the cells of each column are, and writes those of numbers and
times. Then each column is decided. A second pass writes the columns that need the decision:
categories, and numbers among which other texts stand.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from drift._checks import counted, suggest
from drift.errors import ParameterError
from drift.streams import texts
from drift.streams.clocks import Clocks
from drift.streams.columns import Decision, decided, left_out, many_texts
from drift.streams.labels import Labels, doubts
from drift.streams.leaks import Leaks
from drift.streams.notes import named
from drift.streams.source import Seconds, Written
from drift.streams.table import Column, Table, Writer, forget
from drift.streams.tally import Tally, point_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from drift.streams.source import Source

__all__ = ["Reading", "Roles", "read_table"]

#: Texts whose reading is remembered.
_REMEMBERED = 100_000
#: Names that libraries give to a nameless first column, such as the index of a data frame.
_NAMELESS = re.compile(r"|Unnamed: 0(\.\d+)*|__index_level_\d+__").fullmatch
_NAMELESS_INDEX = "has no name and counts the rows, or names them: name it to have it as a feature"
#: What is made of a time that calendar names.
_CALENDAR = ("hour", "weekday")
_UNTIMELY = "drop it if a model would not have it in time"
_TIMES = (
    "has times, which are no numbers: order by it (time=, --time), or take its hour and weekday "
    "(calendar=, --calendar)"
)


@dataclass(frozen=True)
class Roles:
    """What columns are for.

    Parameters
    ----------
    target
        Of the labels.
    clocks
        Columns that are no features: ``time``, by which rows are ordered; ``moment``, when a row
        comes; ``delay``, how long after that, or when, its label does.
    drop
        Of no use.
    calendar
        Times whose hour and weekday are features.
    """

    target: str
    clocks: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    calendar: tuple[str, ...] = ()


class Reading(NamedTuple):
    """A table, what is said of it, and when its rows and their labels come."""

    table: Table
    notes: tuple[str, ...]
    moments: NDArray[np.float64] | None
    delays: NDArray[np.float64] | None


def read_table(
    source: Source,
    roles: Roles,
    rows: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Reading:
    """Read a source as examples.

    Parameters
    ----------
    source
        The rows.
    roles
        What its columns are for.
    rows
        How many rows with a label to read; None: all. What a column is depends on these alone.
    progress
        Is called with the number of rows that were read.

    Raises
    ------
    ParameterError
        No such column, no feature, no label, or a time that is none.
    """
    _check_names(source, roles)
    reader = _Reader(source, roles, rows, progress)
    return reader.reading()


def _check_names(source: Source, roles: Roles) -> None:
    for name, times in Counter(source.names).items():
        if times > 1:
            raise ParameterError(
                f"{source.name}: {times} columns are called {name!r}: rename all but one"
                f"{source.hint}"
            )
    asked = [("target", roles.target), *roles.clocks.items()]
    asked += [("drop", name) for name in roles.drop]
    asked += [("calendar", name) for name in roles.calendar]
    made = [f"{name} {what}" for name in roles.calendar for what in _CALENDAR]
    if there := [name for name in made if name in source.names and name not in roles.drop]:
        raise ParameterError(
            f"{source.name} has a column {there[0]!r}, as calendar would make: rename or drop it"
        )
    for role, name in asked:
        if name not in source.names:
            near = suggest(name, source.names)
            raise ParameterError(f"{source.name} has no column {name!r}: {near}{source.hint}")
        if role != "target" and name == roles.target:
            raise ParameterError(f"{source.name}: {name!r} is the target, and no {role}")
        if role == "calendar" and name == roles.clocks.get("delay"):
            raise ParameterError(
                f"{source.name}: {name!r} says when labels come, which is known only with them: "
                "take no calendar of it"
            )


class _Reader:
    """One reading of a source: its rows are counted, its columns decided, and both looked at."""

    def __init__(
        self, source: Source, roles: Roles, rows: int | None, progress: Callable[[int], None]
    ) -> None:
        self.source, self.roles, self.rows, self.progress = source, roles, rows, progress
        clocks = list(dict.fromkeys([*roles.clocks.values(), *roles.calendar]))
        no_features = {roles.target, *clocks, *roles.drop}
        self.features = [name for name in source.names if name not in no_features]
        self.names = self.features + clocks
        self.tallies = {name: Tally() for name in self.names}
        #: Which rows of each block are read.
        self.kept: list[NDArray[np.bool_]] = []
        where, declared = f"{source.name}: {roles.target}", roles.target in source.categories
        self.labels = Labels(where, self.kept, declared=declared)
        self.notes: list[str] = []
        self.clocks = Clocks(source.name, self.kept, self.notes)

    def reading(self) -> Reading:
        """Read all."""
        if not self.features and not self.roles.calendar:
            self._refuse_no_feature()
        writer = Writer(len(self.names) + len(_CALENDAR) * len(self.roles.calendar))
        try:
            order = self.roles.clocks.get("moment", self.roles.clocks.get("time"))
            if order is not None and self.rows is not None:
                self._first_in_time(order)
            self._count(writer)
            return self._decide(writer)
        finally:
            writer.discard()

    def _decide(self, writer: Writer) -> Reading:
        """Decide each column, write those that need it, and look at what came of them."""
        values, point = writer.values(), point_of(self.tallies.values(), self.source)
        decisions = {
            name: self._decision(name, tally, point) for name, tally in self.tallies.items()
        }
        self._write(values, decisions)
        clocks = self._read_clocks(values, decisions)
        when = clocks.get("moment", clocks.get("time"))
        codes, classes, merged = self.labels.classes()
        ordered = codes if when is None else codes[np.argsort(when, kind="stable")]
        self.notes += [*self.labels.note(), *merged, *doubts(classes, ordered)]
        leaks = Leaks(values, codes)
        columns = self._columns(decisions, leaks, len(classes))
        columns += self._calendar(values, decisions)
        if not columns:
            self._refuse_no_feature()
        self.notes += _clash(columns)
        if leaks.repeated and self._tells_rows_apart(decisions):
            self.notes.append(
                f"{leaks.repeated:,} of {counted(len(codes), 'row')} repeat an earlier row: "
                "an export may have them twice"
            )
        table, moments = writer.table(columns, codes, classes), clocks.get("moment")
        delays = self._delays(clocks, decisions)
        if "time" in clocks:
            order = np.argsort(clocks["time"], kind="stable")
            if (np.diff(order) != 1).any():
                table = table.take(order)
                delays = None if delays is None else delays[order]
                moments = None if moments is None else moments[order]
        return Reading(table, (*self.source.notes, *self.notes), moments, delays)

    def _refuse_no_feature(self) -> NoReturn:
        why = f" ({'; '.join(self.notes)})" if self.notes else ""
        raise ParameterError(
            f"{self.source.name}: no column is a feature for {self.roles.target}: add one{why}"
            f"{self.source.hint}"
        )

    # --- rows ------------------------------------------------------------------------------------

    def _blocks(self, names: Sequence[str], spelled: Collection[str]) -> Iterator[list[Any]]:
        """Yield the cells of the rows that were kept."""
        blocks = self.source.blocks(names, spelled)
        for cells, which in zip(blocks, self.kept, strict=False):
            yield cells if which.all() else [_chosen(column, which) for column in cells]

    def _labelled(self, names: Sequence[str], spelled: Collection[str]) -> Iterator[list[Any]]:
        """Yield the cells of the first rows with a label, and remember which these are."""
        target, left = self.roles.target, self.rows
        for cells in self.source.blocks([target, *names], {target, *spelled}):
            labels, *columns = (one.values if isinstance(one, Written) else one for one in cells)
            labels = _listed(labels)
            # Where files were joined, the line of names may come again.
            again = [
                row
                for row, label in enumerate(labels)
                if isinstance(label, str)
                and target in label
                and _is_name(label, target)
                and all(
                    not isinstance(column, Seconds) and _is_name(column[row], name)
                    for name, column in zip(names, columns, strict=True)
                )
            ]
            which = self.labels.present(labels, left, again)
            if left is not None:
                left -= int(which.sum())
            self.kept.append(which)
            yield cells if which.all() else [_chosen(column, which) for column in cells]
            if left == 0:
                return

    def _first_in_time(self, time: str) -> None:
        """Keep the rows that are the first by a column of times, wherever they are."""
        wanted, self.rows = self.rows, None
        tally, cells = Tally(), list[list[Any]]()
        for _, block in self._labelled([time], {time}):
            tally.add(block)
            cells.append(_listed(block))
        _, read, _, said = self._decision(time, tally, "" if self.source.commas else ".")
        moments = np.concatenate([*(np.array([read(c) for c in one]) for one in cells), []])
        self.clocks.complete(time, moments, said)
        first = np.zeros(len(moments), dtype=np.bool_)
        first[np.argsort(moments, kind="stable")[:wanted]] = True
        start = 0
        for which in self.kept:
            n = int(which.sum())
            which[which] = first[start : start + n]
            start += n

    def _count(self, writer: Writer) -> None:
        """Read the rows once: write numbers, count everything else."""
        target = self.roles.target
        blocks = (
            self._blocks([target, *self.names], {target})
            if self.kept
            else self._labelled(self.names, set())
        )
        for labels, *cells in blocks:
            labels = _listed(labels)  # noqa: PLW2901
            rows = np.full((len(labels), writer.width), np.nan)
            for at, (name, column) in enumerate(zip(self.names, cells, strict=True)):
                rows[:, at] = self.tallies[name].add(column)
            self.labels.add(labels)
            writer.append(rows)
            self.progress(self.labels.rows)
        if not self.labels.rows:
            if self.labels.missing:
                why = f" ({'; '.join(self.source.notes)})" if self.source.notes else ""
                raise ParameterError(
                    f"{self.source.name}: no row has a label in {target}: name another target{why}"
                )
            raise ParameterError(f"{self.source.name} has names of columns and no rows")

    # --- columns ---------------------------------------------------------------------------------

    def _decision(self, name: str, tally: Tally, point: str) -> Decision:
        """Return what a column is; one that was asked for as a time is times or numbers."""
        roles, where = self.roles, self.source.name
        clock = name in {*roles.clocks.values(), *roles.calendar}
        declared = name in self.source.categories and not clock
        try:
            decision = decided(name, tally, declared=declared, point=point, clock=clock)
        except ParameterError as error:
            raise ParameterError(f"{where}: {error}") from None
        if clock and decision.kind not in {"time", "number"}:
            does = "says when labels come" if name == roles.clocks.get("delay") else "orders"
            odd = next(iter(tally.texts), "")
            raise ParameterError(
                f"{where}: {name} {does} by numbers, dates or texts such as 2026-01-31 13:45, not "
                f"{odd!r:.60}"
            )
        return decision

    def _columns(
        self, decisions: Mapping[str, Decision], leaks: Leaks, n_classes: int
    ) -> list[Column]:
        """Return the features, and note what is said of columns."""
        columns, empty = [], []
        for at, name in enumerate(self.names):
            decision, is_feature = decisions[name], at < len(self.features)
            if is_feature and _NAMELESS(name) and (name[:2] == "__" or leaks.numbers_rows(at)):
                decision = left_out(name, _NAMELESS_INDEX)
            elif is_feature and decision.kind == "time":
                decision = left_out(name, _TIMES)
            self.notes += decision.notes
            if self.tallies[name].is_empty:
                empty.append(name)
            if not is_feature or not decision.kind:
                continue
            categories = decision.categories
            columns.append(Column(name, at, None if categories is None else tuple(categories)))
            if categories is not None and name not in self.source.categories:
                self.notes += many_texts(name, tuple(categories), int(leaks.present[at]))
            if categories is None:
                self.notes += leaks.fills(at, name)
            self.notes += leaks.order(
                at,
                name,
                numbered=categories is not None,
                ordered=not self.roles.clocks.keys().isdisjoint({"time", "moment"}),
            )
            if leak := leaks.leak(at, n_classes, numbered=categories is not None):
                self.notes.append(f"{name!r} {leak}: {_UNTIMELY}")
        if empty:
            self.notes.append(f"left out: no row has a value of {named(empty)}")
        return columns

    def _tells_rows_apart(self, decisions: Mapping[str, Decision]) -> bool:
        """Whether all columns are read: of rows whose ids differ none repeats another."""
        read = (one.kind or self.tallies[name].parts for name, one in decisions.items())
        return not self.roles.drop and all(read)

    def _write(self, values: NDArray[np.float64], decisions: Mapping[str, Decision]) -> None:
        """Write the columns of which the first pass knew no numbers."""
        places = [
            at
            for at, name in enumerate(self.names)
            if decisions[name].kind and not self._is_written(decisions[name], self.tallies[name])
        ]
        if not places:
            return
        names = [self.names[at] for at in places]
        reads = [_remembering(decisions[name].read) for name in names]
        start = 0
        for cells in self._blocks(names, set(names)):
            stop = start + len(_listed(cells[0]))
            for at, read, column in zip(places, reads, cells, strict=True):
                values[start:stop, at] = [read(cell) for cell in _listed(column)]
            forget(values)
            start = stop

    @staticmethod
    def _is_written(decision: Decision, tally: Tally) -> bool:
        """Whether the first pass wrote the numbers that a column has."""
        first = tally.grouped.first
        as_seen = not first or decision.read(first) == texts.plain_number(first)
        return decision.kind != "category" and tally.ready and as_seen

    # --- times -----------------------------------------------------------------------------------

    def _read_clocks(
        self, values: NDArray[np.float64], decisions: Mapping[str, Decision]
    ) -> dict[str, NDArray[np.float64]]:
        """Return the values of the columns of times by their roles, moments in seconds."""
        clocks = {}
        for role, name in self.roles.clocks.items():
            column, said = values[:, self.names.index(name)].copy(), decisions[name].notes
            clocks[role] = self.clocks.complete(name, column, said, sorts=role != "delay")
        if "moment" in clocks:
            clocks["moment"] = self.clocks.moments(self.roles.clocks["moment"], clocks["moment"])
        return clocks

    def _delays(
        self, clocks: Mapping[str, NDArray[np.float64]], decisions: Mapping[str, Decision]
    ) -> NDArray[np.float64] | None:
        """Return how long after its row each label comes."""
        if "delay" not in clocks:
            return None
        name = self.roles.clocks["delay"]
        return self.clocks.delays(
            name,
            clocks["delay"],
            clocks.get("moment"),
            are_times=decisions[name].kind == "time",
            are_spans=self.tallies[name].spans > 0,
        )

    def _calendar(
        self, values: NDArray[np.float64], decisions: Mapping[str, Decision]
    ) -> list[Column]:
        """Write hours and weekdays of times beside the other columns, and return theirs."""
        columns, at = [], len(self.names)
        for name in self.roles.calendar:
            seconds, tally = values[:, self.names.index(name)], self.tallies[name]
            if decisions[name].kind == "number" and not np.isnan(seconds).all():
                seconds = self.clocks.seconds(name, seconds)
            elsewhere = tally.offset or next(filter(texts.has_offset, tally.texts), "")
            if elsewhere:
                self.notes.append(
                    f"hours and weekdays of {name!r} are those of UTC, not of {elsewhere!r}"
                )
            values[:, at] = np.floor(seconds / 3600) % 24
            values[:, at + 1] = (np.floor(seconds / 86400) + 3) % 7  # 1970 began on a Thursday
            columns += [Column(f"{name} {what}", at + i) for i, what in enumerate(_CALENDAR)]
            at += len(_CALENDAR)
        return columns


def _clash(columns: Sequence[Column]) -> list[str]:
    """Say which columns would be one where categories are one-hot, as River names these."""
    if sum(len(one.texts or ()) for one in columns) > _REMEMBERED:
        return []
    owners = {one.name: one.name for one in columns}
    for one in columns:
        for made in (f"{one.name}_{text}" for text in one.texts or ()):
            if (owner := owners.setdefault(made, one.name)) != one.name:
                both = f"{owner!r} and {one.name!r} both have a feature {made!r} where categories"
                return [f"{both} are one-hot, and one of them is lost: rename a column"]
    return []


def _remembering(read: Callable[[Any], float]) -> Callable[[Any], float]:
    """Return what reads a cell, and the same text again at once."""
    known: dict[str, float] = {}

    def cell(value: Any) -> float:
        if type(value) is not str:
            return read(value)
        found = known.get(value)
        if found is None:
            found = read(value)
            if len(known) < _REMEMBERED:
                known[value] = found
        return found

    return cell


def _is_name(cell: Any, name: str) -> bool:
    """Whether a cell is the name of its column; a file that was joined may have its own mark."""
    if isinstance(cell, str):
        return cell.removeprefix("\ufeff").strip() == name
    return isinstance(cell, float) and cell == texts.plain_number(name)


def _listed(cells: Any) -> list[Any]:
    if isinstance(cells, Seconds | Written):
        cells = cells.values
    return cells if isinstance(cells, list) else cells.tolist()


def _chosen(cells: Any, which: NDArray[np.bool_]) -> Any:
    if isinstance(cells, Seconds):
        return Seconds(cells.values[which])
    if isinstance(cells, Written):
        return cells.chosen(which)
    if isinstance(cells, list):
        return [cell for cell, is_kept in zip(cells, which.tolist(), strict=True) if is_kept]
    return cells[which]
