"""How far a command is, on stderr."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["bar"]


@contextmanager
def bar(total: int, before: int = 0) -> Iterator[Callable[[], None]]:
    """Draw a bar, which what is yielded advances by one."""
    from rich import progress as bars  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    columns = (
        bars.MofNCompleteColumn(),
        bars.BarColumn(),
        bars.TaskProgressColumn(show_speed=True),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task("", total=total, completed=before)
        yield lambda: shown.advance(task)
