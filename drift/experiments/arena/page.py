"""The arena's pages, in Markdown: first of all where drift loses; all errors on a second one."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.experiments.arena.models import MODELS
from drift.experiments.arena.published import PUBLISHED, SOURCE
from drift.experiments.arena.standings import (
    FIRST,
    LARGE,
    OWN,
    QUICK_FIRST,
    QUICK_ROWS,
    STRONG,
)
from drift.experiments.arena.streams import KINDS, STREAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from drift.experiments.arena.standings import Standings
    from drift.experiments.jobs import Record

__all__ = ["errors_of", "losses", "page_of", "verdict"]

_ABOUT = f"""\
Each model predicts an example, then learns it. An error is the percentage of wrong predictions over
the first 20,000 rows of a stream, on Electricity over all 45,312. Models have their defaults unless
they are called tuned; with late labels the {OWN} has `late=True`.

On *development* streams constants of the {OWN} were chosen, or its results were seen. On
*held-out* streams none was chosen: expect such leads on your data at best. Both lists were fixed
before their first runs."""
_NOT_HELD_OUT = f"""\
**No held-out stream is on this page yet.** All errors are of streams on which the {OWN} was
developed, and flatter it."""
_ABOUT_QUICK = f"""\
The quick form, which shows that everything runs: some models on the first {QUICK_ROWS:,} rows of
some streams. That is too little to tell which is better. Each model predicts an example, then
learns it. An error is the percentage of wrong predictions."""
_ABOUT_FIRST = """\
Errors with late labels leave out the first {first:,} rows, in which the longest delay lets no
label come."""
_ABOUT_SHORT = "Few rows are left of short streams, whose late errors are rough: {}."
_ABOUT_GAPS = f"""\
The *best other* is the model that has the lowest error on a stream, chosen in hindsight among all
models with their defaults, except {OWN}s of another size. The {OWN} is *ahead* or *behind* where
their errors differ by half a point or more, *level* by less. *By a point*: ahead by a point or
more. *Lead*: the median over the streams, in points. *Contested*: on so many of them a forest,
bagging or boosting ended; on the others the rivals are weaker."""
_NOT_LATE = "No held-out stream has run with late labels yet."
_STRONG = "Against forests, bagging and boosting"
_ABOUT_STRONG = f"""\
On held-out streams, labels at once. One or more of these models ended on {{ran}} of {{n}}. There
the {OWN} is ahead of the best other on {{ahead}}, level on {{level}} and behind on {{behind}}."""
_ALONE = "On {} of these, ARF, of ten trees, is the only one."
_LARGE = "MOA's ensembles of 100 trees ended on {}: ahead on {}, level on {} and behind on {}."
_WEAKER = "On these none of them ended: {}."
_ABOUT_TIMES = f"""\
*Significant*: *Holm*, the corrected p-value, is below 0.05, which few streams cannot give. *Time*:
of an example, as a multiple of the {OWN}'s; the geometric mean over the streams on which both were
timed on one machine. [All pairs](arena-errors.md#pairs) explains the other columns."""
_ABOUT_LOSSES = """\
Here the best other is better by a tenth of a point or more:"""
_ABOUT_TUNED = """\
Tuned models, whose settings are chosen in hindsight, too, on each stream, are better on these:"""
_ABOUT_ERRORS = f"""\
What [the arena](arena.md) has measured. *Of*: how many models the best other was chosen among; it
is not the same everywhere, as some take long. Each further column shows one model of its kind. A
dash: not run. *Limit*: out of time. *Failed*: ended by an error. Bold: the lower error of the {OWN}
and the best other."""
_WHERE = """\
[A page of their own](arena-errors.md) has the errors on each stream, their means, all pairs of
models and the runs that did not end."""
_RUNS = "All runs are in [one table](runs.csv)."
_RUNS_KEPT = """\
[One table](arena-runs.parquet) has the runs of all models. Errors with labels at once, in pandas,
in percent and without the grids, whose names have an `@`:

```py
runs = pandas.read_parquet("docs/arena-runs.parquet")
runs = runs[runs["delay"].isna() & ~runs["model"].str.contains("@")]
100 * runs.pivot_table("error", "stream", "model")
```

With late labels take `runs["delay"] == "1000"` and the column `error_after_delay`.

`drift arena --models NAME --page docs/arena.md` adds a model's runs to the table, and makes both
pages of it."""
_ABOUT_MEANS = """\
Of the errors above. A table has the models that ended well on at least half of the streams at each
delay. All its means are over the same streams, those on which each of these models ended well, and
which stand above it. Columns do not compare: errors at once are of all rows."""
_ABOUT_PAIRS = """\
Real streams of one source count once, generated ones each, though some share a generator. Errors
are means over the streams that both have run on. *Median*: of the differences of errors, in points,
negative if the {own} is better."""
_ABOUT_TEST = """\
*Holm*: the p-value of Wilcoxon's signed-rank test, corrected for the number of rows. A dash: over
so few streams it cannot be below 0.05. Development streams have no p-values, as these would prove
nothing."""
_ABOUT_COSTS = """\
Mean errors, geometric mean times and memory, labels at once. A table is over the streams on which
all its models were timed on one machine, if there are three or more."""
_ABOUT_PUBLISHED = f"""\
The lowest prequential error, labels at once, on whole streams in [River's benchmarks]({SOURCE}).
River's Electricity is not comparable, as it has two columns more."""
_TITLES = {
    "held-out": "Held-out streams",
    "real": "Real development streams",
    "generated": "Generated development streams",
}
_TALLY = (
    *("streams", "labels", "number", "contested"),
    *("ahead", "by a point", "level", "behind", "lead"),
)
_PAIR = ("model", "streams", OWN, "its error", "median", "wins", "losses")
_FIGURE = """\
![Error against time](img/arena-cost.svg)"""


def page_of(standings: Standings, *, quick: bool = False) -> str:
    """Return the page.

    Parameters
    ----------
    standings
        Of all streams, or of some.
    quick
        Whether they are those of the quick form.
    """
    about = _ABOUT_QUICK if quick else _ABOUT
    if not quick and not standings.of_kind("held-out"):
        about += f"\n\n{_NOT_HELD_OUT}"
    if any(standings.delays):
        late = _ABOUT_FIRST.format(first=QUICK_FIRST if quick else FIRST)
        if not quick and (short := _short(standings)):
            late += f" {_ABOUT_SHORT.format(short)}"
        about += f"\n\n{textwrap.fill(late, 100)}"
    has_costs = any(rows for _, rows in map(standings.costs, KINDS))
    parts = [
        f"# The arena\n\n{about}",
        losses(standings),
        *_strong(standings),
        f"## Errors\n\n{_WHERE}",
        *([f"## Error and cost\n\n{_ABOUT_COSTS}", _FIGURE] if has_costs else []),
        *_costs(standings),
        *([] if quick else [f"## Beside published results\n\n{_ABOUT_PUBLISHED}"]),
        *([] if quick else [_published(standings)]),
    ]
    return "\n\n".join(parts) + "\n"


def errors_of(standings: Standings, *, kept: bool = False) -> str:
    """Return the page of all errors, their means, all pairs and the runs that did not end.

    Parameters
    ----------
    standings
        Of all streams, or of some.
    kept
        Whether the runs are beside the page, in ``arena-runs.parquet``; else in ``runs.csv``.
    """
    parts = [
        f"# The arena's errors\n\n{_ABOUT_ERRORS}\n\n{_RUNS_KEPT if kept else _RUNS}",
        "## Streams",
        *_by_kind(standings, _errors),
        f"## Means\n\n{_ABOUT_MEANS}",
        *_by_kind(standings, _means, delays=False),
        f"## Pairs\n\n{_ABOUT_PAIRS.format(own=OWN)}",
        *([_ABOUT_TEST] if standings.of_kind("held-out") else []),
        *_by_kind(standings, _pairs, delays=False),
        "## Runs that did not end",
        _failures(standings),
    ]
    return "\n\n".join(parts) + "\n"


def _by_kind(
    standings: Standings, make: Callable[..., str], *, delays: bool = True
) -> Iterator[str]:
    """Yield headings and tables of the kinds of streams, of each with each delay, if any."""
    for kind in KINDS:
        for delay in standings.delays if delays else (None,):
            heading = f"### {_TITLES[kind]}" + f", labels {_when(delay)}" * delays
            if table := make(standings, kind, *([delay] if delays else [])):
                yield f"{heading}\n\n{table}"


def _table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], texts: Sequence[int] = ()
) -> str:
    """Return a table. The first column and those at the positions `texts` are texts."""
    rules = ["---" if k == 0 or k in texts else "---:" for k in range(len(headings))]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in (headings, rules, *rows))


