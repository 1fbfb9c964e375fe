"""Error beside time and memory, over the streams that models have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.experiments.arena.streams import STREAMS
from drift.experiments.comparison import rows as tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from drift.experiments.arena.results import ArenaResults
    from drift.experiments.folder import Record

__all__ = ["against_cost", "costs"]


def costs(results: ArenaResults, *, real: bool | None = None) -> tuple[list[str], list[Record]]:
    """Return streams, and error, time and memory of the models at their defaults over those.

    The models are those that ended well on half of the streams or more, and the streams those
    on which all of them did; see `drift.experiments.comparison.rows.costs`.

    Parameters
    ----------
    results
        Of all streams, or of some.
    real
        Whether to take real streams, or generated ones; None: both.
    """
    streams = [s for s in results.streams if real in {None, bool(STREAMS[s].source)}]
    ended = {
        model: {stream for stream in streams if results.error(stream, model) is not None}
        for model in results.models
        if not model.endswith(", tuned")
    }
    ended = {model: own for model, own in ended.items() if len(own) * 2 >= len(streams)}
    common = set(streams).intersection(*ended.values())
    rows = [row for row in results.rows if row["model"] in ended and row["delay"] is None]
    return sorted(common), tables.costs(rows, common)


def against_cost(results: ArenaResults) -> Figure:
    """Draw mean error against time an example, of real streams and of generated ones.

    Parameters
    ----------
    results
        Of a group of streams those count on which every model of the panel has ended well.
    """
    from drift.experiments.cost_figure import (  # noqa: PLC0415 - optional
        error_against_cost,
        panel_of,
    )

    panels = []
    for kind in ("real", "generated"):
        streams, rows = costs(results, real=kind == "real")
        title = f"mean of {len(streams)} {kind} streams"
        panels += [panel_of(rows, "microseconds", results.records, title)] if rows else []
    return error_against_cost("Error against time", panels, every=True)
