"""The models at a glance, for ``drift models``."""

from __future__ import annotations

import inspect

from rich.table import Table

from drift.models.averaged import Averaged
from drift.models.one_vs_rest import OneVsRest
from drift.models.registry import ENTRIES
from drift.models.tracker import Tracker

__all__ = ["listing"]


def listing() -> Table:
    """List the models in a table, one line each.

    Returns
    -------
    rich.table.Table
        Name, parameters but the kernel, which all but the first have, memory, time of a prediction
        and of an update, and paper; ``m`` is the number of supports and ``B`` the budget.

    Examples
    --------
    >>> listing().row_count > 10
    True
    """
    table = Table(
        *("model", "parameters (and kernel)", "memory", "prediction", "update", "paper"),
        box=None,
        pad_edge=False,
        caption="m supports, budget B; times k for k classes. "
        "A kernel row is m inner products. Wrappers of any but Tracker: "
        f"{OneVsRest.__name__}(model), {Averaged.__name__}(model).",
        caption_justify="left",
    )
    budget = inspect.signature(Tracker).parameters["budget"].default
    tracker = f"budget={budget}; kernels of its own, nothing to tune"
    table.add_row(Tracker.__name__, tracker, "B", "B", "B", "docs/tracker.md")
    for entry in ENTRIES:
        parameters = inspect.signature(entry.model).parameters
        bounded = "budget" in parameters and parameters["budget"].default is not None
        count = "B" if bounded else "m"
        shown = [
            f"{name}={_short(parameter.default)}"
            for name, parameter in parameters.items()
            if name != "kernel"
        ]
        orders = [_growth(count, power) for power in (entry.memory, entry.prediction, entry.update)]
        table.add_row(entry.name, ", ".join(shown), *orders, entry.paper)
    return table


def _short(default: object) -> str:
    return f"{default:.4g}" if isinstance(default, float) else repr(default)


def _growth(count: str, power: int) -> str:
    return ("1", count, f"{count}^2")[power]
