"""Error beside time and memory, over the streams that models have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drift.experiments.arena.streams import STREAMS

if TYPE_CHECKING:
    from drift.experiments.arena.results import ArenaResults
    from drift.experiments.folder import Record

__all__ = ["costs"]


def costs(results: ArenaResults, *, real: bool | None = None) -> tuple[list[str], list[Record]]:
    """Return streams, and error, time and memory of the models at their defaults over those.

    The models are those that ended well on half of the streams or more, and the streams those
    on which all of them did: ``model``, mean ``error``, geometric means of ``microseconds`` and
    ``memory``; the smallest error first.

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
    found = []
    for model in ended if common else ():
        own = [
            row
            for row in results.rows
            if (row["model"], row["delay"]) == (model, None) and row["stream"] in common
        ]
        row: Record = {"model": model, "error": sum(one["error"] for one in own) / len(own)}
        for name in ("microseconds", "memory"):
            sizes = np.maximum([one[name] for one in own], 1e-3)
            row[name] = float(np.exp(np.log(sizes).mean()))
        found.append(row)
    return sorted(common), sorted(found, key=lambda row: row["error"])