def _percent(value: float | None, status: str = "") -> str:
    if value is not None:
        return f"{100 * value:.2f}"
    return "failed" if "failed" in status else "limit" if "limit" in status else "-"


def _when(delay: str | None) -> str:
    return "at once" if delay is None else f"{int(delay):,} rows late"


def losses(standings: Standings) -> str:
    """Return the section that says where drift loses.

    Parameters
    ----------
    standings
        Of all streams, or of some.
    """
    parts = [f"## Where drift loses\n\n{_ABOUT_GAPS}"]
    for title, kinds in (("Held-out", KINDS[:1]), ("Development", KINDS[1:])):
        if rows := list(_tallies(standings, kinds)):
            parts += [f"### {title} streams", _table(_TALLY, rows, texts=[1])]
            if kinds == KINDS[:1] and {row[1] for row in rows} == {_when(None)}:
                parts.append(_NOT_LATE)
        for about, lost in (
            (_ABOUT_LOSSES, standings.losses()),
            (_ABOUT_TUNED, standings.losses(tuned=True)),
        ):
            some = [row for row in lost if STREAMS[row["stream"]].kind in kinds]
            parts += [about, _lost(some)] if some else []
    return "\n\n".join(parts)


def _tallies(standings: Standings, kinds: Iterable[str]) -> Iterator[list[Any]]:
    """Yield a row for each kind of streams and delay: on how many the Tracker is ahead."""
    for kind in kinds:
        streams = standings.of_kind(kind)
        for delay in standings.delays:
            number, ahead, level, behind = standings.counts(streams, delay)
            if number:
                gaps = standings.gaps_of(streams, delay)
                clear, lead = sum(gap <= -0.01 for gap in gaps), f"{-100 * np.median(gaps):.2f}"
                contested = len(standings.contested(streams, delay=delay))
                about = [_TITLES[kind].lower(), _when(delay), number, contested]
                yield [*about, ahead, clear, level, behind, lead]


