"""The tables a person reads in the terminal or a notebook."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from drift.experiments.comparison.clock import lateness
from drift.experiments.comparison.measures import (
    COSTS,
    MEASURES,
    POSITIVE,
    RECOVERY,
    with_both_errors,
)
from drift.experiments.comparison.tables import grouped, remarks, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from drift.experiments.comparison.measures import Measure
    from drift.experiments.reproduction.spec import Reproduction
    from drift.experiments.results import Results

    _Row = Mapping[str, Any]

__all__ = ["compared", "contested", "reproduced", "reproductions", "tracked"]


class _Column(NamedTuple):
    """A column of a table: what of a row, under which heading, and how a cell is made of it."""

    name: str
    heading: str
    cell: Callable[[_Row], str | Text]
    is_text: bool = False


def _text(name: str, heading: str = "") -> _Column:
    return _Column(name, heading or name, lambda row: _plain(row[name] or ""), is_text=True)


def _plain(text: str | Text, style: str = "") -> Text:
    """A text as it stands: names and labels come from anyone, with markup or escapes in them."""
    if isinstance(text, Text):
        return text
    return Text("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text), style)


def _number(
    name: str, heading: str, digits: int = 0, deviation_digits: int | None = None
) -> _Column:
    """Return a column of numbers, with so many digits of their deviation if it is of several."""
    return _Column(name, heading, partial(_shown, name, digits, deviation_digits))


def _shown(name: str, digits: int, deviation_digits: int | None, row: _Row) -> str:
    if row[name] is None:
        return ""
    deviation = row.get(f"{name}_std") if row.get("runs", 2) > 1 else None
    more = "" if None in {deviation, deviation_digits} else f" ± {deviation:.{deviation_digits}f}"
    return f"{row[name]:.{digits}f}{more}"


def _table(title: str, columns: Iterable[_Column], rows: Iterable[_Row], group: str = "") -> Table:
    """One line a row, with a rule between groups; `group` is printed once."""
    table = Table(
        title=_plain(title, "bold"),
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    columns = list(columns)
    for column in columns:
        # Where the terminal is too narrow, texts are folded between words, and numbers are not.
        side: Any = "left" if column.is_text else "right"
        table.add_column(column.heading, justify=side, overflow="fold", no_wrap=not column.is_text)
    before = None
    for row in rows:
        value = row.get(group)
        if before not in {None, value}:
            table.add_section()
        shown = {**row, group: ""} if value == before else row
        table.add_row(*(column.cell(shown) for column in columns))
        before = value
    return table


_SUMMARY = (
    _Column("shifts", "shifts", lambda row: str(row["shifts"])),
    *(_text("model"), _text("parameters", "parameter"), _number("error", "error %", 2, 2)),
    *(_number("supports", "supports"), _number("microseconds", "µs/example", 1)),
)
_CHUNKS = (
    *(_text("model"), _number("chunk_size", "chunk size"), _number("chunks", "chunks")),
    _number("supports", "supports", 0, 2),
)
_CLAIMS = (
    _Column("shifts", "shifts", lambda row: row["shifts"]),
    *(_text("model"), _text("holds"), _text("figures")),
)


def tracked(results: Results) -> RenderableType:
    """Best settings by group, supports by chunk, and the claims.

    Parameters
    ----------
    results
        What to show; parts without records are left out.
    """
    title = f"{results.stream}: each model at its best"
    parts = [_table(title, _SUMMARY, results.rows("summary"), group="shifts")]
    if rows := results.rows("chunks"):
        columns = [*_CHUNKS]
        if all(row["paper"] is not None for row in rows):
            columns.append(_number("paper", "in the paper", 0, 2))
        parts.append(_table("Supports of a model started afresh on each chunk", columns, rows))
    claims = list(_claims(results))
    if claims:
        title = "What the paper found (differences count beyond the 95 % interval over the streams)"
        parts.append(_table(title, _CLAIMS, claims, group="statement"))
    return Group(*parts)


def _claims(results: Results) -> Iterator[_Row]:
    for (letter, statement), claims in grouped(
        results.rows("claims"), "claim", "statement"
    ).items():
        heading = {"model": f"({letter})", "figures": Text(statement, "italic")}
        yield {"statement": statement, "shifts": "", "holds": ""} | heading
        for claim in claims:
            holds = Text("true", "green") if claim["holds"] else Text("false", "red")
            yield claim | {"shifts": str(claim["shifts"]), "holds": holds}


#: Measures that the table of a comparison has.
_MEASURES = {"recovery": RECOVERY} | COSTS | MEASURES | POSITIVE
_COMPARED = ("error", "kappa", "kappa_temporal", "auc", "log_loss", "recovery", *COSTS)
#: The same where a class is rare.
_RARE = ("average_precision", *POSITIVE, "error", "auc", "recovery", *COSTS)


def compared(results: Results) -> RenderableType:
    """One row a stream and model, and what a reader of them has to know.

    Parameters
    ----------
    results
        Of a comparison.
    """
    rows, runs = results.rows("table"), results.rows("runs")
    several = len({row["stream"] for row in rows}) > 1
    title = "" if several else f"{rows[0]['stream']}: "
    late = lateness(results.settings)
    title += "test, then train" if late == "at once" else f"test, then train; labels {late}"
    columns = [_text("stream")] * several + [_text("model")]
    drifts = any(row["recovery"] or row["unrecovered"] for row in runs)
    rare = any(row["headline"] == "average_precision" for row in rows)
    measured = [name for name in (_RARE if rare else _COMPARED) if drifts or name != "recovery"]
    if all(row["positive"] is None for row in rows):
        measured = [name for name in measured if name not in POSITIVE]
    measures = {name: _MEASURES[name] for name in measured}
    if any(row["blind"] for row in runs):
        measures = with_both_errors(measures)
        measures.pop("kappa_temporal", None)  # it counts the rows before the first label, too
    columns += [
        _Column(name, one.heading, partial(_measured, one, name)) for name, one in measures.items()
    ]
    table = _table(title, columns, shown(rows), group="stream")
    notes = [
        f"{name}: {stream['focus']}" for name, stream in results.streams.items() if stream["focus"]
    ]
    return Group(table, *[_plain(line, "yellow") for line in [*notes, *remarks(runs)]])


def _measured(measure: Measure, name: str, row: _Row) -> str:
    return measure.text(row[name])


def _percents(name: str, heading: str) -> _Column:
    return _Column(name, heading, lambda row: f"{100 * row[name]:.2f}")


_LABELS = _Column(
    "delay",
    "labels",
    lambda row: "at once" if row["delay"] is None else f"{int(row['delay']):,} rows late",
    is_text=True,
)
_STANDINGS = (
    *(_text("kind"), _LABELS, _number("number", "streams"), _number("ahead", "ahead")),
    *(_number("by_a_point", "by a point"), _number("level", "level"), _number("behind", "behind")),
    _percents("lead", "lead"),
)
_LOSSES = (
    *(_text("stream"), _LABELS, _percents("error", "Tracker"), _percents("theirs", "best other")),
    *(_text("rival", "its name"), _percents("gap", "behind by")),
)


def contested(results: Results) -> RenderableType:
    """On how many streams of the arena the Tracker is ahead of the best other model, and losses.

    Parameters
    ----------
    results
        Of the arena.
    """
    title = "The Tracker and the best other model: half a point apart or more"
    parts = [_table(title, _STANDINGS, results.rows("standings"), group="kind")]
    for name, title in (
        ("losses", "Where the best other errs less by a tenth of a point or more, in percent"),
        ("losses_tuned", "The same for models tuned on each stream, in hindsight"),
    ):
        if rows := results.rows(name):
            parts.append(_table(title, _LOSSES, rows))
    return Group(*parts)


#: Columns of a paper's tables, as far as there are such numbers.
_CONTENDERS = (
    *(_text("contender", "model"), _text("parameters")),
    *(_number("error", "error %", 2, 2), _number("test_error", "test error %", 2, 2)),
    *(_number("supports", "supports", 0, 0), _number("updates", "updates", 0, 0)),
    *(_number("seconds", "seconds", 2, 2), _number("rows_per_second", "rows/s", 0, 0)),
)
_EPOCHS = (
    *(_text("contender", "model"), _number("epoch", "epoch", 0, 0)),
    *(_number("test_error", "test error %", 2, 2), _number("mistakes", "mistakes", 0, 0)),
    *(_number("updates", "updates", 0, 0), _number("supports", "supports", 0, 0)),
)


def reproduced(results: Results) -> RenderableType:
    """One row a contender: mean and deviation over permutations; and one an epoch, if several.

    Parameters
    ----------
    results
        What to show.
    """
    title = f"{results.stream}: {results.settings['permutations']} permutations"
    parts = [_beside_paper(title, _CONTENDERS, results.rows("table"))]
    if results.settings["epochs"] > 1:
        parts.append(_beside_paper("After each epoch", _EPOCHS, results.rows("epochs")))
    return Group(*parts)


def _beside_paper(title: str, columns: Iterable[_Column], rows: Sequence[_Row]) -> Table:
    """Show the columns that there are, each with the paper's number beside it if it has one."""
    pairs = [(column, _printed(f"paper_{column.name}")) for column in columns]
    known = [column for pair in pairs for column in pair if column.name in rows[0]]
    return _table(title, known, rows)


def _printed(name: str) -> _Column:
    cell = lambda row: "" if row[name] is None else f"{row[name]:g}"  # noqa: E731
    return _Column(name, "in the paper", cell)


def reproductions(known: Mapping[str, Reproduction]) -> RenderableType:
    """One row an experiment of a paper: what it learns, and where it is printed.

    Parameters
    ----------
    known
        By name.
    """
    about = {
        name: (
            f"{paper.stream}, {paper.kernel!r}",
            paper.paper,
            paper.missing and f"to get: {paper.missing}",
        )
        for name, paper in known.items()
    }
    rows = [{"experiment": name, "of": "\n".join(filter(None, of))} for name, of in about.items()]
    return _table("Experiments of the papers", (_text("experiment"), _text("of")), rows)
