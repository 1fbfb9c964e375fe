"""Put the table of errors into the README, from the runs beside the page of the arena.

    python tools/front.py

`drift arena --page docs/arena.md` adds runs to docs/arena-runs.parquet. All held-out streams on
which the Tracker has run are shown, and the development streams that are named here.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from drift.experiments.arena import ARENA
from drift.experiments.arena.kept import runs_of_page
from drift.experiments.arena.models import MODELS
from drift.experiments.arena.standings import OWN, Standings
from drift.experiments.arena.streams import STREAMS

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- arena -->\n).*?(<!-- end -->)", re.DOTALL)
#: Two of each kind: tables of few columns, many columns and classes, text, generated.
DEVELOPMENT = (
    *("electricity", "weather", "insects", "letter"),
    *("rcv1 shifts", "spam", "agrawal abrupt", "hyperplane"),
)
#: Models of drift's.
OURS = [name for name, family in MODELS.items() if family.ours]
HEADINGS = {
    True: "no constant of the Tracker was chosen on these",
    False: "used to build it: expect less on your data",
}


ABOUT = """\
*Best other* is the best model of {} on that stream, **chosen in
hindsight**; *of* says among how many. drift's own other models, which [the arena](docs/arena.md)
counts as well, are left out: {}. *With deviations* means behind drift's own
[`RecentDeviation`](docs/guide.md#features-whose-level-wanders), which gives it the context that the
Tracker has. {}"""


def block(standings: Standings) -> str:
    """Return the tables, of held-out streams first."""
    heldout = [name for name in standings.streams if STREAMS[name].heldout]
    has_moa = any(name.startswith("MOA ") for name in standings.models)
    shown = [name for name in (*heldout, *DEVELOPMENT) if standings.error(name, OWN) is not None]
    sources = "River, scikit-learn and MOA" if has_moa else "River and scikit-learn"
    about = ABOUT.format(sources, own_text(standings, shown), runs_text(standings, shown))
    parts = [textwrap.fill(about, 100, break_long_words=False, break_on_hyphens=False)]
    for names, is_heldout in ((heldout, True), (DEVELOPMENT, False)):
        rows = list(rows_of(standings, names))
        if rows:
            heading = f"| {HEADINGS[is_heldout]} | rows | `Tracker` | best other | its name | of |"
            parts += ["\n".join([heading, "|---|---|---|---|---|---|", *rows])]
    return "".join(f"\n{part}\n" for part in parts) + "\n"


def own_text(standings: Standings, streams: Iterable[str]) -> str:
    """Say where another model of drift's is better than the best other."""
    best: dict[str, list[str]] = {}
    for stream in streams:
        of_all, of_others = (standings.others(stream, without=w) for w in ((), OURS))
        model, error = next(iter(of_all.items()), ("", 1.0))
        if of_others and error < min(of_others.values()):
            best.setdefault(model, []).append(f"{100 * error:.1f} on {stream}")
    named = "; ".join(f"`{model}` has {', '.join(where)}" for model, where in best.items())
    return named or "none of them is better here"


def runs_text(standings: Standings, streams: Iterable[str]) -> str:
    """Say which errors are means of several runs."""
    several = {
        stream: max(row["runs"] for row in standings.rows if row["stream"] == stream)
        for stream in streams
    }
    several = {stream: runs for stream, runs in several.items() if runs > 1}
    if not several:
        return "One run each."
    runs = max(several.values())
    where = ", ".join(several)
    return f"One run each; errors of forests and bagging are means of up to {runs} runs on {where}."


def rows_of(standings: Standings, names: Iterable[str]) -> Iterable[str]:
    """Yield a row of a table for each stream on which the Tracker has run."""
    for name in names:
        ours, others = standings.error(name, OWN), standings.others(name, without=OURS)
        if ours is None or not others:
            continue
        best, error = next(iter(others.items()))
        cells = [f"{100 * error:.1f}" for error in (ours, error)]
        least = min(cells, key=float)
        shown = [f"**{cell}**" if cell == least else cell for cell in cells]
        # The first row is learnt alone: its prediction does not count.
        rows = standings.asked[name, OWN, None]["rows"] + 1
        yield f"| {name} | {rows:,} | {shown[0]} | {shown[1]} | {best} | {len(others)} |"


def readme(text: str) -> str:
    """Return the README with its table made anew."""
    page = ROOT / "docs" / "arena.md"
    standings = Standings(runs_of_page(page, ARENA.tables["runs"].columns))
    return BLOCK.sub(lambda match: match[1] + block(standings) + match[2], text)


if __name__ == "__main__":
    README.write_text(readme(README.read_text("utf-8")), "utf-8")
