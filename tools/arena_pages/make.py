"""Make the arena's pages, and the table of errors in the README, from the runs that are kept.

    python tools/arena_pages/make.py [FOLDER...]

The runs of each FOLDER, one of `drift arena`, are first added to docs/arena-runs.parquet, in the
place of equal ones. The text is in the templates beside this file; `PAGES` and `FIGURES` in docs
are made of them and the runs, and all between `<!-- arena -->` and `<!-- end -->` in the README.
Needs the extras `compare` and `docs`.
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

from drift.experiments.arena import ARENA
from drift.experiments.arena.models import MODELS
from drift.experiments.arena.standings import (
    FIRST,
    HALF,
    OWN,
    POINT,
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
BLOCK = re.compile(r"(<!-- arena -->\n).*?(<!-- end -->)", re.DOTALL)
HELD_OUT = KINDS[0]
TITLES = {
    HELD_OUT: "Held-out streams",
    "real": "Real development streams",
    "generated": "Generated development streams",
}
#: Models with a column in the tables of all errors, and its heading.
COLUMNS = {
    "logistic regression": "logistic",
    "retrained boosting": "boosting",
    "Tracker late=False": "late=False",
    **{name: name for name in ("ARF", "MOA SGBT", "MOA ARF")},
}
#: Ensembles of 100 trees.
LARGE = ("MOA SGBT", "MOA ARF", "MOA SRP")
#: Forests, bagging and boosting, which win on most tables.
STRONG = (
    *(name for name, family in MODELS.items() if family.ensemble),
    *("retrained boosting", *LARGE),
)
#: Rows of the shortest stream up to which the page says what one mistake is.
FEW_ROWS = 200


# --- how values are written -----------------------------------------------------------------------


def filled(text: str) -> str:
    """Return a paragraph in lines of 100 characters, with links whole, and the end of its line."""
    return textwrap.fill(text.strip(), 100, break_long_words=False, break_on_hyphens=False) + "\n"


def percent(value: float | None, status: str = "", digits: int = 2) -> str:
    """Return an error in percent, or why there is none."""
    if value is not None:
        return f"{100 * value:.{digits}f}"
    return "failed" if "failed" in status else "limit" if "limit" in status else "-"


def points(difference: float) -> str:
    """Return a difference of errors in points, with its sign."""
    return f"{round(100 * difference, 2) + 0.0:+.2f}"  # never -0.00


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


def listed(names: Sequence[str]) -> str:
    """Return names as a text lists them."""
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + list(names[-1:]))


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

    @property
    def standing_late(self) -> list[tuple[str | None, Record]]:
        """Tallies of held-out streams by delay, if any is late.

        With labels at once the rivals are those alone that have ended with each delay.
        """
        delays = self.delays if set(self.delays) - {None} else []
        rows = ((d, self.tally(self.held_out, d, always=d is None)) for d in delays)
        return [(delay, row) for delay, row in rows if row]

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

    def lost(self, kinds: Sequence[str], *, late: bool, tuned: bool) -> list[Record]:
        """Return the losses on some kinds of streams; `late`: with late labels alone."""
        return [
            row
            for row in self.losses(tuned=tuned)
            if STREAMS[row["stream"]].kind in kinds and not (late and row["delay"] is None)
        ]

    def few_rows(self, losses: Iterable[Record]) -> int:
        """Return the rows of the shortest stream if one mistake is half a point there, else 0."""
        counted = (self.counted(row["stream"], row["delay"]) for row in losses)
        fewest = min(filter(None, counted), default=0)
        return fewest if fewest <= FEW_ROWS else 0

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
            every = {s: [self.error(s, model, delay) for delay in delays] for s in streams}
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
    def shown(self) -> list[Record]:
        """The gaps of the README: on real held-out streams, and where the Tracker is behind."""
        gaps = {row["stream"]: row for row in self.at_once}
        chosen = (s for s in self.held_out if STREAMS[s].source or gaps[s] in self.behind)
        return [gaps[stream] for stream in chosen if stream in gaps]


def page(template: str, standings: Arena) -> str:
    """Return what a template makes of the standings."""
    environment = Environment(  # noqa: S701 - Markdown, of numbers and names of ours
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (filled, percent, points, when, short, listed, named, numbered, quoted, thousands)
    environment.filters |= {one.__name__: one for one in filters}
    environment.tests |= {one.__name__: one for one in (is_significant, standings.is_weak)}
    functions = {one.__name__: one for one in (both, kind_of, p_values, verdict)}
    there = {"arena": standings, "arena_page": "docs/arena.md" if template == "readme.md" else ""}
    return environment.get_template(template).render(
        KINDS=KINDS, TITLES=TITLES, BASELINES=BASELINES, HALF=HALF, **there, **functions
    )


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
    readme = ROOT / "README.md"
    readme.write_text(in_readme(readme.read_text("utf-8"), standings), "utf-8")


def in_readme(text: str, standings: Arena) -> str:
    """Return the README with its block made anew."""
    return BLOCK.sub(lambda match: match[1] + page("readme.md", standings) + match[2], text)


if __name__ == "__main__":
    main()
