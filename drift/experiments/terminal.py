"""The tables a person reads in the terminal or a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from drift.experiments.papers.reproduction import Reproduction
    from drift.experiments.papers.results import PaperResults
    from drift.experiments.tracking.claims import Claim
    from drift.experiments.tracking.results import TrackingResults

__all__ = ["compared", "comparison", "render", "reproductions"]


def render(results: TrackingResults) -> RenderableType:
    """Best settings by group, supports by chunk, and the claims.

    Parameters
    ----------
    results
        What to show; parts without records are left out.
    """
    parts: list[RenderableType] = [_summary(results.summary(), results.stream)]
    if results.chunks:
        parts.append(_chunks(results.chunk_table()))
    found = results.claims()
    if found:
        parts.append(_claims(found))
    return Group(*parts)


def compared(rows: Sequence[dict[str, Any]], runs: Sequence[dict[str, Any]]) -> RenderableType:
    """One row a stream and model, and what a reader of them has to know.

    Parameters
    ----------
    rows
        Means over runs, as `drift.experiments.comparison.rows.summary` gives them.
    runs
        As `ComparisonResults.run_rows`.
    """
    several = len({row["stream"] for row in rows}) > 1
    columns = {name: one for name, one in _COMPARED.items() if several or name != "stream"}
    title = "Test, then train" if several else f"{rows[0]['stream']}: test, then train"
    table = _table(title, *[(heading, side) for heading, side, _ in columns.values()])
    stream = None
    for row in rows:
        if stream not in {None, row["stream"]}:
            table.add_section()
        shown = row | {"stream": "" if row["stream"] == stream else row["stream"]}
        stream = row["stream"]
        cells = (
            "" if shown[name] is None else shape(shown[name])
            for name, (_, _, shape) in columns.items()
        )
        table.add_row(*cells)
    return Group(table, *[Text(line, "yellow") for line in _remarks(runs)])


def _remarks(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What a reader has to know who compares these errors."""
    counts: dict[tuple[int, int], list[str]] = {}
    for row in rows:
        if row["unpredicted"]:
            counts.setdefault((row["unpredicted"], row["rows"]), []).append(row["model"])
    for (unpredicted, n), models in counts.items():
        who = ", ".join(dict.fromkeys(models))
        yield f"no prediction for {unpredicted:,} of {n:,} rows, which no measure counts: {who}"
    for row in rows:
        if row["status"] != "ok":
            yield f"{row['model']} on {row['stream']}: {row['status']} ({row['message']})"


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


#: Columns of a comparison: heading, side, and how a value is written.
_COMPARED: dict[str, tuple[str, str, Callable[[Any], str]]] = {
    "stream": ("stream", "left", str),
    "model": ("model", "left", str),
    "error": ("error %", "right", _percent),
    "kappa": ("kappa", "right", "{:.3f}".format),
    "kappa_temporal": ("temporal", "right", "{:.3f}".format),
    "auc": ("AUC", "right", "{:.3f}".format),
    "log_loss": ("log loss", "right", "{:.3f}".format),
    "recovery": ("recovery", "right", "{:,.0f}".format),
    "microseconds": ("µs/row", "right", "{:.1f}".format),
    "memory": ("MB", "right", lambda size: f"{size / 1e6:.2f}"),
}


def comparison(results: PaperResults) -> RenderableType:
    """One row a contender: mean and deviation over permutations; and one an epoch, if several.

    Parameters
    ----------
    results
        What to show.
    """
    runs = results.settings["permutations"]
    what = "runs of what draws at random" if results.is_stream else "permutations"
    title = f"{results.stream}: {runs} {what}"
    parts = [_contenders(title, results.table(), _CONTENDERS)]
    if results.settings["epochs"] > 1:
        parts.append(_contenders("After each epoch", results.epoch_table(), _EPOCHS))
    return Group(*parts)


#: Columns of the tables of a comparison: heading, and digits; None for what is no number.
_CONTENDERS: dict[str, tuple[str, int | None]] = {
    "contender": ("model", None),
    "parameters": ("parameters", None),
    "error": ("error %", 2),
    "test_error": ("test error %", 2),
    "supports": ("supports", 0),
    "updates": ("updates", 0),
    "seconds": ("seconds", 2),
    "megabytes": ("MB", 3),
    "microseconds": ("µs/example", 1),
    "rows_per_second": ("rows/s", 0),
}
_EPOCHS: dict[str, tuple[str, int | None]] = {
    "contender": ("model", None),
    "epoch": ("epoch", 0),
    "test_error": ("test error %", 2),
    "mistakes": ("mistakes", 0),
    "updates": ("updates", 0),
    "supports": ("supports", 0),
}


