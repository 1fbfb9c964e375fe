"""Put the table of errors into the README, from the runs beside the page of the arena.

    python tools/front.py

`drift arena --page docs/arena.md` adds runs to docs/arena-runs.parquet. Of the held-out streams
those of real data are shown, and each on which the Tracker is behind.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from drift.experiments.arena import ARENA
from drift.experiments.arena.kept import runs_of_page
from drift.experiments.arena.page import (
    filled,
    headline,
    large_of,
    marked,
    standing_late,
    verdict,
)
from drift.experiments.arena.standings import OWN, STRONG, Standings, tally
from drift.experiments.arena.streams import STREAMS

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- arena -->\n).*?(<!-- end -->)", re.DOTALL)
TABLE = f"""\
| stream | rows | `{OWN}` | best other | its name | of | MOA |
|---|---|---|---|---|---|---|"""
WORDS = f"""\
These streams are *held out*: no constant of the {OWN} was chosen on them. The *best other* model is
the one with the lowest error on a stream, chosen in hindsight among its *rivals*, all models that
ran there. *Level*: less than half a point apart."""
LATE = """\
With labels {labels} it is ahead on {ahead}, level on {level} and behind on {behind}, of {number};
[fewer rivals ran](docs/arena.md#labels-that-come-late) then."""
TEST = """\
With labels at once, by [Wilcoxon's test](docs/arena.md#against-forests-bagging-and-boosting), {}
For the other forests, bagging and boosting the test does not decide, which does not make them
equal."""
HELDOUT = f"""\
**Held-out streams**, labels at once, errors in percent: the {{}} of real data, and each other on
which the {OWN} is behind. *Of*: the number of rivals. *MOA*: how many of the three ensembles of
MOA, a Java library, are among them. Bold: lower by a point or more."""
BUILT = f"""\
On the {{number}} **development** streams, on which the {OWN} was developed, it is ahead on {{}},
level on {{}} and behind on {{}}: expect less on your data."""
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
    tested = verdict([row for row in standings.pairs("held-out") if row["other"] in STRONG])
    is_weak = len(standings.contested(shown)) < len(shown)
    weak = f" {WEAK}: no forest, bagging or boosting ran there with labels at once." * is_weak
    rows = "\n".join([TABLE, *rows_of(standings, shown)])
    names = [about for name, about in NAMES.items() if f"| {name} |" in rows]
    parts = [
        *headline(standings),
        *(filled(LATE.format(**row)) for row in [*standing_late(standings)][-1:]),
        filled(WORDS),
        filled(TEST.format(tested[0].lower() + tested[1:])),
        filled(HELDOUT.format(len(real))),
        rows,
        filled(f"{' '.join(names)}{weak}"),
        filled(BUILT.format(*tally(standings.gaps_of(built)), number=len(built))),
    ]
    return "".join(f"\n{part}\n" for part in parts) + "\n"


def rows_of(standings: Standings, names: Iterable[str]) -> Iterable[str]:
    """Yield a row of a table for each stream on which the Tracker has run."""
    for name in names:
        ours, others = standings.error(name, OWN), standings.others(name)
        if ours is None or not others:
            continue
        best, error = next(iter(others.items()))
        shown = marked(ours, error, digits=1)
        rows = standings.length(name)
        mark = "" if standings.contested([name]) else f" {WEAK}"
        cells = (name, f"{rows:,}", *shown, best, f"{len(others)}{mark}", large_of(standings, name))
        yield f"| {' | '.join(cells)} |"


def readme(text: str) -> str:
    """Return the README with its table made anew."""
    page = ROOT / "docs" / "arena.md"
    standings = Standings(runs_of_page(page, ARENA.tables["runs"].columns))
    return BLOCK.sub(lambda match: match[1] + block(standings) + match[2], text)


if __name__ == "__main__":
    README.write_text(readme(README.read_text("utf-8")), "utf-8")
