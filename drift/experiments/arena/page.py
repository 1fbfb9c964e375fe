"""The arena's pages, in Markdown: where drift stands and where it loses; all errors on a second."""

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
    gap_of,
    tally,
)
from drift.experiments.arena.streams import KINDS, STREAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from drift.experiments.arena.standings import Standings
    from drift.experiments.jobs import Record

__all__ = [
    "errors_of",
    "filled",
    "headline",
    "large_of",
    "losses",
    "marked",
    "page_of",
    "standing",
    "standing_late",
    "verdict",
]

_ABOUT = f"""\
How much the `{OWN}` errs beside other models of drift, River, scikit-learn and MOA, each with its
defaults."""
_HEADLINE = f"""\
**On {{ahead}} of {{number}} streams that had no part in its making, the `{OWN}` errs at least half
a point less than the best other model** of drift, River, scikit-learn and MOA, on {{by a point}} of
these a point or more. On {{level}} it is level, on {{behind}} it errs more."""
_HEADLINE_WITH = """\
- **Where MOA's ensembles of 100 trees ran**, on {number} of the streams, it is ahead on {ahead},
  level on {level}, behind on {behind}."""
_HEADLINE_WITHOUT = """\
- **Where they did not**, on {number}, it is ahead on {ahead}, level on {level}, behind on {behind}.
  There one of MOA's might have been better."""
_CONDITIONS = """\
Labels come at once; all models have their defaults. On these streams each model has one run, of one
seed. So differences of less than a point may be chance."""
_ABOUT_WORDS = f"""\
- **Error**: the percentage of wrong predictions, each made before its row is learnt, over the first
  20,000 rows of a stream, on Electricity over all 45,312. The first row does not count. A row
  without a prediction is a mistake.
- **Held-out** streams: no constant of the {OWN} was chosen on them. Expect leads like these on
  your data at best. On **development** streams constants were chosen, or its results were seen.
  Both lists were fixed before their first runs.
- **Best other**: the model with the lowest error on a stream, chosen in hindsight among its
  **rivals**, all models that ran there. {OWN}s of another size do not count.
- **Lead**: the error of the best other less that of the {OWN}, both as printed.
- **Ahead** and **behind**: the lead is half a point or more, or is minus half a point or less;
  **level**: in between. **Bold** errors are lower by a point or more.
- **Late** labels come 100 or 1,000 rows after their prediction. The {OWN} has `late=True` then.
- *MOA* is a Java library for streams; its ensembles are SGBT (boosting), ARF (a forest) and SRP
  (random patches). ARF and SRP without *MOA* are River's, with 10 trees. *PassiveAggressive* is a
  kernel model of drift's, *PA* a linear one of River's."""
