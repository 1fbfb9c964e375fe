"""How far the runs are, for people who wait."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from drift.experiments.jobs import Run

__all__ = ["bar"]


@contextmanager
def bar(queue: Sequence[Run], progress: bool) -> Iterator[Callable[[int], None]]:  # noqa: FBT001
    """Show a bar on stderr, and give a function that takes the number of examples just learnt."""
    if not progress or not queue:
        yield lambda _: None
        return
    from rich import progress as bars  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    columns = (
        bars.TextColumn("{task.fields[runs]:>5} of {task.fields[n_runs]} runs"),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True)) as shown:
        total = sum(run.n_examples for run in queue)
        task = shown.add_task("", total=total, runs=0, n_runs=len(queue))

        def advance(examples: int) -> None:
            shown.update(task, advance=examples, runs=shown.tasks[0].fields["runs"] + 1)

        yield advance