def _short(standings: Standings) -> str:
    """Name the streams that have fewer than 2,000 rows to count with late labels, and how many."""
    rows = {
        stream: standings.asked[stream, OWN, None]["rows"] + 1 - FIRST
        for stream, model, delay in standings.asked
        if model == OWN and delay is not None and (stream, OWN, None) in standings.asked
    }
    return ", ".join(f"{left:,} of {stream}" for stream, left in rows.items() if left < 2 * FIRST)


def _strong(standings: Standings) -> Iterator[str]:
    """Yield what strong rivals have come to on held-out streams, if there are any."""
    heldout = standings.of_kind("held-out")
    contested = standings.contested(heldout)
    if not contested:
        return
    ran, ahead, level, behind = standings.counts(contested)
    about = [_ABOUT_STRONG.format(ran=ran, n=len(heldout), ahead=ahead, level=level, behind=behind)]
    more = standings.contested(heldout, [model for model in STRONG if model != "ARF"])
    if len(more) < len(contested):
        about.append(_ALONE.format(len(contested) - len(more)))
    if large := standings.contested(heldout, LARGE):
        about.append(_LARGE.format(*standings.counts(large)))
    if weaker := [stream for stream in heldout if stream not in contested]:
        about.append(_WEAKER.format(", ".join(weaker)))
    pairs = standings.pairs("held-out")
    rows = [row for row in pairs if row["other"] in STRONG]
    others = [row for row in pairs if row["other"] not in STRONG]
    cells = [[*_pair(row), _holm(row), _times(standings, row["other"])] for row in rows]
    yield f"## {_STRONG}\n\n{textwrap.fill(' '.join(about), 100)}"
    yield _table([*_PAIR, "Holm", "time"], cells)
    yield textwrap.fill(f"{verdict(rows, 'these')} {verdict(others, 'the other models')}", 100)
    yield _ABOUT_TIMES


