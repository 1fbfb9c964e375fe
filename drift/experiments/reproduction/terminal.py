"""The tables of the papers' experiments that a person reads in the terminal or a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from drift.experiments.records import grouped
from drift.experiments.terminal import Column, Row, number, table_of, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from drift.experiments.reproduction.spec import Reproduction
    from drift.experiments.results import Results

__all__ = ["reproduced", "reproductions", "tracked"]

_SUMMARY = (
    Column("shifts", "shifts", lambda row: str(row["shifts"])),
    text("model"),
    text("parameters", "parameter"),
    number("error", "error %", 2, 2),
    number("supports", "supports"),
    number("microseconds", "µs/example", 1),
)
_CHUNKS = (
    text("model"),
    number("chunk_size", "chunk size"),
    number("chunks", "chunks"),
    number("supports", "supports", 0, 2),
)
_CLAIMS = (
    Column("shifts", "shifts", lambda row: row["shifts"]),
    text("model"),
    text("holds"),
    text("figures"),
)


def tracked(results: Results) -> RenderableType:
    """Best settings by group, supports by chunk, and the claims.

    Parameters
    ----------
    results
        What to show; parts without records are left out.
    """
    title = f"{results.stream}: each model at its best"
    parts = [table_of(title, _SUMMARY, results.rows("summary"), group="shifts")]
    if rows := results.rows("chunks"):
        columns = [*_CHUNKS]
        if all(row["paper"] is not None for row in rows):
            columns.append(number("paper", "in the paper", 0, 2))
        parts.append(table_of("Supports of a model started afresh on each chunk", columns, rows))
    claims = list(_claims(results))
    if claims:
        title = "What the paper found (differences count beyond the 95 % interval over the streams)"
        parts.append(table_of(title, _CLAIMS, claims, group="statement"))
    return Group(*parts)


def _claims(results: Results) -> Iterator[Row]:
    for (letter, statement), claims in grouped(
        results.rows("claims"), "claim", "statement"
    ).items():
        heading = {"model": f"({letter})", "figures": Text(statement, "italic")}
        yield {"statement": statement, "shifts": "", "holds": ""} | heading
        for claim in claims:
            holds = Text("true", "green") if claim["holds"] else Text("false", "red")
            yield claim | {"shifts": str(claim["shifts"]), "holds": holds}


#: Columns of a paper's tables, as far as there are such numbers.
_CONTENDERS = (
    text("contender", "model"),
    text("parameters"),
    number("error", "error %", 2, 2),
    number("test_error", "test error %", 2, 2),
    number("supports", "supports", 0, 0),
    number("updates", "updates", 0, 0),
    number("seconds", "seconds", 2, 2),
    number("rows_per_second", "rows/s", 0, 0),
)
_EPOCHS = (
    text("contender", "model"),
    number("epoch", "epoch", 0, 0),
    number("test_error", "test error %", 2, 2),
    number("mistakes", "mistakes", 0, 0),
    number("updates", "updates", 0, 0),
    number("supports", "supports", 0, 0),
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


def _beside_paper(title: str, columns: Iterable[Column], rows: Sequence[Row]) -> Table:
    """Show the columns that there are, each with the paper's number beside it if it has one."""
    pairs = [(column, _printed(f"paper_{column.name}")) for column in columns]
    known = [column for pair in pairs for column in pair if column.name in rows[0]]
    return table_of(title, known, rows)


def _printed(name: str) -> Column:
    cell = lambda row: "" if row[name] is None else f"{row[name]:g}"  # noqa: E731
    return Column(name, "in the paper", cell)


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
    return table_of("Experiments of the papers", (text("experiment"), text("of")), rows)
