"""Tables of results for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def shown(value: Any) -> str:
    """Text of a cell: a figure as its median and spread, a number to three digits."""
    if value is None:
        return ""
    if isinstance(value, dict):
        if value["min"] == value["max"]:
            return shown(value["median"])
        return f"{shown(value['median'])} ({shown(value['min'])} to {shown(value['max'])})"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table_of(title: str, rows: list[dict[str, Any]]) -> Table:
    """Make a table with a column for each key of the first row."""
    table = Table(title=title, title_justify="left")
    for i, heading in enumerate(rows[0]):
        table.add_column(heading, justify="right" if i else "left", no_wrap=bool(i))
    for row in rows:
        table.add_row(*(shown(value) for value in row.values()))
    return table


def show_scenario(name: str, result: dict[str, Any]) -> None:
    """Print what a scenario measured."""
    console = Console(width=150)
    if result.get("failed"):
        console.print(f"[bold red]{name} FAILED:[/] {result['failed']}")
    if result.get("table"):
        title = f"{name}, {result['when']}, {result['seconds']} s"
        console.print(table_of(title, result["table"]))
    for note in result.get("notes", ()):
        console.print(note, highlight=False)
    for what, why in result.get("skipped", {}).items():
        console.print(f"skipped: {what}: {why}", highlight=False)
    if result.get("checked"):
        console.print(f"mistakes as the twins': {len(result['checked'])} contenders")


def show_table(title: str, rows: list[dict[str, Any]]) -> None:
    """Print a table."""
    Console(width=150).print(table_of(title, rows))
