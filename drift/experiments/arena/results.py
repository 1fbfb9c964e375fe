"""What the arena came to: one row a stream, model and delay, and pairs of models."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from drift.experiments.arena.streams import STREAMS
from drift.experiments.comparison.statistics import pairs_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from drift.experiments.folder import Record, RunFolder

__all__ = ["OWN", "ArenaResults"]

#: The model that the others are held against.
OWN = "Tracker"
_COLUMNS = (
    *("stream", "model", "delay", "runs", "status", "rows", "unpredicted"),
    *("error", "kappa", "log_loss", "microseconds", "memory"),
)


@dataclass(frozen=True, repr=False)
class ArenaResults:
    """Records of the arena and what they show.

    Parameters
    ----------
    records
        One a run, as they are in the folder.
    seconds
        Wall time of the call that made this.

    Attributes
    ----------
    rows : list of dict
        One row a stream, model and delay, means over seeds: ``stream``, ``model``, ``delay``,
        ``runs``, ``status``, ``rows``, ``unpredicted``, ``error``, ``kappa``, ``log_loss``,
        ``microseconds``, ``memory``. ``NAME, tuned`` is the setting of NAME, its defaults included,
        that had the smallest error on this stream: a choice that nobody has beforehand.
    """

    records: list[Record]
    seconds: float

    def __repr__(self) -> str:
        return f"<ArenaResults: {len(self.records)} runs>"

    def __rich__(self) -> RenderableType:
        from rich.markdown import Markdown  # noqa: PLC0415 - rich is for terminals

        from drift.experiments.arena.page import losses  # noqa: PLC0415 - it imports this module

        return Markdown(losses(self))

    @cached_property
    def rows(self) -> list[Record]:
        """One row a stream, model and delay."""
        groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
        for record in self.records:
            groups[record["stream"], record["model"], record["delay"]].append(record)
        means = [_mean(group) for group in groups.values()]
        tuned: dict[tuple[str, str], list[Record]] = defaultdict(list)
        for row in means:
            tuned[row["stream"], row["model"].partition(" @ ")[0]].append(row)
        best = {key: _best(key[1], settings) for key, settings in tuned.items()}
        found = []
        for row in means:
            if " @ " not in row["model"]:
                found.append(row)
                choice = best[row["stream"], row["model"]]
                if row["delay"] is None and choice is not None:
                    found.append(choice)
        return found

    def error(self, stream: str, model: str, delay: str | None = None) -> float | None:
        """Error of a model on a stream; None where it has not ended well."""
        return self._errors.get((stream, model, delay))

    @cached_property
    def _errors(self) -> dict[tuple[str, str, str | None], float]:
        return {
            (row["stream"], row["model"], row["delay"]): row["error"]
            for row in self.rows
            if row["status"] == "ok" and row["error"] is not None
        }

    @cached_property
    def streams(self) -> list[str]:
        """Names of the streams, in the arena's order."""
        there = {row["stream"] for row in self.rows}
        return [name for name in STREAMS if name in there]

    @cached_property
    def models(self) -> list[str]:
        """Names of the models, in the arena's order."""
        return list(dict.fromkeys(row["model"] for row in self.rows))

    def pairs(self, *, real: bool) -> list[Record]:
        """Compare `OWN` with each model, on real streams or on generated ones.

        Streams of one source count once, with their mean error. See `pairs_of`, which corrects for
        the number of these pairs alone.
        """
        found = []
        own = [row for row in self.rows if row["delay"] is None]
        for other in self.models:
            both = [
                {**row, "stream": STREAMS[row["stream"]].source or row["stream"], "fold": None}
                for row in own
                if row["model"] in {OWN, other} and bool(STREAMS[row["stream"]].source) is real
            ]
            common = [
                {row["stream"] for row in both if row["model"] == name and row["status"] == "ok"}
                for name in (OWN, other)
            ]
            shared = [row for row in both if row["stream"] in common[0] & common[1]]
            shared.sort(key=lambda row: row["model"] != OWN)
            found += pairs_of(shared)
        return _corrected(found)

    def losses(self, least: float = 0.005) -> list[Record]:
        """Streams on which a rival at its defaults is better, by at least so much; worst first."""
        found = []
        for stream in self.streams:
            own = self.error(stream, OWN)
            rivals = {
                model: error
                for model in self.models
                if not model.startswith(OWN) and not model.endswith(", tuned")
                if (error := self.error(stream, model)) is not None
            }
            if own is None or not rivals:
                continue
            best = min(rivals, key=rivals.__getitem__)
            if own - rivals[best] >= least:
                row = {"stream": stream, "error": own, "rival": best, "theirs": rivals[best]}
                found.append(row | {"gap": own - rivals[best]})
        return sorted(found, key=lambda row: -row["gap"])

    def save(self, folder: RunFolder) -> None:
        """Write the tables, the ones without times and memory apart, and the page."""
        from drift.experiments.arena.page import page  # noqa: PLC0415 - it imports this module

        timeless = [name for name in _COLUMNS if name not in {"microseconds", "memory"}]
        folder.write_table("errors.csv", [{n: row[n] for n in timeless} for row in self.rows])
        folder.write_table("table.csv", self.rows)
        for real, name in ((True, "real"), (False, "generated")):
            folder.write_table(f"pairs_{name}.csv", self.pairs(real=real))
        folder.write_table("losses.csv", self.losses())
        folder.write_text("arena.md", page(self))


def _mean(group: list[Record]) -> Record:
    found: Record = {name: group[0][name] for name in ("stream", "model", "delay")}
    found["runs"] = len(group)
    found["status"] = ", ".join(sorted({record["status"] for record in group}))
    for name in _COLUMNS[5:]:
        values = [record[name] for record in group if record[name] is not None]
        found[name] = sum(values) / len(values) if values else None
    for name in ("rows", "unpredicted"):
        found[name] = round(found[name])
    return found


def _best(name: str, settings: Iterable[Record]) -> Record | None:
    """Return the row of the setting with the smallest error; None where there is one alone."""
    known = [
        row
        for row in settings
        if row["delay"] is None and row["status"] == "ok" and row["error"] is not None
    ]
    if len(known) < 2:
        return None
    return {**min(known, key=lambda row: row["error"]), "model": f"{name}, tuned"}


def _corrected(pairs: list[Record]) -> list[Record]:
    from drift.experiments.comparison.statistics import holm  # noqa: PLC0415

    for row, p in zip(pairs, holm([row["wilcoxon"] for row in pairs]), strict=True):
        row["holm"] = p
    return pairs
