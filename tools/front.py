"""Put the table of errors into the README, from the runs beside the page of the arena.

    python tools/front.py

`drift arena --page docs/arena.md` adds runs to docs/arena-runs.parquet. Of the held-out streams
those of real data are shown, and each on which the Tracker is behind.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from drift.experiments.arena import ARENA
from drift.experiments.arena.kept import runs_of_page
from drift.experiments.arena.page import standing, standing_late, verdict
from drift.experiments.arena.standings import OWN, STRONG, Standings, tally
from drift.experiments.arena.streams import STREAMS

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- arena -->\n).*?(<!-- end -->)", re.DOTALL)
TABLE = "| stream | rows | `Tracker` | best other | its name | of |\n|---|---|---|---|---|---|"
RESULT = """\
**On {ahead} of {number} held-out streams the Tracker errs at least half a point less than the best
other model**, on {by a point} of these a point or more. On {level} it is level, on {behind} it errs
more. Each model has one run, of one seed, over the first 20,000 rows, so differences of less than a
point may be chance."""
WORDS = f"""\
On *held-out* streams no constant of the {OWN} was chosen. The *best other* model is the one with
the lowest error on a stream, chosen in hindsight among its *rivals*: all models of drift, River,
scikit-learn and MOA that ran there. *Level*: less than half a point apart."""
SHOWN = ("streams", "labels", "number", "rivals", "ahead", "by a point", "level", "behind")
FEWER = """\
{} That is with labels at once. For the other forests, bagging and boosting the test [does not
decide](docs/arena.md#against-forests-bagging-and-boosting), which does not make them equal. With
late labels [fewer rivals ran](docs/arena.md#labels-that-come-late)."""
HELDOUT = f"""\
**Held-out streams**, labels at once, errors in percent: the {{}} of real data, and each other on
which the {OWN} is behind. *Of*: the number of rivals. Bold: lower by a point or more."""
BUILT = f"""\
On the {{number}} **development** streams, which built the {OWN}, it is ahead on {{}}, level on {{}}
and behind on {{}}: expect less on your data."""
NAMES = {
    "PassiveAggressive": "*PassiveAggressive* is a kernel model of drift's.",
    "PA": "*PA* is a linear model of River's.",
}
#: Marks rows where no strong rival has ended.
WEAK = "†"


def block(standings: Standings) -> str:
    """Return the result in words, and tables of held-out streams."""
    heldout = standings.of_kind("held-out")
    gaps = {row["stream"]: row["gap"] for row in standings.gaps() if row["delay"] is None}
    real = [name for name in heldout if STREAMS[name].source]
    shown = [name for name in heldout if name in real or gaps.get(name, 0) >= 0.005]
    built = [name for name in standings.streams if name not in heldout]
    strong = [row for row in standings.pairs("held-out") if row["other"] in STRONG]
    is_weak = len(standings.contested(shown)) < len(shown)
    weak = f" {WEAK}: no forest, bagging or boosting ran there with labels at once." * is_weak
    rows = "\n".join([TABLE, *rows_of(standings, shown)])
    names = [about for name, about in NAMES.items() if f"| {name} |" in rows]
    parts = [
        filled(RESULT.format(**next(standing(standings, "held-out")))),
        filled(WORDS),
        stands(standings),
        filled(FEWER.format(verdict(strong))),
        filled(HELDOUT.format(len(real))),
        rows,
        filled(f"{' '.join(names)}{weak}"),
        filled(BUILT.format(*tally(standings.gaps_of(built)), number=len(built))),
    ]
    return "".join(f"\n{part}\n" for part in parts) + "\n"


def stands(standings: Standings) -> str:
    """Return the table that says where the Tracker stands on held-out streams."""
    first, *others = standing(standings, "held-out")
    late = list(standing_late(standings))[-1:]
    rows = [[str(row[name]) for name in SHOWN] for row in (first, *others[-1:], *late)]
    heads = ["held-out streams", *SHOWN[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def filled(text: str) -> str:
    """Return a paragraph in lines of 100 characters."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def rows_of(standings: Standings, names: Iterable[str]) -> Iterable[str]:
    """Yield a row of a table for each stream on which the Tracker has run."""
    for name in names:
        ours, others = standings.error(name, OWN), standings.others(name)
        if ours is None or not others:
            continue
        best, error = next(iter(others.items()))
        lower = [theirs - own >= 0.01 for own, theirs in ((ours, error), (error, ours))]
        cells = [f"{100 * error:.1f}" for error in (ours, error)]
        shown = [f"**{cell}**" if low else cell for cell, low in zip(cells, lower, strict=True)]
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
