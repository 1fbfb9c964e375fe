"""The arena's pages, in Markdown: first of all where drift loses; all errors on a second one."""

from __future__ import annotations

import textwrap
from operator import itemgetter
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
    rows_after_delay,
    tally,
)
from drift.experiments.arena.streams import KINDS, STREAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from drift.experiments.arena.standings import Standings
    from drift.experiments.jobs import Record

__all__ = ["errors_of", "losses", "page_of", "standing", "standing_late", "verdict"]

_ABOUT = f"""\
How much the `{OWN}` errs beside other models of drift, River, scikit-learn and MOA, each with its
defaults."""
_HEADLINE = f"""\
On {{ahead}} of {{number}} streams that had no part in its making, the `{OWN}` errs at least half a
point less than the best other model of drift, River, scikit-learn and MOA, on {{by a point}} of
these a point or more. On {{level}} it is level, on {{behind}} it errs more."""
_HEADLINE_LARGE = """\
Where MOA's ensembles of 100 trees ran, on {number} of the streams, it is ahead on {ahead}, level on
{level} and behind on {behind}."""
_HEADLINE_REST = "On the others one of these might have been better."
_CONDITIONS = """\
Labels come at once; all models have their defaults. On these streams each model has one run, of one
seed. So differences of less than a point may be chance."""
_ABOUT_WORDS = f"""\
- **Error**: the percentage of wrong predictions, each made before its row is learnt, over the first
  20,000 rows of a stream, on Electricity over all 45,312.
- **Held-out** streams: no constant of the {OWN} was chosen on them. Expect leads like these on
  your data at best. On **development** streams constants were chosen, or its results were seen.
  Both lists were fixed before their first runs.
- **Best other**: the model with the lowest error on a stream, chosen in hindsight. {OWN}s of
  another size do not count. *PassiveAggressive* is a kernel model of drift's, *PA* a linear
  one of River's.
- **Ahead** and **behind**: the {OWN}'s error is half a point or more below or above that of the
  best other; **level**: by less. **Bold** errors are lower by a point or more.
- **Late** labels come 100 or 1,000 rows after their prediction. The {OWN} has `late=True` then.
  The longest delay lets no label come in the first {FIRST:,} rows. So errors are then of those
  fiftieths of the stream that begin behind them: of 20,000 rows the first 1,200 do not count."""