def verdict(pairs: Sequence[Record], whom: str) -> str:
    """Say which differences from `OWN` are significant.

    Parameters
    ----------
    pairs
        Some of `Standings.pairs` of a kind.
    whom
        What their models are called, in the plural.
    """
    known = [row for row in pairs if _is_tested(row) and row["holm"] < 0.05]
    better = [row["other"] for row in known if row["median_difference"] < 0]
    worse = [row["other"] for row in known if row["median_difference"] > 0]
    rest = [row["other"] for row in pairs if row["other"] not in better]
    if not known:
        return f"No difference from {whom} is significant."
    names, others = ", ".join(better), ""
    if len(rest) < len(better):
        names = f"{whom}, except {', '.join(rest)}" if rest else whom
    elif len(rest) > len(worse):
        others = f" Other differences from {whom} are not significant."
    parts = [f"better than {names}"] * bool(better) + [f"worse than {', '.join(worse)}"] * bool(
        worse
    )
    return f"The {OWN} is significantly {'; '.join(parts)}.{others}"


def _times(standings: Standings, other: str) -> str:
    """Return by how many an example takes longer than with `OWN`, on held-out streams."""
    both = (
        [standings.asked.get((stream, model, None)) for model in (OWN, other)]
        for stream in standings.of_kind("held-out")
    )
    ratios = [
        theirs["microseconds"] / ours["microseconds"]
        for ours, theirs in both
        if ours and theirs and ours["status"] == theirs["status"] == "ok"
        if ours["microseconds"] and theirs["microseconds"]
    ]
    return f"{np.exp(np.mean(np.log(ratios))):.0f}" if ratios else "-"


def _lost(losses: Iterable[Record]) -> str:
    rows = [
        [
            *(row["stream"], STREAMS[row["stream"]].kind, _when(row["delay"])),
            *(_percent(row["error"]), row["rival"], _percent(row["theirs"])),
            _percent(row["gap"]),
        ]
        for row in losses
    ]
    headings = ["stream", "kind", "labels", OWN, "better", "its error", "points"]
    return _table(headings, rows, texts=[1, 2, 4])


def _errors(standings: Standings, kind: str, delay: str | None) -> str:
    streams = [
        stream
        for stream in standings.of_kind(kind)
        if any((stream, model, delay) in standings.asked for model in standings.models)
    ]
    columns = {
        model: MODELS[model].column
        for model in standings.models
        if model in MODELS and MODELS[model].column
        if any((stream, model, delay) in standings.asked for stream in streams)
    }
    rows = []
    for stream in streams:
        others = standings.others(stream, delay)
        rival, theirs = next(iter(others.items()), ("-", None))
        pair = [
            _percent(standings.error(stream, OWN, delay), standings.status(stream, OWN, delay)),
            _percent(theirs),
        ]
        known = [cell for cell in pair if cell[0].isdigit()]
        least = min(known, key=float) if known else ""
        ours, best = (f"**{cell}**" if cell == least else cell for cell in pair)
        rest = [
            _percent(standings.error(stream, m, delay), standings.status(stream, m, delay))
            for m in columns
        ]
        rows.append([stream, ours, best, rival, len(others), *rest])
    headings = ["stream", OWN, "best other", "its name", "of", *columns.values()]
    return _table(headings, rows, texts=[3]) if rows else ""


