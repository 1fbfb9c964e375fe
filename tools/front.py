"""Put the table of errors into the README, from the runs beside the page of the arena.

    python tools/front.py

`drift arena --page docs/arena.md` adds runs to docs/arena-runs.parquet. Of the held-out streams
those of real data are shown, and each on which the Tracker is behind; of the development streams
those that are named here.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from drift.experiments.arena import ARENA
from drift.experiments.arena.kept import runs_of_page
from drift.experiments.arena.page import verdict
from drift.experiments.arena.standings import LARGE, OWN, STRONG, Standings
from drift.experiments.arena.streams import STREAMS

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- arena -->\n).*?(<!-- end -->)", re.DOTALL)
#: A table of few columns, a text, two generated ones.
DEVELOPMENT = ("electricity", "rcv1 shifts", "agrawal abrupt", "hyperplane")
TABLE = "| stream | rows | `Tracker` | best other | its name | of |\n|---|---|---|---|---|---|"
SUMMARY = f"""\
No constant of the {OWN} was chosen on the held-out streams. *Ahead* and *behind*: the errors of the
{OWN} and the best other model differ by half a point or more; *level*: by less. {{verdict}} ([all
tests](docs/arena-errors.md#pairs))

| held-out streams, labels at once | number | ahead | level | behind |
|---|---|---|---|---|
| all | {{all}} |
| those on which River's ARF, of ten trees, ended | {{forest}} |
| those on which MOA's ensembles, of 100 trees, ended | {{large}} |"""
HELDOUT = "**Held-out streams**: the {} of real data, and each other on which it is behind."
BUILT = "**Streams that built the Tracker**: expect less on your data."
NOTES = """\
- *Best other*: the best model of drift, {} on that stream with its defaults, **chosen in \
hindsight** among as many as *of* says; Trackers of another size do not count.{}
- *With deviations*: behind drift's own \
[`RecentDeviation`](docs/guide.md#features-whose-level-wanders), which gives a model the context \
that the Tracker has.
- {}"""
#: Marks rows where no strong rival has ended.
WEAK = "†"


def block(standings: Standings) -> str:
    """Return summary and tables, of held-out streams first."""
    heldout = standings.of_kind("held-out")
    gaps = {row["stream"]: row["gap"] for row in standings.gaps() if row["delay"] is None}
    real = [name for name in heldout if STREAMS[name].source]
    shown = [name for name in heldout if name in real or gaps.get(name, 0) >= 0.005]
    rows = list(rows_of(standings, shown)), list(rows_of(standings, DEVELOPMENT))
    parts = [
        summary(standings, heldout),
        HELDOUT.format(len(real)),
        "\n".join([TABLE, *rows[0]]),
        BUILT,
        "\n".join([TABLE, *rows[1]]),
        notes(standings, [*shown, *DEVELOPMENT]),
    ]
    return "".join(f"\n{part}\n" for part in parts) + "\n"


def summary(standings: Standings, heldout: list[str]) -> str:
    """Say where the Tracker stands on all held-out streams."""
    pairs = [row for row in standings.pairs("held-out") if row["other"] in STRONG]
    groups = {
        "all": heldout,
        "forest": standings.contested(heldout, ["ARF"]),
        "large": standings.contested(heldout, LARGE),
    }
    known = {name: " | ".join(map(str, standings.counts(group))) for name, group in groups.items()}
    about, table = SUMMARY.split("\n\n")
    said = verdict(pairs, "forests, bagging and boosting")
    late = filled(late_text(standings, heldout))
    return f"{filled(about.format(verdict=said))}\n\n{table.format(**known)}\n\n{late}"


def late_text(standings: Standings, heldout: list[str]) -> str:
    """Say where the Tracker stands with late labels, on development streams if no other has run."""
    delays = [delay for delay in standings.delays if delay]
    has_run = any(standings.counts(heldout, delay)[0] for delay in delays)
    streams = [stream for stream in standings.streams if (stream in heldout) == has_run]
    parts = []
    for delay in delays:
        number, ahead, level, behind = standings.counts(streams, delay)
        strong = len(standings.contested(streams, delay=delay))
        parts.append(
            f"{int(delay):,} rows late ahead on {ahead}, level on {level}, behind on {behind} of "
            f"{number} ({strong} with a forest, bagging or boosting)"
        )
    which = "On held-out" if has_run else "None has run on held-out streams yet. On development"
    return f"**Late labels.** {which} streams: {'; '.join(parts)}."


def notes(standings: Standings, streams: list[str]) -> str:
    """Say what the columns mean."""
    has_moa = any(name.startswith("MOA ") for name in standings.models)
    sources = "River, scikit-learn and MOA" if has_moa else "River and scikit-learn"
    is_weak = len(standings.contested(streams)) < len(streams)
    weak = f" {WEAK}: no forest, bagging or boosting ended there." if is_weak else ""
    lines = NOTES.format(sources, weak, runs_text(standings, streams)).splitlines()
    return "\n".join(filled(line, subsequent_indent="  ") for line in lines)


def filled(text: str, subsequent_indent: str = "") -> str:
    """Return a paragraph in lines of 100 characters."""
    return textwrap.fill(
        text,
        100,
        subsequent_indent=subsequent_indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def runs_text(standings: Standings, streams: Iterable[str]) -> str:
    """Say which errors are means of several runs."""
    several = {
        stream: max(row["runs"] for row in standings.rows if row["stream"] == stream)
        for stream in streams
    }
    several = {stream: runs for stream, runs in several.items() if runs > 1}
    if not several:
        return "One run each."
    runs, where = max(several.values()), ", ".join(several)
    return f"One run each; of forests and bagging on {where} the mean of {runs}."


def rows_of(standings: Standings, names: Iterable[str]) -> Iterable[str]:
    """Yield a row of a table for each stream on which the Tracker has run."""
    for name in names:
        ours, others = standings.error(name, OWN), standings.others(name)
        if ours is None or not others:
            continue
        best, error = next(iter(others.items()))
        cells = [f"{100 * error:.1f}" for error in (ours, error)]
        least = cells[error < ours]
        shown = [f"**{cell}**" if cell == least else cell for cell in cells]
        # The first row is learnt alone: its prediction does not count.
        rows = standings.asked[name, OWN, None]["rows"] + 1
        mark = "" if standings.contested([name]) else f" {WEAK}"
        yield f"| {name} | {rows:,} | {shown[0]} | {shown[1]} | {best} | {len(others)}{mark} |"


def readme(text: str) -> str:
    """Return the README with its table made anew."""
    page = ROOT / "docs" / "arena.md"
    standings = Standings(runs_of_page(page, ARENA.tables["runs"].columns))
    return BLOCK.sub(lambda match: match[1] + block(standings) + match[2], text)


if __name__ == "__main__":
    README.write_text(readme(README.read_text("utf-8")), "utf-8")
