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
from drift.experiments.arena.page import absent, standing, verdict
from drift.experiments.arena.standings import OWN, STRONG, Standings, tally
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
On **held-out** streams no constant of the {OWN} was chosen. The **best other** is the model with
the lowest error on a stream, **chosen in hindsight** among those of drift, {{sources}}. *Ahead* and
*behind*: the {OWN}'s error is half a point or more below or above it; *level*: by less. *Rivals*:
among how many models the best other was chosen, the fewest and the most on a stream."""
SHOWN = ("streams", "labels", "number", "rivals", "ahead", "by a point", "level", "behind")
HELDOUT = f"""\
**Held-out streams**, labels at once: the {{}} of real data, and each other on which the {OWN} is
behind."""
BUILT = f"""\
**Streams that built the {OWN}**, labels at once: expect less on your data. Four of {{number}}, one
of each sort: prices, a text, a generated stream, and the one on which it is behind. On all
{{number}} it is ahead on {{}}, level on {{}} and behind on {{}}."""
NOTES = """\
- *Of*: among how many models the best other was chosen; Trackers of another size do not count.{}
- *PassiveAggressive* is a kernel model of drift's, *PA* a linear one of River's.
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
    built = [name for name in standings.streams if name not in heldout]
    has_moa = any(name.startswith("MOA ") for name in standings.models)
    sources = "River, scikit-learn and MOA" if has_moa else "River and scikit-learn"
    strong = [row for row in standings.pairs("held-out") if row["other"] in STRONG]
    said = verdict(strong, "forests, bagging and boosting")
    parts = [
        filled(SUMMARY.format(sources=sources)),
        stands(standings),
        filled(absent(standings)),
        filled(f"{said} ([all tests](docs/arena-errors.md#pairs))"),
        filled(HELDOUT.format(len(real))),
        "\n".join([TABLE, *rows[0]]),
        filled(BUILT.format(*tally(standings.gaps_of(built)), number=len(built))),
        "\n".join([TABLE, *rows[1]]),
        notes(standings, [*shown, *DEVELOPMENT]),
    ]
    return "".join(f"\n{part}\n" for part in parts) + "\n"


def stands(standings: Standings) -> str:
    """Return the table that says where the Tracker stands on held-out streams."""
    rows = [
        [str(row[name]) for name in SHOWN]
        for row in standing(standings, "held-out")
        if "ARF" not in row["streams"]
    ]
    heads = ["held-out streams", *SHOWN[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def notes(standings: Standings, streams: list[str]) -> str:
    """Say what the columns mean."""
    is_weak = len(standings.contested(streams)) < len(streams)
    weak = f" {WEAK}: no forest, bagging or boosting ran there." if is_weak else ""
    lines = NOTES.format(weak, runs_text(standings, streams)).splitlines()
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
        return "One run of each model."
    runs, where = max(several.values()), " and ".join(several)
    return f"One run of each model; of forests and bagging on {where} the mean of {runs} seeds."


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
        rows = standings.length(name)
        mark = "" if standings.contested([name]) else f" {WEAK}"
        yield f"| {name} | {rows:,} | {shown[0]} | {shown[1]} | {best} | {len(others)}{mark} |"


def readme(text: str) -> str:
    """Return the README with its table made anew."""
    page = ROOT / "docs" / "arena.md"
    standings = Standings(runs_of_page(page, ARENA.tables["runs"].columns))
    return BLOCK.sub(lambda match: match[1] + block(standings) + match[2], text)


if __name__ == "__main__":
    README.write_text(readme(README.read_text("utf-8")), "utf-8")