_KEPT = """\
Below: [where it loses](#where-drift-loses) and [why](#why-it-loses-there), [what it
costs](#error-and-cost), [forests](#against-forests-bagging-and-boosting), [your own
data](#on-your-own-data). Then [the models](#the-models) with their settings, [what was tuned on
which stream](#what-was-tuned-on-which-stream), [how it was measured](#how-it-was-measured). The
data page says [what each held-out stream is](../datasets/README.md#held-out-streams)."""
_NOT_HELD_OUT = f"""\
**No held-out stream is on this page yet.** All errors are of streams on which the {OWN} was
developed, and flatter it."""
_ABOUT_QUICK = f"""\
The quick form, which shows that everything runs: some models on the first {QUICK_ROWS:,} rows of
some streams. That is too little to tell which is better. Each model predicts an example, then
learns it. An error is the percentage of wrong predictions; with late labels the first
{QUICK_FIRST:,} rows do not count."""
_ABOUT_STANDING = f"""\
Labels at once: on how many streams the {OWN} is ahead of the best other, level with it, or behind.
*By a point*: ahead by a point or more. *Lead*: in points, the median over the streams. *Rivals*:
among how many models the best other was chosen, on the stream with the fewest and on that with the
most. *With* a rival: the streams on which it ran, as not all models were run on all of them."""
_ABOUT_LATE = """\
The rivals are all models that ran with that delay. For comparison the first row has labels at once
and, on each stream, only those rivals that ran with both delays, too."""
_ABSENT = """\
With late labels these did not run: {}. So do not compare this table with the first one."""
_ABOUT_EACH = f"""\
Each held-out stream, labels at once, errors in percent. *Of*: among how many models the best other
was chosen. *Lead*: in points, negative where the {OWN} is behind. [A page of its
own](arena-errors.md) has the errors of more models, on all streams and with late labels."""
_ABOUT_DEVELOPMENT = f"""\
They built the {OWN}: expect less on your data."""
_ABOUT_STRONG = f"""\
The strongest rivals on tables, one by one: on held-out streams, labels at once. Errors in percent
are means over the streams on which both ended. *Median*: of the differences, in points; negative if
the {OWN} is better. *Holm*: the p-value of [a test](arena-errors.md#pairs), corrected for the
number of models. With few streams it cannot be small, however much better one is: a dash where it
cannot be below 0.05 at all, and with six streams hardly so. *Time*: of an example, as a multiple
of the {OWN}'s; the geometric mean over the streams on which both were timed on one machine."""
_ABOUT_HELD_OUT_LOSSES = """\
These are losses on held-out streams. Those on [development streams](#development-streams) stand
there. The greatest of all is on `{}`, by {:.0f} points, with labels {}."""
_ABOUT_LOSSES = """\
Each case in which the best other errs less by a tenth of a point or more. Errors are in percent,
*behind by* in points; below half a point the stream counts as *level*."""
_ABOUT_TUNED = """\
The same for *tuned* models, whose settings are chosen on each stream, in hindsight, too:"""
_SHORT = """\
With late labels few rows of short streams count, and errors are rough: {}. One mistake is {:.1f}
points on {}."""
_NO_LOSSES = "On none by a tenth of a point."
_ABOUT_ERRORS = f"""\
The errors behind [the arena](arena.md), which explains the words: by stream, in the mean, and for
pairs of models. They are in percent. *Of*: among how many models the best other was chosen; it is
not the same everywhere. The other columns are models that stand for their kind: *logistic* is
logistic regression, *boosting* retrained boosting. A dash: not run, which says nothing of the
model. *Limit*: out of time. *Failed*: ended by an error. Bold: of the {OWN} and the best other the
lower error, if by a point or more."""
_RUNS = "All runs are in [one table](runs.csv)."
_RUNS_KEPT = """\
[One table](arena-runs.parquet) has the runs of all models, those without a column here, too. Errors
with labels at once, in percent, by pandas, in a clone; runs that did not end and grids, whose names
have an `@`, are left out:

```py
import pandas

runs = pandas.read_parquet("docs/arena-runs.parquet")
runs = runs[(runs["status"] == "ok") & ~runs["model"].str.contains("@")]
errors = 100 * runs[runs["delay"].isna()].pivot_table("error", "stream", "model")
print(errors[["Tracker", "ARF", "logistic regression"]].round(2).to_string())
```

With late labels take `runs["delay"] == "1000"` instead of `isna()`, and `"error_after_delay"`
instead of `"error"`."""
_ABOUT_MEANS = """\
Mean errors in percent. A table has the models that ran on at least half of the streams with each
delay. Its means are over the streams on which all of these models ran; they are named above it.
Do not compare its columns with each other: errors at once are of all rows."""
_ABOUT_PAIRS = """\
The {own} and each other model, labels at once. Real streams of one source count once, generated
ones each, though some share a generator. Errors in percent are means over the streams that both
have run on. *Median*: of the differences of errors, in points, negative if the {own} is better.
*Wins*: on how many streams it is better."""
_ABOUT_TEST = """\
*Holm*: the p-value of Wilcoxon's signed-rank test, corrected for the number of models in the table.
A dash says that so few streams cannot bring it below 0.05. Streams that share a generator
are not independent, which makes it too low. Development streams have no p-values, as these would
prove nothing."""
_ABOUT_COSTS = """\
What a lower error costs, labels at once: mean errors in percent, geometric means of processor time
and memory. A table is over the streams on which all of its models were timed on one machine: few of
the held-out ones, and mostly short or generated ones. So errors and ratios of times differ from
those of [single rivals](#against-forests-bagging-and-boosting), whose tables have all streams on
which a rival ran. Models that were timed on fewer than half of the streams are left out."""
_ABOUT_PUBLISHED = f"""\
The lowest prequential error in percent, labels at once, on whole streams in [River's
benchmarks]({SOURCE}).
River's Electricity is not comparable, as it has two columns more."""
_TITLES = {
    "held-out": "Held-out streams",
    "real": "Real development streams",
    "generated": "Generated development streams",
}
_STANDING = (
    *("streams", "labels", "number", "rivals"),
    *("ahead", "by a point", "level", "behind", "lead"),
)
_PAIR = ("model", "streams", OWN, "its error", "median", "wins", "losses")
#: Rivals whose streams are counted by themselves, where some run on a part alone.
_RIVALS = (
    ("with River's ARF (10 trees)", ["ARF"]),
    ("with MOA's ensembles (100 trees)", LARGE),
)
_LOSSES = "Where drift loses"
_FIGURE = """\
![Errors against microseconds an example: the tables below have the figures](img/arena-cost.svg)"""