_KEPT = """\
Below: [forests](#against-forests-bagging-and-boosting), [what it costs](#error-and-cost), [late
labels](#labels-that-come-late), [where it loses](#where-drift-loses) and
[why](#why-it-loses-there), [your own data](#on-your-own-data). Then [the models](#the-models) with
their settings, [what was tuned on which stream](#what-was-tuned-on-which-stream), [how it was
measured](#how-it-was-measured). The data page says [what each held-out stream
is](../datasets/README.md#held-out-streams)."""
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
how many there are, on the stream with the fewest and on that with the most."""
_ABOUT_EACH = f"""\
Each held-out stream, labels at once, errors in percent, the largest lead first. *Of*: the number of
rivals. *MOA*: how many of MOA's three ensembles of 100 trees, SGBT, ARF and SRP, are among them.
*Lead*: in points, negative where the {OWN} is behind. [A page of its own](arena-errors.md) has
the errors of more models, on all streams and with late labels, and [which models ran
where](arena-errors.md#which-models-ran-where)."""
_ABOUT_LATE = f"""\
The same held-out streams. With labels {FIRST:,} rows late none is known in the first {FIRST:,}
rows, where a model can only guess. So these rows do not count. Nor do they with labels 100 rows
late: thus the two delays can be compared. Errors are kept for fiftieths of a stream, and those
count that begin at row {FIRST:,} or later. Of 20,000 rows these are the last 18,800, of 1,066 the
last 64.

*Rivals* are all models that ran with that delay. For comparison the first row has labels at once
and, on each stream, only those rivals that ran with both delays, too."""
_ABSENT = """\
On held-out streams with late labels these did not run: {}. So do not compare this table with the
first one."""
_ABOUT_DEVELOPMENT = f"""\
The {OWN} was developed on them: expect less on your data."""
_ABOUT_STRONG = f"""\
The strongest rivals on tables, one by one: on held-out streams, labels at once. Errors in percent
are means over the streams on which both ended, so compare them within a row alone.

- *Median*: of the differences of the errors, in points; negative if the {OWN} is better.
- *Least p*: the least p-value that [Wilcoxon's signed-rank test](arena-errors.md#pairs) can have
  with so many streams: 0.031 with six, 0.0078 with eight.
- *Holm*: its p-value, corrected for {{}} models, those of [all pairs](arena-errors.md#pairs). A
  dash: it cannot be below 0.05. With six to eight streams it hardly can, even if one model is
  better on each. So a large one does not say that two are equal.
- *Time*: of an example, as a multiple of the {OWN}'s; the geometric mean over the streams on
  which both were timed on one machine. To say how much slower a rival is, take this."""
_OTHERS = f"""\
The same test of the {{}} other models and baselines, which are among [all
pairs](arena-errors.md#pairs): the {OWN} is significantly better than {{}} of them, worse than {{}},
and the test leaves {{}} open."""
_ABOUT_HELD_OUT_LOSSES = """\
These are losses on held-out streams. Those on [development streams](#development-streams) stand
there. The greatest of all is on `{}`, by {:.0f} points behind *{}*, with labels {}."""
_LOSSES_AT_ONCE = """\
**Labels at once**, half a point or more: {}. They are the last rows of [the table
above](#held-out-streams)."""
_ABOUT_LOSSES = """\
Each case in which the best other errs less by a tenth of a point or more. Errors are in percent,
*behind by* in points; below half a point the stream counts as *level*. *Rows*: how many
count.{few}"""
_FEW_ROWS = " One mistake in {} is {:.1f} points."
_ABOUT_TUNED = """\
The same for *tuned* models, whose settings are chosen on each stream, in hindsight, too:"""
_NO_LOSSES = "On none by a tenth of a point."
_ABOUT_ERRORS = f"""\
The errors behind [the arena](arena.md), which explains the words, in percent: [by
stream](#streams), in the order of their lists, [in the mean](#means), and for [pairs of
models](#pairs).

- *Rows*: how many count.
- *Of*: among how many models the best other was chosen; it is [not the same
  everywhere](#which-models-ran-where).
- The other columns are models that stand for their kind: *logistic* is logistic regression,
  *boosting* retrained boosting.
- A dash: not run, which says nothing of the model. *Limit*: out of time; *failed*: ended by an
  error ([a list](#runs-that-did-not-end)).
- Bold: of the {OWN} and the best other the lower error, if by a point or more."""
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
instead of `"error"`: it leaves out [the first 1,000 rows](arena.md#labels-that-come-late)."""
_ABOUT_MEANS = """\
Mean errors in percent. A table has the models that ran on at least half of the streams with each
delay. Its means are over the streams on which all of these models ran; they are named above it.
Do not compare its columns with each other: errors at once are of all rows."""
_ABOUT_COVERAGE = """\
On how many streams of a list each model ended, by the delay of labels. Those that ended on as many
stand in one row."""
_ABOUT_PAIRS = """\
The {own} and each other model, labels at once. Real streams of one source, the two of RCV1 and the
two of Reuters, count once, with their mean error. Generated ones count each, though some share a
generator. Errors in percent are means over the streams that both have run on. *Median*: of the
differences of errors, in points, negative if the {own} is better. *Wins*: on how many streams it is
better; a tie is neither a win nor a loss. *Tracker 100* is shown, but is no rival."""
_ABOUT_TEST = """\
*Holm*: the p-value of Wilcoxon's signed-rank test, two-sided, exact where no two differences are
equally large, corrected by Holm's method for the number of models in the table. Ties are left out
of the test. *Least p*: the least that it can have with n streams that do not tie before that,
2 / 2^n. A dash: so few streams cannot bring it below 0.05. Streams that share a generator are not
independent, which makes it too low. Development streams have no p-values, as these would prove
nothing."""
_ABOUT_COSTS = """\
What a lower error costs, labels at once: mean errors in percent, geometric means of processor time
and memory. A table is over the streams on which all of its models were timed on one machine. These
are few, so errors and ratios of times differ from those [of single
rivals](#against-forests-bagging-and-boosting), which are over more streams: cite those. Models that
were timed on fewer than half of the streams are left out."""
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
_P_VALUES = ("least p", "Holm")
_PAIR = ("model", "streams", OWN, "its error", "median", "wins", "losses")
#: Names of the streams on which some of `LARGE` ended, and of the rest.
_WITH, _WITHOUT = "with MOA's ensembles (100 trees)", "without them"
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
        about = [*headline(standings), *([_KEPT] if kept else []), _ABOUT_WORDS]
    else:
        about = [_ABOUT, _NOT_HELD_OUT, _ABOUT_WORDS]
    parts = [
        "# The arena",
        *about,
        *_heldout(standings),
        *_strong(standings),
        *([f"## Error and cost\n\n{_ABOUT_COSTS}", _FIGURE] if standings.has_costs else []),
        *_costs(standings),
        *_late(standings),
        *_heldout_losses(standings),
        *_development(standings),
        *([] if quick else [f"## Beside published results\n\n{_ABOUT_PUBLISHED}"]),
        *([] if quick else [_published(standings)]),
    ]
    return "\n\n".join(parts) + "\n"


def errors_of(standings: Standings, *, kept: bool = False) -> str:
    """Return the page of all errors, means, where models ran, all pairs and runs that did not end.

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
        f"## Which models ran where\n\n{_ABOUT_COVERAGE}",
        *_by_kind(standings, _coverage, delays=False),
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


def filled(text: str) -> str:
    """Return a paragraph in lines of 100 characters, with links whole.

    Parameters
    ----------
    text
        The paragraph.
    """
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], texts: Sequence[int] = ()
) -> str:
    """Return a table. The first column and those at the positions `texts` are texts."""
    rules = ["---" if k == 0 or k in texts else "---:" for k in range(len(headings))]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in (headings, rules, *rows))


def _percent(value: float | None, status: str = "", digits: int = 2) -> str:
    if value is not None:
        return f"{100 * value:.{digits}f}"
    return "failed" if "failed" in status else "limit" if "limit" in status else "-"


def _points(difference: float) -> str:
    return f"{round(100 * difference, 2) + 0.0:+.2f}"  # never -0.00


def marked(
    ours: float | None, theirs: float | None, status: str = "", digits: int = 2
) -> list[str]:
    """Return two errors in percent, the lower one bold if it is so by a point or more.

    Parameters
    ----------
    ours, theirs
        The errors; None: there is none.
    status
        Of the run that has no error, if it is ours.
    digits
        Decimals.
    """
    texts = [_percent(ours, status, digits), _percent(theirs, digits=digits)]
    gap = 0.0 if ours is None or theirs is None else gap_of(ours, theirs)
    return [
        f"**{text}**" if lower >= 0.01 else text
        for text, lower in zip(texts, (-gap, gap), strict=True)
    ]


def _when(delay: str | None) -> str:
    return "at once" if delay is None else f"{int(delay):,} rows late"


def losses(standings: Standings, kinds: Sequence[str] = KINDS, *, late: bool = False) -> str:
    """Return the tables that say where drift loses.

    Parameters
    ----------
    standings
        Of all streams, or of some.
    kinds
        Of the streams.
    late
        With late labels alone.
    """
    parts = []
    for about, lost in (
        (_ABOUT_LOSSES, standings.losses()),
        (_ABOUT_TUNED, standings.losses(tuned=True)),
    ):
        some = [
            row
            for row in lost
            if STREAMS[row["stream"]].kind in kinds and not (late and row["delay"] is None)
        ]
        if some:
            text = filled(about.format(few=_few_rows(standings, some)))
            parts += [text, _lost(standings, some, kinds)]
    return "\n\n".join(parts or [_NO_LOSSES])


def standing(standings: Standings, kind: str) -> Iterator[Record]:
    """Yield where the Tracker stands on streams of a kind.

    That is on held-out streams with labels at once, on all, then on those on which MOA's ensembles
    have ended and on the rest; on others with each delay.

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
        if large := standings.contested(streams, LARGE):
            yield from _stands(standings, _WITH, large)
            yield from _stands(standings, _WITHOUT, [s for s in streams if s not in large])


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
    if not (streams := standings.of_kind(KINDS[0])):
        return
    yield f"## {_LOSSES}"
    development = (row for row in standings.losses() if row["stream"] not in streams)
    if worst := max(development, key=itemgetter("gap"), default=None):
        place = worst["stream"], 100 * worst["gap"], worst["rival"], _when(worst["delay"])
        yield filled(_ABOUT_HELD_OUT_LOSSES.format(*place))
    behind = [
        f"`{row['stream']}` ({100 * row['gap']:.2f} points behind {row['rival']})"
        for row in standings.losses()
        if row["stream"] in streams and row["delay"] is None and row["gap"] >= 0.005
    ]
    if behind:
        yield filled(_LOSSES_AT_ONCE.format(_listed(behind)))
    if any(standings.delays):
        yield f"**Late labels.**\n{losses(standings, KINDS[:1], late=True)}"


def headline(standings: Standings) -> Iterator[str]:
    """Yield what `standing` says, on all held-out streams, with and without MOA's ensembles.

    Parameters
    ----------
    standings
        Of all streams, or of some.

    Yields
    ------
    str
        A paragraph.
    """
    rows = {row["streams"]: row for row in standing(standings, KINDS[0])}
    if not rows:
        yield _ABOUT
        return
    yield filled(_HEADLINE.format(**rows["all"]))
    parts = {_WITH: _HEADLINE_WITH, _WITHOUT: _HEADLINE_WITHOUT}
    if _WITH in rows:
        yield "\n".join(text.format(**rows[name]) for name, text in parts.items() if name in rows)
    yield _CONDITIONS


def _heldout(standings: Standings) -> Iterator[str]:
    """Yield where the Tracker stands on held-out streams, if there are any."""
    if not (streams := standings.of_kind(KINDS[0])):
        return
    yield f"## {_TITLES[KINDS[0]]}"
    yield _ABOUT_STANDING
    yield _standing(standing(standings, KINDS[0]), "labels")
    gaps = sorted(
        (row for row in standings.gaps() if row["stream"] in streams and row["delay"] is None),
        key=itemgetter("gap"),
    )
    rows = [
        [
            *(row["stream"], f"{standings.length(row['stream']):,}"),
            *marked(row["error"], row["theirs"]),
            *(row["rival"], len(standings.others(row["stream"]))),
            *(large_of(standings, row["stream"]), _points(-row["gap"])),
        ]
        for row in gaps
    ]
    yield _ABOUT_EACH
    headings = ["stream", "rows", OWN, "best other", "its name", "of", "MOA", "lead"]
    yield _table(headings, rows, texts=[4])


def _standing(rows: Iterable[Record], without: str) -> str:
    """Return a table of `standing`, without a column that says the same in each row."""
    headings = [name for name in _STANDING if name != without]
    return _table(headings, [[row[name] for name in headings] for row in rows])


def large_of(standings: Standings, stream: str) -> str:
    """Say how many of MOA's ensembles have ended on a stream.

    Parameters
    ----------
    standings
        Of this stream, and maybe others.
    stream
        Its name.
    """
    return str(sum(standings.error(stream, model) is not None for model in LARGE))


def _late(standings: Standings) -> Iterator[str]:
    """Yield where the Tracker stands on held-out streams with late labels, if any are."""
    if rows := list(standing_late(standings)):
        yield f"## Labels that come late\n\n{_ABOUT_LATE}"
        yield _standing(rows, "streams")
        if names := _absent(standings):
            yield filled(_ABSENT.format(", ".join(names)))


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
    weak = (row for row in pairs if row["other"] not in STRONG)
    others = [row for row in weak if not row["other"].startswith(OWN)]
    if rows:
        cells = [[*_pair(row), *_p_values(row), _times(standings, row["other"])] for row in rows]
        yield f"## Against forests, bagging and boosting\n\n{_ABOUT_STRONG.format(len(pairs))}"
        yield _table([*_PAIR, *_P_VALUES, "time"], cells)
        yield filled(_verdicts(rows))
        few: dict[str, list[str]] = {}
        for row in rows:
            if not _is_tested(row):
                ended = standings.contested(standings.of_kind(KINDS[0]), [row["other"]])
                few.setdefault(_listed(ended), []).append(row["other"])
        for where, names in few.items():
            yield filled(f"{_listed(names)} ran on {where} alone.")
        if others:
            known = [row for row in others if _is_significant(row)]
            better = sum(row["median_difference"] < 0 for row in known)
            numbers = len(others), better, len(known) - better or "none", len(others) - len(known)
            yield filled(_OTHERS.format(*numbers))


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


def _lost(standings: Standings, losses: Iterable[Record], kinds: Sequence[str]) -> str:
    """Return a table of losses, with the kind of stream where there are several."""
    several = len(kinds) > 1
    rows = [
        [
            *(row["stream"], *([STREAMS[row["stream"]].kind] if several else [])),
            *(_when(row["delay"]), _rows(standings, row["stream"], row["delay"])),
            *(_percent(row["error"]), _percent(row["theirs"])),
            *(row["rival"], _percent(row["gap"])),
        ]
        for row in losses
    ]
    headings = ["stream", *(["kind"] if several else []), "labels", "rows", OWN, "best other"]
    return _table([*headings, "its name", "behind by"], rows, [1, 2, 6] if several else [1, 5])


def _few_rows(standings: Standings, losses: Iterable[Record]) -> str:
    """Say what one mistake is on the shortest stream, if it is half a point or more."""
    counted = (standings.counted(row["stream"], row["delay"]) for row in losses)
    fewest = min(filter(None, counted), default=0)
    return _FEW_ROWS.format(fewest, 100 / fewest) if 0 < fewest <= 200 else ""


def _rows(standings: Standings, stream: str, delay: str | None) -> str:
    """Return how many rows errors are of; a dash in the quick form, whose late ones differ."""
    counted = standings.counted(stream, delay)
    return f"{counted:,}" if counted else "-"


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
        rest = [
            _percent(standings.error(stream, m, delay), standings.status(stream, m, delay))
            for m in columns
        ]
        status = standings.status(stream, OWN, delay)
        own = marked(standings.error(stream, OWN, delay), theirs, status)
        rows.append([stream, _rows(standings, stream, delay), *own, rival, len(others), *rest])
    headings = ["stream", "rows", OWN, "best other", "its name", "of", *columns.values()]
    return _table(headings, rows, texts=[4]) if rows else ""


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
    about = f"Over {len(common)} of {len(streams)} streams: {', '.join(common)}."
    return f"{about}\n\n{_table(['model', *_delays(delays)], rows)}"


def _delays(delays: Iterable[str | None]) -> list[str]:
    """Return headings of columns."""
    return ["at once" if delay is None else f"{int(delay):,} late" for delay in delays]


def _coverage(standings: Standings, kind: str) -> str:
    """Return on how many streams models have ended, those that have on as many in one row."""
    streams, models = standings.of_kind(kind), dict[tuple[int, ...], list[str]]()
    for model in standings.models:
        if not model.endswith(", tuned"):
            ended = tuple(
                sum(standings.error(stream, model, delay) is not None for stream in streams)
                for delay in standings.delays
            )
            models.setdefault(ended, []).append(model)
    rows = [[", ".join(names), *ended] for ended, names in models.items()]
    table = _table(["models", *_delays(standings.delays)], rows)
    return f"Of {len(streams)} streams:\n\n{table}" if streams else ""


def _pairs(standings: Standings, kind: str) -> str:
    heldout = kind == "held-out"
    rows = [[*_pair(row), *(_p_values(row) if heldout else [])] for row in standings.pairs(kind)]
    return _table([*_PAIR, *(_P_VALUES if heldout else [])], rows) if rows else ""


def _pair(row: Record) -> list[Any]:
    return [
        *(row["other"], row["n"], _percent(row["error"]), _percent(row["theirs"])),
        *(_points(row["median_difference"]), row["wins"], row["losses"]),
    ]


def _least_p(row: Record) -> float:
    """Return the smallest p-value of the test of n differences, which leaves out ties."""
    return float(2.0 ** (1 + row["ties"] - row["n"]))


def _is_tested(row: Record) -> bool:
    """Whether the test can find anything."""
    return _least_p(row) < 0.05


def _p_values(row: Record) -> list[str]:
    least = f"{_least_p(row):.2g}" if _least_p(row) >= 0.001 else "<0.001"
    return [least, f"{row['holm']:.2g}" if _is_tested(row) else "-"]


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
            real = [standings.length(stream) for stream in streams if STREAMS[stream].source]
            mixed = kind == KINDS[0] and 0 < len(real) < len(streams)
            parts = f" ({len(real)} real ones of {max(real):,} rows at most)" if mixed else ""
            about = f"Over {len(streams)} {_TITLES[kind].lower()}{parts}: {', '.join(streams)}."
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