def _contenders(
    title: str, rows: Sequence[dict[str, Any]], columns: dict[str, tuple[str, int | None]]
) -> Table:
    shown = {name: column for name, column in columns.items() if name in rows[0]}
    headings: list[tuple[str, str]] = []
    for name, (heading, digits) in shown.items():
        headings.append((heading, "left" if digits is None else "right"))
        if f"paper_{name}" in rows[0]:
            headings.append(("in the paper", "right"))
    table = _table(title, *headings)
    for row in rows:
        cells = []
        for name, (_, digits) in shown.items():
            cells.append(_number(row, name, digits))
            if f"paper_{name}" in row:
                paper = row[f"paper_{name}"]
                cells.append("" if paper is None else f"{paper:g}")
        table.add_row(*cells)
    return table


def _number(row: dict[str, Any], name: str, digits: int | None) -> str:
    if digits is None or row[name] is None:
        return row[name] or ""
    deviation = row.get(f"{name}_std") if row.get("runs", 2) > 1 else None
    spread = "" if deviation is None else f" ± {deviation:.{digits}f}"
    return f"{row[name]:.{digits}f}{spread}"


def reproductions(known: Mapping[str, Reproduction]) -> RenderableType:
    """One row an experiment of a paper: what it learns, and where it is printed.

    Parameters
    ----------
    known
        By name.
    """
    table = _table("Experiments of the papers", ("experiment", "left"), ("of", "left"))
    for name, one in known.items():
        missing = f"\nto get: {one.missing}" if one.missing else ""
        table.add_row(name, f"{one.stream}, {one.kernel!r}\n{one.paper}{missing}")
    return table


def _table(title: str, *columns: tuple[str, str]) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for name, justify in columns:
        # Where the terminal is too narrow, texts are folded between words, and numbers are not.
        numbers = justify == "right"
        table.add_column(name, overflow="fold", no_wrap=numbers)
        table.columns[-1].justify = "right" if numbers else "left"
    return table


def _summary(rows: Sequence[dict[str, Any]], stream: str) -> Table:
    table = _table(
        f"{stream}: each model at its best",
        ("shifts", "right"),
        ("model", "left"),
        ("parameter", "left"),
        ("error %", "right"),
        ("supports", "right"),
        ("µs/example", "right"),
    )
    shifts = None
    for row in rows:
        if shifts not in {None, row["shifts"]}:
            table.add_section()
        table.add_row(
            str(row["shifts"]) if row["shifts"] != shifts else "",
            row["model"],
            row["parameters"],
            f"{row['error']:.2f}" + (f" ± {row['error_std']:.2f}" if row["runs"] > 1 else ""),
            f"{row['supports']:.0f}",
            f"{row['microseconds']:.1f}",
        )
        shifts = row["shifts"]
    return table


def _chunks(rows: Sequence[dict[str, Any]]) -> Table:
    columns = [("model", "left"), ("chunk size", "right"), ("chunks", "right")]
    columns.append(("supports", "right"))
    with_paper = all(row["paper"] is not None for row in rows)
    if with_paper:
        columns.append(("in the paper", "right"))
    table = _table("Supports of a model started afresh on each chunk", *columns)
    for row in rows:
        cells = [row["model"], str(row["chunk_size"]), str(row["chunks"]), _spread(row, "supports")]
        table.add_row(*cells, *([_spread(row, "paper")] if with_paper else []))
    return table


def _spread(row: dict[str, Any], name: str) -> str:
    return f"{row[name]:.0f} ± {row[name + '_std']:.2f}"


def _claims(found: Sequence[Claim]) -> Table:
    table = _table(
        "What the paper found (differences count beyond the 95 % interval over the streams)",
        ("shifts", "right"),
        ("model", "left"),
        ("holds", "left"),
        ("figures", "left"),
    )
    statement = None
    for claim in found:
        if claim.statement != statement:
            statement = claim.statement
            table.add_section()
            table.add_row("", f"({claim.claim})", "", Text(statement, "italic"))
        holds = Text("true", "green") if claim.holds else Text("false", "red")
        table.add_row(str(claim.shifts), claim.model, holds, claim.figures)
    return table
