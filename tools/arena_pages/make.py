"""Make the arena's pages, and parts of two others, from the runs that are kept.

    python tools/arena_pages/make.py [FOLDER...]

The runs of each FOLDER, one of `drift arena`, are first added to docs/arena-runs.parquet, in the
place of equal ones. The text is in the templates beside this file; `PAGES` and `FIGURES` in docs
are made of them and the runs, and in `OTHERS` all between `<!-- arena: NAME -->`, of the template
of this name, and `<!-- end -->`. Needs the extras `compare` and `docs`.
"""

from __future__ import annotations

import re
import sys
import textwrap
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pyarrow import parquet

from drift._checks import listed
from drift.experiments.arena import ARENA
from drift.experiments.arena.models import MODELS
from drift.experiments.arena.standings import (
    FIRST,
    HALF,
    OWN,
    POINT,
    TENTH,
    Standings,
    gap_of,
    select,
)
from drift.experiments.arena.streams import KINDS, STREAMS
from drift.experiments.comparison.evaluation import N_WINDOWS
from drift.experiments.comparison.tables import BASELINES
from drift.experiments.folder import RunFolder
from drift.experiments.jobs import edges_of
from drift.experiments.plots import save
from drift.experiments.results import Results

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from drift.experiments.jobs import Record

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RUNS = DOCS / "arena-runs.parquet"
PAGES = "arena.md", "arena-development.md", "arena-errors.md"
FIGURES = "arena-cost", "arena-leads"
OTHERS = "README.md", "docs/which_model.md"
BLOCK = re.compile(r"(<!-- arena: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
HELD_OUT = KINDS[0]
TITLES = {
    HELD_OUT: "Held-out streams",
    "real": "Real development streams",
    "generated": "Generated development streams",
}
#: The Tracker with the other setting for late labels; at once both are one model.
PLAIN = f"{OWN} late=False"
#: Models with a column in the tables of all errors, and its heading.
COLUMNS = {
    "logistic regression": "logistic",
    "retrained boosting": "boosting",
    PLAIN: "late=False",
    **{name: name for name in ("ARF", "MOA SGBT", "MOA ARF")},
}
#: A stream whose labels repeat every ten rows: both delays are whole periods.
PERIODIC = "rialto"
#: Held-out streams that do not drift: two are drawn so, and the makers of one shuffled it.
STILL = ("nslkdd", "waveform", "spheres")
#: Ensembles of 100 trees.
LARGE = ("MOA SGBT", "MOA ARF", "MOA SRP")
#: Forests, bagging and boosting, which win on most tables.
STRONG = (
    *(name for name, family in MODELS.items() if family.ensemble),
    *("retrained boosting", *LARGE),
)
#: Rows of a stream below which its losses are marked: one mistake is a fifth of a point or more.
FEW_ROWS = 500


# --- how values are written -----------------------------------------------------------------------


def filled(text: str, indent: str = "") -> str:
    """Return a paragraph in lines of 100 characters, with links whole, and the end of its line.

    `indent` goes before all lines but the first, as of an item of a list.
    """
    how: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(text.strip(), 100, subsequent_indent=indent, **how) + "\n"


def percent(value: float | None, status: str = "", digits: int = 2) -> str:
    """Return an error in percent, or why there is none."""
    if value is not None:
        return f"{100 * value:.{digits}f}"
    return "failed" if "failed" in status else "limit" if "limit" in status else "-"


def points(difference: float) -> str:
    """Return a difference of errors in points, with its sign."""
    return f"{round(100 * difference, 2) + 0.0:+.2f}"  # never -0.00


def lead(gap: Record | None) -> str:
    """Return the lead of a gap, bold where it is behind."""
    if gap is None:
        return "-"
    return f"**{points(-gap['gap'])}**" if gap["gap"] >= HALF else points(-gap["gap"])


def both(ours: float | None, theirs: float | None, status: str = "", digits: int = 2) -> str:
    """Return two cells of errors, the lower one bold if it is so by a point or more.

    Where our run has no error, `status` says what became of it.
    """
    texts = [percent(ours, status, digits), percent(theirs, digits=digits)]
    gap = 0.0 if ours is None or theirs is None else gap_of(ours, theirs)
    cells = [
        f"**{text}**" if lower >= POINT else text
        for text, lower in zip(texts, (-gap, gap), strict=True)
    ]
    return " | ".join(cells)


def when(delay: str | None) -> str:
    """Say when labels come."""
    return "at once" if delay is None else f"{int(delay):,} rows late"


def short(delay: str | None) -> str:
    """Say when labels come, as a heading."""
    return when(delay).replace(" rows", "")


def named(loss: Record) -> str:
    """Name a stream and by how much which model is better there."""
    return f"`{loss['stream']}` ({percent(loss['gap'])} points behind {loss['rival']})"


def numbered(pair: Record) -> str:
    """Name the other model of a pair, and the number of streams."""
    return f"{pair['other']} ({pair['n']})"


def kind_of(stream: str) -> str:
    """Return the kind of a stream."""
    return STREAMS[stream].kind


def quoted(name: str) -> str:
    """Return the name of a stream as code."""
    return f"`{name}`"


def change(changed: tuple[float, str], sign: int, *, named: bool = True) -> str:
    """Return by how many points an error changed, and where; nothing if not into this direction."""
    difference, stream = sign * changed[0], changed[1]
    if difference < TENTH:
        return ""
    return f"{100 * difference:.1f}" + f", {starred(stream)}" * named


def starred(stream: str) -> str:
    """Return the name of a stream as code, with a star if it is a development stream."""
    return quoted(stream) + "\\*" * (not STREAMS[stream].heldout)


def thousands(number: int) -> str:
    """Return a number of rows."""
    return f"{number:,}"


# --- the test -------------------------------------------------------------------------------------


def least_p(pair: Record) -> float:
    """Return the smallest p-value of the test of n differences, which leaves out ties."""
    return float(2.0 ** (1 + pair["ties"] - pair["n"]))


def is_tested(pair: Record) -> bool:
    """Whether the test can find anything."""
    return least_p(pair) < 0.05


def is_significant(pair: Record) -> bool:
    """Whether it did."""
    return is_tested(pair) and pair["holm"] < 0.05


def p_values(pair: Record) -> str:
    """Return two cells: the least p-value that there can be, and the one that there is."""
    least = f"{least_p(pair):.2g}" if least_p(pair) >= 0.001 else "<0.001"
    return f"{least} | {pair['holm']:.2g}" if is_tested(pair) else f"{least} | -"


def verdict(pairs: Sequence[Record]) -> str:
    """Say which differences from `OWN` are significant."""
    known = [pair for pair in pairs if is_significant(pair)]
    parts = []
    for word, sign in (("better", -1), ("worse", 1)):
        if names := [pair["other"] for pair in known if sign * pair["median_difference"] > 0]:
            parts.append(f"The {OWN} is significantly {word} than {listed(names)}.")
    return " ".join(parts) or "No difference is significant."


# --- what the templates are told ------------------------------------------------------------------


def rows_after_delay(length: int) -> int:
    """Count the rows of a stream, of so many, that `error_after_delay` is of: whole windows."""
    edges = edges_of(length, N_WINDOWS)
    return length - next((edge for edge in edges if edge >= FIRST), length)


class Arena(Standings):
    """The standings, as the pages show them."""

    @property
    def held_out(self) -> list[str]:
        """Names of the held-out streams."""
        return self.of_kind(HELD_OUT)

    def status(self, stream: str, model: str, delay: str | None = None) -> str:
        """What became of a model on a stream; empty where it has not run."""
        row = self.asked.get((stream, model, delay))
        return "" if row is None else row["status"]

    def length(self, stream: str) -> int:
        """Rows of a stream, with the first, which does not count."""
        rows: int = max(row["rows"] for row in self.rows if row["stream"] == stream)
        return rows + 1

    def counted(self, stream: str, delay: str | None = None) -> int:
        """Rows of a stream that errors with this delay are of."""
        length = self.length(stream)
        return length - 1 if delay is None else rows_after_delay(length)

    def ended(
        self, streams: Iterable[str], models: Collection[str], delay: str | None = None
    ) -> list[str]:
        """Those of some streams on which one or more of some models have ended well."""
        return [
            stream
            for stream in streams
            if any(self.error(stream, model, delay) is not None for model in models)
        ]

    @property
    def data_sets(self) -> list[str]:
        """Names of the held-out streams that are data sets."""
        return [stream for stream in self.held_out if STREAMS[stream].source]

    @property
    def generated(self) -> list[str]:
        """Names of the other ones."""
        return [stream for stream in self.held_out if not STREAMS[stream].source]

    @property
    def standing(self) -> dict[str, Record]:
        """Tallies of held-out streams, labels at once, by what they are."""
        parts = {"data sets": self.data_sets, "generated": self.generated, "all": self.held_out}
        rows = ((name, self.tally(streams)) for name, streams in parts.items())
        return {name: row for name, row in rows if row}

    @property
    def against_large(self) -> Record | None:
        """The tally of held-out streams, labels at once, with `LARGE` as the only others."""
        return self._only(lambda run: run["model"] in {OWN, *LARGE}).tally(self.held_out)

    @property
    def by_seed(self) -> dict[str, str]:
        """The tally of each seed of `OWN` alone: the least and the greatest number, as a text."""
        seeds = {run["seed"] for run in self.runs if run["model"] == OWN} - {None}
        kept = (
            self._only(lambda run, seed=seed: run["model"] != OWN or run["seed"] == seed)
            for seed in sorted(seeds)
        )
        tallies = [row for one in kept if (row := one.tally(self.held_out))]
        return {
            name: " to ".join(
                dict.fromkeys(str(pick(row[name] for row in tallies)) for pick in (min, max))
            )
            for name in ("ahead", "by_a_point", "behind")
            if tallies
        }

    def _only(self, is_kept: Callable[[Record], bool]) -> Arena:
        """Return the standings of some runs with labels at once."""
        return Arena([run for run in self.runs if run["delay"] is None and is_kept(run)])

    @cached_property
    def plain(self) -> Arena:
        """The standings with `PLAIN` in the place of `OWN` where labels are late."""
        kept = (run for run in self.runs if run["model"] != OWN or run["delay"] is None)
        return Arena([{**run, "model": OWN} if run["model"] == PLAIN else run for run in kept])

    def by_setting(self, delay: str | None) -> dict[str, Arena]:
        """Return the standings by the setting of `late`, which labels at once need not."""
        return {"-": self} if delay is None else {"True": self, "False": self.plain}

    @property
    def standing_late(self) -> list[tuple[str | None, str, Record]]:
        """Tallies of held-out streams by delay and setting, if any is late.

        With labels at once the rivals are those alone that have ended with each delay.
        """
        delays = self.delays if set(self.delays) - {None} else []
        rows = (
            (delay, setting, one.tally(self.held_out, delay, always=delay is None))
            for delay in delays
            for setting, one in self.by_setting(delay).items()
        )
        return [(delay, setting, row) for delay, setting, row in rows if row]

    @property
    def short(self) -> dict[str, int]:
        """Held-out streams behind with late labels of which few rows count, and these."""
        rows = [row for one in (self, self.plain) for row in one.gaps() if row["delay"]]
        behind = dict.fromkeys(row["stream"] for row in rows if row["gap"] >= HALF)
        counted = {s: self.counted(s, self.delays[-1]) for s in self.held_out if s in behind}
        return {stream: n for stream, n in counted.items() if 0 < n < FEW_ROWS}

    def behind_on(self, streams: Iterable[str], delay: str | None) -> int:
        """Count those of some streams that are behind."""
        gaps = {row["stream"]: row["gap"] for row in self.gaps() if row["delay"] == delay}
        return sum(gaps.get(stream, 0.0) >= HALF for stream in streams)

    def gap(self, stream: str, delay: str | None = None) -> Record | None:
        """Return the gap on a stream, if it is known."""
        return self._gaps.get((stream, delay))

    @cached_property
    def _gaps(self) -> dict[tuple[str, str | None], Record]:
        return {(row["stream"], row["delay"]): row for row in self.gaps()}

    def leads_on(self, streams: Iterable[str]) -> list[Record]:
        """Return the gaps on some streams, labels at once, the largest lead first."""
        return sorted(filter(None, map(self.gap, streams)), key=itemgetter("gap"))

    def winners(self, stream: str) -> list[str]:
        """Return the best others on a stream where they err less than either setting."""
        gaps = (one.gap(stream, delay) for delay in self.delays for one in (self, self.plain))
        return list(dict.fromkeys(gap["rival"] for gap in gaps if gap and gap["gap"] >= TENTH))

    def lost_late(self) -> list[tuple[str, str, Record | None, Record | None]]:
        """Return held-out streams and delays of a loss with either setting, and the gaps."""
        settings = self, self.plain
        late = [delay for delay in self.delays if delay is not None]
        rows = [(s, d, *(one.gap(s, d) for one in settings)) for d in late for s in self.held_out]
        largest = [max((gap["gap"] for gap in row[2:] if gap), default=0.0) for row in rows]
        order = sorted(range(len(rows)), key=lambda i: (late.index(rows[i][1]), -largest[i]))
        return [rows[i] for i in order if largest[i] >= TENTH]

    def changed_by(self, streams: Iterable[str], delay: str) -> Record:
        """Count where `late=True` errs less than `late=False`, by a tenth of a point, and more.

        Beside it stand the streams where it gains and loses most, and the differences.
        """
        pairs = ((s, [self.error(s, name, delay) for name in (OWN, PLAIN)]) for s in streams)
        changes = [(gap_of(*pair), stream) for stream, pair in pairs if None not in pair]
        return {
            "number": len(changes),
            "less": sum(change <= -TENTH for change, _ in changes),
            "more": sum(change >= TENTH for change, _ in changes),
            "gained": min(changes),
            "lost": max(changes),
        }

    def dearer(self, cost: str, delay: str) -> float:
        """By how many times more `OWN` costs than with labels at once, in the geometric mean."""
        pairs = [
            [self.asked[stream, OWN, d][cost] for d in (delay, None)]
            for stream in self.ended(self.streams, [OWN], delay)
        ]
        return float(np.exp(np.mean([np.log(late / once) for late, once in pairs])))

    def spent(self, model: str, *, late: bool) -> dict[str, list[float]]:
        """Return least, median and greatest time and memory over streams and delays."""
        rows = [
            row for row in self.rows if row["model"] == model and (row["delay"] is not None) is late
        ]
        return {
            name: [float(pick([row[name] for row in rows])) for pick in (min, np.median, max)]
            for name in ("microseconds", "memory")
        }

    @cached_property
    def at_once(self) -> list[Record]:
        """Its `leads`."""
        return self.leads()

    @property
    def behind(self) -> list[Record]:
        """Those behind by half a point or more, the largest gap first."""
        return [row for row in reversed(self.at_once) if row["gap"] >= HALF]

    @property
    def worst(self) -> Record | None:
        """The greatest loss on development streams, if there is any."""
        losses = (row for row in self.losses() if row["stream"] not in self.held_out)
        return max(losses, key=itemgetter("gap"), default=None)

    @property
    def absent(self) -> list[str]:
        """Models that ended on held-out streams with labels at once, but nowhere with late ones."""
        ended = {d: {m for s in self.held_out for m in self.others(s, d)} for d in self.delays}
        at_once, late = ended.pop(None, set()), set().union(*ended.values())
        return [model for model in self.models if model in at_once - late] if late else []

    def large_on(self, stream: str) -> int:
        """Count the ensembles of `LARGE` that have ended on a stream."""
        return sum(self.error(stream, model) is not None for model in LARGE)

    def is_weak(self, stream: str) -> bool:
        """Whether no strong rival has ended on a stream."""
        return not self.ended([stream], STRONG)

    def lost(self, *, tuned: bool) -> list[Record]:
        """Return the losses on development streams."""
        return [row for row in self.losses(tuned=tuned) if row["stream"] in self.developed]

    @property
    def standing_tuned(self) -> dict[str, int]:
        """Count development streams, labels at once, with all settings of the rivals."""
        rows = [*self.gaps(tuned=True), *self.gaps()]
        largest: dict[str, float] = {}
        for row in sorted(rows, key=itemgetter("gap")):
            if row["delay"] is None and row["stream"] in self.developed:
                largest[row["stream"]] = row["gap"]
        gaps = largest.values()
        ahead, behind = sum(gap <= -HALF for gap in gaps), sum(gap >= HALF for gap in gaps)
        return {"ahead": ahead, "level": len(gaps) - ahead - behind, "behind": behind}

    @property
    def lost_somewhere(self) -> list[str]:
        """Names of development streams with a loss, with any delay and setting."""
        lost = {row["stream"] for one in (self, self.plain) for row in one.lost(tuned=False)}
        return [stream for stream in self.developed if stream in lost]

    @cached_property
    def held_out_pairs(self) -> list[Record]:
        """The pairs of held-out streams."""
        return self.pairs(HELD_OUT)

    def tested(self, *, strong: bool) -> list[Record]:
        """Return those of them with strong rivals, or with the other models."""
        return [
            pair
            for pair in self.held_out_pairs
            if (pair["other"] in STRONG) is strong and not pair["other"].startswith(OWN)
        ]

    def where(self, pairs: Iterable[Record]) -> dict[str, list[str]]:
        """Return others that ended on too few streams for the test, by the names of these."""
        few: dict[str, list[str]] = {}
        for pair in pairs:
            if not is_tested(pair):
                ended = self.ended(self.held_out, [pair["other"]])
                few.setdefault(listed(ended), []).append(pair["other"])
        return few

    def clear(self, *, ahead: bool) -> list[Record]:
        """Return those of half a point or more, ahead or behind, of two standard errors or more."""
        sign = -1 if ahead else 1
        counted = [row for row in self.at_once if sign * row["gap"] >= HALF]
        return [row for row in counted if sign * row["gap"] >= 2 * self.doubt(row)]

    def doubt(self, gap: Record) -> float:
        """Return the most that the standard error of a gap may be, rows being independent.

        One model alone errs on at most as many rows as both have mistakes together. Each such row
        adds or subtracts 1.
        """
        ours, theirs = gap["error"], gap["theirs"]
        variance = ours + theirs - (ours - theirs) ** 2
        return float(np.sqrt(variance / self.counted(gap["stream"])))

    def seeds(self, stream: str) -> str:
        """Return the lowest and the highest error of `OWN` over its seeds, labels at once."""
        errors = [
            run["error"]
            for run in self.runs
            if _place(run) == (stream, OWN, None)
            if run["error"] is not None
        ]
        return f"{percent(min(errors))}-{percent(max(errors))}" if len(errors) > 1 else "-"

    def times(self, other: str, streams: Iterable[str]) -> str:
        """Return by how many an example takes longer than with `OWN`, in the geometric mean."""
        timed = ([self.asked.get((s, m, None)) for m in (OWN, other)] for s in streams)
        ratios = [
            theirs["microseconds"] / ours["microseconds"]
            for ours, theirs in timed
            if ours and theirs and ours["status"] == theirs["status"] == "ok"
            if ours["microseconds"] and theirs["microseconds"]
        ]
        if not ratios:
            return "-"
        mean = np.exp(np.mean(np.log(ratios)))
        return f"{mean:.0f} ({min(ratios):.0f}-{max(ratios):.0f})"

    def real_of(self, streams: Iterable[str]) -> list[int]:
        """Return the lengths of those of some streams that are of real data."""
        return [self.length(stream) for stream in streams if STREAMS[stream].source]

    def run_on(self, kind: str, delay: str | None) -> list[str]:
        """Names of the streams of a kind on which anything has run with a delay."""
        return [
            s for s in self.of_kind(kind) if any((s, m, delay) in self.asked for m in self.models)
        ]

    def columns(self, streams: Iterable[str], delay: str | None) -> dict[str, str]:
        """Headings of the models with a column that have run on some streams, by model."""
        return {
            model: COLUMNS[model]
            for model in self.models
            if model in COLUMNS and any((s, model, delay) in self.asked for s in streams)
        }

    def means(self, kind: str) -> tuple[list[str], list[str | None], dict[str, list[float]]]:
        """Return streams, delays, and mean errors by model over these, with each of those.

        They are of models that have ended on at least half of the streams with each delay.
        """
        streams = self.of_kind(kind)
        delays = [
            d
            for d in self.delays
            if 2 * len(self.ended(streams, [OWN], d)) >= len(streams)
            if 2 * sum(bool(self.others(s, d)) for s in streams) >= len(streams)
        ]
        ended: dict[str, dict[str, list[float]]] = {}
        for model in self.models:
            names = {delay: OWN if delay is None and model == PLAIN else model for delay in delays}
            every = {s: [self.error(s, names[d], d) for d in delays] for s in streams}
            complete: Any = {s: errors for s, errors in every.items() if None not in errors}
            if delays and complete and 2 * len(complete) >= len(streams):
                ended[model] = complete
        common = [s for s in streams if all(s in complete for complete in ended.values())]
        if not ended or not common:
            return [], [], {}
        means = {m: np.mean([errors[s] for s in common], axis=0) for m, errors in ended.items()}
        order = sorted(means, key=lambda model: float(means[model][0]))
        return common, delays, {model: means[model].tolist() for model in order}

    def coverage(self, kind: str) -> dict[tuple[int, ...], list[str]]:
        """Return models by the number of streams on which they have ended with each delay."""
        streams, models = self.of_kind(kind), dict[tuple[int, ...], list[str]]()
        for model in self.models:
            if not model.endswith(", tuned"):
                ended = tuple(len(self.ended(streams, [model], delay)) for delay in self.delays)
                models.setdefault(ended, []).append(model)
        return models

    @property
    def not_ended(self) -> Iterator[tuple[str, str, str | None, str, str]]:
        """Stream, model, delay, outcome and message of each run that has not ended well."""
        messages = {_place(run): run["message"] for run in self.runs}
        for (stream, model, delay), row in self.asked.items():
            if row["status"] != "ok":
                yield stream, model, delay, row["status"], messages[stream, model, delay]

    @property
    def developed(self) -> list[str]:
        """Names of the development streams."""
        return [stream for stream in self.streams if stream not in self.held_out]

    @property
    def groups(self) -> dict[str, list[str]]:
        """Names of all streams but `PERIODIC`, by what tells which setting of `late` suits them."""
        names = "held-out tables", "development tables", "texts", "generated"
        groups: dict[str, list[str]] = {name: [] for name in names}
        for stream in self.streams:
            entry = STREAMS[stream]
            tables, texts, generated = names[not entry.heldout], *names[2:]
            kind = texts if entry.sparse else tables if entry.source else generated
            if stream != PERIODIC:
                groups[kind].append(stream)
        return groups

    @property
    def unknown_drift(self) -> list[str]:
        """Names of the held-out streams of which nobody has tested whether they drift."""
        return [stream for stream in self.data_sets if stream not in STILL]


def page(template: str, standings: Arena) -> str:
    """Return what a template makes of the standings."""
    environment = Environment(  # noqa: S701 - Markdown, of numbers and names of ours
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (filled, percent, points, lead, when, short, listed, named, numbered, quoted)
    filters += (starred, change, thousands)
    environment.filters |= {one.__name__: one for one in filters}
    environment.tests |= {one.__name__: one for one in (is_significant, standings.is_weak)}
    functions = {one.__name__: one for one in (both, kind_of, p_values, verdict)}
    constants = {"KINDS": KINDS, "TITLES": TITLES, "BASELINES": BASELINES, "HALF": HALF}
    constants |= {"OWN": OWN, "PLAIN": PLAIN, "STILL": STILL, "PERIODIC": PERIODIC}
    return environment.get_template(template).render(arena=standings, **constants, **functions)


# --- the runs and the files -----------------------------------------------------------------------


def kept() -> list[Record]:
    """Return the runs that are kept."""
    columns = ARENA.tables["runs"].columns
    runs: list[Record] = parquet.read_table(RUNS, columns=list(columns)).to_pylist()
    return runs


def runs_in(folder: Path) -> list[Record]:
    """Return the runs in a folder of `drift arena`."""
    records = select(RunFolder(folder).read().values())
    if not records:
        raise SystemExit(f"{folder}: has no runs of the arena")
    return [*Results(ARENA, records, {}, {"quick": False}, 0.0).rows("runs")]


def merged(known: Sequence[Record], new: Sequence[Record]) -> list[Record]:
    """Return the runs that are kept with new ones in the place of equal ones.

    The baselines run in every call: those that are kept stay, with their times. Of a model that has
    several seeds now, the run without a seed goes.
    """
    lengths = {run["stream"]: run["rows"] for run in known if run["status"] == "ok"}
    for run in new:
        length = lengths.get(run["stream"], run["rows"])
        if run["status"] == "ok" and run["rows"] != length:
            text = f"{run['rows']} rows of {run['stream']} count, not {length}: not whole streams?"
            raise SystemExit(text)
    seeded = {_place(run) for run in new if run["seed"] is not None}
    known = [run for run in known if run["seed"] is not None or _place(run) not in seeded]
    return select([*new, *known, *(run for run in new if run["model"] not in BASELINES)])


def _place(run: Record) -> tuple[str, str, str | None]:
    return run["stream"], run["model"], run["delay"]


def main() -> None:
    """Add runs, if folders are named, and make all pages."""
    runs = kept()
    for folder in sys.argv[1:]:
        runs = merged(runs, runs_in(Path(folder)))
    tables = {"runs": ARENA.tables["runs"]._replace(rows=lambda results: results.records)}
    results = Results(ARENA._replace(tables={**ARENA.tables, **tables}), runs, {}, {}, 0.0)
    if sys.argv[1:]:
        RunFolder(DOCS).write_parquet(RUNS.stem, results["runs"])
    for name in FIGURES:
        save(results.plot(name), DOCS / "img" / f"{name}.svg")
    standings = Arena(runs)
    for name in PAGES:
        (DOCS / name).write_text(page(name, standings), "utf-8")
    for name in OTHERS:
        text = (ROOT / name).read_text("utf-8")
        (ROOT / name).write_text(renewed(text, standings), "utf-8")


def renewed(text: str, standings: Arena) -> str:
    """Return a page with its blocks made anew."""
    return BLOCK.sub(lambda match: match[1] + page(f"{match[2]}.md", standings) + match[3], text)


if __name__ == "__main__":
    main()
