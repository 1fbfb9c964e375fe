"""Which features mattered when, over a comparison's runs: rows, curves and remarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drift.experiments.comparison.tables import RUN
from drift.experiments.records import grouped, mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from drift.experiments.jobs import Record

__all__ = ["IMPORTANCES", "curves", "importance_rows", "remarks"]

IMPORTANCES = (*RUN, "start", "stop", "explained", "feature", "importance")
#: Features of a model that are drawn.
_DRAWN = 6


def importance_rows(records: Sequence[Record]) -> list[Record]:
    """Return one row a run, feature and window in which it was explained: see `IMPORTANCES`."""
    return [
        {name: record[name] for name in RUN}
        | {"start": window["start"], "stop": window["stop"], "explained": explained}
        | {"feature": feature, "importance": value}
        for record in records
        if (found := record.get("importances"))
        for feature, values in found["features"].items()
        for window, explained, value in zip(
            record["windows"], found["explained"], values, strict=False
        )
        if explained
    ]


def curves(
    rows: Sequence[Record], stream: str
) -> dict[str, tuple[list[float], dict[str, list[float]]]]:
    """Return by model the middles of the windows, and values of the features that ever led.

    Parameters
    ----------
    rows
        As from `importance_rows`; means over runs are taken.
    stream
        Its name.
    """
    found = {}
    for (model,), group in grouped((r for r in rows if r["stream"] == stream), "model").items():
        places = sorted({(row["start"], row["stop"]) for row in group})
        means: dict[str, dict[int, float]] = {}
        for (feature, start), same in grouped(group, "feature", "start").items():
            means.setdefault(feature, {})[start] = mean(row["importance"] for row in same) or 0.0
        first = sorted(means, key=lambda name: max(means[name].values()), reverse=True)[:_DRAWN]
        middles = [(start + stop) / 2 for start, stop in places]
        values = {name: [means[name].get(start, 0.0) for start, _ in places] for name in first}
        found[model] = middles, values
    return found


def remarks(records: Sequence[Record]) -> Iterator[str]:
    """Say how many rows each model's importances are of, or why there are none."""
    known = [record for record in records if record.get("importances")]
    for (stream, model), group in grouped(known, "stream", "model").items():
        found = [record["importances"] for record in group]
        n = min(run["explained"][-1] if run["explained"] else 0 for run in found)
        yield f"{stream}: importances of {model} are of {n:,} of {group[0]['examples']:,} rows"
        problem = next(filter(None, (run["problem"] for run in found)), "")
        if problem:
            yield f"{stream}: no further row of {model} is explained: {problem}"
