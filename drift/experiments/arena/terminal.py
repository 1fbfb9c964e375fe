"""The tables of the arena that a person reads in the terminal or a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from drift.experiments.terminal import Column, number, percent, table_of, text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from drift.experiments.results import Results

__all__ = ["contested"]

_LABELS = Column(
    "delay",
    "labels",
    lambda row: "at once" if row["delay"] is None else f"{int(row['delay']):,} rows late",
    is_text=True,
)
_STANDINGS = (
    text("kind"),
    _LABELS,
    number("number", "streams"),
    number("ahead", "ahead"),
    number("by_a_point", "by a point"),
    number("level", "level"),
    number("behind", "behind"),
    percent("lead", "lead"),
)
_LOSSES = (
    text("stream"),
    _LABELS,
    percent("error", "Tracker"),
    percent("theirs", "best other"),
    text("rival", "its name"),
    percent("gap", "behind by"),
)


def contested(results: Results) -> RenderableType:
    """On how many streams of the arena the Tracker is ahead of the best other model, and losses.

    Parameters
    ----------
    results
        Of the arena.
    """
    title = "The Tracker and the best other model: half a point apart or more"
    parts = [table_of(title, _STANDINGS, results.rows("standings"), group="kind")]
    for name, title in (
        ("losses", "Where the best other errs less by a tenth of a point or more, in percent"),
        ("losses_tuned", "The same for models tuned on each stream, in hindsight"),
    ):
        if rows := results.rows(name):
            parts.append(table_of(title, _LOSSES, rows))
    return Group(*parts)
