"""Which model to take, and a list of all."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drift.cli._command import Command

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Models", "listing"]

_FIRST = (
    "Take Tracker(budget=300): it errs least on most streams that drift, with nothing to tune. "
    "LBP(budget=300) where every microsecond counts and features need no scaler, "
    "PassiveAggressive(budget=300) for fewer errors with one kernel of your choice. The others "
    "are those of their papers. More in docs/which_model.md."
)
_LAST = (
    "m supports, budget B; times k for k classes. A prediction takes a kernel row: m inner "
    "products. All but Tracker take a kernel, and may be wrapped: OneVsRest(model), "
    "Averaged(model). Defaults and papers: help(drift.models.LBP)."
)


@dataclass(kw_only=True)
class Models(Command):
    """Say which model to take, and list all: parameters, memory, time of an update, paper."""

    def _run(self) -> None:
        from rich.console import Console

        Console(width=80).print(listing())


def listing() -> Table:
    """List the models in a table of 80 columns, below the advice which one to take.

    Returns
    -------
    rich.table.Table
        Name, main parameters but the kernel, orders of the memory and of the time of an update, and
        paper; ``m`` is the number of supports and ``B`` the budget.

    Examples
    --------
    >>> listing().row_count > 10
    True
    """
    from rich.table import Table

    from drift.models.registry import ENTRIES

    table = Table(
        *("model", "parameters", "memory", "update", "paper"),
        box=None,
        pad_edge=False,
        title=f"{_FIRST}\n",
        title_justify="left",
        title_style="",
        caption=f"\n{_LAST}",
        caption_justify="left",
        caption_style="",
    )
    table.add_row("Tracker", "budget", "B", "B", "docs/tracker.md")
    for entry in ENTRIES:
        parameters = inspect.signature(entry.model).parameters
        bounded = "budget" in parameters and parameters["budget"].default is not None
        orders = [_order("B" if bounded else "m", power) for power in (entry.memory, entry.update)]
        shown = ", ".join(name for name in parameters if name != "kernel")
        table.add_row(entry.name, shown, *orders, _short(entry.paper))
    return table


def _short(paper: str) -> str:
    """First author and year.

    Examples
    --------
    >>> _short("Dekel, Shalev-Shwartz, Singer 2008")
    'Dekel 2008'
    """
    return re.sub(r"^(\w+).*?(\d{4}).*", r"\1 \2", paper)


def _order(count: str, power: int) -> str:
    return ("1", count, f"{count}^2")[power]