def page_of(standings: Standings, *, quick: bool = False, kept: bool = False) -> str:
    """Return the page.

    Parameters
    ----------
    standings
        Of all streams, or of some.
    quick
        Whether they are those of the quick form.
    kept
        Whether it is the page of the documentation, which has sections of its own.
    """
    heldout = standings.of_kind("held-out")
    if quick:
        about = [_ABOUT_QUICK]
    elif heldout:
        about = [*_headline(standings), *([_KEPT] if kept else []), _ABOUT_WORDS]
    else:
        about = [_ABOUT, _NOT_HELD_OUT, _ABOUT_WORDS]
    parts = [
        "# The arena",
        *about,
        *_heldout(standings),
        *_heldout_losses(standings),
        *([f"## Error and cost\n\n{_ABOUT_COSTS}", _FIGURE] if standings.has_costs else []),
        *_costs(standings),
        *_strong(standings),
        *_development(standings),
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


def _points(difference: float) -> str:
    return f"{round(100 * difference, 2) + 0.0:+.2f}"  # never -0.00


def _bold(ours: str, theirs: str) -> list[str]:
    """Return two errors, the lower one bold if it is so by a point or more."""
    if not (ours[0].isdigit() and theirs[0].isdigit()):
        return [ours, theirs]
    gap = round(float(theirs) - float(ours), 2)
    return [f"**{ours}**" if gap >= 1 else ours, f"**{theirs}**" if gap <= -1 else theirs]


def _when(delay: str | None) -> str:
    return "at once" if delay is None else f"{int(delay):,} rows late"


def losses(standings: Standings, kinds: Sequence[str] = KINDS) -> str:
    """Return the tables that say where drift loses.

    Parameters
    ----------
    standings
        Of all streams, or of some.
    kinds
        Of the streams.
    """
    parts = []
    for about, lost in (
        (_ABOUT_LOSSES, standings.losses()),
        (_ABOUT_TUNED, standings.losses(tuned=True)),
    ):
        some = [row for row in lost if STREAMS[row["stream"]].kind in kinds]
        parts += [about, _lost(some, kinds)] if some else []
    short = _short(standings, kinds)
    return "\n\n".join([*(parts or [_NO_LOSSES]), *([short] if short else [])])


def standing(standings: Standings, kind: str) -> Iterator[Record]:
    """Yield where the Tracker stands on streams of a kind.

    That is on held-out streams with labels at once, on all and then on those on which strong rivals
    have ended; on others with each delay.

    Parameters
    ----------
    standings
        Of all streams, or of some.
    kind
        Of the streams, one of `KINDS`.

    Yields
    ------
    dict
        A row of a table, by its headings.
    """
    streams = standings.of_kind(kind)
    if kind != KINDS[0]:
        for delay in standings.delays:
            yield from _stands(standings, "all", streams, delay)
    elif None in standings.delays:
        yield from _stands(standings, "all", streams)
        for name, rivals in _RIVALS:
            yield from _stands(standings, name, standings.contested(streams, rivals))


def standing_late(standings: Standings) -> Iterator[Record]:
    """Yield where the Tracker stands on held-out streams with each delay, if any is late.

    With labels at once the rivals are those alone that have ended with each delay.

    Parameters
    ----------
    standings
        Of all streams, or of some.

    Yields
    ------
    dict
        As `standing`.
    """
    streams = standings.of_kind(KINDS[0])
    for delay in standings.delays if set(standings.delays) - {None} else []:
        yield from _stands(standings, "all", streams, delay, always=delay is None)


def _stands(
    standings: Standings,
    name: str,
    streams: Sequence[str],
    delay: str | None = None,
    *,
    always: bool = False,
) -> Iterator[Record]:
    """Yield the row of some streams, if the Tracker has rivals there."""
    gaps = standings.gaps_of(streams, delay, always=always)
    if gaps:
        numbers = [len(standings.others(stream, delay, always=always)) for stream in streams]
        known = sorted({number for number in numbers if number})
        rivals = "-".join(map(str, known[:1] + known[1:][-1:]))
        ahead, level, behind = tally(gaps)
        clear = sum(gap <= -0.01 for gap in gaps)
        lead = _points(-float(np.median(gaps))).lstrip("+")
        values = (name, _when(delay), len(gaps), rivals, ahead, clear, level, behind, lead)
        yield dict(zip(_STANDING, values, strict=True))


def _absent(standings: Standings) -> list[str]:
    """Models that ended with labels at once, but nowhere with late ones, if any are late."""
    ended = {
        delay: {
            m for stream in standings.of_kind(KINDS[0]) for m in standings.others(stream, delay)
        }
        for delay in standings.delays
    }
    at_once, late = ended.pop(None, set()), set().union(*ended.values())
    return [model for model in standings.models if model in at_once - late] if late else []


def _heldout_losses(standings: Standings) -> Iterator[str]:
    """Yield where the Tracker loses on held-out streams, if there are any."""
    if not standings.of_kind(KINDS[0]):
        return
    yield f"## {_LOSSES}"
    development = (row for row in standings.losses() if STREAMS[row["stream"]].kind != KINDS[0])
    if worst := max(development, key=itemgetter("gap"), default=None):
        place = worst["stream"], 100 * worst["gap"], _when(worst["delay"])
        yield textwrap.fill(_ABOUT_HELD_OUT_LOSSES.format(*place), 100)
    yield losses(standings, KINDS[:1])


def _short(standings: Standings, kinds: Sequence[str]) -> str:
    """Name the streams of which fewer than 1,500 rows count with late labels, and how many."""
    rows = {
        stream: rows_after_delay(standings.length(stream))
        for stream, model, delay in standings.asked
        if model == OWN and delay is not None and (stream, OWN, None) in standings.asked
        if STREAMS[stream].kind in kinds
    }
    few = {name: left for name, left in rows.items() if 0 < left < 1_500}
    if not few:
        return ""
    least = min(few, key=lambda name: few[name])
    names = ", ".join(f"{left:,} of {name}" for name, left in few.items())
    return textwrap.fill(_SHORT.format(names, 100 / few[least], least), 100)


def _headline(standings: Standings) -> Iterator[str]:
    """Yield what the first row of `standing` says, and that of the largest rivals, if they ran."""
    if rows := list(standing(standings, KINDS[0])):
        text = _HEADLINE.format(**rows[0])
        if rows[-1]["streams"] == _RIVALS[-1][0]:
            text += f" {_HEADLINE_LARGE.format(**rows[-1])}"
            text += f" {_HEADLINE_REST}" * (rows[-1]["number"] < rows[0]["number"])
        yield textwrap.fill(text, 100)
        yield _CONDITIONS
    else:
        yield _ABOUT


def _heldout(standings: Standings) -> Iterator[str]:
    """Yield where the Tracker stands on held-out streams, if there are any."""
    if not (streams := standings.of_kind(KINDS[0])):
        return
    yield f"## {_TITLES[KINDS[0]]}"
    yield _ABOUT_STANDING
    yield _table(_STANDING, [list(row.values()) for row in standing(standings, KINDS[0])], [1])
    gaps = sorted(
        (row for row in standings.gaps() if row["stream"] in streams and row["delay"] is None),
        key=itemgetter("gap"),
    )
    rows = [
        [
            *(row["stream"], f"{standings.length(row['stream']):,}"),
            *_bold(_percent(row["error"]), _percent(row["theirs"])),
            *(row["rival"], len(standings.others(row["stream"])), _points(-row["gap"])),
        ]
        for row in gaps
    ]
    yield _ABOUT_EACH
    yield _table(["stream", "rows", OWN, "best other", "its name", "of", "lead"], rows, texts=[4])
    if late := [list(row.values()) for row in standing_late(standings)]:
        yield f"### Labels that come late\n\n{_ABOUT_LATE}"
        yield _table(_STANDING, late, [1])
        if names := _absent(standings):
            yield textwrap.fill(_ABSENT.format(", ".join(names)), 100)


def _development(standings: Standings) -> Iterator[str]:
    """Yield where the Tracker stands on development streams, if there are any."""
    kinds = [kind for kind in KINDS[1:] if standings.of_kind(kind)]
    if kinds:
        rows = [
            [kind, *list(row.values())[1:]] for kind in kinds for row in standing(standings, kind)
        ]
        yield "## Development streams"
        yield _ABOUT_DEVELOPMENT
        yield _table(_STANDING, rows, [1])
        yield losses(standings, KINDS[1:])


def _strong(standings: Standings) -> Iterator[str]:
    """Yield what strong rivals have come to on held-out streams, if there are any."""
    pairs = standings.pairs(KINDS[0])
    rows = [row for row in pairs if row["other"] in STRONG]
    others = [row for row in pairs if row["other"] not in STRONG]
    if rows:
        cells = [[*_pair(row), _holm(row), _times(standings, row["other"])] for row in rows]
        yield f"## Against forests, bagging and boosting\n\n{_ABOUT_STRONG}"
        yield _table([*_PAIR, "Holm", "time"], cells)
        yield textwrap.fill(_verdicts(rows), 100)
        few: dict[str, list[str]] = {}
        for row in rows:
            if not _is_tested(row):
                ended = standings.contested(standings.of_kind(KINDS[0]), [row["other"]])
                few.setdefault(_listed(ended), []).append(row["other"])
        for where, names in few.items():
            yield textwrap.fill(f"{_listed(names)} ran on {where} alone.", 100)
        if others:
            yield textwrap.fill(
                f"The same test of all other models and baselines. {_verdicts(others)}", 100
            )


def verdict(pairs: Sequence[Record]) -> str:
    """Say which differences from `OWN` are significant.

    Parameters
    ----------
    pairs
        Some of `Standings.pairs` of a kind.
    """
    known = [row for row in pairs if _is_significant(row)]
    parts = []
    for word, sign in (("better", -1), ("worse", 1)):
        if names := [row["other"] for row in known if sign * row["median_difference"] > 0]:
            parts.append(f"The {OWN} is significantly {word} than {_listed(names)}.")
    return " ".join(parts) or "No difference is significant."


def _verdicts(pairs: Sequence[Record]) -> str:
    """Return the verdict, and of how many streams the differences are that it leaves out."""
    rest = [f"{row['other']} ({row['n']})" for row in pairs if not _is_significant(row)]
    undecided = f" The test leaves open, with the number of streams: {_listed(rest)}."
    return verdict(pairs) + undecided * bool(rest)


def _is_significant(row: Record) -> bool:
    return _is_tested(row) and row["holm"] < 0.05


def _listed(names: Sequence[str]) -> str:
    """Return names as a text lists them."""
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + list(names[-1:]))


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


