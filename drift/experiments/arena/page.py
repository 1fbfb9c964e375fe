"""The arena's page, in Markdown: first of all where drift loses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drift.experiments.arena.published import PUBLISHED, SOURCE
from drift.experiments.arena.standings import FIRST, OWN, QUICK_FIRST, QUICK_ROWS
from drift.experiments.arena.streams import KINDS, STREAMS
from drift.experiments.comparison.tables import BASELINES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from drift.experiments.arena.standings import Standings

__all__ = ["losses", "page_of"]

_ABOUT = """\
Each model predicts an example, then learns it. An error is the percentage of wrong predictions over
the first 20,000 rows of a stream, on Electricity over all 45,312. Models have their defaults unless
they are called tuned.

On *development* streams constants of the Tracker were chosen, or its results were seen. On
*held-out* streams none was chosen: expect their errors on your data. Both lists were fixed before
their first runs."""
_NOT_HELD_OUT = """\
**No held-out stream is on this page yet.** All errors are of streams on which the Tracker was
developed, and flatter it."""
_ABOUT_QUICK = f"""\
The quick form, which shows that everything runs: some models on the first {QUICK_ROWS:,} rows of
some streams. That is too little to tell which is better. Each model predicts an example, then
learns it. An error is the percentage of wrong predictions."""
_ABOUT_ERRORS = """\
*Tuned*: the best of a grid, chosen in hindsight. A dash: not run. *Limit*: out of time. *Failed*:
ended by an error. Bold: the lowest, *Other models* included. All runs are in"""
_RUNS = "[one table](runs.csv)."
_RUNS_KEPT = """\
[one table](arena-runs.parquet); `drift arena --models NAME --page docs/arena.md` adds a model's
runs to it and to this page."""
_ABOUT_LOSSES = f"""\
Streams on which a model with its defaults beats the {OWN} by half a point or more."""
_ABOUT_LATE = """\
The same with late labels; *rows late* is the delay of each label."""
_ABOUT_FIRST = """\
Errors with late labels leave out the first {first:,} rows, in which the longest delay lets no
label come."""
_ABOUT_PAIRS = """\
Streams of one source count once. *Median*: of the differences of errors, in points, negative if
the Tracker is better. *Holm*: the p-value of Wilcoxon's signed-rank test, corrected for the number
of rows. *Better*, *same*, *worse*: probabilities for the Tracker by the Bayesian signed-rank test;
differences below half a point are the same."""
_ABOUT_COSTS = """\
Mean errors, geometric mean times and memory. Models that ended well on at least half of the real
streams, over the streams on which all of these did."""
_ABOUT_DELAYS = """\
Models that ended well on at least half of the real streams at each delay, over the streams on which
all of these did. Errors are those of the tables above; with labels at once they cover all rows."""
_ABOUT_OTHERS = """\
Variants of models above, and models that take long. The tables have the streams on which one of
them has run."""
_ABOUT_PUBLISHED = f"""\
The lowest prequential error, labels at once, on whole streams in [River's benchmarks]({SOURCE})."""
_TITLES = {
    "held-out": "Held-out streams",
    "real": "Real development streams",
    "generated": "Generated development streams",
}
_NONE = "None."
_FIGURE = """\
![Error against time](img/arena-cost.svg)"""


def page_of(standings: Standings, *, quick: bool = False, kept: bool = False) -> str:
    """Return the page.

    Parameters
    ----------
    standings
        Of all streams, or of some.
    quick
        Whether they are those of the quick form.
    kept
        Whether the runs are beside the page, in ``arena-runs.parquet``; else in ``runs.csv``.
    """
    delays = list(dict.fromkeys(row["delay"] for row in standings.rows))
    shown = {
        f"{_TITLES[kind]}, labels {_when(delay)}": (standings.of_kind(kind), delay)
        for kind in KINDS
        for delay in (delays if kind == "real" else [None])
    }
    real = standings.of_kind("real")
    about = _ABOUT_QUICK if quick else _ABOUT
    if not quick and not standings.of_kind("held-out"):
        about += f"\n\n{_NOT_HELD_OUT}"
    if len(delays) > 1:
        about += "\n\n" + _ABOUT_FIRST.format(first=QUICK_FIRST if quick else FIRST)
    errors = f"{_ABOUT_ERRORS}\n{_RUNS_KEPT if kept else _RUNS}"
    parts = [f"# The arena\n\n{about}", losses(standings), f"## Errors\n\n{errors}"]
    for heading, which in shown.items():
        parts += [f"### {heading}", _errors(standings, *which)]
    parts += [
        f"### Means\n\n{_ABOUT_DELAYS}",
        _delays(standings, real),
        f"## The {OWN} against each model\n\n{_ABOUT_PAIRS}",
        *(f"### {_TITLES[kind]}\n\n{_pairs(standings, kind)}" for kind in KINDS),
        f"## Error and cost\n\n{_ABOUT_COSTS}",
        _FIGURE,
        _costs(standings),
        *([] if quick else [f"## Beside published results\n\n{_ABOUT_PUBLISHED}"]),
        *([] if quick else [_published(standings)]),
        *_others(standings, shown),
        "## Runs that did not end",
        _failures(standings),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [headings, ["---"] + ["---:"] * (len(headings) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _percent(value: float | None, status: str = "") -> str:
    if value is not None:
        return f"{100 * value:.2f}"
    return "failed" if "failed" in status else "limit" if "limit" in status else "-"


def losses(standings: Standings) -> str:
    """Return the section that says where drift loses.

    Parameters
    ----------
    standings
        Of all streams, or of some.
    """
    rows = [
        [
            *(row["stream"], STREAMS[row["stream"]].kind, _percent(row["error"]), row["rival"]),
            *(_percent(row["theirs"]), _percent(row["gap"])),
            *(_percent(standings.error(row["stream"], baseline)) for baseline in BASELINES),
        ]
        for row in standings.losses()
    ]
    headings = ["stream", "kind", OWN, "better", "its error", "points", *BASELINES]
    counts = []
    for kind in KINDS:
        lost = sum(row[1] == kind for row in rows)
        if n_streams := len(standings.of_kind(kind)):
            counts.append(f"{lost} of {n_streams} {kind}")
    late = [
        [
            *(row["stream"], STREAMS[row["stream"]].kind, f"{int(delay):,}"),
            *(_percent(row["error"]), row["rival"], _percent(row["theirs"])),
            _percent(row["gap"]),
        ]
        for delay in dict.fromkeys(row["delay"] for row in standings.rows if row["delay"])
        for row in standings.losses(delay)
    ]
    about = f"## Where drift loses\n\n{_ABOUT_LOSSES}\nThey are {', '.join(counts)} streams.\n\n"
    about += _table(headings, rows) if rows else "Nowhere."
    if not late:
        return about
    headings[2:2] = ["rows late"]
    return f"{about}\n\n{_ABOUT_LATE}\n\n{_table(headings[:-2], late)}"


def _pairs(standings: Standings, kind: str) -> str:
    rows = []
    for row in standings.pairs(kind):
        shares = [row[name] for name in ("p_better", "p_equivalent", "p_worse")]
        means = [_percent(row[name]) for name in ("error", "theirs")]
        rows.append(
            [row["other"], row["n"], *means, f"{100 * row['median_difference']:+.2f}"]
            + [row["wins"], row["losses"], f"{row['holm']:.2g}"]
            + ["-" if share is None else f"{share:.2f}" for share in shares]
        )
    headings = ["model", "streams", OWN, "its error", "median", "wins", "losses", "Holm"]
    return _table([*headings, "better", "same", "worse"], rows) if rows else "Too few streams."


def _when(delay: str | None) -> str:
    return "at once" if delay is None else f"{int(delay):,} rows late"


def _others(
    standings: Standings, shown: Mapping[str, tuple[Sequence[str], str | None]]
) -> Iterator[str]:
    if any(map(standings.aside, standings.models)):
        yield f"## Other models\n\n{_ABOUT_OTHERS}"
        for heading, which in shown.items():
            if (table := _errors(standings, *which, aside=True)) != _NONE:
                yield f"### Others: {heading[0].lower()}{heading[1:]}\n\n{table}"


def _errors(
    standings: Standings, streams: Sequence[str], delay: str | None, *, aside: bool = False
) -> str:
    models = [model for model in standings.models if standings.aside(model) is aside]
    streams = [s for s in streams if any((s, one, delay) in standings.asked for one in models)]
    if not streams:
        return _NONE
    errors_of, absent = {}, []
    for model in standings.models:
        places = [(stream, model, delay) for stream in streams]
        if any(place in standings.asked for place in places):
            errors_of[model] = [standings.error(*place) for place in places]
        elif model in models and not model.endswith(", tuned"):
            absent.append(model)
    columns = zip(*errors_of.values(), strict=True)
    least = [min((e for e in column if e is not None), default=None) for column in columns]
    rows = [
        [
            model,
            *(
                f"**{_percent(error)}**"
                if error is not None and error == best
                else _percent(error, standings.status(stream, model, delay))
                for stream, error, best in zip(streams, errors, least, strict=True)
            ),
        ]
        for model, errors in errors_of.items()
        if model in models
    ]
    table = _table(["model", *streams], rows)
    return f"{table}\n\nNot run here: {', '.join(absent)}." if absent else table


def _costs(standings: Standings) -> str:
    parts = []
    for kind in KINDS[:2]:
        streams, rows = standings.costs(kind)
        cells = [
            [
                *(row["model"], _percent(row["error"]), f"{row['microseconds']:.1f}"),
                f"{row['memory'] / 1e6:.3f}",
            ]
            for row in rows
        ]
        about = f"Over {len(streams)} {kind} streams: {', '.join(streams)}."
        table = _table(["model", "error %", "µs an example", "MB"], cells)
        parts += [f"{about}\n\n{table}"] if rows else []
    return "\n\n".join(parts) or "None in common."


def _delays(standings: Standings, streams: Sequence[str]) -> str:
    delays = list(dict.fromkeys(row["delay"] for row in standings.rows))
    ended: dict[str, dict[str, list[float]]] = {}
    for model in standings.models:
        all_errors = {s: [standings.error(s, model, delay) for delay in delays] for s in streams}
        complete = {s: [e for e in errors if e is not None] for s, errors in all_errors.items()}
        complete = {s: errors for s, errors in complete.items() if len(errors) == len(delays)}
        if complete and 2 * len(complete) >= len(streams):
            ended[model] = complete
    common = [s for s in streams if all(s in complete for complete in ended.values())]
    if not ended or not common:
        return "None in common."
    means = {
        model: np.mean([complete[s] for s in common], axis=0) for model, complete in ended.items()
    }
    rows = [
        [model, *map(_percent, means[model].tolist())]
        for model in sorted(means, key=lambda model: float(means[model][-1]))
    ]
    names = ["at once" if delay is None else f"{int(delay):,} late" for delay in delays]
    return f"Over {', '.join(common)}.\n\n{_table(['model', *names], rows)}"


def _published(standings: Standings) -> str:
    rows = [
        [stream, f"{one.rows:,}", one.error, one.model, _percent(standings.error(stream, OWN))]
        for stream, one in PUBLISHED.items()
    ]
    return _table(["stream", "rows", "published", "model", OWN], rows)


def _failures(standings: Standings) -> str:
    rows = [
        [row["stream"], row["model"], _when(row["delay"]), row["status"]]
        for row in standings.rows
        if row["status"] != "ok"
    ]
    return _table(["stream", "model", "labels", "outcome"], rows) if rows else "All ended."
