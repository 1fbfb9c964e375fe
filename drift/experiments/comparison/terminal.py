"""The table of a comparison that a person reads in the terminal or a notebook."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.console import Group

from drift.experiments.comparison.clock import lateness
from drift.experiments.comparison.measures import (
    COSTS,
    MEASURES,
    POSITIVE,
    RECOVERY,
    with_both_errors,
)
from drift.experiments.comparison.tables import remarks, shown
from drift.experiments.terminal import Column, Row, plain, table_of, text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from drift.experiments.comparison.measures import Measure
    from drift.experiments.results import Results

__all__ = ["compared"]

#: Measures that the table of a comparison has.
_MEASURES = {"recovery": RECOVERY} | COSTS | MEASURES | POSITIVE
_COMPARED = ("error", "kappa", "kappa_temporal", "auc", "log_loss", "recovery", *COSTS)
#: The same where a class is rare.
_RARE = ("average_precision", *POSITIVE, "error", "auc", "recovery", *COSTS)


def compared(results: Results) -> RenderableType:
    """One row a stream and model, and what a reader of them has to know.

    Parameters
    ----------
    results
        Of a comparison.
    """
    rows, runs = results.rows("table"), results.rows("runs")
    several = len({row["stream"] for row in rows}) > 1
    title = "" if several else f"{rows[0]['stream']}: "
    late = lateness(results.settings)
    title += "test, then train" if late == "at once" else f"test, then train; labels {late}"
    columns = [text("stream")] * several + [text("model")]
    drifts = any(row["recovery"] or row["unrecovered"] for row in runs)
    rare = any(row["headline"] == "average_precision" for row in rows)
    measured = [name for name in (_RARE if rare else _COMPARED) if drifts or name != "recovery"]
    if all(row["positive"] is None for row in rows):
        measured = [name for name in measured if name not in POSITIVE]
    measures = {name: _MEASURES[name] for name in measured}
    if any(row["blind"] for row in runs):
        measures = with_both_errors(measures)
        measures.pop("kappa_temporal", None)  # it counts the rows before the first label, too
    columns += [
        Column(name, one.heading, partial(_measured, one, name)) for name, one in measures.items()
    ]
    table = table_of(title, columns, shown(rows), group="stream")
    notes = [
        f"{name}: {stream['focus']}" for name, stream in results.streams.items() if stream["focus"]
    ]
    return Group(table, *[plain(line, "yellow") for line in [*notes, *remarks(runs)]])


def _measured(measure: Measure, name: str, row: Row) -> str:
    return measure.text(row[name])
