"""The arena's page, in Markdown: first of all where drift loses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.experiments.arena.results import OWN
from drift.experiments.arena.streams import STREAMS
from drift.experiments.comparison.rows import BASELINES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from drift.experiments.arena.results import ArenaResults

__all__ = ["losses", "page"]

_ABOUT = """\
Made by `drift arena`; not written by hand. Streams and models are a list that was fixed before the
first run. Every model predicts each example, then learns it. Errors are in percent, of at most
20,000 rows, of Electricity all. The Tracker and every other model run with their defaults; *tuned*
is the best of a grid in hindsight, which nobody has beforehand. A dash: the run did not end
well."""
_ABOUT_LOSSES = f"""\
Streams on which a model with its defaults beats the {OWN} by half a point or more."""
_ABOUT_PAIRS = """\
Differences of errors in points, negative where the Tracker is better. Streams of one source count
once. *p* is Wilcoxon's signed-rank test, *Holm* the same corrected for the number of rows;
*better*, *same* and *worse* are what the Bayesian signed-rank test says, with half a point as the
same."""
_ABOUT_COSTS = """\
Means over the streams on which every model of the table ended well; time an example and memory are
geometric means."""
_ABOUT_DELAYS = """\
Mean error when labels come as many examples later, over the streams on which all runs of a row
ended well."""


def page(results: ArenaResults) -> str:
    """Return the page.

    Parameters
    ----------
    results
        Of all streams, or of some.
    """
    real = [name for name in results.streams if STREAMS[name].source]
    generated = [name for name in results.streams if not STREAMS[name].source]
    parts = [
        f"# The arena\n\n{_ABOUT}",
        losses(results),
        f"## The {OWN} against each model\n\n{_ABOUT_PAIRS}",
        "### Real streams",
        _pairs(results, real=True),
        "### Generated streams",
        _pairs(results, real=False),
        "## Errors",
        "### Real streams",
        _errors(results, real),
        "### Generated streams",
        _errors(results, generated),
        f"## Error and cost\n\n{_ABOUT_COSTS}",
        _costs(results),
        f"## Delayed labels\n\n{_ABOUT_DELAYS}",
        _delays(results),
        "## Runs that did not end",
        _failures(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [headings, ["---"] + ["---:"] * (len(headings) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def losses(results: ArenaResults) -> str:
    """Return the section that says where drift loses.

    Parameters
    ----------
    results
        Of all streams, or of some.
    """
    rows = [
        [
            *(row["stream"], _percent(row["error"]), row["rival"], _percent(row["theirs"])),
            _percent(row["gap"]),
            *(_percent(results.error(row["stream"], baseline)) for baseline in BASELINES),
        ]
        for row in results.losses()
    ]
    headings = ["stream", OWN, "better", "its error", "points", *BASELINES]
    about = f"## Where drift loses\n\n{_ABOUT_LOSSES}\n\n"
    return about + (_table(headings, rows) if rows else "Nowhere.")


def _pairs(results: ArenaResults, *, real: bool) -> str:
    rows = []
    for row in results.pairs(real=real):
        shares = [row[name] for name in ("p_better", "p_equivalent", "p_worse")]
        rows.append(
            [row["other"], row["n"], f"{100 * row['median_difference']:+.2f}"]
            + [row["wins"], row["losses"], f"{row['wilcoxon']:.2g}", f"{row['holm']:.2g}"]
            + ["-" if share is None else f"{share:.2f}" for share in shares]
        )
    headings = ["model", "streams", "median", "wins", "losses", "p", "Holm", "better", "same"]
    return _table([*headings, "worse"], rows) if rows else "Too few streams."


def _errors(results: ArenaResults, streams: Sequence[str]) -> str:
    if not streams:
        return "None."
    rows = []
    for stream in streams:
        errors = [results.error(stream, model) for model in results.models]
        least = min((error for error in errors if error is not None), default=None)
        cells = [
            f"**{_percent(error)}**" if error is not None and error == least else _percent(error)
            for error in errors
        ]
        rows.append([stream, *cells])
    return _table(["stream", *results.models], rows)


def _costs(results: ArenaResults) -> str:
    plain = [row for row in results.rows if row["delay"] is None]
    models = [model for model in results.models if not model.endswith(", tuned")]
    ended = {
        model: {stream for stream in results.streams if results.error(stream, model) is not None}
        for model in models
    }
    models = [model for model in models if len(ended[model]) * 2 >= len(results.streams)]
    common = set(results.streams).intersection(*(ended[model] for model in models))
    rows = []
    for model in models:
        own = [row for row in plain if row["model"] == model and row["stream"] in common]
        if own:
            error = float(np.mean([row["error"] for row in own]))
            cost = [_geometric([row[name] for row in own]) for name in ("microseconds", "memory")]
            rows.append((error, [model, _percent(error), f"{cost[0]:.1f}", f"{cost[1] / 1e6:.3f}"]))
    headings = ["model", "error %", "µs an example", "MB"]
    about = f"Over {len(common)} streams.\n\n"
    return about + _table(headings, [row for _, row in sorted(rows)]) if rows else "None in common."


def _geometric(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(np.maximum(list(values), 1e-3)))))


def _delays(results: ArenaResults) -> str:
    delays = list(dict.fromkeys(row["delay"] for row in results.rows))
    rows = []
    for model in results.models:
        errors = [
            [results.error(stream, model, delay) for delay in delays] for stream in results.streams
        ]
        ended = [row for row in errors if None not in row]
        if ended:
            means = np.mean(np.array(ended, dtype=float), axis=0).tolist()
            rows.append((means[-1], [model, len(ended), *map(_percent, means)]))
    headings = ["model", "streams", *("0" if delay is None else delay for delay in delays)]
    return _table(headings, [row for _, row in sorted(rows)]) if rows else "None."


def _failures(results: ArenaResults) -> str:
    rows = [
        [row["stream"], row["model"], row["delay"] or 0, row["status"]]
        for row in results.rows
        if row["status"] != "ok"
    ]
    return _table(["stream", "model", "delay", "what became of it"], rows) if rows else "All ended."
