"""The tables a person reads in the terminal or a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from drift.experiments.claims import Claim
    from drift.experiments.compare import ComparisonResults
    from drift.experiments.results import TrackingResults

__all__ = ["comparison", "render"]


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


def comparison(results: ComparisonResults) -> RenderableType:
    """One row a contender: mean and deviation over permutations.

    Parameters
    ----------
    results
        What to show.
    """
    runs = results.settings["permutations"]
    table = _table(
        f"{results.stream}: {runs} permutations",
        ("model", "left"),
        ("parameters", "left"),
        ("error %", "right"),
        ("supports", "right"),
        ("updates", "right"),
        ("seconds", "right"),
    )
    for row in results.table():
        error = f"{row['error']:.2f} ± {row['error_std']:.2f}"
        seconds = f"{row['seconds']:.2f} ± {row['seconds_std']:.2f}"
        counts = [f"{row[name]:.0f} ± {row[name + '_std']:.0f}" for name in ("supports", "updates")]
        table.add_row(row["contender"], row["parameters"], error, *counts, seconds)
    return table


def _table(title: str, *columns: tuple[str, str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left")
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
            f"{row['error']:.2f} ± {row['error_std']:.2f}",
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
        "What the paper found (differences count beyond two standard errors over the streams)",
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
