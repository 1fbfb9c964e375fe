"""How far a command is, on stderr."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import progress as bars
from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["bar", "reading"]


@contextmanager
def bar(total: int, before: int = 0) -> Iterator[Callable[[], None]]:
    """Draw a bar, which what is yielded advances by one."""
    columns = (
        bars.MofNCompleteColumn(),
        bars.BarColumn(),
        bars.TaskProgressColumn(show_speed=True),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task("", total=total, completed=before)
        yield lambda: shown.advance(task)


@contextmanager
def reading() -> Iterator[Callable[[int], None]]:
    """Show how many rows are read so far, which the yielded function is called with."""
    columns = (
        bars.TextColumn("reading"),
        bars.SpinnerColumn(),
        bars.TextColumn("{task.completed:,} rows"),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=None)
        yield lambda rows: shown.update(task, completed=rows)