def _lost(losses: Iterable[Record], kinds: Sequence[str]) -> str:
    """Return a table of losses, with the kind of stream where there are several."""
    several = len(kinds) > 1
    rows = [
        [
            *(row["stream"], *([STREAMS[row["stream"]].kind] if several else [])),
            *(_when(row["delay"]), _percent(row["error"]), _percent(row["theirs"])),
            *(row["rival"], _percent(row["gap"])),
        ]
        for row in losses
    ]
    headings = ["stream", *(["kind"] if several else []), "labels", OWN, "best other", "its name"]
    return _table([*headings, "behind by"], rows, texts=[1, 2, 5] if several else [1, 4])


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
        rest = [
            _percent(standings.error(stream, m, delay), standings.status(stream, m, delay))
            for m in columns
        ]
        rows.append([stream, *_bold(*pair), rival, len(others), *rest])
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
        *(_points(row["median_difference"]), row["wins"], row["losses"]),
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
        if cells:
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
    messages = {
        (run["stream"], run["model"], run["delay"]): run["message"] for run in standings.runs
    }
    rows = [
        [stream, model, _when(delay), row["status"], messages[stream, model, delay]]
        for (stream, model, delay), row in standings.asked.items()
        if row["status"] != "ok"
    ]
    headings = ["stream", "model", "labels", "outcome", "message"]
    return _table(headings, rows, texts=[1, 2, 3, 4]) if rows else "All ended."
