"""How the tables that a person reads in the terminal or a notebook are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

__all__ = ["Column", "Row", "number", "percent", "plain", "table_of", "text"]

Row: TypeAlias = Mapping[str, Any]


class Column(NamedTuple):
    """A column of a table: what of a row, under which heading, and how a cell is made of it."""

    name: str
    heading: str
    cell: Callable[[Row], str | Text]
    is_text: bool = False


def text(name: str, heading: str = "") -> Column:
    """Return a column of names or labels, under its own name unless a heading is given."""
    return Column(name, heading or name, lambda row: plain(row[name] or ""), is_text=True)


def plain(text: str | Text, style: str = "") -> Text:
    """A text as it stands: names and labels come from anyone, with markup or escapes in them."""
    if isinstance(text, Text):
        return text
    return Text("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text), style)


def number(name: str, heading: str, digits: int = 0, deviation_digits: int | None = None) -> Column:
    """Return a column of numbers, with so many digits of their deviation if it is of several."""
    return Column(name, heading, partial(_shown, name, digits, deviation_digits))


def _shown(name: str, digits: int, deviation_digits: int | None, row: Row) -> str:
    if row[name] is None:
        return ""
    deviation = row.get(f"{name}_std") if row.get("runs", 2) > 1 else None
    more = "" if None in {deviation, deviation_digits} else f" ± {deviation:.{deviation_digits}f}"
    return f"{row[name]:.{digits}f}{more}"


def percent(name: str, heading: str) -> Column:
    """Return a column of shares, in percent."""
    return Column(name, heading, lambda row: f"{100 * row[name]:.2f}")


def table_of(title: str, columns: Iterable[Column], rows: Iterable[Row], group: str = "") -> Table:
    """One line a row, with a rule between groups; `group` is printed once."""
    table = Table(
        title=plain(title, "bold"),
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