def _means(standings: Standings, kind: str) -> str:
    streams = standings.of_kind(kind)
    delays = [
        delay
        for delay in standings.delays
        if 2 * sum(standings.error(s, OWN, delay) is not None for s in streams) >= len(streams)
        if 2 * sum(bool(standings.others(s, delay)) for s in streams) >= len(streams)
    ]
    ended: dict[str, dict[str, list[float]]] = {}
    for model in standings.models:
        all_errors = {s: [standings.error(s, model, delay) for delay in delays] for s in streams}
        complete = {s: [e for e in errors if e is not None] for s, errors in all_errors.items()}
        complete = {s: errors for s, errors in complete.items() if len(errors) == len(delays)}
        if delays and complete and 2 * len(complete) >= len(streams):
            ended[model] = complete
    common = [s for s in streams if all(s in complete for complete in ended.values())]
    if not ended or not common:
        return ""
    means = {
        model: np.mean([complete[s] for s in common], axis=0) for model, complete in ended.items()
    }
    rows = [
        [model, *map(_percent, means[model].tolist())]
        for model in sorted(means, key=lambda model: float(means[model][0]))
    ]
    names = ["at once" if delay is None else f"{int(delay):,} late" for delay in delays]
    about = f"Over {len(common)} of {len(streams)} streams: {', '.join(common)}."
    return f"{about}\n\n{_table(['model', *names], rows)}"


def _pairs(standings: Standings, kind: str) -> str:
    heldout = kind == "held-out"
    rows = [[*_pair(row), *([_holm(row)] if heldout else [])] for row in standings.pairs(kind)]
    return _table([*_PAIR, *(["Holm"] if heldout else [])], rows) if rows else ""


def _pair(row: Record) -> list[Any]:
    return [
        *(row["other"], row["n"], _percent(row["error"]), _percent(row["theirs"])),
        *(f"{100 * row['median_difference']:+.2f}", row["wins"], row["losses"]),
    ]


def _is_tested(row: Record) -> bool:
    """Whether the test can find anything: its smallest p-value of n differences is 2 / 2^n."""
    return bool(2 ** (1 - row["n"]) < 0.05)


def _holm(row: Record) -> str:
    return f"{row['holm']:.2g}" if _is_tested(row) else "-"


def _costs(standings: Standings) -> Iterator[str]:
    for kind in KINDS:
        streams, rows = standings.costs(kind)
        cells = [
            [
                *(row["model"], _percent(row["error"]), f"{row['microseconds']:.1f}"),
                f"{row['memory'] / 1e6:.3f}",
            ]
            for row in rows
        ]
        if cells and len(streams) > 2:
            about = f"Over {len(streams)} {_TITLES[kind].lower()}: {', '.join(streams)}."
            yield f"{about}\n\n{_table(['model', 'error %', 'µs an example', 'MB'], cells)}"


def _published(standings: Standings) -> str:
    rows = [
        [
            stream,
            f"{found.rows:,}",
            found.error,
            found.model,
            _percent(standings.error(stream, OWN)),
        ]
        for stream, found in PUBLISHED.items()
    ]
    return _table(["stream", "rows", "published", "model", OWN], rows, texts=[3])


def _failures(standings: Standings) -> str:
    rows = [
        [row["stream"], row["model"], _when(row["delay"]), row["status"]]
        for row in standings.rows
        if row["status"] != "ok"
    ]
    headings = ["stream", "model", "labels", "outcome"]
    return _table(headings, rows, texts=[1, 2, 3]) if rows else "All ended."
